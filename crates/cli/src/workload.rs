//! The `workload` command: the programs that the papers run, timed, with or without a baker.

use std::time::{Duration, Instant};

use lookaside_host::{allowed_cpus, bind_to, current_cpu};
use lookaside_report::num::bytes;
use lookaside_runtime::bake::{BakedRegion, Baker, Settings};
use lookaside_views::json;
use lookaside_views::workload::run::{view, WorkloadBake, WorkloadOutcome, WorkloadRegion};
use lookaside_views::workload::{list, parameters};
use lookaside_workloads::{workload, Pages, Workload, WorkloadSpec};

use crate::args::workload::WorkloadArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::memory::{available_bytes, huge_bytes};
use lookaside_cli::output::{check_writable, spinner, style};
use lookaside_cli::say::say;

mod record;
mod size;

use size::read_bytes;

/// How long the helper may take until it is on its CPU.
const HELPER_BEGINS: Duration = Duration::from_millis(100);

/// Builds, runs, prints. Exit code 1 where huge pages were asked for and are not there.
pub fn run(args: &WorkloadArgs) -> Result<u8, Failure> {
    args.output.check()?;
    if args.name == "list" {
        return match args.record {
            None => {
                let all = list::workloads();
                args.output.write(&list::view(&all.workloads), &json::render(&all), &style(None))?;
                Ok(0)
            }
            Some(_) => Err(Failure::bad("--record: list has no accesses; name a workload")),
        };
    }
    let spec =
        WorkloadSpec { bytes: read_bytes(&args.size)?, seed: args.seed, rounds: args.rounds, pages: args.pages.into() };
    let settings = args.bake.as_deref().map(str::parse::<Settings>).transpose()?;
    let free = available_bytes().map_err(Failure::bad)?;
    // Names and sizes that can't be are the workload's to name.
    if spec.bytes > free && spec.bytes <= lookaside_workloads::MOST_BYTES {
        return Err(Failure::bad(format_args!(
            "--size {}: {} of memory are free; ask for less",
            args.size,
            bytes(free)
        )));
    }
    if let Some(path) = &args.record {
        check_writable(path)?;
    }
    let bar = spinner("building the input");
    let begin = Instant::now();
    let built = workload(&args.name, &spec);
    let build_seconds = begin.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let mut workload = built?;

    let interrupt = Interrupt::install()?;
    if let Some(path) = &args.record {
        return record::write(args, path, workload, interrupt);
    }
    let bar = spinner("running");
    let outcome = measure(&spec, settings, &mut *workload, &interrupt);
    bar.finish_and_clear();
    let outcome = WorkloadOutcome { build_seconds, ..outcome? };
    args.output.write(&view(&outcome), &json::render(&outcome), &style(None))?;
    if !outcome.complete {
        say("interrupted: the values cover the task up to there");
        return Ok(interrupt.code());
    }
    let total: u64 = outcome.regions.iter().map(|region| region.bytes).sum();
    let Some(line) = shortage(spec.pages, outcome.huge_bytes, total) else { return Ok(0) };
    // Who started this wants to know what it takes without, such as `compare` for its `base`.
    if rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false) {
        say(format_args!("{line}; they are switched off for this process (prctl)"));
        return Ok(0);
    }
    say(line);
    Ok(NOT_CLEAN)
}

/// What is missing of huge pages that were asked for.
fn shortage(pages: Pages, huge_bytes: Option<u64>, total: u64) -> Option<String> {
    let huge = huge_bytes.filter(|&huge| pages == Pages::Thp && huge < total / 10 * 9)?;
    Some(format!("--pages thp: the system gave huge pages for {} of {} only", bytes(huge), bytes(total)))
}

/// Algorithm 1 of the paper: the baker is started, the main task done, the baker stopped.
fn measure(
    spec: &WorkloadSpec,
    settings: Option<Settings>,
    workload: &mut dyn Workload,
    interrupt: &Interrupt,
) -> Result<WorkloadOutcome, Failure> {
    let main = workload.regions().iter().filter(|region| region.main);
    let main: Vec<BakedRegion> = main.map(|region| BakedRegion { start: region.start, len: region.bytes }).collect();
    let baker = settings.as_ref().map(|settings| Baker::start(settings, &main)).transpose()?;
    let cpu = stay(baker.as_ref())?;
    let begin = Instant::now();
    let complete = workload.run(interrupt.flag());
    let seconds = begin.elapsed().as_secs_f64();
    let baked = baker.zip(settings.as_ref()).map(|(baker, settings)| {
        // What it is doing while the program works: once stopped, it does nothing.
        let within = baker.status();
        WorkloadBake { settings: settings.to_string(), within, stats: baker.stop() }
    });
    Ok(WorkloadOutcome {
        workload: workload.name(),
        asked_bytes: spec.bytes,
        seed: spec.seed,
        rounds: spec.rounds,
        pages: spec.pages,
        huge_bytes: huge_bytes().ok(),
        regions: workload
            .regions()
            .iter()
            .map(|region| WorkloadRegion {
                name: region.name,
                bytes: region.bytes,
                baked: region.main && settings.is_some(),
            })
            .collect(),
        parameters: parameters(workload),
        build_seconds: 0.0,
        cpu,
        seconds,
        operation: workload.operation(),
        operations: workload.operations(),
        ns_per_operation: seconds * 1e9 / workload.operations() as f64,
        checksum: format!("{:016x}", workload.checksum()),
        complete,
        bake: baked,
    })
}

/// Keeps this thread on the CPU where it is, or on another where the helper is on that one: the scheduler would put
/// both on one for seconds. Gives the CPU.
fn stay(baker: Option<&Baker>) -> Result<u32, Failure> {
    let refused = |e: rustix::io::Errno| Failure::bad(format_args!("this thread can't be kept on a CPU: {e}"));
    let mut helper = None;
    let end = Instant::now() + HELPER_BEGINS;
    while let Some(baker) = baker {
        helper = usize::try_from(baker.stats().cpu).ok();
        if helper.is_some() || Instant::now() > end {
            break; // a helper on any CPU says none
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let others = allowed_cpus().map_err(refused)?.into_iter().filter(|&cpu| Some(cpu) != helper);
    let here = current_cpu();
    let cpu = if Some(here) == helper { others.min().unwrap_or(here) } else { here };
    bind_to(&[cpu]).map_err(refused)?;
    Ok(cpu as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_are_not_there_are_named() {
        assert_eq!(shortage(Pages::Base, Some(0), 1 << 30), None);
        assert_eq!(shortage(Pages::Thp, Some(1 << 30), 1 << 30), None);
        assert_eq!(shortage(Pages::Thp, None, 1 << 30), None);
        let line = shortage(Pages::Thp, Some(1 << 29), 1 << 30).expect("half of them are missing");
        assert!(line.contains("512") && line.contains('1'), "{line}");
    }
}
