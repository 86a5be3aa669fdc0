//! What a free and a malloc take, one pair after another: the coloured heap beside the C library's and rlsf,
//! another TLSF.
//!
//! ```console
//! $ cargo run --release -p lookaside-runtime --example alloc_latency [-- PAIRS]
//! ```
//!
//! A slot among 8192 is drawn, what it holds is freed, 8 B to 256 KiB (log-uniform) are allocated: 10 million pairs
//! unless given. The same sequence is replayed five times from an empty heap, and each pair counts with the least of
//! its times: what interrupts and neighbours add differs from replay to replay, what the allocator does is the same.
//! Memory is prefaulted. Times are by the time-stamp counter, less what reading it takes (the median of empty pairs).
//! Then staged worst cases. *Headers alone* is what loading the header of what is freed and storing that of what is
//! allocated take here.

use std::process::ExitCode;

use lookaside_machine::{PageSize, Partition};
use lookaside_runtime::color::{ColoredHeap, HeapOptions};
use lookaside_stats::{median, quantiles};

const SLOTS: usize = 8192;
const REPLAYS: usize = 5;
const HEAP_BYTES: u64 = 1 << 29;

/// Allocators side by side.
trait Malloc {
    fn malloc(&mut self, bytes: usize) -> *mut u8;
    fn free(&mut self, at: *mut u8);
}

impl Malloc for ColoredHeap {
    fn malloc(&mut self, bytes: usize) -> *mut u8 {
        ColoredHeap::malloc(self, bytes, 0)
    }

    fn free(&mut self, at: *mut u8) {
        // SAFETY: from the heap, and not used any more.
        let _ = unsafe { ColoredHeap::free(self, at) };
    }
}

/// Writes down where the heap's allocations lie.
struct Recording<'a>(&'a mut ColoredHeap, Vec<*mut u8>);

impl Malloc for Recording<'_> {
    fn malloc(&mut self, bytes: usize) -> *mut u8 {
        let at = Malloc::malloc(self.0, bytes);
        self.1.push(at);
        at
    }

    fn free(&mut self, at: *mut u8) {
        Malloc::free(self.0, at);
    }
}

/// No allocator: what cannot be left out where headers lie before the blocks. Allocations lie where another's did; a
/// free reads the header, a malloc writes one, and no free block is looked for, joined or divided.
struct HeadersAlone {
    addresses: Vec<*mut u8>,
    next: usize,
}

impl Malloc for HeadersAlone {
    fn malloc(&mut self, bytes: usize) -> *mut u8 {
        let at = self.addresses[self.next % self.addresses.len()];
        self.next += 1;
        if !at.is_null() {
            // SAFETY: a block of a heap that nobody else uses, and that is not used as a heap any more.
            unsafe { at.cast::<u64>().sub(1).write_volatile(bytes as u64) };
        }
        at
    }

    fn free(&mut self, at: *mut u8) {
        // SAFETY: as above.
        std::hint::black_box(unsafe { at.cast::<u64>().sub(1).read_volatile() });
    }
}

struct Glibc;

impl Malloc for Glibc {
    fn malloc(&mut self, bytes: usize) -> *mut u8 {
        // SAFETY: any size is allowed.
        unsafe { libc::malloc(bytes).cast() }
    }

    fn free(&mut self, at: *mut u8) {
        // SAFETY: from `malloc`, and not used any more.
        unsafe { libc::free(at.cast()) };
    }
}

impl Glibc {
    /// All memory from one heap that never shrinks, touched before.
    fn prefaulted() -> Self {
        // SAFETY: settings and memory of this program's own.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
            let all = libc::malloc(HEAP_BYTES as usize);
            if !all.is_null() {
                libc::memset(all, 1, HEAP_BYTES as usize);
            }
            libc::free(all);
        }
        Self
    }
}

/// rlsf, over memory that was touched before. Its `deallocate` wants the alignment.
struct Rlsf(rlsf::Tlsf<'static, u32, u32, 26, 16>);

impl Rlsf {
    fn prefaulted() -> Self {
        let mut tlsf = rlsf::Tlsf::new();
        let memory = vec![std::mem::MaybeUninit::new(1u8); HEAP_BYTES as usize].leak();
        tlsf.insert_free_block(memory);
        Self(tlsf)
    }
}

impl Malloc for Rlsf {
    fn malloc(&mut self, bytes: usize) -> *mut u8 {
        let layout = std::alloc::Layout::from_size_align(bytes, 16).ok();
        layout.and_then(|layout| self.0.allocate(layout)).map_or(std::ptr::null_mut(), |at| at.as_ptr())
    }

    fn free(&mut self, at: *mut u8) {
        if let Some(at) = std::ptr::NonNull::new(at) {
            // SAFETY: from `allocate` with this alignment, and not used any more.
            unsafe { self.0.deallocate(at, 16) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 has them.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let now = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        now
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a structure of this function's own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of a tick, and ticks of an empty pair.
fn calibrate() -> (f64, f64) {
    let (start, first) = (std::time::Instant::now(), ticks());
    while start.elapsed().as_millis() < 100 {}
    let nanos = start.elapsed().as_nanos() as f64 / (ticks() - first) as f64;
    let empty = (0..10_000).map(|_| ticks()).map(|before| ticks() - before);
    (nanos, median(empty).unwrap_or_default())
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Slot and bytes of each pair.
fn sequence(pairs: usize) -> Vec<(u16, u32)> {
    let mut state = 1;
    (0..pairs)
        .map(|_| {
            let slot = random(&mut state) as usize % SLOTS;
            let log2 = 3 + random(&mut state) % 15;
            (slot as u16, ((1 << log2) + random(&mut state) % (1 << log2)) as u32)
        })
        .collect()
}

/// The least ticks of each pair over all replays; how many allocations were refused.
fn replay(heap: &mut dyn Malloc, pairs: &[(u16, u32)]) -> (Vec<u32>, u64) {
    let mut least = vec![u32::MAX; pairs.len()];
    let refused =
        (0..REPLAYS).map(|_| once(heap, pairs, &mut |pair, ticks| least[pair] = least[pair].min(ticks))).sum();
    (least, refused)
}

/// All pairs from an empty heap, which is empty again at the end; gives each one's ticks. How many allocations were
/// refused.
fn once(heap: &mut dyn Malloc, pairs: &[(u16, u32)], took: &mut dyn FnMut(usize, u32)) -> u64 {
    let mut refused = 0;
    let mut slots: Vec<*mut u8> = vec![std::ptr::null_mut(); SLOTS];
    for (pair, (slot, bytes)) in pairs.iter().enumerate() {
        let slot = &mut slots[*slot as usize];
        let before = ticks();
        if !slot.is_null() {
            heap.free(*slot);
        }
        let at = heap.malloc(*bytes as usize);
        let after = ticks();
        *slot = at;
        refused += u64::from(at.is_null());
        took(pair, (after - before) as u32);
    }
    slots.into_iter().filter(|slot| !slot.is_null()).for_each(|slot| heap.free(slot));
    refused
}

/// Takes what the caches hold out of them.
fn cool(buffer: &mut [u8]) {
    buffer.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
}

/// Ticks of a malloc from one huge free block and of a free between two free neighbours, the caches cold or not.
fn staged(heap: &mut ColoredHeap, cold: bool, buffer: &mut [u8]) -> [Vec<u32>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        if cold {
            cool(buffer);
        }
        let before = ticks();
        let first = heap.malloc(100, 0);
        times[0].push((ticks() - before) as u32);
        let rest: Vec<*mut u8> = (0..3).map(|_| heap.malloc(100, 0)).collect();
        // `rest[2]` keeps the huge block apart, so that the two neighbours are small ones.
        Malloc::free(heap, first);
        Malloc::free(heap, rest[1]);
        if cold {
            cool(buffer);
        }
        let before = ticks();
        Malloc::free(heap, rest[0]);
        times[1].push((ticks() - before) as u32);
        Malloc::free(heap, rest[2]);
    }
    times
}

/// One run of pages, all sets.
fn heap(page_size: PageSize, checked: bool) -> Result<ColoredHeap, lookaside_runtime::color::HeapError> {
    let pages = HEAP_BYTES >> page_size.shift();
    ColoredHeap::new(&HeapOptions {
        page_size,
        levels: Vec::new(),
        colors: vec![Partition { name: "all".into(), pages: Some(pages), contiguous_pages: pages, shares: Vec::new() }],
        bookkeeping: None,
        checked,
        locked: false,
        runs_as_asked: false,
    })
}

fn row(name: &str, times: Vec<u32>, refused: u64, nanos: f64, empty: f64) {
    let all = quantiles(times, [0.5, 0.999, 1.0]).unwrap_or_default();
    let [p50, p999, most] = all.map(|ticks| (ticks - empty).max(0.0) * nanos);
    println!("{name:<44} {p50:>8.0} {p999:>8.0} {most:>8.0}   {refused}");
}

fn main() -> ExitCode {
    let pairs = match std::env::args().nth(1).map_or(Ok(10_000_000), |n| n.parse::<usize>()) {
        Ok(pairs) if (1..=100_000_000).contains(&pairs) => sequence(pairs),
        _ => {
            eprintln!("alloc_latency: write a number of pairs, 1 to 100,000,000");
            return ExitCode::from(2);
        }
    };
    let (nanos, empty) = calibrate();
    println!("{} pairs of free and malloc, 8 B to 256 KiB, {SLOTS} slots; least of {REPLAYS} replays; ns", pairs.len());
    println!("(less {:.1} ns that reading the clock takes)", empty * nanos);
    println!("{:<44} {:>8} {:>8} {:>8}   refused", "", "p50", "p99.9", "max");
    let mut buffer = vec![0; 64 << 20];
    for (page_size, checked) in [(PageSize::K4, false), (PageSize::K4, true), (PageSize::M2, false)] {
        let name = format!("coloured heap, {page_size} pages{}", if checked { ", checked" } else { "" });
        match heap(page_size, checked) {
            Ok(mut heap) => {
                let (times, refused) = replay(&mut heap, &pairs);
                row(&name, times, refused, nanos, empty);
                let stats = heap.stats(0).unwrap_or_default();
                println!("  at most {} MiB of {} in use", stats.peak_bytes >> 20, stats.capacity_bytes >> 20);
                for cold in [false, true] {
                    let [huge, join] = staged(&mut heap, cold, &mut buffer);
                    let state = if cold { ", caches cold" } else { "" };
                    row(&format!("  malloc from one huge block{state}"), huge, 0, nanos, empty);
                    row(&format!("  free between free neighbours{state}"), join, 0, nanos, empty);
                }
            }
            Err(error) => {
                eprintln!("alloc_latency: {error}");
                return ExitCode::from(1);
            }
        }
    }
    match heap(PageSize::K4, false) {
        Ok(mut heap) => {
            let mut recording = Recording(&mut heap, Vec::with_capacity(pairs.len()));
            once(&mut recording, &pairs, &mut |_, _| {});
            let addresses = recording.1;
            let (times, refused) = replay(&mut HeadersAlone { addresses, next: 0 }, &pairs);
            row("headers alone, 4K pages", times, refused, nanos, empty);
        }
        Err(error) => {
            eprintln!("alloc_latency: {error}");
            return ExitCode::from(1);
        }
    }
    let (times, refused) = replay(&mut Rlsf::prefaulted(), &pairs);
    row("rlsf", times, refused, nanos, empty);
    let (times, refused) = replay(&mut Glibc::prefaulted(), &pairs);
    row("malloc and free of the C library", times, refused, nanos, empty);
    ExitCode::SUCCESS
}
