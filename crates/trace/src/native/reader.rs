//! Reading a native trace from front to back, from anything that can be read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::decode::ChunkDecoder;
use super::frame::{parse_trailer, FrameHeader, FrameKind, HEADER_LEN, MAGIC, TRAILER_LEN};
use crate::damage::DamageLog;
use crate::{Block, Damage, Source, TraceError, TraceInfo};

/// Reads a native trace front to back, from a file or a pipe. Damaged chunks are left out and
/// listed by [`Source::damage`]; memory does not depend on the trace's length.
pub struct NativeReader<R> {
    frames: FrameReader<R>,
    what: String,
    info: TraceInfo,
    order: FrameOrder,
    decoder: ChunkDecoder,
    /// A chunk that was read while looking for the header.
    pending: Option<Frame>,
    damage: DamageLog,
    ended: bool,
}

impl NativeReader<File> {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Where it can't be read, or is not a native trace.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let what = path.as_ref().display().to_string();
        let file = File::open(path).map_err(|source| TraceError::Io { what: what.clone(), source })?;
        NativeReader::new(file, &what)
    }
}

impl<R: Read> NativeReader<R> {
    /// Reads from `r`; `what` names it in errors.
    ///
    /// # Errors
    /// Where nothing of a native trace is found, or `r` can't be read.
    pub fn new(r: R, what: &str) -> Result<Self, TraceError> {
        let decoder = ChunkDecoder::new().map_err(|e| io_error(what, e))?;
        let mut reader = NativeReader {
            frames: FrameReader::new(r),
            what: what.into(),
            info: TraceInfo::default(),
            order: FrameOrder::default(),
            decoder,
            pending: None,
            damage: DamageLog::default(),
            ended: false,
        };
        reader.find_info()?;
        Ok(reader)
    }

    /// Reads frames up to the first intact header, or the first chunk where both copies are lost.
    fn find_info(&mut self) -> Result<(), TraceError> {
        loop {
            match self.next_frame()? {
                Some(frame) if frame.header.kind == FrameKind::Info => {
                    match serde_json::from_slice(self.frames.payload(&frame)) {
                        Ok(info) => {
                            self.info = info;
                            return Ok(());
                        }
                        Err(e) => {
                            self.damage.push(frame.offset, frame.len(), &format!("header can't be understood: {e}"))
                        }
                    }
                }
                Some(frame) => {
                    self.damage.push(
                        0,
                        frame.offset,
                        "both copies of the header are damaged; granularity and recorder are not known",
                    );
                    self.pending = Some(frame);
                    return Ok(());
                }
                None => {
                    let reason = match self.damage.list().first() {
                        Some(d) => format!("nothing readable of a lookaside trace (.lkt): {}", d.reason),
                        None => "empty; expected a lookaside trace (.lkt)".into(),
                    };
                    return Err(TraceError::Format { what: self.what.clone(), place: "byte 0".into(), reason });
                }
            }
        }
    }

    /// The next intact frame; what was lost before it is noted.
    fn next_frame(&mut self) -> Result<Option<Frame>, TraceError> {
        if self.ended {
            return Ok(None);
        }
        let frame = loop {
            let (lost, frame) = self.frames.next().map_err(|e| io_error(&self.what, e))?;
            if self.order.step(lost, frame.as_ref(), self.frames.offset(), &mut self.damage) {
                break frame;
            }
        };
        match &frame {
            None => self.ended = true,
            Some(f) if f.header.kind == FrameKind::Index => {
                self.ended = true;
                let index = f.offset;
                self.check_trailer(index)?;
            }
            Some(_) => {}
        }
        Ok(frame)
    }

    /// After the index: the trailer and nothing else.
    fn check_trailer(&mut self, index: u64) -> Result<(), TraceError> {
        let at = self.frames.offset();
        let rest = self.frames.rest(TRAILER_LEN).map_err(|e| io_error(&self.what, e))?;
        if parse_trailer(&rest.head) != Some(index) {
            self.damage.push(at, rest.head.len() as u64, "the closing mark is damaged; no accesses are lost");
        }
        if rest.more > 0 {
            let at = at + rest.head.len() as u64;
            self.damage.push(at, rest.more, "bytes after the end of the trace; nothing in them was read");
        }
        Ok(())
    }
}

impl<R: Read> Source for NativeReader<R> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        loop {
            if self.decoder.next_block(block) {
                return Ok(true);
            }
            let frame = match self.pending.take() {
                Some(frame) => frame,
                None => match self.next_frame()? {
                    Some(frame) => frame,
                    None => {
                        block.clear();
                        return Ok(false);
                    }
                },
            };
            if frame.header.kind == FrameKind::Data {
                if let Err(bad) = self.decoder.load(self.frames.payload(&frame), frame.header.accesses) {
                    let lost = frame.header.accesses;
                    self.damage.push(frame.offset, frame.len(), &format!("{bad}; {lost} accesses lost"));
                }
            }
        }
    }

    fn damage(&self) -> &[Damage] {
        self.damage.list()
    }
}

/// Holds each frame against the numbers of those before it.
#[derive(Default)]
pub(crate) struct FrameOrder {
    next_seq: u32,
    pub(crate) next_access: u64,
}

impl FrameOrder {
    /// Notes what was lost before `frame`, or before the end at `offset`. `false`: the frame came before.
    pub(crate) fn step(
        &mut self,
        lost: Option<LostBytes>,
        frame: Option<&Frame>,
        offset: u64,
        damage: &mut DamageLog,
    ) -> bool {
        match frame {
            Some(f) if f.header.seq < self.next_seq || f.header.first_access < self.next_access => {
                let from = lost.map_or(f.offset, |l| l.offset);
                damage.push(from, f.offset + f.len() - from, "a frame that came before, or is of another trace");
                return false;
            }
            Some(f) => {
                let accesses = f.header.first_access.saturating_sub(self.next_access);
                let frames = f.header.seq.saturating_sub(self.next_seq);
                if let Some(l) = lost {
                    damage.push(l.offset, f.offset - l.offset, &format!("{}; {accesses} accesses lost", l.reason));
                } else if frames > 0 || accesses > 0 {
                    let reason = format!("{frames} frames are missing here; {accesses} accesses lost");
                    damage.push(f.offset, 0, &reason);
                }
                self.next_seq = f.header.seq.wrapping_add(1);
                self.next_access = f.header.first_access.saturating_add(u64::from(f.header.accesses));
            }
            None => {
                let known = self.next_access;
                if let Some(l) = lost {
                    let reason = format!("{}; what came after access {known} is lost", l.reason);
                    damage.push(l.offset, offset - l.offset, &reason);
                } else if offset > 0 {
                    let reason = format!("ends without its index: the recording was cut short after access {known}");
                    damage.push(offset, 0, &reason);
                }
            }
        }
        true
    }

    pub(crate) fn next_seq(&self) -> u32 {
        self.next_seq
    }
}

/// A frame with an intact header and payload.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    /// First byte in the file.
    pub(crate) offset: u64,
}

impl Frame {
    pub(crate) fn len(&self) -> u64 {
        self.header.frame_len() as u64
    }
}

/// Bytes before a frame, or before the end, that are no part of an intact one.
pub(crate) struct LostBytes {
    pub(crate) offset: u64,
    reason: &'static str,
}

/// What follows the last frame.
struct TrailingBytes {
    head: Vec<u8>,
    more: u64,
}

/// Finds intact frames.
pub(crate) struct FrameReader<R> {
    r: R,
    /// Bytes read, of which those before `start` are done with.
    buf: Vec<u8>,
    start: usize,
    /// Offset in the file of `buf[0]`.
    base: u64,
    eof: bool,
    /// Damaged frames that end before this offset were searched for frames inside already: keeps
    /// the search linear, whatever the bytes say.
    searched: u64,
}

/// The buffer grows by this at a time, so that an absurd length takes no memory that the input does not back.
const READ: usize = 1 << 18;

impl<R: Read> FrameReader<R> {
    pub(crate) fn new(r: R) -> Self {
        FrameReader { r, buf: Vec::new(), start: 0, base: 0, eof: false, searched: 0 }
    }

    /// Offset in the file of the first byte not dealt with.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The payload of the frame that [`FrameReader::next`] gave last.
    pub(crate) fn payload(&self, frame: &Frame) -> &[u8] {
        let start = (frame.offset - self.base) as usize;
        &self.buf[start + HEADER_LEN..start + frame.header.frame_len()]
    }

    /// Bytes at hand from `start` on.
    fn have(&self) -> usize {
        self.buf.len() - self.start
    }

    /// As [`FrameReader::have`]: at least `n`, unless the input ends. No more is read than that takes.
    fn fill(&mut self, n: usize) -> std::io::Result<usize> {
        if self.have() < n && !self.eof {
            self.buf.drain(..self.start);
            self.base += self.start as u64;
            self.start = 0;
        }
        // Where too little is at hand and more may come, `start` is 0 now.
        while self.buf.len() < n && !self.eof {
            let want = (n - self.buf.len()).min(READ) as u64;
            if self.r.by_ref().take(want).read_to_end(&mut self.buf)? == 0 {
                self.eof = true;
            }
        }
        Ok(self.have())
    }

    /// The next intact frame, and what had to be passed over before it.
    pub(crate) fn next(&mut self) -> std::io::Result<(Option<LostBytes>, Option<Frame>)> {
        let mut lost = None;
        loop {
            let have = self.fill(HEADER_LEN)?;
            if have == 0 {
                return Ok((lost, None));
            }
            let reason = match FrameHeader::parse(&self.buf[self.start..]) {
                Err(bad) => {
                    lost.get_or_insert(LostBytes { offset: self.offset(), reason: bad });
                    self.skip_to_magic()?;
                    continue;
                }
                Ok(header) => {
                    let frame = Frame { header, offset: self.offset() };
                    match self.take_frame(&frame)? {
                        Ok(()) => return Ok((lost, Some(frame))),
                        Err(bad) => bad,
                    }
                }
            };
            lost.get_or_insert(LostBytes { offset: self.offset(), reason });
            self.pass_damaged()?;
        }
    }

    /// Steps over `frame` if its payload is intact.
    fn take_frame(&mut self, frame: &Frame) -> std::io::Result<Result<(), &'static str>> {
        let len = frame.header.frame_len();
        if self.fill(len)? < len {
            return Ok(Err("cut off in a frame"));
        }
        let payload = &self.buf[self.start + HEADER_LEN..self.start + len];
        if crc32fast::hash(payload) != frame.header.payload_crc {
            return Ok(Err("checksum of a frame's content differs"));
        }
        self.start += len;
        Ok(Ok(()))
    }

    /// Steps over a frame whose header is right and whose payload is not: to its end if a frame begins there, else
    /// (bytes are missing or too many) to the next that begins inside.
    fn pass_damaged(&mut self) -> std::io::Result<()> {
        let Ok(header) = FrameHeader::parse(&self.buf[self.start..]) else { return self.skip_to_magic() };
        let len = header.frame_len();
        let have = self.fill(len + HEADER_LEN)?;
        let end = self.offset() + len as u64;
        let follows = have >= len && FrameHeader::parse(&self.buf[self.start + len..]).is_ok();
        if follows || self.offset() < self.searched {
            self.start += len.min(have);
            return Ok(());
        }
        self.searched = end;
        self.skip_to_magic()
    }

    /// Goes to the next place, at least one byte on, where a frame's magic stands, or to the end.
    fn skip_to_magic(&mut self) -> std::io::Result<()> {
        self.start += 1;
        loop {
            let bytes = &self.buf[self.start..];
            if let Some(i) = bytes.windows(MAGIC.len()).position(|w| w == MAGIC) {
                self.start += i;
                return Ok(());
            }
            if self.eof {
                self.start = self.buf.len();
                return Ok(());
            }
            // A magic may begin in the last seven bytes.
            self.start += bytes.len().saturating_sub(MAGIC.len() - 1);
            self.fill(READ)?;
        }
    }

    /// Steps to the end of the input: its first `n` bytes, and how many more there were.
    fn rest(&mut self, n: usize) -> std::io::Result<TrailingBytes> {
        let have = self.fill(n)?.min(n);
        let head = self.buf[self.start..self.start + have].to_vec();
        self.start += have;
        let mut more = 0;
        loop {
            let have = self.fill(READ)?;
            if have == 0 {
                return Ok(TrailingBytes { head, more });
            }
            more += have as u64;
            self.start += have;
        }
    }
}

fn io_error(what: &str, source: std::io::Error) -> TraceError {
    TraceError::Io { what: what.into(), source }
}

#[cfg(test)]
mod tests;
