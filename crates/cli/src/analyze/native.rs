//! The program's own clock, and its accesses replayed: what `lookaside-timing` makes seconds of.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use lookaside_capture::{native_run, ChildEnd, NativeRun};
use lookaside_engine::Setup;
use lookaside_host::FrameScatter;
use lookaside_probe::{replay, HeldFrames, ReplayBudget, ReplayError};
use lookaside_techniques::huge_gain::GainEvidence;
use lookaside_techniques::{Analysis, ChildExit, ProfiledVisits};
use lookaside_timing::{attribute, saved, FaultBill, NativeClock, ReplayTimes, SavedSeconds, SiteTime};

use super::frame_watch::watch_frames;
use super::input::SecondInput;
use super::watched::Watched;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::spinner;

/// Rounds of a replay take so long, six of them in any case.
const REPLAY_TIME: Duration = Duration::from_millis(3500);
/// Beside neighbours that make rounds differ they take so long at the most,
const UNSTEADY_REPLAY_TIME: Duration = Duration::from_secs(12);
/// and so many times the program's user time: half of what `--measure` takes, ten rounds with huge pages and without.
const UNSTEADY_REPLAY_RUNS: f64 = 10.0;
/// Of the memory that is to be had, a replay takes this part at most.
const REPLAY_MEMORY: f64 = 0.5;

/// Memory for which no huge pages are asked is told from a tenth of the rest on.
const UNASKED_PART: u64 = 10;

/// What came of the native run and of the replay.
pub struct NativeTiming {
    clock: Option<NativeClock>,
    replay: Option<ReplayTimes>,
    waiting_share: Option<f64>,
    saved: Result<SavedSeconds, String>,
    faults: Option<FaultBill>,
}

impl NativeTiming {
    /// There was no native run, for this reason.
    pub fn without(why: impl Into<String>) -> Self {
        Self { clock: None, replay: None, waiting_share: None, saved: Err(why.into()), faults: None }
    }

    /// Runs the program once by itself and replays its visits. What goes wrong is a reason, and no failure.
    pub fn run(
        command: &[OsString],
        input: SecondInput,
        (visits, held): (&ProfiledVisits, HeldFrames),
        expected: Option<ChildExit>,
        interrupt: &Interrupt,
        notes: &mut Vec<String>,
    ) -> Self {
        let (ran, held) = held.released_for(|| match natively(command, input, interrupt) {
            Ok((run, frames)) => (Ok(run), frames),
            Err(e) => (Err(e), None),
        });
        let run = match ran {
            Ok(run) => run,
            Err(e) => return Self::without(format!("the native run failed: {}", e.line)),
        };
        if interrupt.asked() {
            return Self::without("interrupted before its native run had ended");
        }
        if exit_of(run.end) != expected {
            return Self::without("the native run ended differently from the recorded one: the program's runs differ");
        }
        if let Some(why) = &run.unsampled {
            notes.push(format!("the native run was timed but not sampled, so the interval is wider: {why}"));
        }
        if visits.unasked_pages > visits.small_pages / UNASKED_PART {
            notes.push(format!(
                "{} MiB of its memory are not from malloc, and the system gives huge pages only on request: the \
                 prediction leaves them out. To include them, as root: echo always > \
                 /sys/kernel/mm/transparent_hugepage/enabled; or have the program call madvise",
                visits.unasked_pages >> 8
            ));
        }
        Self::of(run.clock, (visits, held), interrupt)
    }

    fn of(clock: NativeClock, (visits, held): (&ProfiledVisits, HeldFrames), interrupt: &Interrupt) -> Self {
        let run = (clock.minor_faults, clock.system_seconds);
        let bill = |costs| FaultBill::new(visits.small_pages, visits.huge_pages, run, costs);
        let bar = spinner("replaying its accesses");
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let available = lookaside_host::available_bytes().unwrap_or(0);
        let bytes = (available as f64 * REPLAY_MEMORY) as u64;
        let budget = ReplayBudget {
            time: REPLAY_TIME,
            unsteady_time: Duration::from_secs_f64(UNSTEADY_REPLAY_RUNS * clock.user_seconds.max(0.0))
                .clamp(REPLAY_TIME, UNSTEADY_REPLAY_TIME),
            bytes,
            turns: clock.thread_turns(cpus),
        };
        let replayed = replay(&visits.run, held, budget, &|| interrupt.asked());
        bar.finish_and_clear();
        let (replay, saved, faults) = match replayed {
            Ok(times) => {
                let saved = user_saved(&clock, visits, &times);
                let faults = bill(Some(&times.faults));
                (Some(times), saved.ok_or_else(|| "there was nothing to replay".to_string()), faults)
            }
            // No page was visited: nothing can be saved.
            Err(ReplayError::NoVisits) => (None, Ok(SavedSeconds::default()), bill(Some(&Default::default()))),
            Err(e) => (None, Err(e.to_string()), bill(None)),
        };
        let waiting_share = visits.waiting.filter(|_| visits.total > 0).map(|waiting| waiting / visits.total as f64);
        Self { clock: Some(clock), replay, waiting_share, saved, faults: Some(faults) }
    }

    /// Puts what was measured into the analysis.
    pub fn tell(&self, analysis: &mut Analysis) {
        analysis.native = self.clock.clone();
        analysis.replay = self.replay.clone();
        analysis.waiting_share = self.waiting_share;
    }

    /// For the prediction.
    pub fn evidence<'a>(&'a self, analysis: &'a Analysis, setup: &'a Setup) -> GainEvidence<'a> {
        GainEvidence {
            remedies: &analysis.remedies,
            outcome: &analysis.outcome,
            machine: &setup.machine,
            native: self.clock.as_ref(),
            saved: self.saved.as_ref().copied().map_err(String::as_str),
            faults: self.faults,
        }
    }
}

/// Its native run, and how scattered its frames were.
fn natively(
    command: &[OsString],
    input: SecondInput,
    interrupt: &Interrupt,
) -> Result<(NativeRun, Option<FrameScatter>), Failure> {
    let input = input.take().map_err(|e| Failure::bad(format_args!("its input could not be kept: {e}")))?;
    let mut frames = None;
    let run = native_run(command, input, &mut |control| {
        frames = watch_frames(control.pid()).ok();
        interrupt.watch(control, true);
    });
    interrupt.unwatch();
    let scatter = frames.and_then(Watched::end).flatten();
    Ok((run?, scatter))
}

fn exit_of(end: ChildEnd) -> Option<ChildExit> {
    match end {
        ChildEnd::Code(code) => Some(ChildExit::Code(code)),
        ChildEnd::Signal(signal) => Some(ChildExit::Signal(signal)),
        ChildEnd::Detached => None,
    }
}

/// User seconds that huge pages save. Without samples all user time is one instruction with all visits.
fn user_saved(clock: &NativeClock, visits: &ProfiledVisits, times: &ReplayTimes) -> Option<SavedSeconds> {
    let sites = match clock.samples {
        0 => vec![SiteTime {
            seconds: clock.user_seconds,
            visits: visits.total,
            waiting_visits: visits.waiting.unwrap_or(0.0),
            translation_cycles: 1.0,
        }],
        _ => attribute(clock, &visits.sites),
    };
    saved(&sites, clock.user_seconds, visits.total, times, clock.seconds_a_sample())
}
