//! What overlap and a loaded memory make of modelled latencies, by the description's `[timing]`.
//!
//! The engine adds latencies up: its cycles are those of dependent reads of an idle memory. The table has both kinds of
//! reads, with and without a stream, over a few footprints. What it says of one kind of reads beside the plain one, at
//! *other* footprints than that of the pattern, scales what the engine says: no figure foretells itself.

use lookaside_machine::{Quartiles, RandomReads, ReadCosts, Timing};

use crate::metal::AccessOrder;
use crate::validate::model::ModelledCycles;

/// Parts of the modelled cycles that are left, or times as many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostScale {
    /// Of what reads in 2 MiB pages take.
    data: f64,
    /// Of what 4 KiB pages take longer.
    small_pages: f64,
}

impl CostScale {
    /// For reads of this kind over a footprint. Between the nearest smaller and the nearest larger one that the table
    /// has, by a straight line over the footprint's logarithm; where there is only one of them, as there. The footprint
    /// itself does not count.
    ///
    /// # Errors
    /// Why the table does not say it.
    pub(crate) fn of(timing: &Timing, footprint: u64, order: AccessOrder, beside_stream: bool) -> Result<Self, String> {
        let plain = timing.random_reads.iter().filter(|row| !row.beside_stream && row.footprint != footprint);
        let pairs: Vec<(&RandomReads, &RandomReads)> = plain
            .filter_map(|plain| {
                let same = |row: &&RandomReads| (row.footprint, row.beside_stream) == (plain.footprint, beside_stream);
                Some((plain, timing.random_reads.iter().find(same)?))
            })
            .collect();
        let ns = |costs: ReadCosts| match order {
            AccessOrder::Dependent => costs.dependent_ns_per_read.median,
            AccessOrder::Independent => costs.independent_ns_per_read.median,
        };
        let data = pairs.iter().filter_map(|(plain, other)| {
            let (plain_huge, other_huge) = (plain.huge_pages?, other.huge_pages?);
            Some((plain.footprint, ns(other_huge) / plain_huge.dependent_ns_per_read.median))
        });
        let small_pages = pairs.iter().filter_map(|(plain, other)| {
            let (plain_huge, other_huge) = (plain.huge_pages?, other.huge_pages?);
            let walk = walk_ns(plain.small_pages.dependent_ns_per_read, plain_huge.dependent_ns_per_read)?;
            Some((plain.footprint, (ns(other.small_pages) - ns(other_huge)).max(0.0) / walk))
        });
        let lacks = |what: &str| format!("the description's [timing] does not say {what} over another footprint");
        Ok(Self {
            data: at(footprint, data).ok_or_else(|| lacks("what reads of this kind take"))?,
            small_pages: at(footprint, small_pages).ok_or_else(|| lacks("what 4K pages add"))?,
        })
    }

    /// The modelled cycles scaled. `huge` is what the same accesses take in pages of 2 MiB; none of a pattern that is
    /// in these.
    pub(crate) fn apply(
        self,
        modelled: ModelledCycles,
        huge: Option<ModelledCycles>,
        order: AccessOrder,
    ) -> ModelledCycles {
        let of_huge =
            huge.map_or(modelled.translation_cycles, |huge| huge.translation_cycles.min(modelled.translation_cycles));
        let data_cycles = modelled.data_cycles * self.data;
        let translation_cycles = of_huge * self.data + (modelled.translation_cycles - of_huge) * self.small_pages;
        // The addition that makes an access wait is no part of independent ones.
        let addition = modelled.cycles - modelled.translation_cycles - modelled.data_cycles;
        let addition = if order == AccessOrder::Dependent { addition } else { 0.0 };
        ModelledCycles {
            cycles: data_cycles + translation_cycles + addition,
            translation_cycles,
            data_cycles,
            ..modelled
        }
    }
}

/// What small pages add to a read; `None` where that is not surely more than none, as of footprints that TLBs hold.
fn walk_ns(small: Quartiles, huge: Quartiles) -> Option<f64> {
    (small.lower > huge.upper).then_some(small.median - huge.median)
}

/// A figure at a footprint, by those at others.
fn at(footprint: u64, figures: impl Iterator<Item = (u64, f64)>) -> Option<f64> {
    let figures: Vec<(u64, f64)> = figures.collect();
    let below = figures.iter().copied().filter(|figure| figure.0 < footprint).max_by_key(|figure| figure.0);
    let above = figures.iter().copied().filter(|figure| figure.0 > footprint).min_by_key(|figure| figure.0);
    match (below, above) {
        (Some((low, a)), Some((high, b))) => {
            let log = |bytes: u64| (bytes as f64).log2();
            let share = (log(footprint) - log(low)) / (log(high) - log(low));
            Some(a + share * (b - a))
        }
        (one, other) => one.or(other).map(|(_, figure)| figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(ns: f64) -> Quartiles {
        Quartiles { lower: ns, median: ns, upper: ns }
    }

    fn costs(dependent: f64, independent: f64) -> ReadCosts {
        ReadCosts { dependent_ns_per_read: same(dependent), independent_ns_per_read: same(independent) }
    }

    /// Of a data cost, a walk's, and what overlaps of each.
    fn row(mib: u64, beside_stream: bool, (data, walk): (f64, f64), (misses, walks): (f64, f64)) -> RandomReads {
        RandomReads {
            footprint: mib << 20,
            beside_stream,
            small_pages: costs(data + walk, data / misses + walk / walks),
            huge_pages: Some(costs(data, data / misses)),
            overlapping_misses: None,
            overlapping_walks: None,
        }
    }

    fn scale(timing: &Timing, mib: u64, order: AccessOrder, beside: bool) -> Result<(f64, f64), String> {
        CostScale::of(timing, mib << 20, order, beside).map(|scale| (scale.data, scale.small_pages))
    }

    #[test]
    fn other_footprints_say_it() {
        let random_reads = vec![
            row(4, false, (20.0, 0.0), (5.0, 1.0)),
            row(64, false, (100.0, 30.0), (10.0, 3.0)),
            row(64, true, (150.0, 60.0), (6.0, 2.0)),
            row(1024, false, (100.0, 50.0), (4.0, 2.0)),
        ];
        let timing = Timing { random_reads, ..Timing::default() };
        let near = |found: Result<(f64, f64), String>, data: f64, walks: f64| {
            let found = found.expect("a scale");
            assert!((found.0 - data).abs() < 1e-9 && (found.1 - walks).abs() < 1e-9, "{found:?}");
        };
        // Halfway between 64 and 1024 by their logarithms. No walks show at 4.
        near(scale(&timing, 256, AccessOrder::Independent, false), (0.1 + 0.25) / 2.0, (1.0 / 3.0 + 0.5) / 2.0);
        near(scale(&timing, 16, AccessOrder::Independent, false), (0.2 + 0.1) / 2.0, 1.0 / 3.0);
        near(scale(&timing, 4096, AccessOrder::Independent, false), 0.25, 0.5);
        near(scale(&timing, 256, AccessOrder::Dependent, true), 1.5, 2.0);
        near(scale(&timing, 256, AccessOrder::Independent, true), 1.5 / 6.0, 1.0);
        // The footprint itself does not count.
        near(scale(&timing, 1024, AccessOrder::Independent, false), 0.1, 1.0 / 3.0);
        assert!(scale(&timing, 64, AccessOrder::Independent, true).is_err());
        assert!(scale(&Timing::default(), 256, AccessOrder::Independent, false).is_err());
    }

    #[test]
    fn parts_are_scaled_by_what_they_are() {
        let plain =
            ModelledCycles { cycles: 141.0, translation_cycles: 40.0, data_cycles: 100.0, walks_per_access: 1.0 };
        let huge = ModelledCycles { translation_cycles: 10.0, ..plain };
        let scale = CostScale { data: 0.1, small_pages: 0.5 };
        let independent = scale.apply(plain, Some(huge), AccessOrder::Independent);
        assert!((independent.cycles - (10.0 + 1.0 + 15.0)).abs() < 1e-9, "{independent:?}");
        assert_eq!(independent.walks_per_access, 1.0);
        let in_huge = scale.apply(plain, None, AccessOrder::Dependent);
        assert!((in_huge.cycles - (14.0 + 1.0)).abs() < 1e-9, "{in_huge:?}");
    }
}
