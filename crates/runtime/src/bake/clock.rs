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
