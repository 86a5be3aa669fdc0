//! How long a pair of mmap and munmap takes in a program with much memory, of which a page is touched in between: for
//! comparing with and without a baker, which holds the lock that both want.
//!
//! ```console
//! $ cargo build --release -p lookaside-workloads --example mmap_latency
//! $ lookaside compare --variants base,bake:auto,bake:prefetch,bake:scan --metric 'p99.9 ([0-9.]+)' -- \
//!       target/release/examples/mmap_latency 2048 5
//! ```
//!
//! Arguments: MiB of memory in small pages, seconds.

use std::time::{Duration, Instant};

use lookaside_stats::quantile;
use rustix::io::Errno;
use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// What is mapped and unmapped: 64 KiB, as an allocator's slab.
const BYTES: usize = 64 << 10;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(mib)), Some(Ok(seconds)), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: mmap_latency MIB SECONDS, whole numbers");
        std::process::exit(2);
    };
    if let Err(e) = touched(mib) {
        eprintln!("mmap_latency: {mib} MiB: {e}");
        std::process::exit(2);
    }
    let mut nanos: Vec<u32> = Vec::with_capacity(1 << 24);
    let end = Instant::now() + Duration::from_secs(seconds);
    // Where the list is full, so is what is known.
    while Instant::now() < end && nanos.len() < nanos.capacity() {
        let start = Instant::now();
        pair();
        nanos.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }
    if nanos.is_empty() {
        return println!("no pair");
    }
    let quantile = |share: f64| quantile(&nanos, share).unwrap_or_default() / 1e3;
    println!(
        "{} pairs of mmap and munmap: microseconds: p50 {:.2}, p99 {:.2}, p99.9 {:.2}, most {:.2}",
        nanos.len(),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        quantile(1.0)
    );
}

/// So much memory in small pages, all of it touched, until the program ends.
fn touched(mib: u64) -> Result<(), Errno> {
    const PAGE: usize = 4096;
    let bytes = usize::try_from(mib << 20).map_err(|_| Errno::NOMEM)?;
    // SAFETY: a new mapping at a place that the kernel chooses, never unmapped; each write is in it.
    unsafe {
        let at = mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?;
        madvise(at, bytes, Advice::LinuxNoHugepage)?;
        (0..bytes).step_by(PAGE).for_each(|offset| at.cast::<u8>().add(offset).write_volatile(1));
    }
    Ok(())
}

fn pair() {
    // SAFETY: a new mapping at a place that the kernel chooses; a byte of it is written, and it is unmapped whole.
    let done = unsafe {
        mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE).and_then(
            |at| {
                at.cast::<u8>().write_volatile(1);
                munmap(at, BYTES)
            },
        )
    };
    if let Err(e) = done {
        eprintln!("mmap_latency: {e}");
        std::process::exit(1);
    }
}
