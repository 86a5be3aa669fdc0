//! The calling thread's CPU time: other programs that want the CPU meanwhile are not in it.

use rustix::time::{clock_gettime, ClockId};

/// A point of the thread's CPU time.
#[derive(Clone, Copy, Debug)]
pub struct CpuInstant(f64);

impl CpuInstant {
    /// Now.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    /// Seconds of the thread since then.
    pub fn seconds(self) -> f64 {
        Self::now().0 - self.0
    }
}
