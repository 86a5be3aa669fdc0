//! A program run plainly, without a recorder, to see where its memory lies.

use std::ffi::OsString;
use std::sync::Arc;

use lookaside_capture::plain_run::{Aslr, PlainRun, PlainRunMaps};
use lookaside_capture::{CaptureError, ChildEnd, ProgramControl};
use lookaside_techniques::lock::layout::{RecordedLayout, RegionLayout, Runner};
use lookaside_techniques::lock::regions::RegionMatching;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;

/// Runs it to its end, or until a signal ends it.
pub fn run(command: &[OsString], interrupt: &Interrupt) -> Result<PlainRunMaps, Failure> {
    let run = Arc::new(PlainRun::start(command, Aslr::Off, |_| ())?);
    interrupt.watch(Arc::new(NativeControl(Arc::clone(&run))), true);
    let maps = run.wait();
    interrupt.unwatch();
    Ok(maps?)
}

/// How its memory goes with that of the recorded run, and which process that was; the exit code by its end. What is to
/// be said of it goes to the remarks.
pub fn mapping(
    recorded: &RecordedLayout,
    maps: PlainRunMaps,
    remarks: &mut Vec<String>,
) -> (u8, Option<(u32, RegionMatching)>) {
    let (code, remark) = ended(maps.end);
    remarks.extend(maps.notes.into_iter().chain(remark));
    let runner = if maps.emulated { Runner::Qemu } else { Runner::Native };
    let native = RegionLayout::new(maps.exit, runner, maps.entry_stack);
    (code, recorded.process().map(|process| (process, RegionMatching::new(&recorded.layout(), &native))))
}

/// What its end says: exit code, and a line where it was not as it should be.
fn ended(end: ChildEnd) -> (u8, Option<String>) {
    match end {
        ChildEnd::Code(0) | ChildEnd::Detached => (0, None),
        ChildEnd::Code(status) => (NOT_CLEAN, Some(format!("the plain run ended with exit code {status}"))),
        ChildEnd::Signal(signal) => (NOT_CLEAN, Some(format!("the plain run was ended by signal {signal}"))),
    }
}

struct NativeControl(Arc<PlainRun>);

impl ProgramControl for NativeControl {
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        self.0.wait().map(|maps| maps.end)
    }
}
