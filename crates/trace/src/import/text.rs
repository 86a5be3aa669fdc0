//! Plain text, and the form in which traces are shown: one access a line, `R 0x7ffc1000 8`.
//!
//! - `R ADDR [SIZE] [ip=ADDR] [x=REPEATS]`, `W …`, `I …`: load, store, fetch. Numbers are hexadecimal after `0x`, else
//!   decimal.
//! - `P PROCESS THREAD`: what follows is of this thread.
//! - `E {…}`: an event, as JSON. `T {…}`: what the trace says of itself, as JSON, before the first access.
//! - `# …`: nothing.

use std::collections::VecDeque;

use super::lines::{kind, number, size, words, LineParser};
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem};
use crate::text_event::TextEvent;
use crate::{TraceInfo, WindowEvent};

/// Plain text's lines.
#[derive(Default)]
pub(crate) struct Text {
    info: Option<TraceInfo>,
    begun: bool,
}

fn u32_of(word: &[u8]) -> Option<u32> {
    number(word)?.try_into().ok()
}

impl Text {
    fn access(&mut self, line: &[u8]) -> Result<ImportedAccess, String> {
        let mut words = words(line);
        let kind = words.next().and_then(kind).ok_or("begins with none of R, W, I")?;
        let addr = words.next().and_then(number).ok_or("no address as 0x7ffc1000")?;
        let mut access = ImportedAccess { kind, addr, size: 0, ip: 0, repeat: 0 };
        for word in words {
            let put = match word {
                [b'i', b'p', b'=', ip @ ..] => number(ip).map(|v| access.ip = v),
                [b'x', b'=', repeat @ ..] => u32_of(repeat).map(|v| access.repeat = v),
                _ => size(word).map(|v| access.size = v),
            };
            put.ok_or("a word after the address is neither a size nor ip=ADDR nor x=REPEATS")?;
        }
        Ok(access)
    }
}

impl LineParser for Text {
    const EXPECTED: &'static str = "lines as `R 0x7ffc1000 8`, `W 0x5000`, `I 0x401000 4`";

    fn line(&mut self, line: &[u8], items: &mut VecDeque<ParsedItem>) -> Result<bool, String> {
        match line {
            [b'#', ..] => return Ok(false),
            [b'P', b' ', rest @ ..] => {
                let mut ids = words(rest).map(u32_of);
                match (ids.next().flatten(), ids.next().flatten(), ids.next()) {
                    (Some(process), Some(thread), None) => items.push_back(ParsedItem::Thread(process, thread)),
                    _ => return Err("not a process and a thread".into()),
                }
            }
            [b'E', b' ', rest @ ..] => {
                let event = serde_json::from_slice(rest).map_err(|e| format!("not an event: {e}"))?;
                items.push_back(match event {
                    TextEvent::Leave { addr, kind, others, lines } => {
                        ParsedItem::OfWindow(WindowEvent::leave(0, addr, kind, others, lines))
                    }
                    TextEvent::Touch { addr, kind } => ParsedItem::OfWindow(WindowEvent::touch(0, addr, kind)),
                    TextEvent::Other(event) => ParsedItem::Event(event),
                });
            }
            [b'T', b' ', rest @ ..] if !self.begun => {
                self.info = Some(serde_json::from_slice(rest).map_err(|e| format!("not a description: {e}"))?);
            }
            _ => {
                items.push_back(ParsedItem::Access(self.access(line)?));
                self.begun = true;
            }
        }
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: true, ip: true, repeat: true }
    }

    fn describe(&self, info: &mut TraceInfo) {
        match &self.info {
            Some(said) => *info = said.clone(),
            None => info.recorder = "text-import".into(),
        }
    }
}
