//! The model: what is restored is what a walk would find, whatever was saved; the TLB beside a list; Linux's moves.

use lookaside_machine::{preset, Machine};
use lookaside_techniques::migrate::model::*;
use lookaside_techniques::migrate::*;
use proptest::prelude::*;

const VERSIONS: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];
const BUFFER: u32 = KERNEL_OFFSET + 0x0080_0000;
const FIRST: u32 = 0x4_0000;

fn machine() -> Machine {
    preset("gem5-armv7").unwrap()
}

/// Pages of a program, mapped to scattered frames.
fn with_pages(version: Version, pages: u32) -> Gem5 {
    let mut gem5 = Gem5::new(&machine(), version).unwrap();
    for page in 0..pages {
        gem5.tables.map(FIRST + page, 0x1_0000 + page * 7919 % 4096, 3).unwrap();
    }
    gem5
}

fn load(gem5: &mut Gem5, core: usize, page: u32) {
    gem5.load(core, (FIRST + page) << PAGE_SHIFT).unwrap();
}

/// What the tables say of an entry's page.
fn agrees(gem5: &Gem5, entry: &Entry) -> bool {
    gem5.tables.walk(entry.v_page << PAGE_SHIFT).leaf.is_some_and(|leaf| {
        (leaf.page, leaf.v_page, leaf.p_page, leaf.ap, leaf.global)
            == (entry.page, entry.v_page, entry.p_page, entry.ap, entry.global)
    })
}

proptest! {
    #[test]
    fn the_tlb_is_a_list_of_the_pages_used_last(pages in prop::collection::vec(0u32..100, 1..400)) {
        let mut gem5 = with_pages(Version::V1, 100);
        let (mut list, mut walks) = (Vec::new(), 0);
        for page in pages {
            load(&mut gem5, 1, page);
            walks += u64::from(!list.contains(&page));
            list.retain(|of| *of != page);
            list.insert(0, page);
            list.truncate(64);
            let held: Vec<u32> = gem5.entries(1).unwrap().iter().map(|entry| entry.v_page - FIRST).collect();
            prop_assert_eq!(&held, &list);
        }
        prop_assert_eq!(gem5.walks, walks);
    }

    #[test]
    fn what_is_restored_on_another_core_is_what_was_there(
        version in prop::sample::select(&VERSIONS[..]),
        pages in prop::collection::vec(0u32..100, 0..200),
        asids in (1u8.., 1u8..),
        cap in 0u32..=64,
    ) {
        let mut gem5 = with_pages(version, 100);
        gem5.set_asid(asids.0);
        gem5.touch(0, BUFFER).unwrap();
        for page in &pages {
            load(&mut gem5, 0, *page);
        }
        let before = gem5.entries(0).unwrap();
        let saved = gem5.save(version, 0, BUFFER, cap).unwrap();
        // Storing them used the buffer's translation, which may have put another out and may be saved in its place: none beyond the cap.
        gem5.set_asid(asids.1);
        gem5.restore(version, 3, &saved).unwrap();
        let restored = gem5.entries(3).unwrap();
        for entry in &restored {
            prop_assert!(agrees(&gem5, entry), "{entry:?}");
            prop_assert_eq!(entry.asid, asids.1);
        }
        let buffer = BUFFER >> PAGE_SHIFT & !0xff;
        let programs = |entries: &[Entry]| entries.iter().map(|entry| entry.v_page).filter(|page| *page != buffer).count();
        prop_assert!(programs(&restored) <= cap as usize);
        if cap == 64 && before.len() < 64 {
            prop_assert_eq!(programs(&restored), programs(&before), "all of them");
            // No walk is left.
            let walks = gem5.walks;
            for page in &pages {
                load(&mut gem5, 3, *page);
            }
            prop_assert_eq!(gem5.walks, walks);
        }
    }
}

#[test]
fn a_moved_thread_walks_on_each_new_core_unless_it_takes_its_entries_along() {
    for (cap, expected) in [(None, [1, 1, 1, 1, 0, 0, 0, 0]), (Some(64), [1, 0, 0, 0, 0, 0, 0, 0])] {
        let mut linux = Linux::new(&machine(), Version::V4, cap, 1, STRIDE_68K).unwrap();
        let task = linux.spawn(0).unwrap();
        let mut walked = Vec::new();
        for run in 0..8 {
            linux.system_call(task).unwrap();
            let walks = linux.gem5().walks;
            linux.access(task, &[0]).unwrap();
            walked.push(linux.gem5().walks - walks);
            linux.gem5().flush_caches();
            linux.move_to(task, (run + 1) % 4).unwrap();
            assert!(linux.is_running(task) && linux.saved(task).is_none());
        }
        assert_eq!(walked, expected, "{cap:?}");
    }
}

#[test]
fn a_queued_thread_keeps_its_entries_until_it_runs() {
    let mut linux = Linux::new(&machine(), Version::V4, Some(64), 4, STRIDE_4K).unwrap();
    let (first, second) = (linux.spawn(0).unwrap(), linux.spawn(1).unwrap());
    linux.access(first, &[0, 1, 2, 3]).unwrap();
    // Core 1 is taken: the thread waits there, with its entries in its task_struct.
    linux.move_to(first, 1).unwrap();
    assert!(!linux.is_running(first) && linux.is_running(second) && linux.core_of(first) == Some(1));
    let bytes = linux.saved(first).unwrap().bytes();
    assert!(bytes >= 4 * PACKED_BYTES && bytes.is_multiple_of(8), "{bytes}");
    assert!(linux.access(first, &[0]).is_err(), "it does not run");
    // Moved on before it ran: it has what it had.
    linux.move_to(first, 2).unwrap();
    assert!(linux.is_running(first) && linux.saved(first).is_none());
    let walks = linux.gem5().walks;
    linux.access(first, &[0, 1, 2, 3]).unwrap();
    assert_eq!(linux.gem5().walks, walks);
    // The same core's next: round robin.
    let third = linux.spawn(2).unwrap();
    linux.preempt(2).unwrap();
    assert!(linux.is_running(third) && !linux.is_running(first));
    linux.preempt(2).unwrap();
    assert!(linux.is_running(first));
}

#[test]
fn bad_input_is_told() {
    let a7 = preset("cortex-a7").unwrap();
    let text = |error: ModelError| error.to_string();
    assert_eq!(text(Gem5Benchmark::new(&machine(), 0, 1).unwrap_err()), "0 pages: the model takes 1 to 16384");
    assert_eq!(text(A7Benchmark::new(&a7, 257, 1, 1).unwrap_err()), "257 pages: the model takes 1 to 256");
    let wrong = Gem5::new(&a7, Version::V1).unwrap_err();
    assert_eq!(text(wrong), "cortex-a7: the model of TLB migration needs one data TLB, fully associative");
    let wrong = CortexA7::new(&machine(), 1).unwrap_err();
    assert_eq!(text(wrong), "gem5-armv7: the model of TLB migration needs a main TLB");
    let mut linux = Linux::new(&machine(), Version::V4, None, 1, 1).unwrap();
    assert_eq!(text(linux.spawn(4).unwrap_err()), "core 4: there are 4, counted from 0");
    let task = linux.spawn(0).unwrap();
    assert_eq!(text(linux.move_to(task, 9).unwrap_err()), "core 9: there are 4, counted from 0");
    assert!(linux.is_running(task));
    let error = linux.gem5().load(0, 0x1000).unwrap_err();
    assert_eq!(text(error), "address 0x1000: no page is mapped there");
    let error = linux.gem5().tables.map(KERNEL_OFFSET >> PAGE_SHIFT, 1, 3).unwrap_err();
    assert_eq!(text(error), "address 0x80000000: the kernel has a section there; map pages elsewhere");
}

/// What happens to a program of three threads.
#[derive(Clone, Debug)]
enum Event {
    Access(usize, u32),
    Move(usize, usize),
    Preempt(usize),
    Unmap(u32),
    Protect(u32, u8),
    Map(u32, u32),
    RollOver(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let page = 0u32..12;
    let event = prop_oneof![
        6 => (0usize..3, page.clone()).prop_map(|(task, page)| Event::Access(task, page)),
        3 => (0usize..3, 0usize..4).prop_map(|(task, core)| Event::Move(task, core)),
        1 => (0usize..4).prop_map(Event::Preempt),
        1 => page.clone().prop_map(Event::Unmap),
        1 => (page.clone(), 1u8..4).prop_map(|(page, ap)| Event::Protect(page, ap)),
        2 => (page, 0u32..4096).prop_map(|(page, frame)| Event::Map(page, frame)),
        1 => (1u8..).prop_map(Event::RollOver),
    ];
    prop::collection::vec(event, 1..120)
}

/// The benchmark's first page, by which Linux numbers the program's pages.
const PROGRAM: u32 = 0x4_0004;

/// Entries of all TLBs that no walk would find so.
fn stale(linux: &mut Linux) -> Vec<Entry> {
    let held: Vec<Entry> = (0..4).flat_map(|core| linux.gem5().entries(core).unwrap()).collect();
    let gem5 = linux.gem5();
    held.into_iter().filter(|entry| !agrees(gem5, entry) || entry.asid != gem5.asid()).collect()
}

proptest! {
    /// Unmapped, protected, mapped elsewhere, under another ASID: whatever happens while entries lie in a task, none comes back stale.
    #[test]
    fn no_restored_entry_disagrees_with_the_tables(
        version in prop::sample::select(&VERSIONS[..]),
        cap in 1u32..=64,
        events in events(),
    ) {
        let mut linux = Linux::new(&machine(), version, Some(cap), 12, 1).unwrap();
        let tasks = [0, 0, 1].map(|core| linux.spawn(core).unwrap());
        let mut mapped = [true; 12];
        for event in events {
            match event {
                Event::Access(task, page) => {
                    if linux.is_running(tasks[task]) {
                        prop_assert_eq!(linux.access(tasks[task], &[page]).is_ok(), mapped[page as usize]);
                    }
                }
                Event::Move(task, core) => linux.move_to(tasks[task], core).unwrap(),
                Event::Preempt(core) => linux.preempt(core).unwrap(),
                Event::Unmap(page) => {
                    linux.unmap(PROGRAM + page).unwrap();
                    mapped[page as usize] = false;
                }
                Event::Protect(page, ap) => linux.protect(PROGRAM + page, ap).unwrap(),
                Event::Map(page, frame) => {
                    linux.map(PROGRAM + page, frame, 3).unwrap();
                    mapped[page as usize] = true;
                }
                Event::RollOver(asid) => linux.roll_over(asid),
            }
            prop_assert_eq!(stale(&mut linux), vec![]);
            prop_assert!(tasks.iter().filter_map(|task| linux.saved(*task)).all(|saved| saved.bytes() <= cap as usize * 12));
        }
    }
}

/// What the paper leaves open is there to be seen, in each version: without the kernel's care a page that was unmapped comes back.
#[test]
fn without_dropping_it_from_the_saved_set_an_unmapped_page_comes_back() {
    for version in VERSIONS {
        for careful in [false, true] {
            let mut linux = Linux::new(&machine(), version, Some(64), 4, 1).unwrap();
            let (task, _other) = (linux.spawn(0).unwrap(), linux.spawn(1).unwrap());
            linux.access(task, &[0, 1, 2, 3]).unwrap();
            linux.move_to(task, 1).unwrap();
            assert!(!linux.is_running(task));
            if careful {
                linux.unmap(PROGRAM + 2).unwrap();
            } else {
                linux.gem5().tables.unmap(PROGRAM + 2);
                linux.gem5().invalidate(PROGRAM + 2);
            }
            linux.preempt(1).unwrap();
            assert!(linux.is_running(task));
            let stale: Vec<u32> = stale(&mut linux).iter().map(|entry| entry.v_page).collect();
            assert_eq!(stale, if careful { vec![] } else { vec![PROGRAM + 2] }, "{version}");
            assert_eq!(linux.access(task, &[2]).is_err(), careful);
            linux.access(task, &[0, 1, 3]).unwrap();
        }
    }
}
