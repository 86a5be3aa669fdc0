//! `lookaside analyze`: record or read, model, name, report.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lookaside_capture::{inspect_program, ChildEnd, ProgramControl, ProgramIsa, RecordRequest, RecordTarget};
use lookaside_engine::{curve, Filter, Outcome, Setup};
use lookaside_probe::HeldFrames;
use lookaside_techniques::huge_gain::HugeGain;
use lookaside_techniques::hugepages::mosaic::{MosaicWindow, RecordedMemory};
use lookaside_techniques::sampled::SampleTally;
use lookaside_techniques::{
    names, remedies, Analysis, ChildExit, HeatMap, IntervalEstimate, Profile, ProfiledVisits, Seeing, WantedRemedies,
};
use lookaside_trace::{Block, Granularity, Source, TraceInfo};
use lookaside_views::analysis::view;
use lookaside_views::json;

use crate::args::analyze::AnalyzeArgs;
use crate::recording::backend;
use crate::setups::{self, ChosenSetup};
use crate::symbol_names::SymbolNames;
use advice_watch::{watch_advice, AdvisedAreas};
use asked_memory::AskedMemory;
use input::SecondInput;
use lookaside_cli::exit::{Failure, BROKE_OFF, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{self, short_count, spinner, spinner_unless};
use measure::Measured;
use native::NativeTiming;
use watched::Watched;

mod advice_watch;
mod asked_memory;
mod frame_watch;
mod input;
mod measure;
mod mosaic;
mod native;
mod watched;

/// Runs the command; the exit code is the program's own.
pub fn run(args: &AnalyzeArgs) -> Result<u8, Failure> {
    let mut setups = setups::setups(&args.machine)?;
    if setups.len() > 1 {
        return Err(Failure::bad("--machine: analyze models one machine; simulate takes several"));
    }
    let Some(ChosenSetup { setup, reason: machine_reason, is_guess }) = setups.pop() else {
        return Err(Failure::bad("--machine: none given"));
    };
    args.output.check()?;
    match (args.intervals.named(), args.exact, &args.trace) {
        (Some(name), true, _) => {
            let line = format!("--exact: intervals are not the whole run; drop it, or {name}");
            return Err(Failure::bad(line));
        }
        (Some(name), _, Some(_)) => return Err(Failure::bad(format!("{name}: a trace is recorded already; drop it"))),
        _ => {}
    }
    let mut measure = args.measure.map(|wanted| measure::plan(args, wanted)).transpose()?;
    let in_intervals = args.trace.is_none() && args.intervals.are_wanted(args.backend.map(Into::into));
    let once = args.once || in_intervals;
    let interrupt = Interrupt::install()?;
    let had_input = SecondInput::may_hold_something();
    let second = if once { SecondInput::Nothing } else { second_input(args)? };
    let mut held = if once || args.command.is_empty() { HeldFrames::none() } else { HeldFrames::hold() };
    let mut input = open(args, &setup)?;
    second.let_go().map_err(|e| Failure::bad(format_args!("standard input: {e}")))?;
    if let Some(control) = &input.control {
        interrupt.watch(Arc::clone(control), !args.command.is_empty());
        if let Some(seconds) = args.seconds {
            let control = Arc::clone(control);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_secs(seconds));
                control.stop();
            });
        }
    }
    let names = SymbolNames::new();
    let info = input.source.info().clone();
    let mut notes = input.notes;
    if is_guess && setup.machine.page_table.host.is_none() && setups::is_virtual() {
        notes.push(
            "this is a virtual machine, where a walk has two stages; the preset has one. \
             --set page_table.host.format=x86-64-4level --set page_table.host.page_size=2M models both"
                .into(),
        );
    }
    let mut analysis = Analysis {
        version: env!("CARGO_PKG_VERSION").into(),
        command: input.command,
        seeing: Seeing::Exact {
            recorder: info.recorder.clone(),
            granularity: info.granularity,
            window: info.filter_window,
        },
        machine: setup.machine.clone(),
        machine_reason,
        os: setup.os.clone(),
        seed: setup.seed,
        outcome: Outcome::default(),
        intervals: None,
        curve: None,
        objects: Vec::new(),
        regions: Vec::new(),
        functions: Vec::new(),
        remedies: Vec::new(),
        huge_gain: HugeGain::default(),
        native: None,
        replay: None,
        waiting_share: None,
        heat: HeatMap::default(),
        child_exit: None,
        complete: true,
        notes,
        left_out: Vec::new(),
    };
    let mosaic = args.measure.is_some_and(|measure| measure.mosaic);
    let is_command = !args.command.is_empty();
    let (broke_off, visits) = if info.sample_period_ns > 0 {
        held = HeldFrames::none(); // there is no replay
        if mosaic {
            analysis.notes.push("mosaic: can't tell: samples don't say what a window costs; --exact does".into());
        }
        (sampled(&mut *input.source, is_command, &info, &names, &mut analysis), None)
    } else {
        let native = !once && args.trace.is_none();
        let remedies = WantedRemedies { what_if: args.what_if, exact: args.exact_what_ifs, seed: args.machine.seed };
        let wanted = Wanted { program_runs: is_command, native, remedies, mosaic };
        // A thread that can't be started sees nothing, and what the program asks for by itself is not in the
        // prediction.
        let advice = input.control.as_ref().and_then(|control| watch_advice(control.pid()).ok());
        let seen = exact(&mut *input.source, &setup, &names, &interrupt, &mut analysis, wanted, || {
            interrupt.unwatch();
            advice.and_then(Watched::end).unwrap_or_default()
        })?;
        if let (Some(plan), true) = (&mut measure, mosaic) {
            plan.add_mosaics(seen.windows, args.machine.seed);
        }
        (seen.broke_off, seen.visits)
    };
    interrupt.unwatch();
    if interrupt.asked() {
        analysis.complete = false;
        analysis.notes.insert(0, "interrupted: the report covers the run up to then".into());
    }
    let code = match &input.control {
        Some(control) => child_code(&**control, &mut analysis)?,
        None => interrupt.code(), // of a trace, that is all there is to say
    };
    analysis.notes.extend(input.control.iter().flat_map(|control| control.remarks()));
    let timing = match visits {
        _ if args.trace.is_some() => NativeTiming::without("a trace has no run time"),
        _ if in_intervals => {
            NativeTiming::without("intervals tell what translation costs in the model, not in seconds")
        }
        _ if args.once => NativeTiming::without("the program ran under the recorder only (--once)"),
        // A process that runs already can't be recorded exactly.
        None if args.command.is_empty() => NativeTiming::without("samples show time, not TLB misses"),
        None => NativeTiming::without("samples show time, not TLB misses; --exact counts them"),
        // Some systems would run it all the same, in an emulator: that is no time of its own.
        Some(_) if inspect_program(&args.command)?.isa != ProgramIsa::Native => {
            NativeTiming::without("the program is for another processor")
        }
        Some(_) if broke_off || !analysis.complete => {
            NativeTiming::without("the recording stopped before the program ended")
        }
        Some(visits) => {
            let (end, notes) = (analysis.child_exit, &mut analysis.notes);
            NativeTiming::run(&args.command, second, (&visits, held), end, &interrupt, notes)
        }
    };
    timing.tell(&mut analysis);
    let mut measured = Measured::default();
    if let Some(plan) = &measure {
        if code == 0 && !broke_off && !interrupt.asked() {
            measured = plan.run(&interrupt, had_input, &analysis.outcome, &mut analysis.notes);
        } else {
            analysis.notes.push("not measured: the analysed run failed or was cut short".into());
        }
    }
    analysis.huge_gain = HugeGain::new(&timing.evidence(&analysis, &setup), measured.gain);
    analysis.huge_gain.mosaic = measured.mosaic;
    let document = view(&analysis);
    let analysis = if args.full { analysis } else { analysis.without_rows() };
    args.output.write(&document, &json::render(&analysis), &output::style(args.top))?;
    if let Some(failure) = measured.failure {
        return Err(failure);
    }
    Ok(match (code, &input.control) {
        (0, Some(_)) if broke_off => BROKE_OFF,
        (0, None) if !analysis.complete => NOT_CLEAN,
        _ => code,
    })
}

/// Where the blocks come from.
struct AnalyzeInput {
    source: Box<dyn Source + Send>,
    control: Option<Arc<dyn ProgramControl>>,
    command: Vec<String>,
    notes: Vec<String>,
}

fn open(args: &AnalyzeArgs, setup: &Setup) -> Result<AnalyzeInput, Failure> {
    if let Some(path) = &args.trace {
        let source = lookaside_trace::open(&path.to_string_lossy())?;
        let mut notes = Vec::new();
        if let Err(why) = Filter::check(source.info(), setup) {
            notes.push(why);
        }
        let command = vec![path.display().to_string()];
        return Ok(AnalyzeInput { source, control: None, command, notes });
    }
    let target = match (args.pid, &args.cgroup) {
        (Some(pid), _) => RecordTarget::Pid(pid),
        (None, Some(group)) => RecordTarget::Pids(members(group, args)?),
        (None, None) => RecordTarget::Command(args.command.clone()),
    };
    let (intervals, backend) = args.intervals.intervals(args.backend.map(Into::into))?;
    let backend = backend::choose(&target, backend, args.exact, args.yes)?;
    let filter = remedies::filter(setup);
    let request = RecordRequest {
        target,
        backend,
        granularity: args.granularity.into(),
        filter_log2_classes: filter.log2_classes,
        filter_window: filter.window,
        filter_stores_apart: filter.stores_apart,
        filter_unified: filter.unified,
        fetches: true,
        // For the timing, which needs the native run.
        waits: !args.once && intervals.is_none(),
        sample_hz: args.hz,
        intervals,
    };
    let command = match &request.target {
        RecordTarget::Command(words) => words.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
        RecordTarget::Pid(pid) => vec![format!("process {pid}")],
        RecordTarget::Pids(_) => {
            vec![format!("control group {}", args.cgroup.as_deref().unwrap_or(Path::new("")).display())]
        }
    };
    let (recording, why) = backend::start(request)?;
    Ok(AnalyzeInput {
        source: recording.source,
        control: Some(Arc::from(recording.control)),
        command,
        notes: why.into_iter().chain(recording.notes).collect(),
    })
}

/// The processes of a control group.
fn members(group: &Path, args: &AnalyzeArgs) -> Result<Vec<u32>, Failure> {
    if let Some(name) = args.intervals.named() {
        return Err(Failure::bad(format_args!("{name}: intervals are of one process; name it with --pid")));
    }
    let bad = |why: &dyn std::fmt::Display| {
        Failure::bad(format_args!("--cgroup: {why}; lookaside top --once --cgroups lists those with processes"))
    };
    let folder = lookaside_host::control_group_folder(group).map_err(|e| bad(&e))?;
    let mut pids = lookaside_host::control_group_processes(&folder).map_err(|e| bad(&e))?;
    pids.retain(|pid| *pid != std::process::id());
    match pids.is_empty() {
        true => Err(bad(&format_args!("{}: there is no process in it", folder.display()))),
        false => Ok(pids),
    }
}

/// What the program reads when it runs for the second time.
fn second_input(args: &AnalyzeArgs) -> Result<SecondInput, Failure> {
    match args.command.is_empty() {
        true => Ok(SecondInput::Nothing),
        false => SecondInput::prepare().map_err(|e| Failure::bad(format_args!("keeping standard input: {e}"))),
    }
}

/// What is wanted beside the counts.
#[derive(Clone, Copy)]
struct Wanted {
    /// The accesses come from a program that runs meanwhile.
    program_runs: bool,
    /// The visits for the timing.
    native: bool,
    /// What would help.
    remedies: WantedRemedies,
    /// The windows that mosaics are made of.
    mosaic: bool,
}

/// What was seen beside the counts.
struct SeenExactly {
    broke_off: bool,
    /// For the timing, if they are wanted.
    visits: Option<ProfiledVisits>,
    /// For mosaics, if they are wanted.
    windows: Vec<MosaicWindow>,
}

/// Models every access.
fn exact(
    source: &mut dyn Source,
    setup: &Setup,
    names: &SymbolNames,
    interrupt: &Interrupt,
    analysis: &mut Analysis,
    wanted: Wanted,
    recorded: impl FnOnce() -> AdvisedAreas,
) -> Result<SeenExactly, Failure> {
    let bar = spinner_unless("modelling", wanted.program_runs);
    let seen = Cell::new(0u64);
    let mut memory = wanted.mosaic.then(RecordedMemory::default);
    let mut watch = |block: &Block| {
        names.observe(block);
        if let Some(memory) = &mut memory {
            memory.run(block);
        }
        seen.set(seen.get() + block.accesses());
        bar.set_message(format!("{} accesses", short_count(seen.get())));
    };
    let mut profile = Profile::record(source, setup, &mut watch)?;
    let asked = AskedMemory::here(recorded());
    for damage in &profile.damage {
        analysis.complete = false;
        analysis.notes.push(format!(
            "bytes {}–{} of the stream were left out: {}",
            damage.offset,
            damage.offset + damage.len,
            damage.reason
        ));
    }
    if let Some(e) = &profile.error {
        analysis.complete = false;
        analysis.notes.push(format!("the recording broke off: {e}"));
    }
    let bits = setup.machine.page_table.format.address_bits();
    if profile.outcome.regions.iter().any(|r| bits < 64 && r.end > 1 << bits) {
        analysis.notes.push(format!(
            "the program uses addresses of more than the {bits} bits that this machine translates; the model drops \
             the upper bits, so mappings may collide"
        ));
    }
    if source.info().granularity == Granularity::Page && source.info().filter_window == 0 {
        analysis.notes.push(
            "page-granular: data caches see one line of each visit to a page, so walks may find their tables cached \
             more often than in truth; --granularity line models every line"
                .into(),
        );
    }
    bar.finish_and_clear();
    let bar = spinner("what would help");
    analysis.remedies = profile.remedies(setup, (names, wanted.remedies), interrupt.flag(), &mut analysis.notes)?;
    let visits = wanted
        .native
        .then(|| profile.visits(&|process, ip| names.place(process, ip), &|region| asked.holds(names, region)))
        .transpose()?;
    bar.set_prefix("naming");
    analysis.heat = profile.take_heat(names);
    analysis.regions = names::name_regions(&profile.outcome.regions, names);
    analysis.objects = names::name_objects(&profile.outcome.objects, names);
    analysis.functions = names::name_functions(&profile.outcome.instructions_rows, names);
    analysis.curve = Some(profile.curve);
    analysis.intervals = IntervalEstimate::of(&profile.outcome, &setup.machine);
    analysis.outcome = profile.outcome;
    let windows = memory.map_or_else(Vec::new, |memory| memory.windows(&analysis.outcome, names));
    bar.finish_and_clear();
    Ok(SeenExactly { broke_off: profile.error.is_some(), visits, windows })
}

/// Tallies samples. Tells whether the source broke off.
fn sampled(
    source: &mut dyn Source,
    program_runs: bool,
    info: &TraceInfo,
    names: &SymbolNames,
    analysis: &mut Analysis,
) -> bool {
    let bar = spinner_unless("sampling", program_runs);
    let mut tally = SampleTally::default();
    let mut block = Block::default();
    let error = loop {
        match source.next_block(&mut block) {
            Ok(true) => {
                names.observe(&block);
                tally.run(&block);
                bar.set_message(format!("{} samples", short_count(tally.samples())));
            }
            Ok(false) => break None,
            Err(e) => break Some(e),
        }
    };
    bar.finish_and_clear();
    analysis.seeing =
        Seeing::Sampled { period_ns: info.sample_period_ns, samples: tally.samples(), resolved: tally.resolved() };
    analysis.regions = tally.regions();
    analysis.functions = tally.functions(names);
    let weights = tally.page_weights();
    analysis.curve = (!weights.is_empty()).then(|| curve::estimate_from_samples(weights));
    if let Some(e) = &error {
        analysis.complete = false;
        analysis.notes.push(format!("the sampling broke off: {e}"));
    }
    error.is_some()
}

fn child_code(control: &dyn ProgramControl, analysis: &mut Analysis) -> Result<u8, Failure> {
    Ok(match control.wait()? {
        ChildEnd::Code(code) => {
            analysis.child_exit = Some(ChildExit::Code(code));
            (code & 0xff) as u8
        }
        ChildEnd::Signal(signal) => {
            analysis.child_exit = Some(ChildExit::Signal(signal));
            (128 + (signal & 0x7f)) as u8
        }
        ChildEnd::Detached => 0,
    })
}
