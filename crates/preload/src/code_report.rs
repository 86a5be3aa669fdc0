//! The line of JSON that says what was done to a process's code ([`lookaside_runtime::hugepages::ProcessCode`]).

use std::ffi::CStr;
use std::fmt::{self, Write};

use lookaside_runtime::hugepages::{CodeObstacle, WINDOW_BYTES};

use crate::maps::Span;
use crate::sys::{self, Errno};

/// Ranges that a line has room for.
const MOST_MOVED: usize = 32;

/// What was done so far.
#[derive(Debug, Default)]
pub(crate) struct CodeReport {
    pub(crate) windows: u32,
    pub(crate) by_file: u32,
    pub(crate) by_copy: u32,
    pub(crate) code_bytes: u64,
    pub(crate) nanos: u64,
    obstacle: Option<CodeObstacle>,
    errno: i32,
    moved: [Option<Span>; MOST_MOVED],
}

impl CodeReport {
    /// Something stands in the way; the first such counts.
    pub(crate) fn obstacle(&mut self, obstacle: CodeObstacle, errno: Errno) {
        if self.obstacle.is_none() {
            (self.obstacle, self.errno) = (Some(obstacle), errno.into_raw());
        }
    }

    /// There is a copy now.
    pub(crate) fn moved(&mut self, span: Span) {
        let last = self.moved.iter_mut().flatten().find(|last| last.end == span.start);
        if let Some(last) = last {
            last.end = span.end;
        } else if let Some(free) = self.moved.iter_mut().find(|moved| moved.is_none()) {
            *free = Some(span);
        }
    }

    /// Writes the line at the end of a file that exists, as one piece.
    pub(crate) fn write(&self, file: &CStr, buffer: &mut [u8]) {
        let mut name = [0; 64];
        let name = sys::read_file(libc::AT_FDCWD, c"/proc/self/comm", &mut name).unwrap_or_default();
        let mut line = FixedText { bytes: buffer, length: 0 };
        if self.put(sys::pid(), name, &mut line).is_err() {
            return;
        }
        if let Ok(file) = sys::open(libc::AT_FDCWD, file, libc::O_WRONLY | libc::O_APPEND) {
            // A full disk costs the report.
            let _ = sys::write(file, line.bytes.get(..line.length).unwrap_or_default());
            sys::close(file);
        }
    }

    fn put(&self, pid: i32, name: &[u8], line: &mut impl Write) -> fmt::Result {
        write!(line, "{{\"pid\":{pid},\"program\":\"")?;
        for &byte in name.trim_ascii_end() {
            let plain = byte.is_ascii_graphic() && byte != b'"' && byte != b'\\' || byte == b' ';
            line.write_char(if plain { byte as char } else { '?' })?;
        }
        let outside = self.code_bytes.saturating_sub(u64::from(self.windows).saturating_mul(WINDOW_BYTES));
        write!(
            line,
            "\",\"windows\":{},\"by_file\":{},\"by_copy\":{},\"code_bytes\":{},\"outside_bytes\":{outside},\
             \"nanos\":{},\"obstacle\":",
            self.windows, self.by_file, self.by_copy, self.code_bytes, self.nanos
        )?;
        match self.obstacle {
            Some(obstacle) => write!(line, "\"{}\"", obstacle.name())?,
            None => line.write_str("null")?,
        }
        write!(line, ",\"errno\":{},\"moved\":[", self.errno)?;
        for (at, span) in self.moved.iter().flatten().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(line, "{comma}[{},{}]", span.start, span.end.wrapping_sub(span.start))?;
        }
        line.write_str("]}\n")
    }
}

/// Text in a buffer; what does not fit is an error.
struct FixedText<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Write for FixedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.checked_add(text.len()).ok_or(fmt::Error)?;
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::hugepages::ProcessCode;

    use super::*;

    #[test]
    fn the_line_is_what_the_command_reads() {
        let mut report =
            CodeReport { windows: 3, by_file: 1, by_copy: 2, code_bytes: 7 << 20, nanos: 5, ..CodeReport::default() };
        report.moved(Span { start: 2 << 20, end: 4 << 20 });
        report.moved(Span { start: 4 << 20, end: 6 << 20 });
        report.moved(Span { start: 8 << 20, end: 10 << 20 });
        report.obstacle(CodeObstacle::NotCollapsed, Errno::EINVAL);
        report.obstacle(CodeObstacle::Threads, Errno::new(0));
        let mut text = String::new();
        report.put(7, b"my \"x\"\n", &mut text).expect("text has room");
        let read: ProcessCode = serde_json::from_str(&text).expect("JSON");
        let expected = ProcessCode {
            pid: 7,
            program: "my ?x?".into(),
            windows: 3,
            by_file: 1,
            by_copy: 2,
            code_bytes: 7 << 20,
            outside_bytes: 1 << 20,
            nanos: 5,
            obstacle: Some(CodeObstacle::NotCollapsed),
            errno: libc::EINVAL,
            moved: vec![(2 << 20, 4 << 20), (8 << 20, 2 << 20)],
        };
        assert_eq!(read, expected);
        text.clear();
        CodeReport::default().put(7, b"\xff", &mut text).expect("text has room");
        let none: ProcessCode = serde_json::from_str(&text).expect("JSON");
        assert_eq!((none.obstacle, none.made(), none.moved.len(), &*none.program), (None, 0, 0, "?"));
    }

    #[test]
    fn a_line_that_does_not_fit_is_none() {
        let mut bytes = [0; 40];
        let mut line = FixedText { bytes: &mut bytes, length: 0 };
        assert!(CodeReport::default().put(7, b"x", &mut line).is_err());
        let moved = (0..99).map(|n| Span { start: n << 22, end: (n << 22) + (2 << 20) });
        let mut report = CodeReport::default();
        moved.for_each(|span| report.moved(span));
        assert_eq!(report.moved.iter().flatten().count(), MOST_MOVED);
    }
}
