//! What `analyze` finds out, as plain data: the report draws it, `--json` writes it.

use std::mem;

pub use lookaside_engine::curve::{MissCurve, SetCurve};
use lookaside_engine::{Cost, OsModel, Outcome};
use lookaside_machine::Machine;
use lookaside_timing::{NativeClock, ReplayTimes};
use lookaside_trace::{Granularity, MapSource};
use serde::{Deserialize, Serialize};

use crate::huge_gain::HugeGain;
use crate::interval_estimate::IntervalEstimate;
use crate::remedy::Remedy;

/// The whole finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// Version of Lookaside that made it.
    pub version: String,
    /// The program and its arguments, or the trace file.
    pub command: Vec<String>,
    /// How the program was seen.
    pub seeing: Seeing,
    /// The modelled machine.
    pub machine: Machine,
    /// Why this machine: `asked for`, or which preset is nearest to the running CPU.
    pub machine_reason: String,
    /// The modelled OS.
    pub os: OsModel,
    /// Seed of the run.
    pub seed: u64,
    /// Counts of the model run (exact seeing). When sampled: empty but for rows' names.
    pub outcome: Outcome,
    /// Over the whole run, by the intervals of it that were recorded; `None` = it was recorded whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<IntervalEstimate>,
    /// Misses over TLB size; `None` where nothing was seen.
    pub curve: Option<MissCurve>,
    /// Objects by cost, dearest first.
    pub objects: Vec<NamedCost>,
    /// Mappings by cost, dearest first.
    pub regions: Vec<NamedCost>,
    /// Functions by cost, dearest first.
    pub functions: Vec<NamedCost>,
    /// What would help, best first.
    pub remedies: Vec<Remedy>,
    /// What huge pages are predicted to gain in run time, and what they were measured to gain.
    pub huge_gain: HugeGain,
    /// The program's own clock: one run by itself; `None` = there was none.
    #[serde(default)]
    pub native: Option<NativeClock>,
    /// What replays of its accesses took on this machine; `None` = there was none.
    #[serde(default)]
    pub replay: Option<ReplayTimes>,
    /// Of the accesses that miss the first TLB level, the part that waits for another by where its address comes from;
    /// `None` = there was no native run, or the recorder doesn't tell.
    #[serde(default)]
    pub waiting_share: Option<f64>,
    /// Accesses over time and address.
    pub heat: HeatMap,
    /// How the program ended; `None` = it was a trace, or still runs.
    pub child_exit: Option<ChildExit>,
    /// `false` when cut short (Ctrl-C, disk full, damaged trace): then a note says where.
    pub complete: bool,
    /// What a reader must know to believe the numbers: assumptions, losses, shares.
    pub notes: Vec<String>,
    /// Fields that [`Analysis::without_rows`] has emptied, such as `outcome.pages`.
    #[serde(default)]
    pub left_out: Vec<String>,
}

impl Analysis {
    /// The analysis without a row for every page and every instruction: of a large program these are millions; all else
    /// stays small.
    pub fn without_rows(mut self) -> Self {
        if !mem::take(&mut self.outcome.pages).is_empty() {
            self.left_out.push("outcome.pages".into());
        }
        if !mem::take(&mut self.outcome.instructions_rows).is_empty() {
            self.left_out.push("outcome.instructions_rows".into());
        }
        if self.native.as_mut().is_some_and(|clock| !mem::take(&mut clock.places).is_empty()) {
            self.left_out.push("native.places".into());
        }
        self
    }
}

/// How the program was seen. Named in every result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Seeing {
    /// Every access went through the model.
    Exact {
        /// `valgrind`, `qemu`, or an import's name.
        recorder: String,
        /// How fine the addresses were.
        granularity: Granularity,
        /// Pages, those used last, of which the recorder left out all repeats; 0 = it had no such window.
        window: u32,
    },
    /// The clock sampler: where the program's time went.
    Sampled {
        /// Nanoseconds that a sample stands for.
        period_ns: u64,
        /// Samples taken.
        samples: u64,
        /// Of those, the ones whose data address could be found.
        resolved: u64,
    },
}

/// How a child process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChildExit {
    /// Exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

/// One row of an attribution table, with names for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NamedCost {
    /// `function (file:line)`, a mapping's name, …
    pub name: String,
    /// Process id.
    pub process: u32,
    /// Size in bytes (objects: peak live; regions: length; functions: 0).
    pub bytes: u64,
    /// Lowest address (0 where it makes no sense).
    pub addr: u64,
    /// What is behind it, for regions.
    pub source: Option<MapSource>,
    /// Accesses, where counted.
    pub accesses: u64,
    /// Cost of translation (exact seeing).
    pub cost: Cost,
    /// Samples (sampled seeing), whatever they waited for: time, not translation alone.
    pub samples: u64,
}

/// Accesses over time (columns) and address (rows).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HeatMap {
    /// Accesses that one column stands for.
    pub accesses_per_column: u64,
    /// Bands of addresses, ascending within a process.
    pub rows: Vec<HeatRow>,
}

/// One band of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HeatRow {
    /// Process id.
    pub process: u32,
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Name of the mapping it lies in.
    pub name: String,
    /// Accesses by column; what a recorder left out as repeats of an access counts where that is.
    pub accesses: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use lookaside_engine::{IpRow, PageRow};
    use lookaside_machine::PageSize;
    use lookaside_timing::{CodePlace, SampledPlace};

    use super::*;

    fn analysis() -> Analysis {
        Analysis {
            version: "1".into(),
            command: vec!["sort".into()],
            seeing: Seeing::Sampled { period_ns: 1, samples: 2, resolved: 1 },
            machine: lookaside_machine::preset("skylake").expect("a preset"),
            machine_reason: "asked for".into(),
            os: OsModel::default(),
            seed: 1,
            outcome: Outcome { loads: 7, ..Outcome::default() },
            intervals: None,
            curve: None,
            objects: Vec::new(),
            regions: Vec::new(),
            functions: Vec::new(),
            remedies: Vec::new(),
            huge_gain: HugeGain::default(),
            native: None,
            replay: None,
            waiting_share: None,
            heat: HeatMap::default(),
            child_exit: None,
            complete: true,
            notes: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn what_has_rows_is_emptied_and_named() {
        let bare = analysis();
        assert_eq!(bare.clone().without_rows(), bare);
        // A clock without samples loses nothing.
        let timed = Analysis { native: Some(NativeClock { samples: 1, ..NativeClock::default() }), ..bare.clone() };
        assert_eq!(timed.clone().without_rows(), timed);

        let (process, cost) = (1, Cost::default());
        let mut full = timed.clone();
        full.outcome.pages = vec![PageRow { process, addr: 0, size: PageSize::K4, region: None, accesses: 1, cost }];
        full.outcome.instructions_rows = vec![IpRow { process, ip: 1, cost }];
        let places = vec![SampledPlace { place: CodePlace::default(), samples: 1 }];
        full.native = timed.native.clone().map(|clock| NativeClock { places, ..clock });
        let left_out = ["outcome.pages", "outcome.instructions_rows", "native.places"].map(String::from).to_vec();
        assert_eq!(full.without_rows(), Analysis { left_out, ..timed });
    }
}
