//! Costs worked out by hand from the machine's description.

use lookaside_machine::preset;

use super::*;

const ONE: PageMapping = PageMapping { pages: 1, frame: 1, writable: true };

fn model(switching: Switching) -> Model {
    Model::new(&preset("sa1100").unwrap(), switching).unwrap()
}

/// Cycles that this takes.
fn takes(model: &mut Model, what: impl FnOnce(&mut Model)) -> f64 {
    let before = model.cycles();
    what(model);
    model.cycles() - before
}

#[test]
fn misses_and_flushes_cost_what_the_paper_says() {
    let mut model = model(Switching::Flush);
    let [a, b] = [0, 1].map(|_| model.create().unwrap());
    model.switch(a).unwrap();
    // A line and a walk of two levels; then nothing; then a line of the same page.
    assert_eq!(takes(&mut model, |m| m.access(Kind::Load, 0x8000).unwrap()), 70.0 + 45.0);
    assert_eq!(takes(&mut model, |m| m.access(Kind::Store, 0x801c).unwrap()), 0.0);
    assert_eq!(takes(&mut model, |m| m.access(Kind::Load, 0x8020).unwrap()), 70.0);
    // Fetches have a TLB and a cache of their own; the kernel's sections a walk of one level.
    assert_eq!(takes(&mut model, |m| m.access(Kind::Fetch, 0x8000).unwrap()), 70.0 + 45.0);
    assert_eq!(takes(&mut model, |m| m.access(Kind::Load, 0xc000_0000).unwrap()), 70.0 + 22.5);
    // One dirty line of 256, all of which would take 17,000 more.
    assert_eq!(takes(&mut model, |m| m.switch(b).unwrap()), 1000.0 + 17_000.0 / 256.0);
    assert_eq!(takes(&mut model, |m| m.switch(b).unwrap()), 0.0);
    assert_eq!(takes(&mut model, |m| m.access(Kind::Load, 0x8000).unwrap()), 70.0 + 45.0);
}

/// Section 2: "Worst case this can add up to around 75,000 cycles".
#[test]
fn the_worst_case_is_the_papers() {
    let mut model = model(Switching::Flush);
    let [a, b] = [0, 1].map(|_| model.create().unwrap());
    let fill = |model: &mut Model| {
        for line in 0..256 {
            for kind in [Kind::Load, Kind::Store] {
                model.access(kind, 0x10_0000 + line % 32 * 4096 + line / 32 * 32).unwrap();
            }
        }
        for line in 0..512 {
            model.access(Kind::Fetch, 0x10_0000 + line % 32 * 4096 + line / 32 * 32).unwrap();
        }
    };
    model.switch(a).unwrap();
    fill(&mut model);
    let cycles = takes(&mut model, |model| {
        model.switch(b).unwrap();
        fill(model);
    });
    assert_eq!(cycles, 18_000.0 + 768.0 * 70.0 + 64.0 * 45.0);
    assert!((cycles / 75_000.0 - 1.0).abs() < 0.01);
}

/// Half a line of a flush whose 256 lines are all dirty.
const BLOCK_CYCLES: f64 = 17_000.0 / 256.0 / 2.0;

/// A process that runs, in a kernel that flushes.
fn running() -> (Model, ModelProcess) {
    let mut model = model(Switching::Flush);
    let [program, other] = [0, 1].map(|_| model.create().unwrap());
    model.switch(program).unwrap();
    (model, other)
}

#[test]
fn stores_that_miss_wait_for_nothing_until_the_write_buffer_is_full() {
    let (mut model, other) = running();
    let store = |model: &mut Model, n: u32| takes(model, |m| m.access(Kind::Store, 0x8000 + 16 * n).unwrap());
    assert_eq!(store(&mut model, 0), 45.0, "a walk");
    assert!((1..8).all(|n| store(&mut model, n) == 0.0));
    // The ninth waits until one of the eight is written; after instructions of two blocks' time there is room for two.
    assert_eq!(store(&mut model, 8), BLOCK_CYCLES);
    model.work(2.0 * BLOCK_CYCLES);
    assert_eq!([9, 10, 11].map(|n| store(&mut model, n)), [0.0, 0.0, BLOCK_CYCLES]);
    // A line comes before them. It takes stores from now on, and is the one that is dirty.
    assert_eq!(takes(&mut model, |m| m.access(Kind::Load, 0x8000).unwrap()), 70.0);
    assert_eq!(store(&mut model, 1), 0.0);
    assert_eq!((model.core_counts().passed, model.core_counts().lines), (12, 1));
    let flush = takes(&mut model, |m| m.switch(other).unwrap());
    assert!((flush - (8.0 * BLOCK_CYCLES + 1000.0 + 2.0 * BLOCK_CYCLES)).abs() < 1e-9, "{flush}");
    assert_eq!(model.core_counts().written, 1);
}

#[test]
fn a_dirty_line_put_out_takes_two_blocks_of_the_write_buffer() {
    let (mut model, other) = running();
    let line = |n: u32| 0x10_0000 + n * 256;
    for n in 0..32 {
        model.access(Kind::Load, line(n)).unwrap();
        model.access(Kind::Store, line(n)).unwrap();
    }
    // Two pages' walks are made; the next five lines put dirty ones out, of which four fit.
    let took: Vec<f64> = (32..37)
        .map(|n| takes(&mut model, |m| m.access(Kind::Load, line(n)).unwrap()) - if n == 32 { 45.0 } else { 0.0 })
        .collect();
    assert_eq!(took, [70.0, 70.0, 70.0, 70.0, 70.0 + 2.0 * BLOCK_CYCLES]);
    assert_eq!(model.core_counts().written, 5);
    let flush = takes(&mut model, |m| m.switch(other).unwrap());
    assert!((flush - (8.0 * BLOCK_CYCLES + 1000.0 + 27.0 * 2.0 * BLOCK_CYCLES)).abs() < 1e-9, "{flush}");
}

#[test]
fn domains_make_a_switch_free_and_a_fault_dear_once() {
    let mut model = model(Switching::Domains(Config::LINUX));
    model.set_fault_path(vec![(Kind::Fetch, 0xc000_0000)], 100.0);
    let programs = [0, 1].map(|_| model.create().unwrap());
    for program in programs {
        model.map(program, MappingAddress::Fixed(0x8000), ONE).unwrap();
    }
    model.switch(programs[0]).unwrap();
    // A walk of one level that finds nothing, the kernel's fetch, then walk and line.
    let first = takes(&mut model, |m| m.access(Kind::Load, 0x8000).unwrap());
    assert_eq!(first, 22.5 + 100.0 + (22.5 + 70.0) + 45.0 + 70.0);
    model.switch(programs[1]).unwrap();
    let second = takes(&mut model, |m| m.access(Kind::Load, 0x8000).unwrap());
    assert_eq!(second, 22.5 + 100.0 + 45.0 + 70.0);
    let again = takes(&mut model, |model| {
        for program in programs {
            model.switch(program).unwrap();
            model.access(Kind::Store, 0x8000).unwrap();
        }
    });
    assert_eq!(again, 0.0);
    assert_eq!((model.core_counts().flushes, model.domain_counts().unwrap().faults), (0, 2));
}

#[test]
fn a_shared_regions_entry_serves_all() {
    let mut model = model(Switching::Domains(Config::LINUX));
    let region = model.create_region(ONE).unwrap();
    let programs = [0, 1, 2].map(|_| model.create().unwrap());
    let at = programs.map(|program| model.attach(program, &region).unwrap());
    for (program, at) in programs.into_iter().zip(at) {
        model.switch(program).unwrap();
        model.access(Kind::Load, at).unwrap();
    }
    assert_eq!((model.core_counts().walks, model.core_counts().lines), (2, 1), "one walk in vain, one walk, one line");
    let elsewhere = model.access(Kind::Load, 0x8000);
    assert!(matches!(elsewhere, Err(DomainModelError::Denied { addr: 0x8000, denied: Denied::Unmapped })));
}

/// What Linux does on the SA-1100: 128 lines a page one by one, from nine pages on everything; code as a whole.
#[test]
fn unmapping_costs_a_kernel_that_flushes_all_code() {
    let (mut flushing, _) = running();
    let mut lazy = model(Switching::Domains(Config::LINUX));
    let program = lazy.create().unwrap();
    for at in [0x8000, 0x9000] {
        lazy.map(program, MappingAddress::Fixed(at), ONE).unwrap();
    }
    lazy.switch(program).unwrap();
    let warm = |model: &mut Model| {
        for kind in [Kind::Fetch, Kind::Load, Kind::Store] {
            model.access(kind, 0x8000).unwrap();
        }
        model.access(Kind::Load, 0x9000).unwrap();
    };
    let again = |model: &mut Model| {
        [(Kind::Fetch, 0x8000), (Kind::Load, 0x8000), (Kind::Load, 0x9000)]
            .map(|(kind, at)| takes(model, |m| m.access(kind, at).unwrap()))
    };
    warm(&mut flushing);
    // A dirty line among 128 of a page: 1,000 cycles are 256 lines.
    assert_eq!(takes(&mut flushing, |m| m.unmap(0x8000, 1)), 500.0 + 2.0 * BLOCK_CYCLES);
    assert_eq!(again(&mut flushing), [115.0, 115.0, 0.0], "code elsewhere would be gone, too; other data stays");
    assert_eq!(takes(&mut flushing, |m| m.unmap(0x8000, 8)), 4000.0);
    assert_eq!(takes(&mut flushing, |m| m.unmap(0x8000, 9)), 1000.0);
    assert_eq!(again(&mut flushing), [115.0; 3]);
    warm(&mut lazy);
    assert_eq!(takes(&mut lazy, |m| m.unmap(0x8000, 9)), 0.0);
    assert_eq!(again(&mut lazy), [0.0; 3]);
    // Pages are replaced in either kernel, at the address that the caches know.
    for model in [&mut flushing, &mut lazy] {
        warm(model);
        model.replace_page(0x8000, false);
        assert_eq!(again(model), [0.0, 115.0, 0.0]);
        model.replace_page(0x9000, true);
        assert_eq!(again(model), [115.0, 0.0, 115.0]);
    }
}

#[test]
fn other_machines_are_refused() {
    for name in ["golden-cove", "cortex-a9"] {
        let refused = Model::new(&preset(name).unwrap(), Switching::Flush);
        assert!(matches!(refused, Err(DomainModelError::Machine { .. })), "{name}");
    }
}
