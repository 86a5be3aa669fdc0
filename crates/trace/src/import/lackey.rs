//! Text of Valgrind's `--tool=lackey --trace-mem=yes`: `I  04016b80,3`, ` L 1ffefff,8`, ` S …`, ` M …`.

use std::collections::VecDeque;

use super::lines::{decimal, hex, size, LineParser};
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem};
use crate::{Kind, TraceInfo};

/// Lackey's lines. A modification (`M`) is a load and a store. Lackey says nothing of threads.
#[derive(Default)]
pub(crate) struct Lackey {
    pid: Option<u32>,
    ip: u64,
    command: Vec<String>,
}

impl Lackey {
    /// A line of Valgrind's own, `==pid== …` or `--pid-- …`.
    fn own_line(&mut self, rest: &[u8], mark: &[u8], items: &mut VecDeque<ParsedItem>) -> Option<()> {
        let end = rest.windows(2).position(|w| w == mark)?;
        let pid = u32::try_from(decimal(&rest[..end])?).ok()?;
        if self.pid.is_none() {
            self.pid = Some(pid);
            items.push_back(ParsedItem::Thread(pid, pid));
        }
        if let Some(command) = rest[end + 2..].strip_prefix(b" Command: ") {
            self.command = String::from_utf8_lossy(command).split_whitespace().map(str::to_string).collect();
        }
        Some(())
    }
}

impl LineParser for Lackey {
    const EXPECTED: &'static str = "lines of `valgrind --tool=lackey --trace-mem=yes` as ` L 1ffefff3a0,8`";

    fn line(&mut self, line: &[u8], items: &mut VecDeque<ParsedItem>) -> Result<bool, String> {
        let (kind, rest) = match line {
            [b'I', b' ', b' ', rest @ ..] => (Kind::Fetch, rest),
            [b' ', b'L', b' ', rest @ ..] => (Kind::Load, rest),
            [b' ', b'S', b' ', rest @ ..] => (Kind::Store, rest),
            [b' ', b'M', b' ', rest @ ..] => (Kind::Load, rest),
            // A superblock, with --trace-superblocks.
            [b'S', b'B', b' ', ..] => return Ok(false),
            [a @ (b'=' | b'-'), b, rest @ ..] if a == b && self.own_line(rest, &[*a, *a], items).is_some() => {
                return Ok(false)
            }
            _ => return Err("not a line of Lackey's".into()),
        };
        let comma = rest.iter().position(|&b| b == b',').ok_or("no comma")?;
        let addr = hex(&rest[..comma]).ok_or("no hexadecimal address")?;
        let size = size(&rest[comma + 1..]).ok_or("no size")?;
        if kind == Kind::Fetch {
            self.ip = addr;
        }
        let access = ImportedAccess { kind, addr, size, ip: self.ip, repeat: 0 };
        items.push_back(ParsedItem::Access(access));
        if line[1] == b'M' {
            items.push_back(ParsedItem::Access(ImportedAccess { kind: Kind::Store, ..access }));
        }
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: true, ip: true, repeat: false }
    }

    fn describe(&self, info: &mut TraceInfo) {
        info.recorder = "lackey-import".into();
        info.command = self.command.clone();
    }
}
