//! A native trace as a file that can be entered anywhere: its index, and chunks read one by one.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::decode::ChunkDecoder;
use super::frame::{parse_trailer, FrameHeader, FrameKind, HEADER_LEN, MAX_PAYLOAD, TRAILER_LEN};
use super::reader::{FrameOrder, FrameReader};
use super::varint::{put, Bad, Cursor};
use crate::damage::DamageLog;
use crate::{Block, Damage, Source, TraceError, TraceInfo};

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Recorded accesses in all chunks before, repeats not counted.
    pub first_access: u64,
    /// Recorded accesses in it.
    pub accesses: u32,
    /// It is known to have no events but of windows, and no thread that is new: in a file that this process wrote.
    pub is_quiet: bool,
}

impl ChunkRef {
    /// Recorded accesses up to its end.
    fn end_access(&self) -> u64 {
        self.first_access.saturating_add(u64::from(self.accesses))
    }
}

/// An opened native trace file. Workers made from it read chunks independently of each other.
#[derive(Clone)]
pub struct NativeFile {
    inner: Arc<MappedTrace>,
}

struct MappedTrace {
    file: File,
    what: String,
    info: TraceInfo,
    chunks: Vec<ChunkRef>,
    damage: Vec<Damage>,
}

impl NativeFile {
    /// Opens the file at `path` by its index, or, where that is missing or damaged, by a scan of the whole file.
    ///
    /// # Errors
    /// Where the file can't be read or is not a native trace.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let what = path.as_ref().display().to_string();
        let io_error = |source| TraceError::Io { what: what.clone(), source };
        let mut file = File::open(path).map_err(io_error)?;
        let inner = match read_index(&file).map_err(io_error)? {
            Some((info, chunks)) => MappedTrace { file, what, info, chunks, damage: Vec::new() },
            None => {
                let scan = scan(Read::by_ref(&mut file), &what)?;
                MappedTrace { file, what, info: scan.info, chunks: scan.chunks, damage: scan.damage.list().to_vec() }
            }
        };
        Ok(NativeFile { inner: Arc::new(inner) })
    }

    /// A file of which these chunks were just written.
    pub(crate) fn written(file: File, what: String, info: TraceInfo, chunks: Vec<ChunkRef>) -> Self {
        NativeFile { inner: Arc::new(MappedTrace { file, what, info, chunks, damage: Vec::new() }) }
    }

    /// What the trace says of itself.
    pub fn info(&self) -> &TraceInfo {
        &self.inner.info
    }

    /// Its chunks, in order.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.inner.chunks
    }

    /// What was found damaged on opening. Damage inside a chunk shows when it is read.
    pub fn damage(&self) -> &[Damage] {
        &self.inner.damage
    }

    /// Recorded accesses, repeats not counted, damaged chunks included.
    pub fn accesses(&self) -> u64 {
        self.inner.chunks.last().map_or(0, ChunkRef::end_access)
    }

    /// Reads the chunks of these numbers (as far as there are such), in order. Several of these can work in parallel.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub fn worker(&self, chunks: Range<usize>) -> Result<NativeWorker, TraceError> {
        let decoder = ChunkDecoder::new().map_err(|e| self.inner.io_error(e))?;
        let n = self.inner.chunks.len();
        Ok(NativeWorker {
            inner: self.inner.clone(),
            chunks: chunks.start.min(n)..chunks.end.min(n),
            decoder,
            frame: Vec::new(),
            damage: DamageLog::default(),
        })
    }
}

impl MappedTrace {
    fn io_error(&self, source: io::Error) -> TraceError {
        TraceError::Io { what: self.what.clone(), source }
    }
}

/// Reads a range of a file's chunks.
pub struct NativeWorker {
    inner: Arc<MappedTrace>,
    chunks: Range<usize>,
    decoder: ChunkDecoder,
    frame: Vec<u8>,
    damage: DamageLog,
}

impl NativeWorker {
    /// Reads and unpacks a chunk. The outer error is the system's, the inner one the chunk's.
    fn load(&mut self, chunk: ChunkRef) -> io::Result<Result<(), Bad>> {
        self.frame.resize(chunk.len as usize, 0);
        match self.inner.file.read_exact_at(&mut self.frame, chunk.offset) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Err("cut off in a frame")),
            read => read?,
        }
        let header = match FrameHeader::parse(&self.frame) {
            Ok(header) => header,
            Err(bad) => return Ok(Err(bad)),
        };
        let payload = &self.frame[HEADER_LEN..];
        if (header.kind, header.first_access, header.accesses) != (FrameKind::Data, chunk.first_access, chunk.accesses)
        {
            return Ok(Err("another frame than the index says"));
        }
        if header.payload_len as usize != payload.len() || header.payload_crc != crc32fast::hash(payload) {
            return Ok(Err("checksum of a frame's content differs"));
        }
        Ok(self.decoder.load(payload, header.accesses))
    }
}

impl Source for NativeWorker {
    fn info(&self) -> &TraceInfo {
        &self.inner.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        loop {
            if self.decoder.next_block(block) {
                return Ok(true);
            }
            let Some(chunk) = self.chunks.next().map(|i| self.inner.chunks[i]) else {
                block.clear();
                return Ok(false);
            };
            if let Err(bad) = self.load(chunk).map_err(|e| self.inner.io_error(e))? {
                let reason = format!("{bad}; {} accesses lost", chunk.accesses);
                self.damage.push(chunk.offset, u64::from(chunk.len), &reason);
            }
        }
    }

    fn damage(&self) -> &[Damage] {
        self.damage.list()
    }

    fn skip(&mut self, most: u64) -> u64 {
        let mut skipped = 0;
        while self.decoder.is_done() {
            let Some(chunk) = self.chunks.clone().next().map(|i| self.inner.chunks[i]) else { break };
            let with_it = skipped + u64::from(chunk.accesses);
            if !chunk.is_quiet || with_it > most {
                break;
            }
            skipped = with_it;
            self.chunks.next();
        }
        skipped
    }
}

/// The index frame's payload: the header again, then each chunk by the bytes between, its length and its accesses.
pub(crate) fn encode_index(info_json: &[u8], chunks: &[ChunkRef]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, info_json.len() as u64);
    out.extend_from_slice(info_json);
    put(&mut out, chunks.len() as u64);
    let (mut end, mut access) = (0, 0);
    for c in chunks {
        put(&mut out, c.offset - end);
        put(&mut out, u64::from(c.len));
        put(&mut out, c.first_access - access);
        put(&mut out, u64::from(c.accesses));
        end = c.offset + u64::from(c.len);
        access = c.first_access + u64::from(c.accesses);
    }
    out
}

fn decode_index(payload: &[u8], file_len: u64) -> Result<(TraceInfo, Vec<ChunkRef>), Bad> {
    let c = &mut Cursor::new(payload);
    let n = c.bounded(payload.len() as u64)?;
    let info = serde_json::from_slice(c.bytes(n)?).map_err(|_| "header can't be understood")?;
    let n = c.bounded(payload.len() as u64)?;
    // Grown as it is read: a false count can't take memory that the index does not back.
    let mut chunks = Vec::new();
    let (mut end, mut access) = (0u64, 0u64);
    for _ in 0..n {
        let offset = end.checked_add(c.varint()?).ok_or("an offset is outside the file")?;
        let len = c.u32()?;
        let first_access = access.checked_add(c.varint()?).ok_or("an access number is too large")?;
        let accesses = c.u32()?;
        end = offset.checked_add(u64::from(len)).filter(|&e| e <= file_len).ok_or("an offset is outside the file")?;
        access = first_access.checked_add(u64::from(accesses)).ok_or("an access number is too large")?;
        if !(HEADER_LEN..=HEADER_LEN + MAX_PAYLOAD).contains(&(len as usize)) {
            return Err("a chunk's length can't be");
        }
        chunks.push(ChunkRef { offset, len, first_access, accesses, is_quiet: false });
    }
    Ok((info, chunks))
}

/// The index, if the file ends with an intact one.
fn read_index(file: &File) -> io::Result<Option<(TraceInfo, Vec<ChunkRef>)>> {
    let file_len = file.metadata()?.len();
    let Some(at) = file_len.checked_sub(TRAILER_LEN as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER_LEN];
    file.read_exact_at(&mut trailer, at)?;
    let Some(offset) = parse_trailer(&trailer) else { return Ok(None) };
    let mut head = [0; HEADER_LEN];
    if offset.checked_add(HEADER_LEN as u64).is_none_or(|end| end > at) {
        return Ok(None);
    }
    file.read_exact_at(&mut head, offset)?;
    let Ok(header) = FrameHeader::parse(&head) else { return Ok(None) };
    if header.kind != FrameKind::Index || offset + header.frame_len() as u64 != at {
        return Ok(None);
    }
    let mut payload = vec![0; header.payload_len as usize];
    file.read_exact_at(&mut payload, offset + HEADER_LEN as u64)?;
    if crc32fast::hash(&payload) != header.payload_crc {
        return Ok(None);
    }
    Ok(decode_index(&payload, file_len).ok())
}

/// What a scan of a whole file finds.
pub(crate) struct Scan {
    pub(crate) info: TraceInfo,
    pub(crate) chunks: Vec<ChunkRef>,
    /// End of the last intact frame that is not the index.
    pub(crate) end: u64,
    pub(crate) next_seq: u32,
    pub(crate) accesses: u64,
    pub(crate) damage: DamageLog,
}

/// Looks at every frame of `r`.
pub(crate) fn scan(r: impl Read, what: &str) -> Result<Scan, TraceError> {
    let mut frames = FrameReader::new(r);
    let mut order = FrameOrder::default();
    let mut scan = Scan {
        info: TraceInfo::default(),
        chunks: vec![],
        end: 0,
        next_seq: 0,
        accesses: 0,
        damage: DamageLog::default(),
    };
    let mut has_info = false;
    loop {
        let (lost, frame) = frames.next().map_err(|source| TraceError::Io { what: what.into(), source })?;
        let in_order = order.step(lost, frame.as_ref(), frames.offset(), &mut scan.damage);
        let Some(frame) = frame else { break };
        if !in_order {
            continue;
        }
        let h = frame.header;
        match h.kind {
            FrameKind::Index => break,
            FrameKind::Info if !has_info => {
                if let Ok(info) = serde_json::from_slice(frames.payload(&frame)) {
                    scan.info = info;
                    has_info = true;
                }
            }
            FrameKind::Info => {}
            FrameKind::Data => scan.chunks.push(ChunkRef {
                offset: frame.offset,
                len: frame.len() as u32,
                first_access: h.first_access,
                accesses: h.accesses,
                is_quiet: false,
            }),
        }
        scan.end = frame.offset + frame.len();
        scan.next_seq = order.next_seq();
        scan.accesses = order.next_access;
    }
    if !has_info && scan.chunks.is_empty() {
        return Err(TraceError::Format {
            what: what.into(),
            place: "byte 0".into(),
            reason: "nothing readable of a lookaside trace (.lkt)".into(),
        });
    }
    if !has_info {
        scan.damage.push(0, 0, "both copies of the header are damaged; granularity and recorder are not known");
    }
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::frame::trailer;
    use crate::{Event, TraceWriter};

    #[test]
    fn a_chunk_in_the_index_can_be_a_frame_inside_the_file() {
        let info = serde_json::to_vec(&TraceInfo::default()).expect("it is plain");
        let decoded = |offset, len: usize, file_len| {
            let chunk = ChunkRef { offset, len: len as u32, first_access: 5, accesses: 1, is_quiet: false };
            decode_index(&encode_index(&info, &[chunk]), file_len).map(|(_, chunks)| assert_eq!(chunks, [chunk]))
        };
        let longest = 40 + (64 << 20);
        for len in [40, longest] {
            assert_eq!(decoded(100, len, 100 + len as u64), Ok(()));
            assert_eq!(decoded(100, len, 99 + len as u64), Err("an offset is outside the file"));
        }
        for len in [39, longest + 1] {
            assert_eq!(decoded(100, len, u64::MAX), Err("a chunk's length can't be"));
        }
    }

    #[test]
    fn a_trailer_that_points_nowhere_is_passed_over() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.lkt");
        let mut writer = TraceWriter::create(&path, &TraceInfo::default()).expect("a file");
        let block = Block { events: vec![(0, Event::Free { addr: 64 })], ..Block::default() };
        writer.write(&block).and_then(|()| writer.finish().map(drop)).expect("it is written");
        let whole = std::fs::read(&path).expect("it is there");
        let end = (whole.len() - TRAILER_LEN) as u64;
        // The first header, places where no frame begins, and behind the end.
        for at in [0, 1, end - 40, end - 39, end - 1, end, end + 100, u64::MAX - 39, u64::MAX] {
            std::fs::write(&path, [&whole[..end as usize], &trailer(at)].concat()).expect("it is written");
            let file = NativeFile::open(&path).expect("it can be scanned");
            assert_eq!((file.chunks().len(), file.damage()), (1, &[][..]), "{at}");
        }
    }
}
