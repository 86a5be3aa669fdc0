//! Does a thread on another CPU take our entries, as the other thread of a core with simultaneous multithreading may?
//! (PT-Baker, §4.4.5.1.) A guest may not be told which of its CPUs are such threads: it is measured.

use crate::bench::Halt;
use crate::effects::eviction_bench::EvictionBench;
use crate::effects::repeat::until_answers_agree;
use crate::effects::tlb_sharing;
use crate::finding::Finding;
use crate::metal::single_shot::Act;
use crate::metal::{NeighbourWalk, OtherCpu};
use crate::report::effects::NeighbourCpu;
use crate::report::effects::NeighbourEvictions;

/// CPUs looked at, those that the system calls siblings first.
const CPUS: usize = 3;
/// Pages that were loaded before, and samples.
const PAGES: usize = 32;
/// See [`PAGES`].
const SAMPLES: usize = 128;
/// Seconds that a shot waits for the other CPU: some thousands of its loads.
const WAIT_SECONDS: f64 = 100e-6;
/// Ticks, where the timer's rate is not known.
const WAIT_TICKS: u64 = 250_000;
/// Shares of the entries from which on the other CPU takes them, and up to which it does not.
const TAKES: f64 = 0.5;
/// See [`TAKES`].
const LEAVES: f64 = 0.15;
/// Rounds through its pages that the other thread has to have made in the time that shots waited for it, on average.
const ROUNDS: f64 = 0.5;

/// Looks at some of the other CPUs.
pub(super) fn other_cpus(
    evictions: &mut EvictionBench<'_, '_, '_>,
    found: &mut Option<Vec<NeighbourCpu>>,
) -> Result<(), Halt> {
    let mut cpus = evictions.bench.metal().cpus();
    cpus.sort_by_key(|cpu: &OtherCpu| (cpu.sibling != Some(true), cpu.number));
    cpus.truncate(CPUS);
    let all = found.insert(Vec::new());
    all.extend(cpus.iter().map(|cpu| NeighbourCpu {
        cpu: cpu.number,
        sibling: cpu.sibling,
        takes: Finding::not_asked(),
        sharing: Finding::not_asked(),
    }));
    for neighbour in all.iter_mut() {
        evictions.bench.note(&format!("a thread on CPU {}", neighbour.cpu));
        let takes = neighbour_evictions(evictions, neighbour.cpu);
        // However that ended, the thread is to go.
        let gone = evictions.bench.metal().neighbour(None);
        neighbour.takes = match takes.and_then(|takes| Ok(gone.map(|()| takes)?)) {
            Err(Halt::Metal(error)) => Finding::not_determined(error.to_string()),
            other => other?,
        };
        let takes = neighbour.takes.value().is_some_and(|takes| takes.stlb);
        if takes || neighbour.sibling == Some(true) {
            neighbour.sharing = tlb_sharing::measure_sharing_beside(evictions, neighbour.cpu, None)?;
        }
    }
    Ok(())
}

fn neighbour_evictions(
    evictions: &mut EvictionBench<'_, '_, '_>,
    cpu: usize,
) -> Result<Finding<NeighbourEvictions>, Halt> {
    let ticks = evictions.bench.metal().ticks_per_second().map_or(WAIT_TICKS, |rate| (rate * WAIT_SECONDS) as u64);
    let wait = [Act::Wait(ticks)];
    let levels = evictions.picker.levels;
    let most_pages = 2 * (levels.first.entries + levels.last().entries) as usize;
    let pages = PAGES.min(levels.first.entries as usize / 2);
    let mut seen = Vec::new();
    let mut idle = false;
    let look = || -> Result<Option<NeighbourEvictions>, Halt> {
        // The control: the same thread on one page.
        let stays = NeighbourWalk { cpu, pages: 1, first: None, most_pages, all_lines: false };
        evictions.bench.metal().neighbour(Some(stays))?;
        let Some(still) = evictions.losses(&wait, pages, SAMPLES)? else { return Ok(None) };
        evictions.bench.metal().neighbour(Some(NeighbourWalk { pages: most_pages, ..stays }))?;
        let loads = evictions.bench.metal().neighbour_loads();
        let Some(flooded) = evictions.losses(&wait, pages, SAMPLES)? else { return Ok(None) };
        let loads = evictions.bench.metal().neighbour_loads().saturating_sub(loads);
        // Half of the shots wait, with and without the control.
        let waited = 4 * SAMPLES;
        idle = (loads as f64) < ROUNDS * (waited * most_pages) as f64;
        seen.push(format!(
            "of {} entries lost in {ticks} ticks, first and second level: {:.1} and {:.1} beside a thread on one \
             page, {:.1} and {:.1} beside one on {most_pages} pages ({loads} loads)",
            still.of, still.l1, still.stlb, flooded.l1, flooded.stlb
        ));
        let of = still.of as f64;
        let says = |more: f64| match more / of {
            share if share > TAKES => Some(true),
            share if share < LEAVES => Some(false),
            _ => None,
        };
        let (l1, stlb) = (says(flooded.l1 - still.l1), says(flooded.stlb - still.stlb));
        Ok(l1
            .zip(stlb)
            .map(|(l1, stlb)| NeighbourEvictions { l1, stlb })
            .filter(|takes| !idle || takes.l1 || takes.stlb))
    };
    Ok(match until_answers_agree(look, |a: &NeighbourEvictions, b| a == b)? {
        Ok((takes, _)) => Finding::confirmed(takes, seen),
        Err(_) if idle => Finding::not_determined(format!("a thread on CPU {cpu} hardly runs")).with_evidence(seen),
        Err(_) => Finding::not_determined("no two measurements agree").with_evidence(seen),
    })
}
