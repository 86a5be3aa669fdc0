//! What every workload promises, natively and as a stream.

use std::sync::atomic::AtomicBool;

use lookaside_trace::{Block, Event, Source};
use lookaside_workloads::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn spec(seed: u64, rounds: u64) -> WorkloadSpec {
    WorkloadSpec { seed, rounds, ..WorkloadSpec::new(LEAST_BYTES) }
}

fn native(name: &str, spec: &WorkloadSpec) -> (u64, u64) {
    let mut workload = workload(name, spec).expect("memory");
    assert_eq!(workload.operations(), 0);
    assert!(workload.run(&NEVER));
    (workload.checksum(), workload.operations())
}

#[test]
fn native_and_stream_are_the_same_run() {
    for name in names() {
        let spec = spec(3, 2);
        let mut stream = WorkloadStream::new(workload(name, &spec).expect("memory"));
        assert_eq!(stream.info().command, [name]);
        let regions = stream.workload().regions().to_vec();
        let (mut block, mut accesses, mut events) = (Block::default(), 0, Vec::new());
        let mut used = vec![0u64; regions.len()];
        while stream.next_block(&mut block).expect("a block") {
            accesses += block.accesses();
            for addr in &block.addr {
                let inside = |r: &ArrayMemory| (r.stream_start..r.stream_start + r.bytes).contains(addr);
                used[regions.iter().position(inside).unwrap_or_else(|| panic!("{name}: {addr:#x}"))] += 1;
            }
            events.append(&mut block.events);
        }
        assert!(!stream.next_block(&mut block).expect("the end stays the end"));
        let done = (stream.workload().checksum(), stream.workload().operations());
        assert_eq!(done, native(name, &spec), "{name}");
        assert!(accesses >= done.1, "{name}: {accesses} accesses");
        assert!(used.iter().all(|&n| n > 0), "{name}: {used:?}");
        let mapped: Vec<(u64, u64)> = events
            .iter()
            .map(|(at, event)| match event {
                Event::Map { addr, len, .. } if *at == 0 => (*addr, *len),
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        let expected: Vec<(u64, u64)> = regions.iter().map(|r| (r.stream_start, r.bytes)).collect();
        assert_eq!(mapped, expected, "{name}");
    }
}

#[test]
fn seeds_and_rounds_change_the_result_and_nothing_else_does() {
    for name in names() {
        let base = native(name, &spec(1, 1));
        assert_eq!(base, native(name, &spec(1, 1)), "{name}");
        assert_ne!(base.0, native(name, &spec(2, 1)).0, "{name}");
        let two = native(name, &spec(1, 2));
        assert!(two.0 != base.0 && two.1 > base.1, "{name}: {base:?}, two rounds {two:?}");
        for pages in [Pages::Thp, Pages::AsIs] {
            assert_eq!(base, native(name, &WorkloadSpec { pages, ..spec(1, 1) }), "{name} {pages:?}");
        }
    }
}

#[test]
fn arrays_take_what_was_asked_for() {
    for name in names() {
        for bytes in [LEAST_BYTES, 3 << 20, 5_000_000] {
            let workload = workload(name, &WorkloadSpec::new(bytes)).expect("memory");
            let regions = workload.regions();
            // Rounded up to pages at most once an array; not below half, as a table's length is a power of two.
            let (total, most) = (regions.iter().map(|r| r.bytes).sum::<u64>(), bytes + 4096 * regions.len() as u64);
            assert!((bytes / 2..=most).contains(&total), "{name}: {total} of {bytes}");
            assert_eq!(regions.iter().filter(|r| r.main).count(), 1, "{name}");
            assert!(regions.iter().all(|r| r.start % (2 << 20) == 0 && r.stream_start % (2 << 20) == 0), "{name}");
            assert!(workload.parameters().iter().all(|&(_, n)| n > 0), "{name}");
        }
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    for name in names() {
        let mut stopped = workload(name, &spec(1, 1)).expect("memory");
        assert!(!stopped.run(&AtomicBool::new(true)), "{name}");
        stopped.fill(&mut Block::default());
        assert!(stopped.run(&NEVER), "{name}");
        assert_eq!((stopped.checksum(), stopped.operations()), native(name, &spec(1, 1)), "{name}");
    }
}

#[test]
fn what_cannot_be_is_named() {
    let error = |name, spec| workload(name, &spec).err().expect("an error").to_string();
    assert!(error("gusp", WorkloadSpec::new(1 << 20)).contains("\"gusp\": no such workload; there are "));
    assert!(error("gups", WorkloadSpec::new(0)).contains("0 bytes"));
    assert!(error("gups", WorkloadSpec::new(u64::MAX)).contains("18446744073709551615 bytes"));
    assert!(error("gups", spec(1, 0)).contains("0 rounds"));
    assert!(error("gups", spec(1, u64::MAX)).contains("rounds"));
}

/// Known results: the input, the order of work and the checksum stay as they are.
#[test]
fn known_checksums() {
    let found: Vec<(&str, u64)> = names().into_iter().map(|name| (name, native(name, &spec(1, 1)).0)).collect();
    assert_eq!(found, KNOWN);
}

const KNOWN: &[(&str, u64)] = &[
    ("bc", 8_695_262_540_347_611_458),
    ("canneal", 8_023_650_020_675_260_795),
    ("graph500", 3_786_691_324_680_614_448),
    ("gups", 8_698_413_964_909_792_917),
    ("hashjoin", 15_172_235_707_322_324_669),
    ("liblinear", 3_638_529_093_639_216_188),
    ("reads", 7_861_789_152_330_482_316),
];
