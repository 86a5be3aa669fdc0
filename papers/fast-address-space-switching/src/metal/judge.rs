//! What the rounds say: steps, what they take alone, and the switches between; processes against threads.

use lookaside_stats::{figure, median, ratio, Figure, Ratio, LEAST_ROUNDS, RESAMPLES};
use schemars::JsonSchema;
use serde::Serialize;

use super::plan::{Benchmark, Frames, Ring, RingCase, Who};
use super::samples::{KeyUse, RingSample};

/// A ring of one kind of participants. Figures are medians of the rounds, with their 95 % intervals.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RingPoint {
    /// The participants.
    pub who: Who,
    /// The ring.
    #[serde(flatten)]
    pub ring: Ring,
    /// Nanoseconds of a step: one participant's turn, work and token.
    pub step_ns: Figure,
    /// Nanoseconds of the same by one participant that hands the token to itself: no switch.
    pub alone_ns: Figure,
    /// Nanoseconds of a switch: a step less the one alone, round by round.
    pub switch_ns: Figure,
    /// Switches of the CPU from a participant to anybody, beside the one that hands over the token, for each thousand
    /// steps, in the median round: 0 where nothing disturbs.
    pub extra_switches_per_kilo_step: f64,
    /// The same in the worst round.
    pub most_extra_switches_per_kilo_step: f64,
    /// Switches that took the CPU from a participant before it waited, for each thousand steps, in the median round.
    /// Most of these hand over the token: the scheduler may let the next one run as soon as it is woken.
    pub involuntary_per_kilo_step: f64,
    /// What happened to protection keys, in the median round; `None` where no compartments took part.
    pub keys: Option<KeyUse>,
    /// By round.
    pub rounds: Vec<Round>,
}

/// What a round measured of a ring.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Round {
    /// Nanoseconds of a step.
    pub step_ns: f64,
    /// Nanoseconds of one alone.
    pub alone_ns: f64,
    /// Switches beside those that hand over the token, for each thousand steps.
    pub extra_switches_per_kilo_step: f64,
    /// The same alone.
    pub alone_extra_switches_per_kilo_step: f64,
}

impl RingPoint {
    /// Whether the rounds tell what a switch takes: it takes some time, so where the interval reaches 0 they tell what
    /// else ran.
    pub fn is_told(&self) -> bool {
        self.switch_ns.low > 0.0
    }
}

/// Why the rounds tell nothing as a whole, if so: in more than half of the rings they don't.
pub(super) fn disturbed(points: &[RingPoint]) -> Option<String> {
    let untold = points.iter().filter(|point| !point.is_told()).count();
    (2 * untold > points.len()).then(|| {
        format!(
            "in {untold} of {} rings the 95 % interval of a switch reaches 0 ns: something else ran in between; stop what \
             runs beside it, or ask for more --rounds",
            points.len()
        )
    })
}

/// Processes against threads in the same ring.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Contrast {
    /// The ring.
    #[serde(flatten)]
    pub ring: Ring,
    /// What a switch of processes takes over one of threads, in nanoseconds.
    pub over_threads_ns: Figure,
    /// That interval does not hold 0, and there are rounds enough.
    pub significant: bool,
    /// A switch of processes ÷ one of threads; `None` where one of them is not above 0 in all rounds.
    pub ratio: Option<Ratio>,
    /// Of extreme, `over_threads_ns` less the same with the fewest pages, in nanoseconds: what grows with the pages.
    /// Where memory is shared, that is what processes pay for translations of their own, and the most that sharing them
    /// could save.
    pub of_pages_ns: Option<Figure>,
    /// That interval does not hold 0, and there are rounds enough.
    pub of_pages_significant: bool,
}

/// All rings of complete rounds; `samples` are those of each case, by round. Processes are held against threads where
/// both tell what a switch takes.
pub(super) fn judge(cases: &[RingCase], samples: &[Vec<RingSample>], seed: u64) -> (Vec<RingPoint>, Vec<Contrast>) {
    let all: Vec<NetSwitches> = cases
        .iter()
        .filter(|case| case.ring.participants > 1)
        .filter_map(|case| NetSwitches::of(*case, cases, samples))
        .collect();
    let points: Vec<RingPoint> = all.iter().filter_map(|net| net.point(seed)).collect();
    let is_told = |net: &&NetSwitches| {
        let RingCase { who, ring } = net.case;
        points.iter().any(|point: &RingPoint| point.who == who && point.ring == ring && point.is_told())
    };
    let told: Vec<&NetSwitches> = all.iter().filter(is_told).collect();
    let threads = told.iter().filter(|net| net.case.who == Who::Threads);
    let contrasts = threads.filter_map(|threads| contrast(threads.case.ring, &told, seed)).collect();
    (points, contrasts)
}

/// A ring's samples and those of its work alone, by round.
struct NetSwitches<'a> {
    case: RingCase,
    ring: &'a [RingSample],
    alone: &'a [RingSample],
    /// The differences.
    switch_ns: Vec<f64>,
}

impl<'a> NetSwitches<'a> {
    fn of(case: RingCase, cases: &[RingCase], samples: &'a [Vec<RingSample>]) -> Option<Self> {
        let of = |wanted: RingCase| samples.get(cases.iter().position(|case| *case == wanted)?);
        let (ring, alone) = (of(case)?, of(case.alone())?);
        let switch_ns = ring.iter().zip(alone).map(|(ring, alone)| ring.step_ns - alone.step_ns).collect();
        Some(Self { case, ring, alone, switch_ns })
    }

    /// `None` without a complete round.
    fn point(&self, seed: u64) -> Option<RingPoint> {
        let steps = |samples: &[RingSample]| samples.iter().map(|sample| sample.step_ns).collect::<Vec<f64>>();
        let one = |list: &[f64]| figure(&[list], |medians| medians[0], seed, RESAMPLES);
        let each = |of: fn(&RingSample) -> f64| self.ring.iter().map(of).collect::<Vec<f64>>();
        let extra = each(|sample| sample.extra_switches_per_kilo_step);
        let round = |(ring, alone): (&RingSample, &RingSample)| Round {
            step_ns: ring.step_ns,
            alone_ns: alone.step_ns,
            extra_switches_per_kilo_step: ring.extra_switches_per_kilo_step,
            alone_extra_switches_per_kilo_step: alone.extra_switches_per_kilo_step,
        };
        Some(RingPoint {
            who: self.case.who,
            ring: self.case.ring,
            step_ns: one(&steps(self.ring))?,
            alone_ns: one(&steps(self.alone))?,
            switch_ns: one(&self.switch_ns)?,
            extra_switches_per_kilo_step: median(&extra)?,
            most_extra_switches_per_kilo_step: extra.iter().copied().fold(0.0, f64::max),
            involuntary_per_kilo_step: median(each(|sample| sample.involuntary_per_kilo_step))?,
            keys: self.keys(),
            rounds: self.ring.iter().zip(self.alone).map(round).collect(),
        })
    }
}

impl NetSwitches<'_> {
    fn keys(&self) -> Option<KeyUse> {
        let all: Vec<KeyUse> = self.ring.iter().filter_map(|sample| sample.keys).collect();
        let each = |of: fn(&KeyUse) -> f64| median(all.iter().map(of));
        Some(KeyUse {
            recycled_per_kilo_step: each(|keys| keys.recycled_per_kilo_step)?,
            protect_calls_per_kilo_step: each(|keys| keys.protect_calls_per_kilo_step)?,
        })
    }
}

fn contrast(ring: Ring, all: &[&NetSwitches<'_>], seed: u64) -> Option<Contrast> {
    let of = |who: Who, ring: Ring| {
        let net = all.iter().find(|net| net.case == RingCase { who, ring })?;
        Some(net.switch_ns.as_slice())
    };
    let (processes, threads) = (of(Who::Processes, ring)?, of(Who::Threads, ring)?);
    let enough = processes.len() >= LEAST_ROUNDS;
    let significant = |figure: &Figure| enough && (figure.low > 0.0 || figure.high < 0.0);
    let over_threads_ns = figure(&[processes, threads], |medians| medians[0] - medians[1], seed, RESAMPLES)?;
    let fewest = all.iter().map(|net| net.case.ring).filter(|other| Ring { size: ring.size, ..*other } == ring);
    let fewest = fewest.min_by_key(|other| other.size).filter(|fewest| fewest.size < ring.size);
    let of_pages_ns = fewest.filter(|_| ring.benchmark == Benchmark::Extreme).and_then(|fewest| {
        let (few_processes, few_threads) = (of(Who::Processes, fewest)?, of(Who::Threads, fewest)?);
        let lists = [processes, threads, few_processes, few_threads];
        figure(&lists, |m| m[0] - m[1] - (m[2] - m[3]), seed, RESAMPLES)
    });
    Some(Contrast {
        ring,
        significant: significant(&over_threads_ns),
        over_threads_ns,
        ratio: ratio(processes, threads, seed, RESAMPLES),
        of_pages_significant: of_pages_ns.as_ref().is_some_and(significant),
        of_pages_ns,
    })
}

impl Contrast {
    /// What sharing translations could save at most, where this says it: of shared memory.
    pub fn sharing_ns(&self) -> Option<&Figure> {
        self.of_pages_ns.as_ref().filter(|_| self.ring.frames == Frames::Shared)
    }
}

#[cfg(test)]
mod tests;
