//! What the system says of its memory.

/// Bytes of memory that programs may still have, as the system reckons; else what can't be read.
pub fn available_bytes() -> Result<u64, String> {
    lookaside_host::meminfo_bytes("MemAvailable").map_err(|e| e.to_string())
}

/// Bytes of this process that lie in anonymous huge pages; else what can't be read.
pub fn huge_bytes() -> Result<u64, String> {
    lookaside_host::Process::own().smaps_rollup().map(|all| all.anonymous_huge_bytes).map_err(|e| e.to_string())
}
