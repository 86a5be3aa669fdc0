//! What the sweeps say of the paper's figures.

use lookaside_harness::metal::MetalFindings;

use super::settings::{by_nops, by_place, by_sleep, by_stride, ways, HelperLevel, HelperPlace, HelperSetting};
use super::times::{percent, JudgeRatio, RatioInterval, SettingTimes, SweepTimes};

/// Below this improvement, in percent, there is none.
pub(super) const NONE: f64 = 1.0;
/// Much more sensitive: the spread over the best is half as large again, as in the model's rows.
const MUCH_MORE: f64 = 1.5;
/// Similar: three quarters at least, as in the model's rows.
const SIMILAR: f64 = 0.75;

/// A setting that was measured, and base's time over its time.
struct SettingRatio<'a> {
    way: HelperSetting,
    came: &'a SettingTimes,
    judged: RatioInterval,
}

impl SettingRatio<'_> {
    fn gain(&self) -> f64 {
        percent(self.judged.value)
    }

    /// It does, clearly.
    fn improves(&self) -> bool {
        self.judged.significant && self.gain() >= NONE
    }

    fn words(&self) -> String {
        format!(
            "{:+.1} % ({:+.1} to {:+.1}) by {}",
            self.gain(),
            percent(self.judged.low),
            percent(self.judged.high),
            self.way
        )
    }
}

/// A finding a row.
pub(super) fn find(swept: &SweepTimes, judge: JudgeRatio<'_>, ran: &mut MetalFindings) {
    let all = SettingRatios { swept, judge };
    stride(&all, ran);
    best(&all, ran);
    for (id, level) in [("fig-6.8-kernel", HelperLevel::Kernel), ("fig-6.8-user", HelperLevel::User)] {
        placed(&all, id, level, ran);
    }
    nops(&all, ran);
    sleep(&all, ran);
}

/// What was measured, with the judge.
struct SettingRatios<'a> {
    swept: &'a SweepTimes,
    judge: JudgeRatio<'a>,
}

impl<'a> SettingRatios<'a> {
    /// A setting, or why there is nothing of it.
    fn of(&self, way: &HelperSetting) -> Result<SettingRatio<'a>, String> {
        let came = self.swept.came(way).map_err(|why| format!("{way}: {why}"))?;
        let judged = (self.judge)(&self.swept.base, &came.ns_per_read);
        let judged = judged.ok_or_else(|| format!("{way}: no ratio of its times"))?;
        Ok(SettingRatio { way: *way, came, judged })
    }

    fn all(&self, points: Vec<(f64, HelperSetting)>) -> Result<Vec<SettingRatio<'a>>, String> {
        points.iter().map(|(_, way)| self.of(way)).collect()
    }

    /// The best of a level on another core.
    fn best(&self, level: HelperLevel) -> Result<(SettingRatio<'a>, usize), String> {
        let ways: Vec<HelperSetting> =
            ways().into_iter().filter(|way| way.level == level && way.place == HelperPlace::OtherCore).collect();
        let runs: Vec<SettingRatio<'_>> = ways.iter().map(|way| self.of(way)).collect::<Result<_, _>>()?;
        let count = runs.len();
        let best = runs.into_iter().max_by(|a, b| a.judged.value.total_cmp(&b.judged.value));
        best.map(|best| (best, count)).ok_or_else(|| "not measured".into())
    }

    /// The first's time over the second's.
    fn between(&self, first: &SettingRatio<'_>, second: &SettingRatio<'_>) -> Option<RatioInterval> {
        (self.judge)(&first.came.ns_per_read, &second.came.ns_per_read)
    }
}

fn stride(all: &SettingRatios<'_>, ran: &mut MetalFindings) {
    let runs = match all.all(by_stride(HelperLevel::User)) {
        Ok(runs) => runs,
        Err(why) => return ran.nothing(&["stride"], &why),
    };
    let (Some(eight), Some(best)) = (
        runs.iter().find(|run| run.way == HelperSetting::plain(HelperLevel::User)),
        runs.iter().max_by(|a, b| a.judged.value.total_cmp(&b.judged.value)),
    ) else {
        return ran.nothing(&["stride"], "not measured");
    };
    if !best.improves() {
        return ran.nothing(&["stride"], &format!("no stride clearly improves, not even the best: {}", best.words()));
    }
    let better = |run: &&SettingRatio<'_>| {
        all.between(eight, run).is_some_and(|ratio| ratio.significant && percent(ratio.value) >= NONE)
    };
    let better: Vec<String> =
        runs.iter().filter(better).map(|run| format!("{} ({:+.1} %)", run.way.stride_pages, run.gain())).collect();
    if better.is_empty() && !eight.improves() {
        let why =
            format!("8 does not clearly improve, nor is the best clearly better: {}; {}", eight.words(), best.words());
        return ran.nothing(&["stride"], &why);
    }
    let found = match &better[..] {
        [] => format!("none is clearly better than 8 ({:+.1} %)", eight.gain()),
        better => format!("better than 8 ({:+.1} %): {}", eight.gain(), better.join(", ")),
    };
    ran.claim(
        "stride",
        better.is_empty(),
        found,
        format!(
            "best by its median: {}; clearly: the interval of the two's ratio is above 1, and the ratio by 1 %",
            best.words()
        ),
    );
}

/// What each level gives at its best, and which gives more.
fn best(all: &SettingRatios<'_>, ran: &mut MetalFindings) {
    let [user, kernel] = [HelperLevel::User, HelperLevel::Kernel].map(|level| all.best(level));
    for (id, best) in [("best-user", &user), ("best-kernel", &kernel)] {
        match best {
            Ok((run, count)) => {
                let gain = (run.gain() * 10.0).round() / 10.0;
                ran.value(
                    id,
                    gain,
                    format!("{}; the best of {count} settings, chosen by the same rounds", run.words()),
                );
            }
            Err(why) => ran.nothing(&[id], why),
        }
    }
    let ((user, _), (kernel, _)) = match (user, kernel) {
        (Ok(user), Ok(kernel)) => (user, kernel),
        (Err(why), _) | (_, Err(why)) => return ran.nothing(&["ahead"], &why),
    };
    let note = format!("user {}; kernel {}", user.words(), kernel.words());
    match all.between(&user, &kernel) {
        _ if !user.improves() && !kernel.improves() => {
            ran.nothing(&["ahead"], &format!("neither clearly improves: {note}"));
        }
        Some(ratio) if ratio.significant => {
            let ahead = if ratio.value > 1.0 { "the kernel level" } else { "the user level" };
            ran.claim("ahead", ratio.value > 1.0, ahead, note);
        }
        _ => ran.nothing(&["ahead"], &format!("they do not differ clearly: {note}")),
    }
}

/// Figure 6.8.
fn placed(all: &SettingRatios<'_>, id: &'static str, level: HelperLevel, ran: &mut MetalFindings) {
    let mut points = by_place(level);
    points.retain(|(_, way)| way.place != HelperPlace::Same);
    let runs = match all.all(points) {
        Ok(runs) => runs,
        Err(why) => return ran.nothing(&[id], &why),
    };
    let [other, sibling] = &runs[..] else { return ran.nothing(&[id], "not measured") };
    let note = format!("{}; {}", other.words(), sibling.words());
    if !other.improves() {
        return ran.nothing(&[id], &format!("no clear improvement on another core: {note}"));
    }
    let found = format!("another core {:+.1} %, sibling {:+.1} %", other.gain(), sibling.gain());
    let smaller = sibling.gain() <= other.gain();
    if level == HelperLevel::Kernel {
        let note = format!("similar: three quarters; {note}");
        return ran.claim(id, smaller && sibling.gain() >= SIMILAR * other.gain(), found, note);
    }
    match all.between(sibling, other) {
        Some(ratio) if ratio.significant => ran.claim(id, smaller, found, note),
        _ => ran.nothing(&[id], &format!("they do not differ clearly: {note}")),
    }
}

/// Improvements over a sweep.
struct Spread {
    least: f64,
    most: f64,
    /// The most is clear.
    clear: bool,
}

impl Spread {
    fn over(runs: &[SettingRatio<'_>]) -> Self {
        let gains = || runs.iter().map(SettingRatio::gain);
        let (least, most) = (gains().fold(f64::INFINITY, f64::min), gains().fold(f64::NEG_INFINITY, f64::max));
        Self { least, most, clear: runs.iter().any(|run| run.gain() >= most && run.improves()) }
    }

    /// Their range over the most.
    fn relative(&self) -> f64 {
        (self.most - self.least) / self.most
    }
}

/// Figure 6.10.
fn nops(all: &SettingRatios<'_>, ran: &mut MetalFindings) {
    let user = match all.all(by_nops(HelperLevel::User)) {
        Ok(runs) => Spread::over(&runs),
        Err(why) => return ran.nothing(&["fig-6.10"], &why),
    };
    let why = format!(
        "only half of it: the stock kernel's scan reads all entries in one call and has no NOPs; user {:+.1} to {:+.1} %",
        user.least, user.most
    );
    ran.nothing(&["fig-6.10"], &why);
}

/// Figure 6.11.
fn sleep(all: &SettingRatios<'_>, ran: &mut MetalFindings) {
    let [user, kernel] =
        [HelperLevel::User, HelperLevel::Kernel].map(|level| all.all(by_sleep(level)).map(|runs| Spread::over(&runs)));
    let (user, kernel) = match (user, kernel) {
        (Ok(user), Ok(kernel)) => (user, kernel),
        (Err(why), _) | (_, Err(why)) => return ran.nothing(&["fig-6.11"], &why),
    };
    let found =
        format!("user {:+.1} to {:+.1} %, kernel {:+.1} to {:+.1} %", user.least, user.most, kernel.least, kernel.most);
    if !user.clear || !kernel.clear {
        return ran.nothing(&["fig-6.11"], &format!("a level does not clearly improve at any sleep: {found}"));
    }
    let (of_user, of_kernel) = (user.relative(), kernel.relative());
    let note = format!(
        "much more: its range over its best ({of_user:.2} against {of_kernel:.2}) is half as large again; of medians, whose noise counts as range"
    );
    ran.claim("fig-6.11", of_user >= MUCH_MORE * of_kernel, found, note);
}
