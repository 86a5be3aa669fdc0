//! Instructions of malloc and free, counted by callgrind: what no other load on the machine changes.
//!
//! The dev profile optimises this crate (Cargo.toml) and leaves its checks in, for overflows and of what unsafe code is
//! given: a release takes about half (docs/results/coloring.md).

use std::process::{Child, Command, Stdio};

use lookaside_runtime::color::{BadFree, ColoredHeap, HeapOptions};

use crate::support::{options, partition};

/// Pairs of free and malloc, and allocations that live at a time. Their sizes are those of `examples/alloc_latency.rs`,
/// 8 B to 256 KiB, 30 KiB in the mean.
const PAIRS: usize = 20_000;
const SLOTS: usize = 1024;
/// Pages of the heap, 64 MiB: about half of them are used.
const PAGES: u64 = 1 << 14;
/// Several colours.
const COLORS: u64 = 8;

/// Most instructions a call, on average: a tenth more than were counted (157.9, 156.0 and 283.9; Rust 1.95, x86-64),
/// for other compilers. The third looks up whose run a pointer lies in, among eight.
const BOUNDS: [(&str, u64, f64); 3] =
    [("counted_malloc", 1, 174.0), ("counted_free", 1, 172.0), ("counted_free", COLORS, 313.0)];

/// Which colours the process under callgrind has.
const REPLAYED: &str = "LOOKASIDE_TEST_COLORS";
const NAME: &str = "instructions::malloc_and_free_take_few_instructions";

#[test]
fn malloc_and_free_take_few_instructions() {
    if let Ok(colors) = std::env::var(REPLAYED) {
        return replay(colors.parse().expect("a number"));
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("NOT TESTED: instructions of malloc and free: valgrind is not installed");
        return;
    }
    // All at once: each takes a second, most of it to begin.
    let counted = BOUNDS.map(|(function, colors, most)| (function, colors, most, under_callgrind(function, colors)));
    let mut beyond = Vec::new();
    for (function, colors, most, child) in counted {
        let output = child.wait_with_output().expect("its output");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let collected = said.lines().find_map(|line| line.split_once("Collected :")).expect("a count").1;
        let calls = collected.trim().parse::<f64>().expect("a number") / PAIRS as f64;
        println!("{function}, {colors} colours: {calls:.1} instructions a call");
        assert!(calls > 20.0, "{function} was not counted: {said}");
        if calls > most {
            beyond.push(format!("{function}, {colors} colours: {calls:.1} instructions a call, more than {most}"));
        }
    }
    assert!(beyond.is_empty(), "{beyond:?}");
}

/// This test under callgrind, which counts in one function and what it calls.
fn under_callgrind(function: &str, colors: u64) -> Child {
    Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &format!("--toggle-collect={function}")])
        .arg(std::env::current_exe().expect("a path of this program"))
        .args(["--exact", NAME])
        .env(REPLAYED, colors.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("valgrind starts")
}

/// The sequence: a slot is drawn, what it holds is freed, another size is allocated. As many calls of each kind are
/// counted as there are pairs.
fn replay(colors: u64) {
    let of = |color| partition(&format!("{color}"), Some(PAGES / colors), PAGES / colors, &[]);
    let all = HeapOptions { checked: false, ..options(Vec::new(), (0..colors).map(of).collect()) };
    let mut heap = ColoredHeap::new(&all).expect("a heap");
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut slots = vec![std::ptr::null_mut(); SLOTS];
    for pair in 0..SLOTS + PAIRS {
        // First they are filled.
        let slot = if pair < SLOTS { pair } else { random(SLOTS as u64) as usize };
        let log2 = 3 + random(15);
        let bytes = ((1 << log2) + random(1 << log2)) as usize;
        let color = slot as u64 % colors;
        if pair < SLOTS {
            slots[slot] = heap.malloc(bytes, color as u32);
        } else {
            counted_free(&mut heap, slots[slot]).expect("a free");
            slots[slot] = counted_malloc(&mut heap, bytes, color as u32);
        }
        assert!(!slots[slot].is_null(), "the heap is full");
    }
}

// Names that callgrind finds, and calls of their own.
#[no_mangle]
#[inline(never)]
fn counted_malloc(heap: &mut ColoredHeap, bytes: usize, color: u32) -> *mut u8 {
    heap.malloc(bytes, color)
}

#[no_mangle]
#[inline(never)]
fn counted_free(heap: &mut ColoredHeap, at: *mut u8) -> Result<(), BadFree> {
    // SAFETY: from `malloc` of this heap, and not used any more.
    unsafe { heap.free(at) }
}
