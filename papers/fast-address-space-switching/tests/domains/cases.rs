//! What section 2.3 and 3.1 say, case by case.

use lookaside_fast_address_space_switching::domains::*;

use crate::processor::{initial, Build, Processor};

const TEXT: u32 = 0x8000;
const MIB: u32 = 1 << SECTION_SHIFT;

fn world(config: Config) -> (AddressSpaces, Processor) {
    let build = Build { tlb_entries: 8, lines: 16, keeps_faulting: true };
    (AddressSpaces::new(config).unwrap(), Processor::new(build))
}

fn linux() -> (AddressSpaces, Processor) {
    world(Config::LINUX)
}

/// A program with one page at [`TEXT`].
fn program(spaces: &mut AddressSpaces, processor: &mut Processor, frame: u32, writable: bool) -> ProcessId {
    let id = spaces.create().unwrap();
    spaces.map(id, MappingAddress::Fixed(TEXT), PageMapping { pages: 1, frame, writable }, processor).unwrap();
    id
}

/// It runs, and reads a word of the page at the address.
fn look(spaces: &mut AddressSpaces, processor: &mut Processor, id: ProcessId, addr: u32) -> u32 {
    spaces.switch(id, processor).unwrap();
    processor.access(addr, None, spaces).unwrap()
}

#[test]
fn thirteen_programs_of_linux_switch_without_a_flush_and_the_fourteenth_takes_a_dirty_domain() {
    let (mut spaces, mut processor) = linux();
    let programs: Vec<_> = (0..14).map(|n| program(&mut spaces, &mut processor, n, true)).collect();
    for _ in 0..3 {
        for (n, id) in programs[..13].iter().enumerate() {
            assert_eq!(look(&mut spaces, &mut processor, *id, TEXT), initial(n as u32, 0));
        }
    }
    assert_eq!((processor.flushes, spaces.counts().switches), (0, 39));
    assert_eq!(spaces.counts().reloads, 13, "an entry of the caching page directory each");
    look(&mut spaces, &mut processor, programs[13], TEXT);
    assert_eq!(spaces.counts().flushes_by(FlushCause::NoDomain), 1);
    // Round robin took the first program's; all others are clean now and go without a flush, until they have run again.
    for id in &programs[..4] {
        look(&mut spaces, &mut processor, *id, TEXT);
    }
    assert_eq!((processor.flushes, spaces.counts().recycled_clean, spaces.counts().recycled_dirty), (1, 4, 1));
}

#[test]
fn programs_that_write_nothing_never_need_a_flush_of_the_caches() {
    let (mut spaces, mut processor) = linux();
    let programs: Vec<_> = (0..20).map(|n| program(&mut spaces, &mut processor, n, false)).collect();
    for _ in 0..3 {
        for (n, id) in programs.iter().enumerate() {
            assert_eq!(look(&mut spaces, &mut processor, *id, TEXT), initial(n as u32, 0));
        }
    }
    assert_eq!(processor.flushes, 0);
    assert!(spaces.counts().tlb_flushes > 0);
}

#[test]
fn the_dacr_grants_the_kernel_the_process_and_what_it_shares() {
    let (mut spaces, mut processor) = linux();
    let id = program(&mut spaces, &mut processor, 1, true);
    assert_eq!(spaces.dacr(id), Ok(0b01_01_01));
    spaces.switch(id, &mut processor).unwrap();
    assert_eq!(spaces.dacr(id), Ok(0b01_01_01_01));
    let region = spaces.create_region(None, PageMapping { pages: 1, frame: 2, writable: false }).unwrap();
    let at = spaces.attach(id, region, None, &mut processor).unwrap();
    assert_eq!(spaces.dacr(id), Ok(0b01_01_01_01), "it has no domain until it is touched");
    look(&mut spaces, &mut processor, id, at);
    assert_eq!(spaces.dacr(id), Ok(0b01_01_01_01_01));
    spaces.detach(id, region, &mut processor).unwrap();
    assert_eq!(spaces.dacr(id), Ok(0b01_01_01_01));
    assert_eq!(processor.access(at, None, &mut spaces), Err(Denied::Unmapped));
}

#[test]
fn a_shared_region_is_one_entry_for_all() {
    let (mut spaces, mut processor) = linux();
    let region =
        spaces.create_region(Some(SHARED_START + MIB), PageMapping { pages: 2, frame: 50, writable: true }).unwrap();
    let programs: Vec<_> = (0..3).map(|n| program(&mut spaces, &mut processor, n, true)).collect();
    let mut at = 0;
    for id in &programs {
        at = spaces.attach(*id, region, None, &mut processor).unwrap();
    }
    assert_eq!(at, SHARED_START + MIB);
    spaces.switch(programs[0], &mut processor).unwrap();
    processor.access(at, Some(7), &mut spaces).unwrap();
    let faults = spaces.counts().faults;
    for id in &programs[1..] {
        assert_eq!(look(&mut spaces, &mut processor, *id, at), 7);
    }
    assert_eq!(
        (spaces.counts().faults, processor.flushes),
        (faults, 0),
        "no fault, no walk of another's entry, no flush"
    );
}

#[test]
fn a_writable_region_at_a_second_address_is_not_cached() {
    let (mut spaces, mut processor) = linux();
    let region = spaces.create_region(None, PageMapping { pages: 1, frame: 50, writable: true }).unwrap();
    let [a, b] = [0, 1].map(|n| program(&mut spaces, &mut processor, n, true));
    let home = spaces.attach(a, region, None, &mut processor).unwrap();
    spaces.switch(a, &mut processor).unwrap();
    processor.access(home, Some(7), &mut spaces).unwrap();
    let away = spaces.attach(b, region, Some(0x0010_0000), &mut processor).unwrap();
    assert_eq!(look(&mut spaces, &mut processor, b, away), 7);
    processor.access(away, Some(8), &mut spaces).unwrap();
    assert_eq!(look(&mut spaces, &mut processor, a, home), 8);
    assert_eq!(spaces.counts().flushes_by(FlushCause::Alias), 1);
}

#[test]
fn case_1_a_fixed_mapping_in_the_slot_of_a_process() {
    let (mut spaces, mut processor) = linux();
    // Slot 0 cannot be reached by address: its addresses are everybody's own below 32 MiB.
    let [_, b, c] = [1, 2, 3].map(|n| program(&mut spaces, &mut processor, n, true));
    let in_slot = relocate(TEXT, b.slot());
    spaces
        .map(c, MappingAddress::Fixed(in_slot), PageMapping { pages: 1, frame: 4, writable: true }, &mut processor)
        .unwrap();
    assert_eq!(spaces.counts().overlaps, [1, 0, 0]);
    assert_eq!(look(&mut spaces, &mut processor, b, TEXT), initial(2, 0));
    assert_eq!(look(&mut spaces, &mut processor, c, in_slot), initial(4, 0));
    assert_eq!(look(&mut spaces, &mut processor, b, TEXT), initial(2, 0));
    assert_eq!(spaces.counts().flushes_by(FlushCause::FixedInSlot), 2);
    // Its own slot is refused: it would be its addresses below 32 MiB once more.
    let own = MappingAddress::Fixed(relocate(TEXT, b.slot()));
    let refused = spaces.map(b, own, PageMapping { pages: 1, frame: 5, writable: true }, &mut processor);
    assert_eq!(refused, Err(AddressSpaceError::OwnSlot { addr: in_slot, slot: b.slot() }));
}

#[test]
fn case_2_a_fixed_mapping_over_anothers_above_2_gib() {
    let (mut spaces, mut processor) = linux();
    let [a, b] = [1, 2].map(|n| program(&mut spaces, &mut processor, n, true));
    let at = spaces
        .map(a, MappingAddress::Anywhere, PageMapping { pages: 1, frame: 3, writable: true }, &mut processor)
        .unwrap();
    let over = PageMapping { pages: 1, frame: 4, writable: true };
    spaces.map(b, MappingAddress::Fixed(at), over, &mut processor).unwrap();
    assert_eq!(spaces.counts().overlaps, [0, 1, 0]);
    for _ in 0..2 {
        assert_eq!(look(&mut spaces, &mut processor, a, at), initial(3, 0));
        assert_eq!(look(&mut spaces, &mut processor, b, at), initial(4, 0));
    }
    assert_eq!(spaces.counts().flushes_by(FlushCause::FixedInShared), 3);
}

#[test]
fn case_3_no_room_above_2_gib() {
    let (mut spaces, mut processor) = world(Config { reserved_domains: 3, kernel_start: SHARED_START + 2 * MIB });
    let programs: Vec<_> = (0..3).map(|n| program(&mut spaces, &mut processor, n, true)).collect();
    let mut places = Vec::new();
    for (n, id) in (100..).zip(&programs) {
        let mapping = PageMapping { pages: 1, frame: n, writable: true };
        places.push(spaces.map(*id, MappingAddress::Anywhere, mapping, &mut processor).unwrap());
        // A second one goes into the same block.
        let mapping = PageMapping { pages: 1, frame: n + 100, writable: true };
        assert_eq!(
            spaces.map(*id, MappingAddress::Anywhere, mapping, &mut processor).unwrap() / MIB,
            places[places.len() - 1] / MIB
        );
    }
    assert!(places[0] / MIB != places[1] / MIB, "blocks do not overlap while there are free ones");
    // The third process's two mappings.
    assert_eq!(spaces.counts().overlaps, [0, 0, 2]);
    for _ in 0..2 {
        for (n, id) in programs.iter().enumerate() {
            assert_eq!(look(&mut spaces, &mut processor, *id, places[n]), initial(100 + n as u32, 0));
        }
    }
    // Two of the three meet, twice each; the first time nothing is there yet.
    assert_eq!(spaces.counts().flushes_by(FlushCause::NoRoom), 3);
    let all = PageMapping { pages: 600, frame: 1000, writable: true };
    assert_eq!(
        spaces.map(programs[0], MappingAddress::Anywhere, all, &mut processor),
        Err(AddressSpaceError::NoRoom { pages: 600 })
    );
}

#[test]
fn what_an_exited_process_left_is_flushed_when_it_is_met_and_not_before() {
    let (mut spaces, mut processor) = linux();
    let mut marks = Vec::new();
    for n in 0..13 {
        let id = program(&mut spaces, &mut processor, n, true);
        spaces.switch(id, &mut processor).unwrap();
        processor.access(TEXT, Some(n), &mut spaces).unwrap();
        marks.push(spaces.exit(id, &mut processor).unwrap());
    }
    assert_eq!(processor.flushes, 0, "thirteen processes came and went");
    assert!(marks.iter().all(|mark| !spaces.is_flushed_since(*mark)));
    let id = program(&mut spaces, &mut processor, 100, true);
    assert_eq!(look(&mut spaces, &mut processor, id, TEXT), initial(100, 0));
    assert_eq!(spaces.counts().flushes_by(FlushCause::NoDomain), 1);
    assert!(marks.iter().all(|mark| spaces.is_flushed_since(*mark)));
}

#[test]
fn sixty_four_slots() {
    let (mut spaces, mut processor) = linux();
    let ids: Vec<_> = (0..64).map(|_| spaces.create().unwrap()).collect();
    assert_eq!(spaces.create(), Err(AddressSpaceError::NoSlot));
    spaces.exit(ids[10], &mut processor).unwrap();
    assert_eq!(spaces.create().map(ProcessId::slot), Ok(10));
    assert_eq!(spaces.switch(ids[10], &mut processor), Err(AddressSpaceError::NoProcess));
}

#[test]
fn what_cannot_be_is_refused() {
    let (mut spaces, mut processor) = linux();
    let one = PageMapping { pages: 1, frame: 1, writable: true };
    let id = program(&mut spaces, &mut processor, 1, true);
    let region = spaces.create_region(Some(SHARED_START), one).unwrap();
    spaces.attach(id, region, None, &mut processor).unwrap();
    let before = spaces.clone();
    assert_eq!(spaces.exit(id, &mut processor), Err(AddressSpaceError::StillShares { regions: 1 }));
    assert_eq!(spaces.destroy_region(region), Err(AddressSpaceError::RegionInUse { processes: 1 }));
    assert_eq!(spaces.attach(id, region, None, &mut processor), Err(AddressSpaceError::Attached));
    assert_eq!(spaces.create_region(Some(SHARED_START), one), Err(AddressSpaceError::Taken { addr: SHARED_START }));
    assert_eq!(spaces.create_region(Some(TEXT), one), Err(AddressSpaceError::Unaligned { addr: TEXT, to: MIB }));
    assert_eq!(spaces.create_region(Some(MIB), one), Err(AddressSpaceError::NotShared { addr: MIB }));
    assert_eq!(
        spaces.unmap(id, SHARED_START, 1, &mut processor),
        Err(AddressSpaceError::OfRegion { addr: SHARED_START })
    );
    let frames = PageMapping { pages: 2, frame: (1 << 20) - 1, writable: true };
    let refused = spaces.map(id, MappingAddress::Anywhere, frames, &mut processor);
    assert_eq!(refused, Err(AddressSpaceError::Frames { frame: (1 << 20) - 1, pages: 2 }));
    for domain in [0, 2, 3, 15, 16] {
        assert_eq!(spaces.free_domain(domain, &mut processor), Err(AddressSpaceError::DomainInUse { domain }));
    }
    assert!(before == spaces);
    spaces.switch(id, &mut processor).unwrap();
    assert_eq!(spaces.free_domain(3, &mut processor), Err(AddressSpaceError::DomainInUse { domain: 3 }), "it runs");
    for reserved in [0, 13] {
        let config = Config { reserved_domains: reserved, ..Config::LINUX };
        assert_eq!(AddressSpaces::new(config).err(), Some(AddressSpaceError::Reserved { reserved, most: 12 }));
    }
    for addr in [SHARED_START, SHARED_START + 1, MIB] {
        let config = Config { kernel_start: addr, ..Config::LINUX };
        assert_eq!(AddressSpaces::new(config).err(), Some(AddressSpaceError::KernelStart { addr }));
    }
}
