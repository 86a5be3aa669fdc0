//! Costs worked out by hand from the machine's description.

use lookaside_machine::preset;

use super::*;

const ONE: Mapping = Mapping { pages: 1, frame: 1, writable: true };

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
            model.access(Kind::Store, 0x10_0000 + line % 32 * 4096 + line / 32 * 32).unwrap();
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

#[test]
fn a_dirty_line_put_out_has_to_be_written_first() {
    let mut model = model(Switching::Flush);
    let program = model.create().unwrap();
    model.switch(program).unwrap();
    let line = |n: u32| 0x10_0000 + n * 256;
    for n in 0..32 {
        model.access(Kind::Store, line(n)).unwrap();
    }
    model.access(Kind::Load, 0x10_0020).unwrap();
    let written = takes(&mut model, |m| m.access(Kind::Load, line(32)).unwrap());
    assert_eq!(written, 70.0 + 45.0 + 17_000.0 / 256.0, "page 2's walk, a line, and line 0's way back");
}

#[test]
fn domains_make_a_switch_free_and_a_fault_dear_once() {
    let mut model = model(Switching::Domains(Config::LINUX));
    model.set_fault_path(vec![(Kind::Fetch, 0xc000_0000)], 100.0);
    let programs = [0, 1].map(|_| model.create().unwrap());
    for program in programs {
        model.map(program, Place::Fixed(0x8000), ONE).unwrap();
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
    assert!(matches!(elsewhere, Err(ModelError::Denied { addr: 0x8000, denied: Denied::Unmapped })));
}

#[test]
fn other_machines_are_refused() {
    for name in ["golden-cove", "cortex-a9"] {
        let refused = Model::new(&preset(name).unwrap(), Switching::Flush);
        assert!(matches!(refused, Err(ModelError::Machine { .. })), "{name}");
    }
}
