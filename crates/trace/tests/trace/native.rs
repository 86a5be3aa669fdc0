//! The native format gives back what was written, whatever it is and however it is read.

use crate::common::{block, drain, items};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Event, Granularity, Kind, NativeFile, NativeReader, Source, TraceInfo, TraceWriter};
use proptest::collection::vec;
use proptest::prelude::*;

fn write(blocks: &[Block], info: &TraceInfo) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = TraceWriter::new(&mut out, info).unwrap();
    for b in blocks {
        w.write(b).unwrap();
    }
    let bytes = w.finish().unwrap();
    assert_eq!(bytes, out.len() as u64);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_blocks_come_back(blocks in vec(block(200), 0..12), flushes in any::<u16>()) {
        let mut out = Vec::new();
        let mut w = TraceWriter::new(&mut out, &TraceInfo::default()).unwrap();
        for (i, b) in blocks.iter().enumerate() {
            w.write(b).unwrap();
            if flushes >> (i % 16) & 1 == 1 {
                w.flush().unwrap();
            }
        }
        prop_assert_eq!(w.accesses(), blocks.iter().map(|b| b.len() as u64).sum::<u64>());
        w.finish().unwrap();
        let mut r = NativeReader::new(&out[..], "memory").unwrap();
        let back = drain(&mut r);
        prop_assert_eq!(r.damage(), &[]);
        prop_assert_eq!(items(&back), items(&blocks));
    }

    #[test]
    fn any_bytes_are_an_error_or_damage(bytes in vec(any::<u8>(), 0..400), at in any::<proptest::sample::Index>()) {
        let _ = NativeReader::new(&bytes[..], "memory").map(|mut r| drain(&mut r));
        // Also with a valid beginning.
        let mut file = write(&[sample(50)], &TraceInfo::default());
        let at = at.index(file.len());
        file.truncate(at);
        file.extend_from_slice(&bytes);
        if let Ok(mut r) = NativeReader::new(&file[..], "memory") {
            drain(&mut r);
            prop_assert!(!r.damage().is_empty());
        }
    }
}

/// A block with all columns and some events.
fn sample(n: usize) -> Block {
    let mut rng = SplitMix64::new(n as u64);
    let mut b = Block { process: 10, thread: 11, ..Block::default() };
    for i in 0..n {
        let ip = 0x40_0000 + rng.below(30) * 4;
        b.push(
            if ip & 4 == 0 { Kind::Load } else { Kind::Store },
            0x7000_0000 + rng.below(100) * 4096 + rng.below(64) * 64,
        );
        b.size.push(8);
        b.ip.push(ip);
        b.repeat.push(rng.below(300) as u32);
        if i % 40 == 0 {
            b.push_event(Event::Alloc { addr: rng.next_u64() >> 16, len: rng.below(1 << 20), site: 3 });
        }
    }
    b
}

/// Long enough for several chunks, in every way of writing addresses.
fn long(seed: u64, n: usize, addr: impl Fn(&mut SplitMix64, usize) -> u64) -> Block {
    let mut rng = SplitMix64::new(seed);
    let mut b = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..n {
        let a = addr(&mut rng, i);
        b.push(if i % 3 == 0 { Kind::Store } else { Kind::Load }, a);
    }
    b
}

#[test]
fn long_blocks_of_every_pattern_come_back() {
    let n = 300_000;
    let patterns: [Block; 5] = [
        long(1, n, |r, _| 0x1000_0000 + r.below(65536) * 4096),
        long(2, n, |_, i| 0x7f00_0000_0000 + i as u64 * 64),
        long(3, n, |r, i| if i % 2 == 0 { r.below(1 << 40) << 6 } else { 0x7ffc_0000_0000 + r.below(512) }),
        long(4, n, |r, _| r.next_u64()),
        long(5, n, |_, i| (i as u64 % 7) << 30 | (i as u64 / 7) << 3),
    ];
    for b in &patterns {
        let out = write(std::slice::from_ref(b), &TraceInfo::default());
        let mut r = NativeReader::new(&out[..], "memory").unwrap();
        assert!(items(&drain(&mut r)) == items([b]));
        assert_eq!(r.damage(), &[]);
    }
    // All after another in one file: the way of writing has to change between chunks.
    let out = write(&patterns, &TraceInfo::default());
    let mut r = NativeReader::new(&out[..], "memory").unwrap();
    assert!(items(&drain(&mut r)) == items(&patterns));
}

#[test]
fn same_input_same_bytes() {
    let blocks = [sample(3000), sample(70_000)];
    assert!(write(&blocks, &TraceInfo::default()) == write(&blocks, &TraceInfo::default()));
}

#[test]
fn workers_together_see_what_one_reader_sees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.lkt");
    let blocks: Vec<Block> = (0..5).map(|i| sample(120_000 + i)).collect();
    let info =
        TraceInfo { granularity: Granularity::Page, command: vec!["a".into(), "b c".into()], ..Default::default() };
    std::fs::write(&path, write(&blocks, &info)).unwrap();
    let file = NativeFile::open(&path).unwrap();
    assert_eq!(file.info(), &info);
    assert_eq!(file.damage(), &[]);
    let all = items(&blocks);
    assert_eq!(file.accesses(), blocks.iter().map(|b| b.len() as u64).sum::<u64>());
    assert!(file.chunks().len() >= 4);

    let half = file.chunks().len() / 2;
    let halves = [0..half, half..usize::MAX].map(|range| {
        let mut worker = file.worker(range).unwrap();
        std::thread::spawn(move || (drain(&mut worker), worker.damage().len()))
    });
    let mut both = Vec::new();
    for h in halves {
        let (blocks, damages) = h.join().unwrap();
        assert_eq!(damages, 0);
        both.extend(blocks);
    }
    assert!(items(&both) == all);
}

#[test]
fn many_tiny_runs_of_threads_come_back() {
    let blocks: Vec<Block> = (0..70_000u32)
        .map(|i| {
            let mut b = Block { process: i % 2, thread: i % 5, ..Block::default() };
            if i % 3 != 0 {
                b.push(Kind::Load, u64::from(i) * 8);
            } else {
                b.push_event(Event::ContextSwitch { cpu: i });
            }
            b
        })
        .collect();
    let out = write(&blocks, &TraceInfo::default());
    assert!(items(&drain(&mut NativeReader::new(&out[..], "memory").unwrap())) == items(&blocks));
}

#[test]
fn what_one_thread_does_comes_back_as_one_block() {
    let blocks = [sample(50), sample(70)];
    let out = write(&blocks, &TraceInfo::default());
    let back = drain(&mut NativeReader::new(&out[..], "memory").unwrap());
    assert_eq!(items(&back), items(&blocks));
    assert_eq!(back.iter().map(Block::len).collect::<Vec<_>>(), [120]);
}

#[test]
fn nothing_is_written_of_nothing() {
    let mut w = TraceWriter::new(Vec::new(), &TraceInfo::default()).unwrap();
    let header = w.bytes();
    w.write(&Block { process: 1, thread: 2, ..Block::default() }).unwrap();
    w.flush().unwrap();
    assert_eq!(w.bytes(), header);
    w.write(&sample(10)).unwrap();
    w.flush().unwrap();
    let chunk = w.bytes();
    assert!(chunk > header);
    w.flush().unwrap();
    assert_eq!((w.bytes(), w.accesses()), (chunk, 10));
}

#[test]
fn a_chunk_closes_when_its_events_take_a_mebibyte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.lkt");
    let markers = |n| (0..n).map(|_| (0, Event::Marker { text: "x".repeat(400 << 10) })).collect();
    let b = Block { process: 1, thread: 1, events: markers(5), ..Block::default() };
    std::fs::write(&path, write(std::slice::from_ref(&b), &TraceInfo::default())).unwrap();
    let file = NativeFile::open(&path).unwrap();
    let events: Vec<_> = drain(&mut file.worker(0..9).unwrap()).iter().map(|b| b.events.len()).collect();
    assert_eq!((file.chunks().len(), events), (2, vec![3, 2]));
}

#[test]
fn a_block_against_the_rules_is_refused_and_harms_nothing() {
    let mut out = Vec::new();
    let mut w = TraceWriter::new(&mut out, &TraceInfo::default()).unwrap();
    let good = sample(10);
    w.write(&good).unwrap();
    let mut bad = sample(10);
    bad.ip.pop();
    assert!(w.write(&bad).unwrap_err().to_string().contains("differ in length"));
    let mut bad = sample(10);
    bad.events.push((11, Event::Marker { text: "late".into() }));
    assert!(w.write(&bad).unwrap_err().to_string().contains("outside"));
    let mut bad = sample(1);
    bad.events = vec![(0, Event::Marker { text: "x".repeat(5 << 20) })];
    assert!(w.write(&bad).unwrap_err().to_string().contains("4 MiB"));
    w.finish().unwrap();
    assert_eq!(items(&drain(&mut NativeReader::new(&out[..], "memory").unwrap())), items([&good]));
}

#[test]
fn more_instructions_than_a_table_has_entries_come_back() {
    let mut b = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..200_000u64 {
        b.push(Kind::Fetch, i * 5);
        b.ip.push(i * 5);
        b.size.push(5);
        b.repeat.push((i % 3) as u32);
    }
    let out = write(std::slice::from_ref(&b), &TraceInfo::default());
    assert!(items(&drain(&mut NativeReader::new(&out[..], "memory").unwrap())) == items([&b]));
}
