//! Programs that record themselves: their compiler calls our recorder (`compiled/` in the source tree) at each access.

mod compiler;
mod recorder;

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use lookaside_trace::{Granularity, Source, WindowedSource};

use crate::error::CaptureError;
use crate::launch::{self, LaunchedProgram, RecorderPipe};
use crate::recording::Recording;
use crate::request::{RecordRequest, RecorderBackend};
use crate::wire::{self, SharedSlots, WireReader};

pub use compiler::{recording_compiler, RecordingCompiler};

/// Starts the program, which writes into our pipe.
pub(crate) fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let refused = |reason: String| CaptureError::Backend { backend: "compiled", reason };
    let (command, program) = launch::check(request, "compiled")?;
    let name = command[0].to_string_lossy();
    if !program.records_itself {
        return Err(refused(format!("{name} was not built to record itself; build it with lookaside cc")));
    }
    if program.privileged {
        return Err(refused(format!("{name} is setuid or setgid, and then takes no orders; use --backend sample")));
    }
    let no_memory = |source| CaptureError::Io { what: "making memory for records".into(), source };
    let pipe = RecorderPipe::new()?;
    let shared = SharedSlots::new().map_err(no_memory)?;
    let mut recorded = Command::new(&command[0]);
    // Windows are kept on our side, of a stream that has every visit to a page. Code is not read by call-outs.
    let window = Some(request.filter_window).filter(|its| its.pages > 0 && request.granularity == Granularity::Page);
    let filter_log2_classes = if window.is_some() { 0 } else { request.filter_log2_classes };
    let request = RecordRequest { fetches: false, filter_log2_classes, ..request.clone() };
    recorded.args(&command[1..]).env("LOOKASIDE_COMPILED", options(&request, &pipe.writer, shared.file())?);
    let (reader, child) = pipe.spawn(recorded, &[shared.file()])?;

    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let info = wire::info(&request, "compiled", words);
    let mut source = WireReader::new(File::from(reader), info, request.filter_unified);
    source.share(shared);
    let notes = vec![
        "recorded: the loads and stores of code that lookaside cc compiled. Not recorded: libraries, the kernel, \
                      registers saved on the stack, instruction fetches, the number of instructions"
            .into(),
    ];
    let executable = program.elf.canonicalize().unwrap_or(program.elf);
    let control = LaunchedProgram::new(child, source.processes(), vec![executable], vec![]);
    let source: Box<dyn Source + Send> = match window {
        Some(window) => Box::new(WindowedSource::new(source, window, request.filter_unified)),
        None => Box::new(source),
    };
    Ok(Recording { source, control: Box::new(control), backend: RecorderBackend::Compiled, notes })
}

/// What `compiled/threads.c` reads. The files' numbers have ten digits: the program may write others there.
fn options(request: &RecordRequest, pipe: &OwnedFd, memory: &OwnedFd) -> Result<String, CaptureError> {
    let file = |file: &OwnedFd| match rustix::fs::fstat(file) {
        Ok(stat) => Ok(format!("{:010},{}", file.as_raw_fd(), stat.st_ino)),
        Err(error) => Err(CaptureError::Io { what: "looking at a pipe".into(), source: error.into() }),
    };
    let unit_shift = match request.granularity {
        Granularity::Byte => 0,
        Granularity::Line => 6,
        Granularity::Page => 12,
    };
    let classes = request.filter_log2_classes;
    let apart = u8::from(request.filter_stores_apart && !request.filter_unified);
    Ok(format!("{},{},{unit_shift},{classes},{apart}", file(pipe)?, file(memory)?))
}
