//! A round's memory, processes and threads.

use std::time::Duration;

use lookaside_stats::SplitMix64;

use super::compartments::{CompartmentTurns, Compartments, ReadMemory};
use super::error::Early;
use super::memory::Areas;
use super::options::SwitchOptions;
use super::participants::{ParticipantKind, Participants};
use super::plan::{members, AreaLayout, Benchmark, Frames, PageKind, RingCase, Who};
use super::ring::{RingJob, TurnWork};
use super::samples::{KeyUse, RingSample};

/// All that a round needs. Participants end before the memory goes.
#[derive(Debug)]
pub(super) struct RoundSetup {
    threads: Participants,
    processes: Participants,
    compartments: Option<Compartments>,
    lat_ctx: [Areas; 2],
    extreme: [Areas; 2],
    page_counts: Vec<u64>,
}

impl RoundSetup {
    /// New memory, and new participants on this CPU, compartments among them if they are to be. Everything that does
    /// not depend on the system is the same for a seed and a round.
    pub(super) fn set(options: &SwitchOptions, cpu: usize, round: u32, compartments: bool) -> Result<Self, String> {
        let mut random = SplitMix64::new(options.seed ^ u64::from(round).rotate_left(32));
        let mut areas = |benchmark, counts: &[u64]| -> Result<[Areas; 2], String> {
            let mut of = |pages| Areas::new(AreaLayout::of(options, benchmark, pages), pages, counts, &mut random);
            Ok([of(PageKind::Base)?, of(PageKind::Huge)?])
        };
        let lat_ctx = areas(Benchmark::LatCtx, &[])?;
        let extreme = areas(Benchmark::Extreme, &options.page_counts)?;
        // Processes come first: so their memory has no threads' stacks.
        let processes = Participants::new(ParticipantKind::Processes, members(options), cpu)?;
        let threads = Participants::new(ParticipantKind::Threads, members(options), cpu)?;
        let compartments = compartments.then(|| Compartments::new(options, cpu, round)).transpose()?;
        Ok(Self { threads, processes, compartments, lat_ctx, extreme, page_counts: options.page_counts.clone() })
    }

    /// Share of the memory meant for huge pages that lies in them; `None` if there is no such memory.
    pub(super) fn huge_share(&self) -> Option<f64> {
        let areas = || [&self.lat_ctx, &self.extreme].map(|[_, huge]| huge);
        let (all, huge) = (areas().map(Areas::bytes), areas().map(Areas::huge_bytes));
        let all: u64 = all.iter().sum();
        (all > 0).then(|| huge.iter().sum::<u64>() as f64 / all as f64)
    }

    /// One measurement.
    pub(super) fn measure(
        &mut self,
        case: &RingCase,
        window: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<RingSample, Early> {
        let ring = case.ring;
        let areas = match ring.benchmark {
            Benchmark::LatCtx => &self.lat_ctx,
            Benchmark::Extreme => &self.extreme,
        };
        let [base, huge] = areas;
        let areas = match ring.pages {
            PageKind::Base => base,
            PageKind::Huge => huge,
        };
        let work = match ring.benchmark {
            Benchmark::LatCtx => TurnWork::Lines(ring.size * 1024),
            Benchmark::Extreme => {
                let column = self.page_counts.iter().position(|count| *count == ring.size);
                let column = column.ok_or_else(|| Early::Failed(format!("{case}: no chain of such a length")))?;
                TurnWork::Chain(ring.size, column as u64)
            }
        };
        let stride = match ring.frames {
            Frames::Private => areas.stride,
            Frames::Shared => 0,
        };
        let (participants, start, area) = (ring.participants, areas.start, areas.stride);
        let job = RingJob { participants, work, start, stride, area, window };
        let steps = |laps: u64| (laps * participants as u64) as f64;
        let (timed, keys) = match (case.who, &mut self.compartments) {
            (Who::Threads, _) => (self.threads.measure(&job, stop)?, None),
            (Who::Processes, _) => (self.processes.measure(&job, stop)?, None),
            (Who::Compartments, None) => return Err(Early::Failed(format!("{case}: there are none"))),
            (Who::Compartments, Some(compartments)) => {
                let whose = match (ring.benchmark, ring.frames) {
                    (Benchmark::LatCtx, _) => ReadMemory::LatCtx,
                    (Benchmark::Extreme, Frames::Private) => ReadMemory::Own,
                    (Benchmark::Extreme, Frames::Shared) => ReadMemory::Common,
                };
                let found = compartments.measure(&CompartmentTurns { whose, participants, work, window }, stop)?;
                let per_kilo_step = |count: u64| count as f64 * 1e3 / steps(found.timed.laps);
                let keys = KeyUse {
                    recycled_per_kilo_step: per_kilo_step(found.recycled),
                    protect_calls_per_kilo_step: per_kilo_step(found.protect_calls),
                };
                (found.timed, Some(keys))
            }
        };
        // Switches are counted from one step after the count began to that after the last timed lap.
        let counted = steps(timed.laps + 1);
        // Alone nobody is handed anything; nor are compartments, of one thread.
        let own = if participants > 1 && keys.is_none() { counted } else { 0.0 };
        Ok(RingSample {
            keys,
            step_ns: timed.elapsed_ns as f64 / steps(timed.laps),
            extra_switches_per_kilo_step: ((timed.voluntary + timed.involuntary) as f64 - own) * 1e3 / counted,
            involuntary_per_kilo_step: timed.involuntary as f64 * 1e3 / counted,
        })
    }
}
