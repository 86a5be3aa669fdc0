//! Where a process is: samples, and referenced bits where samples are refused.

use std::time::Duration;

use super::choose::{spread, tally, Fell, Weights};
use super::referenced::{self, Referenced};
use super::{pages, By, HugeError, Look, Memory};

/// What was seen of a process, and its memory right after.
pub(super) struct Seen {
    pub(super) memory: Memory,
    pub(super) weights: Weights,
    pub(super) by: By,
    /// Why not by samples.
    pub(super) no_samples: Option<String>,
    /// By samples: where they fell.
    pub(super) fell: Option<Fell>,
    /// By referenced bits: what was told.
    pub(super) referenced: Option<Referenced>,
}

impl Seen {
    /// Samples, or bytes referenced, wherever they fell.
    pub(super) fn weight(&self) -> u64 {
        let bytes = self.referenced.as_ref().map(|seen| seen.bytes.iter().sum());
        self.fell.as_ref().map(|fell| fell.samples).or(bytes).unwrap_or(0)
    }
}

/// Looks at a process for so long. Without `by`: by samples, and by referenced bits where those are refused.
pub(super) fn see(
    pid: u32,
    time: Duration,
    by: Option<By>,
    look: &dyn Look,
    stop: &dyn Fn() -> bool,
) -> Result<Seen, HugeError> {
    let no_samples = match by {
        Some(By::Referenced) => None,
        _ => match look.look(pid, time, stop) {
            Ok(addrs) => return sampled(pid, &addrs),
            Err(why) if by.is_none() => Some(why),
            Err(why) => return Err(HugeError::Bad(why)),
        },
    };
    let referenced = referenced::look(pid, time, stop)?;
    // The bytes belong to the mappings as they were looked at.
    let areas = referenced.areas.clone();
    let memory = Memory { windows: pages::windows_of(pid, &areas)?, areas };
    let weights = spread(&memory.areas, &memory.windows, &referenced.bytes);
    Ok(Seen { memory, weights, by: By::Referenced, no_samples, fell: None, referenced: Some(referenced) })
}

fn sampled(pid: u32, addrs: &[u64]) -> Result<Seen, HugeError> {
    let memory = Memory::of(pid)?;
    let mut fell = Fell::default();
    fell.add(&memory.areas, &memory.windows, addrs);
    let weights = tally(addrs);
    Ok(Seen { memory, weights, by: By::Sample, no_samples: None, fell: Some(fell), referenced: None })
}
