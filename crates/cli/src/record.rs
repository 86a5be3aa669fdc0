//! `lookaside record`: a program's accesses into a trace file.

use std::path::Path;
use std::sync::Arc;

use lookaside_capture::{ChildEnd, Request, Target};
use lookaside_trace::{Block, Event, FilterWindow, TraceError, TraceWriter};

use crate::analyze::granularity;
use crate::args::Record;
use crate::exit::{Failure, BROKE_OFF};
use crate::install;
use crate::interrupt::Interrupt;
use crate::output::{check_writable, short_count, spinner};

/// Runs the command; the exit code is the program's own.
pub fn run(args: &Record) -> Result<u8, Failure> {
    let target = match args.pid {
        Some(pid) => Target::Pid(pid),
        None => Target::Command(args.command.clone()),
    };
    check_writable(&args.output)?;
    let backend = install::backend(&target, args.backend, false, args.yes)?;
    let interrupt = Interrupt::install()?;
    let recording = lookaside_capture::start(&Request {
        target,
        backend,
        granularity: granularity(args.granularity),
        filter_log2_classes: args.filter_log2_classes,
        filter_window: FilterWindow::default(),
        filter_stores_apart: args.filter_stores_apart,
        filter_unified: false,
        fetches: !args.no_fetches,
        sample_hz: args.hz,
    })?;
    for note in &recording.notes {
        eprintln!("lookaside: {note}");
    }
    let control: Arc<dyn lookaside_capture::Control> = Arc::from(recording.control);
    interrupt.watch(Arc::clone(&control), args.pid.is_none());
    let mut source = recording.source;
    let written = copy(&mut *source, &args.output);
    if written.is_err() {
        control.stop();
        while source.next_block(&mut Block::default()).unwrap_or(false) {} // so that it need not wait for us
    }
    let end = control.wait()?;
    interrupt.unwatch();
    let whole = written.map_err(|e| Failure {
        line: format!(
            "{e}; the recording broke off, and the program with it; what was recorded until then can be read"
        ),
        code: BROKE_OFF,
    })?;
    Ok(match end {
        ChildEnd::Code(0) | ChildEnd::Detached if !whole => BROKE_OFF,
        ChildEnd::Code(code) => (code & 0xff) as u8,
        ChildEnd::Signal(signal) => (128 + (signal & 0x7f)) as u8,
        ChildEnd::Detached => 0,
    })
}

/// Accesses left out of pages that earlier blocks recorded.
fn late_repeats(block: &Block) -> u64 {
    let late = block.events.iter().map(|(_, event)| match event {
        Event::Repeats { count, .. } => *count,
        _ => 0,
    });
    late.fold(0, u64::saturating_add)
}

/// Writes all blocks; `false` when the recording broke off (said on standard error). What was
/// recorded is in the file in any case.
pub fn copy(source: &mut dyn lookaside_trace::Source, output: &Path) -> Result<bool, TraceError> {
    let mut writer = TraceWriter::create(output, source.info())?;
    let bar = spinner("recording");
    let mut block = Block::default();
    let (mut accesses, mut recorded) = (0u64, 0u64);
    let mut whole = true;
    loop {
        match source.next_block(&mut block) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                eprintln!("lookaside: the recording broke off: {e}");
                whole = false;
                break;
            }
        }
        accesses += block.accesses() + late_repeats(&block);
        recorded += block.len() as u64;
        writer.write(&block)?;
        bar.set_message(format!("{} accesses", short_count(accesses)));
    }
    for damage in source.damage() {
        match damage.len {
            0 => eprintln!("lookaside: {}", damage.reason),
            len => eprintln!("lookaside: {len} bytes of the stream were left out: {}", damage.reason),
        }
        whole = false;
    }
    let bytes = writer.bytes();
    writer.finish()?;
    bar.finish_and_clear();
    eprintln!(
        "lookaside: {}: {} rows for {} accesses, {} bytes",
        output.display(),
        short_count(recorded),
        short_count(accesses),
        short_count(bytes)
    );
    Ok(whole)
}
