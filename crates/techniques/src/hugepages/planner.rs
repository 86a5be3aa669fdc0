//! Chooses the windows to make huge.

use std::sync::atomic::AtomicBool;

use lookaside_engine::{Filter, PagePolicy, Setup};
use lookaside_trace::{Block, Source, TraceInfo};

use super::bench::HugePageBench;
use super::cost::{bloat_bytes, collapse_cycles, PAGES};
use super::plan::{Effect, HugeChoice, HugePlan, PlannedWindow, WindowRegion};
use super::profile::{HugeProfile, Reach, WindowCounts};
use super::regions::{KnownRegions, WindowLocation};
use super::select::{candidates, gain, ranked, ChosenWindow, WindowSelector};
use super::{Window, BASE_BYTES, WINDOW_BYTES};
use crate::lock::maps::{ListedMapping, Maps};
use crate::lock::planner::allocation;
use crate::names::{mapping_name, Namer};
use crate::plan::{Coverage, PlanError, Planner};
use crate::remedies;

/// Plans huge pages.
#[derive(Clone, Debug, PartialEq)]
pub struct HugePlanner {
    setup: Setup,
    budget: u32,
}

impl HugePlanner {
    /// Plans `budget` huge pages at the most, for a machine with base pages.
    ///
    /// # Errors
    /// The machine's page tables have no 2 MiB pages over 4 KiB ones.
    pub fn new(setup: Setup, budget: u32) -> Result<Self, PlanError> {
        super::check(&setup.machine)?;
        Ok(Self { setup, budget })
    }
}

impl Planner for HugePlanner {
    type Profile = HugeProfile;
    type Plan = HugePlan;

    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn filter(&self) -> Filter {
        remedies::filter(&self.setup)
    }

    /// Where huge pages would have told apart accesses that the recorder left out.
    fn remarks(&self, info: &TraceInfo) -> Vec<String> {
        approximate(&self.setup, info)
    }

    fn profile(&self, source: &mut dyn Source, watch: &mut dyn FnMut(&Block)) -> Result<HugeProfile, PlanError> {
        HugeProfile::record(source, &self.setup, watch)
    }

    fn coverage(profile: &mut HugeProfile) -> &mut Coverage {
        &mut profile.coverage
    }

    fn plan(
        &self,
        profile: &HugeProfile,
        command: Vec<String>,
        namer: &dyn Namer,
        stop: &AtomicBool,
    ) -> Result<HugePlan, PlanError> {
        let (base, budget) = (&self.setup, self.budget);
        let clock_mhz = base.machine.clock_mhz;
        let base_cycles = profile.outcome.translation_cycles();
        let mut bench = HugePageBench::new(base, &profile.blocks, base_cycles, stop)?;
        let most = budget as usize;
        let tried = candidates(&profile.windows, most, clock_mhz);
        let (chosen, paying) = gain(&mut bench, &tried, most)?;
        let order: Vec<Window> = chosen.iter().map(|chosen| chosen.window).collect();
        let accesses = ranked(&profile.windows, |counts| counts.accesses, most);
        let walks = ranked(&profile.windows, |counts| counts.walks, most);
        let all: Vec<Window> = profile.windows.iter().map(|counts| counts.window).collect();
        let mut sizes: Vec<usize> = (0..32).map(|i| 1 << i).filter(|&n| n < order.len()).collect();
        sizes.extend([0, paying, order.len()]);
        sizes.sort_unstable();
        sizes.dedup();
        let mut effects = PlanEffects { bench: &mut bench, profile, clock_mhz, base_cycles };
        let choices =
            [(WindowSelector::Accesses, &accesses), (WindowSelector::Walks, &walks), (WindowSelector::Gain, &order)];
        let choices = choices.map(|(selector, windows)| Ok(HugeChoice { selector, effect: effects.of(windows)? }));
        let choices = choices.into_iter().collect::<Result<Vec<_>, PlanError>>()?;
        let planned = effects.of(&order[..paying])?;
        let mut curve = sizes.iter().map(|&n| effects.of(&order[..n])).collect::<Result<Vec<_>, _>>()?;
        // The last point is huge pages everywhere.
        curve.push(effects.of(&all)?);
        let names = WindowNames { profile, namer, clock_mhz };
        let mut windows: Vec<PlannedWindow> = chosen.iter().map(|chosen| names.window(chosen)).collect();
        let later = windows.split_off(paying);
        let Reach { window_cycles, file_cycles, other_cycles } = profile.reach;
        Ok(HugePlan {
            machine: base.machine.name.clone(),
            clock_mhz,
            page_bytes: WINDOW_BYTES,
            budget,
            command,
            accesses: profile.outcome.data.accesses + profile.outcome.fetch.accesses,
            tried_share: profile.tried_share,
            seed: base.seed,
            candidates: tried.len() as u32,
            model_runs: bench.runs(),
            modelled_cycles: profile.outcome.modelled_cycles(),
            base_cycles,
            window_cycles,
            file_cycles,
            other_cycles,
            remarks: profile.coverage.remarks.clone(),
            planned,
            windows,
            later,
            choices,
            curve,
        })
    }
}

/// Says so where huge pages would have told apart accesses that the recorder left out.
pub(super) fn approximate(setup: &Setup, info: &TraceInfo) -> Vec<String> {
    let mut huge = setup.clone();
    huge.os.pages = PagePolicy::Thp;
    let exact = |setup: &Setup| Filter::check(info, setup).is_ok();
    if !exact(setup) || exact(&huge) {
        return Vec::new();
    }
    vec!["savings are approximate: the recorder left out accesses that hit with base pages, and huge pages may \
        use other sets (--granularity line, in a trace of lookaside record, has it exact)"
        .into()]
}

/// The counts of a window; `None` = it was never touched.
fn counts(profile: &HugeProfile, window: Window) -> Option<&WindowCounts> {
    let at = profile.windows.binary_search_by_key(&window, |counts| counts.window).ok()?;
    profile.windows.get(at)
}

/// Whence effects are known.
struct PlanEffects<'a, 'b> {
    bench: &'a mut HugePageBench<'b>,
    profile: &'a HugeProfile,
    clock_mhz: f64,
    base_cycles: f64,
}

impl PlanEffects<'_, '_> {
    fn of(&mut self, windows: &[Window]) -> Result<Effect, PlanError> {
        let translation_cycles = self.bench.cycles(windows)?;
        let touched = |window: &Window| counts(self.profile, *window).map_or(0, |counts| counts.touched_pages);
        let costs = windows.iter().map(|window| collapse_cycles(touched(window), self.clock_mhz));
        Ok(Effect {
            windows: windows.len() as u32,
            translation_cycles,
            saved_cycles: self.base_cycles - translation_cycles,
            // The sum of none is -0.
            collapse_cycles: costs.fold(0.0, |sum, cost| sum + cost),
            bloat_bytes: windows.iter().map(|window| bloat_bytes(touched(window))).sum(),
        })
    }
}

/// Whence windows get their names.
struct WindowNames<'a> {
    profile: &'a HugeProfile,
    namer: &'a dyn Namer,
    clock_mhz: f64,
}

impl WindowNames<'_> {
    fn window(&self, chosen: &ChosenWindow) -> PlannedWindow {
        let window = chosen.window;
        let (accesses, walks, touched) =
            counts(self.profile, window).map_or((0, 0, 0), |of| (of.accesses, of.walks, of.touched_pages.min(PAGES)));
        let collapse_cycles = collapse_cycles(touched, self.clock_mhz);
        let range = window.addr..window.addr.saturating_add(WINDOW_BYTES);
        PlannedWindow {
            process: window.process,
            address: window.addr,
            bytes: WINDOW_BYTES,
            symbol: allocation(&self.profile.outcome, self.namer, window.process, range),
            accesses,
            walks,
            touched_bytes: touched * BASE_BYTES,
            saved_cycles: chosen.saved_cycles,
            collapse_cycles,
            break_even_runs: collapse_cycles / chosen.saved_cycles,
            bloat_bytes: bloat_bytes(touched),
            not_native: None,
            region: self.region(window),
            native: None,
        }
    }

    fn region(&self, window: Window) -> Option<WindowRegion> {
        window_region(&self.profile.regions, &self.profile.maps, self.namer, window)
    }
}

/// Where a window lies, so that it can be found in another run; `None` = in no region that is known.
pub(super) fn window_region(
    regions: &KnownRegions,
    maps: &Maps,
    namer: &dyn Namer,
    window: Window,
) -> Option<WindowRegion> {
    let process = window.process;
    let WindowLocation::In(region) = regions.find(window) else { return None };
    let (nth, equals) = regions.among_equals(process, &region);
    let made = maps.find(process, window.addr);
    let name = mapping_name(process, &region.source, made.map_or(&[], |made| maps.site(process, made)), namer);
    let site = made.map_or(0, |made| made.site);
    let mapping =
        ListedMapping { start: region.start, end: region.end, prot: region.prot, source: region.source, site };
    Some(WindowRegion { name, offset_bytes: window.addr - mapping.start, nth, equals, mapping })
}
