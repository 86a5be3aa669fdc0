//! A trace on its way, kept on disk for further model runs.

use std::fs::File;
use std::io;

use lookaside_trace::{Block, NativeWorker, TraceInfo, TraceWriter};

use crate::recent_uses::{RecentUses, UsesBefore};

/// Bytes that the spool may grow to; what comes later is not spooled.
const SPOOL_BYTES: u64 = 8 << 30;

/// The accesses, kept for further runs in an unnamed temporary file.
pub(crate) struct Spool {
    writer: TraceWriter<File>,
    /// Nothing more is kept.
    has_ended: bool,
    /// What of a block is kept.
    kept: Block,
    uses: RecentUses,
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
        let writer = TraceWriter::new(file, &info).map_err(io::Error::other)?;
        Ok(Self {
            writer,
            has_ended: false,
            kept: Block::default(),
            uses: RecentUses::new()?,
            accesses: 0,
            error: None,
        })
    }

    /// Keeps a block.
    pub(crate) fn run(&mut self, block: &Block) {
        if self.has_ended {
            return;
        }
        let kept = &mut self.kept;
        (kept.process, kept.thread) = (block.process, block.thread);
        kept.addr.clone_from(&block.addr);
        kept.kind.clone_from(&block.kind);
        kept.repeat.clone_from(&block.repeat);
        kept.events.clone_from(&block.events);
        kept.window_events.clone_from(&block.window_events);
        let full = self.writer.bytes() > SPOOL_BYTES;
        match self.writer.write(kept) {
            Ok(()) if !full => {
                self.accesses += block.len() as u64;
                self.uses.run(block);
            }
            Ok(()) => self.end(format!("it holds {} GiB", SPOOL_BYTES >> 30)),
            Err(e) => self.end(e.to_string()),
        }
    }

    fn end(&mut self, why: String) {
        self.error = Some(why);
        self.has_ended = true;
        let _ = self.writer.flush(); // what is complete can be read without it
    }

    /// Recorded accesses that can be read back, and why that is not all.
    pub(crate) fn finish(&mut self) -> (u64, Option<String>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.error = self.writer.flush().err().map(|e| e.to_string());
        }
        (self.accesses, self.error.clone())
    }

    /// Which pages were used before any of what was kept; or why that can't be told.
    pub(crate) fn uses_before(&mut self) -> Result<UsesBefore, String> {
        self.uses.finish()
    }

    /// Reads what was kept from its beginning. Several may read at a time.
    pub(crate) fn open(&self) -> io::Result<NativeWorker> {
        self.writer.written().and_then(|file| file.worker(0..usize::MAX)).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use lookaside_trace::{Event, Kind, Source};

    use super::*;

    fn block(process: u32, addresses: &[u64]) -> Block {
        let mut block = Block { process, thread: process + 1, ..Block::default() };
        addresses.iter().for_each(|&addr| block.push(Kind::Store, addr));
        block
    }

    fn blocks(spool: &mut Spool) -> Vec<Block> {
        let mut reader = spool.open().expect("a temporary file");
        let (mut blocks, mut block) = (Vec::new(), Block::default());
        while reader.next_block(&mut block).expect("what was written") {
            blocks.push(block.clone());
        }
        blocks
    }

    #[test]
    fn what_was_spooled_is_read_back_as_often_as_it_is_asked_for() {
        let info = TraceInfo { recorder: "valgrind".into(), has_ip: true, ..TraceInfo::default() };
        let mut spool = Spool::new(&info).expect("a temporary file");
        let mut first = block(7, &[0x1000, 0x2040, 0x1008]);
        (first.kind[1], first.repeat) = (Kind::Load, vec![0, 5, 1]);
        first.push_event(Event::Free { addr: 0x4000 });
        let second = Block { repeat: vec![2], ..block(9, &[0x5000]) };
        // Which instruction it was and how many bytes is let go.
        spool.run(&Block { ip: vec![1, 2, 3], size: vec![8, 8, 4], ..first.clone() });
        spool.run(&second);
        assert_eq!(spool.finish(), (4, None));
        for _ in 0..2 {
            assert_eq!(blocks(&mut spool), [first.clone(), second.clone()]);
        }
        let reader = spool.open().expect("a temporary file");
        assert_eq!(*reader.info(), TraceInfo { has_ip: false, ..info });
    }

    /// A stored chunk is longer than a reader reads at once: each reader keeps its own place.
    #[test]
    fn several_read_it_at_a_time() {
        let mut spool = Spool::new(&TraceInfo::default()).expect("a temporary file");
        let written: Vec<Block> = (0..4)
            .map(|n| {
                let noise = |i: u64| (n << 40 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                block(1, &(0..100_000).map(noise).collect::<Vec<_>>())
            })
            .collect();
        written.iter().for_each(|block| spool.run(block));
        spool.finish();
        let mut readers = [(); 2].map(|()| spool.open().expect("a temporary file"));
        let mut seen = [Vec::new(), Vec::new()];
        let mut block = Block::default();
        while seen[1].len() < 400_000 {
            for (reader, seen) in readers.iter_mut().zip(&mut seen) {
                assert!(reader.next_block(&mut block).expect("what was written"));
                seen.extend_from_slice(&block.addr);
            }
        }
        let all: Vec<u64> = written.iter().flat_map(|block| block.addr.iter().copied()).collect();
        assert!(seen.iter().all(|seen| *seen == all));
    }

    #[test]
    fn what_cannot_be_written_ends_it() {
        let mut spool = Spool::new(&TraceInfo::default()).expect("a temporary file");
        spool.run(&block(1, &[0x1000, 0x2000]));
        spool.run(&Block { repeat: vec![1, 2, 3], ..block(1, &[0x3000]) });
        spool.run(&block(1, &[0x4000]));
        let why = "output: block: its columns differ in length";
        assert_eq!(spool.finish(), (2, Some(why.to_string())));
        assert_eq!(blocks(&mut spool), [block(1, &[0x1000, 0x2000])]);
    }

    #[test]
    fn what_has_no_events_but_of_windows_can_be_stepped_over() {
        // Chunks of 131,072 accesses, of which the first has a new thread and the second an event.
        let mut whole = Vec::new();
        let mut spool = Spool::new(&TraceInfo::default()).expect("a temporary file");
        for number in 0..40u64 {
            let mut part = block(1, &(0..10_000).map(|i| (number * 10_000 + i) << 12).collect::<Vec<_>>());
            part.push_leave(number << 12, Kind::Store, 3, 1);
            if number == 15 {
                part.push_event(Event::Free { addr: 0x4000 });
            }
            whole.extend_from_slice(&part.addr);
            spool.run(&part);
        }
        spool.finish();
        let mut reader = spool.open().expect("a temporary file");
        let (mut read, mut block) = (Vec::new(), Block::default());
        while read.len() < 262_144 {
            assert_eq!(reader.skip(u64::MAX), 0);
            assert!(reader.next_block(&mut block).expect("what was written"));
            read.extend_from_slice(&block.addr);
        }
        assert_eq!(read, whole[..262_144]);
        assert_eq!([131_071, 131_072, u64::MAX].map(|most| reader.skip(most)), [0, 131_072, 400_000 - 393_216]);
        assert!(!reader.next_block(&mut block).expect("the end"));
    }
}
