//! Which parts of a run are recorded: the arguments that `analyze` and `record` share.

use std::time::Duration;

use clap::Args;
use lookaside_capture::{Intervals, RecorderBackend};
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

#[derive(Args)]
pub struct IntervalArgs {
    /// Record intervals of the run only, and let the program run at its own speed between them: one in this much of its
    /// CPU time, on average [default with --for, --start or --stop: 1s, or longer where that cost more than 5 %]
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub every: Option<Duration>,
    /// Instructions of an interval, for example 500k or 20M [default: 5M]
    #[arg(long = "for", value_name = "COUNT", value_parser = instructions)]
    pub instructions: Option<u64>,
    /// When the first interval may begin, from the start of the recording, for example 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub start: Option<Duration>,
    /// After this time from the start of the recording, no more intervals begin
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub stop: Option<Duration>,
}

impl IntervalArgs {
    /// The first of these options that is given.
    pub fn named(&self) -> Option<&'static str> {
        let all = [
            ("--every", self.every.is_some()),
            ("--for", self.instructions.is_some()),
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
        let start = self.start.unwrap_or_default();
        match (self.named(), backend) {
            (None, Some(RecorderBackend::Intervals)) | (Some(_), None | Some(RecorderBackend::Intervals)) => {}
            (None, _) => return Ok((None, backend)),
            (Some(name), Some(_)) => {
                let line = format!("{name} is for --backend intervals: drop it, or the other backend");
                return Err(Failure::bad(line));
            }
        }
        if self.stop.is_some_and(|stop| stop <= start) {
            return Err(Failure::bad("--stop: must be later than --start"));
        }
        let intervals = Intervals {
            every: self.every.unwrap_or(EVERY),
            budget: self.every.is_none().then_some(BUDGET),
            instructions: self.instructions.unwrap_or(INSTRUCTIONS),
            start,
            stop: self.stop,
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

/// A number with k, M or G behind it, or none.
fn instructions(text: &str) -> Result<u64, String> {
    let wrong = || "give a number of instructions from 1000 on, for example 500k or 20M".to_string();
    let (digits, times) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(times).filter(|&all| all >= 1_000).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_in_thousands() {
        let read = [("1000", 1000), ("500k", 500_000), ("20M", 20_000_000), ("3G", 3_000_000_000)];
        for (text, number) in read {
            assert_eq!(instructions(text), Ok(number));
        }
        for text in ["", "k", "999", "-5M", "1.5M", "20m", "20MM", "99999999999G", "٣M"] {
            assert!(instructions(text).is_err_and(|why| why.contains("500k or 20M")), "{text}");
        }
    }

    #[test]
    fn intervals_are_wanted_where_any_of_their_options_is_given() {
        let none = || IntervalArgs { every: None, instructions: None, start: None, stop: None };
        let seconds = Duration::from_secs;
        assert_eq!(none().intervals(None).ok(), Some((None, None)));
        let sample = Some(RecorderBackend::Sample);
        assert_eq!(none().intervals(sample).ok(), Some((None, sample)));
        let all =
            Intervals { every: EVERY, budget: Some(BUDGET), instructions: INSTRUCTIONS, start: seconds(0), stop: None };
        let backend = Some(RecorderBackend::Intervals);
        assert_eq!(none().intervals(backend).ok(), Some((Some(all), backend)));
        let late = IntervalArgs { start: Some(seconds(7)), ..none() };
        assert_eq!(late.intervals(None).ok(), Some((Some(Intervals { start: seconds(7), ..all }), backend)));
        assert!(late.intervals(sample).is_err_and(|failure| failure.line.starts_with("--start is for")));
        let never = IntervalArgs { stop: Some(seconds(7)), ..late };
        assert!(never.intervals(None).is_err_and(|failure| failure.line.starts_with("--stop: must be later")));
        assert!(every("9ms").is_err() && every("10ms").is_ok() && every("soon").is_err());
    }
}
