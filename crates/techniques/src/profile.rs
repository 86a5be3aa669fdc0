//! From a source of blocks to what translation costs: the model runs **while** blocks arrive, and
//! what it needs for the "what would help" rows is kept aside, compressed, on disk.
//!
//! Three threads: the caller's pulls blocks; one runs the engine; one keeps curve, heat and spool.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{bounded, Receiver, Sender};
use lookaside_engine::{curve::CurveBuilder, Engine, Filter, Outcome, RegionRow, RunEnd, Setup};
use lookaside_machine::{Machine, PageSize, Serves, Tlb};
use lookaside_timing::{CodePlace, RunVisits, SiteCounts};
use lookaside_trace::{Block, Damage, Source, TraceError, TraceInfo};
use thiserror::Error;

use crate::bake::TargetFinder;
use crate::cost_curve::CostCurve;
use crate::heat::HeatBuilder;
use crate::remedies::{baked, compare, rank, variants, RemedyContext, RemedyVariant, RerunScope};
use crate::rerun::{rerun, rerun_baked, window_plan, HelperHours, Rerun, StretchCounts};
use crate::spool::Spool;
use crate::visits::{cut_windows, visits_of, window_places, HugeWindows};
use crate::waits::WaitingShares;
use crate::window_plan::WindowPlan;
use crate::{HeatMap, MissCurve, Namer, Remedy};

/// Blocks under way between two threads.
const BLOCKS_IN_FLIGHT: usize = 16;

/// What one pass over a source gives.
pub struct Profile {
    /// Counts of the base run.
    pub outcome: Outcome,
    /// Misses over TLB size.
    pub curve: MissCurve,
    /// Accesses over time and address, still unnamed.
    heat: HeatBuilder,
    /// How translation's costs add up over the page visits, and over the recorded accesses.
    costs: CostCurve,
    access_costs: CostCurve,
    /// Small pages that the first TLB level holds.
    first_level: usize,
    /// Which instructions' visits wait for others.
    waits: WaitingShares,
    /// What a helper would bake.
    targets: TargetFinder,
    spool: Spool,
    /// Parts of the input that could not be read.
    pub damage: Vec<Damage>,
    /// The source ended with this error; what came before it counts.
    pub error: Option<TraceError>,
}

/// What a run's timing is made from.
pub struct ProfiledVisits {
    /// All accesses that miss the first TLB level.
    pub total: u64,
    /// Those of each instruction, and what their translation costs in the model.
    pub sites: BTreeMap<CodePlace, SiteCounts>,
    /// Of all, as many as wait for another by where their addresses come from; `None` = the recorder doesn't tell.
    pub waiting: Option<f64>,
    /// What is replayed of them.
    pub run: RunVisits,
    /// Small pages touched of memory that huge pages could hold.
    pub small_pages: u64,
    /// Huge pages that would hold them.
    pub huge_pages: u64,
    /// Small pages that huge pages could hold too, but are not asked for.
    pub unasked_pages: u64,
}

/// Why a profile could not be made.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The setup can't be run.
    #[error(transparent)]
    Setup(#[from] lookaside_engine::SetupError),
    /// The spool can't be made.
    #[error("temporary file for the model's further runs: {0}; set TMPDIR to a folder with room")]
    Spool(#[from] io::Error),
}

/// What would help: which rows are wanted, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedRemedies {
    /// Also what only other hardware could do.
    pub what_if: bool,
    /// Over the whole run in any case: a long one is looked at in windows otherwise.
    pub exact: bool,
    /// Of where these windows lie.
    pub seed: u64,
}

/// What is called on every block before the model sees it (naming, progress).
pub type Watcher<'a> = dyn FnMut(&Block) + 'a;

impl Profile {
    /// Pulls the source to its end through the base model.
    ///
    /// # Errors
    /// A setup that can't be run, a temporary file that can't be made. An error of the *source* is
    /// kept in the profile: what was seen before it counts.
    pub fn record(source: &mut dyn Source, base: &Setup, watch: &mut Watcher) -> Result<Self, ProfileError> {
        let mut engine = Engine::new(base.clone())?;
        let first_level = first_level_entries(&base.machine);
        let mut aside = Aside::new(source.info())?;
        let mut error = None;
        let ((engine, costs, access_costs), aside) = thread::scope(|scope| {
            let (to_engine, engine_blocks) = bounded::<Arc<Block>>(BLOCKS_IN_FLIGHT);
            let (to_aside, aside_blocks) = bounded::<Arc<Block>>(BLOCKS_IN_FLIGHT);
            let (give_back, returned) = bounded::<Block>(4 * BLOCKS_IN_FLIGHT);
            let give_back_too = give_back.clone();
            let run_engine = scope.spawn(move || {
                let (mut visits, mut costs) = (0, CostCurve::default());
                let (mut accesses, mut access_costs) = (0, CostCurve::default());
                consume(&engine_blocks, &give_back, |block| {
                    engine.run(block);
                    visits += visits_of(block).count() as u64;
                    let cycles = engine.clock().translation_cycles;
                    costs.push(visits, cycles);
                    accesses += block.len() as u64;
                    access_costs.push(accesses, cycles);
                });
                (engine, costs, access_costs)
            });
            let run_aside = scope.spawn(move || {
                consume(&aside_blocks, &give_back_too, |block| aside.run(block));
                aside
            });
            loop {
                let mut block = returned.try_recv().unwrap_or_default();
                match source.next_block(&mut block) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) => {
                        error = Some(e);
                        break;
                    }
                }
                watch(&block);
                let block = Arc::new(block);
                // A worker that is gone has panicked; joining it below hands that on.
                if to_engine.send(Arc::clone(&block)).is_err() || to_aside.send(block).is_err() {
                    break;
                }
            }
            drop((to_engine, to_aside));
            (join(run_engine), join(run_aside))
        });
        let Aside { curve, heat, waits, targets, spool } = aside;
        Ok(Self {
            outcome: engine.outcome(),
            curve: curve.finish(),
            heat,
            costs,
            access_costs,
            first_level,
            waits,
            targets,
            spool,
            damage: source.damage().to_vec(),
            error,
        })
    }

    /// The heat map, bands named by the mapping that they begin in.
    pub fn take_heat(&mut self, namer: &dyn Namer) -> HeatMap {
        let regions = &self.outcome.regions;
        std::mem::take(&mut self.heat).finish(|process, addr| {
            let inside = regions.iter().find(|r| r.process == process && (r.start..r.end).contains(&addr));
            inside.map(|r| crate::names::region_name(r, namer)).unwrap_or_default()
        })
    }

    /// What the timing needs: visits by instruction, and windows of them to be replayed. `place` names an instruction
    /// as every run of the program does; `asked` says for which mappings huge pages are asked.
    ///
    /// # Errors
    /// A temporary file that can't be read back.
    pub fn visits(
        &mut self,
        place: &dyn Fn(u32, u64) -> CodePlace,
        asked: &dyn Fn(&RegionRow) -> bool,
    ) -> Result<ProfiledVisits, ProfileError> {
        let huge = HugeWindows::new(&self.outcome.regions, asked);
        let places = window_places(&self.costs, self.outcome.data.cost.l1_misses);
        self.spool.finish();
        let mut reader = self.spool.open()?;
        let run = cut_windows(&mut reader, &places, &huge, self.first_level)
            .map_err(|e| ProfileError::Spool(io::Error::other(e)))?;
        let mut sites: BTreeMap<CodePlace, SiteCounts> = BTreeMap::new();
        for row in &self.outcome.instructions_rows {
            let site = sites.entry(place(row.process, row.ip)).or_default();
            site.visits += row.cost.l1_misses;
            site.waiting_visits += self.waits.share(row.process, row.ip) * row.cost.l1_misses as f64;
            site.translation_cycles += row.cost.cycles();
        }
        let total = sites.values().map(|site| site.visits).sum();
        let waiting = self.waits.are_told().then(|| sites.values().map(|site| site.waiting_visits).sum());
        let (small_pages, huge_pages) = huge.touched(&self.outcome);
        let (all_pages, _) = HugeWindows::new(&self.outcome.regions, &|_| true).touched(&self.outcome);
        let unasked_pages = all_pages.saturating_sub(small_pages);
        Ok(ProfiledVisits { total, sites, waiting, run, small_pages, huge_pages, unasked_pages })
    }

    /// Runs the model again for everything that is wanted; best first. Notes say what was left out. Empty when `stop` is set
    /// while it runs.
    ///
    /// # Errors
    /// A temporary file that can't be read back.
    pub fn remedies(
        &mut self,
        base: &Setup,
        (namer, wanted): (&dyn Namer, WantedRemedies),
        stop: &AtomicBool,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Remedy>, ProfileError> {
        let tried = variants(base, RemedyContext { outcome: &self.outcome, namer, what_if: wanted.what_if });
        if tried.is_empty() || self.outcome.translation_cycles() == 0.0 {
            return Ok(Vec::new());
        }
        let (spooled, error) = self.spool.finish();
        notes.extend(error.map(|e| format!("\"what would help\" covers the first part of the run only: {e}")));
        let reader = self.spool.open()?;
        let info = reader.info().clone();
        let setups: Vec<Setup> = [base].into_iter().chain(tried.iter().map(|v| &v.setup)).cloned().collect();
        let plan =
            window_plan(&setups, &info, (&self.access_costs.until(spooled), wanted.seed), self.outcome.table_bytes)
                .filter(|_| !wanted.exact);
        let uses = self.spool.uses_before();
        if let (Some(_), Err(e)) = (&plan, &uses) {
            notes.push(format!(
                "\"what would help\": windows begin without the pages that were used before them: temporary file: {e}"
            ));
        }
        let ran = rerun(setups, reader, (plan.clone(), uses.ok()), stop)?;
        match &ran.end {
            RunEnd::Complete => {}
            RunEnd::Stopped => {
                notes.push("\"what would help\" was cut short: it covers the first part of the run".into())
            }
            RunEnd::Unreadable(e) => {
                notes.push(format!("\"what would help\" covers the first part of the run only: {e}"))
            }
        }
        // What was not spooled is in the base run's counts alone.
        let is_of_windows = plan.is_some() && spooled == self.access_costs.visits();
        let mut rows = side_by_side(&tried, (&ran, plan.as_ref(), is_of_windows), &self.outcome, &info);
        if matches!(ran.end, RunEnd::Complete) {
            rows.extend(self.baked(base, spooled, wanted, stop, notes)?);
            rank(&mut rows);
        }
        if rows.is_empty() && matches!(ran.end, RunEnd::Complete) {
            notes.push("no \"what would help\": translation costs nothing in the part that was modelled".into());
        }
        Ok(rows)
    }

    /// The row for baking, where it can be modelled.
    fn baked(
        &mut self,
        base: &Setup,
        recorded: u64,
        wanted: WantedRemedies,
        stop: &AtomicBool,
        notes: &mut Vec<String>,
    ) -> Result<Option<Remedy>, ProfileError> {
        let Some(helper) = baked::helper(base, &self.targets) else { return Ok(None) };
        let hours = match wanted.exact {
            true => HelperHours::ALWAYS,
            false => HelperHours::new(
                &helper,
                &base.machine,
                &self.outcome,
                (&self.access_costs.until(recorded), wanted.seed),
            ),
        };
        let uses = self.spool.uses_before().ok();
        let [without, with] = [self.spool.open()?, self.spool.open()?].map(|reader| (reader, uses.clone()));
        let (without, with) = thread::scope(|scope| {
            let without = scope.spawn(|| rerun_baked(base.clone(), None, without, hours.clone(), stop));
            let with = rerun_baked(base.clone(), Some(&helper), with, hours.clone(), stop);
            (join(without), with)
        });
        let (without, with) = match (without, with) {
            (Ok((without, RunEnd::Complete)), Ok((with, RunEnd::Complete))) => (without, with),
            (Err(e), _) | (_, Err(e)) => {
                notes.push(format!("baking is not modelled: {e}"));
                return Ok(None);
            }
            _ => return Ok(None),
        };
        let is_of_windows = hours.plan.is_some() && recorded == self.access_costs.visits();
        let scope = scope_of((&without, hours.plan.is_some()), &self.outcome, is_of_windows, false);
        let [without, with] = [without, with].map(|side| StretchCounts::weighted(&side, hours.plan.as_ref()));
        let sides = (&without[..], &with[..]);
        Ok(compare(&baked::variant(base, sides), sides, scope))
    }
}

/// What the comparisons ran over.
fn scope_of(
    (base, is_sampled): (&[StretchCounts], bool),
    whole: &Outcome,
    is_of_windows: bool,
    approximate: bool,
) -> RerunScope {
    let (accesses, whole) = (StretchCounts::sum(base).accesses, StretchCounts::of(whole));
    let accesses_share = match whole.accesses {
        0 => 1.0,
        all => accesses as f64 / all as f64,
    };
    RerunScope { is_sampled, accesses, accesses_share, whole: is_of_windows.then_some(whole), approximate }
}

/// The rows for variants whose counts follow the base's own.
fn side_by_side(
    tried: &[RemedyVariant],
    (ran, plan, is_of_windows): (&Rerun, Option<&WindowPlan>, bool),
    whole: &Outcome,
    info: &TraceInfo,
) -> Vec<Remedy> {
    let Some((base, rest)) = ran.counts.split_first() else { return Vec::new() };
    let beside = |(variant, with): (&RemedyVariant, &Vec<StretchCounts>)| {
        let approximate = Filter::check(info, &variant.setup).is_err();
        let scope = scope_of((base, ran.is_sampled), whole, is_of_windows, approximate);
        compare(variant, (&StretchCounts::weighted(base, plan), &StretchCounts::weighted(with, plan)), scope)
    };
    tried.iter().zip(rest).filter_map(beside).collect()
}

/// Entries for small pages that a load may find in the first TLB level.
fn first_level_entries(machine: &Machine) -> usize {
    let holds =
        |tlb: &&Tlb| tlb.level == 1 && tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&PageSize::K4);
    machine.tlbs.iter().filter(holds).map(|tlb| tlb.entries as usize).sum()
}

/// Runs `work` on every block and gives its memory back when nobody else holds it.
fn consume(blocks: &Receiver<Arc<Block>>, give_back: &Sender<Block>, mut work: impl FnMut(&Block)) {
    for block in blocks {
        work(&block);
        if let Ok(mut block) = Arc::try_unwrap(block) {
            block.clear();
            let _ = give_back.try_send(block); // full or closed: the block is freed instead
        }
    }
}

fn join<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What is kept beside the base run.
struct Aside {
    curve: CurveBuilder,
    heat: HeatBuilder,
    waits: WaitingShares,
    targets: TargetFinder,
    spool: Spool,
}

impl Aside {
    fn new(info: &TraceInfo) -> io::Result<Self> {
        Ok(Self {
            curve: CurveBuilder::beyond(info.filter_window),
            heat: HeatBuilder::default(),
            waits: WaitingShares::default(),
            targets: TargetFinder::default(),
            spool: Spool::new(info)?,
        })
    }

    fn run(&mut self, block: &Block) {
        self.curve.run(block);
        self.heat.run(block);
        self.waits.run(block);
        self.targets.run(block);
        self.spool.run(block);
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::preset;

    use super::*;

    #[test]
    fn the_first_level_is_what_a_load_of_a_small_page_asks_first() {
        let entries = |name| first_level_entries(&preset(name).expect("a preset"));
        assert_eq!(["skylake", "neoverse-n1", "cortex-a9"].map(entries), [64, 48, 32]);
    }
}
