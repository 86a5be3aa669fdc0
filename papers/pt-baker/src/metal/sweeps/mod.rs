//! The sensitivity and placement sweeps of PT-Baker (Chatzopoulos 2024, sections 4.4 and 6.3) on this machine: what is to be
//! measured, and what it says of the paper's figures. [`run`] runs the helper, and judges ratios as `compare` does.

use lookaside_stats::median;

mod claims;
pub(super) mod run;
#[cfg(test)]
mod tests;

use std::fmt;

use lookaside_harness::metal::MetalFindings;
use lookaside_harness::{rows, Reproduction, Series};

/// NOPs after a touch: those of the model's Figure 6.10.
const NOPS: [u32; 5] = [0, 30, 100, 300, 1000];
/// Sleep after a round: those of the model's Figure 6.11, and none.
const SLEEPS_MICROSECONDS: [u32; 6] = [0, 100, 300, 1000, 3000, 10_000];
/// Pages from a touch to the next: around the eight entries of a line, and the 512 of a table (section 4.4.1).
const STRIDES_PAGES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 512];
/// The stride of all other sweeps.
const LINE_PAGES: u32 = 8;
/// Sleep of the placement sweep. Figure 6.8 has sleep too: without, a helper on the program's CPU takes half of it.
const PLACED_SLEEP_MICROSECONDS: u32 = 1000;
/// Rounds below which no ratio is called significant, so that no row is judged.
const LEAST_ROUNDS: usize = 5;

/// Which of the paper's two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Prefetches of the program's pages.
    User,
    /// The stock kernel reads the entries (`PAGEMAP_SCAN`): all of them, one after the other, so without stride or NOPs.
    Kernel,
}

/// Where the helper is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperPlace {
    /// On another core under the same last-level cache.
    OtherCore,
    /// On the other hardware thread of the program's core.
    Sibling,
    /// On the program's own CPU.
    Same,
}

/// One setting of the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperSetting {
    /// Prefetches, or the kernel.
    pub level: Level,
    /// NOPs after a touch.
    pub nops: u32,
    /// Sleep after a round.
    pub sleep_microseconds: u32,
    /// Pages from a touch to the next.
    pub stride_pages: u32,
    /// Where.
    pub place: HelperPlace,
}

impl HelperSetting {
    /// Without pause, a touch a line of entries, on another core.
    const fn plain(level: Level) -> Self {
        Self { level, nops: 0, sleep_microseconds: 0, stride_pages: LINE_PAGES, place: HelperPlace::OtherCore }
    }
}

impl fmt::Display for HelperSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            Level::User => write!(f, "prefetch, stride {}", self.stride_pages)?,
            Level::Kernel => f.write_str("scan")?,
        }
        if self.nops > 0 {
            write!(f, ", {} NOPs", self.nops)?;
        }
        if self.sleep_microseconds > 0 {
            write!(f, ", sleep {} µs", self.sleep_microseconds)?;
        }
        f.write_str(match self.place {
            HelperPlace::OtherCore => "",
            HelperPlace::Sibling => ", on the sibling",
            HelperPlace::Same => ", on the same CPU",
        })
    }
}

/// Every setting that is measured, once each.
pub fn ways() -> Vec<HelperSetting> {
    let mut ways: Vec<HelperSetting> = Vec::new();
    for sweep in SWEEPS {
        for level in [Level::User, Level::Kernel] {
            for (_, way) in (sweep.points)(level) {
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
    }
    ways
}

/// A figure's settings.
struct Sweep {
    name: &'static str,
    x: &'static str,
    points: fn(Level) -> Vec<(f64, HelperSetting)>,
}

const SWEEPS: [Sweep; 4] = [
    Sweep { name: "Figure 6.10, NOPs after a touch", x: "NOPs", points: by_nops },
    Sweep { name: "Figure 6.11, sleep after a round", x: "microseconds", points: by_sleep },
    Sweep { name: "section 4.4.1, stride from a touch to the next", x: "pages", points: by_stride },
    Sweep { name: "Figure 6.8, placement of the helper", x: "place", points: by_place },
];

fn by_nops(level: Level) -> Vec<(f64, HelperSetting)> {
    let way = |nops: u32| (nops.into(), HelperSetting { nops, ..HelperSetting::plain(level) });
    if level == Level::User {
        NOPS.map(way).into()
    } else {
        Vec::new()
    }
}

fn by_sleep(level: Level) -> Vec<(f64, HelperSetting)> {
    SLEEPS_MICROSECONDS
        .map(|sleep| (sleep.into(), HelperSetting { sleep_microseconds: sleep, ..HelperSetting::plain(level) }))
        .into()
}

fn by_stride(level: Level) -> Vec<(f64, HelperSetting)> {
    let way = |stride_pages: u32| (stride_pages.into(), HelperSetting { stride_pages, ..HelperSetting::plain(level) });
    if level == Level::User {
        STRIDES_PAGES.map(way).into()
    } else {
        Vec::new()
    }
}

fn by_place(level: Level) -> Vec<(f64, HelperSetting)> {
    let way =
        |place| HelperSetting { sleep_microseconds: PLACED_SLEEP_MICROSECONDS, place, ..HelperSetting::plain(level) };
    [HelperPlace::OtherCore, HelperPlace::Sibling, HelperPlace::Same]
        .map(|place| (f64::from(place as u8), way(place)))
        .into()
}

/// What a setting came to, by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingTimes {
    /// Nanoseconds a read.
    pub ns_per_read: Vec<f64>,
    /// CPU time of the helper: share of one CPU.
    pub helper_cpu_share: Vec<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swept {
    /// How: the machine's part in it, sizes, CPUs, rounds, seeds.
    pub how: Vec<String>,
    /// Nanoseconds a read without a helper, by round.
    pub base: Vec<f64>,
    /// The same again, at another place in each round: a control.
    pub again: Vec<f64>,
    /// Every setting, or why it could not be.
    pub ways: Vec<(HelperSetting, Result<SettingTimes, String>)>,
    /// Rounds that were planned.
    pub rounds_wanted: u32,
    /// Why there were not as many.
    pub ended: Option<String>,
}

/// A ratio of medians, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The interval does not hold 1, and there were rounds enough.
    pub significant: bool,
}

/// Ratio of the medians of two lists by round, the first over the second; `None` if there is none.
pub type Judge<'a> = &'a dyn Fn(&[f64], &[f64]) -> Option<Judged>;

impl Swept {
    /// What a setting came to, or why not.
    fn came(&self, way: &HelperSetting) -> Result<&SettingTimes, &str> {
        let of = self.ways.iter().find(|(of, _)| of == way);
        of.map_or(Err("not measured"), |(_, came)| came.as_ref().map_err(String::as_str))
    }
}

/// Adds the rows of the sweeps, what was measured, and the curves. `swept` may be why nothing was.
pub fn add(found: &mut Reproduction, swept: Result<&Swept, &str>, judge: Judge<'_>) {
    let mut ran = MetalFindings::default();
    let not_reached = match swept {
        Err(reason) => reason.to_string(),
        Ok(swept) => {
            let rounds = swept.base.len();
            ran.assumptions.extend(swept.how.iter().cloned());
            ran.assumptions.push(told(swept, judge));
            ran.series = series(swept, judge);
            let ended = swept.ended.as_deref().unwrap_or("no more were asked for");
            if rounds < LEAST_ROUNDS {
                found.halted.get_or_insert_with(|| ended.into());
                format!("not reached: {ended} after {rounds} rounds, {LEAST_ROUNDS} are needed")
            } else if let Some(control) = unquiet(swept, judge) {
                format!(
                    "the machine was not quiet: two runs without a helper differ by {:+.1} %",
                    percent(control.value)
                )
            } else {
                claims::find(swept, judge, &mut ran);
                "not measured".into()
            }
        }
    };
    found.assumptions.extend(ran.assumptions);
    found.series.extend(ran.series);
    for value in rows(VALUES) {
        let finding = ran.findings.iter().find(|(id, _)| *id == value.id);
        found.rows.push(match finding {
            Some((_, Ok(finding))) => value.beside(&found.paper, Some(finding.clone())),
            Some((_, Err(reason))) => value.without(&found.paper, reason),
            None => value.without(&found.paper, &not_reached),
        });
    }
}

/// The rows.
pub(super) const VALUES: &str = include_str!("../../../values/sweeps.toml");

/// The control, where it differs as clearly as a row's improvement has to.
fn unquiet(swept: &Swept, judge: Judge<'_>) -> Option<Judged> {
    let control = judge(&swept.base, &swept.again)?;
    (control.significant && percent(control.value).abs() >= claims::NONE).then_some(control)
}

/// How many rounds, and what two runs without a helper differ by.
fn told(swept: &Swept, judge: Judge<'_>) -> String {
    let rounds = swept.base.len();
    let few = swept.ended.as_ref().map(|ended| format!(" ({ended})")).unwrap_or_default();
    let control = match judge(&swept.base, &swept.again) {
        Some(control) => format!(
            "; control: without a helper twice a round, {:+.1} % ({:+.1} to {:+.1})",
            percent(control.value),
            percent(control.low),
            percent(control.high)
        ),
        None => String::new(),
    };
    format!("sweeps: {rounds} of {} rounds{few}{control}", swept.rounds_wanted)
}

/// Reads a second above those of base, in percent, by a ratio of times.
fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// Whose helper it is, and how it touches entries here.
fn called(level: Level) -> &'static str {
    match level {
        Level::User => "user level (prefetch)",
        Level::Kernel => "kernel level (scan)",
    }
}

/// A curve a sweep and level: of settings that were measured.
fn series(swept: &Swept, judge: Judge<'_>) -> Vec<Series> {
    let mut all = Vec::new();
    for sweep in SWEEPS {
        for level in [Level::User, Level::Kernel] {
            let mut curve = Series {
                name: format!("{}: {}", sweep.name, called(level)),
                x: sweep.x.into(),
                y: "reads a second, % above those without a helper".into(),
                points: Vec::new(),
                intervals: Vec::new(),
                labels: Vec::new(),
            };
            for (x, way) in (sweep.points)(level) {
                let Ok(came) = swept.came(&way) else { continue };
                let Some(judged) = judge(&swept.base, &came.ns_per_read) else { continue };
                curve.points.push((x, percent(judged.value)));
                curve.intervals.push((percent(judged.low), percent(judged.high)));
                if sweep.x == SWEEPS[3].x {
                    let place = ["another core", "SMT sibling", "same CPU"][way.place as usize];
                    curve.labels.push(place.into());
                }
            }
            if !curve.points.is_empty() {
                all.push(curve);
            }
        }
    }
    all.extend([Level::User, Level::Kernel].into_iter().filter_map(|level| cost(swept, level)));
    all
}

/// What the helper takes of its CPU, over sleep.
fn cost(swept: &Swept, level: Level) -> Option<Series> {
    let shares = by_sleep(level)
        .into_iter()
        .filter_map(|(x, way)| Some((x, 100.0 * median(&swept.came(&way).ok()?.helper_cpu_share)?)));
    let points: Vec<_> = shares.collect();
    (!points.is_empty()).then(|| Series {
        name: format!("what it costs, by sleep after a round: {}", called(level)),
        x: SWEEPS[1].x.into(),
        y: "CPU time of the helper, % of a CPU, median".into(),
        points,
        intervals: Vec::new(),
        labels: Vec::new(),
    })
}
