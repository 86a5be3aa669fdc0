//! Chunks whose checksum is right and which no writer writes: refused with the reason.

use super::*;
use crate::native::events::EventEncoder;
use crate::native::stream::Packer;
use crate::native::varint::put;

/// A payload up to its accesses; a run is process, thread, accesses and events.
fn payload(accesses: u64, runs: &[[u64; 4]], events: &[(u32, Event)]) -> Vec<u8> {
    let mut packer = Packer::new().expect("memory for zstd");
    let (mut out, mut numbers, mut encoder) = (Vec::new(), Vec::new(), EventEncoder::default());
    put(&mut out, accesses);
    put(&mut out, runs.len() as u64);
    runs.iter().flatten().for_each(|&v| put(&mut numbers, v));
    packer.bytes(&numbers, &mut out);
    events.iter().for_each(|(pos, event)| encoder.push(*pos, event));
    encoder.finish(&mut packer, &mut out);
    out
}

fn load(payload: &[u8], accesses: u32) -> Result<(), Bad> {
    let mut decoder = ChunkDecoder::new().expect("memory for zstd");
    let loaded = decoder.load(payload, accesses);
    assert!(loaded.is_ok() || !decoder.next_block(&mut Block::default()), "a block of a refused chunk");
    loaded
}

fn at(positions: &[u32]) -> Vec<(u32, Event)> {
    positions.iter().map(|&pos| (pos, Event::Free { addr: 64 })).collect()
}

/// What is refused for its runs is refused before its accesses are read, which are missing here.
const ACCESSES_MISSING: Result<(), Bad> = Err("a column ends too early");

#[test]
fn runs_add_up_to_their_chunk() {
    let two = &[[1, 1, 1, 0], [2, 2, 1, 0]][..];
    assert_eq!(load(&payload(2, two, &[]), 2), ACCESSES_MISSING);
    let number = Err("a chunk has another number of accesses than its frame says");
    assert_eq!(load(&payload(2, two, &[]), 3), number);
    let sum = Err("a chunk's runs do not add up to its accesses");
    assert_eq!(load(&payload(3, two, &[]), 3), sum);
    assert_eq!(load(&payload(2, &[[1, 1, 2, 0]], &[]), 2), ACCESSES_MISSING);
    // One run more than is said: the count is the second byte.
    let mut more = payload(2, &[[1, 1, 2, 0], [2, 2, 0, 0]], &[]);
    more[1] = 1;
    assert_eq!(load(&more, 2), sum);
    let events = Err("a chunk's runs do not add up to its events");
    assert_eq!(load(&payload(2, two, &at(&[1])), 2), events);
    assert_eq!(load(&payload(2, &[[1, 1, 2, 2]], &at(&[1])), 2), events);
}

#[test]
fn events_stand_in_their_run_or_at_its_ends() {
    let outside = Err("an event stands outside its run");
    for (first, second, positions, expected) in [
        (2, 2, [0, 1, 1, 2], ACCESSES_MISSING),
        (4, 0, [0, 0, 1, 1], ACCESSES_MISSING),
        (0, 4, [1, 1, 2, 2], ACCESSES_MISSING),
        (3, 1, [0, 1, 2, 2], outside),
        (1, 3, [0, 0, 1, 2], outside),
        (2, 2, [0, 1, 2, 3], outside),
    ] {
        let runs = [[1, 1, 1, first], [2, 2, 1, second]];
        assert_eq!(load(&payload(2, &runs, &at(&positions)), 2), expected, "{first} and {second} of {positions:?}");
    }
}

#[test]
fn a_chunk_of_events_alone_comes_back() {
    let whole = payload(0, &[[7, 8, 0, 2]], &at(&[0, 0]));
    let mut decoder = ChunkDecoder::new().expect("memory for zstd");
    decoder.load(&whole, 0).expect("it is whole");
    let mut block = Block::default();
    assert!(decoder.next_block(&mut block));
    assert_eq!(block, Block { process: 7, thread: 8, events: at(&[0, 0]), ..Block::default() });
    assert!(!decoder.next_block(&mut block));
    let more = [&whole[..], &[0]].concat();
    assert_eq!(load(&more, 0), Err("a chunk is followed by bytes that belong to no column"));
}

#[test]
fn unknown_ways_of_writing_are_refused() {
    let with = |flags, mode, shift| load(&[&payload(1, &[[1, 1, 1, 0]], &[])[..], &[flags, mode, shift]].concat(), 1);
    assert_eq!(with(0, mode::ENTRY, 63), ACCESSES_MISSING);
    assert_eq!(with(0, mode::MOVING_BASE, 63), ACCESSES_MISSING);
    assert_eq!(with(0, mode::MOVING_BASE + 1, 63), Err("addresses are written in an unknown way"));
    assert_eq!(with(0, mode::ENTRY, 64), Err("addresses are shifted too far"));
}
