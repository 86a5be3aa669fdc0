//! The coloured heap, watched by our own recorder: its calls touch pages of the caller's colour and of the
//! bookkeeping's, and no other page of the heap.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::common::{compile, have_valgrind, run, stderr, stdout};

/// Sets of the first colour, the second, and the bookkeeping, of 16 by the low bits of the page number.
const SETS: [u64; 3] = [3, 5, 15];

const PARTITIONS: &str = r#"
machine = "xeon-e5-2650"
page_size = "4K"
[[level]]
name = "l1d-4k"
sets = 16
ways = 4
[[partition]]
name = "red"
shares = [{ level = "l1d-4k", sets = [3], ways = 4 }]
[[partition]]
name = "blue"
shares = [{ level = "l1d-4k", sets = [5], ways = 4 }]
[[partition]]
name = "bookkeeping"
shares = [{ level = "l1d-4k", sets = [15] }]
"#;

/// Calls of all kinds, none of what they give is touched; what begins and ends each half is a store to a page of its
/// own.
const PROGRAM: &str = r##"
#include "tlb_malloc.h"
#include <stdint.h>
#include <stdio.h>
static volatile char marks[4 * 4096] __attribute__((aligned(4096)));
static void calls(tlb_heap *heap, unsigned color, int rounds) {
    static void *p[16];
    unsigned state = 1;
    for (int i = 0; i < rounds; i++) {
        unsigned k = (state = state * 1103515245 + 12345) >> 16 & 15, n = (state >> 8) % 1200;
        switch (state >> 28 & 3) {
        case 0: p[k] = tlb_heap_realloc(heap, p[k], n, color); break;
        case 1: tlb_heap_free(heap, p[k]); p[k] = tlb_heap_aligned_alloc(heap, 64, n, color); break;
        case 2: tlb_heap_free(heap, p[k]); p[k] = tlb_heap_calloc(heap, 1, n, color); break;
        default: tlb_heap_free(heap, p[k]); p[k] = tlb_heap_malloc(heap, i % 50 ? n : 4096, color); break;
        }
    }
    for (int k = 0; k < 16; k++) tlb_heap_free(heap, p[k]), p[k] = 0;
}
int main(int argc, char **argv) {
    tlb_heap *heap = tlb_heap_create(argv[argc - 1], 0);
    if (!heap) { fprintf(stderr, "%s\n", tlb_error()); return 1; }
    int red = tlb_heap_color(heap, "red"), blue = tlb_heap_color(heap, "blue");
    calls(heap, red, 100); /* what is needed once: the loader's work */
    printf("%lu %lu\n", (unsigned long)(uintptr_t)marks >> 12, (unsigned long)(uintptr_t)tlb_heap_malloc(heap, 1, red));
    fflush(stdout);
    marks[0] = 1;
    calls(heap, red, 3000);
    marks[4096] = 1;
    calls(heap, blue, 3000);
    marks[8192] = 1;
    return 0;
}
"##;

/// Where cargo puts a library: beside the tests, or one folder up.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path of this program");
    let mut files = test.ancestors().skip(1).take(2).map(|folder| folder.join("liblookaside_runtime.so"));
    files.find(|file| file.exists()).expect("no library beside the tests: see the crate's types")
}

/// Data pages touched between marks: red calls, blue calls.
fn pages(trace: &str, marks: u64) -> [BTreeSet<u64>; 2] {
    let mut halves = [BTreeSet::new(), BTreeSet::new()];
    let mut half = None;
    for line in trace.lines() {
        let mut words = line.split(' ');
        let (Some("R" | "W"), Some(address)) = (words.next(), words.next()) else { continue };
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).expect("an address");
        match (address >> 12).checked_sub(marks) {
            Some(mark @ 0..=2) => half = Some(mark as usize),
            _ => {
                if let Some(pages) = half.and_then(|half| halves.get_mut(half)) {
                    pages.insert(address >> 12);
                }
            }
        }
    }
    halves
}

/// The reserved range that an address lies in.
fn area(trace: &str, address: u64) -> std::ops::Range<u64> {
    let maps =
        trace.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line.strip_prefix("E ")?).ok());
    let mut ranges = maps.filter_map(|event| {
        let map = event.get("map")?;
        let (start, len) = (map.get("addr")?.as_u64()?, map.get("len")?.as_u64()?);
        (start..start + len).contains(&address).then_some(start >> 12..(start + len) >> 12)
    });
    ranges.next_back().expect("the heap's mapping is in the trace")
}

#[test]
fn calls_touch_pages_of_their_colour_and_of_the_bookkeeping() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let partitions = folder.path().join("p.toml");
    std::fs::write(&partitions, PARTITIONS).expect("a file");
    let (library, include) = (library(), concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../runtime/include"));
    let path = format!("-Wl,-z,now,-rpath,{}", library.parent().expect("a folder").display());
    let flags = [include, &library.to_string_lossy(), &path];
    let Some(program) = compile(folder.path(), "heap", PROGRAM, &flags) else { return };
    let trace = folder.path().join("t.lkt");
    let (trace, program) = (trace.to_string_lossy(), program.to_string_lossy());
    let recorded = run(&["record", "-o", &trace, "--no-fetches", "--", &program, &partitions.to_string_lossy()]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let told: Vec<u64> = stdout(&recorded).split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let text = stdout(&run(&["trace", "cat", &trace]));
    let area = area(&text, told[1]);
    for (pages, own) in pages(&text, told[0]).iter().zip(SETS) {
        let inside: BTreeSet<u64> = pages.iter().filter(|page| area.contains(page)).map(|page| page % 16).collect();
        assert_eq!(inside, BTreeSet::from([own, SETS[2]]), "sets of the heap's pages that calls touched");
        // The program's own: its stack and data, its thread's, the libraries' tables. 13 were seen; they do not grow
        // with the calls.
        let outside: Vec<&u64> = pages.iter().filter(|page| !area.contains(page)).collect();
        assert!((1..=16).contains(&outside.len()), "{outside:x?}");
    }
}
