// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust's `HashMap` with its own hasher: KEYS keys put in, then LOOKUPS lookups, half of which find nothing.

use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Some(Ok(keys)), Some(Ok(lookups))) = (arguments.next(), arguments.next()) else {
        eprintln!("hash_map KEYS LOOKUPS");
        std::process::exit(2)
    };
    let mut map: HashMap<u64, u64, BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for key in 0..keys {
        map.insert(key, key);
    }
    let mut state = 1u64;
    let mut found = 0u64;
    for _ in 0..lookups {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        found = found.wrapping_add(map.get(&((state >> 20) % (2 * keys))).copied().unwrap_or(1));
    }
    println!("{found}");
}
