//! Whether the seccomp filters that this process is under, as in a container, let the preloaded library do what it does
//! for code on huge pages: tried in a child, since a filter may end who asks.

use lookaside_host::Process;

use super::windows::WINDOW_BYTES;

/// Number of this process's filters, where there are some and they let all calls through: a program that it starts is
/// under the same ones, unless it is under more.
pub fn harmless_filters() -> Option<u32> {
    let status = Process::own().status().ok()?;
    let filters = status.value("Seccomp_filters")?.parse().ok().filter(|&filters| filters > 0)?;
    calls_are_let_through().then_some(filters)
}

/// Makes the library's calls in a child.
fn calls_are_let_through() -> bool {
    // SAFETY: the child makes system calls only, and ends by one.
    match unsafe { libc::fork() } {
        -1 => false,
        0 => {
            let code = i32::from(!make_calls());
            // SAFETY: ends the child, and nothing of its parent's runs there.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: fills the number; the child is ours.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) };
            waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }
}

/// Whether memory can be mapped, advised, looked at, made executable and moved. A collapse may fail for want of a huge
/// page; that it was asked for counts.
fn make_calls() -> bool {
    let bytes = WINDOW_BYTES as usize;
    let (all, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let null = std::ptr::null_mut();
    // SAFETY: new mappings, which only this uses.
    unsafe {
        let from = libc::mmap(null, bytes, all, private | libc::MAP_NORESERVE, -1, 0);
        let to = libc::mmap(null, bytes, all, private | libc::MAP_NORESERVE, -1, 0);
        if from == libc::MAP_FAILED || to == libc::MAP_FAILED {
            return false;
        }
        from.cast::<u8>().write_volatile(0);
        let mut resident = 0;
        libc::madvise(from, bytes, libc::MADV_HUGEPAGE);
        libc::madvise(from, bytes, libc::MADV_COLLAPSE);
        libc::mincore(from, 4096, &mut resident);
        libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0);
        libc::madvise(from, bytes, libc::MADV_POPULATE_READ) == 0
            && libc::mprotect(from, bytes, libc::PROT_READ | libc::PROT_EXEC) == 0
            && libc::mremap(from, bytes, bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to) != libc::MAP_FAILED
            && libc::munmap(to, bytes) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_let_through_where_nothing_forbids_them() {
        let status = Process::own().status().expect("its own");
        if status.value("Seccomp") != Some("0") {
            return eprintln!("LEFT OUT: a filter is on here");
        }
        assert_eq!(harmless_filters(), None, "there are none");
        assert!(calls_are_let_through());
    }
}
