//! Frames are found between whatever bytes, and what is lost is told as it was.

use super::*;
use crate::TraceWriter;

fn frame(seq: u32, first_access: u64, accesses: u32, payload: &[u8]) -> Vec<u8> {
    let payload_crc = crc32fast::hash(payload);
    let header = FrameHeader {
        kind: FrameKind::Data,
        seq,
        payload_len: payload.len() as u32,
        payload_crc,
        first_access,
        accesses,
    };
    [&header.encode()[..], payload].concat()
}

/// A frame whose payload is `inside` between bytes that are not right.
fn damaged(seq: u32, inside: &[u8]) -> Vec<u8> {
    let mut frame = frame(seq, 0, 0, &[&[0; 8], inside, &[0; 3]].concat());
    frame[HEADER_LEN] ^= 1;
    frame
}

/// Where bytes were lost and why, and the number of the frame after them.
type Found = (Option<(usize, &'static str)>, Option<u32>);

/// The frames in `bytes`; last what was lost before the end.
fn found(bytes: &[u8]) -> Vec<Found> {
    let mut frames = FrameReader::new(bytes);
    let mut all = Vec::new();
    loop {
        let (lost, frame) = frames.next().expect("bytes can be read");
        all.push((lost.map(|l| (l.offset as usize, l.reason)), frame.map(|f| f.header.seq)));
        if frame.is_none() {
            return all;
        }
    }
}

const CONTENT: &str = "checksum of a frame's content differs";
const NOTHING: &str = "no frame begins here";

/// As in the trace of a program that reads traces.
#[test]
fn a_damaged_frame_is_searched_for_frames_only_where_none_follows_it() {
    let outer = damaged(1, &frame(7, 0, 0, b"inner"));
    let followed = [&outer[..], &frame(2, 0, 0, b"next")].concat();
    assert_eq!(found(&followed), [(Some((0, CONTENT)), Some(2)), (None, None)]);
    let alone = [&outer[..], &[0x55; 50]].concat();
    assert_eq!(found(&alone), [(Some((0, CONTENT)), Some(7)), (Some((outer.len() - 3, NOTHING)), None)]);
    let cut = &outer[..outer.len() - 1];
    let rest = (Some((outer.len() - 3, "cut off in a frame's header")), None);
    assert_eq!(found(cut), [(Some((0, "cut off in a frame")), Some(7)), rest]);
    // The damaged frame inside is not searched again, or it would take as long as they are deep.
    let nest = damaged(1, &[&outer[..], &[0; 3], &frame(8, 0, 0, b"behind")].concat());
    let nested = [&nest[..], &[0x55; 50]].concat();
    assert_eq!(found(&nested)[0], (Some((0, CONTENT)), Some(8)));
}

#[test]
fn a_magic_is_found_wherever_a_read_ends() {
    let frame = frame(3, 0, 0, b"content");
    // The second read ends inside the magic.
    for noise in [1, 39, 40, 41].into_iter().chain(READ + 24..READ + 36) {
        let bytes = [&vec![0x55; noise][..], &frame].concat();
        assert_eq!(found(&bytes), [(Some((0, NOTHING)), Some(3)), (None, None)], "{noise} bytes before");
    }
}

#[test]
fn memory_does_not_grow_with_the_input() {
    let frame = frame(0, 0, 0, &[7; 1000]);
    let bytes = frame.repeat(50);
    let mut frames = FrameReader::new(&bytes[..]);
    for i in 1..=50 {
        let (lost, found) = frames.next().expect("bytes can be read");
        assert!(lost.is_none() && frames.buf.len() <= 2 * frame.len());
        assert_eq!(frames.payload(&found.expect("a frame is there")), [7; 1000]);
        assert_eq!(frames.offset(), i * frame.len() as u64);
    }
}

/// A pipe whose writer waits: reading on would wait too.
struct NothingMoreYet;

impl Read for NothingMoreYet {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn a_frame_is_given_before_the_next_one_is_there() {
    let two = [frame(0, 0, 0, b"first"), frame(1, 0, 0, b"second, longer")].concat();
    let mut frames = FrameReader::new((&two[..]).chain(NothingMoreYet));
    for seq in 0..2 {
        let (lost, found) = frames.next().expect("the frame is there");
        assert_eq!((lost.is_none(), found.map(|f| f.header.seq)), (true, Some(seq)));
    }
    assert!(frames.next().is_err());
}

#[test]
fn accesses_that_are_missing_between_two_frames_in_order_are_told() {
    let bytes = [frame(0, 0, 10, b""), frame(1, 25, 10, b""), frame(2, 35, 1, b"")].concat();
    let (mut frames, mut order, mut damage) =
        (FrameReader::new(&bytes[..]), FrameOrder::default(), DamageLog::default());
    while let (lost, Some(frame)) = frames.next().expect("bytes can be read") {
        assert!(order.step(lost, Some(&frame), frames.offset(), &mut damage));
    }
    let reason = "0 frames are missing here; 15 accesses lost".to_string();
    assert_eq!(damage.list(), [Damage { offset: 40, len: 0, reason }]);
    assert_eq!((order.next_seq(), order.next_access), (3, 36));
}

#[test]
fn bytes_after_the_end_are_told_and_not_read() {
    let mut file = Vec::new();
    TraceWriter::new(&mut file, &TraceInfo::default()).and_then(TraceWriter::finish).expect("memory can be written");
    // More than one read takes.
    for more in [1, 16, READ + 100] {
        let longer = [&file[..], &file.repeat(more / file.len() + 1)[..more]].concat();
        let mut reader = NativeReader::new(&longer[..], "longer").expect("its header is whole");
        let mut block = Block::default();
        assert!(!reader.next_block(&mut block).expect("bytes can be read"));
        let reason = "bytes after the end of the trace; nothing in them was read".to_string();
        assert_eq!(reader.damage(), [Damage { offset: file.len() as u64, len: more as u64, reason }]);
    }
}

#[test]
fn nothing_at_all_is_called_empty() {
    let error = NativeReader::new(&[][..], "pipe").map(drop).expect_err("it has no header");
    assert_eq!(error.to_string(), "pipe: byte 0: empty; expected a lookaside trace (.lkt)");
}
