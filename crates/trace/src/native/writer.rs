//! Writing a native trace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use lookaside_host::create_file;

use super::encode::ChunkEncoder;
use super::events::MAX_STREAM;
use super::file::{self, ChunkRef, NativeFile};
use super::frame::{trailer, FrameHeader, FrameKind, HEADER_LEN, MAX_PAYLOAD};
use crate::{Block, Event, MapSource, TraceError, TraceInfo};

/// Writes a native trace. Whole chunks are written at once, so what a killed writer leaves is
/// readable up to its last chunk.
///
/// ```
/// use lookaside_trace::{Block, Kind, NativeReader, Source, TraceInfo, TraceWriter};
/// let mut file = Vec::new();
/// let mut writer = TraceWriter::new(&mut file, &TraceInfo::default())?;
/// let mut block = Block { process: 7, thread: 7, ..Block::default() };
/// block.push(Kind::Load, 0x1000);
/// writer.write(&block)?;
/// writer.finish()?;
///
/// let mut reader = NativeReader::new(&file[..], "memory")?;
/// let mut back = Block::default();
/// assert!(reader.next_block(&mut back)?);
/// assert_eq!(back, block);
/// assert!(!reader.next_block(&mut back)?);
/// assert!(reader.damage().is_empty());
/// # Ok::<(), lookaside_trace::TraceError>(())
/// ```
pub struct TraceWriter<W: Write> {
    out: W,
    what: String,
    encoder: ChunkEncoder,
    has_windows: bool,
    payload: Vec<u8>,
    frame: Vec<u8>,
    info_json: Vec<u8>,
    /// Bytes of whole frames so far.
    offset: u64,
    seq: u32,
    /// Recorded accesses in written chunks.
    accesses: u64,
    chunks: Vec<ChunkRef>,
    state: WriterState,
    /// Takes a torn frame off the end after a failed write; `None` for streams.
    cut: Option<fn(&mut W, u64) -> io::Result<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriterState {
    Open,
    Failed,
    Finished,
}

impl TraceWriter<File> {
    /// Begins a new file at `path`; one that is there already is replaced.
    ///
    /// # Errors
    /// Where the file can't be made or written; where another user may have laid a link there ([`create_file`]).
    pub fn create(path: impl AsRef<Path>, info: &TraceInfo) -> Result<Self, TraceError> {
        let what = path.as_ref().display().to_string();
        let file = create_file(path.as_ref()).map_err(|e| io_error(&what, e))?;
        let mut writer = TraceWriter::unopened(file, what, info)?;
        writer.cut = Some(cut_file);
        writer.write_head()?;
        Ok(writer)
    }

    /// Continues the file at `path`: a torn last chunk and the closing index are taken off, all whole chunks stay.
    ///
    /// # Errors
    /// Where the file can't be read or written, or is not a native trace.
    pub fn append(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let what = path.as_ref().display().to_string();
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| io_error(&what, e))?;
        let scan = file::scan(Read::by_ref(&mut file), &what)?;
        let mut writer = TraceWriter::unopened(file, what, &scan.info)?;
        writer.cut = Some(cut_file);
        writer.offset = scan.end;
        writer.seq = scan.next_seq;
        writer.accesses = scan.accesses;
        writer.chunks = scan.chunks;
        cut_file(&mut writer.out, scan.end).map_err(|e| io_error(&writer.what, e))?;
        Ok(writer)
    }
}

/// What errors call a stream without a name.
pub(crate) const OUTPUT: &str = "output";

/// Shortens the file to `len` bytes and goes to its end.
fn cut_file(file: &mut File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    file.seek(SeekFrom::Start(len)).map(drop)
}

impl TraceWriter<File> {
    /// Opens for reading what was written in whole chunks.
    ///
    /// # Errors
    /// The system can't open the file twice.
    pub fn written(&self) -> Result<NativeFile, TraceError> {
        let file = self.out.try_clone().map_err(|e| io_error(&self.what, e))?;
        let info = serde_json::from_slice(&self.info_json)
            .map_err(|e| format_error(&self.what, "header", &format!("can't be understood: {e}")))?;
        Ok(NativeFile::written(file, self.what.clone(), info, self.chunks.clone()))
    }
}

impl<W: Write> TraceWriter<W> {
    /// Begins a new trace on a stream, which may be a pipe.
    ///
    /// # Errors
    /// Where the stream can't be written.
    pub fn new(out: W, info: &TraceInfo) -> Result<Self, TraceError> {
        let mut writer = TraceWriter::unopened(out, OUTPUT.into(), info)?;
        writer.write_head()?;
        Ok(writer)
    }

    fn unopened(out: W, what: String, info: &TraceInfo) -> Result<Self, TraceError> {
        let info_json =
            serde_json::to_vec(info).map_err(|e| format_error(&what, "header", &format!("can't be written: {e}")))?;
        if info_json.len() > MAX_STREAM {
            return Err(format_error(&what, "header", "the recorded command is longer than 8 MiB"));
        }
        let encoder = ChunkEncoder::new().map_err(|e| io_error(&what, e))?;
        Ok(TraceWriter {
            out,
            what,
            encoder,
            has_windows: info.filter_window > 0,
            payload: Vec::new(),
            frame: Vec::new(),
            info_json,
            offset: 0,
            seq: 0,
            accesses: 0,
            chunks: Vec::new(),
            state: WriterState::Open,
            cut: None,
        })
    }

    /// The header, twice: the second stands in for a damaged first.
    fn write_head(&mut self) -> Result<(), TraceError> {
        for _ in 0..2 {
            self.payload = self.info_json.clone();
            self.write_frame(FrameKind::Info, 0)?;
        }
        Ok(())
    }

    /// Appends a block.
    ///
    /// # Errors
    /// Where the output can't be written, as on a full disk: what was written before stays
    /// readable, and further calls fail. Where the block breaks [`Block`]'s rules: nothing of it is written.
    pub fn write(&mut self, block: &Block) -> Result<(), TraceError> {
        self.check_open()?;
        check_block(&self.what, block)?;
        if block.is_empty() {
            return Ok(());
        }
        let is_windowed = !self.has_windows || block.is_windowed();
        let mut events = block.events.iter().peekable();
        let mut of_windows = block.window_events.iter().peekable();
        let mut start = 0;
        loop {
            self.encoder.enter(block.process, block.thread, is_windowed);
            while let Some(event) = of_windows.next_if(|event| event.at as usize == start) {
                self.encoder.window_event(event);
                self.flush_if_full(block, is_windowed)?;
            }
            while let Some((_, event)) = events.next_if(|(pos, _)| *pos as usize == start) {
                self.encoder.event(event);
                self.flush_if_full(block, is_windowed)?;
            }
            if start == block.len() {
                break;
            }
            let next = |position: Option<u32>| position.map_or(block.len(), |position| position as usize);
            let end = next(events.peek().map(|event| event.0)).min(next(of_windows.peek().map(|event| event.at)));
            start = self.encoder.accesses_of(block, start, end);
            if self.encoder.is_full() {
                self.flush()?;
                if start == block.len() && events.peek().is_none() && of_windows.peek().is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Within a block.
    fn flush_if_full(&mut self, block: &Block, is_windowed: bool) -> Result<(), TraceError> {
        if self.encoder.is_full() {
            self.flush()?;
            self.encoder.enter(block.process, block.thread, is_windowed);
        }
        Ok(())
    }

    /// Writes what was collected as a chunk, full or not: from here on it survives a kill.
    ///
    /// # Errors
    /// As [`TraceWriter::write`].
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.check_open()?;
        if self.encoder.is_empty() {
            return Ok(());
        }
        let accesses = self.encoder.accesses() as u32;
        let is_quiet = self.encoder.is_quiet();
        self.encoder.finish(&mut self.payload);
        if self.payload.len() > MAX_PAYLOAD {
            self.state = WriterState::Failed;
            return Err(format_error(&self.what, "chunk", "is longer than 64 MiB: its events' texts are too long"));
        }
        let (offset, first_access) = (self.offset, self.accesses);
        self.write_frame(FrameKind::Data, accesses)?;
        self.accesses += u64::from(accesses);
        self.chunks.push(ChunkRef { offset, len: (self.offset - offset) as u32, first_access, accesses, is_quiet });
        Ok(())
    }

    /// Writes the last chunk and the index, and flushes the output; gives the bytes of the whole.
    ///
    /// # Errors
    /// As [`TraceWriter::write`]. Without the index the file stays readable; readers say that it is missing.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.close()?;
        Ok(self.offset)
    }

    fn close(&mut self) -> Result<(), TraceError> {
        self.flush()?;
        self.payload = file::encode_index(&self.info_json, &self.chunks);
        if self.payload.len() > MAX_PAYLOAD {
            self.state = WriterState::Failed;
            return Err(format_error(
                &self.what,
                "index",
                "has no room for so many chunks; the trace is readable without",
            ));
        }
        let index_offset = self.offset;
        self.write_frame(FrameKind::Index, 0)?;
        self.write_all(&trailer(index_offset))?;
        self.state = WriterState::Finished;
        self.out.flush().map_err(|e| io_error(&self.what, e))
    }

    /// Recorded accesses so far (repeats not counted), whether in a chunk on the output or not yet.
    pub fn accesses(&self) -> u64 {
        self.accesses + self.encoder.accesses() as u64
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    fn check_open(&self) -> Result<(), TraceError> {
        match self.state {
            WriterState::Open => Ok(()),
            _ => Err(format_error(&self.what, "end", "writing failed before; what was written until then is readable")),
        }
    }

    /// Writes `self.payload` in a frame, at once.
    fn write_frame(&mut self, kind: FrameKind, accesses: u32) -> Result<(), TraceError> {
        let header = FrameHeader {
            kind,
            seq: self.seq,
            payload_len: self.payload.len() as u32,
            payload_crc: crc32fast::hash(&self.payload),
            first_access: self.accesses,
            accesses,
        };
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.reserve(HEADER_LEN + self.payload.len());
        frame.extend_from_slice(&header.encode());
        frame.extend_from_slice(&self.payload);
        let written = self.write_all(&frame);
        self.frame = frame;
        written?;
        self.seq += 1;
        Ok(())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let written = self.out.write_all(bytes);
        match written {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(e) => {
                self.state = WriterState::Failed;
                if let Some(cut) = self.cut {
                    // The first error is the one to tell; a torn frame that stays is skipped by readers.
                    let _ = cut(&mut self.out, self.offset);
                }
                Err(io_error(&self.what, e))
            }
        }
    }
}

impl<W: Write> Drop for TraceWriter<W> {
    /// A writer dropped without [`TraceWriter::finish`] closes the file as well as it can.
    fn drop(&mut self) {
        if self.state == WriterState::Open && !std::thread::panicking() {
            // Nobody is there to be told; `finish` is the way to know.
            let _ = self.close();
        }
    }
}

fn check_block(what: &str, b: &Block) -> Result<(), TraceError> {
    let n = b.len();
    let fits = |len: usize| len == 0 || len == n;
    if b.kind.len() != n || !fits(b.size.len()) || !fits(b.ip.len()) || !fits(b.repeat.len()) {
        return Err(format_error(what, "block", "its columns differ in length"));
    }
    let (mut last, mut last_of_windows) = (0, 0);
    let is_in_order = |at: u32, last: &mut u32| at >= std::mem::replace(last, at) && at as usize <= n;
    let are_in_order = b.events.iter().all(|(at, _)| is_in_order(*at, &mut last))
        && b.window_events.iter().all(|event| is_in_order(event.at, &mut last_of_windows));
    if !are_in_order {
        return Err(format_error(what, "block", "its events are not in order or stand outside it"));
    }
    for (_, event) in &b.events {
        let bytes = match event {
            Event::Map { source: MapSource::File { path, .. }, .. } | Event::Exec { path } => path.len(),
            Event::Marker { text } => text.len(),
            // A frame takes at most 10 bytes.
            Event::Site { frames, .. } => frames.len() * 10,
            _ => 0,
        };
        if bytes > MAX_STREAM / 2 {
            return Err(format_error(what, "block", "an event's text is longer than 4 MiB"));
        }
    }
    Ok(())
}

fn io_error(what: &str, source: io::Error) -> TraceError {
    TraceError::Io { what: what.into(), source }
}

fn format_error(what: &str, place: &str, reason: &str) -> TraceError {
    TraceError::Format { what: what.into(), place: place.into(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
