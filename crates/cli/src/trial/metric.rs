//! By what a trial judges, as it is written on the command line.

use std::sync::Arc;

use lookaside_cli::exit::Failure;
use lookaside_runtime::trial::{NumberSource, ReadNumber, TrialMetric};
use regex_lite::Regex;

use crate::args::trial::{StatisticArg, TrialOptions};

/// Reads `--metric` and what belongs to it.
pub fn metric(options: &TrialOptions) -> Result<TrialMetric, Failure> {
    let source = match options.metric.as_str() {
        "auto" => return of_processes(options, TrialMetric::Auto),
        "cpu" => return of_processes(options, TrialMetric::CpuTime),
        "cpu-per-write" => return of_processes(options, TrialMetric::CpuTimePerWrite),
        "passes" => return of_processes(options, TrialMetric::CpuTimePerPass),
        "samples" => return of_processes(options, TrialMetric::Samples),
        "instructions" => return of_processes(options, TrialMetric::Instructions),
        "" => return Err(Failure::bad("--metric: is empty; leave it out, or give a command")),
        text if text.starts_with("call:") => {
            return match text.trim_start_matches("call:") {
                "" => Err(Failure::bad("--metric call:: wants the name of a function, as call:solve")),
                function => of_processes(options, TrialMetric::CpuTimePerCall(function.into())),
            };
        }
        text => match text.strip_prefix("log:") {
            Some(path) => NumberSource::Log(path.into()),
            None => NumberSource::Command(text.into()),
        },
    };
    let pattern = options.number.as_deref().unwrap_or(FIRST_NUMBER);
    let pattern = Regex::new(pattern).map_err(|e| {
        let line = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Failure::bad(format_args!("--number {pattern:?}: not a regular expression: {line}"))
    })?;
    let read: ReadNumber = Arc::new(move |line| number(&pattern, line));
    Ok(TrialMetric::Numbers {
        source,
        read,
        statistic: options.statistic.into(),
        more_is_better: options.more_is_better,
    })
}

/// A number as programs print it.
const FIRST_NUMBER: &str = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?";

/// The first match's first group, or all of it.
fn number(pattern: &Regex, line: &str) -> Option<f64> {
    let found = pattern.captures(line)?;
    found.get(1).or(found.get(0))?.as_str().trim().parse().ok()
}

/// What is measured of the processes themselves goes without what is said of numbers.
fn of_processes(options: &TrialOptions, metric: TrialMetric) -> Result<TrialMetric, Failure> {
    let given = [
        ("--number", options.number.is_some()),
        ("--statistic", options.statistic != StatisticArg::Mean),
        ("--more-is-better", options.more_is_better),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::bad(format_args!(
            "{option}: is for numbers of a command or a log, not for --metric {}",
            options.metric
        ))),
        None => Ok(metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_a_line_counts_or_what_is_asked_for() {
        let first = Regex::new(FIRST_NUMBER).expect("a pattern");
        for (line, is) in [("min 0.25, max 7", 0.25), ("-3", -3.0), ("1e-3 s", 0.001), ("v2 took 9", 2.0)] {
            assert_eq!(number(&first, line), Some(is), "{line}");
        }
        assert_eq!(number(&first, "none"), None);
        let asked = Regex::new(r"max (\d+)").expect("a pattern");
        assert_eq!((number(&asked, "min 0, max 7"), number(&asked, "max")), (Some(7.0), None));
    }
}
