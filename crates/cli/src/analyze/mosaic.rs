//! `analyze --measure=mosaic`: the sets of windows that are huge in some runs, and what those runs say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use lookaside_engine::Outcome;
use lookaside_report::num;
use lookaside_runtime::compare::{Comparison, Variant, VariantRun};
use lookaside_runtime::hugepages::PlanFinder;
use lookaside_techniques::hugepages::mosaic::{fit, mosaics, Mosaic, MosaicGain, MosaicRun, MosaicWindow, RanMosaic};
use lookaside_techniques::hugepages::WINDOW_BYTES;

use crate::plan::finder::{RecordedWindow, WindowFinder};

/// The mosaics of a program.
pub struct MosaicPlan {
    windows: Vec<MosaicWindow>,
    mosaics: Vec<Mosaic>,
}

impl MosaicPlan {
    /// Of these windows, dearest first.
    pub fn new(windows: Vec<MosaicWindow>, seed: u64) -> Self {
        Self { mosaics: mosaics(&windows, seed), windows }
    }

    /// How each mosaic is run, with the plan that it names.
    pub fn variants(&self) -> (Vec<Variant>, BTreeMap<PathBuf, Arc<dyn PlanFinder>>) {
        let place = |mosaic: &Mosaic| PathBuf::from(&mosaic.name);
        let finders = self.mosaics.iter().map(|mosaic| (place(mosaic), Arc::new(self.finder(mosaic)) as Arc<_>));
        (self.mosaics.iter().map(|mosaic| Variant::Planned(place(mosaic))).collect(), finders.collect())
    }

    fn finder(&self, mosaic: &Mosaic) -> WindowFinder {
        let mut finder = WindowFinder::default();
        for (at, window) in self.windows.iter().enumerate() {
            let wanted = mosaic.windows.binary_search(&at).is_ok();
            let (address, bytes, cycles) = (window.address, WINDOW_BYTES, window.cycles);
            finder.push(&window.region, RecordedWindow { address, bytes, cycles, wanted });
        }
        finder
    }

    /// What has to be known of its runs: regions that were not found in some of them.
    pub fn note(found: &Comparison) -> Option<String> {
        let runs = found.variants.iter().flat_map(|variant| &variant.runs).filter_map(|run| run.planned.as_ref());
        let missed: BTreeSet<&String> = runs.flat_map(|made| made.changed.values()).collect();
        let first = missed.first()?;
        Some(format!(
            "mosaic: {} not found in each run, and counted as small pages there: {first}",
            num::counted(missed.len(), "region")
        ))
    }

    /// What the runs say: those of small pages first, and those of the mosaics, last and in their order. `outcome` is
    /// the model's.
    ///
    /// # Errors
    /// In a line: why that can't be told.
    pub fn gain(&self, found: &Comparison, outcome: &Outcome) -> Result<MosaicGain, String> {
        let cycles: f64 = self.windows.iter().map(|window| window.cycles).sum();
        let run = |run: &VariantRun| MosaicRun {
            user_seconds: run.user_seconds,
            covered: run.planned.as_ref().map_or(0.0, |made| {
                let share = made.huge_cycles - made.huge_cycle_seconds / run.wall_seconds;
                (share / cycles).clamp(0.0, 1.0)
            }),
        };
        let first = found.variants.len().saturating_sub(self.mosaics.len());
        let small = found.variants.first().map(|small| RanMosaic {
            name: "small pages".into(),
            windows: 0,
            runs: small.runs.iter().map(run).collect(),
        });
        let others = self.mosaics.iter().zip(&found.variants[first..]).map(|(mosaic, ran)| RanMosaic {
            name: mosaic.name.clone(),
            windows: mosaic.windows.len(),
            runs: ran.runs.iter().map(run).collect(),
        });
        let ran: Vec<RanMosaic> = small.into_iter().chain(others).collect();
        fit(&self.windows, cycles / outcome.translation_cycles(), &ran, found.seed)
    }
}
