//! What sysfs says of data caches (Documentation/ABI/testing/sysfs-devices-system-cpu in Linux's source).

use std::path::Path;

use crate::claims::claim::{Claim, HardwarePart, PartSize};

/// What the files below `cpuN/cache` say; what cannot be read is not there. `root` is `/sys/devices/system/cpu`.
pub fn claims(root: &Path, cpu: usize) -> Vec<Claim> {
    let folder = root.join(format!("cpu{cpu}/cache"));
    (0..16).filter_map(|index| cache(&folder.join(format!("index{index}")), cpu, index)).collect()
}

fn cache(folder: &Path, cpu: usize, index: u32) -> Option<Claim> {
    let word = |name: &str| std::fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_string());
    if word("type")? == "Instruction" {
        return None;
    }
    let level = word("level")?.parse().ok()?;
    let size = word("size")?;
    let bytes = size.strip_suffix('K')?.parse::<u64>().ok()? << 10;
    // 0 ways: fully associative. Many Arm firmwares leave it out.
    let ways = word("ways_of_associativity").and_then(|text| text.parse::<u32>().ok()).filter(|&ways| ways > 0);
    Some(Claim {
        source: format!("sysfs cpu{cpu}/cache/index{index}"),
        part: HardwarePart::DataCache { level },
        shape: PartSize { amount: bytes, most: bytes, ways: ways.map(|ways| (ways, ways)) },
        arrays: 1,
    })
}
