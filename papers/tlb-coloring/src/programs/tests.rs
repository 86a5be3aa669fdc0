//! What every task promises; the results against naive twins are in each one's own file.

use std::sync::atomic::AtomicBool;

use lookaside_trace::{Block, Kind, Source};
use lookaside_workloads::WorkloadStream;

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn native(name: &str, spec: &WorkloadSpec) -> (u64, u64) {
    let mut task = task(name, spec).expect("memory");
    assert!(task.run(&NEVER));
    (task.checksum(), task.operations())
}

fn accesses(name: &str, spec: &WorkloadSpec) -> (Vec<(Kind, u64)>, Box<dyn Workload>) {
    let (mut task, mut block) = (task(name, spec).expect("memory"), Block::default());
    while task.fill(&mut block) {}
    (block.kind.into_iter().zip(block.addr).collect(), task)
}

#[test]
fn native_and_stream_are_the_same_run_on_all_pages_and_no_more() {
    for kind in TASKS {
        for pages in [kind.least_pages, 5] {
            let spec = WorkloadSpec { seed: 3, rounds: 2, ..WorkloadSpec::new(pages * PAGE_BYTES) };
            let mut stream = WorkloadStream::new(task(kind.name, &spec).expect("memory"));
            let regions = stream.workload().regions().to_vec();
            let bytes: u64 = regions.iter().map(|region| region.bytes).sum();
            assert!(bytes <= spec.bytes && 2 * bytes > spec.bytes, "{}: {bytes} of {}", kind.name, spec.bytes);
            let (mut block, mut touched) = (Block::default(), std::collections::BTreeSet::new());
            while stream.next_block(&mut block).expect("a block") {
                touched.extend(block.addr.iter().map(|addr| addr / PAGE_BYTES * PAGE_BYTES));
            }
            let whole = regions.iter().flat_map(|r| (r.stream_start..r.stream_start + r.bytes).step_by(4096));
            assert_eq!(touched, whole.collect(), "{} of {pages} pages", kind.name);
            let done = (stream.workload().checksum(), stream.workload().operations());
            assert_eq!(done, native(kind.name, &spec), "{}", kind.name);
        }
    }
}

#[test]
fn seeds_and_rounds_change_the_result() {
    for kind in TASKS {
        let spec = |seed, rounds| WorkloadSpec { seed, rounds, ..WorkloadSpec::new(4 * PAGE_BYTES) };
        let base = native(kind.name, &spec(1, 1));
        assert_eq!(base, native(kind.name, &spec(1, 1)), "{}", kind.name);
        assert_ne!(base.0, native(kind.name, &spec(2, 1)).0, "{}", kind.name);
        let two = native(kind.name, &spec(1, 2));
        assert!(two.0 != base.0 && two.1 > base.1, "{}: {base:?}, two rounds {two:?}", kind.name);
    }
}

/// Both sorts' accesses, by the loops as anyone writes them.
#[test]
fn sorts_do_what_the_textbook_does() {
    let spec = WorkloadSpec { seed: 9, ..WorkloadSpec::new(PAGE_BYTES) };
    let mut random = lookaside_stats::SplitMix64::new(9);
    let numbers: Vec<u32> = (0..1024).map(|_| random.next_u64() as u32).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let checksum = sorted.iter().fold(0, |sum, &number| lookaside_workloads::kernel::fold(sum, number.into()));
    let at = |i: usize| lookaside_workloads::BASE + 4 * i as u64;

    let (mut a, mut bubble) = (numbers.clone(), Vec::new());
    let mut end = a.len();
    loop {
        let mut swapped = false;
        for i in 0..end - 1 {
            bubble.extend([(Kind::Load, at(i)), (Kind::Load, at(i + 1))]);
            if a[i] > a[i + 1] {
                a.swap(i, i + 1);
                bubble.extend([(Kind::Store, at(i)), (Kind::Store, at(i + 1))]);
                swapped = true;
            }
        }
        end -= 1;
        if !swapped || end < 2 {
            break;
        }
    }
    let (found, task) = accesses("bubble-sort", &spec);
    assert_eq!((a, task.checksum()), (sorted.clone(), checksum));
    assert!(found == bubble, "{} and {} accesses", found.len(), bubble.len());

    let (mut a, mut insertion) = (Vec::new(), Vec::new());
    for (i, number) in numbers.into_iter().enumerate() {
        insertion.push((Kind::Load, at(i)));
        let place = a.iter().rposition(|&before| before <= number).map_or(0, |place| place + 1);
        for j in (place..i).rev() {
            insertion.extend([(Kind::Load, at(j)), (Kind::Store, at(j + 1))]);
        }
        if place > 0 {
            insertion.push((Kind::Load, at(place - 1)));
        }
        insertion.push((Kind::Store, at(place)));
        a.insert(place, number);
    }
    let (found, task) = accesses("insertion-sort", &spec);
    assert_eq!((a, task.checksum()), (sorted, checksum));
    assert!(found == insertion, "{} and {} accesses", found.len(), insertion.len());
}

/// A transform's accesses: every place once a stage, both halves of a butterfly and their factor.
#[test]
fn a_transform_goes_through_all_places_at_each_stage() {
    let (found, _) = accesses("fft", &WorkloadSpec::new(3 * PAGE_BYTES));
    let stores = |at: u64| found.iter().filter(|access| **access == (Kind::Store, at)).count();
    for i in [0u64, 1, 5, 511] {
        let moves = usize::from(i != i.reverse_bits() >> 55);
        for array in [0, 2 << 20] {
            assert_eq!(stores(lookaside_workloads::BASE + array + 8 * i), 9 + moves);
        }
    }
    assert_eq!(found.len(), 9 * 256 * 10 + (512 - 32) / 2 * 8);
}

#[test]
fn what_cannot_be_is_named() {
    let error = |name, spec| task(name, &spec).err().expect("an error").to_string();
    let unknown = error("bubblesort", WorkloadSpec::new(4096));
    assert!(unknown.starts_with("\"bubblesort\": no such workload; there are adpcm, bubble-sort, "), "{unknown}");
    assert_eq!(error("fft", WorkloadSpec::new(8192)), "8192 bytes: this workload has 12K to 1M");
    assert!(error("fft", WorkloadSpec::new(2 << 20)).starts_with("2097152 bytes"));
    assert!(error("fir", WorkloadSpec { rounds: 0, ..WorkloadSpec::new(1 << 16) }).contains("0 rounds"));
}
