//! A native trace that is cut or changed anywhere gives up what is damaged, says which bytes, and
//! never passes wrong data off as right.

use std::io::{self, Write};

use crate::common::{drain, items, Item};
use lookaside_trace::{Block, Event, Kind, NativeFile, NativeReader, Source, TraceError, TraceInfo, TraceWriter};

/// Blocks written as a chunk each; the chunks' items; the file; where each frame begins.
struct Sample {
    chunks: Vec<Vec<Item>>,
    file: Vec<u8>,
    /// First bytes of the frames: header, header, chunks, index; then of the trailer.
    starts: Vec<usize>,
}

fn info() -> TraceInfo {
    TraceInfo { recorder: "test".into(), has_ip: true, ..TraceInfo::default() }
}

fn blocks() -> Vec<Block> {
    (0..4u64)
        .map(|i| {
            let mut b = Block { process: 1, thread: 2, ..Block::default() };
            for j in 0..20 {
                b.push(if j % 3 == 0 { Kind::Store } else { Kind::Load }, 0x1000 * (i + 1) + j * 24);
                b.ip.push(0x400 + j % 5);
                b.repeat.push((i * j) as u32);
            }
            b.events.push((7, Event::Marker { text: format!("chunk {i}") }));
            b
        })
        .collect()
}

fn sample() -> Sample {
    let mut file = Vec::new();
    let mut w = TraceWriter::new(&mut file, &info()).unwrap();
    let mut starts = vec![0, w.bytes() as usize / 2];
    for b in blocks() {
        starts.push(w.bytes() as usize);
        w.write(&b).unwrap();
        w.flush().unwrap();
    }
    starts.push(w.bytes() as usize);
    w.finish().unwrap();
    starts.push(file.len() - 16);
    Sample { chunks: blocks().iter().map(|b| items([b])).collect(), file, starts }
}

impl Sample {
    /// Number of the frame that byte `at` lies in.
    fn frame_of(&self, at: usize) -> usize {
        self.starts.iter().rposition(|&s| s <= at).unwrap()
    }

    fn all_but(&self, lost: impl Fn(usize) -> bool) -> Vec<Item> {
        (0..self.chunks.len()).filter(|&c| !lost(c)).flat_map(|c| self.chunks[c].clone()).collect()
    }
}

#[test]
fn cut_at_every_byte() {
    let s = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.lkt");
    for at in 0..s.file.len() {
        let cut = &s.file[..at];
        let reader = NativeReader::new(cut, "cut");
        if at < s.starts[1] {
            assert!(matches!(reader, Err(TraceError::Format { .. })), "cut at {at}");
            continue;
        }
        let mut reader = reader.unwrap();
        assert_eq!(reader.info(), &info());
        let whole = |c: usize| s.starts[c + 3] <= at;
        assert_eq!(items(&drain(&mut reader)), s.all_but(|c| !whole(c)), "cut at {at}");
        let damage = reader.damage();
        assert_eq!(damage.len(), 1, "cut at {at}: {damage:?}");
        // It covers what is left of the last frame, to the end.
        let frame = s.frame_of(at);
        assert_eq!((damage[0].offset, damage[0].len), (s.starts[frame] as u64, (at - s.starts[frame]) as u64));

        std::fs::write(&path, cut).unwrap();
        let file = NativeFile::open(&path).unwrap();
        assert_eq!(items(&drain(&mut file.worker(0..usize::MAX).unwrap())), s.all_but(|c| !whole(c)));
        // With a whole index the file is not scanned.
        assert_eq!(file.damage(), if at < s.starts[7] { damage } else { &[] });
    }
}

#[test]
fn flip_every_byte() {
    let s = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flip.lkt");
    for at in 0..s.file.len() {
        for bit in [at % 8, (at + 5) % 8] {
            let mut file = s.file.clone();
            file[at] ^= 1 << bit;
            let mut reader = NativeReader::new(&file[..], "flip").unwrap();
            assert_eq!(reader.info(), &info(), "the second header stands in");
            let frame = s.frame_of(at);
            let lost = |c: usize| c + 2 == frame;
            assert_eq!(items(&drain(&mut reader)), s.all_but(lost), "bit {bit} of byte {at}");
            // A second entry may tell that the index is gone.
            let damage = reader.damage();
            assert!(damage.iter().any(|d| d.offset <= at as u64 && at as u64 <= d.offset + d.len), "{at}: {damage:?}");
            assert_eq!((damage[0].offset, damage.len()), (s.starts[frame] as u64, 1), "bit {bit} of byte {at}");
            if bit == at % 8 {
                std::fs::write(&path, &file).unwrap();
                let opened = NativeFile::open(&path).unwrap();
                let mut worker = opened.worker(0..usize::MAX).unwrap();
                assert_eq!((opened.info(), worker.info()), (&info(), &info()));
                assert_eq!(items(&drain(&mut worker)), s.all_but(lost));
                let damage: Vec<_> = worker.damage().iter().map(|d| (d.offset as usize, d.len as usize)).collect();
                let chunk = (2..6).contains(&frame).then(|| (s.starts[frame], s.starts[frame + 1] - s.starts[frame]));
                assert_eq!(damage, Vec::from_iter(chunk), "byte {at}");
                assert!(worker.damage().iter().all(|d| d.reason.ends_with("; 20 accesses lost")));
            }
        }
    }
}

#[test]
fn bytes_taken_out_put_in_and_chunks_doubled() {
    let s = sample();
    for at in 0..s.starts[6] {
        let frame = s.frame_of(at);
        for replace in [vec![], vec![s.file[at], 0x55]] {
            let mut file = s.file.clone();
            file.splice(at..at + 1, replace);
            let mut reader = NativeReader::new(&file[..], "shifted").unwrap();
            let got = items(&drain(&mut reader));
            // A byte between two frames costs none of them.
            assert!(got == s.all_but(|c| c + 2 == frame) || got == s.all_but(|_| false), "byte {at}");
            assert!(!reader.damage().is_empty());
        }
    }
    // A whole chunk taken out, and one doubled.
    let (a, b) = (s.starts[3], s.starts[4]);
    let without = [&s.file[..a], &s.file[b..]].concat();
    let mut reader = NativeReader::new(&without[..], "without").unwrap();
    assert_eq!(items(&drain(&mut reader)), s.all_but(|c| c == 1));
    assert!(reader.damage()[0].reason.contains("20 accesses lost"), "{:?}", reader.damage());
    let doubled = [&s.file[..b], &s.file[a..]].concat();
    let mut reader = NativeReader::new(&doubled[..], "doubled").unwrap();
    assert_eq!(items(&drain(&mut reader)), s.all_but(|_| false));
    assert_eq!(reader.damage()[0].offset, b as u64);
}

/// A file of chunks, and where each begins, and the end of the last.
fn chunks(blocks: &[Block]) -> (Vec<u8>, Vec<usize>) {
    let mut file = Vec::new();
    let mut w = TraceWriter::new(&mut file, &info()).unwrap();
    let mut starts = Vec::new();
    for b in blocks {
        starts.push(w.bytes() as usize);
        w.write(b).unwrap();
        w.flush().unwrap();
    }
    starts.push(w.bytes() as usize);
    w.finish().unwrap();
    (file, starts)
}

/// Its number may be higher than that of the frame before: it counts other accesses.
#[test]
fn a_frame_of_another_trace_is_left_out() {
    let s = sample();
    let few: Vec<Block> = blocks()
        .iter()
        .map(|b| {
            let mut first = Block { process: 1, thread: 2, ..Block::default() };
            first.push(b.kind[0], b.addr[0]);
            first.ip.push(b.ip[0]);
            first
        })
        .collect();
    let (other, starts) = chunks(&few);
    // The other's last one, after two accesses, in the place of one after 40.
    let (at, frame) = (s.starts[4], &other[starts[3]..starts[4]]);
    let file = [&s.file[..at], frame, &s.file[at..]].concat();
    let mut reader = NativeReader::new(&file[..], "mixed").unwrap();
    assert_eq!(items(&drain(&mut reader)), s.all_but(|_| false));
    let damage = &reader.damage()[0];
    assert_eq!((damage.offset, damage.len), (at as u64, frame.len() as u64));
    assert!(damage.reason.contains("is of another trace"), "{damage:?}");
}

#[test]
fn what_is_lost_is_counted_to_the_access() {
    let mut all = blocks();
    // One without accesses: its loss is told all the same.
    all[2] = Block { process: 1, thread: 2, events: all[2].events.clone(), ..Block::default() };
    all[2].events[0].0 = 0;
    let (file, starts) = chunks(&all);
    let without = |from: usize, to: usize| {
        let file = [&file[..starts[from]], &file[starts[to]..]].concat();
        let mut reader = NativeReader::new(&file[..], "without").unwrap();
        drain(&mut reader);
        reader.damage()[0].reason.clone()
    };
    assert_eq!(without(2, 3), "1 frames are missing here; 0 accesses lost");
    assert_eq!(without(1, 2), "1 frames are missing here; 20 accesses lost");
    assert_eq!(without(0, 3), "3 frames are missing here; 40 accesses lost");
    let mut cut = NativeReader::new(&file[..starts[2]], "cut").unwrap();
    drain(&mut cut);
    assert_eq!(cut.damage()[0].reason, "ends without its index: the recording was cut short after access 40");
    let mut torn = NativeReader::new(&file[..starts[2] - 1], "torn").unwrap();
    drain(&mut torn);
    assert!(torn.damage()[0].reason.ends_with("; what came after access 20 is lost"), "{:?}", torn.damage());
}

#[test]
fn both_headers_lost() {
    let s = sample();
    let mut file = s.file.clone();
    file[20] ^= 1;
    file[s.starts[1] + 20] ^= 1;
    let mut reader = NativeReader::new(&file[..], "headless").unwrap();
    assert_eq!(reader.info(), &TraceInfo::default());
    assert_eq!(items(&drain(&mut reader)), s.all_but(|_| false));
    assert!(reader.damage().iter().any(|d| d.reason.contains("both copies of the header")));
    // The index holds a third copy.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("headless.lkt");
    std::fs::write(&path, &file).unwrap();
    assert_eq!(NativeFile::open(&path).unwrap().info(), &info());
    // Without that too, a scan says what is not known.
    file[s.starts[6] + 50] ^= 1;
    std::fs::write(&path, &file).unwrap();
    let scanned = NativeFile::open(&path).unwrap();
    assert_eq!(scanned.info(), &TraceInfo::default());
    assert!(scanned.damage().iter().any(|d| d.reason.contains("both copies of the header")));
}

#[test]
fn a_file_that_is_cut_while_it_is_open_is_damaged() {
    let s = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shrinks.lkt");
    std::fs::write(&path, &s.file).unwrap();
    let opened = NativeFile::open(&path).unwrap();
    std::fs::write(&path, &s.file[..s.starts[4] + 1]).unwrap();
    let mut worker = opened.worker(0..usize::MAX).unwrap();
    assert_eq!(items(&drain(&mut worker)), s.all_but(|c| c >= 2));
    let reasons: Vec<_> = worker.damage().iter().map(|d| &d.reason[..]).collect();
    assert_eq!(reasons, ["cut off in a frame; 20 accesses lost"; 2]);
}

#[test]
fn append_continues_after_a_kill_at_every_byte() {
    let s = sample();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("killed.lkt");
    let more = blocks().remove(2);
    for at in (s.starts[1]..=s.file.len()).step_by(3).chain([s.file.len()]) {
        std::fs::write(&path, &s.file[..at]).unwrap();
        let mut w = TraceWriter::append(&path).unwrap();
        w.write(&more).unwrap();
        w.finish().unwrap();
        let mut expected = s.all_but(|c| s.starts[c + 3] > at);
        expected.extend(items([&more]));
        let mut reader = NativeReader::open(&path).unwrap();
        assert_eq!(items(&drain(&mut reader)), expected, "killed at {at}");
        assert_eq!(reader.damage(), &[], "killed at {at}");
        let file = NativeFile::open(&path).unwrap();
        assert_eq!(items(&drain(&mut file.worker(0..usize::MAX).unwrap())), expected);
    }
}

/// A disk that is full after `left` bytes.
struct FullDisk<'a> {
    out: &'a mut Vec<u8>,
    left: usize,
}

impl Write for FullDisk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.left);
        if n == 0 {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.out.extend_from_slice(&bytes[..n]);
        self.left -= n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_and_what_fits_stays() {
    let s = sample();
    for left in (0..s.file.len()).step_by(7) {
        let mut out = Vec::new();
        let disk = FullDisk { out: &mut out, left };
        let written = TraceWriter::new(disk, &info()).and_then(|mut w| {
            for b in blocks() {
                w.write(&b)?;
                w.flush()?;
            }
            w.finish()
        });
        assert!(written.unwrap_err().to_string().contains("No space left"), "{left}");
        if left >= s.starts[1] {
            let mut reader = NativeReader::new(&out[..], "full").unwrap();
            assert_eq!(items(&drain(&mut reader)), s.all_but(|c| s.starts[c + 3] > left));
        }
    }
}

#[test]
fn a_full_device_is_told() {
    let mut w = match TraceWriter::create("/dev/full", &info()) {
        Err(e) => return assert!(e.to_string().contains("/dev/full"), "{e}"),
        Ok(w) => w,
    };
    w.write(&blocks()[0]).unwrap();
    assert!(w.finish().unwrap_err().to_string().contains("/dev/full"));
}

#[test]
fn a_writer_dropped_without_finish_loses_nothing() {
    let mut out = Vec::new();
    let mut w = TraceWriter::new(&mut out, &info()).unwrap();
    w.write(&blocks()[0]).unwrap();
    drop(w);
    let mut reader = NativeReader::new(&out[..], "dropped").unwrap();
    assert_eq!(items(&drain(&mut reader)), items(&blocks()[..1]));
    assert_eq!(reader.damage(), &[]);
}

#[test]
fn other_versions_than_2_and_3_are_refused_in_one_line() {
    let s = sample();
    let of_version = |version| {
        let mut file = s.file.clone();
        for &at in &s.starts[..7] {
            file[at + 9] = version;
            let crc = crc32fast::hash(&file[at..at + 36]);
            file[at + 36..at + 40].copy_from_slice(&crc.to_le_bytes());
        }
        file
    };
    for version in [1, 4] {
        let Err(e) = NativeReader::new(&of_version(version)[..], "old.lkt") else { panic!("it was read") };
        let e = e.to_string();
        assert!(["old.lkt", "another version", "record it again"].iter().all(|part| e.contains(part)), "{e}");
        assert_eq!(e.lines().count(), 1);
    }
    let read = |file: &[u8]| {
        let mut reader = NativeReader::new(file, "t.lkt").expect("it can be read");
        let (mut block, mut addresses) = (Block::default(), Vec::new());
        while reader.next_block(&mut block).expect("it is whole") {
            addresses.extend_from_slice(&block.addr);
        }
        assert!(reader.damage().is_empty());
        addresses
    };
    assert_eq!(read(&of_version(2)), read(&s.file));
}
