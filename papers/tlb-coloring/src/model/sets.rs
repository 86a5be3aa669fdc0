//! Sections 6.0.5 to 6.0.7: mappings a set, noisy sets, penalties.

use lookaside_harness::{ModelFindings, ModelResult, PaperCurve};
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::work::{Work, PAGE_BYTES};

use super::coloring_bench::{
    claim, free_ways, malloc, system_pages, task_set, value, ColoringBench, POOL, STORES_PER_MS,
};

/// Runs of Figure 6.1.
const RUNS: u64 = 5;
/// Layouts of the system's pages on which the method is tried, and how many pages each has.
const TRIED: [usize; 4] = [0, 8, 28, 60];

pub(super) fn run(lab: &ColoringBench, ran: &mut ModelFindings) -> ModelResult<()> {
    utilization(lab, ran);
    noisy(lab, ran)?;
    penalties(lab, ran)
}

/// Figure 6.1.
fn utilization(lab: &ColoringBench, ran: &mut ModelFindings) {
    let sets = lab.level.sets as usize;
    let count = |pages: &[u64]| {
        let mut counts = vec![0u32; sets];
        pages.iter().for_each(|page| counts[lab.level.set_of(page / PAGE_BYTES) as usize] += 1);
        counts
    };
    // Two pages of each colour for each of two tasks.
    let each = 2 * POOL / sets;
    let colored = count(&(0..lab.level.sets).flat_map(|color| lab.pages_of(color, 0, each)).collect::<Vec<_>>());
    let runs: Vec<Vec<u32>> = (1..=RUNS)
        .map(|seed| {
            let mut random = SplitMix64::new(seed);
            count(&[0, 1].map(|task| malloc(&mut random, task, POOL)).concat())
        })
        .collect();
    let by_set = |of: &dyn Fn(&[u32]) -> f64| -> Vec<f64> {
        (0..sets).map(|set| of(&runs.iter().map(|run| run[set]).collect::<Vec<_>>())).collect()
    };
    let most = by_set(&|counts| counts.iter().copied().max().map_or(0.0, f64::from));
    let average = by_set(&|counts| counts.iter().copied().map(f64::from).sum::<f64>() / RUNS as f64);
    let (low, high) = (average.iter().copied().fold(f64::MAX, f64::min), average.iter().copied().fold(0.0, f64::max));
    let why = "a pool of 32 chunks is 32 pages in a row, two a set, but where a chunk's header pushes one over a page's end; what else the \
               paper's tasks allocated is not published";
    ran.findings.extend([
        ("fig-6.1-tlb", value(colored.iter().copied().max().map_or(0.0, f64::from), format!("every set: {colored:?}"))),
        ("fig-6.1-most", value(most.iter().copied().fold(0.0, f64::max), why)),
        ("fig-6.1-five", value(most.iter().filter(|most| **most >= 5.0).count() as f64, why)),
        ("fig-6.1-low", value(low, why)),
        ("fig-6.1-high", value(high, why)),
    ]);
    let colored: Vec<f64> = colored.into_iter().map(f64::from).collect();
    for (name, counts) in [("malloc, most", most), ("malloc, average", average), ("tlb_malloc", colored)] {
        ran.series.push(PaperCurve {
            name: format!("Figure 6.1: {name}"),
            x: "set of the L1 DTLB".into(),
            y: "mappings".into(),
            points: (0..).map(f64::from).zip(counts).collect(),
            intervals: Vec::new(),
            labels: Vec::new(),
        });
    }
}

/// The method finds what is there.
fn noisy(lab: &ColoringBench, ran: &mut ModelFindings) -> ModelResult<()> {
    let (mut right, mut all, mut noisy) = (0, 0, 0);
    for (seed, pages) in (100..).zip(TRIED) {
        let noise = system_pages(&mut SplitMix64::new(seed), pages);
        for (color, found) in (0..).zip(free_ways(lab, &noise)?) {
            let there = noise.iter().filter(|page| lab.level.set_of(*page / PAGE_BYTES) == color).count() as u32;
            all += 1;
            noisy += u32::from(there > 0);
            right += u32::from(found == lab.level.ways.saturating_sub(there));
        }
    }
    ran.findings.push((
        "noisy",
        claim(
            right == all,
            format!("free ways found right in {right} of {all} sets, {noisy} of them noisy"),
            format!("{TRIED:?} random pages of the system"),
        ),
    ));
    Ok(())
}

/// Section 6.0.7.
fn penalties(lab: &ColoringBench, ran: &mut ModelFindings) -> ModelResult<()> {
    let set = task_set(&[("0ms", "2ms", "1ms", 5)])?;
    let first_job = |pages: &[u64]| -> ModelResult<_> {
        let run = lab.run(&set, 1, &[Work::stores(pages, STORES_PER_MS)], &[])?;
        let [warm_up, job] = run[..] else { return Err("a warm-up and a job were to run".into()) };
        Ok((warm_up, job))
    };
    let pages = lab.level.ways as usize + 1;
    let (_, missing) = first_job(&lab.pages_of(0, 0, pages))?;
    // The other loop of dual loop timing.
    let apart: Vec<u64> = (0..lab.level.sets).flat_map(|color| lab.pages_of(color, 0, 1)).collect();
    let (cold, _) = first_job(&apart)?;
    let (_, hitting) = first_job(&apart[..pages])?;
    let penalty = (missing.cycles - hitting.cycles) / missing.l1_misses.max(1) as f64;
    ran.findings.extend([
        ("l1-penalty", value(penalty, "")),
        (
            "l1-every",
            claim(
                missing.l1_misses == missing.accesses && hitting.l1_misses == 0,
                format!("{} misses in {} accesses", missing.l1_misses, missing.accesses),
                "",
            ),
        ),
        (
            "l2-penalty",
            value(
                cold.translation_cycles / cold.walks.max(1) as f64,
                "a walk through tables that no cache holds yet, on average over 16 pages; the paper's is of a first touch, and has the page fault \
                 in it, which the model does not",
            ),
        ),
    ]);
    Ok(())
}
