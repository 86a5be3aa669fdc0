//! What one run of the program by itself took, and where.

use serde::{Deserialize, Serialize};

use crate::code_place::CodePlace;
use crate::thread_turns::ThreadTurns;

/// One native run with small pages, under the clock sampler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NativeClock {
    /// CPU time in user mode, of all threads and waited-for children, in seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, likewise.
    pub system_seconds: f64,
    /// From start to end.
    pub wall_seconds: f64,
    /// Page faults that read nothing from a disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Times that a thread gave up its CPU or lost it.
    #[serde(default)]
    pub switches: u64,
    /// Threads that took part in the same tenth of a second of CPU time, in the mean; 0 where that was not seen.
    #[serde(default)]
    pub threads_at_a_time: f64,
    /// Samples of user time.
    pub samples: u64,
    /// Nanoseconds of a thread's CPU time between two samples.
    pub period_ns: u64,
    /// Samples by instruction, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<SampledPlace>,
}

/// Samples at one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SampledPlace {
    /// The instruction that was waited for; the one that ran next where it is not known.
    pub place: CodePlace,
    /// Samples.
    pub samples: u64,
}

impl NativeClock {
    /// User and system seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }

    /// How its threads share so many CPUs.
    pub fn thread_turns(&self, cpus: usize) -> ThreadTurns {
        let busy = (self.user_seconds / self.wall_seconds).round();
        let at_once = if busy >= 1.0 { (busy as usize).min(cpus.max(1)) } else { 1 };
        let on_each = (self.threads_at_a_time / at_once as f64).round().max(1.0) as usize;
        ThreadTurns { at_once, on_each, seconds: self.cpu_seconds() / self.switches as f64 }
    }

    /// User seconds that one sample stands for: the run's own, shared out, so that lost samples lose no time. 0 without
    /// samples.
    pub fn seconds_a_sample(&self) -> f64 {
        match self.samples {
            0 => 0.0,
            samples => self.user_seconds / samples as f64,
        }
    }
}
