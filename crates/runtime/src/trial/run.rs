//! A trial from its beginning to its end.

use std::time::Instant;

use lookaside_stats::{median, SplitMix64};

use super::auto_metric::ThreadWrites;
use super::bake_lever::BakeLever;
use super::decide::{Decision, TrialVerdict};
use super::effect::{Measure, MeasureEffect, CONFIDENCE};
use super::error::TrialError;
use super::journal::{Journal, JournalEntry, JournalState};
use super::lever::{Lever, LeverState};
use super::meter::{wait, PhaseMeter, Reading, Switched};
use super::metric::TrialMetric;
use super::pass_counter::{busiest, cpu_seconds, PassCounter};
use super::report::{PhaseRow, TrialReport};
use super::request::{TrialLever, TrialRequest};
use super::target::TrialTarget;
use super::window_lever::{WindowLever, WindowLimits, WindowsChoice};

/// Pairs before which it does not end by itself: the smallest of which an interval of 99 % exists are eight, whose
/// width says little yet.
const LEAST_PAIRS: usize = 12;
/// Pairs without a value after which it ends: there is nothing to measure.
const EMPTY_PAIRS: u32 = 2;
/// A phase with more of what is not meant to be there, or less of what is, does not count.
const MIXED: f64 = 0.1;

/// Tries, judges, and keeps it or takes it back. Whatever happens, what was applied is taken back before this returns,
/// unless it is kept.
///
/// # Errors
/// Nothing can be tried, measured or undone: in a line. Nothing is applied then.
pub fn run(request: &TrialRequest<'_>, journal: &Journal) -> Result<TrialReport, TrialError> {
    let targets = TrialTarget::all(&request.pids)?;
    journal.check_free(&request.pids)?;
    (request.progress)("looking at what it does");
    let before = (ThreadWrites::of(&targets), cpu_seconds(&targets));
    let (lever, switched, choice) = lever(request, &targets)?;
    let judged = Judged::by(request, &targets, &before, choice.as_ref())?;
    let meter = PhaseMeter::start(&judged.metric, &targets, switched, &request.sampler, judged.passes)?;
    let (metric, metric_reason) = (judged.metric, judged.reason);
    let entry = journal.begin(what(&request.lever), lever.to_undo())?;
    let mut trial = RunningTrial {
        request,
        journal,
        entry,
        lever,
        meter,
        targets,
        began: Instant::now(),
        is_on: false,
        switches: 0,
        phases: Vec::new(),
        concluded: false,
    };
    let outcome = trial.pairs(metric.more_is_better());
    trial.conclude(&metric, metric_reason, choice, outcome)
}

/// By what it is judged.
struct Judged {
    metric: TrialMetric,
    /// Why, where it was chosen here; where it counts passes, of what.
    reason: Option<String>,
    passes: Option<PassCounter>,
}

impl Judged {
    /// What was asked for, or what fits, by what the processes did since `before`.
    fn by(
        request: &TrialRequest<'_>,
        targets: &[TrialTarget],
        before: &(ThreadWrites, Vec<f64>),
        choice: Option<&WindowsChoice>,
    ) -> Result<Self, TrialError> {
        let busiest = || busiest(targets, &before.1);
        let none = || TrialError::Bad("no process uses most of the CPU time of all: give another --metric".into());
        match &request.metric {
            TrialMetric::Auto => {}
            TrialMetric::CpuTimePerPass => {
                let pid = busiest().ok_or_else(none)?;
                let judged = Self::passes(request, pid)?;
                return judged.ok_or_else(|| {
                    TrialError::Bad("--metric passes: no place in its code is passed now and then; give another".into())
                });
            }
            TrialMetric::CpuTimePerCall(function) => {
                let pid = busiest().ok_or_else(none)?;
                let mark = request.marks.of_function(pid, function, request.stop).map_err(TrialError::Bad)?;
                let reason = Some(format!("{:.0} calls a second of CPU time", mark.per_cpu_second));
                return Ok(Self {
                    metric: request.metric.clone(),
                    reason,
                    passes: Some(PassCounter::start(pid, &mark)?),
                });
            }
            given => return Ok(Self { metric: given.clone(), reason: None, passes: None }),
        }
        if let Some(reason) = ThreadWrites::of(targets).writes_since(&before.0)? {
            return Ok(Self { metric: TrialMetric::CpuTimePerWrite, reason: Some(reason), passes: None });
        }
        let mut why = String::from("it writes too seldom to be judged by that");
        if let Some(pid) = busiest() {
            match Self::passes(request, pid) {
                Ok(Some(judged)) => return Ok(judged),
                Ok(None) => why += ", and passes no place in its code now and then",
                Err(e) => why += &format!(", and {e}"),
            }
        }
        match choice.and_then(|choice| choice.no_samples.as_ref()) {
            None => {
                why += ": the time outside the memory that is switched stands for the work done";
                Ok(Self { metric: TrialMetric::Samples, reason: Some(why), passes: None })
            }
            Some(no) => Err(TrialError::Bad(format!("{why}; it can't be sampled either ({no}): give --metric"))),
        }
    }

    /// By passes of a place in the code; `None`: there is none.
    fn passes(request: &TrialRequest<'_>, pid: u32) -> Result<Option<Self>, TrialError> {
        /// Enough for some hundred places of a process that has a CPU, four at a time.
        const LOOK: std::time::Duration = std::time::Duration::from_secs(10);
        (request.progress)("looking for a place in its code to count by");
        let found = request.marks.find(pid, LOOK, request.stop).map_err(TrialError::Bad)?;
        let Some(mark) = found else { return Ok(None) };
        let reason = Some(format!(
            "it passes {} {:.0} times a second of CPU time, which stands for the work done",
            mark.name, mark.per_cpu_second
        ));
        Ok(Some(Self { metric: TrialMetric::CpuTimePerPass, reason, passes: Some(PassCounter::start(pid, &mark)?) }))
    }
}

/// What is switched, in a word.
fn what(lever: &TrialLever) -> &'static str {
    match lever {
        TrialLever::HugePages { .. } => "hugepages",
        TrialLever::Bake(_) => "bake",
    }
}

type LeverAndChoice = (Box<dyn Lever>, Switched, Option<WindowsChoice>);

fn lever(request: &TrialRequest<'_>, targets: &[TrialTarget]) -> Result<LeverAndChoice, TrialError> {
    match &request.lever {
        TrialLever::HugePages { budget, memory_bytes, by, plan } => {
            let limits = WindowLimits { budget: *budget, memory_bytes: *memory_bytes, by: *by, plan: plan.as_deref() };
            let (lever, choice) = WindowLever::choose(request, targets, &limits)?;
            let switched = Switched::Windows(lever.windows());
            Ok((Box::new(lever), switched, Some(choice)))
        }
        TrialLever::Bake(settings) => {
            wait(request.look, request.stop);
            Ok((Box::new(BakeLever::new(settings, targets)), Switched::AllData, None))
        }
    }
}

struct RunningTrial<'a> {
    request: &'a TrialRequest<'a>,
    journal: &'a Journal,
    entry: JournalEntry,
    lever: Box<dyn Lever>,
    meter: PhaseMeter,
    targets: Vec<TrialTarget>,
    began: Instant,
    is_on: bool,
    switches: u32,
    phases: Vec<(PhaseRow, [Reading; 2])>,
    concluded: bool,
}

/// How the pairs ended.
enum PairsEnd {
    /// The time is over, or the interval is narrow enough.
    Done,
    /// Early, for this reason.
    Early(String),
    /// The processes have ended.
    TargetsEnded,
}

impl Drop for RunningTrial<'_> {
    fn drop(&mut self) {
        if !self.concluded {
            let _ = self.switch(false);
        }
    }
}

impl RunningTrial<'_> {
    /// Pairs of phases, the order of each drawn.
    fn pairs(&mut self, more_is_better: bool) -> Result<PairsEnd, TrialError> {
        let mut rng = SplitMix64::new(self.request.seed);
        for pair in 0.. {
            if self.began.elapsed() >= self.request.time {
                break;
            }
            let first = rng.below(2) == 1;
            for on in [first, !first] {
                match self.phase(pair, on) {
                    Ok(true) => {}
                    Ok(false) => return Ok(PairsEnd::Early("interrupted".into())),
                    _ if self.all_ended() => return Ok(PairsEnd::TargetsEnded),
                    // A call that took too long, or a sampler that is refused: what is known is said.
                    Err(e) => return Ok(PairsEnd::Early(e.to_string())),
                }
                if self.all_ended() {
                    return Ok(PairsEnd::TargetsEnded);
                }
            }
            if pair + 1 >= EMPTY_PAIRS && self.phases.iter().all(|(phase, _)| phase.value.is_none()) {
                let why = self
                    .meter
                    .problem()
                    .unwrap_or_else(|| "a phase has too few values for it; --phase makes phases longer".into());
                return Err(TrialError::Bad(format!(
                    "--metric: nothing was measured in {} phases: {why}",
                    2 * (pair + 1)
                )));
            }
            let effect = self.effect(0, |readings| readings[0].plus(&readings[1]));
            (self.request.progress)(&progress(pair + 1, effect.as_ref(), more_is_better));
            if effect.is_some_and(|e| e.pairs >= LEAST_PAIRS && e.half_width() <= self.request.precision) {
                break;
            }
        }
        Ok(PairsEnd::Done)
    }

    fn all_ended(&self) -> bool {
        self.targets.iter().all(|target| !target.is_same())
    }

    fn switch(&mut self, on: bool) -> Result<(), TrialError> {
        if on != self.is_on {
            self.switches += 1;
            // Also where it is refused half-way: taking back is tried.
            self.is_on = true;
            self.lever.switch(on, self.request.stop)?;
            self.is_on = on;
        }
        Ok(())
    }

    /// One phase; `false`: it was told to stop.
    fn phase(&mut self, pair: u32, on: bool) -> Result<bool, TrialError> {
        self.switch(on)?;
        let request = self.request;
        if !wait(request.settle, request.stop) {
            return Ok(false);
        }
        let at_seconds = self.began.elapsed().as_secs_f64();
        let half = request.phase.saturating_sub(request.settle) / 2;
        let Some(first) = self.meter.measure(half, request.stop)? else { return Ok(false) };
        let Some(second) = self.meter.measure(half, request.stop)? else { return Ok(false) };
        let whole = first.plus(&second);
        let state = self.lever.state();
        let row = PhaseRow {
            pair,
            on,
            at_seconds,
            value: whole.value(self.meter.measures[0].0),
            cpus: whole.value(Measure::CpuTime).unwrap_or(0.0),
            resident_bytes: self.targets.iter().map(TrialTarget::resident_bytes).sum(),
            applied_share: state.share(),
            left_out: left_out(on, state),
        };
        self.phases.push((row, [first, second]));
        Ok(true)
    }

    /// What became of a measure, by this part of each phase.
    fn effect(&self, measure: usize, of: impl Fn(&[Reading; 2]) -> Reading) -> Option<MeasureEffect> {
        let (measure, name) = self.meter.measures.get(measure)?;
        let value = |(row, readings): &(PhaseRow, [Reading; 2])| {
            row.left_out.is_none().then(|| of(readings).value(*measure)).flatten()
        };
        let pairs: Vec<(f64, f64)> = self
            .phases
            .chunks_exact(2)
            .filter_map(|pair| {
                let (first, second) = (value(&pair[0])?, value(&pair[1])?);
                Some(if pair[0].0.on { (second, first) } else { (first, second) })
            })
            .collect();
        MeasureEffect::of(*measure, name, &pairs)
    }

    /// Keeps it or takes it back, and says what was found.
    fn conclude(
        mut self,
        metric: &TrialMetric,
        metric_reason: Option<String>,
        choice: Option<WindowsChoice>,
        outcome: Result<PairsEnd, TrialError>,
    ) -> Result<TrialReport, TrialError> {
        let seconds = self.began.elapsed().as_secs_f64();
        let whole = |readings: &[Reading; 2]| readings[0].plus(&readings[1]);
        let effect = self.effect(0, whole);
        let beside = (1..self.meter.measures.len()).filter_map(|measure| self.effect(measure, whole)).collect();
        let verdict = TrialVerdict::of(effect.as_ref(), metric.more_is_better(), self.request.precision);
        let halves = [0, 1].map(|half| self.effect(0, |readings| readings[half].clone()));
        let is_done = matches!(outcome, Ok(PairsEnd::Done));
        let keep = is_done && verdict == TrialVerdict::Helps && self.lever.stays() && !self.request.only_measure;
        let switched = self.switch(keep);
        let state_at_end = self.lever.state();
        let decision = match (self.all_ended(), keep && switched.is_ok(), state_at_end.applied) {
            (true, ..) => Decision::Ended,
            (_, true, _) => Decision::Kept,
            (_, _, 0) => Decision::TakenBack,
            _ => Decision::NotAllTakenBack,
        };
        self.concluded = matches!(decision, Decision::Kept | Decision::Ended | Decision::TakenBack);
        self.entry.state = match decision {
            Decision::Kept | Decision::NotAllTakenBack => JournalState::Kept,
            Decision::TakenBack | Decision::Ended => JournalState::TakenBack,
        };
        self.entry.said = effect.as_ref().map(in_a_line);
        self.journal.write(&self.entry)?;
        let ended = match outcome? {
            PairsEnd::Done => switched.err().map(|e| e.to_string()),
            PairsEnd::Early(why) => Some(why),
            PairsEnd::TargetsEnded => Some("the processes have ended".into()),
        };
        let mut notes = choice.as_ref().map(|choice| choice.notes.clone()).unwrap_or_default();
        notes.extend(self.notes(&halves));
        let added_bytes = self.added_bytes();
        let advice = (verdict == TrialVerdict::Helps).then(|| self.lever.advice());
        Ok(TrialReport {
            number: self.entry.number,
            what: self.entry.what.clone(),
            processes: self.targets.iter().map(TrialTarget::shown).collect(),
            windows: choice.as_ref().map(|choice| choice.windows),
            windows_share: choice.as_ref().and_then(|choice| choice.share),
            metric: metric.name(),
            more_is_better: metric.more_is_better(),
            metric_reason,
            seed: self.request.seed,
            phase_seconds: self.request.phase.as_secs_f64(),
            settle_seconds: self.request.settle.as_secs_f64(),
            seconds,
            switches: self.switches,
            confidence: CONFIDENCE,
            effect,
            beside,
            halves,
            added_bytes,
            verdict,
            decision,
            advice,
            state_at_end,
            calls: self.lever.calls(),
            phases: self.phases.drain(..).map(|(row, _)| row).collect(),
            ended,
            notes,
        })
    }

    /// Bytes more in memory in phases with it.
    fn added_bytes(&self) -> i64 {
        // By pairs, whose order is drawn: a program that grows does so to either side.
        let pairs = self.phases.chunks_exact(2).filter(|pair| pair.iter().all(|(row, _)| row.left_out.is_none()));
        let more = pairs.map(|pair| {
            let (on, off) = if pair[0].0.on { (&pair[0].0, &pair[1].0) } else { (&pair[1].0, &pair[0].0) };
            on.resident_bytes as f64 - off.resident_bytes as f64
        });
        median(more).unwrap_or(0.0) as i64
    }

    fn notes(&self, halves: &[Option<MeasureEffect>; 2]) -> Vec<String> {
        let mut notes = Vec::new();
        let left_out: Vec<&String> = self.phases.iter().filter_map(|(row, _)| row.left_out.as_ref()).collect();
        if let Some(why) = left_out.last() {
            notes.push(format!("{} of {} phases do not count: {why}", left_out.len(), self.phases.len()));
        }
        if let [Some(first), Some(second)] = halves {
            if first.change.high < second.change.low || second.change.high < first.change.low {
                notes.push(format!(
                    "the first halves of the phases show {}, the second ones {}: a phase carries over into the next; \
                     --settle and --phase make it count less",
                    in_a_line(first),
                    in_a_line(second)
                ));
            }
        }
        for (why, times) in &self.lever.calls().refused {
            notes.push(format!("{times} calls were refused: {why}"));
        }
        notes
    }
}

/// Why a phase does not count, if so.
fn left_out(on: bool, state: LeverState) -> Option<String> {
    match (on, state.share()) {
        (true, share) if share < 1.0 - MIXED => Some(format!("only {:.0} % was applied", 100.0 * share)),
        (false, share) if share > MIXED => Some(format!(
            "{:.0} % was there though it was taken back (khugepaged makes huge pages, too)",
            100.0 * share
        )),
        _ => None,
    }
}

/// `CPU time a second −5.1 % (−7.0 to −3.2 %)`.
fn in_a_line(effect: &MeasureEffect) -> String {
    let percent = |part: f64| format!("{:+.1} %", 100.0 * part);
    let (low, high) = (percent(effect.change.low), percent(effect.change.high));
    format!("{} {} ({low} to {high})", effect.name, percent(effect.change.value))
}

fn progress(pairs: u32, effect: Option<&MeasureEffect>, _more_is_better: bool) -> String {
    match effect {
        Some(effect) => format!("{pairs} pairs of phases: {}", in_a_line(effect)),
        None => format!("{pairs} pairs of phases"),
    }
}
