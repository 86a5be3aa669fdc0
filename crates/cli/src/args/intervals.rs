//! Which parts of a run are recorded: the arguments that `analyze` and `record` share.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use lookaside_capture::{IntervalLength, Intervals, RecorderBackend, RunMoment};
use lookaside_cli::exit::Failure;

/// CPU time from one interval to the next, where nothing is said.
const EVERY: Duration = Duration::from_secs(1);
/// Instructions of an interval, where nothing is said: some thousandths of a second's. The warm-up, a quarter, is many
/// times what a second TLB level needs of a program that misses it.
const INSTRUCTIONS: u64 = 5_000_000;
/// Without `--every`: what intervals may cost, as a part of the program's CPU time.
const BUDGET: f64 = 0.05;
/// The shortest time from one interval to the next.
const LEAST_EVERY: Duration = Duration::from_millis(10);

/// Times that an interval may have: shorter ones have no thousand instructions for sure, and a copy runs for minutes
/// where its program runs for seconds.
const INTERVAL_TIMES: RangeInclusive<Duration> = Duration::from_micros(10)..=Duration::from_secs(10);

#[derive(Args)]
pub struct IntervalArgs {
    /// Record intervals of the run only, and let the program run at its own speed between them: one in this much of its
    /// CPU time, on average [default with --for, --start or --stop: 1s, or longer where that cost more than 5 %]
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub every: Option<Duration>,
    /// Length of an interval: instructions, for example 500k or 20M, or CPU time of the program, for example 2ms
    /// [default: 5M]
    #[arg(long = "for", value_name = "COUNT|TIME", value_parser = length)]
    pub length: Option<IntervalLength>,
    /// When intervals may begin: a time from the start of the recording, for example 90s or 5m, or call:FUNCTION, the
    /// first call of a function of the program's
    #[arg(long, value_name = "TIME|call:FUNCTION", value_parser = moment)]
    pub start: Option<RunMoment>,
    /// When no more intervals begin: a time from the start of the recording, or call:FUNCTION, the first call after
    /// --start
    #[arg(long, value_name = "TIME|call:FUNCTION", value_parser = moment)]
    pub stop: Option<RunMoment>,
}

impl IntervalArgs {
    /// The first of these options that is given.
    pub fn named(&self) -> Option<&'static str> {
        let all = [
            ("--every", self.every.is_some()),
            ("--for", self.length.is_some()),
            ("--start", self.start.is_some()),
            ("--stop", self.stop.is_some()),
        ];
        all.into_iter().find(|(_, is_there)| *is_there).map(|(name, _)| name)
    }

    /// Intervals are wanted, of a program that is recorded by this backend.
    pub fn are_wanted(&self, backend: Option<RecorderBackend>) -> bool {
        self.intervals(backend).is_ok_and(|(intervals, _)| intervals.is_some())
    }

    /// The intervals that are wanted, and the backend that makes them; `backend` as it is if none are.
    ///
    /// # Errors
    /// Another backend is wanted, or `--stop` is not after `--start`.
    pub fn intervals(
        &self,
        backend: Option<RecorderBackend>,
    ) -> Result<(Option<Intervals>, Option<RecorderBackend>), Failure> {
        let start = self.start.clone().unwrap_or(RunMoment::After(Duration::ZERO));
        match (self.named(), backend) {
            (None, Some(RecorderBackend::Intervals)) | (Some(_), None | Some(RecorderBackend::Intervals)) => {}
            (None, _) => return Ok((None, backend)),
            (Some(name), Some(_)) => {
                let line = format!("{name} is for --backend intervals: drop it, or the other backend");
                return Err(Failure::bad(line));
            }
        }
        if matches!((&start, &self.stop), (RunMoment::After(start), Some(RunMoment::After(stop))) if stop <= start) {
            return Err(Failure::bad("--stop: must be later than --start"));
        }
        let intervals = Intervals {
            every: self.every.unwrap_or(EVERY),
            budget: self.every.is_none().then_some(BUDGET),
            length: self.length.unwrap_or(IntervalLength::Instructions(INSTRUCTIONS)),
            start,
            stop: self.stop.clone(),
        };
        Ok((Some(intervals), Some(RecorderBackend::Intervals)))
    }
}

fn every(text: &str) -> Result<Duration, String> {
    let every = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match every < LEAST_EVERY {
        true => Err(format!("give at least {}", humantime::format_duration(LEAST_EVERY))),
        false => Ok(every),
    }
}

/// A time, or the call of a function.
fn moment(text: &str) -> Result<RunMoment, String> {
    match text.strip_prefix("call:") {
        Some("") => Err("call: wants the name of a function, for example call:solve".into()),
        Some(function) => Ok(RunMoment::Call(function.into())),
        None => humantime::parse_duration(text)
            .map(RunMoment::After)
            .map_err(|error| format!("{error}; a call is written call:FUNCTION")),
    }
}

/// A number with k, M or G behind it, or none; or a time.
fn length(text: &str) -> Result<IntervalLength, String> {
    if let Some(instructions) = instructions(text) {
        return Ok(IntervalLength::Instructions(instructions));
    }
    let time = humantime::parse_duration(text).ok().filter(|time| INTERVAL_TIMES.contains(time));
    time.map(IntervalLength::CpuTime).ok_or_else(|| {
        "give a number of instructions from 1000 on, for example 500k or 20M, or a time from 10us to 10s".into()
    })
}

fn instructions(text: &str) -> Option<u64> {
    let (digits, times) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(times).filter(|&all| all >= 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_instructions_or_a_time() {
        let read = [("1000", 1000), ("500k", 500_000), ("20M", 20_000_000), ("3G", 3_000_000_000)];
        for (text, number) in read {
            assert_eq!(length(text), Ok(IntervalLength::Instructions(number)));
        }
        for (text, micros) in [("10us", 10), ("2ms", 2000), ("10s", 10_000_000)] {
            assert_eq!(length(text), Ok(IntervalLength::CpuTime(Duration::from_micros(micros))));
        }
        for text in ["", "k", "999", "-5M", "1.5M", "20m", "9us", "11s", "20MM", "99999999999G", "٣M"] {
            assert!(length(text).is_err_and(|why| why.contains("500k or 20M, or a time")), "{text}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_a_call() {
        assert_eq!(moment("2s"), Ok(RunMoment::After(Duration::from_secs(2))));
        assert_eq!(moment("call:ns::f(int)"), Ok(RunMoment::Call("ns::f(int)".into())));
        assert!(moment("call:").is_err_and(|why| why.contains("call:solve")));
        assert!(moment("solve").is_err_and(|why| why.contains("call:FUNCTION")));
    }

    #[test]
    fn intervals_are_wanted_where_any_of_their_options_is_given() {
        let none = || IntervalArgs { every: None, length: None, start: None, stop: None };
        let after = |seconds| RunMoment::After(Duration::from_secs(seconds));
        assert_eq!(none().intervals(None).ok(), Some((None, None)));
        let sample = Some(RecorderBackend::Sample);
        assert_eq!(none().intervals(sample).ok(), Some((None, sample)));
        let length = IntervalLength::Instructions(INSTRUCTIONS);
        let all = Intervals { every: EVERY, budget: Some(BUDGET), length, start: after(0), stop: None };
        let backend = Some(RecorderBackend::Intervals);
        assert_eq!(none().intervals(backend).ok(), Some((Some(all.clone()), backend)));
        let late = IntervalArgs { start: Some(after(7)), ..none() };
        assert_eq!(late.intervals(None).ok(), Some((Some(Intervals { start: after(7), ..all }), backend)));
        assert!(late.intervals(sample).is_err_and(|failure| failure.line.starts_with("--start is for")));
        let never = IntervalArgs { stop: Some(after(7)), ..late };
        assert!(never.intervals(None).is_err_and(|failure| failure.line.starts_with("--stop: must be later")));
        assert!(every("9ms").is_err() && every("10ms").is_ok() && every("soon").is_err());
    }
}
