//! `lookaside plan lock`: record or read, count, choose, report.

use std::sync::Arc;

use lookaside_capture::native::NativeMaps;
use lookaside_capture::{Backend, ChildEnd, Control, Request as Capture, Target};
use lookaside_engine::{Filter, Setup};
use lookaside_techniques::lock::layout::{Layout, Recorded, Runner};
use lookaside_techniques::lock::place::Place;
use lookaside_techniques::lock::plan::{plan, LockPlan, Request};
use lookaside_techniques::lock::profile::LockProfile;
use lookaside_techniques::lock::regions::Mapping;
use lookaside_techniques::lock::select::{Search, Selector};
use lookaside_techniques::lock::LockError;
use lookaside_trace::{Block, Granularity, Source};

use crate::analyze::SymbolNames;
use crate::args::plan::{Lock, SelectArg};
use crate::exit::{Failure, BROKE_OFF, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::output::{check_writable, print, print_json, short_count, spinner, style, write_file};
use crate::{install, machines, plain_run};

/// Runs the command. Exit code 1 where a part of the input could not be read or the program failed.
pub fn run(args: &Lock) -> Result<u8, Failure> {
    let setup = Setup::new(machines::find(&args.machine)?);
    let place = Place::find(&setup.machine, args.tlb.as_deref(), args.entries)?;
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let interrupt = Interrupt::install()?;
    // What cannot run plainly is known before it is recorded.
    let plain = args.native.then(|| plain_run::run(&args.command, &interrupt)).transpose()?;
    if interrupt.asked() {
        eprintln!("lookaside: interrupted: nothing was recorded");
        return Ok(interrupt.code());
    }
    let mut input = open(args, &setup)?;
    if let Some(control) = &input.control {
        interrupt.watch(Arc::clone(control), true);
    }
    let names = SymbolNames::new();
    let bar = spinner("modelling");
    let mut seen = 0u64;
    let mut layout = input.runner.filter(|_| args.native).map(|runner| Recorded::new(runner, Granularity::Page));
    let mut watch = |block: &Block| {
        names.observe(block);
        if let Some(layout) = &mut layout {
            layout.observe(block);
        }
        seen += block.accesses();
        bar.set_message(format!("{} accesses", short_count(seen)));
    };
    let mut profile = LockProfile::record(&mut *input.source, &setup, &place.tlb, &mut watch)?;
    let end = input.control.as_ref().map(|control| control.wait()).transpose()?;
    interrupt.unwatch();
    profile.remarks.append(&mut input.remarks);
    let mut code = clean(&mut profile, end);
    bar.set_prefix("choosing");
    bar.set_message("");
    let selector = args.select.into();
    let request = Request { place, selector, search: Search::default(), command: input.command };
    let mut found = match plan(&setup, &profile, &request, &names, interrupt.flag()) {
        Err(LockError::Stopped) => {
            bar.finish_and_clear();
            eprintln!("lookaside: {}; these have most misses of what was seen", LockError::Stopped);
            print(&lookaside_report::lock::render_counts(&profile.counts, &style(None)))?;
            return Ok(interrupt.code());
        }
        other => other?,
    };
    if let (Some(profiled), Some(maps)) = (&layout, plain) {
        code = code.max(find_natively(&mut found, profiled, maps));
    }
    bar.finish_and_clear();
    if let Some(path) = &args.output {
        write_file(path, &found.to_toml())?;
    }
    if args.json {
        print_json(&found)?;
    } else {
        print(&lookaside_report::lock::render(&found, &style(None)))?;
    }
    Ok(code)
}

/// Finds the plan's pages in the plain run; the exit code.
fn find_natively(plan: &mut LockPlan, profiled: &Recorded, maps: NativeMaps) -> u8 {
    let (code, remark) = plain_run::ended(maps.end);
    plan.remarks.extend(maps.notes.into_iter().chain(remark));
    let native = Layout::new(maps.exit, Runner::Native, maps.entry_stack);
    if let Some(process) = profiled.process() {
        plan.find_natively(process, &Mapping::new(&profiled.layout(), &native));
    }
    code
}

/// Says what was not as it should be; the exit code.
fn clean(profile: &mut LockProfile, end: Option<ChildEnd>) -> u8 {
    let mut code = 0;
    for damage in &profile.damage {
        let to = damage.offset + damage.len;
        profile.remarks.push(format!("bytes {}–{to} were left out: {}", damage.offset, damage.reason));
        code = NOT_CLEAN;
    }
    match end {
        Some(ChildEnd::Code(status)) if status != 0 => {
            profile.remarks.push(format!("the program ended with exit code {status}"));
            code = NOT_CLEAN;
        }
        Some(ChildEnd::Signal(signal)) => {
            profile.remarks.push(format!("the program was ended by signal {signal}"));
            code = NOT_CLEAN;
        }
        _ => {}
    }
    if let Some(e) = &profile.error {
        profile.remarks.push(format!("covers the part before this only: {e}"));
        code = if end.is_some() { BROKE_OFF } else { NOT_CLEAN };
    }
    code
}

/// Where the blocks come from.
struct Input {
    source: Box<dyn Source + Send>,
    control: Option<Arc<dyn Control>>,
    command: Vec<String>,
    /// Who runs the program, if one is run.
    runner: Option<Runner>,
    remarks: Vec<String>,
}

fn open(args: &Lock, setup: &Setup) -> Result<Input, Failure> {
    if let Some(path) = &args.trace {
        let source = lookaside_trace::open(&path.to_string_lossy())?;
        let remarks = Filter::check(source.info(), setup).err().into_iter().collect();
        return Ok(Input { source, control: None, command: vec![path.display().to_string()], runner: None, remarks });
    }
    let target = Target::Command(args.command.clone());
    let backend = install::backend(&target, None, true, false)?;
    let runner = match backend {
        Some(Backend::Qemu) => Runner::Qemu,
        _ => Runner::Valgrind,
    };
    let filter = Filter::exact_for(std::slice::from_ref(setup));
    let recording = lookaside_capture::start(&Capture {
        target,
        backend,
        granularity: Granularity::Page,
        filter_log2_classes: filter.log2_classes,
        filter_window: filter.window,
        filter_stores_apart: filter.stores_apart,
        filter_unified: filter.unified,
        fetches: true,
        sample_hz: 0,
    })?;
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let control: Arc<dyn Control> = Arc::from(recording.control);
    Ok(Input {
        source: recording.source,
        control: Some(control),
        command,
        runner: Some(runner),
        remarks: recording.notes,
    })
}

impl From<SelectArg> for Selector {
    fn from(arg: SelectArg) -> Self {
        match arg {
            SelectArg::Accesses => Self::Accesses,
            SelectArg::Misses => Self::Misses,
            SelectArg::Gain => Self::Gain,
            SelectArg::Worst => Self::Worst,
        }
    }
}
