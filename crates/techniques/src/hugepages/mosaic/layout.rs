//! Which windows are huge in which mosaic.

use lookaside_stats::SplitMix64;

use super::windows::MosaicWindow;

/// A set of windows that are huge in some runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mosaic {
    /// What it is, in a few words.
    pub name: String,
    /// Its windows, by their place in the list, ascending.
    pub windows: Vec<usize>,
}

/// Shares of the cycles that the dearest windows of a mosaic have together.
const DEAREST: [f64; 3] = [0.25, 0.5, 0.75];
/// Times that the windows are halved at random; both halves are mosaics.
const HALVINGS: usize = 2;

/// Mosaics of these windows, dearest first as they are given: all of them, the dearest ones with a quarter, half and
/// three quarters of the cycles, and random halves. Small pages alone are one more, which needs no windows. The paper
/// has growing and random ones too, 54 in all (section VI-B \[recalled\]); a user waits for these.
///
/// Mosaics of the same windows are there once, under the first name; so there are fewer for a program of few windows.
pub fn mosaics(windows: &[MosaicWindow], seed: u64) -> Vec<Mosaic> {
    let count = windows.len();
    let mut found = vec![Mosaic { name: "all windows".into(), windows: (0..count).collect() }];
    for share in DEAREST {
        let windows = (0..dearest(windows, share)).collect();
        found.push(Mosaic { name: format!("dearest, {:.0} % of the cost", share * 100.0), windows });
    }
    let mut rng = SplitMix64::new(seed);
    for number in 1..=HALVINGS {
        let mut order: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut order);
        let (one, other) = order.split_at(count / 2);
        for (half, which) in [(one, "a"), (other, "b")] {
            let mut windows = half.to_vec();
            windows.sort_unstable();
            found.push(Mosaic { name: format!("random half {number}{which}"), windows });
        }
    }
    let mut seen: Vec<Vec<usize>> = vec![Vec::new()];
    found.retain(|mosaic| {
        let is_new = !seen.contains(&mosaic.windows);
        seen.push(mosaic.windows.clone());
        is_new
    });
    found
}

/// How many of the dearest windows have this share of the cycles.
pub fn dearest(windows: &[MosaicWindow], share: f64) -> usize {
    let all: f64 = windows.iter().map(|window| window.cycles).sum();
    let mut sum = 0.0;
    let enough = windows.iter().position(|window| {
        sum += window.cycles;
        sum >= share * all
    });
    enough.map_or(windows.len(), |last| last + 1)
}
