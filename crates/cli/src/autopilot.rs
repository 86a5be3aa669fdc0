//! The `autopilot` command: trials for the processes that translation is likely to cost most, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{check_writable, print, write_file};
use lookaside_cli::say::say;
use lookaside_host::cpu_time;
use lookaside_runtime::bake::Surveyed;
use lookaside_runtime::trial::{
    self, Autopilot, AutopilotLimits, Journal, TrialError, TrialLever, TrialMetric, TrialReport, TrialRequest,
};
use lookaside_views::autopilot::{line, metrics};

use crate::args::autopilot::AutopilotArgs;
use crate::bake::metrics_server::MetricsServer;
use crate::clock_sampler::ClockSampler;
use crate::trial::marks::DebugRegisters;
use crate::undo::left_over;

/// So often it looks for processes.
const LOOK: Duration = Duration::from_secs(5);
/// How soon an interruption is heeded.
const STEP: Duration = Duration::from_millis(50);
/// Processes whose last trial is told; of more the first are forgotten.
const MOST_REPORTS: usize = 1000;

/// Goes on until it is interrupted, or, with `--once`, until nobody is left to try.
pub fn run(args: &AutopilotArgs) -> Result<u8, Failure> {
    if let Some(path) = &args.metrics {
        check_writable(path)?;
    }
    let journal = Journal::open()?;
    left_over(&journal).iter().for_each(say);
    let served = args.listen.as_deref().map(MetricsServer::start).transpose()?;
    if let Some(served) = &served {
        say(format_args!("metrics: http://{}/", served.address()));
    }
    let interrupt = Interrupt::install()?;
    let mut pilot = Pilot { args, journal, served, reports: Vec::new(), autopilot: Autopilot::new(limits(args)) };
    pilot.publish()?;
    // Of the first look nobody's use of the CPU is known.
    pilot.autopilot.next_process()?;
    loop {
        if !wait(LOOK.max(pilot.autopilot.pause(used_cpu())), &interrupt) {
            return Ok(interrupt.code());
        }
        match pilot.autopilot.next_process()? {
            Some(process) => pilot.one(&process, &interrupt)?,
            None if args.once => return Ok(0),
            None => {}
        }
        pilot.publish()?;
    }
}

fn limits(args: &AutopilotArgs) -> AutopilotLimits {
    AutopilotLimits {
        comms: args.comm.clone(),
        least_cpus: args.least_cpu / 100.0,
        least_small_bytes: args.least_memory << 20,
        least_age: args.least_age,
        cpu_share: args.cpu / 100.0,
        stall_share: args.stall / 100.0,
        memory_bytes: args.memory << 20,
        again: args.again,
    }
}

/// CPU time of this command.
fn used_cpu() -> Duration {
    cpu_time(std::process::id()).unwrap_or_default()
}

/// Waits; `false`: it was interrupted.
fn wait(time: Duration, interrupt: &Interrupt) -> bool {
    let end = Instant::now() + time;
    while !interrupt.asked() && Instant::now() < end {
        std::thread::sleep(STEP);
    }
    !interrupt.asked()
}

/// What is kept from trial to trial.
struct Pilot<'a> {
    args: &'a AutopilotArgs,
    journal: Journal,
    served: Option<MetricsServer>,
    reports: Vec<TrialReport>,
    autopilot: Autopilot,
}

impl Pilot<'_> {
    /// Tries on one process, and says what was decided and why.
    fn one(&mut self, process: &Surveyed, interrupt: &Interrupt) -> Result<(), Failure> {
        let tried = self.try_on(process, interrupt);
        self.autopilot.tried(process, tried.as_ref().ok());
        let why = tried.as_ref().map_err(ToString::to_string);
        print(&format!("{}\n", line(process, why.as_ref().map(|report| *report).map_err(String::as_str))))?;
        if let Ok(report) = tried {
            self.reports.retain(|other| other.processes != report.processes);
            self.reports.push(report);
            let excess = self.reports.len().saturating_sub(MOST_REPORTS);
            self.reports.drain(..excess);
        }
        Ok(())
    }

    fn try_on(&self, process: &Surveyed, interrupt: &Interrupt) -> Result<TrialReport, TrialError> {
        let args = self.args;
        let request = TrialRequest {
            pids: vec![process.pid],
            lever: TrialLever::HugePages {
                budget: args.budget as usize,
                memory_bytes: self.autopilot.memory_left(),
                by: None,
                plan: None,
            },
            metric: TrialMetric::Auto,
            time: args.time,
            look: Duration::from_secs(5),
            phase: args.phase,
            settle: args.phase / 10,
            precision: 0.01,
            most_stall: args.max_stall,
            only_measure: false,
            seed: u64::from(process.pid),
            sampler: Arc::new(ClockSampler),
            marks: Arc::new(DebugRegisters),
            stop: &|| interrupt.asked(),
            progress: &|_| {},
        };
        request.check()?;
        trial::run(&request, &self.journal)
    }

    fn publish(&self) -> Result<(), Failure> {
        if self.args.metrics.is_none() && self.served.is_none() {
            return Ok(());
        }
        let text = metrics(&self.reports, self.autopilot.totals(), used_cpu().as_secs_f64());
        if let Some(served) = &self.served {
            served.publish(text.clone())?;
        }
        self.args.metrics.as_deref().map_or(Ok(()), |path| write_file(path, &text))
    }
}
