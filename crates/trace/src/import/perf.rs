//! `perf script` output of samples with data addresses (`perf mem record`, `perf record -d`), as
//! `ls 7066 [001] 12345.678901: 1 cpu/mem-loads/P: 7f00deadbeef … 401136 main+0x10 (/bin/ls)`.

use std::collections::VecDeque;

use super::lines::{decimal, hex, words, LineParser};
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem};
use crate::{Kind, TraceInfo};

/// perf's lines. Each access is a sample.
#[derive(Default)]
pub(crate) struct PerfScript {
    /// Samples with a time, their first and last time, and the sum of their periods where these are nanoseconds.
    samples: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    clock_periods_ns: u64,
}

/// `12345.678901:` in nanoseconds.
fn time(word: &[u8]) -> Option<u64> {
    let word = word.strip_suffix(b":")?;
    let dot = word.iter().position(|&b| b == b'.')?;
    let fraction = &word[dot + 1..];
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    decimal(&word[..dot])?.checked_mul(1_000_000_000)?.checked_add(decimal(fraction)? * scale)
}

/// `7066` or `7065/7066`: process and thread.
fn ids(word: &[u8]) -> Option<(u32, u32)> {
    let mut parts = word.split(|&b| b == b'/').map(|p| decimal(p).and_then(|v| u32::try_from(v).ok()));
    let process = parts.next()??;
    let thread = parts.next().unwrap_or(Some(process))?;
    parts.next().is_none().then_some((process, thread))
}

/// Place of the time among a line's words, if it looks like a sample.
fn time_at(words: &[&[u8]]) -> Option<(usize, u64)> {
    words.iter().enumerate().find_map(|(i, w)| Some((i, time(w)?)))
}

/// Whether the line looks like a sample's.
pub(crate) fn is_sample(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = words(line).collect();
    time_at(&words).is_some_and(|(at, _)| words[at + 1..].iter().any(|w| w.ends_with(b":")))
}

/// The sampled instruction: the word before the symbol, or the last word.
fn ip(words: &[&[u8]]) -> u64 {
    let is_symbol = |w: &[u8]| w == b"[unknown]" || w.starts_with(b"(") || w.windows(3).any(|w| w == b"+0x");
    let end = words.iter().position(|w| is_symbol(w)).unwrap_or(words.len());
    // A symbol without offset may stand between the address and the `(file)`.
    words[..end].iter().rev().take(2).find_map(|w| hex(w)).unwrap_or(0)
}

impl LineParser for PerfScript {
    const EXPECTED: &'static str =
        "lines of `perf script -F comm,pid,tid,time,period,event,addr,ip,sym` (record with `perf mem record` or `perf record -d`)";

    fn line(&mut self, line: &[u8], items: &mut VecDeque<ParsedItem>) -> Result<bool, String> {
        let words: Vec<&[u8]> = words(line).collect();
        if line.starts_with(b"#") {
            return Ok(false);
        }
        let Some((at, ns)) = time_at(&words) else {
            // Call chains: an indented address and a symbol.
            return match line[0] {
                b' ' | b'\t' if hex(words[0]).is_some() => Ok(false),
                _ => Err("no time as 12345.678901:".into()),
            };
        };
        let before = match at.checked_sub(1).map(|i| words[i]) {
            Some([b'[', .., b']']) => at.checked_sub(2).map(|i| words[i]),
            word => word,
        };
        let (process, thread) = before.and_then(ids).ok_or("no process before the time")?;
        let rest = &words[at + 1..];
        let event = rest.iter().position(|w| w.ends_with(b":")).ok_or("no event after the time")?;
        let addr = rest.get(event + 1).and_then(|w| hex(w)).ok_or("no address after the event")?;
        let name = rest[event].to_ascii_lowercase();
        let said = |word: &[u8]| line.windows(word.len()).any(|w| w == word);
        let store = name.windows(5).any(|w| w == b"store") || said(b"|OP STORE");
        if name.windows(5).any(|w| w == b"clock") {
            self.clock_periods_ns += event.checked_sub(1).and_then(|i| decimal(rest[i])).unwrap_or(0);
        }
        self.samples += 1;
        self.first_ns.get_or_insert(ns);
        self.last_ns = self.last_ns.max(ns);
        items.push_back(ParsedItem::Thread(process, thread));
        items.push_back(ParsedItem::Access(ImportedAccess {
            kind: if store { Kind::Store } else { Kind::Load },
            addr,
            size: 0,
            ip: ip(&rest[event + 2..]),
            repeat: 0,
        }));
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: false, ip: true, repeat: false }
    }

    /// The period is that of the clock event, else the mean distance in time of the first samples.
    fn describe(&self, info: &mut TraceInfo) {
        info.recorder = "perf-import".into();
        let span = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        info.sample_period_ns = match self.clock_periods_ns {
            0 => span / self.samples.saturating_sub(1).max(1),
            sum => sum / self.samples.max(1),
        }
        .max(1);
    }
}
