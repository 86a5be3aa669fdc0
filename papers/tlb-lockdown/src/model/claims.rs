//! What the runs say of the paper's numbers.

use lookaside_harness::{Ours, PaperCurve, RowFinding};

use super::lockdown_bench::{CoreSetting, TASKS};
use super::lockdown_runs::{LockdownRuns, Locked, RunKind};
use crate::task::cores::{TaskCounts, TlbSideCounts};

/// Table 2's decrease of micro stall of qsort, the row with most hits in locked pages: the time of a hit there is
/// fitted on it.
const FITTED_CYCLES: f64 = 4011.0;
/// Its program.
const FITTED_TASK: usize = 1;

/// Means over the runs of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct RunMeans {
    /// Lookups in the main TLB.
    micro: f64,
    /// Walks.
    main: f64,
    /// Both counters of the worst run.
    worst: f64,
    /// Those of fetches.
    fetch: f64,
    /// Micro stall if only lookups that hit count, all entries answering alike.
    hits: f64,
    /// Hits in lockable entries.
    locked: f64,
    /// Waiting for walks of fetches.
    waited: f64,
}

impl RunMeans {
    fn both(&self) -> f64 {
        self.micro + self.main
    }
}

/// How long lookups in the main TLB take.
#[derive(Clone, Copy, Debug)]
struct LookupCost {
    cycles: f64,
    /// How much less in lockable entries.
    sooner_cycles: f64,
}

impl LookupCost {
    /// Cycles of all lookups of a side, those that walks follow as well: the event counts stall by micro TLB misses but
    /// for that by main TLB misses, and a walk begins when the lookup has ended.
    fn all(&self, side: &TlbSideCounts) -> f64 {
        side.missed as f64 * self.cycles - side.locked as f64 * self.sooner_cycles
    }
}

impl LockdownRuns {
    fn means(&self, task: usize, kind: RunKind) -> RunMeans {
        let runs = self.runs.get(&(task, kind)).map_or(&[][..], Vec::as_slice);
        let lookup = self.lookup();
        let mean = |of: &dyn Fn(&TaskCounts) -> f64| runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64;
        RunMeans {
            micro: mean(&|came| lookup.all(&came.data)),
            main: mean(&|came| came.data.walk_cycles),
            worst: runs.iter().map(|came| lookup.all(&came.data) + came.data.walk_cycles).fold(0.0, f64::max),
            fetch: mean(&|came| lookup.all(&came.fetch) + came.fetch.walk_cycles),
            hits: mean(&|came| (came.data.missed - came.data.walks) as f64 * lookup.cycles),
            locked: mean(&|came| came.data.locked as f64),
            waited: mean(&|came| came.waited_cycles),
        }
    }

    /// By how many cycles lockable entries answer sooner is fitted on one row. As many lookups are made with pages
    /// locked as without, so the decrease is that of the hits there.
    fn lookup(&self) -> LookupCost {
        let kind = RunKind { cores: CoreSetting::One, locked: Locked::MostAccessed, round_robin: false };
        let runs = self.runs.get(&(FITTED_TASK, kind)).map_or(&[][..], Vec::as_slice);
        let locked = runs.iter().map(|came| came.data.locked as f64).sum::<f64>() / runs.len().max(1) as f64;
        let sooner_cycles = if locked > 0.0 { FITTED_CYCLES / locked } else { 0.0 };
        LookupCost { cycles: self.main_hit_cycles, sooner_cycles: sooner_cycles.min(self.main_hit_cycles) }
    }

    fn of(&self, task: usize, cores: CoreSetting, locked: Locked) -> RunMeans {
        self.means(task, RunKind { cores, locked, round_robin: false })
    }

    /// Nothing locked, the paper's pages locked; task by task.
    fn pairs(&self, cores: CoreSetting) -> [(RunMeans, RunMeans); 3] {
        [0, 1, 2].map(|task| (self.of(task, cores, Locked::Nothing), self.of(task, cores, Locked::MostAccessed)))
    }
}

/// All rows'.
pub(super) fn findings(study: &LockdownRuns) -> Vec<(&'static str, RowFinding)> {
    let (one, four) = (study.pairs(CoreSetting::One), study.pairs(CoreSetting::Four));
    let mut all = Vec::new();
    all.extend(table(&one, ["t2-micro-basicmath", "t2-micro-qsort", "t2-micro-susan"], "micro stall", |m| m.micro));
    all.extend(table(&one, ["t2-main-basicmath", "t2-main-qsort", "t2-main-susan"], "main stall", |m| m.main));
    all.extend(table(&four, ["t3-micro-basicmath", "t3-micro-qsort", "t3-micro-susan"], "micro stall", |m| m.micro));
    all.extend(table(&four, ["t3-main-basicmath", "t3-main-qsort", "t3-main-susan"], "main stall", |m| m.main));
    all.extend(parts(&one, ["single-micro-least", "single-micro-most"], |m| m.micro));
    all.extend(parts(&one, ["single-main-least", "single-main-most"], |m| m.main));
    all.extend(parts(&four, ["multi-micro-least", "multi-micro-most"], |m| m.micro));
    all.extend(parts(&four, ["multi-main-least", "multi-main-most"], |m| m.main));
    all.extend(orders(&one, &four));
    all.extend(shares(study, &one));
    all.extend(cores(study, &one, &four));
    all.extend(beyond(study, &one, &four));
    all
}

fn table(
    pairs: &[(RunMeans, RunMeans); 3],
    ids: [&'static str; 3],
    what: &str,
    of: fn(&RunMeans) -> f64,
) -> Vec<(&'static str, RowFinding)> {
    let row = |(id, (base, locked)): (&'static str, &(RunMeans, RunMeans))| {
        let (base, locked) = (of(base), of(locked));
        (
            id,
            value(
                base - locked,
                format!("{what} {} to {}, {:+.1} %", digits(base), digits(locked), -percent(base, locked)),
            ),
        )
    };
    ids.into_iter().zip(pairs).map(row).collect()
}

/// The least and the greatest decrease in percent.
fn parts(
    pairs: &[(RunMeans, RunMeans); 3],
    ids: [&'static str; 2],
    of: fn(&RunMeans) -> f64,
) -> [(&'static str, RowFinding); 2] {
    let parts = pairs.map(|(base, locked)| percent(of(&base), of(&locked)));
    let told = each(|task| format!("{:.1}", parts[task]));
    let least = parts.into_iter().fold(f64::INFINITY, f64::min);
    let most = parts.into_iter().fold(f64::NEG_INFINITY, f64::max);
    [(ids[0], value(tenths(least), told.clone())), (ids[1], value(tenths(most), told))]
}

fn orders(one: &[(RunMeans, RunMeans); 3], four: &[(RunMeans, RunMeans); 3]) -> Vec<(&'static str, RowFinding)> {
    let decreases = |pairs: &[(RunMeans, RunMeans); 3], of: fn(&RunMeans) -> f64| {
        pairs.map(|(base, locked)| of(&base) - of(&locked))
    };
    let rising = |d: [f64; 3]| d[0] < d[2] && d[2] < d[1];
    let told = |d: [f64; 3]| each(|task| digits(d[task]));
    let [micro_one, micro_four] = [one, four].map(|pairs| decreases(pairs, |m| m.micro));
    let [main_one, main_four] = [one, four].map(|pairs| decreases(pairs, |m| m.main));
    let larger = (0..3).all(|task| main_one[task] > micro_one[task] && main_four[task] > micro_four[task]);
    let stalls = [one, four].map(|pairs| [0, 1, 2].map(|task: usize| pairs[task].0.both()));
    vec![
        ("order-single", claim(rising(micro_one), told(micro_one), "cycles")),
        ("order-multi", claim(rising(micro_four), told(micro_four), "cycles")),
        (
            "order-main",
            claim(
                rising(main_one) && rising(main_four),
                format!("{}; {}", told(main_one), told(main_four)),
                "cycles, one core; four",
            ),
        ),
        (
            "main-more",
            claim(
                larger,
                format!("one core {}; four {}", both(micro_one, main_one), both(micro_four, main_four)),
                "cycles of micro and of main; in the paper's Table 2 basicmath's 127 and 75 are the other way round",
            ),
        ),
        (
            "stalls-order",
            claim(
                stalls.iter().all(|s| s[0] < s[1] && s[0] < s[2]),
                stalls.map(|s| each(|task| digits(s[task]))).join("; "),
                "cycles of both counters, nothing locked, one core; four",
            ),
        ),
    ]
}

fn shares(study: &LockdownRuns, one: &[(RunMeans, RunMeans); 3]) -> Vec<(&'static str, RowFinding)> {
    let cycles = [0, 1, 2].map(|task: usize| {
        study.busy_cycles.get(task).copied().unwrap_or(0.0) + one[task].0.both() + one[task].0.fetch
    });
    let share = |task: usize| 100.0 * one[task].0.both() / cycles[task].max(1.0);
    let in_millions = |task: usize| value(tenths(cycles[task] / 1e6), "one core, nothing locked");
    let saved = "of the paper's own numbers: as a percentage it is less than what Table 2 says is saved";
    let share_of = |task: usize, note: &str| value((share(task) * 1e4).round() / 1e4, note);
    vec![
        ("cycles-basicmath", in_millions(0)),
        ("cycles-qsort", in_millions(1)),
        ("cycles-susan", in_millions(2)),
        ("share-basicmath", share_of(0, &format!("{saved} (15 cycles of 15 million, against 202)"))),
        ("share-qsort", share_of(1, &format!("{saved} (1,850 cycles of 37 million, against 13,694)"))),
        (
            "share-basicmath-fraction",
            share_of(0, "1,500 cycles of 15 million: 75 of them are the 5 % that are saved of main stall"),
        ),
        (
            "share-qsort-fraction",
            share_of(1, "185,000 cycles of 37 million: 9,683 of them are the 5 % that are saved of main stall"),
        ),
    ]
}

fn cores(
    study: &LockdownRuns,
    one: &[(RunMeans, RunMeans); 3],
    four: &[(RunMeans, RunMeans); 3],
) -> Vec<(&'static str, RowFinding)> {
    let more = |pairs: &dyn Fn(usize) -> RunMeans| {
        [0, 1, 2].map(|task: usize| -percent(one[task].0.both(), pairs(task).both()))
    };
    let all = more(&|task| four[task].0);
    let caches = more(&|task| study.of(task, CoreSetting::FourApart, Locked::Nothing));
    let worse = |pairs: &[(RunMeans, RunMeans); 3]| pairs.iter().all(|(base, locked)| locked.worst < base.worst);
    let [mean_all, mean_caches] = [all, caches].map(|parts| parts.iter().sum::<f64>() / 3.0);
    let worsts = |pairs: &[(RunMeans, RunMeans); 3]| {
        each(|task| format!("{} and {}", digits(pairs[task].0.worst), digits(pairs[task].1.worst)))
    };
    vec![
        ("multi-more", value(tenths(mean_all), each(|task| format!("{:+.1}", all[task])))),
        (
            "multi-why",
            claim(
                mean_all > 2.0 * mean_caches && mean_all > 0.0,
                format!("{mean_all:.1} % more, {mean_caches:.1} % of it without the other cores' TLB maintenance"),
                format!("holds where maintenance is more than half. By caches alone: {}", each(|task| format!("{:+.1}", caches[task]))),
            ),
        ),
        (
            "worst",
            claim(
                worse(one) && worse(four),
                format!("one core {}; four {}", worsts(one), worsts(four)),
                "cycles of both counters in the worst run, nothing and the most accessed pages locked; the paper publishes no worst case",
            ),
        ),
    ]
}

fn beyond(
    study: &LockdownRuns,
    one: &[(RunMeans, RunMeans); 3],
    four: &[(RunMeans, RunMeans); 3],
) -> Vec<(&'static str, RowFinding)> {
    let falls = |of: fn(&RunMeans) -> f64| {
        [one, four].map(|pairs| each(|task| digits(of(&pairs[task].0) - of(&pairs[task].1)))).join("; ")
    };
    let gains = |cores: CoreSetting| {
        each(|task| {
            let [base, most, gain] = Locked::ALL.map(|locked| study.of(task, cores, locked).both());
            format!("{} against {} of {}", digits(base - gain), digits(base - most), digits(base))
        })
    };
    let worsts = |cores: CoreSetting| {
        each(|task| Locked::ALL.map(|locked| digits(study.of(task, cores, locked).worst)).join(", "))
    };
    let round_robin = each(|task| {
        let of = |locked| study.means(task, RunKind { cores: CoreSetting::One, locked, round_robin: true });
        let (base, locked) = (of(Locked::Nothing).main, of(Locked::MostAccessed).main);
        format!("{} of {} ({:.1} %)", digits(base - locked), digits(base), percent(base, locked))
    });
    let both = "cycles of micro and main data stall, means";
    let locked = [one, four].map(|pairs| each(|task| digits(pairs[task].1.locked))).join("; ");
    let lookup = study.lookup();
    vec![
        (
            "fit-cycles",
            told(
                format!("{:.2} of {}", lookup.cycles - lookup.sooner_cycles, lookup.cycles),
                format!("hits there {locked} (one core; four). Fitted on Table 2's qsort, which has most of them"),
            ),
        ),
        (
            "hits",
            told(
                falls(|m| m.hits),
                "cycles, one core; four. What walked before now hits: without a lookup that is sooner over, and without those that walks follow, micro stall can only rise",
            ),
        ),
        (
            "waiting",
            told(
                falls(|m| m.waited),
                "cycles, one core; four. TRM, section 6.2.2: main TLB accesses take a variable number of cycles by competing requests of the micro TLBs. An upper \
                 bound: data accesses run on all the time that a fetch walks",
            ),
        ),
        ("gain-single", told(gains(CoreSetting::One), format!("saved {both}; chosen by 8 seeds of one core's runs with nothing before"))),
        ("gain-multi", told(gains(CoreSetting::Four), format!("saved {both}; the same pages"))),
        ("worst-single", told(worsts(CoreSetting::One), "cycles of both counters")),
        ("worst-multi", told(worsts(CoreSetting::Four), "cycles of both counters")),
        ("round-robin", told(round_robin, "cycles, the most accessed pages locked")),
    ]
}

/// Stall of each run, nothing and the most accessed pages locked.
pub(super) fn series(study: &LockdownRuns) -> Vec<PaperCurve> {
    let mut all = Vec::new();
    for ((task, kind), runs) in &study.runs {
        if kind.round_robin || kind.cores == CoreSetting::FourApart {
            continue;
        }
        let cores = if kind.cores == CoreSetting::One { "one core" } else { "four cores" };
        let locked = match kind.locked {
            Locked::Nothing => "nothing locked",
            Locked::MostAccessed => "most accessed pages locked",
            Locked::MostGaining => "pages locked that gain most",
        };
        let name = TASKS.get(*task).copied().unwrap_or_default();
        let lookup = study.lookup();
        let stall = |came: &TaskCounts| lookup.all(&came.data) + came.data.walk_cycles;
        all.push(PaperCurve {
            name: format!("{name}, {cores}, {locked}"),
            x: "run".into(),
            y: "cycles of micro and main data TLB miss stall".into(),
            points: (1..).map(f64::from).zip(runs.iter().map(stall)).collect(),
            intervals: Vec::new(),
            labels: Vec::new(),
        });
    }
    all
}

/// The three programs' words.
fn each(of: impl Fn(usize) -> String) -> String {
    (0..3).map(|task| format!("{} {}", TASKS[task], of(task))).collect::<Vec<_>>().join(", ")
}

fn both(micro: [f64; 3], main: [f64; 3]) -> String {
    each(|task| format!("{} and {}", digits(micro[task]), digits(main[task])))
}

/// How much less, in percent of the first; 0 of nothing.
fn percent(base: f64, less: f64) -> f64 {
    if base > 0.0 {
        100.0 * (base - less) / base
    } else {
        0.0
    }
}

/// To a tenth below 100, else whole.
fn digits(value: f64) -> String {
    if value.abs() < 100.0 {
        format!("{}", tenths(value))
    } else {
        format!("{value:.0}")
    }
}

fn tenths(value: f64) -> f64 {
    // No -0.
    (value * 10.0).round() / 10.0 + 0.0
}

fn value(value: f64, note: impl Into<String>) -> RowFinding {
    let ours = if value.abs() < 1.0 { value } else { tenths(value) };
    RowFinding { ours: Ours::Value(ours), note: note.into() }
}

fn claim(holds: bool, found: String, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Claim { found, holds }, note: note.into() }
}

/// What nobody claimed.
fn told(found: String, note: impl Into<String>) -> RowFinding {
    claim(true, found, note)
}

#[cfg(test)]
mod tests;
