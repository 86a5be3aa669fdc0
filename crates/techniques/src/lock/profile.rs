//! One pass over a source: the histogram of all of it, and accesses to try locks on, few enough to be kept in memory.

use lookaside_engine::{Outcome, PagePolicy, Setup};
use lookaside_trace::{Block, Source};

use super::histogram::{page_shift, Histogram, LockPage, PageCounts};
use super::maps::Maps;
use crate::plan::{Coverage, PlanError};
use crate::sampled_accesses::SampledAccesses;

/// What planning needs to know of a program.
#[derive(Debug)]
pub struct LockProfile {
    /// By page, ascending: accesses and misses of all of it.
    pub counts: Vec<PageCounts>,
    /// The model run that the misses are of; its rows name objects.
    pub outcome: Outcome,
    /// The memory map: names pages.
    pub maps: Maps,
    /// Accesses, left-out repeats included.
    pub accesses: u64,
    /// What locks are tried on: all accesses, or those in windows spread over the run.
    pub blocks: Vec<Block>,
    /// Of the recorded accesses, the share in `blocks`; 1 = all.
    pub tried_share: f64,
    /// How much of the source was read.
    pub coverage: Coverage,
}

impl LockProfile {
    /// Pulls a source to its end; `watch` sees each block first.
    ///
    /// # Errors
    /// A setup that can't be run or has other than base pages; samples in place of accesses; a temporary file that
    /// can't be made or read. An error of the source is kept: what was seen before it counts.
    pub fn record(
        source: &mut dyn Source,
        base: &Setup,
        tlb: &str,
        watch: &mut dyn FnMut(&Block),
    ) -> Result<Self, PlanError> {
        if base.os.pages != PagePolicy::Base {
            return Err(PlanError::Impossible("locks are planned for base pages only; set os.pages to base".into()));
        }
        if source.info().sample_period_ns > 0 {
            let why = "the trace holds samples, not every access; record it with valgrind or qemu";
            return Err(PlanError::Impossible(why.into()));
        }
        let mut histogram = Histogram::new(base.clone(), tlb)?;
        let mut maps = Maps::default();
        let tried = SampledAccesses::pull(source, &mut |block| {
            watch(block);
            maps.run(block);
            histogram.run(block);
        })?;
        let full = tried.full.iter();
        let mut remarks: Vec<String> =
            full.map(|why| format!("locks were tried on the first part of the run only: {why}")).collect();
        if tried.tried < tried.recorded {
            remarks.push(format!(
                "stall cycles come from {} of {} recorded accesses, in windows spread over the run; accesses and misses \
                 are of the whole run",
                tried.tried, tried.recorded
            ));
        }
        let accesses = histogram.accesses();
        let (counts, outcome) = histogram.finish();
        remarks.extend(too_wide(base, &counts));
        let tried_share = tried.share();
        let SampledAccesses { blocks, error, .. } = tried;
        let coverage = Coverage { remarks, damage: source.damage().to_vec(), error };
        Ok(Self { counts, outcome, maps, accesses, blocks, tried_share, coverage })
    }
}

/// What is to be said where the machine does not translate all bits of the program's addresses.
fn too_wide(base: &Setup, counts: &[PageCounts]) -> Option<String> {
    let bits = base.machine.page_table.format.address_bits();
    let shift = page_shift(&base.machine);
    let wide = |page: LockPage| bits < 64 && page.addr(shift) >> bits != 0;
    counts.iter().any(|count| wide(count.page)).then(|| {
        format!(
            "the program uses addresses of more than the {bits} bits that this machine translates; the model drops \
             the upper bits, so pages may collide"
        )
    })
}
