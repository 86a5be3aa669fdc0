//! Which windows get the huge pages: those in which the program was seen most.

use std::collections::BTreeMap;

use serde::Serialize;

use super::windows::{window_of, FitWindow, MappedArea, Unfit};
use crate::bake::PAGE_BYTES;

/// How often a window was seen, in samples (or bytes referenced), in two halves: those at even and at odd places in
/// time. What is chosen by one half can be judged by the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowWeight {
    /// At even places.
    pub even: u64,
    /// At odd places.
    pub odd: u64,
}

impl WindowWeight {
    /// Both halves.
    pub fn all(self) -> u64 {
        self.even + self.odd
    }
}

/// Weights of windows by their first byte; also of windows that cannot be chosen.
pub type WindowWeights = BTreeMap<u64, WindowWeight>;

/// Weights by sampled addresses in order of time; 0 = the address is not known.
pub fn tally(addrs: &[u64]) -> WindowWeights {
    let mut weights = WindowWeights::new();
    for (place, &addr) in addrs.iter().enumerate().filter(|(_, &addr)| addr != 0) {
        let weight = weights.entry(window_of(addr)).or_default();
        match place % 2 {
            0 => weight.even += 1,
            _ => weight.odd += 1,
        }
    }
    weights
}

/// Weights by the bytes referenced of each mapping, as all that the system tells: spread evenly over the mapping's
/// pages in memory. `referenced` has the bytes of each mapping, summed over all intervals.
pub fn spread(areas: &[MappedArea], windows: &[FitWindow], referenced: &[u64]) -> WindowWeights {
    let pages = |window: &FitWindow| u64::from(window.small_pages + window.huge_pages);
    let of = |window: &FitWindow| {
        let area = areas.get(window.area)?;
        let bytes = *referenced.get(window.area)?;
        // Pages outside whole windows have their part too.
        let resident = (area.resident_bytes / PAGE_BYTES).max(1);
        let weight = u128::from(bytes) * u128::from(pages(window)) / u128::from(resident);
        Some((window.start, WindowWeight { even: u64::try_from(weight).unwrap_or(u64::MAX), odd: 0 }))
    };
    windows.iter().filter_map(of).collect()
}

/// A process as a choice sees it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessView<'a> {
    /// Its number.
    pub pid: u32,
    /// Its mappings.
    pub areas: &'a [MappedArea],
    /// Its windows.
    pub windows: &'a [FitWindow],
    /// How often each was seen.
    pub weights: &'a WindowWeights,
}

/// A window that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HotWindow {
    /// Its process.
    pub pid: u32,
    /// What it is.
    #[serde(flatten)]
    pub window: FitWindow,
    /// What its mapping is called.
    pub region: String,
    /// How often it was seen.
    pub weight: u64,
    /// Bytes that a huge page adds to what the process has in memory.
    pub bloat_bytes: u64,
}

/// A choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowChoice {
    /// The windows, most seen first.
    pub chosen: Vec<HotWindow>,
    /// Windows that could have been chosen, those never seen included.
    pub candidates: usize,
    /// Weight of these.
    pub candidates_weight: u64,
    /// Weight of those that were chosen.
    pub chosen_weight: u64,
    /// Windows that huge pages map already.
    pub huge: usize,
    /// Weight of these.
    pub huge_weight: u64,
    /// Part of the candidates' weight that a choice by one half of it has of the other half, in the mean of both ways;
    /// absent where a half has none.
    pub held_out: Option<f64>,
}

/// The windows seen most, at most `budget`, none that was not seen. Of those seen alike the fuller one, then the lower
/// address, then the lower process number.
pub fn choose(views: &[ProcessView<'_>], budget: usize) -> WindowChoice {
    let mut choice = WindowChoice::default();
    let mut ranked: Vec<(WindowWeight, u32, &FitWindow, &[MappedArea])> = Vec::new();
    for view in views {
        for window in view.windows {
            let weight = view.weights.get(&window.start).copied().unwrap_or_default();
            if window.is_huge() {
                choice.huge += 1;
                choice.huge_weight += weight.all();
            } else {
                choice.candidates += 1;
                choice.candidates_weight += weight.all();
                ranked.push((weight, view.pid, window, view.areas));
            }
        }
    }
    choice.held_out = held_out(&ranked, budget);
    sort(&mut ranked, WindowWeight::all);
    let seen = ranked.into_iter().take(budget).filter(|(weight, ..)| weight.all() > 0);
    choice.chosen = seen
        .map(|(weight, pid, window, areas)| HotWindow {
            pid,
            window: *window,
            region: areas.get(window.area).map(|area| area.name.clone()).unwrap_or_default(),
            weight: weight.all(),
            bloat_bytes: window.bloat_bytes(),
        })
        .collect();
    choice.chosen_weight = choice.chosen.iter().map(|chosen| chosen.weight).sum();
    choice
}

/// By weight, the largest first; the rest makes the order whole.
fn sort(ranked: &mut [(WindowWeight, u32, &FitWindow, &[MappedArea])], of: impl Fn(WindowWeight) -> u64) {
    ranked.sort_by_key(|(weight, pid, window, _)| {
        (std::cmp::Reverse(of(*weight)), std::cmp::Reverse(window.small_pages), window.start, *pid)
    });
}

fn held_out(ranked: &[(WindowWeight, u32, &FitWindow, &[MappedArea])], budget: usize) -> Option<f64> {
    let halves: [fn(WindowWeight) -> u64; 2] = [|weight| weight.even, |weight| weight.odd];
    let mut by_half = ranked.to_vec();
    let mut share = |chosen_by: fn(WindowWeight) -> u64, judged_by: fn(WindowWeight) -> u64| {
        sort(&mut by_half, chosen_by);
        let all: u64 = by_half.iter().map(|row| judged_by(row.0)).sum();
        let chosen = by_half.iter().take(budget).filter(|row| chosen_by(row.0) > 0);
        let found: u64 = chosen.map(|row| judged_by(row.0)).sum();
        (all > 0).then(|| found as f64 / all as f64)
    };
    Some((share(halves[0], halves[1])? + share(halves[1], halves[0])?) / 2.0)
}

/// Where samples fell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SampleCounts {
    /// All samples.
    pub samples: u64,
    /// Without an address: no access to memory was waited for, or it could not be told which.
    pub unknown: u64,
    /// In windows that small pages map.
    pub small: u64,
    /// In windows that huge pages map.
    pub huge: u64,
    /// In private anonymous memory too small or too skewed for a whole window, or not in memory any more.
    pub edges: u64,
    /// In mappings that get no huge pages from here, by why.
    pub unfit: BTreeMap<Unfit, u64>,
    /// In no mapping that is there now.
    pub unmapped: u64,
}

impl SampleCounts {
    /// Adds the samples of one process; 0 = the address is not known.
    pub fn add(&mut self, areas: &[MappedArea], windows: &[FitWindow], addrs: &[u64]) {
        for &addr in addrs {
            self.samples += 1;
            let area = areas.partition_point(|area| area.end <= addr);
            let area = areas.get(area).filter(|area| area.start <= addr);
            let window = windows.binary_search_by_key(&window_of(addr), |window| window.start);
            *match (addr, area.map(|area| area.unfit), window) {
                (0, ..) => &mut self.unknown,
                (_, None, _) => &mut self.unmapped,
                (_, Some(Some(unfit)), _) => self.unfit.entry(unfit).or_default(),
                (_, Some(None), Ok(at)) if windows[at].is_huge() => &mut self.huge,
                (_, Some(None), Ok(_)) => &mut self.small,
                (_, Some(None), Err(_)) => &mut self.edges,
            } += 1;
        }
    }
}
