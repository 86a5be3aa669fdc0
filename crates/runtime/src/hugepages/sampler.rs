//! Where a process is: samples, and referenced bits where samples are refused.

use std::time::Duration;

use serde::Serialize;

use super::choose::{spread, tally, SampleCounts, WindowWeights};
use super::error::HugePageError;
use super::pages;
use super::pages::ProcessMemory;
use super::referenced::{self, ReferencedBytes};

/// Sees which data addresses a process waits for. The sampler is another room's: whoever starts this brings it.
pub trait AddressSampler: Send + Sync {
    /// Samples a process for so long, or until `stop` says so, or it ends. Gives its data addresses in order of time; 0
    /// = not known.
    ///
    /// # Errors
    /// In a line: why it cannot be sampled.
    fn sample(&self, pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Vec<u64>, String>;
}

/// How it is found out where a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// Samples of data addresses, at equal times of the program's CPU time: where it waits.
    Sample,
    /// The referenced bits of pages, of which the system tells a sum for each mapping.
    Referenced,
}

/// What was seen of a process, and its memory right after.
pub(crate) struct MemoryObservation {
    pub(crate) memory: ProcessMemory,
    pub(crate) weights: WindowWeights,
    pub(crate) by: ObservedBy,
    /// Why not by samples.
    pub(crate) no_samples: Option<String>,
    /// By samples: where they fell.
    pub(crate) fell: Option<SampleCounts>,
    /// By referenced bits: what was told.
    pub(crate) referenced: Option<ReferencedBytes>,
}

impl MemoryObservation {
    /// Samples, or bytes referenced, wherever they fell.
    pub(crate) fn weight(&self) -> u64 {
        let bytes = self.referenced.as_ref().map(|seen| seen.bytes.iter().sum());
        self.fell.as_ref().map(|fell| fell.samples).or(bytes).unwrap_or(0)
    }
}

/// Looks at a process for so long. Without `by`: by samples, and by referenced bits where those are refused.
pub(crate) fn see(
    pid: u32,
    time: Duration,
    by: Option<ObservedBy>,
    sampler: &dyn AddressSampler,
    stop: &dyn Fn() -> bool,
) -> Result<MemoryObservation, HugePageError> {
    let no_samples = match by {
        Some(ObservedBy::Referenced) => None,
        _ => match sampler.sample(pid, time, stop) {
            Ok(addrs) => return sampled(pid, &addrs),
            Err(why) if by.is_none() => Some(why),
            Err(why) => return Err(HugePageError::Bad(why)),
        },
    };
    let referenced = referenced::look(pid, time, stop)?;
    // The bytes belong to the mappings as they were looked at.
    let areas = referenced.areas.clone();
    let memory = ProcessMemory { windows: pages::windows_of(pid, &areas)?, areas };
    let weights = spread(&memory.areas, &memory.windows, &referenced.bytes);
    Ok(MemoryObservation {
        memory,
        weights,
        by: ObservedBy::Referenced,
        no_samples,
        fell: None,
        referenced: Some(referenced),
    })
}

fn sampled(pid: u32, addrs: &[u64]) -> Result<MemoryObservation, HugePageError> {
    let memory = ProcessMemory::of(pid)?;
    let mut fell = SampleCounts::default();
    fell.add(&memory.areas, &memory.windows, addrs);
    let weights = tally(addrs);
    Ok(MemoryObservation {
        memory,
        weights,
        by: ObservedBy::Sample,
        no_samples: None,
        fell: Some(fell),
        referenced: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is not to be asked.
    struct Never;

    impl AddressSampler for Never {
        fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
            panic!("nobody wants samples")
        }
    }

    #[test]
    fn who_wants_referenced_bits_alone_is_not_sampled() {
        match see(std::process::id(), Duration::ZERO, Some(ObservedBy::Referenced), &Never, &|| true) {
            Ok(seen) => {
                assert_eq!((seen.by, seen.no_samples, seen.fell), (ObservedBy::Referenced, None, None));
                assert_eq!(seen.referenced.map(|seen| seen.intervals), Some(0), "it was stopped at once");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("clear_refs") || said.contains("PAGEMAP_SCAN"), "{said}");
            }
        }
    }
}
