//! CPU time of another process, to the nanosecond.

use std::io;
use std::time::Duration;

/// CPU time that a process has used, in user code and in the kernel, by all of its threads, those that have ended
/// included (clock_getcpuclockid(3)). `/proc/PID/stat` tells the same in ticks of 10 ms.
///
/// # Errors
/// There is no such process (`ESRCH`).
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both are ours, and filled in by the calls.
    let errno = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    // SAFETY: as above.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_threads_that_ended_counts() {
        let before = cpu_time(std::process::id()).expect("our own");
        let spin = || {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(20) {}
        };
        std::thread::spawn(spin).join().expect("it ends");
        let used = cpu_time(std::process::id()).expect("our own") - before;
        assert!(used > Duration::from_millis(1), "{used:?}");
    }

    #[test]
    fn nobody_has_no_clock() {
        for pid in [u32::MAX, 4_194_305] {
            assert!(cpu_time(pid).is_err());
        }
    }
}
