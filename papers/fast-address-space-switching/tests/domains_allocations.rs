//! Switches and faults of the domains library allocate nothing: they could run in a kernel.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use lookaside_fast_address_space_switching::domains::{
    relocate, AddressSpaces, Config, DomainHardware, MappingAddress, PageMapping, PAGE_BYTES, SECTION_SHIFT,
    SHARED_START,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all of it is the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A processor that has nothing to flush.
struct Nothing;

impl DomainHardware for Nothing {
    fn flush_all(&mut self) {}
    fn flush_tlbs(&mut self) {}
    fn flush_range(&mut self, _first_page: u32, _pages: u32) {}
    fn drop_entry(&mut self, _addr: u32) {}
    fn set_dacr(&mut self, _dacr: u32) {}
    fn set_pid(&mut self, _slot: u8) {}
}

#[test]
fn switches_and_faults_allocate_nothing() {
    let mut spaces = AddressSpaces::new(Config::LINUX).unwrap();
    let page = |frame: u32| PageMapping { pages: 1, frame, writable: !frame.is_multiple_of(3) };
    let regions: Vec<_> = (0..4).map(|n| spaces.create_region(None, page(n)).unwrap()).collect();
    let over = SHARED_START + (64 << SECTION_SHIFT);
    let programs: Vec<_> = (10..40)
        .map(|n| {
            let id = spaces.create().unwrap();
            spaces.map(id, MappingAddress::Fixed(0x8000), page(n), &mut Nothing).unwrap();
            // All meet here.
            spaces.map(id, MappingAddress::Fixed(over), page(n + 100), &mut Nothing).unwrap();
            let at = regions.iter().map(|region| spaces.attach(id, *region, None, &mut Nothing).unwrap());
            (id, at.collect::<Vec<_>>())
        })
        .collect();
    let before = ALLOCATIONS.get();
    let own = [0x8000, over, over + PAGE_BYTES];
    for round in 0..3 {
        // In the last one they meet.
        let own = if round < 2 { &own[..1] } else { &own };
        for (id, shared) in &programs {
            spaces.switch(*id, &mut Nothing).unwrap();
            for addr in shared.iter().chain(own) {
                let at = relocate(*addr, id.slot());
                let denied = spaces.fault(at, false, &mut Nothing).is_err();
                assert_eq!(denied, *addr == over + PAGE_BYTES);
            }
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    let counts = spaces.counts();
    assert!(
        counts.switches == 90 && counts.all_flushes() > 25 && counts.recycled_dirty > 0 && counts.recycled_clean > 0
    );
}
