//! Traces for other tools.

use std::io::Write;

use crate::text_event::TextEvent;
use crate::{Block, Event, Granularity, Kind, Source, TraceError, TraceInfo};

/// What was written as ChampSim's records, and what they have no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChampSimLosses {
    /// Records (instructions) written.
    pub records: u64,
    /// Accesses written.
    pub accesses: u64,
    /// Events that could not be told.
    pub events: u64,
    /// Accesses to address 0, which means "none" there.
    pub zero_addresses: u64,
    /// Times that the stream changed from one thread to another, which is not told.
    pub thread_changes: u64,
}

impl ChampSimLosses {
    /// Whether the records tell all that the trace did.
    pub fn is_none(&self) -> bool {
        self.events == 0 && self.zero_addresses == 0 && self.thread_changes == 0
    }
}

/// Whether a trace has every access with its whole address, which ChampSim's records need: of what a filtered recording
/// keeps, a simulator would take a share for the whole. A trace may turn out later to have left out repeats;
/// [`write_champsim`] then stops.
///
/// # Errors
/// It has not; how to get one that has.
pub(crate) fn check_for_champsim(info: &TraceInfo) -> Result<(), TraceError> {
    if info.sample_period_ns != 0 {
        return Err(no_champsim("it holds clock samples, not every access; record with --backend valgrind"));
    }
    match info.granularity {
        Granularity::Byte => Ok(()),
        Granularity::Line | Granularity::Page => Err(no_champsim(LEFT_OUT)),
    }
}

/// What errors call a trace whose file is known elsewhere.
pub(crate) const TRACE: &str = "trace";
const LEFT_OUT: &str = "repeats of a page or line were left out of it; record with --granularity byte";

fn no_champsim(reason: &str) -> TraceError {
    let reason = format!("ChampSim's records need every access of the trace, but {reason}");
    TraceError::Format { what: TRACE.into(), place: "conversion".into(), reason }
}

/// Bytes of a record, and where addresses stand in it; see `import/champsim.rs`.
const RECORD: usize = 64;
const STORES: std::ops::Range<usize> = 2..4;
const LOADS: std::ops::Range<usize> = 4..8;

/// Writes a trace as ChampSim's 64-byte instructions: the accesses of an instruction (those after one another with the
/// same instruction address) in one record, up to four loads and then two stores. Branches and registers are not known
/// and left 0; losses are counted.
///
/// # Errors
/// Where accesses were left out of the trace or their addresses are not whole; where it can't be read or `out` can't be
/// written.
pub fn write_champsim(source: &mut dyn Source, out: &mut dyn Write) -> Result<ChampSimLosses, TraceError> {
    check_for_champsim(source.info())?;
    let mut losses = ChampSimLosses::default();
    let mut block = Block::default();
    let mut record = [0u64; RECORD / 8];
    let mut open = false;
    let mut thread = None;
    while source.next_block(&mut block)? {
        losses.events += (block.events.len() + block.window_events.len()) as u64;
        let left_out = |(_, event): &(u32, Event)| matches!(event, Event::Repeats { .. });
        if block.accesses() > block.len() as u64 || block.events.iter().any(left_out) {
            return Err(no_champsim(LEFT_OUT));
        }
        let now = (block.process, block.thread);
        losses.thread_changes += u64::from(thread.replace(now).is_some_and(|before| before != now));
        for (i, (&addr, &kind)) in block.addr.iter().zip(&block.kind).enumerate() {
            if addr == 0 {
                losses.zero_addresses += 1;
                continue;
            }
            let ip = match kind {
                Kind::Fetch => addr,
                _ => block.ip.get(i).copied().unwrap_or(0),
            };
            let free = |slots: std::ops::Range<usize>, record: &[u64]| slots.into_iter().find(|&s| record[s] == 0);
            let slot = match kind {
                Kind::Fetch => None,
                // After a store, a load belongs to a new record: a record's loads come first.
                Kind::Load if record[STORES.start] != 0 => None,
                Kind::Load => free(LOADS, &record),
                Kind::Store => free(STORES, &record),
            };
            let slot = match slot {
                Some(slot) if open && ip == record[0] => Some(slot),
                _ => {
                    if open {
                        write_record(&record, out)?;
                    }
                    losses.records += 1;
                    open = true;
                    record = [0; RECORD / 8];
                    record[0] = ip;
                    match kind {
                        Kind::Fetch => None,
                        Kind::Load => Some(LOADS.start),
                        Kind::Store => Some(STORES.start),
                    }
                }
            };
            if let Some(slot) = slot {
                record[slot] = addr;
            }
            losses.accesses += 1;
        }
    }
    if open {
        write_record(&record, out)?;
    }
    out.flush().map_err(io_error)?;
    Ok(losses)
}

fn write_record(record: &[u64; RECORD / 8], out: &mut dyn Write) -> Result<(), TraceError> {
    let mut bytes = [0; RECORD];
    for (to, v) in bytes.chunks_exact_mut(8).zip(record) {
        to.copy_from_slice(&v.to_le_bytes());
    }
    out.write_all(&bytes).map_err(io_error)
}

/// Writes a whole trace as text that [`crate::open`] reads back without loss. `limit`: at most so many accesses.
///
/// # Errors
/// Where the trace can't be read or `out` can't be written.
pub fn write_text(source: &mut dyn Source, limit: Option<u64>, out: &mut dyn Write) -> Result<(), TraceError> {
    let mut text = TextWriter::new(out, source.info())?;
    let mut block = Block::default();
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 && source.next_block(&mut block)? {
        let n = left.min(block.len() as u64);
        text.write(&block, n as usize)?;
        left -= n;
    }
    text.finish()
}

/// Writes blocks as lines of text.
pub struct TextWriter<'a> {
    out: &'a mut dyn Write,
    line: String,
    thread: Option<(u32, u32)>,
}

impl<'a> TextWriter<'a> {
    /// Writes what the trace says of itself.
    ///
    /// # Errors
    /// Where `out` can't be written.
    pub fn new(out: &'a mut dyn Write, info: &TraceInfo) -> Result<Self, TraceError> {
        let json = serde_json::to_string(info).map_err(|e| io_error(e.into()))?;
        writeln!(out, "T {json}").map_err(io_error)?;
        Ok(TextWriter { out, line: String::new(), thread: None })
    }

    /// Writes the first `accesses` of a block, and the events among them.
    ///
    /// # Errors
    /// Where the output can't be written.
    pub fn write(&mut self, block: &Block, accesses: usize) -> Result<(), TraceError> {
        use std::fmt::Write as _;
        self.line.clear();
        // Writing to a string can't fail.
        if self.thread.replace((block.process, block.thread)) != Some((block.process, block.thread)) {
            let _ = writeln!(self.line, "P {} {}", block.process, block.thread);
        }
        let n = accesses.min(block.len());
        let whole = n == block.len();
        let mut events = block.events.iter().peekable();
        let mut of_windows = block.window_events.iter().peekable();
        for i in 0..=n {
            while let Some(event) = of_windows.next_if(|event| event.at as usize == i && (i < n || whole)) {
                let json = serde_json::to_string(&TextEvent::from(event)).map_err(|e| io_error(e.into()))?;
                let _ = writeln!(self.line, "E {json}");
            }
            while let Some((_, event)) = events.next_if(|(pos, _)| *pos as usize == i && (i < n || whole)) {
                let json = serde_json::to_string(event).map_err(|e| io_error(e.into()))?;
                let _ = writeln!(self.line, "E {json}");
            }
            if i == n {
                break;
            }
            let kind = match block.kind[i] {
                Kind::Load => 'R',
                Kind::Store => 'W',
                Kind::Fetch => 'I',
            };
            let _ = write!(self.line, "{kind} {:#x}", block.addr[i]);
            if let Some(size) = block.size.get(i).filter(|&&s| s != 0) {
                let _ = write!(self.line, " {size}");
            }
            if let Some(ip) = block.ip.get(i).filter(|&&ip| ip != 0) {
                let _ = write!(self.line, " ip={ip:#x}");
            }
            if let Some(repeat) = block.repeat.get(i).filter(|&&r| r != 0) {
                let _ = write!(self.line, " x={repeat}");
            }
            self.line.push('\n');
        }
        self.out.write_all(self.line.as_bytes()).map_err(io_error)
    }

    /// Flushes.
    ///
    /// # Errors
    /// Where the output can't be written.
    pub fn finish(self) -> Result<(), TraceError> {
        self.out.flush().map_err(io_error)
    }
}

fn io_error(source: std::io::Error) -> TraceError {
    TraceError::Io { what: "output".into(), source }
}
