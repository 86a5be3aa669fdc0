//! What `lock plan` and `hugepages plan` read: a trace, or a program that is recorded now.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use lookaside_capture::{ChildEnd, ProgramControl, RecordRequest, RecordTarget, RecorderBackend};
use lookaside_engine::{Filter, Setup};
use lookaside_techniques::lock::layout::{RecordedLayout, Runner};
use lookaside_techniques::plan::Coverage;
use lookaside_trace::{Block, Granularity, Source};

use crate::recording::backend;
use crate::symbol_names::SymbolNames;
use lookaside_cli::exit::{Failure, BROKE_OFF, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{short_count, spinner, spinner_unless};

/// Where the blocks come from.
pub struct PlanInput {
    pub source: Box<dyn Source + Send>,
    pub control: Option<Arc<dyn ProgramControl>>,
    pub command: Vec<String>,
    /// Who runs the program, if one is run.
    pub runner: Option<Runner>,
    pub remarks: Vec<String>,
}

/// Opens the trace, else starts the program, whose recorder may leave out what `filter` says; Ctrl-C ends it then.
pub fn open(
    trace: Option<&Path>,
    command: &[OsString],
    setup: &Setup,
    filter: Filter,
    interrupt: &Interrupt,
) -> Result<PlanInput, Failure> {
    if let Some(path) = trace {
        let source = lookaside_trace::open(&path.to_string_lossy())?;
        let remarks = Filter::check(source.info(), setup).err().into_iter().collect();
        return Ok(PlanInput {
            source,
            control: None,
            command: vec![path.display().to_string()],
            runner: None,
            remarks,
        });
    }
    let target = RecordTarget::Command(command.to_vec());
    let backend = backend::choose(&target, None, true, false)?;
    let runner = match backend {
        Some(RecorderBackend::Qemu) => Runner::Qemu,
        _ => Runner::Valgrind,
    };
    let recording = lookaside_capture::start(&RecordRequest {
        target,
        backend,
        granularity: Granularity::Page,
        filter_log2_classes: filter.log2_classes,
        filter_window: filter.window,
        filter_stores_apart: filter.stores_apart,
        filter_unified: filter.unified,
        fetches: true,
        waits: false,
        sample_hz: 0,
        intervals: None,
    })?;
    let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let control: Arc<dyn ProgramControl> = Arc::from(recording.control);
    interrupt.watch(Arc::clone(&control), true);
    Ok(PlanInput {
        source: recording.source,
        control: Some(control),
        command,
        runner: Some(runner),
        remarks: recording.notes,
    })
}

/// Learns names and the layout of memory while the input is read, and shows progress.
pub struct InputWatch {
    /// Names of what lies at an address.
    pub names: SymbolNames,
    /// Where the memory of a recorded program lies, if a plain run is to be held against it.
    pub layout: Option<RecordedLayout>,
    bar: ProgressBar,
    accesses: u64,
}

impl InputWatch {
    pub fn new(input: &PlanInput, native: bool) -> Self {
        let layout = input.runner.filter(|_| native).map(|runner| RecordedLayout::new(runner, Granularity::Page));
        Self {
            names: SymbolNames::new(),
            layout,
            bar: spinner_unless("modelling", input.runner.is_some()),
            accesses: 0,
        }
    }

    /// Learns from a block.
    pub fn see(&mut self, block: &Block) {
        self.names.observe(block);
        if let Some(layout) = &mut self.layout {
            layout.observe(block);
        }
        self.accesses += block.accesses();
        self.bar.set_message(format!("{} accesses", short_count(self.accesses)));
    }

    /// All is read, the program has ended, and a choice is made now; gives a bar for that.
    pub fn choosing(&self) -> ProgressBar {
        self.bar.finish_and_clear();
        spinner("choosing")
    }
}

/// Says what was not as it should be of the input and of its program's end (`None` = it was a trace); the exit code.
pub fn clean(coverage: &mut Coverage, end: Option<ChildEnd>) -> u8 {
    let Coverage { remarks, damage, error } = coverage;
    let mut code = 0;
    for damage in damage {
        let to = damage.offset + damage.len;
        remarks.push(format!("bytes {}–{to} were left out: {}", damage.offset, damage.reason));
        code = NOT_CLEAN;
    }
    match end {
        Some(ChildEnd::Code(status)) if status != 0 => {
            remarks.push(format!("the program ended with exit code {status}"));
            code = NOT_CLEAN;
        }
        Some(ChildEnd::Signal(signal)) => {
            remarks.push(format!("the program was ended by signal {signal}"));
            code = NOT_CLEAN;
        }
        _ => {}
    }
    if let Some(e) = error {
        remarks.push(format!("covers only the part before this: {e}"));
        code = if end.is_some() { BROKE_OFF } else { NOT_CLEAN };
    }
    code
}
