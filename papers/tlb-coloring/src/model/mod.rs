//! TLB coloring (Panchamukhi 2014) on preset `xeon-e5-2650`: real-time tasks with coloured pages and with `malloc`'s.

mod coloring_bench;
mod kernels;
mod malloc_comparison;
mod same_set;
mod sets;

use lookaside_harness::{Effort, ModelFindings, RunModel};

pub(crate) use coloring_bench::task_set;
use coloring_bench::ColoringBench;
pub(crate) use kernels::{figures_6_13_and_14, table_6_1, ProgramTask};
pub(crate) use malloc_comparison::FOURTEEN_PAGES;

/// All of them, in the paper's order.
pub(crate) const RUN: RunModel = |effort, progress| {
    // Runs, and hyperperiods of programs: the paper's, or the fewest that say anything.
    let (runs, hyperperiods) = match effort {
        Effort::Usual => (10, 5),
        Effort::Quick => (2, 2),
    };
    progress("free ways beside the system's pages");
    let lab = ColoringBench::new(runs)?;
    let mut ran = ModelFindings {
        machine: lab.machine().to_string(),
        assumptions: lab.assumptions(),
        findings: Vec::new(),
        series: Vec::new(),
    };
    progress("sets and penalties");
    sets::run(&lab, &mut ran)?;
    progress("same set and different sets");
    same_set::run(&lab, &mut ran)?;
    progress("malloc against tlb_malloc");
    malloc_comparison::run(&lab, &mut ran)?;
    kernels::run(&lab, hyperperiods, &mut ran, progress)?;
    Ok(ran)
};
