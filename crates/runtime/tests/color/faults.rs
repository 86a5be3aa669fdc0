//! Pointers that were never given out are told, and change nothing.

use lookaside_runtime::color::{BadFree, ColoredHeap};

use crate::support::{options, partition, xeon};

fn heap(checked: bool) -> ColoredHeap {
    let colors = vec![partition("a", Some(16), 16, &[]), partition("b", None, 1, &[("l1d-4k", &[3], Some(4))])];
    let options = lookaside_runtime::color::HeapOptions { checked, ..options(xeon(), colors) };
    ColoredHeap::new(&options).expect("a heap")
}

fn free(heap: &mut ColoredHeap, at: *mut u8) -> Result<(), BadFree> {
    // SAFETY: the heap is checked, or the pointer is outside of it or freed.
    unsafe { heap.free(at) }
}

#[test]
fn what_any_heap_tells() {
    for checked in [false, true] {
        let mut heap = heap(checked);
        let mut local = [0u8; 64];
        assert_eq!(free(&mut heap, local.as_mut_ptr()), Err(BadFree::Foreign));
        assert_eq!(free(&mut heap, std::ptr::null_mut()), Ok(()));
        let a = heap.malloc(100, 0);
        assert_eq!(free(&mut heap, a.wrapping_add(4)), Err(BadFree::NoStart));
        // SAFETY: it is of another colour, so that nothing is freed.
        assert_eq!(unsafe { heap.free_of(a, 1) }, Err(BadFree::Color(0)));
        assert_eq!(free(&mut heap, a), Ok(()));
        assert_eq!(free(&mut heap, a), Err(BadFree::FreedBefore));
        assert!(heap.is_sound() && heap.stats(0).is_some_and(|stats| stats.allocations == 0));
    }
}

#[test]
fn what_was_joined_is_freed_once() {
    let mut heap = heap(true);
    let all: Vec<*mut u8> = (0..4).map(|_| heap.malloc(100, 0)).collect();
    // 2 is joined to 1, then both to 0: their headers lie in the midst of a free block.
    for i in [1, 2, 0] {
        assert_eq!(free(&mut heap, all[i]), Ok(()));
    }
    for i in [0, 1, 2] {
        assert_eq!(free(&mut heap, all[i]), Err(BadFree::FreedBefore), "{i}");
    }
    assert_eq!(free(&mut heap, all[3]), Ok(()));
}

#[test]
fn seals_tell_inner_pointers_and_overruns() {
    let mut heap = heap(true);
    let a = heap.malloc(100, 0);
    let b = heap.malloc(100, 0);
    assert_eq!(free(&mut heap, a.wrapping_add(16)), Err(BadFree::NoStart));
    let usable = heap.usable_size(a).expect("an allocation");
    // SAFETY: within the heap's pages: the header of `b`.
    unsafe { a.add(usable).write_bytes(0x41, 4) };
    assert_eq!(free(&mut heap, a), Err(BadFree::Overrun));
    assert_eq!(free(&mut heap, b), Err(BadFree::NoStart));
    assert!(!heap.walk(0, |_, _, _| ()));
}

#[test]
fn a_page_taken_whole_is_freed_once() {
    let mut heap = heap(true);
    let page = heap.malloc(4096, 1);
    assert_eq!(heap.usable_size(page), Ok(4096));
    // SAFETY: of another colour, so that nothing is freed.
    assert_eq!(unsafe { heap.free_of(page, 0) }, Err(BadFree::Color(1)));
    assert_eq!(free(&mut heap, page), Ok(()));
    assert_ne!(free(&mut heap, page), Ok(()));
    assert_ne!(free(&mut heap, page.wrapping_add(16)), Ok(()));
    assert_eq!(heap.stats(1).expect("a colour").capacity_bytes, 4 * 4096);
    assert!(heap.is_sound() && heap.walk(1, |_, _, _| ()));
}

#[test]
fn sizes_that_overflow_are_refused() {
    let mut heap = heap(true);
    for bytes in [usize::MAX, usize::MAX - 8, isize::MAX as usize, 1 << 48, 1 << 38] {
        assert!(heap.malloc(bytes, 0).is_null());
        assert!(heap.aligned(64, bytes, 0).is_null());
        assert!(heap.calloc(bytes, 3, 0).is_null());
    }
    assert!(heap.calloc(1 << 63, 2, 0).is_null());
    assert!(heap.aligned(1 << 63, 1, 0).is_null() && heap.aligned(48, 1, 0).is_null());
    assert!(heap.malloc(1, 2).is_null());
    assert!(heap.is_sound() && heap.stats(0).expect("a colour").allocations == 0);
}
