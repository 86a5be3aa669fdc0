//! What `lookaside trace info|check|convert|cat|head` do, as functions over plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::path::Path;

use lookaside_host::create_file;
use lookaside_stats::finalise;
use serde::{Deserialize, Serialize};

use crate::export::{check_for_champsim, write_champsim, write_text, ChampSimLosses, TRACE};
use crate::import::open_as;
use crate::native::OUTPUT;
use crate::{Block, Damage, Event, Format, Kind, NativeFile, Source, TraceError, TraceInfo, TraceWriter};

/// Distinct pages are counted exactly up to this many, then estimated: 8 MiB of page numbers.
const EXACT_PAGES: usize = 1 << 20;

/// What a trace holds. Counts named `recorded_` leave out the repeats that the recorder left out, the others count
/// them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Summary {
    /// What the trace says of itself.
    pub info: TraceInfo,
    /// Bytes of the file; 0 for standard input.
    pub file_bytes: u64,
    /// Accesses in the columns.
    pub recorded_accesses: u64,
    /// Loads in the columns.
    pub recorded_loads: u64,
    /// Stores in the columns.
    pub recorded_stores: u64,
    /// Instruction fetches in the columns.
    pub recorded_fetches: u64,
    /// Accesses that the recorder left out and counted, in columns and in `Event::Repeats`.
    pub left_out_repeats: u64,
    /// Bytes of the file per access in the columns.
    pub bytes_per_recorded_access: f64,
    /// Bytes of the file per access, left-out repeats counted.
    pub bytes_per_access: f64,
    /// Distinct 4 KiB pages over all processes.
    pub distinct_pages: u64,
    /// `false`: `distinct_pages` is an estimate (within some 1 %), as there are more than a million.
    pub distinct_pages_exact: bool,
    /// Processes in the stream.
    pub processes: u64,
    /// Threads (process and thread id) in the stream.
    pub threads: u64,
    /// Blocks of one thread that it came in.
    pub blocks: u64,
    /// Chunks of a native file; 0 for other formats.
    pub chunks: u64,
    /// Events by name.
    pub events: BTreeMap<String, u64>,
    /// Parts that could not be read.
    pub damage: Vec<Damage>,
}

/// Reads the whole trace at `path` and sums it up.
///
/// # Errors
/// Where it can't be opened or read.
pub fn summary(path: &str, format: Option<Format>) -> Result<Summary, TraceError> {
    let mut source = open_maybe(path, format)?;
    let mut s = Summary { info: source.info().clone(), ..Summary::default() };
    let mut block = Block::default();
    let mut pages = PageCounter::default();
    let mut threads = BTreeSet::new();
    while source.next_block(&mut block)? {
        s.blocks += 1;
        threads.insert((block.process, block.thread));
        s.recorded_accesses += block.len() as u64;
        let of = |kind| block.kind.iter().filter(|&&k| k == kind).count() as u64;
        s.recorded_loads += of(Kind::Load);
        s.recorded_stores += of(Kind::Store);
        s.recorded_fetches += of(Kind::Fetch);
        s.left_out_repeats += block.accesses() - block.len() as u64;
        block.addr.iter().for_each(|&a| pages.add(block.process, a >> 12));
        let leaves = block.window_events.iter().filter(|event| event.others().is_some()).count();
        for (name, count) in [("leave", leaves), ("touch", block.window_events.len() - leaves)] {
            if count > 0 {
                *s.events.entry(name.into()).or_default() += count as u64;
            }
        }
        for (_, event) in &block.events {
            *s.events.entry(event_name(event).into()).or_default() += 1;
            if let Event::Repeats { count, .. } = event {
                s.left_out_repeats = s.left_out_repeats.saturating_add(*count);
            }
        }
    }
    s.damage = source.damage().to_vec();
    s.processes = threads.iter().map(|t| t.0).collect::<BTreeSet<_>>().len() as u64;
    s.threads = threads.len() as u64;
    (s.distinct_pages, s.distinct_pages_exact) = pages.count();
    if path != "-" {
        s.file_bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        // Only a native file has chunks; whether it is one, opening it tells.
        s.chunks = NativeFile::open(path).map_or(0, |f| f.chunks().len() as u64);
    }
    if s.recorded_accesses > 0 {
        s.bytes_per_recorded_access = s.file_bytes as f64 / s.recorded_accesses as f64;
        let accesses = s.recorded_accesses.saturating_add(s.left_out_repeats);
        s.bytes_per_access = s.file_bytes as f64 / accesses as f64;
    }
    Ok(s)
}

fn open_maybe(path: &str, format: Option<Format>) -> Result<Box<dyn Source + Send>, TraceError> {
    match format {
        Some(format) => open_as(path, format),
        None => crate::open(path),
    }
}

/// Reads the whole trace at `path` and says which parts are damaged; none: it is whole.
///
/// # Errors
/// Where it can't be opened, or not be read further.
pub fn check(path: &str, format: Option<Format>) -> Result<Vec<Damage>, TraceError> {
    let mut source = open_maybe(path, format)?;
    let mut block = Block::default();
    while source.next_block(&mut block)? {}
    Ok(source.damage().to_vec())
}

/// Writes the trace at `path` as text, `limit` accesses at most; gives the parts that could not be read.
///
/// # Errors
/// Where it can't be read or `out` can't be written.
pub fn cat(
    path: &str,
    format: Option<Format>,
    limit: Option<u64>,
    out: &mut dyn Write,
) -> Result<Vec<Damage>, TraceError> {
    let mut source = open_maybe(path, format)?;
    write_text(&mut *source, limit, out)?;
    Ok(source.damage().to_vec())
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Parts of the input that could not be read.
    pub damage: Vec<Damage>,
    /// What the output's format has no room for, where that is ChampSim.
    pub champsim: Option<ChampSimLosses>,
}

/// Writes the trace at `from` to the file `to` (`-`: standard output) in another format: native, text or ChampSim.
///
/// # Errors
/// Where the input can't be read, the output can't be written or is not one of these formats; where accesses were left
/// out of what is to become ChampSim's: then no file is left. What was written of a native trace stays readable.
pub fn convert(from: &str, format: Option<Format>, to: &str, to_format: Format) -> Result<Converted, TraceError> {
    if !matches!(to_format, Format::Native | Format::Text | Format::ChampSim) {
        let reason = format!("traces are written as native, text or champsim, not as {}", to_format.name());
        return Err(TraceError::Format { what: to.into(), place: "format".into(), reason });
    }
    let mut source = open_maybe(from, format)?;
    let io_error = |source| TraceError::Io { what: to.into(), source };
    if to != "-" && from != "-" && same_file(from, to) {
        let reason = "is also the input; name another file".into();
        return Err(TraceError::Format { what: to.into(), place: "path".into(), reason });
    }
    let named = |e: TraceError| match e {
        TraceError::Format { what, place, reason } if what == TRACE => {
            TraceError::Format { what: from.into(), place, reason }
        }
        other => other,
    };
    // Before there is a file.
    if to_format == Format::ChampSim {
        check_for_champsim(source.info()).map_err(named)?;
    }
    let out: Box<dyn Write> = match to {
        "-" => Box::new(std::io::stdout().lock()),
        _ => Box::new(create_file(Path::new(to)).map_err(io_error)?),
    };
    let mut out = BufWriter::new(out);
    let champsim = match to_format {
        Format::Native => {
            if let Err(e) = write_native(&mut *source, &mut out) {
                return Err(match e {
                    TraceError::Io { what, source } if what == OUTPUT => io_error(source),
                    other => other,
                });
            }
            None
        }
        Format::ChampSim => match write_champsim(&mut *source, &mut out) {
            Ok(losses) => Some(losses),
            Err(e) => {
                // A part of the accesses is no conversion. Where it can't be removed, the error still says so.
                if to != "-" && std::fs::metadata(to).is_ok_and(|file| file.is_file()) {
                    let _ = std::fs::remove_file(to);
                }
                return Err(named(e));
            }
        },
        _ => {
            write_text(&mut *source, None, &mut out)?;
            None
        }
    };
    out.flush().map_err(io_error)?;
    Ok(Converted { damage: source.damage().to_vec(), champsim })
}

fn write_native(source: &mut dyn Source, out: &mut dyn Write) -> Result<(), TraceError> {
    let mut writer = TraceWriter::new(out, source.info())?;
    let mut block = Block::default();
    while source.next_block(&mut block)? {
        writer.write(&block)?;
    }
    writer.finish().map(drop)
}

fn same_file(a: &str, b: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()) && a.is_file(),
        _ => false,
    }
}

fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Map { .. } => "map",
        Event::Unmap { .. } => "unmap",
        Event::Remap { .. } => "remap",
        Event::Protect { .. } => "protect",
        Event::Advise { .. } => "advise",
        Event::Brk { .. } => "brk",
        Event::ThreadStart { .. } => "thread-start",
        Event::ThreadExit { .. } => "thread-exit",
        Event::Fork { .. } => "fork",
        Event::Exec { .. } => "exec",
        Event::ProcessExit { .. } => "process-exit",
        Event::ContextSwitch { .. } => "context-switch",
        Event::Migrate { .. } => "migrate",
        Event::Marker { .. } => "marker",
        Event::Site { .. } => "site",
        Event::Alloc { .. } => "alloc",
        Event::Free { .. } => "free",
        Event::Repeats { .. } => "repeats",
        Event::Waits { .. } => "waits",
        Event::Interval { .. } => "interval",
        Event::Counts => "counts",
        Event::Totals { .. } => "totals",
    }
}

/// Counts distinct pages by keeping the smallest hashes: all of them until there are too many, then the share of the
/// hash space that the kept ones span tells how many there are (k minimum values; Bar-Yossef et al., 2002).
#[derive(Default)]
struct PageCounter {
    hashes: BTreeSet<u64>,
    full: bool,
    last: u64,
}

impl PageCounter {
    fn add(&mut self, process: u32, page: u64) {
        // A bijection, so that distinct pages of a process have distinct hashes.
        let h = finalise(page ^ u64::from(process).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if std::mem::replace(&mut self.last, h) == h && !self.hashes.is_empty() {
            return;
        }
        if self.full && self.hashes.last().is_some_and(|&max| h >= max) {
            return;
        }
        if self.hashes.insert(h) && self.hashes.len() > EXACT_PAGES {
            self.hashes.pop_last();
            self.full = true;
        }
    }

    fn count(&self) -> (u64, bool) {
        match self.hashes.last() {
            Some(&max) if self.full => (((EXACT_PAGES - 1) as f64 * (u64::MAX as f64 / max as f64)) as u64, false),
            _ => (self.hashes.len() as u64, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_each_process_are_counted_once() {
        let mut counter = PageCounter::default();
        for _ in 0..2 {
            for (process, page) in [0, 5, 1 << 20].into_iter().flat_map(|process| (0..300).map(move |p| (process, p))) {
                counter.add(process, page);
                counter.add(process, page);
            }
            assert_eq!(counter.count(), (900, true));
        }
        let none = PageCounter::default();
        assert_eq!(none.count(), (0, true));
    }

    #[test]
    fn pages_are_estimated_from_one_more_than_a_million_on() {
        // The lowest hashes there are, so that each page comes after them.
        let mut counter = PageCounter { hashes: (0..EXACT_PAGES as u64 - 1).collect(), full: false, last: 0 };
        counter.add(1, 1);
        assert_eq!(counter.count(), (1 << 20, true));
        counter.add(1, 2);
        assert!(!counter.count().1 && counter.hashes.len() == 1 << 20);
        // So many less one in the lowest quarter are four times as many in all.
        let hashes = (0..EXACT_PAGES as u64 - 1).chain([1 << 62]).collect();
        let quarter = PageCounter { hashes, full: true, last: 0 };
        assert_eq!(quarter.count(), (((1 << 20) - 1) * 4, false));
    }
}
