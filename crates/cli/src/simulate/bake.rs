//! `simulate --bake`: the trace with a baker's helper beside it, and without.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::time::Duration;

use lookaside_engine::Setup;
use lookaside_runtime::bake::{self as metal, BakeBackend, BakeError, Hint, Settings};
use lookaside_techniques::bake::{
    compare_baked, find_targets, BakeTargets, BakedProgram, HelperPlacement, ModelledBaker, ProgramFlow, TouchMethod,
};
use lookaside_views::bake_model::{view, BakeModel, Modelled};
use lookaside_views::json;

use super::input::{ended, open};
use crate::args::model::PagePolicyArg;
use crate::args::simulate::SimulateArgs;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{short_count, spinner, style};
use lookaside_cli::say::say;

/// A trace does not tell where addresses come from: each access waits for the one before, as in `simulate`, from the
/// first on.
const PROGRAM: BakedProgram<'_> = BakedProgram { warm_accesses: 0, flow: ProgramFlow::Chained };

/// What is asked for, if anything: read before anything is said of machines.
pub fn asked(args: &SimulateArgs) -> Result<Option<ModelledHelper>, Failure> {
    let Some(text) = &args.bake else { return Ok(None) };
    let helper = ModelledHelper::read(text).map_err(refused)?;
    if args.machine.pages != PagePolicyArg::Base {
        return Err(refused("huge pages are not baked; leave out --pages thp"));
    }
    if args.trace.as_os_str() == "-" {
        return Err(refused("the trace is read twice, which standard input can't be; name a file"));
    }
    Ok(Some(helper))
}

/// Finds what to bake, runs each machine over the trace without the helper and with it, prints both.
pub fn run(args: &SimulateArgs, helper: &ModelledHelper, setups: Vec<Setup>) -> Result<u8, Failure> {
    let trace = args.trace.to_string_lossy();
    let mut source = open(args, &setups)?;
    if source.info().window().is_some() {
        return Err(refused(format_args!(
            "{trace}: its recorder left out the accesses between two touches; record it with lookaside record"
        )));
    }
    let interrupt = Interrupt::install()?;
    let bar = spinner("looking for what to bake");
    let found = find_targets(&mut *source, || !interrupt.asked());
    bar.finish_and_clear();
    if interrupt.asked() {
        say("interrupted before anything was run");
        return Ok(interrupt.code());
    }
    let Some(found) = found else {
        return Err(refused(format_args!(
            "{trace}: the program touches less than 4 MiB in one place: nothing is baked"
        )));
    };
    let runs: Vec<(Setup, ModelledBaker)> = setups
        .into_iter()
        .map(|setup| {
            let baker = helper.baker(&found, &setup);
            (setup, baker)
        })
        .collect();
    let mut source = lookaside_trace::open(&trace)?;
    let bar = spinner("simulating");
    let ran = compare_baked(&runs, &mut *source, &PROGRAM, |accesses| {
        bar.set_message(format!("{} accesses", short_count(accesses)));
        if interrupt.asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    let ran = ran.map_err(refused)?;
    if found.threads > 1 {
        say(format_args!(
            "--bake: the trace has {} threads; the model runs them one after the other, and any of them may share \
             the helper's core",
            found.threads
        ));
    }
    let pairs = runs.iter().zip(&ran.pairs);
    let modelled = pairs.map(|((setup, _), pair)| Modelled::new(&setup.machine.name, &helper.settings, &found, pair));
    let model = BakeModel { machines: modelled.collect() };
    args.output.write(&view(&model.machines), &json::render(&model), &style(None))?;
    ended(args, &*source, ran.end, &interrupt)
}

fn refused(why: impl Display) -> Failure {
    Failure::bad(format_args!("--bake: {why}"))
}

/// What the settings mean in the model.
#[derive(Debug)]
pub struct ModelledHelper {
    settings: String,
    way: TouchMethod,
    stride_pages: u64,
    nops: u64,
    sleep: Duration,
    placement: HelperPlacement,
}

impl ModelledHelper {
    /// Reads them as `bake run` and `lab workload --bake` do; what the model does not have is refused.
    fn read(text: &str) -> Result<Self, String> {
        if text.split(',').next() == Some("auto") {
            return Err(
                "auto: chooses by measured times, which a model does not have; name a backend, such as prefetch".into(),
            );
        }
        let settings: Settings = text.parse().map_err(|e: BakeError| e.to_string())?;
        let (way, stride_pages) = match settings.backend {
            BakeBackend::Load => (TouchMethod::Load, settings.stride_pages),
            BakeBackend::Prefetch(Hint::T0) => (TouchMethod::Prefetch, settings.stride_pages),
            BakeBackend::Prefetch(_) => {
                return Err(format!(
                    "{}: the model's prefetches bring lines into all levels; take prefetch",
                    settings.backend
                ));
            }
            BakeBackend::Module => (TouchMethod::Entries, settings.stride_pages),
            // They read every entry.
            BakeBackend::Scan | BakeBackend::Mincore => (TouchMethod::Entries, 1),
        };
        let placement = match settings.placement {
            metal::Placement::Auto => HelperPlacement::OtherCore,
            metal::Placement::Sibling => HelperPlacement::SmtSibling,
            metal::Placement::Cpu(cpu) => {
                return Err(format!("cpu={cpu}: the model knows auto (another core) and sibling"));
            }
        };
        if settings.cpu_share != 1.0 {
            return Err(format!(
                "share={}: the model's helper has a CPU to itself; take sleep or nops",
                settings.cpu_share
            ));
        }
        Ok(Self {
            settings: settings.to_string(),
            way,
            stride_pages: stride_pages.into(),
            nops: settings.nops.into(),
            sleep: settings.sleep,
            placement,
        })
    }

    /// Beside the process that was found, on this machine.
    fn baker(&self, found: &BakeTargets, setup: &Setup) -> ModelledBaker {
        ModelledBaker {
            stride_pages: self.stride_pages,
            nops: self.nops,
            sleep_cycles: self.sleep.as_secs_f64() * 1e6 * setup.machine.clock_mhz,
            placement: self.placement,
            ..ModelledBaker::new(self.way, found.process, found.ranges())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_mean_on_the_metal() {
        let read =
            |text: &str| ModelledHelper::read(text).map(|h| (h.way, h.stride_pages, h.nops, h.sleep, h.placement));
        let micros = Duration::from_micros;
        assert_eq!(read("prefetch"), Ok((TouchMethod::Prefetch, 8, 0, micros(0), HelperPlacement::OtherCore)));
        assert_eq!(read("load,stride=2,nops=7"), Ok((TouchMethod::Load, 2, 7, micros(0), HelperPlacement::OtherCore)));
        let module = read("module,stride=16,sleep=500us,cpu=sibling");
        assert_eq!(module, Ok((TouchMethod::Entries, 16, 0, micros(500), HelperPlacement::SmtSibling)));
        assert_eq!(read("scan,sleep=1ms"), Ok((TouchMethod::Entries, 1, 0, micros(1000), HelperPlacement::OtherCore)));
        for (text, part) in [
            ("auto", "name a backend"),
            ("auto,share=0.5", "name a backend"),
            ("prefetch:t2", "take prefetch"),
            ("load,cpu=3", "sibling"),
            ("load,share=0.5", "sleep or nops"),
            ("warm", "no such backend"),
            ("scan,stride=8", "leave it out"),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.contains(part) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn sleep_is_in_the_machines_cycles() {
        let setup = Setup::new(lookaside_machine::preset("ryzen-5900x").expect("a preset"));
        let found = BakeTargets { process: 7, regions: Vec::new(), processes: 1, threads: 1 };
        let baker = ModelledHelper::read("module,sleep=100us").expect("settings").baker(&found, &setup);
        assert_eq!((baker.sleep_cycles, baker.process), (100.0 * setup.machine.clock_mhz, 7));
    }
}
