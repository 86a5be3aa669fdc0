//! What a recording holds of programs with a C library: their maps, their ends, their threads and children.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use lookaside_capture::plain_run::{Aslr, PlainRun};
use lookaside_capture::ChildEnd;
use lookaside_trace::{Event, MapSource};

use crate::{build, record, request, STATIC};

/// The events of one process that a map consists of.
pub fn check_map_events(compiler: &str, folder: &Path) {
    let many = build(folder, compiler, "many.c", STATIC);
    let seen = record(&request(&many, "heap"));
    assert_eq!((seen.end, seen.damage), (Some(ChildEnd::Code(7)), 0));
    assert_eq!(seen.data_and_fetches(), seen.said());
    let maps: Vec<&MapSource> =
        seen.events().filter_map(|e| if let Event::Map { source, .. } = e { Some(source) } else { None }).collect();
    let path = many.to_string_lossy();
    assert!(maps.iter().any(|m| matches!(m, MapSource::File { path: p, offset: 0 } if *p == path)), "{maps:?}");
    assert_eq!(maps.iter().filter(|m| ***m == MapSource::Stack).count(), 1, "{maps:?}");
    assert!(maps.contains(&&MapSource::Anonymous));
    assert!(seen.events().any(|e| matches!(e, Event::Brk { start, end } if end > start)));
    assert!(seen.events().any(|e| matches!(e, Event::Remap { new_len, .. } if *new_len > 2 << 20)));

    // Each access lies in a mapping: nothing of the program's memory is without a name.
    let mut known: Vec<(u64, u64)> = Vec::new();
    for block in &seen.blocks {
        for (_, event) in &block.events {
            match *event {
                Event::Map { addr, len, .. } => known.push((addr, addr + len)),
                Event::Brk { start, end } => known.push((start, (end + 4095) & !4095)),
                Event::Remap { new_addr, new_len, .. } => known.push((new_addr, new_addr + new_len)),
                _ => {}
            }
        }
        for &addr in &block.addr {
            assert!(known.iter().any(|&(start, end)| (start..end).contains(&addr)), "{addr:#x} is in no mapping");
        }
    }

    let seen = record(&request(&many, "maps"));
    let len = 1 << 20;
    let Some(at) = seen.events().find_map(|e| match e {
        Event::Map { addr, len: 0x10_0000, source: MapSource::Anonymous, .. } => Some(*addr),
        _ => None,
    }) else {
        panic!("no mapping of 1 MiB: {:?}", seen.events().collect::<Vec<_>>());
    };
    let wanted = |event: &Event| match *event {
        Event::Protect { addr, len: 4096, prot: 1 } => addr == at,
        Event::Advise { addr, len: l, advice: 4 } => (addr, l) == (at, len),
        Event::Remap { old_addr, old_len, new_len, .. } => (old_addr, old_len, new_len) == (at, len, 2 * len),
        Event::Unmap { len: l, .. } => l == 2 * len,
        _ => false,
    };
    assert_eq!(seen.events().filter(|e| wanted(e)).count(), 4, "{:?}", seen.events().collect::<Vec<_>>());
}

pub fn check_ends(program: &Path) {
    for (argument, end, code) in [
        ("", ChildEnd::Code(7), 7),
        ("abort", ChildEnd::Signal(6), 134),
        ("segv", ChildEnd::Signal(11), 139),
        ("term", ChildEnd::Signal(15), 143),
    ] {
        let seen = record(&request(program, argument));
        assert_eq!((seen.end, seen.damage), (Some(end), 0), "{argument:?}");
        assert_eq!(seen.data_and_fetches(), seen.said(), "{argument:?}");
        assert!(seen.events().any(|e| *e == Event::ProcessExit { code }), "{argument:?}");
    }
    // It is another program's from there on, natively; its code is passed on.
    let seen = record(&request(program, "exec"));
    assert_eq!((seen.end, seen.damage), (Some(ChildEnd::Code(5)), 0));
    assert_eq!(seen.data_and_fetches(), seen.said());
    // A program that closes all that it sees open doesn't close the recording.
    let seen = record(&request(program, "close"));
    assert_eq!((seen.end, seen.damage), (Some(ChildEnd::Code(7)), 0));
    assert_eq!(seen.data_and_fetches(), seen.said());
}

pub fn check_threads_and_forks(program: &Path) {
    let seen = record(&request(program, "threads"));
    assert_eq!((seen.end, seen.damage), (Some(ChildEnd::Code(7)), 0));
    // No access is lost between threads, and none counted twice.
    assert_eq!(seen.data_and_fetches(), seen.said());
    assert_eq!(seen.total()[2], seen.total()[3]);
    let threads: BTreeSet<u32> = seen.blocks.iter().map(|block| block.thread).collect();
    assert_eq!(threads.len(), 5);
    for ended in [false, true] {
        let events = seen.events().filter(|e| match e {
            Event::ThreadStart { .. } => !ended,
            Event::ThreadExit { .. } => ended,
            _ => false,
        });
        assert_eq!(events.count(), 4);
    }

    let seen = record(&request(program, "fork"));
    assert_eq!((seen.end, seen.damage), (Some(ChildEnd::Code(7)), 0));
    let Some(Event::Fork { parent, child }) = seen.events().find(|e| matches!(e, Event::Fork { .. })).cloned() else {
        panic!("no fork: {:?}", seen.events().collect::<Vec<_>>());
    };
    assert_eq!(seen.totals.keys().copied().collect::<BTreeSet<_>>(), BTreeSet::from([parent, child]));
    assert_eq!(seen.data_and_fetches(), seen.said());
    let codes: Vec<i32> =
        seen.events().filter_map(|e| if let Event::ProcessExit { code } = e { Some(*code) } else { None }).collect();
    assert_eq!(codes, [3, 7]);
}

/// Plain runs, without the plugin: their ends, and whose memory is seen.
pub fn check_plain_runs(program: &Path) {
    let run = |argument: &str| {
        let command: Vec<OsString> = vec![program.into(), argument.into()];
        PlainRun::start(&command, Aslr::Off, |_| {}).unwrap().wait().unwrap()
    };
    for (argument, end) in [
        ("", ChildEnd::Code(7)),
        ("heap", ChildEnd::Code(7)),
        ("threads", ChildEnd::Code(7)),
        ("fork", ChildEnd::Code(7)),
        ("abort", ChildEnd::Signal(6)),
        ("term", ChildEnd::Signal(15)),
    ] {
        let maps = run(argument);
        assert_eq!((maps.end, &maps.notes[..], maps.emulated), (end, &[][..], true), "{argument:?}");
        for regions in [&maps.loaded, &maps.exit] {
            let sources: Vec<_> = regions.iter().map(|region| &region.source).collect();
            let path = program.to_string_lossy();
            let own = |source: &&MapSource| matches!(source, MapSource::File { path: file, .. } if *file == path);
            assert!(sources.iter().any(own), "{argument:?}: {sources:?}");
            // Nothing of QEMU's: no file but its own, and all below 4 GiB.
            assert!(sources.iter().all(|source| own(source) || !source.is_file()), "{argument:?}: {sources:?}");
            assert!(regions.iter().all(|region| region.end <= 1 << 32 && region.made > 0));
            let stack = regions.iter().find(|region| region.source == MapSource::Stack).expect("a stack");
            assert!(stack.holds(maps.entry_stack.expect("known")));
        }
        let heap = |regions: &[lookaside_trace::Region]| regions.iter().any(|region| region.source == MapSource::Heap);
        assert!(!heap(&maps.loaded) && heap(&maps.exit), "{argument:?}");
    }
    let left = run("exec");
    assert_eq!((left.end, left.exit.len(), left.loaded.is_empty()), (ChildEnd::Code(5), 0, false));
    assert!(left.notes[0].contains("executed another one") && left.notes.len() == 1, "{:?}", left.notes);
}
