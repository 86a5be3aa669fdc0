//! The `workload` command: the programs that the papers run, timed, with or without a baker.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use lookaside_report::num::{bytes, grouped, rate, seconds, short};
use lookaside_report::{Cell, Column, Table};
use lookaside_runtime::bake::{BakeError, Baker, Region, Settings, Stats, Within};
use lookaside_workloads::{workload, Pages, Spec, Workload, WorkloadError, WORKLOADS};
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};
use serde::Serialize;

use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::memory::{available_bytes, huge_bytes};
use crate::output::{check_writable, print, print_json, spinner, style};

mod trace;

/// How long the helper may take until it is on its CPU.
const HELPER_BEGINS: Duration = Duration::from_millis(100);

/// The command's arguments.
#[derive(Args)]
pub struct WorkloadArgs {
    /// Its name, or `list`
    pub name: String,
    /// Bytes of all its arrays together: 512M, 8G (binary units)
    #[arg(long, short, default_value = "1G", value_name = "BYTES")]
    pub size: String,
    /// Seed of its input
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How often the main task is done
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub rounds: u64,
    /// Pages of its arrays
    #[arg(long, value_enum, default_value = "base")]
    pub pages: Kind,
    /// Keep the page-table entries of its main array warm meanwhile: auto[,cpu=auto][,share=0.5]; or prefetch, scan, load,
    /// mincore or module, with settings as prefetch:t0,stride=8,nops=0,sleep=500us,cpu=auto,share=1
    #[arg(long, value_name = "SETTINGS")]
    pub bake: Option<String>,
    /// Write the main task's accesses as a trace, for `simulate`, `analyze` and `plan`; nothing is timed
    #[arg(long, short = 'o', value_name = "FILE", conflicts_with_all = ["bake", "pages"])]
    pub record: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Base pages only
    Base,
    /// Transparent huge pages
    Thp,
    /// Neither asked for nor refused, as by most programs: for `compare`, `run --hugepages` and `hugepages --pid`
    #[value(name = "asis")]
    #[serde(rename = "asis")]
    AsIs,
}

/// What came out.
#[derive(Serialize)]
struct Outcome {
    workload: &'static str,
    asked_bytes: u64,
    seed: u64,
    rounds: u64,
    pages: Kind,
    /// `null`: the system does not say.
    huge_bytes: Option<u64>,
    regions: Vec<Memory>,
    parameters: Vec<Parameter>,
    build_seconds: f64,
    /// Where the main task ran.
    cpu: u32,
    /// Of the main task alone.
    seconds: f64,
    operation: &'static str,
    operations: u64,
    ns_per_operation: f64,
    /// Hexadecimal; of what is done so far.
    checksum: String,
    /// `false`: a signal ended it before its time.
    complete: bool,
    bake: Option<Baked>,
}

#[derive(Serialize)]
struct Memory {
    name: &'static str,
    bytes: u64,
    baked: bool,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct Baked {
    settings: String,
    stats: Stats,
    /// How it baked at the end of the main task.
    within: Within,
}

impl From<WorkloadError> for Failure {
    fn from(e: WorkloadError) -> Self {
        Self::bad(e)
    }
}

impl From<BakeError> for Failure {
    fn from(e: BakeError) -> Self {
        Self::bad(format_args!("--bake: {e}"))
    }
}

/// Builds, runs, prints. Exit code 1 where huge pages were asked for and are not there.
pub fn run(args: &WorkloadArgs) -> Result<u8, Failure> {
    if args.name == "list" {
        return match args.record {
            None => list(args.json),
            Some(_) => Err(Failure::bad("--record: list has no accesses; name a workload")),
        };
    }
    let spec = Spec {
        bytes: read_bytes(&args.size)?,
        seed: args.seed,
        rounds: args.rounds,
        pages: match args.pages {
            Kind::Base => Pages::Base,
            Kind::Thp => Pages::Thp,
            Kind::AsIs => Pages::AsIs,
        },
    };
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
        return trace::write(args, path, workload, interrupt);
    }
    let bar = spinner("running");
    let outcome = measure(args, &spec, settings, &mut *workload, &interrupt);
    bar.finish_and_clear();
    let outcome = Outcome { build_seconds, ..outcome? };
    if args.json {
        print_json(&outcome)?;
    } else {
        print(&text(&outcome))?;
    }
    if !outcome.complete {
        eprintln!("lookaside: interrupted: the values cover the task up to there");
        return Ok(interrupt.code());
    }
    let total: u64 = outcome.regions.iter().map(|region| region.bytes).sum();
    let Some(line) = shortage(args.pages, outcome.huge_bytes, total) else { return Ok(0) };
    // Who started this wants to know what it takes without, such as `compare` for its `base`.
    if rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false) {
        eprintln!("lookaside: {line}; they are switched off for this process (prctl)");
        return Ok(0);
    }
    eprintln!("lookaside: {line}");
    Ok(NOT_CLEAN)
}

/// What is missing of huge pages that were asked for.
fn shortage(pages: Kind, huge_bytes: Option<u64>, total: u64) -> Option<String> {
    let huge = huge_bytes.filter(|&huge| pages == Kind::Thp && huge < total / 10 * 9)?;
    Some(format!("--pages thp: the system gave huge pages for {} of {} only", bytes(huge), bytes(total)))
}

/// Algorithm 1 of the paper: the baker is started, the main task done, the baker stopped.
fn measure(
    args: &WorkloadArgs,
    spec: &Spec,
    settings: Option<Settings>,
    workload: &mut dyn Workload,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let main = workload.regions().iter().filter(|region| region.main);
    let main: Vec<Region> = main.map(|region| Region { start: region.start, len: region.bytes }).collect();
    let baker = settings.as_ref().map(|settings| Baker::start(settings, &main)).transpose()?;
    let cpu = stay(baker.as_ref())?;
    let begin = Instant::now();
    let complete = workload.run(interrupt.flag());
    let seconds = begin.elapsed().as_secs_f64();
    let baked = baker.zip(settings.as_ref()).map(|(baker, settings)| {
        // What it is doing while the program works: once stopped, it does nothing.
        let within = baker.within();
        Baked { settings: settings.to_string(), within, stats: baker.stop() }
    });
    Ok(Outcome {
        workload: workload.name(),
        asked_bytes: spec.bytes,
        seed: spec.seed,
        rounds: spec.rounds,
        pages: args.pages,
        huge_bytes: huge_bytes().ok(),
        regions: workload
            .regions()
            .iter()
            .map(|region| Memory { name: region.name, bytes: region.bytes, baked: region.main && settings.is_some() })
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

fn parameters(workload: &dyn Workload) -> Vec<Parameter> {
    workload.parameters().into_iter().map(|(name, count)| Parameter { name, count }).collect()
}

/// The first line: what it is, and how large its parts are.
fn title(name: &str, parameters: &[Parameter]) -> String {
    let parameters = parameters.iter().map(|p| format!("{} {}", grouped(p.count), p.name.replace('_', " ")));
    format!("{name}: {}\n", parameters.collect::<Vec<_>>().join(", "))
}

/// Keeps this thread on the CPU where it is, or on another where the helper is on that one: the scheduler would put both on one for
/// seconds. Gives the CPU.
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
    let allowed = sched_getaffinity(None).map_err(refused)?;
    let others = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu) && Some(cpu) != helper);
    let here = sched_getcpu();
    let cpu = if Some(here) == helper { others.min().unwrap_or(here) } else { here };
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).map_err(refused)?;
    Ok(cpu as u32)
}

fn text(outcome: &Outcome) -> String {
    let mut out = title(outcome.workload, &outcome.parameters);
    let regions = outcome.regions.iter().map(|r| format!("{} {}", r.name, bytes(r.bytes)));
    let pages = match outcome.pages {
        Kind::Base => "base pages".to_string(),
        Kind::Thp => "huge pages".to_string(),
        Kind::AsIs => match outcome.huge_bytes {
            Some(huge) => format!("pages as given, {} of huge ones", bytes(huge)),
            None => "pages as given".to_string(),
        },
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "memory: {} ({pages})", regions.collect::<Vec<_>>().join(", "));
    let _ = writeln!(out, "built in {}, seed {}", seconds(outcome.build_seconds), outcome.seed);
    let _ = writeln!(
        out,
        "{:.3} s of main task on CPU {}: operations {} ({}), {:.2} ns each; rounds {}",
        outcome.seconds,
        outcome.cpu,
        grouped(outcome.operations),
        outcome.operation,
        outcome.ns_per_operation,
        outcome.rounds
    );
    let _ = writeln!(out, "checksum {}", outcome.checksum);
    match &outcome.bake {
        None => out.push_str("not baked\n"),
        Some(Baked { settings, stats, within }) => {
            let names: Vec<&str> = outcome.regions.iter().filter(|r| r.baked).map(|r| r.name).collect();
            let cpu = match stats.cpu {
                -1 => "any CPU".to_string(),
                cpu => format!("CPU {cpu}"),
            };
            let each = match stats.touches {
                0 => String::new(),
                touches => format!(" of {} ns", rate(stats.busy_nanos as f64 / touches as f64)),
            };
            let _ = writeln!(
                out,
                "baked {} by {settings} on {cpu}: rounds {}, touches {}{each}, {:.0} % of the time",
                names.join(", "),
                grouped(stats.rounds),
                short(stats.touches as f64),
                stats.busy_nanos as f64 / stats.elapsed_nanos.max(1) as f64 * 100.0
            );
            if settings.starts_with("auto") {
                out += &judged(within);
            }
            if stats.failed_calls > 0 {
                let why = std::io::Error::from_raw_os_error(stats.last_errno);
                let _ = writeln!(out, "kernel calls that failed: {}, the last: {why}", grouped(stats.failed_calls));
            }
        }
    }
    out
}

/// What `auto` chose and sensed.
fn judged(within: &Within) -> String {
    let sensed = match (within.after_pause_nanos, within.right_after_nanos) {
        (Some(after), Some(right_after)) => {
            format!("a touch took {} ns after a pause, {} ns right after that", rate(after), rate(right_after))
        }
        _ => "too few rounds for a judgement".into(),
    };
    let pause = rate(within.pause_nanos as f64 / 1e3);
    format!("auto: by {}, at the end {}, pausing {pause} µs between rounds; {sensed}\n", within.backend, within.state)
}

/// A line for each workload.
fn list(json: bool) -> Result<u8, Failure> {
    if json {
        #[derive(Serialize)]
        struct Row {
            name: &'static str,
            what: &'static str,
            round: &'static str,
        }
        let rows = WORKLOADS.iter().map(|kind| Row { name: kind.name, what: kind.what, round: kind.round });
        print_json(&rows.collect::<Vec<_>>())?;
    } else {
        let mut table =
            Table::new([Column::left("workload"), Column::left("what").wrap(), Column::left("a round").wrap()]);
        for kind in WORKLOADS {
            table.row([kind.name, kind.what, kind.round].map(Cell::from));
        }
        print(&table.render(&style(None)))?;
    }
    Ok(0)
}

/// `8G`, `512M`, `64K` or a number of bytes.
fn read_bytes(text: &str) -> Result<u64, Failure> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.ok_or_else(|| Failure::bad(format_args!("--size {text}: write bytes as 8G, 512M or 65536")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_are_not_there_are_named() {
        assert_eq!(shortage(Kind::Base, Some(0), 1 << 30), None);
        assert_eq!(shortage(Kind::Thp, Some(1 << 30), 1 << 30), None);
        assert_eq!(shortage(Kind::Thp, None, 1 << 30), None);
        let line = shortage(Kind::Thp, Some(1 << 29), 1 << 30).expect("half of them are missing");
        assert!(line.contains("512") && line.contains('1'), "{line}");
    }

    #[test]
    fn sizes() {
        let read = |text: &str| read_bytes(text).ok();
        assert_eq!(read("8G"), Some(8 << 30));
        assert_eq!((read("512m"), read("3K"), read("17")), (Some(512 << 20), Some(3072), Some(17)));
        for bad in ["", "G", "1.5G", "-1", "1T", "99999999999G", "8Gi", "é"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
