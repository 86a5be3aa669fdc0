//! What the system is asked for: memory at once, locked, small pages or huge ones, a lock that lends priority.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lookaside_host::{Process, Vma};
use lookaside_machine::{ColorLevel, IndexFn, PageSize};
use lookaside_runtime::color::{ColoredHeap, GrowingHeap, HeapError, HeapOptions, SharedHeap};

use crate::support::{options, partition, xeon};

/// The mapping of each page.
fn maps_of(vpns: &[u64], page_bytes: u64) -> Vec<Vma> {
    let maps = Process::own().smaps().expect("mappings");
    let of = |vpn: &u64| {
        let at = vpn * page_bytes;
        maps.iter().find(|map| map.start <= at && at + page_bytes <= map.end).expect("a mapping").clone()
    };
    vpns.iter().map(of).collect()
}

fn has_huge_pages() -> bool {
    let has = Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists();
    if !has {
        eprintln!("LEFT OUT: the system has no transparent huge pages");
    }
    has
}

/// Runs whose middle pages no header lies in, single pages, and the bookkeeping's.
fn small(locked: bool) -> Result<(ColoredHeap, Vec<u64>), HeapError> {
    let colors = vec![partition("a", Some(21), 7, &[]), partition("b", None, 1, &[("l1d-4k", &[3], Some(4))])];
    let heap = ColoredHeap::new(&HeapOptions { locked, ..options(xeon(), colors) })?;
    let vpns = [heap.vpns(0), heap.vpns(1), heap.bookkeeping_vpns().to_vec()].concat();
    Ok((heap, vpns))
}

#[test]
fn every_page_has_memory_from_the_start() {
    let (_heap, vpns) = small(false).expect("a heap");
    for vpn in vpns {
        let mut has = 0u8;
        // SAFETY: one page, one byte; nothing is touched.
        let told = unsafe { libc::mincore((vpn << 12) as *mut libc::c_void, 4096, &mut has) };
        assert_eq!((told, has & 1), (0, 1), "page {vpn:#x}");
    }
}

#[test]
fn pages_are_locked_if_asked_for() {
    let locked_bytes = || Process::own().status().expect("a status").bytes("VmLck").expect("VmLck");
    let are_locked = |vpns: &[u64]| maps_of(vpns, 4096).iter().map(|map| map.has_flag(&["lo"])).collect::<Vec<_>>();
    let (_heap, vpns) = small(false).expect("a heap");
    assert_eq!(are_locked(&vpns), vec![false; vpns.len()]);
    match small(true) {
        Ok((_locked, vpns)) => {
            // No other test of this program locks anything.
            assert_eq!(locked_bytes(), vpns.len() as u64 * 4096);
            assert_eq!(are_locked(&vpns), vec![true; vpns.len()]);
        }
        Err(HeapError::System(error)) => {
            // It is the system that refuses: nobody may lock as much.
            let bytes = vpns.len() * 4096;
            let memory = lookaside_host::Mapping::new(bytes).expect("memory");
            // SAFETY: a mapping of this test's own, which is given back after it.
            assert_ne!(unsafe { libc::mlock(memory.start().as_ptr().cast(), bytes) }, 0, "{error}");
            eprintln!("LEFT OUT: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn huge_pages_are_kept_away() {
    if !has_huge_pages() {
        return;
    }
    let (heap, vpns) = small(false).expect("a heap");
    let growing = GrowingHeap::new();
    growing.ready(|| Some(b"12;-"), |why| panic!("{why}"));
    // As long as several huge pages: it would get them.
    let at = growing.malloc(1, 8 << 20);
    assert!(!at.is_null());
    // SAFETY: as many bytes.
    unsafe { at.write_bytes(1, 8 << 20) };
    for map in maps_of(&[vpns, vec![at as u64 >> 12]].concat(), 4096) {
        assert!(map.has_flag(&["nh"]), "{map:?}");
        assert_eq!(map.anonymous_huge_bytes, 0);
    }
    assert_eq!(heap.huge_bytes(), Ok(0));
}

const HUGE: u64 = 2 << 20;

/// Sets of 2M pages: one set, a row of two, and the bookkeeping's.
fn huge() -> (ColorLevel, HeapOptions) {
    let level = ColorLevel { name: "l1-2m".into(), sets: 8, ways: 4, index: IndexFn::Masks(vec![1 | 8, 2 | 16, 4]) };
    let set = |name: &str, sets: &[u32], row: u64| partition(name, None, row, &[("l1-2m", sets, Some(1))]);
    let colors = vec![set("a", &[5], 1), set("row", &[2, 3], 2)];
    let own = Some(partition("bookkeeping", None, 1, &[("l1-2m", &[7], None)]));
    let options = options(vec![level.clone()], colors);
    (level, HeapOptions { page_size: PageSize::M2, bookkeeping: own, ..options })
}

#[test]
fn heaps_of_huge_pages_own_their_sets() {
    if !has_huge_pages() {
        return;
    }
    let (level, asked) = huge();
    let mut heap = match ColoredHeap::new(&asked) {
        Ok(heap) => heap,
        Err(HeapError::System(error)) => return eprintln!("LEFT OUT: {error}"),
        Err(error) => panic!("{error}"),
    };
    let set = |at: *mut u8| level.set_of(at as u64 / HUGE);
    assert_eq!(heap.huge_bytes(), Ok(6 * HUGE));
    let vpns = [heap.vpns(0), heap.vpns(1), heap.bookkeeping_vpns().to_vec()].concat();
    assert_eq!(vpns.iter().map(|vpn| level.set_of(*vpn)).collect::<Vec<_>>(), [5, 2, 3, 7, 7, 7]);
    for map in maps_of(&vpns, HUGE) {
        assert_eq!(map.anonymous_huge_bytes, map.end - map.start, "{map:?}");
    }
    // Small blocks, one as long as a page, and one of a row.
    for bytes in [100, 300_000, HUGE as usize - 400_000] {
        let at = heap.malloc(bytes, 0);
        assert_eq!((set(at), set(at.wrapping_add(bytes - 1))), (5, 5), "{bytes}");
    }
    assert!(heap.malloc(100_000, 0).is_null());
    let row = heap.malloc(2 * HUGE as usize, 1);
    assert_eq!((set(row), set(row.wrapping_add(2 * HUGE as usize - 1))), (2, 3));
    assert!(heap.malloc(1, 1).is_null() && heap.is_sound());

    // Where the system gives none there is no heap. (For the whole process: no other test asks for them.)
    // SAFETY: a setting of this process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) }, 0);
    let refused = ColoredHeap::new(&asked).map(|_| ());
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
    let said = "a heap of 2048 KiB pages: only 0 of its 12288 KiB got huge pages, the rest lies in other sets (see \
                /sys/kernel/mm/transparent_hugepage/enabled and free memory)";
    assert_eq!(refused, Err(HeapError::System(said.into())));
    let larger = ColoredHeap::new(&HeapOptions { page_size: PageSize::from_shift(22).expect("4 MiB"), ..asked });
    let said = "a heap of 4096 KiB pages: the system's transparent huge pages are of 2048 KiB";
    assert_eq!(larger.map(|_| ()), Err(HeapError::System(said.into())));
}

/// The priority that a thread has just now, lent ones included: negative for real-time ones (proc(5), stat).
fn priority(thread: i32) -> i64 {
    Process::own().thread(thread as u32).stat().expect("a thread").field(18).expect("a priority")
}

#[test]
fn who_holds_the_lock_runs_at_the_priority_of_who_waits() {
    let heap = SharedHeap::new(&options(xeon(), vec![partition("a", Some(4), 1, &[])])).expect("a heap");
    let may = AtomicI32::new(-1);
    let lent = std::thread::scope(|scope| {
        let (mut lent, mut begun) = (None, false);
        // The heap is locked while it is walked; of its four blocks the first is enough.
        heap.walk(0, |_, _, _| {
            if std::mem::replace(&mut begun, true) {
                return;
            }
            // SAFETY: this thread's number.
            let own = unsafe { libc::gettid() };
            assert!(priority(own) >= 0);
            scope.spawn(|| {
                let real_time = libc::sched_param { sched_priority: 10 };
                // SAFETY: this thread alone.
                let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &real_time) };
                may.store(i32::from(set == 0), Ordering::Release);
                heap.is_sound();
            });
            while may.load(Ordering::Acquire) < 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            if may.load(Ordering::Acquire) == 0 {
                return;
            }
            // Until the other one waits; for good where nothing is lent, up to some seconds.
            let mut looks = (0..5000).map(|_| {
                std::thread::sleep(Duration::from_millis(1));
                priority(own)
            });
            lent = Some(looks.any(|priority| priority == -11));
        });
        lent
    });
    match lent {
        // A real-time priority of 10 is shown as −1 − 10.
        Some(lent) => assert!(lent, "no priority was lent"),
        None => eprintln!("LEFT OUT: the system refuses SCHED_FIFO"),
    }
}
