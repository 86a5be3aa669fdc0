//! System calls that a program made, with what the kernel wrote into its memory: a copy of it is given the same, and so
//! goes on where the program went on.

use std::collections::VecDeque;
use std::io;

use libc::user_regs_struct;

use crate::backends::read_memory;

/// Bytes that one call may write.
const MOST_BYTES: u64 = 4 << 20;
/// Parts of a scattered read at most (`IOV_MAX`).
const MOST_PARTS: u64 = 1024;
/// Bytes of the kernel's structures for x86-64 (struct epoll_event, pollfd, stat, statx, msghdr, iovec, timespec, rusage,
/// sigset_t, sigaction).
const EPOLL_EVENT: u64 = 12;
const POLL_FD: u64 = 8;
const STAT: u64 = 144;
const STATX: u64 = 256;
const MESSAGE_HEADER: u64 = 56;
const PART: u64 = 16;
const TIME: u64 = 16;
const USAGE: u64 = 144;
const SIGNALS: u64 = 8;
const SIGNAL_ACTION: u64 = 32;

/// A call, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    number: i64,
    args: [u64; 6],
    result: u64,
    /// What was written, by address.
    written: Vec<(u64, Vec<u8>)>,
}

/// The calls that a thread made, in order.
pub(super) type RecordedCalls = VecDeque<RecordedCall>;

/// A call's number and arguments, where it begins.
pub(super) fn call_of(registers: &user_regs_struct) -> (i64, [u64; 6]) {
    let r = registers;
    (r.orig_rax as i64, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9])
}

impl RecordedCall {
    /// What a call came to that has just ended; `None`: what it wrote is not known.
    pub(super) fn new(pid: u32, (number, args): (i64, [u64; 6]), result: u64) -> Option<Self> {
        let failed = (-4095..0).contains(&(result as i64));
        let ranges = if failed { vec![] } else { written_ranges(pid, number, &args, result)? };
        let read = |(addr, bytes): (u64, u64)| {
            let mut content = vec![0; usize::try_from(bytes).ok().filter(|_| bytes <= MOST_BYTES)?];
            (read_memory(pid, addr, &mut content) == content.len()).then_some((addr, content))
        };
        let written = ranges.into_iter().filter(|&(addr, bytes)| addr != 0 && bytes != 0).map(read);
        Some(Self { number, args, result, written: written.collect::<Option<_>>()? })
    }

    /// It is this call, with these arguments.
    pub(super) fn is(&self, number: i64, args: &[u64; 6]) -> bool {
        let used = arguments(self.number);
        self.number == number && self.args[..used] == args[..used]
    }

    pub(super) fn result(&self) -> u64 {
        self.result
    }

    /// Does to a copy's memory what the call did to the original's.
    pub(super) fn write_into(&self, pid: u32) -> io::Result<()> {
        self.written.iter().try_for_each(|(addr, content)| write_memory(pid, *addr, content))
    }
}

/// Arguments that a call has: the registers behind them may hold anything.
fn arguments(number: i64) -> usize {
    match number {
        libc::SYS_getpid | libc::SYS_gettid | libc::SYS_getppid | libc::SYS_getuid | libc::SYS_geteuid => 0,
        libc::SYS_getgid | libc::SYS_getegid | libc::SYS_sched_yield => 0,
        libc::SYS_close | libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_dup | libc::SYS_time | libc::SYS_brk => 1,
        libc::SYS_fstat
        | libc::SYS_clock_gettime
        | libc::SYS_gettimeofday
        | libc::SYS_nanosleep
        | libc::SYS_getrusage
        | libc::SYS_shutdown
        | libc::SYS_munmap => 2,
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_lseek
        | libc::SYS_recvmsg
        | libc::SYS_sendmsg
        | libc::SYS_accept
        | libc::SYS_getrandom
        | libc::SYS_connect
        | libc::SYS_madvise
        | libc::SYS_mprotect => 3,
        // For how long it waits depends on the time; a copy is late.
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => 3,
        libc::SYS_poll | libc::SYS_ppoll => 2,
        // A third argument of its own depends on the command.
        libc::SYS_fcntl => 2,
        libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_epoll_ctl
        | libc::SYS_accept4
        | libc::SYS_newfstatat
        | libc::SYS_clock_nanosleep
        | libc::SYS_rt_sigprocmask
        | libc::SYS_rt_sigaction
        | libc::SYS_timerfd_settime => 4,
        libc::SYS_getsockopt | libc::SYS_setsockopt => 5,
        _ => 6,
    }
}

/// Where the kernel has written, by address and bytes, for a call that has succeeded; `None`: that is not known.
fn written_ranges(pid: u32, number: i64, args: &[u64; 6], result: u64) -> Option<Vec<(u64, u64)>> {
    let [first, second, third, fourth, fifth, sixth] = *args;
    Some(match number {
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_close
        | libc::SYS_lseek
        | libc::SYS_epoll_ctl
        | libc::SYS_setsockopt
        | libc::SYS_shutdown
        | libc::SYS_connect
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_dup
        | libc::SYS_futex
        | libc::SYS_getpid
        | libc::SYS_gettid
        | libc::SYS_getppid
        | libc::SYS_getuid
        | libc::SYS_geteuid
        | libc::SYS_getgid
        | libc::SYS_getegid
        | libc::SYS_sched_yield
        | libc::SYS_openat
        | libc::SYS_access
        | libc::SYS_faccessat
        | libc::SYS_eventfd2
        | libc::SYS_socket
        | libc::SYS_bind
        | libc::SYS_listen
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_flock
        | libc::SYS_fadvise64
        | libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_timerfd_settime
        // What changes the memory map is made by the copy itself.
        | libc::SYS_brk
        | libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mremap
        | libc::SYS_mprotect
        | libc::SYS_madvise => vec![],
        libc::SYS_fcntl if [libc::F_GETFL, libc::F_SETFL, libc::F_GETFD, libc::F_SETFD].contains(&(second as i32)) => {
            vec![]
        }
        libc::SYS_read | libc::SYS_pread64 => vec![(second, result)],
        libc::SYS_getrandom => vec![(first, result)],
        libc::SYS_recvfrom => {
            let mut ranges = vec![(second, result)];
            ranges.extend(with_length(pid, fifth, sixth)?);
            ranges
        }
        libc::SYS_readv => parts(pid, second, third, result)?,
        libc::SYS_recvmsg => message(pid, second, result)?,
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => vec![(second, result.checked_mul(EPOLL_EVENT)?)],
        libc::SYS_poll | libc::SYS_ppoll => vec![(first, second.checked_mul(POLL_FD)?)],
        libc::SYS_accept | libc::SYS_accept4 => with_length(pid, second, third)?,
        libc::SYS_getsockopt => with_length(pid, fourth, fifth)?,
        libc::SYS_fstat | libc::SYS_stat | libc::SYS_lstat => vec![(second, STAT)],
        libc::SYS_statx => vec![(fifth, STATX)],
        libc::SYS_getdents64 => vec![(second, result)],
        libc::SYS_sendfile => vec![(third, 8)],
        libc::SYS_getsockname | libc::SYS_getpeername => with_length(pid, second, third)?,
        libc::SYS_newfstatat => vec![(third, STAT)],
        libc::SYS_clock_gettime | libc::SYS_gettimeofday => vec![(second_if_clock(number, args), TIME)],
        libc::SYS_time => vec![(first, 8)],
        libc::SYS_getrusage => vec![(second, USAGE)],
        libc::SYS_rt_sigprocmask => vec![(third, SIGNALS)],
        libc::SYS_rt_sigaction => vec![(third, SIGNAL_ACTION)],
        _ => return None,
    })
}

fn second_if_clock(number: i64, args: &[u64; 6]) -> u64 {
    args[usize::from(number == libc::SYS_clock_gettime)]
}

/// Something of which the kernel has written the length as well, in four bytes at an address.
fn with_length(pid: u32, addr: u64, length: u64) -> Option<Vec<(u64, u64)>> {
    if addr == 0 || length == 0 {
        return Some(vec![]);
    }
    let mut bytes = [0; 4];
    (read_memory(pid, length, &mut bytes) == 4).then(|| vec![(length, 4), (addr, u32::from_le_bytes(bytes).into())])
}

/// The parts of a scattered read that so many bytes went into.
fn parts(pid: u32, addr: u64, count: u64, bytes: u64) -> Option<Vec<(u64, u64)>> {
    let mut listed = vec![0; usize::try_from(count.checked_mul(PART)?).ok().filter(|_| count <= MOST_PARTS)?];
    if read_memory(pid, addr, &mut listed) != listed.len() {
        return None;
    }
    let mut left = bytes;
    let ranges = listed.chunks_exact(PART as usize).map(|part| {
        let bytes = word(part, 8).min(left);
        left -= bytes;
        (word(part, 0), bytes)
    });
    Some(ranges.collect())
}

/// What `recvmsg` has written: its header, the sender's name, control messages, and the parts.
fn message(pid: u32, addr: u64, bytes: u64) -> Option<Vec<(u64, u64)>> {
    let mut header = [0; MESSAGE_HEADER as usize];
    if read_memory(pid, addr, &mut header) != header.len() {
        return None;
    }
    let mut ranges = vec![(addr, MESSAGE_HEADER), (word(&header, 0), word(&header, 8) & 0xffff_ffff)];
    ranges.push((word(&header, 32), word(&header, 40)));
    ranges.extend(parts(pid, word(&header, 16), word(&header, 24), bytes)?);
    Some(ranges)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Writes into a copy's memory.
fn write_memory(pid: u32, addr: u64, content: &[u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: content.as_ptr().cast_mut().cast(), iov_len: content.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: content.len() };
    // SAFETY: `local` describes `content`, which is only read; the kernel checks the remote side.
    let done = unsafe { libc::process_vm_writev(pid as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    match done {
        done if done == content.len() as isize => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(number: i64, args: [u64; 6], result: u64) -> Option<RecordedCall> {
        RecordedCall::new(std::process::id(), (number, args), result)
    }

    fn address<T>(of: &T) -> u64 {
        std::ptr::from_ref(of) as u64
    }

    #[test]
    fn what_the_kernel_wrote_is_kept_and_written_again() {
        let mut buffer = *b"what was read, and more";
        let call = own(libc::SYS_read, [3, address(&buffer), 100, 0, 0, 0], 13).expect("known");
        assert_eq!(call.written, [(address(&buffer), b"what was read".to_vec())]);
        buffer = *b"it is something else...";
        call.write_into(std::process::id()).expect("our memory");
        assert_eq!(&buffer, b"what was readng else...");
        // It failed: nothing was written.
        assert_eq!(own(libc::SYS_read, [3, 8, 100, 0, 0, 0], -9i64 as u64).expect("known").written, []);
        // Where no memory is.
        assert_eq!(own(libc::SYS_read, [3, 8, 100, 0, 0, 0], 13), None);
        // What such a call writes is not known.
        assert_eq!(own(libc::SYS_ioctl, [3, 8, 100, 0, 0, 0], 0), None);
        // More than any call is to be kept of.
        assert_eq!(own(libc::SYS_read, [3, address(&buffer), u64::MAX, 0, 0, 0], u64::MAX / 2), None);
    }

    #[test]
    fn scattered_reads_fill_their_parts_in_turn() {
        let (first, second, third) = ([1u8; 4], [2u8; 8], [3u8; 8]);
        let parts = [[address(&first), 4], [address(&second), 8], [address(&third), 8]];
        let call = own(libc::SYS_readv, [3, address(&parts), 3, 0, 0, 0], 9).expect("known");
        assert_eq!(call.written, [(address(&first), vec![1; 4]), (address(&second), vec![2; 5])]);
        let name = [7u8; 16];
        let header = [address(&name), 16, address(&parts), 3, 0, 0, 0];
        let call = own(libc::SYS_recvmsg, [3, address(&header), 0, 0, 0, 0], 4).expect("known");
        assert_eq!(call.written[0].0, address(&header));
        assert_eq!(call.written[1..], [(address(&name), vec![7; 16]), (address(&first), vec![1; 4])]);
        // As many parts as no kernel takes.
        assert_eq!(own(libc::SYS_readv, [3, address(&parts), u64::MAX, 0, 0, 0], 9), None);
    }

    #[test]
    fn a_call_is_known_by_its_number_and_arguments() {
        let call = own(libc::SYS_close, [3, 1, 2, 3, 4, 5], 0).expect("known");
        assert!(call.is(libc::SYS_close, &[3, 9, 9, 9, 9, 9]) && !call.is(libc::SYS_close, &[4, 1, 2, 3, 4, 5]));
        assert!(!call.is(libc::SYS_dup, &[3, 1, 2, 3, 4, 5]));
        // How long it was to wait depends on the time.
        let events = [0u8; 24];
        let call = own(libc::SYS_epoll_wait, [3, address(&events), 2, 77, 0, 0], 2).expect("known");
        assert!(call.is(libc::SYS_epoll_wait, &[3, address(&events), 2, 1, 0, 0]));
        assert_eq!(call.written, [(address(&events), vec![0; 24])]);
    }
}
