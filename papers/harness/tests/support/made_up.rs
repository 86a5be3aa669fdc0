//! A paper's microbenchmarks on machines that are made up, and the rows that they give.

use std::time::Duration;

use lookaside_harness::metal::Setting;
use lookaside_harness::{Ours, Paper, PaperRow, Reproduction, RowVerdict};
use lookaside_probe::{Halt, LevelReport, Metal};

use crate::sim::{Array, Costs, Noise, Sim};

/// A made-up machine with noise.
pub fn noisy(arrays: &[Array]) -> Sim {
    let costs = Costs { hit: 4.0, second: 7.0, walk: 30.0 };
    let noise = Noise { sigma: 0.005, bias: 0.001, outliers: 0.03, interrupts: 0.005, grain: 1.0 };
    Sim::new(arrays, 28, costs, noise, 5)
}

/// Nothing is given, and there is time.
pub fn setting() -> Setting {
    Setting { machine: "made up".into(), siblings: Vec::new(), seed: 3, given: None, search: Duration::MAX }
}

/// The rows of a paper that has microbenchmarks, and the levels that were found for them.
pub fn measured(
    paper: &Paper,
    metal: &mut dyn Metal,
    setting: &Setting,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> (Reproduction, Vec<LevelReport>) {
    paper.measure(&paper.metal.unwrap(), metal, setting, halt, progress)
}

/// All of them, with nothing given and time enough.
pub fn measure(paper: &Paper, metal: &mut dyn Metal) -> Reproduction {
    let setting = setting();
    let (found, levels) = measured(paper, metal, &setting, &|| None, &mut |_| ());
    // What the experiments rest on is given with them.
    assert_eq!(levels.iter().map(|level| level.level).collect::<Vec<_>>(), [1, 2]);
    for row in &found.rows {
        assert_eq!(row.ours.is_none(), row.verdict == RowVerdict::NotReproduced);
        assert!(row.verdict != RowVerdict::NotReproduced || !row.note.is_empty(), "{row:?}");
    }
    assert!(found.measured && found.halted.is_none(), "{:?}", found.halted);
    found
}

/// The first row of this place whose text holds this.
pub fn row<'a>(found: &'a Reproduction, place: &str, what: &str) -> &'a PaperRow {
    let mut rows = found.rows.iter().filter(|row| row.place.contains(place) && row.what.contains(what));
    rows.next().unwrap_or_else(|| panic!("no row {what:?}"))
}

/// Its number.
pub fn value(row: &PaperRow) -> f64 {
    match row.ours {
        Some(Ours::Value(value)) => value,
        ref other => panic!("{}: {other:?}", row.what),
    }
}

/// What was found for its claim.
pub fn claim(row: &PaperRow) -> &str {
    match &row.ours {
        Some(Ours::Claim { found, .. }) => found,
        other => panic!("{}: {other:?}, {}", row.what, row.note),
    }
}
