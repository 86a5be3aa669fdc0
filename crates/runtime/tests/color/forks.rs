//! Several threads, and forks.

use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_runtime::color::SharedHeap;

use crate::support::{options, partition, xeon};

/// Allocations of one thread, each filled with its number and looked at before it is freed.
fn churn(heap: &SharedHeap, seed: u64, rounds: usize) {
    let mut state = seed * 2 + 1;
    let mut live: Vec<(*mut u8, usize)> = Vec::new();
    for _ in 0..rounds {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = (state >> 33) as usize;
        if live.len() > 20 || (draw.is_multiple_of(3) && !live.is_empty()) {
            let (at, bytes) = live.swap_remove(draw % live.len());
            // SAFETY: this thread's own allocation.
            unsafe {
                assert!(std::slice::from_raw_parts(at, bytes).iter().all(|byte| *byte == seed as u8));
                heap.free(at, None).expect("a free");
            }
        } else {
            let bytes = draw % 700;
            let at = heap.malloc(bytes, (seed % 2) as u32);
            if !at.is_null() {
                // SAFETY: as many bytes.
                unsafe { at.write_bytes(seed as u8, bytes) };
                live.push((at, bytes));
            }
        }
    }
    for (at, _) in live {
        // SAFETY: as above.
        unsafe { heap.free(at, None) }.expect("a free");
    }
}

fn heap() -> SharedHeap {
    let colors = vec![partition("a", Some(64), 8, &[]), partition("b", Some(64), 1, &[])];
    SharedHeap::new(&options(xeon(), colors)).expect("a heap")
}

#[test]
fn sixty_four_threads() {
    let heap = heap();
    std::thread::scope(|scope| {
        for seed in 0..64 {
            let heap = &heap;
            scope.spawn(move || churn(heap, seed, 3000));
        }
    });
    assert!(heap.is_sound());
    for color in 0..2 {
        assert!(heap.walk(color, |_, _, _| ()));
        assert_eq!(heap.stats(color).expect("a colour").used_bytes, 0);
    }
}

#[test]
fn children_go_on_with_their_copies_under_load() {
    let heap = heap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..4 {
            let (heap, stop) = (&heap, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    churn(heap, seed, 200);
                }
            });
        }
        for _ in 0..50 {
            heap.before_fork();
            // SAFETY: the child calls the heap, which nobody else is in, and ends.
            let child = unsafe { libc::fork() };
            heap.after_fork(child == 0);
            if child == 0 {
                // A child that hangs is ended by the system.
                // SAFETY: as above.
                unsafe {
                    libc::alarm(20);
                    let at = heap.malloc(100, 0);
                    let sound = heap.is_sound() && !at.is_null() && heap.free(at, None).is_ok();
                    libc::_exit(i32::from(!sound));
                }
            }
            let mut status = -1;
            // SAFETY: the child made above.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
