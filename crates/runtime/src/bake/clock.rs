//! The helper thread's clocks, in nanoseconds.

use rustix::time::{clock_gettime, ClockId};

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// The clock that only goes forward.
pub(super) fn now_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

/// CPU time of the calling thread.
pub(super) fn thread_nanos() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// CPU time of all other threads of the process, those that have ended included.
pub(super) fn others_nanos() -> u64 {
    nanos(ClockId::ProcessCPUTime).saturating_sub(thread_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says, by a call of its own.
    fn told(clock: libc::clockid_t) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is ours, filled in by the call.
        assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    #[test]
    fn each_clock_lies_between_what_the_system_says_before_and_after() {
        let clocks = [(libc::CLOCK_MONOTONIC, now_nanos as fn() -> u64), (libc::CLOCK_THREAD_CPUTIME_ID, thread_nanos)];
        for (clock, ours) in clocks {
            let before = told(clock);
            let at = ours();
            assert!((before..=told(clock)).contains(&at), "{clock}: {at}");
        }
    }

    #[test]
    fn the_time_of_others_is_the_processs_without_the_callers_and_threads_that_ended_count() {
        let used = std::thread::spawn(|| {
            while thread_nanos() < 2_000_000 {
                std::hint::spin_loop();
            }
            thread_nanos()
        });
        let used = used.join().expect("it ended");
        let (process, own) = (told(libc::CLOCK_PROCESS_CPUTIME_ID), told(libc::CLOCK_THREAD_CPUTIME_ID));
        let others = others_nanos();
        let (own_after, process_after) = (told(libc::CLOCK_THREAD_CPUTIME_ID), told(libc::CLOCK_PROCESS_CPUTIME_ID));
        assert!((process - own_after..=process_after - own).contains(&others), "{others}");
        assert!(others >= used, "{others} of all, {used} of one that ended");
    }
}
