//! A trace on its way, kept on disk for further model runs.

use std::fs::File;
use std::io::{self, Seek};

use lookaside_trace::{Block, NativeReader, TraceInfo, TraceWriter};

/// Bytes that the spool may grow to; what comes later is not spooled.
const SPOOL_BYTES: u64 = 8 << 30;

/// The accesses, kept for further runs in an unnamed temporary file.
pub(crate) struct Spool {
    file: File,
    writer: Option<TraceWriter<File>>,
    /// Recorded accesses in it.
    accesses: u64,
    error: Option<String>,
}

impl Spool {
    /// An empty one.
    pub(crate) fn new(info: &TraceInfo) -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        // Instruction addresses and sizes change no count of a re-run.
        let info = TraceInfo { has_ip: false, ..info.clone() };
        let writer = TraceWriter::new(file.try_clone()?, &info).map_err(io::Error::other)?;
        Ok(Self { file, writer: Some(writer), accesses: 0, error: None })
    }

    /// Keeps a block.
    pub(crate) fn run(&mut self, block: &Block) {
        let Some(writer) = &mut self.writer else { return };
        let slim = Block {
            process: block.process,
            thread: block.thread,
            addr: block.addr.clone(),
            kind: block.kind.clone(),
            repeat: block.repeat.clone(),
            events: block.events.clone(),
            ..Block::default()
        };
        let full = writer.bytes() > SPOOL_BYTES;
        match writer.write(&slim) {
            Ok(()) if !full => self.accesses += block.len() as u64,
            Ok(()) => self.end(format!("it holds {} GiB", SPOOL_BYTES >> 30)),
            Err(e) => self.end(e.to_string()),
        }
    }

    fn end(&mut self, why: String) {
        self.error = Some(why);
        if let Some(writer) = self.writer.take() {
            let _ = writer.finish(); // what is complete can be read without it
        }
    }

    /// Recorded accesses that can be read back, and why that is not all.
    pub(crate) fn finish(&mut self) -> (u64, Option<String>) {
        if let Some(Err(e)) = self.writer.take().map(TraceWriter::finish) {
            self.error = Some(e.to_string());
        }
        (self.accesses, self.error.clone())
    }

    /// Reads what was kept from its beginning.
    pub(crate) fn open(&mut self) -> io::Result<NativeReader<File>> {
        self.file.rewind()?;
        NativeReader::new(self.file.try_clone()?, "temporary file").map_err(io::Error::other)
    }
}
