//! What a plain run tells of a program's memory.

use std::sync::mpsc::channel;

use lookaside_capture::plain_run::{Aslr, PlainRun, PlainRunMaps, StopPoint};
use lookaside_capture::ChildEnd;
use lookaside_trace::{MapSource, Region};

use crate::programs::{command, compile};

/// Where the program says its addresses, and where it maps something for a while.
const SAID: u64 = 0x6000_0000_0000;
const GONE: u64 = 0x6000_0010_0000;

const PLACES: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
static volatile char table[1 << 20];
int main(void) {
    volatile char deep[1 << 20];
    int how = MAP_PRIVATE | MAP_ANONYMOUS;
    volatile long *said = mmap((void *)0x600000000000, 4096, PROT_READ | PROT_WRITE, how, -1, 0);
    void *gone = mmap((void *)0x600000100000, 8192, PROT_READ, how, -1, 0);
    munmap(gone, 8192);
    table[0] = deep[0] = 1;
    said[0] = (long)&table[1 << 19];
    said[1] = (long)malloc(100);
    said[2] = (long)&deep[0];
    return 0;
}
"#;

fn at(regions: &[Region], addr: u64) -> &Region {
    regions.iter().find(|region| region.holds(addr)).unwrap_or_else(|| panic!("nothing at {addr:#x}: {regions:x?}"))
}

/// A run of the program, and what it has said at its stop points.
fn places(flags: &[&str]) -> (PlainRunMaps, Vec<(StopPoint, Vec<u64>)>) {
    let (_folder, program) = compile(PLACES, flags);
    let (sender, said) = channel();
    let look = move |stopped: &lookaside_capture::plain_run::StoppedProgram<'_>| {
        let mut bytes = [0; 24];
        let read = stopped.read(SAID, &mut bytes);
        let words = bytes[..read].chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        sender.send((stopped.point, words.collect())).unwrap();
    };
    let maps = PlainRun::start(&command(&program, &[]), Aslr::Off, look).unwrap().wait().unwrap();
    assert_eq!((maps.end, &maps.notes[..], maps.emulated), (ChildEnd::Code(0), &[][..], false));
    (maps, said.into_iter().collect())
}

#[test]
fn the_programs_memory_is_told_apart() {
    // Without a random place the heap begins right behind the table, and a kernel may list both as one.
    for flags in [&["-O1", "-no-pie"][..], &["-O1", "-static"], &["-O1", "-fPIE", "-pie"]] {
        let (maps, said) = places(flags);
        let [(StopPoint::Loaded, before), (StopPoint::Exit, words)] = &said[..] else { panic!("{flags:?}: {said:?}") };
        let [table, block, deep] = words[..] else { panic!("{flags:?}: {said:?}") };
        assert!(before.is_empty(), "it has said nothing yet");
        let source = |addr| at(&maps.exit, addr).source.clone();
        assert_eq!(source(table), MapSource::Anonymous, "{flags:?}");
        assert_eq!(source(block), MapSource::Heap, "{flags:?}");
        assert_eq!(source(SAID), MapSource::Anonymous, "{flags:?}");
        // The stack has grown without a call.
        assert_eq!(source(deep), MapSource::Stack, "{flags:?}");
        assert!(at(&maps.exit, deep).holds(maps.entry_stack.unwrap()));
        assert!(!maps.loaded.iter().any(|region| region.holds(deep)));
    }
}

#[test]
fn what_is_known_of_a_region_stays_known() {
    let (maps, said) = places(&["-O1", "-no-pie"]);
    let table = said[1].1[0];
    assert_eq!(at(&maps.exit, table).made, at(&maps.loaded, table).made, "it was made once");
    let last = maps.loaded.iter().map(|region| region.made).max().unwrap();
    assert!(at(&maps.exit, SAID).made > last);
    // What was mapped in between is still known.
    let gone: Vec<_> = maps.exit.iter().filter(|region| region.gone).map(|region| (region.start, region.end)).collect();
    assert!(gone.contains(&(GONE, GONE + 8192)), "{gone:x?}");
    assert!(!maps.loaded.iter().any(|region| region.holds(GONE)));
    // Files are told by their inodes too.
    for region in maps.loaded.iter().chain(&maps.exit).filter(|region| !region.gone) {
        let is_file = matches!(&region.source, MapSource::File { path, .. } if path.starts_with('/'));
        assert_eq!(region.file.is_some(), is_file, "{region:x?}");
    }
}
