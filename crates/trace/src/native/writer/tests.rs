use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;

use super::*;
use crate::{Kind, NativeReader, Source};

/// Three accesses with all columns.
fn block() -> Block {
    Block {
        addr: vec![64, 128, 192],
        kind: vec![Kind::Load; 3],
        size: vec![8; 3],
        ip: vec![4; 3],
        repeat: vec![1; 3],
        ..Block::default()
    }
}

fn refusal(block: &Block) -> Option<String> {
    check_block("x", block).err().map(|e| e.to_string())
}

#[test]
fn each_column_is_as_long_as_the_block_or_not_recorded() {
    let change = |change: fn(&mut Block)| {
        let mut block = block();
        change(&mut block);
        refusal(&block)
    };
    let whole: [fn(&mut Block); 4] = [|_| (), |b| b.size.clear(), |b| b.ip.clear(), |b| b.repeat.clear()];
    assert_eq!(whole.map(change), [None, None, None, None]);
    let cut: [fn(&mut Block); 5] = [
        |b| b.kind.truncate(2),
        |b| b.size.truncate(2),
        |b| b.ip.truncate(2),
        |b| b.repeat.truncate(2),
        |b| b.kind.clear(),
    ];
    for cut in cut {
        assert_eq!(change(cut).as_deref(), Some("x: block: its columns differ in length"));
    }
}

#[test]
fn events_stand_in_order_inside_their_block() {
    let at = |positions: &[u32]| {
        let events = positions.iter().map(|&pos| (pos, Event::Free { addr: 64 })).collect();
        refusal(&Block { events, ..block() })
    };
    assert_eq!((at(&[0, 0, 2, 3, 3]), at(&[])), (None, None));
    for positions in [&[1, 0][..], &[4], &[0, 3, 2]] {
        let reason = "x: block: its events are not in order or stand outside it";
        assert_eq!(at(positions).as_deref(), Some(reason), "{positions:?}");
    }
}

#[test]
fn the_text_of_an_event_has_at_most_4_mib() {
    let event = |event| refusal(&Block { events: vec![(0, event)], ..Block::default() });
    let text = |n| "x".repeat(n);
    let map = |n| {
        let source = MapSource::File { path: text(n), offset: 0 };
        Event::Map { addr: 0, len: 1, prot: 1, source, site: 0 }
    };
    let too_long = Some("x: block: an event's text is longer than 4 MiB");
    for (n, expected) in [(4 << 20, None), ((4 << 20) + 1, too_long)] {
        for event_of in [map(n), Event::Exec { path: text(n) }, Event::Marker { text: text(n) }] {
            assert_eq!(event(event_of).as_deref(), expected);
        }
    }
    // Frames of ten bytes.
    let frames = |n| event(Event::Site { id: 1, frames: vec![u64::MAX; n] });
    assert_eq!((frames(419_430), frames(419_431).as_deref()), (None, too_long));
}

#[test]
fn a_command_has_at_most_8_mib_in_the_header() {
    let info = |n: usize| TraceInfo { command: vec!["x".repeat(n)], ..TraceInfo::default() };
    let room = (8 << 20) - serde_json::to_vec(&info(0)).expect("it is plain").len();
    let begun = |n| TraceWriter::unopened(Vec::new(), "x".into(), &info(n)).err().map(|e| e.to_string());
    assert_eq!(begun(room), None);
    let reason = "x: header: the recorded command is longer than 8 MiB";
    assert_eq!(begun(room + 1).as_deref(), Some(reason));
}

/// A disk that is full for a while.
#[derive(Clone, Default)]
struct Disk(Rc<Cell<bool>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.get() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let disk = Disk::default();
    let mut writer = TraceWriter::new(disk.clone(), &TraceInfo::default()).expect("there is room");
    writer.write(&block()).expect("it is not written yet");
    let before = writer.bytes();
    disk.0.set(true);
    assert!(matches!(writer.flush(), Err(TraceError::Io { .. })));
    disk.0.set(false);
    let reason = "output: end: writing failed before; what was written until then is readable";
    for again in [writer.write(&block()), writer.flush()] {
        assert_eq!(again.expect_err("a part is missing").to_string(), reason);
    }
    assert_eq!(writer.bytes(), before);
    assert_eq!(writer.finish().expect_err("a part is missing").to_string(), reason);
}

#[test]
fn what_a_panic_drops_is_not_closed_as_if_it_were_whole() {
    let mut out = Vec::new();
    let recording = catch_unwind(AssertUnwindSafe(|| {
        let mut writer = TraceWriter::new(&mut out, &TraceInfo::default()).expect("memory can be written");
        writer.write(&block()).and_then(|()| writer.flush()).expect("memory can be written");
        resume_unwind(Box::new("as after a panic"));
    }));
    assert!(recording.is_err());
    let mut reader = NativeReader::new(&out[..], "torn").expect("its header is whole");
    let mut back = Block::default();
    assert!(reader.next_block(&mut back).expect("it can be read") && back == block());
    assert!(!reader.next_block(&mut back).expect("it can be read"));
    let reason = "ends without its index: the recording was cut short after access 3";
    assert_eq!(reader.damage().iter().map(|d| &d.reason[..]).collect::<Vec<_>>(), [reason]);
}
