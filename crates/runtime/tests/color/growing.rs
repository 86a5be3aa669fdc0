//! The heap that grows: what its runs of pages can hold lies in them.

use lookaside_runtime::color::{GrowingHeap, Outside};

#[test]
fn the_longest_run_is_given_whole() {
    // The first sets of 128; lengths on both sides of the classes' steps, and 1.
    for pages in [1usize, 2, 31, 33, 40, 67, 101] {
        // A line is read for as long as the program runs, and the heap's memory stays.
        let line: &'static str = format!("12;-;1,2,4,8,10,20,40/0-{}=*", pages - 1).leak();
        let heap = GrowingHeap::new();
        heap.ready(|| Some(line.as_bytes()), |why| panic!("{why}"));
        for _ in 0..3 {
            // A block's header and the first bytes of a run are 24.
            let at = heap.malloc(1, pages * 4096 - 24);
            assert!(!at.is_null());
            assert_eq!(at as usize >> 12 & 127, 0, "{pages}");
        }
        assert_eq!(heap.outside(), Outside::default(), "{pages}");
        assert!(!heap.malloc(1, pages * 4096 - 23).is_null());
        assert_eq!(heap.outside().allocations, 1, "{pages}");
        assert_eq!(heap.stats().refused, 0);
    }
}
