//! What the system says of its memory.

use std::fs;

/// Bytes of memory that programs may still have, as the system reckons; else what can't be read.
pub fn available_bytes() -> Result<u64, String> {
    let path = "/proc/meminfo";
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    field(&text, "MemAvailable:").ok_or_else(|| format!("{path}: no MemAvailable"))
}

/// Bytes of this process that lie in anonymous huge pages; else what can't be read.
pub fn huge_bytes() -> Result<u64, String> {
    let path = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    field(&text, "AnonHugePages:").ok_or_else(|| format!("{path}: no AnonHugePages"))
}

/// The value of a line `NAME: N kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}
