//! Which instruction a sample belongs to: `RULES.md`, "Which instruction a sample belongs to".

use std::collections::BTreeMap;

use crate::code_place::CodePlace;
use crate::native_clock::NativeClock;
use crate::site_time::SiteTime;

/// How far behind an instruction its samples may be: some ten instructions, a loop's tail.
const REACH_BYTES: u64 = 64;

/// What the exact run has of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteCounts {
    /// Page visits.
    pub visits: u64,
    /// Of these, as many as wait for another by where their addresses come from, at the least.
    pub waiting_visits: f64,
    /// Modelled cycles of their translation.
    pub translation_cycles: f64,
}

/// The instructions with visits, each with the native seconds of the samples that belong to it.
pub fn attribute(clock: &NativeClock, counts: &BTreeMap<CodePlace, SiteCounts>) -> Vec<SiteTime> {
    let mut seconds: BTreeMap<&CodePlace, f64> = BTreeMap::new();
    let one = clock.seconds_a_sample();
    for sampled in &clock.places {
        if let Some(site) = site_of(&sampled.place, counts) {
            *seconds.entry(site).or_default() += one * sampled.samples as f64;
        }
    }
    let site = |(place, counts): (&CodePlace, &SiteCounts)| SiteTime {
        seconds: seconds.get(place).copied().unwrap_or(0.0),
        visits: counts.visits,
        waiting_visits: counts.waiting_visits,
        translation_cycles: counts.translation_cycles,
    };
    counts.iter().filter(|(_, counts)| counts.visits > 0).map(site).collect()
}

fn site_of<'a>(sampled: &CodePlace, counts: &'a BTreeMap<CodePlace, SiteCounts>) -> Option<&'a CodePlace> {
    let visited = |(_, counts): &(&CodePlace, &SiteCounts)| counts.visits > 0;
    if let Some((place, _)) = counts.get_key_value(sampled).filter(visited) {
        return Some(place);
    }
    let first = CodePlace { file: sampled.file.clone(), offset: sampled.offset.saturating_sub(REACH_BYTES) };
    let dearest = |a: &(&CodePlace, &SiteCounts), b: &(&CodePlace, &SiteCounts)| {
        a.1.translation_cycles.total_cmp(&b.1.translation_cycles).then(a.1.visits.cmp(&b.1.visits)).then(a.0.cmp(b.0))
    };
    counts.range(first..sampled.clone()).filter(visited).max_by(dearest).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native_clock::SampledPlace;

    fn place(file: &str, offset: u64) -> CodePlace {
        CodePlace { file: file.into(), offset }
    }

    fn seconds_at(sampled: CodePlace, counts: &[(CodePlace, u64, f64)]) -> Vec<f64> {
        let clock = NativeClock {
            user_seconds: 2.0,
            samples: 4,
            places: vec![SampledPlace { place: sampled, samples: 3 }],
            ..NativeClock::default()
        };
        let counts = counts.iter().map(|(place, visits, translation_cycles)| {
            (
                place.clone(),
                SiteCounts { visits: *visits, translation_cycles: *translation_cycles, ..SiteCounts::default() },
            )
        });
        attribute(&clock, &counts.collect()).iter().map(|site| site.seconds).collect()
    }

    #[test]
    fn the_named_instruction_first_then_the_dearest_in_reach() {
        let sites = [(place("a", 0x100), 5, 10.0), (place("a", 0x110), 9, 2.0), (place("b", 0x110), 1, 99.0)];
        assert_eq!(seconds_at(place("a", 0x110), &sites), [0.0, 1.5, 0.0]);
        assert_eq!(seconds_at(place("a", 0x114), &sites), [1.5, 0.0, 0.0]);
        assert_eq!(seconds_at(place("a", 0x100 + 64), &sites), [1.5, 0.0, 0.0]);
        assert_eq!(seconds_at(place("a", 0x101 + 64), &sites), [0.0, 1.5, 0.0]);
        // Beyond reach, in another file, before all.
        for far in [place("a", 0x200), place("c", 0x110), place("a", 0xff)] {
            assert_eq!(seconds_at(far, &sites), [0.0; 3]);
        }
    }

    #[test]
    fn an_instruction_without_visits_takes_no_sample() {
        let sites = [(place("a", 0x100), 5, 1.0), (place("a", 0x110), 0, 7.0)];
        assert_eq!(seconds_at(place("a", 0x110), &sites), [1.5]);
        // Code in no file is one instruction.
        assert_eq!(seconds_at(place("", 0), &[(place("", 0), 1, 0.0)]), [1.5]);
    }
}
