//! Where the workloads say that their addresses come from.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_timing::{AddressFlow, FlowRegister};
use lookaside_trace::{Block, Source};
use lookaside_workloads::{names, workload, FlowBlock, WorkloadSpec, WorkloadStream};

fn spec() -> WorkloadSpec {
    WorkloadSpec { rounds: 2, ..WorkloadSpec::new(1 << 20) }
}

/// Of each array, those of whose elements addresses in it are computed; "at hand" where they are of none.
fn sources(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let workload = workload(name, &spec()).expect("memory");
    let regions = workload.regions().to_vec();
    let array = |addr: u64| {
        let found =
            regions.iter().find(|region| (region.stream_start..region.stream_start + region.bytes).contains(&addr));
        found.expect("an array").name.to_owned()
    };
    let (mut stream, mut part) = (WorkloadStream::new(workload), FlowBlock::default());
    let mut last: Vec<(FlowRegister, String)> = Vec::new();
    let mut found = BTreeMap::new();
    while stream.next_flow_block(&mut part) {
        assert_eq!(part.block.len(), part.flows.len());
        for (&addr, flow) in part.block.addr.iter().zip(&part.flows) {
            let from = last.iter().find(|of| of.0 == flow.from).map_or("at hand".to_owned(), |of| of.1.clone());
            found.entry(array(addr)).or_insert_with(BTreeSet::new).insert(from);
            if flow.into != FlowRegister::NONE {
                last.retain(|of| of.0 != flow.into);
                last.push((flow.into, array(addr)));
            }
        }
    }
    found
}

#[test]
fn addresses_come_from_the_arrays_that_the_algorithms_read_them_from() {
    // "at hand": indexes that are counted on or drawn.
    let expected = [
        (
            "bc",
            "dependencies: neighbours queue, depths: at hand neighbours queue, first: at hand queue, neighbours: first, \
             paths: at hand neighbours queue, queue: at hand, scores: queue",
        ),
        ("canneal", "elements: at hand links, links: elements, locations: elements"),
        ("graph500", "ends: heads next, heads: at hand queue, next: heads next, queue: at hand, tree: at hand ends"),
        ("gups", "table: at hand"),
        ("hashjoin", "buckets: outer, outer: at hand, rows: buckets rows"),
        (
            "liblinear",
            "alphas: order, labels: order, nodes: rows, order: at hand, rows: order, squares: order, weights: nodes",
        ),
        ("reads", "table: at hand table"),
    ];
    for ((name, expected), known) in expected.into_iter().zip(names()) {
        let of_array = |(array, from): (String, BTreeSet<String>)| {
            format!("{array}: {}", from.into_iter().collect::<Vec<_>>().join(" "))
        };
        let found: Vec<String> = sources(name).into_iter().map(of_array).collect();
        assert_eq!((name, found.join(", ").as_str()), (known, expected));
    }
    assert_eq!(expected.len(), names().len());
}

/// The accesses are those of the stream without flows.
#[test]
fn the_stream_is_the_same() {
    for name in names() {
        let stream = || WorkloadStream::new(workload(name, &spec()).expect("memory"));
        let (mut plain, mut flowing) = (stream(), stream());
        let (mut block, mut part) = (Block::default(), FlowBlock::default());
        while plain.next_block(&mut block).expect("a stream") {
            assert!(flowing.next_flow_block(&mut part));
            assert_eq!(block, part.block, "{name}");
        }
        assert!(!flowing.next_flow_block(&mut part), "{name}");
    }
    assert_eq!(AddressFlow::default(), AddressFlow::FREE);
}
