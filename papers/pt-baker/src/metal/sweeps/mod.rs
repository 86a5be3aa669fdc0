//! The sensitivity and placement sweeps of PT-Baker (Chatzopoulos 2024, sections 4.4 and 6.3) on this machine: what is
//! to be measured, and what it says of the paper's figures. [`run`] runs the helper, and judges ratios as `compare`
//! does.

use lookaside_stats::median;

mod claims;
pub(super) mod run;
mod settings;
#[cfg(test)]
mod tests;
mod times;

use lookaside_harness::metal::MetalFindings;
use lookaside_harness::{rows, PaperCurve, Reproduction};

use settings::{by_sleep, HelperLevel, SWEEPS};
use times::{percent, JudgeRatio, RatioInterval, SweepTimes};

/// Rounds below which no ratio is called significant, so that no row is judged.
const LEAST_ROUNDS: usize = 5;

/// Adds the rows of the sweeps, what was measured, and the curves. `swept` may be why nothing was.
pub(super) fn add(found: &mut Reproduction, swept: Result<&SweepTimes, &str>, judge: JudgeRatio<'_>) {
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
fn unquiet(swept: &SweepTimes, judge: JudgeRatio<'_>) -> Option<RatioInterval> {
    let control = judge(&swept.base, &swept.again)?;
    (control.significant && percent(control.value).abs() >= claims::NONE).then_some(control)
}

/// How many rounds, and what two runs without a helper differ by.
fn told(swept: &SweepTimes, judge: JudgeRatio<'_>) -> String {
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

/// Whose helper it is, and how it touches entries here.
fn called(level: HelperLevel) -> &'static str {
    match level {
        HelperLevel::User => "user level (prefetch)",
        HelperLevel::Kernel => "kernel level (scan)",
    }
}

/// A curve a sweep and level: of settings that were measured.
fn series(swept: &SweepTimes, judge: JudgeRatio<'_>) -> Vec<PaperCurve> {
    let mut all = Vec::new();
    for sweep in SWEEPS {
        for level in [HelperLevel::User, HelperLevel::Kernel] {
            let mut curve = PaperCurve {
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
    all.extend([HelperLevel::User, HelperLevel::Kernel].into_iter().filter_map(|level| cost(swept, level)));
    all
}

/// What the helper takes of its CPU, over sleep.
fn cost(swept: &SweepTimes, level: HelperLevel) -> Option<PaperCurve> {
    let shares = by_sleep(level)
        .into_iter()
        .filter_map(|(x, way)| Some((x, 100.0 * median(&swept.came(&way).ok()?.helper_cpu_share)?)));
    let points: Vec<_> = shares.collect();
    (!points.is_empty()).then(|| PaperCurve {
        name: format!("what it costs, by sleep after a round: {}", called(level)),
        x: SWEEPS[1].x.into(),
        y: "CPU time of the helper, % of a CPU, median".into(),
        points,
        intervals: Vec::new(),
        labels: Vec::new(),
    })
}
