//! Another process's memory, read without stopping it.

/// Reads up to `into.len()` bytes at `addr`; how many could be read.
pub fn read(process: u32, addr: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: `local` describes `into`, which lives through the call; the kernel checks the remote side.
    let done = unsafe { libc::process_vm_readv(process as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(done).unwrap_or(0)
}

/// Reads a little-endian number of `bytes` (at most 8) bytes.
pub fn read_number(process: u32, addr: u64, bytes: u8) -> Option<u64> {
    let mut buffer = [0; 8];
    let wanted = buffer.get_mut(..usize::from(bytes))?;
    (read(process, addr, wanted) == usize::from(bytes)).then(|| u64::from_le_bytes(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_memory_and_no_unmapped_one() {
        let data = 0x1122_3344_5566_7788u64;
        let addr = &raw const data as u64;
        assert_eq!(read_number(std::process::id(), addr, 8), Some(data));
        assert_eq!(read_number(std::process::id(), addr, 4), Some(data & 0xffff_ffff));
        assert_eq!(read_number(std::process::id(), 8, 8), None);
        assert_eq!(read_number(std::process::id(), addr, 9), None);
    }
}
