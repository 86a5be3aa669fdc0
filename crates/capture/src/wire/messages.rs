//! What the recorder itself has to say, in memory that all processes of the program inherit: it needs no file that a
//! process under another user could not open.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};

/// Bytes kept; what comes later is lost. The tool knows the memory by its size too (`valgrind/wire.c`).
const BYTES: usize = 1 << 16;

/// Messages of the recorder's processes, as Valgrind writes them: `==123== text`.
pub(crate) struct RecorderMessages(File);

impl RecorderMessages {
    /// No message yet.
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("lookaside-messages", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, BYTES as u64)?;
        // Writes beyond its end fail from now on: no pipe, whose writers wait or get a signal.
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Self(File::from(file)))
    }

    /// What the recorder inherits: its processes share the place where the next message goes.
    pub(crate) fn file(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// The first line of each process that has said something.
    pub(crate) fn first_lines(self) -> Vec<String> {
        let mut text = vec![0; BYTES];
        match self.0.read_exact_at(&mut text, 0) {
            Ok(()) => first_lines(&text),
            Err(_) => Vec::new(),
        }
    }
}

fn first_lines(text: &[u8]) -> Vec<String> {
    // Nothing was written where it is still zero.
    let text = String::from_utf8_lossy(text).replace('\0', "");
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let (process, words) = parted(line);
        if words.contains(char::is_alphabetic) && !first.contains_key(process) {
            first.insert(process, words.replace(char::is_control, "?"));
        }
    }
    // That a signal of its own ended the program is no fault of the recording.
    let own_end = |line: &String| line.starts_with("Process terminating with default action of signal");
    first.into_values().filter(|line| !own_end(line)).collect()
}

/// A line's process, and the rest.
fn parted(line: &str) -> (&str, &str) {
    let sign = |c: char| c == '=' || c == '-' || c == '*';
    let rest = line.trim_start_matches(sign);
    let process = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    (process, rest[process.len()..].trim_start_matches(sign).trim())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_process_has_its_first_line() {
        let text =
            "==12== \n==7== one \u{1b}[2Jword\n--12-- WARNING: unhandled\n==7== more\nvex: of no process\n==9== 1\n\
                    ==5== Process terminating with default action of signal 9 (SIGKILL)\n==5== at 0x1\n";
        assert_eq!(first_lines(text.as_bytes()), ["vex: of no process", "WARNING: unhandled", "one ?[2Jword"]);
        assert!(first_lines(b"").is_empty() && first_lines(b"==\xff\n====\n\n").is_empty());
    }

    #[test]
    fn what_is_too_much_is_lost() {
        let messages = RecorderMessages::new().unwrap();
        let mut writers = [(); 2].map(|()| File::from(messages.file().unwrap()));
        let line = b"==1== a message that is said again and again\n";
        writers[0].write_all(b"==2== another\n").unwrap();
        while writers[1].write_all(line).is_ok() {}
        assert!(writers[0].set_len(0).is_err() && writers[0].set_len(1 << 20).is_err());
        assert_eq!(messages.first_lines(), ["a message that is said again and again", "another"]);
        assert!(RecorderMessages::new().unwrap().first_lines().is_empty());
    }
}
