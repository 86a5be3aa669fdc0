//! One pass over a source: what translation costs in the windows of code, and accesses to try huge pages on.

use std::collections::BTreeMap;

use lookaside_engine::{Detail, Engine, Outcome, Setup};
use lookaside_trace::{Block, Source};

use super::code_mappings::CodeMappings;
use super::profile::{check_source, tried_remarks, WindowCounts};
use super::Window;
use crate::plan::{Coverage, PlanError};
use crate::sampled_accesses::SampledAccesses;

/// What planning needs to know of a program's code.
#[derive(Debug)]
pub struct CodeProfile {
    /// Whole windows of code that were touched, ascending.
    pub windows: Vec<WindowCounts>,
    /// Translation cycles of these.
    pub window_cycles: f64,
    /// Translation cycles of code outside whole windows.
    pub edge_cycles: f64,
    /// Pages of code in whole windows: process, address, translation cycles.
    pub pages: Vec<(u32, u64, f64)>,
    /// Where the code lies.
    pub mappings: CodeMappings,
    /// The model run that these counts are of: all of the trace, base pages.
    pub outcome: Outcome,
    /// What huge pages are tried on: all accesses, or those in windows spread over the run.
    pub blocks: Vec<Block>,
    /// Of the recorded accesses, the share in `blocks`; 1 = all.
    pub tried_share: f64,
    /// How much of the source was read.
    pub coverage: Coverage,
}

impl CodeProfile {
    /// Pulls a source to its end; `watch` sees each block first.
    ///
    /// # Errors
    /// As [`super::profile::HugeProfile::record`]; a source without fetches of instructions.
    pub fn record(source: &mut dyn Source, base: &Setup, watch: &mut dyn FnMut(&Block)) -> Result<Self, PlanError> {
        check_source(source, base)?;
        let mut engine = Engine::new(Setup { detail: Detail::Rows, ..base.clone() })?;
        let mut mappings = CodeMappings::default();
        let tried = SampledAccesses::pull(source, &mut |block| {
            watch(block);
            mappings.run(block);
            engine.run(block);
        })?;
        let remarks = tried_remarks(&tried);
        let outcome = engine.outcome();
        if outcome.fetch.accesses == 0 {
            let why = "the trace has no fetches of instructions, so nothing is known of code; record it with lookaside record";
            return Err(PlanError::Impossible(why.into()));
        }
        let tried_share = tried.share();
        let SampledAccesses { blocks, error, .. } = tried;
        let coverage = Coverage { remarks, damage: source.damage().to_vec(), error };
        let counted = CountedCode::of(&outcome, &mappings);
        Ok(Self {
            windows: counted.windows.into_values().collect(),
            window_cycles: counted.window_cycles,
            edge_cycles: counted.edge_cycles,
            pages: counted.pages,
            mappings,
            outcome,
            blocks,
            tried_share,
            coverage,
        })
    }
}

/// What lies in whole windows of code, and what beside them.
#[derive(Default)]
struct CountedCode {
    windows: BTreeMap<Window, WindowCounts>,
    pages: Vec<(u32, u64, f64)>,
    window_cycles: f64,
    edge_cycles: f64,
}

impl CountedCode {
    fn of(outcome: &Outcome, mappings: &CodeMappings) -> Self {
        let mut counted = Self::default();
        for page in &outcome.pages {
            let Some(mapping) = mappings.find(page.process, page.addr) else { continue };
            let window = Window::of(page.process, page.addr);
            let cycles = page.cost.cycles();
            if !mapping.holds(window) {
                counted.edge_cycles += cycles;
                continue;
            }
            counted.window_cycles += cycles;
            counted.pages.push((page.process, page.addr, cycles));
            let none = WindowCounts { window, accesses: 0, walks: 0, cycles: 0.0, touched_pages: 0 };
            let counts = counted.windows.entry(window).or_insert(none);
            counts.accesses += page.accesses;
            counts.walks += page.cost.walks;
            counts.cycles += cycles;
            counts.touched_pages += 1;
        }
        counted
    }
}
