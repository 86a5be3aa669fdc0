//! Exact recording by our Valgrind tool (`valgrind/` in the source tree).

mod tool;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use lookaside_trace::{FilterWindow, Granularity};

use crate::error::CaptureError;
use crate::launch::{self, LaunchedProgram, RecorderPipe};
use crate::program::ProgramIsa;
use crate::recording::Recording;
use crate::request::{RecordRequest, RecorderBackend};
use crate::wire::{self, RecorderMessages, SharedSlots, WireReader};

/// What is missing for this backend, with the line that installs it; `None` = all is there.
pub(crate) fn missing() -> Option<String> {
    tool::find().err()
}

/// Starts the program under Valgrind.
pub(crate) fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let refused = |reason: String| CaptureError::Backend { backend: "valgrind", reason };
    let (command, program) = launch::check(request, "valgrind")?;
    let name = command[0].to_string_lossy();
    match program.isa {
        ProgramIsa::Native => {}
        ProgramIsa::Foreign(isa) => return Err(refused(format!("{name} is a program for {isa}; use --backend qemu"))),
        ProgramIsa::Unknown(machine) => return Err(refused(format!("{name} is a program for ELF machine {machine}"))),
    }
    if program.privileged {
        return Err(refused(format!("{name} is setuid or setgid, which Valgrind can't run; use --backend sample")));
    }
    let tool = tool::find().and_then(|install| install.build()).map_err(refused)?;
    let pipe = RecorderPipe::new()?;
    let no_memory = |source| CaptureError::Io { what: "making memory to share with Valgrind".into(), source };
    let shared = SharedSlots::new().map_err(no_memory)?;
    let messages = RecorderMessages::new().map_err(no_memory)?;
    let said = messages.file().map_err(no_memory)?;
    let inherited = [("wire", &pipe.writer), ("shared", shared.file()), ("messages", &said)];
    let recorder = recorder(request, command, &tool, &inherited)?;
    let (reader, child) = pipe.spawn(recorder, &[shared.file(), &said])?;

    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut info = wire::info(request, "valgrind", words);
    if let Some(window) = window(request) {
        info.filter_window = window.pages;
        info.filter_log2_classes = window.log2_classes;
        info.filter_class_pages = window.class_pages;
    }
    let mut source = WireReader::new(File::from(reader), info, request.filter_unified);
    source.share(shared);
    source.keep_messages(messages);
    let mut notes =
        vec!["Valgrind runs the threads one at a time; the kernel's accesses in system calls are not recorded"
            .to_string()];
    notes.extend(tool.unkept);
    if program.is_static {
        notes.push(format!("{name} is statically linked: its heap allocations can't be told apart"));
    }
    let control =
        LaunchedProgram::new(child, source.processes(), vec![tool.executable], tool.temporary.into_iter().collect());
    Ok(Recording { source: Box::new(source), control: Box::new(control), backend: RecorderBackend::Valgrind, notes })
}

/// The recorder's windows, if it has any.
fn window(request: &RecordRequest) -> Option<FilterWindow> {
    Some(request.filter_window).filter(|window| window.pages > 0 && request.granularity == Granularity::Page)
}

fn recorder(
    request: &RecordRequest,
    command: &[OsString],
    tool: &tool::ValgrindTool,
    inherited: &[(&str, &OwnedFd)],
) -> Result<Command, CaptureError> {
    let inode = |file: &OwnedFd| match rustix::fs::fstat(file) {
        Ok(stat) => Ok(stat.st_ino),
        Err(error) => Err(CaptureError::Io { what: "looking at a pipe".into(), source: error.into() }),
    };
    let granularity = match request.granularity {
        Granularity::Byte => "byte",
        Granularity::Line => "line",
        Granularity::Page => "page",
    };
    let switch = |name: &str, on: bool| format!("--{name}={}", if on { "yes" } else { "no" });
    let mut recorder = Command::new(&tool.valgrind);
    recorder
        .env("VALGRIND_LIB", &tool.folder)
        // Before all else: no options from the user's `.valgrindrc` and `VALGRIND_OPTS`, which are for other tools.
        .arg("--command-line-only=yes")
        .args(["--tool=lookaside", "-q", "--vgdb=no", "--trace-children=yes", "--default-suppressions=no"])
        // A handler that lets a faulting access through (a collector's barrier) has the registers go on as they were:
        // all are right at each access, not those alone that unwind the stack.
        .arg("--vex-iropt-register-updates=allregs-at-mem-access")
        // Until the tool has found the memory for messages.
        .arg("--log-file=/dev/null")
        .arg(format!("--granularity={granularity}"))
        .args(match window(request) {
            None => vec![format!("--classes={}", request.filter_log2_classes)],
            Some(window) => vec![
                format!("--classes={}", window.log2_classes),
                format!("--window={}", window.pages),
                format!("--class-pages={}", window.class_pages),
            ],
        })
        .arg(switch("stores-apart", request.filter_stores_apart))
        .arg(switch("unified", request.filter_unified))
        .arg(switch("fetches", request.fetches))
        .arg(switch("waits", request.waits));
    for (name, file) in inherited {
        recorder.arg(format!("--{name}-fd={}", file.as_raw_fd())).arg(format!("--{name}-inode={}", inode(file)?));
    }
    recorder.arg("--").args(command);
    Ok(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RecordTarget;

    #[test]
    fn windows_are_of_pages_and_not_empty() {
        for (pages, granularity, has) in [
            (1, Granularity::Page, true),
            (64, Granularity::Page, true),
            (0, Granularity::Page, false),
            (64, Granularity::Line, false),
            (64, Granularity::Byte, false),
            (0, Granularity::Byte, false),
        ] {
            let asked = FilterWindow { pages, log2_classes: 2, class_pages: 3 };
            let request =
                RecordRequest { granularity, filter_window: asked, ..RecordRequest::sampling(RecordTarget::Pid(1), 1) };
            assert_eq!(window(&request), has.then_some(asked), "{pages} {granularity:?}");
        }
    }
}
