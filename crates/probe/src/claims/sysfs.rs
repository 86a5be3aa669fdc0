//! What sysfs says of data caches.

use lookaside_host::{CacheKind, CpuCache, CpuTopology};

use crate::claims::claim::{Claim, HardwarePart, PartSize};

/// What the topology says of a CPU's data caches; what it does not say is not there.
pub fn claims(topology: &CpuTopology, cpu: usize) -> Vec<Claim> {
    topology.caches(cpu).iter().filter_map(|cache| data_cache(cache, cpu)).collect()
}

fn data_cache(cache: &CpuCache, cpu: usize) -> Option<Claim> {
    let bytes = cache.bytes.filter(|_| cache.kind != CacheKind::Instruction)?;
    Some(Claim {
        source: format!("sysfs cpu{cpu}/cache/index{}", cache.index),
        part: HardwarePart::DataCache { level: cache.level },
        shape: PartSize { amount: bytes, most: bytes, ways: cache.ways.map(|ways| (ways, ways)) },
        arrays: 1,
    })
}
