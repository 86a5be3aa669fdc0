//! Streams written by hand: whose a count is, where a block ends, what is refused.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};

use lookaside_capture::WireReader;
use lookaside_trace::{Block, Damage, Event, Granularity, Kind, Source, TraceError};

use crate::recorder::Setup;
use crate::{info, page_setup};

const ACCESSES: u16 = 1;
const EVENT: u16 = 2;
const END: u16 = 3;
const SLOT: u16 = 4;

/// A frame of process 1.
fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let words = [payload.len() as u32, 1, 1].map(u32::to_le_bytes).concat();
    [&0x4C41u16.to_le_bytes()[..], &kind.to_le_bytes(), &words, payload].concat()
}

fn end() -> Vec<u8> {
    frame(END, &[])
}

fn event(event: &Event) -> Vec<u8> {
    frame(EVENT, &serde_json::to_vec(event).unwrap())
}

/// A frame of records, two words each.
fn records(words: &[(u64, u64)]) -> Vec<u8> {
    let bytes: Vec<u8> = words.iter().flat_map(|&(w0, w1)| [w0, w1].map(u64::to_le_bytes).concat()).collect();
    frame(ACCESSES, &bytes)
}

fn access(kind: u64, addr: u64) -> (u64, u64) {
    (addr | kind << 48 | 8 << 56, 0x40_1000)
}

/// So many accesses were left out on the page, by this table.
fn count(table: u64, addr: u64, count: u64) -> (u64, u64) {
    (addr | 3 << 48 | table << 56, count)
}

fn read(bytes: &[u8], setup: &Setup) -> (Vec<Block>, Vec<Damage>) {
    let mut source = WireReader::new(bytes, info(setup), setup.unified);
    assert_eq!(source.info(), &info(setup));
    let (mut blocks, mut block) = (vec![], Block::default());
    while source.next_block(&mut block).unwrap() {
        blocks.push(block.clone());
    }
    (blocks, source.damage().to_vec())
}

fn byte_setup() -> Setup {
    Setup { granularity: Granularity::Byte, ..page_setup() }
}

#[test]
fn a_count_goes_to_the_table_that_it_names() {
    let repeats = |rows: &[(u64, u64)], counts: &[(u64, u64)]| {
        let (blocks, damage) = read(&[records(&[rows, counts].concat()), end()].concat(), &page_setup());
        assert_eq!((blocks.len(), damage), (1, vec![]));
        assert_eq!(blocks[0].events, []);
        blocks[0].repeat.clone()
    };
    // Loads and stores have one table, fetches another.
    let of_one_page = [access(0, 0x5000), access(2, 0x5010)];
    assert_eq!(repeats(&of_one_page, &[count(2, 0x5ff0, 7), count(0, 0x5008, 1), count(0, 0x5000, 0)]), [1, 7]);
    // Another recorder may say otherwise: any table that has the page. The one named has another page, or is none.
    for table in [0, 1, 3, 200] {
        assert_eq!(repeats(&[access(0, 0x5000), access(2, 0x9000)], &[count(table, 0x9000, 3)]), [0, 3], "{table}");
    }
}

#[test]
fn a_count_on_a_page_that_was_not_recorded_is_kept_and_said() {
    for (table, kind) in [(0, Kind::Load), (1, Kind::Load), (2, Kind::Fetch)] {
        // The first page is what an empty slot looks like.
        for page in [0, 0x7000] {
            let frame = records(&[access(0, 0x5000), count(table, page, 5)]);
            let (blocks, damage) = read(&[&frame[..], &end()].concat(), &page_setup());
            assert_eq!(blocks[0].events, [(1, Event::Repeats { addr: page, kind, count: 5 })]);
            let reason = "a count of accesses left out on a page that was not recorded".to_string();
            assert_eq!(damage, [Damage { offset: 0, len: frame.len() as u64, reason }]);
        }
    }
}

#[test]
fn an_address_that_no_page_table_has_is_no_access() {
    let windows = Setup { window: 4, class_pages: 4, ..page_setup() };
    for (bit, setup) in
        [50, 55].into_iter().flat_map(|bit| [(bit, byte_setup()), (bit, page_setup()), (bit, windows.clone())])
    {
        let beyond = |(w0, w1): (u64, u64)| (w0 | 1 << bit, w1);
        let frame = records(&[access(0, 0x5000), beyond(access(1, 0x6000)), beyond(count(0, 0x5000, 9))]);
        let (blocks, damage) = read(&[frame, end()].concat(), &setup);
        assert_eq!(
            (&blocks[0].addr[..], &blocks[0].events[..], &damage[..]),
            (&[0x5000][..], &[][..], &[][..]),
            "{setup:?}"
        );
        assert_eq!(blocks[0].accesses(), 1, "{setup:?}");
    }
}

#[test]
fn a_number_that_is_given_again_is_another_process() {
    let totals = |n| Event::Totals { loads: n, stores: 2 * n, fetches: 3 * n, instructions: 4 * n };
    let life = [event(&totals(5)), event(&Event::Exec { path: "/bin/true".into() }), event(&totals(5)), end()].concat();
    let (blocks, damage) = read(&life.repeat(2), &page_setup());
    let events = blocks.into_iter().flat_map(|block| block.events).map(|(_, event)| event);
    let said: Vec<Event> = events.filter(|event| matches!(event, Event::Totals { .. })).collect();
    assert_eq!((said, damage), (vec![totals(5), totals(10), totals(5), totals(10)], vec![]));
}

#[test]
fn a_block_takes_whole_frames_as_long_as_they_fit() {
    // One less than fits, then one, then one more. Where nothing is filtered, a count is an event.
    let streams = [access(0, 0x5000), count(0, 0x5000, 1)].map(|record| {
        let (full, one) = (records(&[record; 255]), records(&[record]));
        [full.repeat(257), one.clone(), one, end()].concat()
    });
    let sizes = streams.map(|stream| {
        let (blocks, damage) = read(&stream, &byte_setup());
        assert_eq!(damage, []);
        blocks.iter().map(|block| (block.len(), block.events.len())).collect::<Vec<_>>()
    });
    assert_eq!(sizes, [vec![(1 << 16, 0), (1, 0)], vec![(0, 1 << 16), (0, 1)]]);
}

#[test]
fn a_frame_has_a_known_kind_and_a_size_that_fits_it() {
    for (kind, bytes, reason) in [
        (EVENT, 4081, "a frame of 4081 bytes, the most is 4080"),
        (ACCESSES, 8, "a frame of kind 1 with 8 bytes"),
        (ACCESSES, 40, "a frame of kind 1 with 40 bytes"),
        (END, 1, "a frame of kind 3 with 1 bytes"),
        (SLOT, 16, "a frame of kind 4 with 16 bytes"),
        (5, 0, "a frame of kind 5 with 0 bytes"),
    ] {
        let (blocks, damage) = read(&frame(kind, &vec![0; bytes]), &page_setup());
        assert_eq!(
            (blocks, damage),
            (vec![], vec![Damage { offset: 0, len: 16 + bytes as u64, reason: reason.into() }])
        );
    }
    let marker = |bytes: usize| Event::Marker { text: "x".repeat(bytes) };
    let largest = marker(4080 + 16 - event(&marker(0)).len());
    let (blocks, damage) = read(&[event(&largest), end()].concat(), &page_setup());
    assert_eq!((&blocks[0].events[..], &damage[..]), (&[(0, largest)][..], &[][..]));
    // No memory is shared.
    let (_, damage) = read(&[frame(SLOT, &[7, 0, 0, 0, 16, 0, 0, 0]), end()].concat(), &page_setup());
    assert_eq!(damage[0].reason, "16 bytes of records in slot 7, which is none");
}

#[test]
fn damages_of_the_same_kind_are_one_and_the_last_of_many_is_of_all_that_follow() {
    let [odd, other] = ["x", "{"].map(|text| frame(EVENT, text.as_bytes()));
    let places = |stream: &[&[u8]]| -> Vec<(u64, u64)> {
        let (blocks, damage) = read(&[&stream.concat()[..], &end()].concat(), &page_setup());
        assert!(blocks.iter().all(|block| block.is_empty()));
        damage.iter().map(|damage| (damage.offset, damage.len)).collect()
    };
    assert_eq!(places(&[&odd, &odd, &odd, &other, &odd]), [(0, 51), (51, 17), (68, 17)]);
    let many = places(&[[&odd[..], &other].concat().repeat(501).as_slice()]);
    assert_eq!((many.len(), many[998], many[999]), (1000, (998 * 17, 17), (999 * 17, 3 * 17)));
}

/// A pipe whose reads end so, one after the other.
struct Reads<'a> {
    rest: VecDeque<io::Result<Vec<u8>>>,
    asked: &'a Cell<usize>,
}

impl Read for Reads<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.asked.set(self.asked.get() + 1);
        let mut bytes = self.rest.pop_front().unwrap_or(Ok(vec![]))?;
        let rest = bytes.split_off(bytes.len().min(into.len()));
        into[..bytes.len()].copy_from_slice(&bytes);
        if !rest.is_empty() {
            self.rest.push_front(Ok(rest));
        }
        Ok(bytes.len())
    }
}

#[test]
fn a_read_that_was_interrupted_is_made_again_and_one_that_failed_is_not() {
    let frame = records(&[access(0, 0x5000)]);
    let failed = |kind: ErrorKind| -> io::Result<Vec<u8>> { Err(kind.into()) };
    let reads = [
        failed(ErrorKind::Interrupted),
        Ok(frame[..20].to_vec()),
        failed(ErrorKind::Interrupted),
        Ok(frame[20..].to_vec()),
        failed(ErrorKind::ConnectionReset),
        Ok(frame),
    ];
    let asked = Cell::new(0);
    let mut source = WireReader::new(Reads { rest: reads.into(), asked: &asked }, info(&page_setup()), false);
    let mut block = Block::default();
    let error = source.next_block(&mut block).unwrap_err();
    assert!(matches!(&error, TraceError::Io { what, .. } if what == "the recorder's pipe"), "{error}");
    assert_eq!((block.len(), asked.get()), (1, 5), "what came before is kept");
    assert!(!source.next_block(&mut block).unwrap());
    assert_eq!(asked.get(), 5, "the pipe is closed");
}

#[test]
fn a_stream_is_read_in_large_pieces() {
    let stream = [records(&[access(0, 0x5000); 255]).repeat(256), end()].concat();
    let (mut block, asked) = (Block::default(), Cell::new(0));
    let reads = Reads { rest: [Ok(stream)].into(), asked: &asked };
    let mut source = WireReader::new(reads, info(&byte_setup()), false);
    while source.next_block(&mut block).unwrap() {
        assert_eq!(block.len(), 256 * 255);
    }
    // A mebibyte, a quarter of one at a time.
    assert!(asked.get() < 8, "{}", asked.get());
}
