//! Tasks that are programs: Table 6.1 with Figures 6.9 to 6.12, Figures 6.13 and 6.14, and Figure A.11.

use lookaside_harness::{ModelFindings, ModelResult};
use lookaside_techniques::color::work::{Work, PAGE_BYTES};
use lookaside_workloads::{WorkloadSpec, WorkloadStream};

use super::coloring_bench::{average, claim, jobs, misses, round, task_set, value, ColoringBench};
use super::malloc_comparison::{first_bytes, AllocatorExperiment, AllocatorPair};
use crate::programs::task;

/// Accesses of a program to its heap in a millisecond: one in 20 cycles, a loop compiled without optimisation.
const ACCESSES_PER_MS: u64 = 100_000;
/// Runs.
const RUNS: usize = 5;

/// One task: what it runs; phase, period, execution; pages.
pub(crate) type ProgramTask = (&'static str, &'static str, &'static str, &'static str, usize);

/// An experiment, and its rows: of each task with `malloc`, then of all with `tlb_malloc`.
struct ProgramExperiment {
    name: &'static str,
    programs: &'static [ProgramTask],
    malloc: &'static [&'static str],
    tlb_malloc: &'static str,
}

const EXPERIMENTS: [ProgramExperiment; 5] = [
    ProgramExperiment {
        name: "Table 6.1, two tasks",
        programs: &[("statistics", "1ms", "2ms", "0.4ms", 16), ("bubble-sort", "0ms", "54ms", "27ms", 16)],
        malloc: &["table-6.1-2-t1", "table-6.1-2-t2"],
        tlb_malloc: "table-6.1-2-tlb",
    },
    ProgramExperiment {
        name: "Table 6.1, three tasks",
        programs: &[
            ("statistics", "3ms", "2ms", "0.4ms", 4),
            ("nth-largest", "2ms", "3ms", "0.9ms", 7),
            ("bubble-sort", "0ms", "15ms", "3.2ms", 2),
        ],
        malloc: &["table-6.1-3-t1", "table-6.1-3-t2", "table-6.1-3-t3"],
        tlb_malloc: "table-6.1-3-tlb",
    },
    ProgramExperiment {
        name: "Table 6.1, four tasks",
        programs: &[
            ("statistics", "3ms", "2ms", "0.2ms", 2),
            ("nth-largest", "2ms", "3ms", "0.6ms", 2),
            ("insertion-sort", "1ms", "5ms", "1.1ms", 1),
            ("bubble-sort", "0ms", "15ms", "3.2ms", 2),
        ],
        malloc: &["table-6.1-4-t1", "table-6.1-4-t2", "table-6.1-4-t3", "table-6.1-4-t4"],
        tlb_malloc: "table-6.1-4-tlb",
    },
    ProgramExperiment {
        name: "Figure 6.13",
        programs: &[("fft", "1ms", "4ms", "2ms", 10), ("adpcm", "0ms", "20ms", "4.6ms", 10)],
        malloc: &["fig-6.13-t1", "fig-6.13-t2"],
        tlb_malloc: "fig-6.13-tlb",
    },
    ProgramExperiment {
        name: "Figure 6.14",
        programs: &[("fir", "1ms", "7ms", "2.5ms", 9), ("adpcm", "0ms", "14ms", "5.3ms", 3)],
        malloc: &["fig-6.14-t1", "fig-6.14-t2"],
        tlb_malloc: "fig-6.14-tlb",
    },
];

/// Table 6.1: two, three and four tasks.
pub(crate) fn table_6_1() -> [&'static [ProgramTask]; 3] {
    [0, 1, 2].map(|number: usize| EXPERIMENTS[number].programs)
}

/// Figures 6.13 and 6.14.
pub(crate) fn figures_6_13_and_14() -> [&'static [ProgramTask]; 2] {
    [3, 4].map(|number: usize| EXPERIMENTS[number].programs)
}

/// Figure A.11.
const FIGURE_A_11: [ProgramTask; 2] =
    [("statistics", "1ms", "2ms", "0.45ms", 14), ("bubble-sort", "0ms", "54ms", "20ms", 14)];

pub(super) fn run(
    lab: &ColoringBench,
    hyperperiods: u64,
    ran: &mut ModelFindings,
    progress: &mut dyn FnMut(&str),
) -> ModelResult<()> {
    for experiment in &EXPERIMENTS {
        progress(experiment.name);
        let all = versus(lab, experiment.programs, (RUNS, hyperperiods), false)?;
        for (task, (id, program)) in experiment.malloc.iter().zip(experiment.programs).enumerate() {
            let most = all.most_misses(task, program.4);
            let note = format!(
                "{} on {} pages, {} if each missed once in each slice; what else the paper counted of its tasks (stacks, globals, libraries) is not known",
                program.0,
                program.4,
                round(most)
            );
            ran.findings.push((*id, average(&misses(&all.malloc, task, 1..=u64::MAX), &note)));
        }
        let colored: f64 = (0..experiment.programs.len()).map(|task| all.colored_misses(task)).sum();
        ran.findings.push((experiment.tlb_malloc, value(colored, "in all jobs of all runs: no deviation")));
    }
    progress("Figure A.11");
    let all = versus(lab, &FIGURE_A_11, (1, hyperperiods), true)?;
    let spread = |runs: &[Vec<_>]| {
        // In the first hyperperiod, of 27 jobs, caches still warm up.
        let all = runs.iter().flat_map(|run| jobs(run, 0, 28..=u64::MAX)).map(|job| job.cycles);
        let (least, most) = all.fold((f64::INFINITY, 0.0), |(least, most), x| (x.min(least), x.max(most)));
        round(most - least)
    };
    let (malloc, colored) = (spread(&all.malloc), spread(&all.colored));
    ran.findings.push((
        "a.11",
        claim(
            malloc > 0.0 && colored > 0.0,
            format!("cycles of T1's jobs differ by up to {malloc} with malloc, {colored} with tlb_malloc"),
            "a run, from the second hyperperiod on; with tlb_malloc it is data caches alone: no job misses the L1 DTLB",
        ),
    ));
    let all: Vec<String> = EXPERIMENTS
        .iter()
        .map(|experiment| {
            let of: Vec<_> =
                experiment.programs.iter().map(|program| format!("{} ({})", program.0, program.4)).collect();
            format!("{}: {}", experiment.name, of.join(", "))
        })
        .collect();
    ran.assumptions.push(format!(
        "programs are Lookaside's own; which task runs which, and how many of Figures 6.13's and 6.14's pages are whose, is assumed: {}. Their pages are random \
         ones of those allocated, as in section 6.0.8. A job begins on unsorted data, and does as much as its time holds",
        all.join("; ")
    ));
    Ok(())
}

/// Programs with the pages of each allocator.
fn versus(
    lab: &ColoringBench,
    programs: &[ProgramTask],
    (runs, hyperperiods): (usize, u64),
    with_cycles: bool,
) -> ModelResult<AllocatorPair> {
    let tasks: Vec<_> =
        programs.iter().map(|(_, phase, period, execution, pages)| (*phase, *period, *execution, *pages)).collect();
    let set = task_set(&tasks)?;
    let mut recorded = Vec::new();
    for ((name, .., pages), task) in programs.iter().zip(&set.tasks) {
        recorded.push(record(name, *pages, task.execution.nanos)?);
    }
    let work = |task: usize, pages: &[u64]| Ok(recorded[task].placed(pages)?);
    // "In an experiment of j tasks, each task allocates 64 / j pages."
    let pool = 64usize.div_ceil(programs.len());
    let system = &first_bytes;
    AllocatorExperiment { set, hyperperiods, runs, pool, work: &work, system, with_cycles }.run(lab)
}

/// What a job of a program does in its time.
fn record(name: &str, pages: usize, execution_ns: u64) -> ModelResult<Work> {
    let workload = task(name, &WorkloadSpec::new(pages as u64 * PAGE_BYTES))?;
    let accesses = execution_ns * ACCESSES_PER_MS / 1_000_000; // ns in a ms
    let work = Work::record(&mut WorkloadStream::new(workload), accesses, ACCESSES_PER_MS)?;
    if work.pages().len() == pages {
        Ok(work)
    } else {
        Err(format!("{name}: a job touches {} of its {pages} pages", work.pages().len()).into())
    }
}
