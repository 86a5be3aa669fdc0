//! The `compare` command: does it help?

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookaside_runtime::compare::{ComparisonPlan, HelperTotals, Metric, PreloadedBaker, Variant};
use lookaside_runtime::hugepages::{CodeBudget, CodeTotals, PlanFinder};
use lookaside_views::comparison::view;
use lookaside_views::json;
use regex_lite::Regex;
use tempfile::NamedTempFile;

use crate::args::compare::CompareArgs;
use crate::clock_sampler::ClockSampler;
use crate::hugepages::load_weights;
use crate::plan::file;
use crate::preload::baker_exit::BakerExit;
use crate::preload::code_report::read_lines;
use crate::preload::library::{self, BAKER, BAKE_INSTEAD, CODE_INSTEAD, HUGEPAGES_INSTEAD};
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::style;

pub mod in_turns;

use in_turns::in_turns;

/// Runs, prints, writes. Exit code 1 where a program failed; 128 + the signal where it was interrupted.
pub fn run(args: &CompareArgs) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    let variants = Variant::list(&args.variants)?;
    let plans = plans(&variants)?;
    let metric = metric(&args.metric)?;
    let report = tempfile::NamedTempFile::new().map_err(|e| Failure::bad(format_args!("a temporary file: {e}")))?;
    let mut inside = None;
    if variants.iter().any(Variant::needs_preload) {
        let has = |kind: fn(&Variant) -> bool| variants.iter().any(kind);
        let instead = match (has(|variant| matches!(variant, Variant::Inside(_))), has(Variant::is_text)) {
            (true, _) => BAKE_INSTEAD,
            (false, true) => CODE_INSTEAD,
            (false, false) => HUGEPAGES_INSTEAD,
        };
        inside = Some(preloaded(&args.command, report.path(), instead)?);
    }
    // The weights' files stay as long as the programs run.
    let weights = code_plans(&variants)?;
    if let Some(inside) = &mut inside {
        let plans = weights.iter().map(|(plan, (budget, file))| (plan.clone(), (*budget, file.path().to_path_buf())));
        inside.code_plans = plans.collect();
    }
    args.output.check()?;
    let plan = ComparisonPlan {
        command: args.command.clone(),
        variants,
        runs: args.runs,
        warmups: args.warmup,
        metric,
        pressure: args.pressure,
        seed: args.seed,
        inside,
        look: Some(Arc::new(ClockSampler)),
        plans,
    };
    let interrupt = Interrupt::install()?;
    let found = in_turns(&plan, &interrupt, "comparing")?;
    let (document, json) = (view(&found), json::render(&found));
    // Where a program failed before the first round was complete, its error says all.
    if args.output.prints_json() || found.rounds > 0 || interrupt.asked() {
        args.output.write(&document, &json, &style(None))?;
    } else {
        args.output.write_files(&document, &json)?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    match &found.early {
        Some(early) => Err(Failure { line: early.to_string(), code: NOT_CLEAN }),
        None => Ok(0),
    }
}

/// The library for variants that need it, which reports to that file; what to do `instead` where the program can't load
/// it.
pub fn preloaded(command: &[OsString], report: &Path, instead: &str) -> Result<PreloadedBaker, Failure> {
    let file = library::find(&BAKER)?;
    library::check_loadable(command, instead)?;
    Ok(PreloadedBaker {
        file,
        report: report.into(),
        read: read_report,
        read_code: |text| CodeTotals::of(&read_lines(text)),
        code_plans: BTreeMap::new(),
    })
}

/// The plans of huge pages that variants name.
fn plans(variants: &[Variant]) -> Result<BTreeMap<PathBuf, Arc<dyn PlanFinder>>, Failure> {
    let files = variants.iter().filter_map(|variant| match variant {
        Variant::Planned(file) => Some(file),
        _ => None,
    });
    files.map(|path| Ok((path.clone(), Arc::new(file::load(path)?) as Arc<dyn PlanFinder>))).collect()
}

/// The plans of code that variants name, with files of weights for the library.
fn code_plans(variants: &[Variant]) -> Result<BTreeMap<PathBuf, (CodeBudget, NamedTempFile)>, Failure> {
    let files = variants.iter().filter_map(|variant| match variant {
        Variant::PlannedText(file) => Some(file),
        _ => None,
    });
    files.map(|path| Ok((path.clone(), load_weights(path)?))).collect()
}

/// What is to be compared.
fn metric(text: &str) -> Result<Metric, Failure> {
    Ok(match text {
        "wall" => Metric::Wall,
        "user" => Metric::User,
        "sys" => Metric::Sys,
        _ => {
            let pattern = Regex::new(text).map_err(|e| {
                let line = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                Failure::bad(format_args!("--metric {text:?}: not wall, user, sys, nor a regular expression: {line}"))
            })?;
            let name = text.to_string();
            Metric::Output { name, read: Box::new(move |line| number(&pattern, line)) }
        }
    })
}

/// The number in a line that matches.
fn number(pattern: &Regex, line: &str) -> Result<Option<f64>, String> {
    let Some(found) = pattern.captures_iter(line).last() else { return Ok(None) };
    let Some(text) = found.get(1).or(found.get(0)).map(|part| part.as_str().trim()) else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(format!("{text:?} in its output is not a number; put the number alone into a group: ([0-9.]+)")),
    }
}

/// All processes of a run together; `None` if there is none.
fn read_report(text: &str) -> Option<HelperTotals> {
    BakerExit::read_lines(text).into_iter().fold(None, |sum: Option<HelperTotals>, line| {
        let sum = sum.unwrap_or_default();
        Some(HelperTotals {
            rounds: sum.rounds.saturating_add(line.rounds),
            touches: sum.touches.saturating_add(line.touches),
            cpu_nanos: sum.cpu_nanos.saturating_add(line.cpu_nanos),
            most_bytes: sum.most_bytes.max(line.most_small_bytes),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_a_report_are_added_up() {
        assert_eq!(read_report(""), None);
        let line = |touches: u64, bytes: u64| {
            format!(
                "{{\"backend\":\"scan\",\"state\":\"baking\",\"errno\":0,\"elapsed_nanos\":9,\"cpu_nanos\":5,\"rounds\":2,\
                 \"touches\":{touches},\"most_small_bytes\":{bytes}}}\n"
            )
        };
        let text = [line(10, 7), line(1, 3), "{\"pid\":".to_string()].concat();
        let sum = HelperTotals { rounds: 4, touches: 11, cpu_nanos: 10, most_bytes: 7 };
        assert_eq!(read_report(&text), Some(sum));
    }

    #[test]
    fn the_last_match_of_a_line_counts() {
        let read = |pattern: &str, line: &str| number(&Regex::new(pattern).expect("a pattern"), line);
        assert_eq!(read(r"GUPS: ([0-9.e-]+)", "GUPS: 1.5e-2 GUPS: 0.25"), Ok(Some(0.25)));
        assert_eq!(read(r"[0-9]+", "a 12 b 7"), Ok(Some(7.0)));
        assert_eq!(read(r"x=(\S+)", "y=1"), Ok(None));
        assert!(read(r"x=(\S+)", "x=1,234").expect_err("no number").contains("1,234"));
        assert!(read(r"x=(\S+)", "x=inf").is_err());
        assert!(read("", "anything").is_err());
    }
}
