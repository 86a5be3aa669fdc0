//! Chooses the windows of code to put on huge pages.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use lookaside_engine::{Filter, Setup};
use lookaside_trace::{Block, Source, TraceInfo};

use super::bench::HugePageBench;
use super::code_plan::{CodePlan, HotCode, PlannedCodeWindow, PlannedKind};
use super::code_profile::CodeProfile;
use super::cost::{collapse_cycles, PAGES};
use super::plan::Effect;
use super::planner::approximate;
use super::select::{gain, CandidateWindow, ChosenWindow};
use super::{Window, WINDOW_BYTES};
use crate::names::Namer;
use crate::plan::{Coverage, PlanError, Planner};
use crate::remedies;

/// Bytes of the parts that a window's cycles are told by.
const PART_BYTES: u64 = 64 << 10;

/// Plans code on huge pages. A copy is priced as a collapse of a window that is all there: both copy 2 MiB into a huge
/// page that was zeroed.
#[derive(Clone, Debug, PartialEq)]
pub struct CodePlanner {
    setup: Setup,
    budget: u32,
}

impl CodePlanner {
    /// Plans `budget` huge pages at the most, for a machine with base pages.
    ///
    /// # Errors
    /// The machine's page tables have no 2 MiB pages over 4 KiB ones.
    pub fn new(setup: Setup, budget: u32) -> Result<Self, PlanError> {
        super::check(&setup.machine)?;
        Ok(Self { setup, budget })
    }
}

impl Planner for CodePlanner {
    type Profile = CodeProfile;
    type Plan = CodePlan;

    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn filter(&self) -> Filter {
        remedies::filter(&self.setup)
    }

    fn remarks(&self, info: &TraceInfo) -> Vec<String> {
        approximate(&self.setup, info)
    }

    fn profile(&self, source: &mut dyn Source, watch: &mut dyn FnMut(&Block)) -> Result<CodeProfile, PlanError> {
        CodeProfile::record(source, &self.setup, watch)
    }

    fn coverage(profile: &mut CodeProfile) -> &mut Coverage {
        &mut profile.coverage
    }

    fn plan(
        &self,
        profile: &CodeProfile,
        command: Vec<String>,
        _: &dyn Namer,
        stop: &AtomicBool,
    ) -> Result<CodePlan, PlanError> {
        let base = &self.setup;
        let base_cycles = profile.outcome.translation_cycles();
        let copy_cycles = collapse_cycles(PAGES, base.machine.clock_mhz);
        let mut bench = HugePageBench::of_code(base, &profile.blocks, base_cycles, stop)?;
        let most = self.budget as usize;
        let mut tried: Vec<CandidateWindow> = profile
            .windows
            .iter()
            .filter(|counts| counts.cycles > 0.0)
            .map(|counts| CandidateWindow {
                window: counts.window,
                cycles: counts.cycles,
                collapse_cycles: copy_cycles,
            })
            .collect();
        tried.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.window.cmp(&b.window)));
        tried.truncate(most.saturating_mul(2).saturating_add(24));
        let (chosen, paying) = gain(&mut bench, &tried, most)?;
        let order: Vec<Window> = chosen.iter().map(|chosen| chosen.window).collect();
        let mut effect = |windows: &[Window]| -> Result<Effect, PlanError> {
            let translation_cycles = bench.cycles(windows)?;
            Ok(Effect {
                windows: windows.len() as u32,
                translation_cycles,
                saved_cycles: base_cycles - translation_cycles,
                collapse_cycles: windows.len() as f64 * copy_cycles,
                bloat_bytes: windows.len() as u64 * WINDOW_BYTES,
            })
        };
        let mut sizes: Vec<usize> = (0..32).map(|i| 1 << i).filter(|&n| n < order.len()).collect();
        sizes.extend([0, paying, order.len()]);
        sizes.sort_unstable();
        sizes.dedup();
        let planned = effect(&order[..paying])?;
        let mut curve = sizes.iter().map(|&n| effect(&order[..n])).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<Window> = profile.windows.iter().map(|counts| counts.window).collect();
        if all.len() != order.len() {
            curve.push(effect(&all)?);
        }
        let mut windows: Vec<PlannedCodeWindow> =
            chosen.iter().filter_map(|chosen| planned_window(profile, chosen, copy_cycles)).collect();
        let later = windows.split_off(paying.min(windows.len()));
        Ok(CodePlan {
            plan: PlannedKind::Code,
            machine: base.machine.name.clone(),
            clock_mhz: base.machine.clock_mhz,
            page_bytes: WINDOW_BYTES,
            budget: self.budget,
            command,
            fetches: profile.outcome.fetch.accesses,
            tried_share: profile.tried_share,
            seed: base.seed,
            candidates: tried.len() as u32,
            model_runs: bench.runs(),
            modelled_cycles: profile.outcome.modelled_cycles(),
            base_cycles,
            window_cycles: profile.window_cycles,
            edge_cycles: profile.edge_cycles,
            remarks: profile.coverage.remarks.clone(),
            planned,
            windows,
            later,
            curve,
        })
    }
}

fn planned_window(profile: &CodeProfile, chosen: &ChosenWindow, copy_cycles: f64) -> Option<PlannedCodeWindow> {
    let window = chosen.window;
    let mapping = profile.mappings.find(window.process, window.addr)?;
    let counts = profile.windows.iter().find(|counts| counts.window == window)?;
    let mut parts: BTreeMap<u64, f64> = BTreeMap::new();
    for &(process, addr, cycles) in &profile.pages {
        if Window::of(process, addr) == window && cycles > 0.0 {
            *parts.entry((addr - window.addr) / PART_BYTES).or_default() += cycles;
        }
    }
    let offset = mapping.file_offset(window.addr);
    let hot = parts.into_iter().map(|(part, cycles)| HotCode {
        offset: offset + part * PART_BYTES,
        bytes: PART_BYTES,
        cycles,
    });
    Some(PlannedCodeWindow {
        process: window.process,
        path: mapping.path.clone(),
        offset,
        address: window.addr,
        accesses: counts.accesses,
        walks: counts.walks,
        saved_cycles: chosen.saved_cycles,
        copy_cycles,
        break_even_runs: copy_cycles / chosen.saved_cycles,
        hot: hot.collect(),
    })
}
