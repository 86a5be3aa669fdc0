//! Formats of one access a line.

use std::collections::VecDeque;

use super::input::Input;
use super::parser::{ImportedColumns, ParsedItem, Parser};
use crate::damage::DamageLog;
use crate::{Kind, TraceError, TraceInfo, BLOCK_ACCESSES};

/// Longest line that is taken; a longer one is damage. Far above any real one (paths take 4 KiB at most; our own text
/// form may have a whole call stack in a line).
const LONGEST: usize = 1 << 20;
/// After this many bad lines the input is held to be of another format if there are more bad lines than good ones.
const PATIENCE: u64 = 1000;

/// A format of lines.
pub(crate) trait LineParser: Send {
    /// What a good line looks like, for errors.
    const EXPECTED: &'static str;

    /// Appends what the line says; `Ok(false)`: the line is known to say nothing of memory. The line is trimmed at its
    /// end and not empty.
    fn line(&mut self, line: &[u8], items: &mut VecDeque<ParsedItem>) -> Result<bool, String>;

    /// As [`Parser::columns`].
    fn columns(&self) -> ImportedColumns;

    /// As [`Parser::describe`].
    fn describe(&self, info: &mut TraceInfo);
}

/// Feeds lines to a [`LineParser`].
pub(crate) struct LineFeeder<L> {
    parser: L,
    line: Vec<u8>,
    /// Number of the line, from 1, and its offset.
    number: u64,
    offset: u64,
    good: u64,
    bad: u64,
    /// Number and reason.
    first_bad: Option<(u64, String)>,
}

impl<L: LineParser> LineFeeder<L> {
    pub(crate) fn new(parser: L) -> Self {
        LineFeeder { parser, line: Vec::new(), number: 0, offset: 0, good: 0, bad: 0, first_bad: None }
    }

    /// Reads a line into `self.line` without its end; gives its whole length, 0 at the input's end.
    fn read_line(&mut self, input: &mut Input) -> Result<u64, TraceError> {
        self.line.clear();
        let mut len = 0;
        loop {
            let bytes = input.fill_buf()?;
            let end = bytes.iter().position(|&b| b == b'\n');
            let n = end.map_or(bytes.len(), |i| i + 1);
            let room = (LONGEST + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..n.min(room)]);
            len += n as u64;
            input.consume(n);
            if end.is_some() || n == 0 {
                return Ok(len);
            }
        }
    }

    fn refuse(&mut self, what: &str, len: u64, why: &str, damage: &mut DamageLog) -> Result<(), TraceError> {
        let shown: String = String::from_utf8_lossy(&self.line).chars().take(60).collect();
        let reason = format!("{why}: `{}`", shown.escape_debug());
        damage.push(self.offset, len, &format!("line {}: {reason}", self.number));
        self.bad += 1;
        self.first_bad.get_or_insert((self.number, reason));
        match self.bad >= PATIENCE && self.bad > self.good {
            true => Err(self.not_this_format(what)),
            false => Ok(()),
        }
    }

    fn not_this_format(&self, what: &str) -> TraceError {
        let (line, reason) = match &self.first_bad {
            Some((line, reason)) => (*line, reason.as_str()),
            None => (self.number.max(1), "no access up to here"),
        };
        let (place, reason) = (format!("line {line}"), format!("{reason}; expected {}", L::EXPECTED));
        TraceError::Format { what: what.into(), place, reason }
    }
}

impl<L: LineParser> Parser for LineFeeder<L> {
    fn parse(
        &mut self,
        input: &mut Input,
        items: &mut VecDeque<ParsedItem>,
        damage: &mut DamageLog,
    ) -> Result<bool, TraceError> {
        let enough = items.len() + BLOCK_ACCESSES;
        while items.len() < enough {
            let len = self.read_line(input)?;
            if len == 0 {
                input.note_fault(self.offset, damage);
                return match self.good {
                    0 => Err(self.not_this_format(&input.what)),
                    _ => Ok(false),
                };
            }
            self.number += 1;
            while matches!(self.line.last(), Some(b'\n' | b'\r' | b' ' | b'\t')) {
                self.line.pop();
            }
            if self.line.len() > LONGEST {
                self.refuse(&input.what, len, "longer than 1 MiB", damage)?;
            } else if !self.line.is_empty() {
                match self.parser.line(&self.line, items) {
                    Ok(says) => self.good += u64::from(says),
                    Err(why) => self.refuse(&input.what, len, &why, damage)?,
                }
            }
            self.offset += len;
        }
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        self.parser.columns()
    }

    fn describe(&self, info: &mut TraceInfo) {
        self.parser.describe(info);
    }
}

/// A hexadecimal number without `0x`.
pub(crate) fn hex(s: &[u8]) -> Option<u64> {
    if s.is_empty() || s.len() > 16 {
        return None;
    }
    s.iter().try_fold(0, |v, &b| Some(v << 4 | u64::from((b as char).to_digit(16)?)))
}

/// A decimal number.
pub(crate) fn decimal(s: &[u8]) -> Option<u64> {
    if s.is_empty() {
        return None;
    }
    s.iter().try_fold(0u64, |v, &b| v.checked_mul(10)?.checked_add(u64::from((b as char).to_digit(10)?)))
}

/// Hexadecimal after `0x`, else decimal.
pub(crate) fn number(s: &[u8]) -> Option<u64> {
    match s.strip_prefix(b"0x").or_else(|| s.strip_prefix(b"0X")) {
        Some(digits) => hex(digits),
        None => decimal(s),
    }
}

/// Bytes of an access; those of more than 255 count as 255.
pub(crate) fn size(s: &[u8]) -> Option<u8> {
    number(s).map(|n| n.min(255) as u8)
}

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t')).filter(|w| !w.is_empty())
}

/// An access's kind by any of its usual names.
pub(crate) fn kind(s: &[u8]) -> Option<Kind> {
    let name = s.to_ascii_lowercase();
    Some(match &name[..] {
        b"r" | b"l" | b"read" | b"load" | b"0" => Kind::Load,
        b"w" | b"s" | b"write" | b"store" | b"1" => Kind::Store,
        b"i" | b"f" | b"fetch" | b"ifetch" | b"instr" | b"2" => Kind::Fetch,
        _ => return None,
    })
}
