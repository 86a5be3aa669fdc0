//! A join of few rows with many: a tenth of the memory is a hash table that is looked up at random, nine tenths are
//! rows that are read once a round, in a row. A program whose accesses are skewed by what its data are for: for
//! comparing huge pages for a tenth of the windows with huge pages for all.
//!
//! ```console
//! $ cargo build --release -p lookaside-workloads --example few_to_many
//! $ lookaside compare --variants base,thp,hugepages:auto:205 --warmup 0 --metric '([0-9.]+) ns each' -- \
//!       target/release/examples/few_to_many 4096 4
//! ```
//!
//! Arguments: MiB of memory, rounds. Prints a line a round; the last one tells what it comes to once pages have been
//! chosen.

use std::time::Instant;

use lookaside_stats::SplitMix64;

/// A row of the table of few; key 0 is a free slot.
#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    payload: u64,
}

/// A row of the table of many.
struct Row {
    key: u64,
    amount: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (Some(Ok(mib)), Some(Ok(rounds)), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: few_to_many MIB ROUNDS, whole numbers");
        std::process::exit(2);
    };
    if !(1..=1 << 20).contains(&mib) {
        eprintln!("few_to_many: 1 MiB to 1 TiB, not {mib} MiB");
        std::process::exit(2);
    }
    let mut random = SplitMix64::new(1);
    let slots = few(mib, &mut random);
    let keys = slots.len() as u64 / 2;
    let rows = (mib << 20) * 9 / 10 / size_of::<Row>();
    let rows: Vec<Row> = (0..rows).map(|_| Row { key: key(random.below(keys)), amount: random.next_u64() }).collect();
    for round in 1..=rounds {
        let start = Instant::now();
        let sum = rows.iter().fold(0u64, |sum, row| sum.wrapping_add(row.amount ^ find(&slots, row.key)));
        let nanos = start.elapsed().as_secs_f64() * 1e9 / rows.len() as f64;
        println!("round {round}: {nanos:.2} ns each, sum {sum:016x}");
    }
}

/// The hash table: a tenth of the memory, half of its slots in use.
fn few(mib: usize, random: &mut SplitMix64) -> Vec<Slot> {
    let len = (mib << 20) / 10 / size_of::<Slot>();
    // Written, not left zero, so that all of it is in memory.
    let mut slots = vec![Slot { key: 0, payload: 1 }; len];
    for number in 0..len as u64 / 2 {
        let key = key(number);
        let mut at = home(key, len);
        while slots[at].key != 0 {
            at = (at + 1) % len;
        }
        slots[at] = Slot { key, payload: random.next_u64() };
    }
    slots
}

/// The key of a number: odd multiples mix without meeting, and none is 0.
fn key(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Where a key is looked for first, in a table of `len` slots.
fn home(key: u64, len: usize) -> usize {
    let mixed = (key ^ key >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    ((u128::from(mixed) * len as u128) >> 64) as usize
}

/// The payload of a key that is in the table.
fn find(slots: &[Slot], key: u64) -> u64 {
    let mut at = home(key, slots.len());
    while slots[at].key != key {
        at = (at + 1) % slots.len();
    }
    slots[at].payload
}
