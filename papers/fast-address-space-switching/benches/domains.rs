#![allow(missing_docs)] // criterion_group makes an undocumented function.
//! Time of the paths that a kernel runs on each switch and each fault: 50 ns each is the aim.

use criterion::{criterion_group, criterion_main, Criterion};
use lookaside_fast_address_space_switching::domains::{
    relocate, AddressSpaces, Config, DomainHardware, MappingAddress, PageMapping, ProcessId,
};

/// A processor whose registers and flushes take no time.
struct Nothing;

impl DomainHardware for Nothing {
    fn flush_all(&mut self) {}
    fn flush_tlbs(&mut self) {}
    fn flush_range(&mut self, _first_page: u32, _pages: u32) {}
    fn drop_entry(&mut self, _addr: u32) {}
    fn set_dacr(&mut self, dacr: u32) {
        std::hint::black_box(dacr);
    }
    fn set_pid(&mut self, slot: u8) {
        std::hint::black_box(slot);
    }
}

const TEXT: u32 = 0x8000;

/// Programs, each with a page of its own and all with one at the same place.
fn world(programs: u32) -> (AddressSpaces, Vec<ProcessId>) {
    let mut spaces = AddressSpaces::new(Config::LINUX).expect("it is right");
    let mut program = |n: u32| {
        let id = spaces.create().expect("a slot");
        for (addr, frame) in [(TEXT, 2 * n), (0x9000_0000, 2 * n + 1)] {
            let mapping = PageMapping { pages: 1, frame, writable: true };
            spaces.map(id, MappingAddress::Fixed(addr), mapping, &mut Nothing).expect("room");
        }
        id
    };
    let ids = (0..programs).map(&mut program).collect();
    (spaces, ids)
}

fn paths(c: &mut Criterion) {
    let mut group = c.benchmark_group("domains");
    for (name, programs) in [("switch", 13), ("switch, a domain recycled", 30)] {
        let (mut spaces, ids) = world(programs);
        let mut next = ids.iter().cycle();
        group.bench_function(name, |b| b.iter(|| spaces.switch(*next.next().expect("a cycle"), &mut Nothing)));
    }
    // All fault where another was: a flush and a new entry each time.
    let (mut spaces, ids) = world(13);
    let mut next = ids.iter().cycle();
    group.bench_function("switch and fault over another's entry", |b| {
        b.iter(|| {
            let id = *next.next().expect("a cycle");
            (spaces.switch(id, &mut Nothing), spaces.fault(0x9000_0000, true, &mut Nothing))
        });
    });
    let (mut spaces, ids) = world(30);
    let mut next = ids.iter().cycle();
    group.bench_function("switch, a domain recycled, and fault", |b| {
        b.iter(|| {
            let id = *next.next().expect("a cycle");
            let switched = spaces.switch(id, &mut Nothing);
            (switched, spaces.fault(relocate(TEXT, id.slot()), true, &mut Nothing))
        });
    });
    group.finish();
}

criterion_group!(benches, paths);
criterion_main!(benches);
