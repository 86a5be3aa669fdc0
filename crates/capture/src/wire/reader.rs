//! Reads a recorder's stream as a source.

use std::io::Read;

use lookaside_trace::{Block, Damage, Event, Source, TraceError, TraceInfo};

use super::filter_mirror::FilterMirror;
use super::frame::{slot_of, WireFrameHeader, ACCESSES, EVENT, FRAME, HEADER, SLOT};
use super::live_processes::LiveProcesses;
use super::messages::RecorderMessages;
use super::shared_slots::{SharedSlots, SLOT_BYTES};

/// Most accesses of a block.
const BLOCK: usize = 1 << 16;
/// Bytes asked from the pipe at once: a quarter of a second-level cache.
const READ: usize = 1 << 18;
/// Damages kept apart; the last one stands for all that follow.
const MAX_DAMAGES: usize = 1000;

/// A recorder's stream as a [`Source`]. Ends when the last process has closed its end of the pipe.
pub struct WireReader<R> {
    info: TraceInfo,
    input: Option<R>,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// Of `buffer[from]` in the stream.
    offset: u64,
    mirror: FilterMirror,
    processes: LiveProcesses,
    shared: Option<SharedSlots>,
    damage: Vec<Damage>,
    messages: Option<RecorderMessages>,
}

impl<R: Read> WireReader<R> {
    /// Reads `input`, which was written as `info` says; `unified`: one filter table serves loads, stores and fetches.
    pub fn new(input: R, info: TraceInfo, unified: bool) -> Self {
        let mirror = FilterMirror::new(&info, unified);
        WireReader {
            info,
            input: Some(input),
            buffer: vec![0; READ + FRAME],
            from: 0,
            to: 0,
            offset: 0,
            mirror,
            processes: LiveProcesses::default(),
            shared: None,
            damage: Vec::new(),
            messages: None,
        }
    }

    /// The first line of each process's messages becomes a damage at the end.
    pub(crate) fn keep_messages(&mut self, messages: RecorderMessages) {
        self.messages = Some(messages);
    }

    /// Records may come in this memory, which the recorder has too.
    pub(crate) fn share(&mut self, shared: SharedSlots) {
        self.shared = Some(shared);
    }

    /// The processes that are being recorded, for the launcher, which may have to kill them.
    pub(crate) fn processes(&self) -> LiveProcesses {
        self.processes.clone()
    }

    /// Makes sure that `wanted` bytes are in the buffer; `false` where the stream ends before.
    fn fill(&mut self, wanted: usize) -> Result<bool, TraceError> {
        while self.to - self.from < wanted {
            let Some(input) = &mut self.input else { return Ok(false) };
            if self.buffer.len() - self.from < FRAME {
                self.buffer.copy_within(self.from..self.to, 0);
                self.to -= self.from;
                self.from = 0;
            }
            match input.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.input = None,
                Ok(n) => self.to += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    self.input = None;
                    return Err(TraceError::Io { what: "the recorder's pipe".into(), source });
                }
            }
        }
        Ok(true)
    }

    /// Header of the next frame, its payload in the buffer; `None` at the end, sound or not.
    fn peek(&mut self) -> Result<Option<WireFrameHeader>, TraceError> {
        if !self.fill(HEADER)? {
            self.end_of_input();
            return Ok(None);
        }
        let header = WireFrameHeader::parse(&self.buffer[self.from..]);
        if let Some(reason) = header.fault() {
            self.give_up(reason);
            return Ok(None);
        }
        if !self.fill(HEADER + header.payload)? {
            self.end_of_input();
            return Ok(None);
        }
        Ok(Some(header))
    }

    fn end_of_input(&mut self) {
        if self.to > self.from {
            self.give_up("the recording ends inside a frame".into());
        }
        for process in self.processes.take_all() {
            let reason = format!(
                "process {process} ended without a final message (killed?): its last accesses and totals are missing"
            );
            self.note(0, reason);
        }
        for message in self.messages.take().map(RecorderMessages::first_lines).unwrap_or_default() {
            self.note(0, message);
        }
    }

    /// Notes the damage and closes the pipe, so that a program that still writes isn't held up for ever.
    fn give_up(&mut self, reason: String) {
        self.note((self.to - self.from) as u64, reason);
        self.input = None;
        self.offset += (self.to - self.from) as u64;
        self.from = 0;
        self.to = 0;
    }

    fn note(&mut self, len: u64, reason: String) {
        let full = self.damage.len() >= MAX_DAMAGES;
        match self.damage.last_mut() {
            Some(last) if last.reason == reason || full => {
                last.len = (self.offset + len).saturating_sub(last.offset);
            }
            _ => self.damage.push(Damage { offset: self.offset, len, reason }),
        }
    }

    /// How many records the frame at hand brings.
    fn records(&self, header: &WireFrameHeader) -> usize {
        let bytes = match header.kind {
            ACCESSES => header.payload,
            SLOT => slot_of(&self.buffer[self.from + HEADER..]).1.min(SLOT_BYTES),
            _ => 0,
        };
        bytes / 16
    }

    fn apply(&mut self, header: &WireFrameHeader, block: &mut Block) {
        let payload = &self.buffer[self.from + HEADER..self.from + HEADER + header.payload];
        let mut fault = None;
        match header.kind {
            ACCESSES => {
                self.processes.seen(header.process);
                fault = self.mirror.accesses((header.process, header.thread), payload, block);
            }
            SLOT => {
                self.processes.seen(header.process);
                let (slot, bytes) = slot_of(payload);
                fault = match self.shared.as_mut().and_then(|shared| shared.records(slot, bytes)) {
                    Some(records) => self.mirror.accesses((header.process, header.thread), &records, block),
                    None => Some(format!("{bytes} bytes of records in slot {slot}, which is none")),
                };
            }
            EVENT => {
                self.processes.seen(header.process);
                match serde_json::from_str::<Event>(&String::from_utf8_lossy(payload)) {
                    Ok(mut event) => {
                        self.mirror.event(header.process, &mut event);
                        block.push_event(event);
                    }
                    Err(error) => fault = Some(format!("an event that can't be read: {error}")),
                }
            }
            _ => {
                self.processes.ended(header.process);
                self.mirror.ended(header.process);
            }
        }
        let frame = HEADER + header.payload;
        if let Some(reason) = fault {
            self.note(frame as u64, reason);
        }
        self.from += frame;
        self.offset += frame as u64;
    }
}

impl<R: Read> Source for WireReader<R> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        self.mirror.new_block();
        while let Some(header) = self.peek()? {
            let same_thread = header.process == block.process && header.thread == block.thread;
            let room = block.len() + self.records(&header) <= BLOCK;
            // Events have a limit of their own: a thread that only maps and unmaps must not fill the memory.
            let fits = same_thread && room && block.events.len().max(block.window_events.len()) < BLOCK;
            if !block.is_empty() && !fits {
                return Ok(true);
            }
            (block.process, block.thread) = (header.process, header.thread);
            self.apply(&header, block);
        }
        Ok(!block.is_empty())
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::wire::frame::{END, MAGIC};

    /// A frame of process 7: of no payload, or one that names a slot.
    fn frame(kind: u16, named: &[u32]) -> Vec<u8> {
        let words = [&[4 * named.len() as u32, 7, 7], named].concat();
        let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        [&MAGIC.to_le_bytes()[..], &kind.to_le_bytes(), &words].concat()
    }

    /// The reader of such a stream. All records in the first slot are of one address, all in the last slot of another.
    fn reader(frames: &[Vec<u8>]) -> WireReader<std::io::Cursor<Vec<u8>>> {
        let shared = SharedSlots::new().expect("memory");
        let memory = File::from(shared.file().try_clone().expect("a file"));
        for (slot, addr) in [(0, 0x5000u128), (31, 0x9000)] {
            memory.write_all_at(&addr.to_le_bytes().repeat(4096), 4096 + slot * 65_536).expect("room");
        }
        let mut reader = WireReader::new(std::io::Cursor::new(frames.concat()), TraceInfo::default(), false);
        reader.share(shared);
        reader
    }

    #[test]
    fn records_come_from_the_slots_that_are_named() {
        let mut frames = vec![frame(SLOT, &[0, 65_536]); 15];
        frames.extend([frame(SLOT, &[31, 65_536]), frame(SLOT, &[31, 16]), frame(SLOT, &[0, 32]), frame(END, &[])]);
        let mut reader = reader(&frames);
        let (processes, mut block) = (reader.processes(), Block::default());
        assert!(reader.next_block(&mut block).expect("no error"));
        let (first, last) = block.addr.split_at(15 * 4096);
        assert_eq!((block.len(), processes.live()), (1 << 16, vec![7]));
        assert!(first.iter().all(|&addr| addr == 0x5000) && last.iter().all(|&addr| addr == 0x9000));
        assert!(reader.next_block(&mut block).expect("no error"));
        assert_eq!((&block.addr[..], processes.live()), (&[0x9000, 0x5000, 0x5000][..], vec![]));
        assert!(!reader.next_block(&mut block).expect("no error"));
        assert_eq!(reader.damage(), []);
    }

    #[test]
    fn a_slot_that_is_none_is_a_damage_and_no_more() {
        let frames = [[32, 16], [u32::MAX, 16], [0, 24]].map(|named| frame(SLOT, &named));
        let mut reader = reader(&[&frames[..], &[frame(SLOT, &[0, 16]), frame(END, &[])]].concat());
        let mut block = Block::default();
        assert!(reader.next_block(&mut block).expect("no error"));
        assert_eq!(block.addr, [0x5000]);
        let said: Vec<(u64, &str)> = reader.damage().iter().map(|damage| (damage.offset, &*damage.reason)).collect();
        let expected = [
            (0, "16 bytes of records in slot 32, which is none"),
            (24, "16 bytes of records in slot 4294967295, which is none"),
            (48, "24 bytes of records in slot 0, which is none"),
        ];
        assert_eq!(said, expected);
    }
}
