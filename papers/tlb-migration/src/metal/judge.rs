//! What the measurements say: medians over rounds, and what a restore gains or costs overall.

use lookaside_stats::{figure, median, Figure, LEAST_ROUNDS};
use schemars::JsonSchema;
use serde::Serialize;

use super::plan::MoveCase;
use super::treatment::{Caches, Treatment};

/// Resamples of each interval: a report has hundreds of them (Efron and Tibshirani, An Introduction to the Bootstrap,
/// 1993, section 14.3: a thousand at least).
pub const RESAMPLES: usize = 2000;

/// One measurement, nanoseconds for all pages of the case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MoveTimes {
    /// Of the prefetches, until the last is begun.
    pub restore_ns: f64,
    /// Of the first access to each page.
    pub access_ns: f64,
    /// Of the next, to another line of each.
    pub again_ns: f64,
    /// Of the move.
    pub move_ns: f64,
}

/// A case in all ways.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CaseTimes {
    /// Which.
    #[serde(flatten)]
    pub case: MoveCase,
    /// What translation costs in the first accesses: with nothing done, less those of a thread that returns. `None`: it
    /// could not be measured.
    pub translation_ns: Option<Figure>,
    /// The ways, without first.
    pub ways: Vec<TreatmentTimes>,
}

/// A case in one way. Nanoseconds are for all its pages; intervals are of 95 %.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TreatmentTimes {
    /// Which.
    pub way: Treatment,
    /// Prefetches of a restore.
    pub prefetches: u64,
    /// The restore's time, until its last prefetch is begun. `None`: nothing is restored.
    pub restore_ns: Option<Figure>,
    /// First access to each page.
    pub access_ns: Figure,
    /// The next access to each, to another line: what is left without the translations' cost, or with that of a TLB too
    /// small for them. A median.
    pub again_ns: f64,
    /// Gained (positive) or lost (negative) overall. `None`: the way is no remedy.
    pub overall: Option<Overall>,
    /// The same of each round; restores.
    pub restores_ns: Vec<f64>,
    /// First accesses.
    pub accesses_ns: Vec<f64>,
}

/// Access without, less restore and access with: as Landsberg's Table A.7, of medians, but without saving, for which a
/// program has a list.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Overall {
    /// Nanoseconds with their interval.
    #[serde(flatten)]
    pub ns: Figure,
    /// What can be said.
    pub verdict: Pays,
}

/// Whether it pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pays {
    /// Significantly: there are rounds enough, and the interval is above 0.
    Pays,
    /// It is below 0.
    Costs,
    /// Neither can be said.
    Unclear,
}

impl CaseTimes {
    /// One of its ways, where it was measured.
    pub fn told(&self, way: Treatment) -> Option<&TreatmentTimes> {
        self.ways.iter().find(|told| told.way == way)
    }

    /// What a way does overall.
    pub fn overall(&self, way: Treatment) -> Option<Overall> {
        self.told(way)?.overall
    }
}

/// The cases, of what each of `ways` came to by round; none without rounds.
pub(super) fn cells(
    cases: &[MoveCase],
    ways: &[(MoveCase, Treatment)],
    samples: &[Vec<MoveTimes>],
    seed: u64,
) -> Vec<CaseTimes> {
    let cell = |case: &MoveCase| {
        let of_case = || ways.iter().zip(samples).filter(|((other, _), _)| other == case);
        let list =
            |way: Treatment| of_case().find(|((_, other), _)| *other == way).map(|(_, samples)| accesses(samples));
        let nothing = list(Treatment::Nothing)?;
        let told =
            |((_, way), samples): (&(MoveCase, Treatment), &Vec<MoveTimes>)| told(case, *way, samples, &nothing, seed);
        let translation = |returns: Vec<f64>| difference(&nothing, &[&returns], seed);
        Some(CaseTimes {
            case: *case,
            translation_ns: list(Treatment::Returns).and_then(translation),
            ways: of_case().filter_map(told).collect(),
        })
    };
    cases.iter().filter_map(cell).filter(|cell| !cell.ways.is_empty()).collect()
}

fn told(case: &MoveCase, way: Treatment, samples: &[MoveTimes], nothing: &[f64], seed: u64) -> Option<TreatmentTimes> {
    let restored = case.restored(way).len() as u64;
    let restores_ns: Vec<f64> = samples.iter().map(|sample| sample.restore_ns).filter(|_| restored > 0).collect();
    let accesses_ns = accesses(samples);
    let again: Vec<f64> = samples.iter().map(|sample| sample.again_ns).collect();
    let interval = |list: &[f64]| figure(&[list], |medians| medians[0], seed, RESAMPLES);
    let with: &[&[f64]] = if restored > 0 { &[&restores_ns, &accesses_ns] } else { &[&accesses_ns] };
    let overall = difference(nothing, with, seed).filter(|_| Treatment::REMEDIES.contains(&way));
    Some(TreatmentTimes {
        way,
        prefetches: restored,
        restore_ns: interval(&restores_ns),
        access_ns: interval(&accesses_ns)?,
        again_ns: median(&again)?,
        overall: overall.map(|ns| Overall { ns, verdict: verdict(&ns, samples.len()) }),
        restores_ns,
        accesses_ns,
    })
}

fn accesses(samples: &[MoveTimes]) -> Vec<f64> {
    samples.iter().map(|sample| sample.access_ns).collect()
}

/// The median of one list less those of others, rounds being drawn whole.
fn difference(without: &[f64], with: &[&[f64]], seed: u64) -> Option<Figure> {
    let lists: Vec<&[f64]> = [without].into_iter().chain(with.iter().copied()).collect();
    figure(&lists, |medians| medians[0] - medians[1..].iter().sum::<f64>(), seed, RESAMPLES)
}

fn verdict(ns: &Figure, rounds: usize) -> Pays {
    match rounds >= LEAST_ROUNDS {
        true if ns.low > 0.0 => Pays::Pays,
        true if ns.high < 0.0 => Pays::Costs,
        _ => Pays::Unclear,
    }
}

/// What has to be known of the measurements.
pub(super) fn remarks(cells: &[CaseTimes], rounds: u32) -> Vec<String> {
    let mut remarks = Vec::new();
    if rounds > 0 && (rounds as usize) < LEAST_ROUNDS {
        remarks.push(format!("of fewer than {LEAST_ROUNDS} rounds nothing is called significant"));
    }
    // With caches kept, a returning thread and one without its translations differ by these only.
    let kept = || cells.iter().filter(|cell| cell.case.caches == Caches::Kept);
    let seen = kept().filter_map(|cell| cell.translation_ns).any(|ns| ns.low > 0.0);
    if rounds as usize >= LEAST_ROUNDS && kept().next().is_some() && !seen {
        remarks.push(
            "nowhere do first accesses take longer without translations than with them: either the new CPU's TLB was not empty, or walks cost nothing that can be seen among the disturbances"
                .into(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metal::MovePattern;

    fn samples(restore: f64, access: &[f64]) -> Vec<MoveTimes> {
        let sample =
            |access_ns: &f64| MoveTimes { restore_ns: restore, access_ns: *access_ns, again_ns: 1.0, move_ns: 9.0 };
        access.iter().map(sample).collect()
    }

    /// A case with these first accesses of nothing, of a restore that takes so long, and of a thread that returns.
    fn told(nothing: &[f64], restore: f64, direct: &[f64], returns: &[f64]) -> Vec<CaseTimes> {
        let cases = MoveCase::all(&[64]);
        let ways = [Treatment::Nothing, Treatment::Direct, Treatment::Returns].map(|way| (cases[0], way));
        let lists = [samples(0.0, nothing), samples(restore, direct), samples(0.0, returns)];
        cells(&cases[..1], &ways, &lists, 1)
    }

    #[test]
    fn overall_is_the_papers_arithmetic_of_medians() {
        // Its Table A.4, 68k, 64 pages, as if saving cost nothing: 12379 - 6154 - 16924.
        let found = told(&[12379.0; 6], 16924.0, &[6154.0; 6], &[6000.0; 6]);
        let overall = found[0].overall(Treatment::Direct).expect("a remedy");
        assert_eq!(overall.ns, Figure { value: -10699.0, low: -10699.0, high: -10699.0 });
        assert_eq!(overall.verdict, Pays::Costs);
        assert_eq!(found[0].translation_ns.map(|ns| ns.value), Some(6379.0));
        assert_eq!(found[0].told(Treatment::Direct).map(|told| told.prefetches), Some(64));
        assert_eq!(found[0].told(Treatment::Nothing).and_then(|told| told.overall), None);
        assert_eq!(found[0].told(Treatment::Nothing).and_then(|told| told.restore_ns), None);
        assert_eq!(found[0].told(Treatment::Returns).and_then(|told| told.overall), None);
        assert!(found[0].told(Treatment::Huge).is_none());
        // What pays by as much.
        let found = told(&[9000.0; 6], 1000.0, &[7000.0; 6], &[1.0; 6]);
        let overall = found[0].overall(Treatment::Direct).expect("a remedy");
        assert_eq!((overall.ns.value, overall.verdict), (1000.0, Pays::Pays));
    }

    #[test]
    fn rounds_are_paired() {
        // Each round differs tenfold from the one before, the way by the same in all: only whole rounds make it
        // certain.
        let nothing: Vec<f64> = (1..=9).map(|round| f64::from(round) * 1000.0).collect();
        let direct: Vec<f64> = nothing.iter().map(|ns| ns - 150.0).collect();
        let found = told(&nothing, 50.0, &direct, &nothing);
        let overall = found[0].overall(Treatment::Direct).expect("a remedy");
        assert_eq!(overall.ns, Figure { value: 100.0, low: 100.0, high: 100.0 });
        assert_eq!(overall.verdict, Pays::Pays);
    }

    #[test]
    fn little_is_said_of_few_rounds_and_noise() {
        let found = told(&[900.0; 4], 1.0, &[7.0; 4], &[1.0; 4]);
        assert_eq!(found[0].overall(Treatment::Direct).map(|overall| overall.verdict), Some(Pays::Unclear));
        let noise = [10.0, 900.0, 20.0, 800.0, 30.0, 700.0];
        let other = [700.0, 30.0, 800.0, 20.0, 900.0, 10.0];
        let found = told(&noise, 0.5, &other, &noise);
        assert_eq!(found[0].overall(Treatment::Direct).map(|overall| overall.verdict), Some(Pays::Unclear));
        assert!(told(&[], 1.0, &[], &[]).is_empty());
    }

    #[test]
    fn a_tlb_that_is_not_seen_to_be_empty_is_remarked_on() {
        let with = told(&[900.0; 6], 1.0, &[7.0; 6], &[100.0; 6]);
        assert_eq!(with[0].case.pattern, MovePattern::Sweep);
        assert!(remarks(&with, 6).is_empty());
        let without = told(&[900.0; 6], 1.0, &[7.0; 6], &[900.0; 6]);
        assert_eq!(remarks(&without, 6).len(), 1);
        assert!(remarks(&without, 4)[0].contains("fewer than 5 rounds"));
        assert!(remarks(&[], 0).is_empty());
    }
}
