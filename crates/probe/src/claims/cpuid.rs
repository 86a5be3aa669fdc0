//! What CPUID says of data TLBs and data caches.
//!
//! Intel: leaves 2, 4 and 18H (Software Developer's Manual, volume 2A, CPUID, tables 3-8 and 3-12). AMD: 8000_0005,
//! 8000_0006, 8000_0019, 8000_001D and 8000_0021 (Architecture Programmer's Manual, volume 3, appendix E.4).

use lookaside_machine::PageSize;

use super::{add, Part, Shape, Stated};

const K4: PageSize = PageSize::K4;
const M2: PageSize = PageSize::M2;
const G1: PageSize = PageSize::G1;

/// EAX, EBX, ECX and EDX of a leaf.
pub type Leaf = [u32; 4];

/// Intel's descriptors of TLBs that translate loads (leaf 2, table 3-12): code, level, page sizes, entries, ways (0 =
/// fully associative). Where a code names two arrays it is there twice. Left out: 4 MiB pages (4, 5, 56), and codes whose
/// associativity the manual does not give (5B, 5C, 5D).
const DESCRIPTORS: [(u8, u32, &[PageSize], u32, u32); 22] = [
    (0x03, 1, &[K4], 64, 4),
    (0x57, 1, &[K4], 16, 4),
    (0x59, 1, &[K4], 16, 0),
    (0x5a, 1, &[M2], 32, 4),
    (0x63, 1, &[M2], 32, 4),
    (0x63, 1, &[G1], 4, 4),
    (0x64, 1, &[K4], 512, 4),
    (0x6a, 1, &[K4], 64, 8),
    (0x6b, 2, &[K4], 256, 8),
    (0x6c, 2, &[M2], 128, 8),
    (0x6d, 2, &[G1], 16, 0),
    (0xa0, 1, &[K4], 32, 0),
    (0xb3, 1, &[K4], 128, 4),
    (0xb4, 2, &[K4], 256, 4),
    (0xba, 2, &[K4], 64, 4),
    (0xc0, 1, &[K4], 8, 4),
    (0xc1, 2, &[K4, M2], 1024, 8),
    (0xc2, 1, &[K4, M2], 16, 4),
    (0xc3, 2, &[K4, M2], 1536, 6),
    (0xc3, 2, &[G1], 16, 4),
    (0xc4, 1, &[M2], 32, 4),
    (0xca, 2, &[K4], 512, 4),
];

/// What this CPU says; nothing where there is no such instruction.
pub(crate) fn here() -> Vec<Stated> {
    #[cfg(target_arch = "x86_64")]
    {
        stated(&|leaf, part| {
            let result = std::arch::x86_64::__cpuid_count(leaf, part);
            [result.eax, result.ebx, result.ecx, result.edx]
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// What the leaves say. `read` gives a leaf and its part (EAX and ECX of the instruction).
pub fn stated(read: &dyn Fn(u32, u32) -> Leaf) -> Vec<Stated> {
    let [most, b, c, d] = read(0, 0);
    let vendor: Vec<u8> = [b, d, c].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut list = Vec::new();
    match vendor.as_slice() {
        b"GenuineIntel" => intel(read, most, &mut list),
        b"AuthenticAMD" | b"HygonGenuine" => amd(read, &mut list),
        _ => {} // no others are known to fill these leaves
    }
    list
}

fn intel(read: &dyn Fn(u32, u32) -> Leaf, most: u32, list: &mut Vec<Stated>) {
    if most >= 2 {
        descriptors(read(2, 0), list);
    }
    if most >= 4 {
        caches(read, 4, "CPUID 4", list);
    }
    if most >= 0x18 {
        let last = read(0x18, 0)[0].min(64); // no processor has more; a wrong hypervisor does not hold us up
        for part in 0..=last {
            translation(read(0x18, part), list);
        }
    }
}

/// Leaf 2: a byte each a descriptor, but the lowest of EAX, and registers whose highest bit is set.
fn descriptors(leaf: Leaf, list: &mut Vec<Stated>) {
    let words = leaf.iter().enumerate().filter(|(_, word)| *word >> 31 == 0);
    let bytes = words.flat_map(|(i, word)| word.to_le_bytes().into_iter().skip(usize::from(i == 0)));
    for byte in bytes {
        for (_, level, sizes, entries, ways) in DESCRIPTORS.iter().filter(|(code, ..)| *code == byte) {
            let ways = if *ways == 0 { *entries } else { *ways };
            for &page_size in *sizes {
                let part = Part::DataTlb { level: *level, page_size };
                add(list, "CPUID 2", part, Shape::new((*entries).into(), ways));
            }
        }
    }
}

/// A part of leaf 18H, "deterministic address translation parameters".
fn translation(leaf: Leaf, list: &mut Vec<Stated>) {
    let [_, sizes, sets, kind] = leaf;
    // 1 data, 3 unified, 4 loads only; 2 is instructions and 5 stores only.
    if !matches!(kind & 0x1f, 1 | 3 | 4) {
        return;
    }
    let level = kind >> 5 & 7;
    let entries = u64::from(sizes >> 16) * u64::from(sets);
    let full = kind >> 8 & 1 == 1;
    let ways = if full { entries.min(u32::MAX.into()) as u32 } else { sizes >> 16 };
    for (bit, page_size) in [(0, K4), (1, M2), (3, G1)] {
        if sizes >> bit & 1 == 1 {
            add(list, "CPUID 0x18", Part::DataTlb { level, page_size }, Shape::new(entries, ways));
        }
    }
}

/// Leaf 4 and AMD's 8000_001D: one part a cache, until one says that there are no more.
fn caches(read: &dyn Fn(u32, u32) -> Leaf, leaf: u32, source: &str, list: &mut Vec<Stated>) {
    for part in 0..16 {
        let [kind, shape, sets, _] = read(leaf, part);
        match kind & 0x1f {
            0 => return,
            1 | 3 => {}
            _ => continue, // instructions
        }
        let (line, partitions, ways) = ((shape & 0xfff) + 1, (shape >> 12 & 0x3ff) + 1, (shape >> 22) + 1);
        let sets = u64::from(sets) + 1;
        // A hypervisor may let anything through.
        let bytes =
            [partitions, ways].iter().fold(u64::from(line), |bytes, &n| bytes * u64::from(n)).saturating_mul(sets);
        let full = kind >> 9 & 1 == 1;
        let ways = if full { (bytes / u64::from(line)) as u32 } else { ways };
        add(list, source, Part::DataCache { level: kind >> 5 & 7 }, Shape::new(bytes, ways));
    }
}

fn amd(read: &dyn Fn(u32, u32) -> Leaf, list: &mut Vec<Stated>) {
    let most = read(0x8000_0000, 0)[0];
    if most >= 0x8000_0005 {
        let leaf = read(0x8000_0005, 0);
        for (word, page_size) in [(leaf[1], K4), (leaf[0], M2)] {
            let (ways, entries) = (word >> 24, word >> 16 & 0xff);
            let ways = if ways == 0xff { entries } else { ways };
            if entries > 0 && ways > 0 {
                let part = Part::DataTlb { level: 1, page_size };
                add(list, "CPUID 0x80000005", part, Shape::new(entries.into(), ways));
            }
        }
    }
    // 8000_0021, EAX bit 14, "L2TlbSizeX32": second levels are counted in 32s, since 4096 entries (Zen 5) do not fit 12 bits. A
    // hypervisor may hide it, and let the rest through.
    let in_32s = most >= 0x8000_0021 && read(0x8000_0021, 0)[0] >> 14 & 1 == 1;
    let unit = |level: u32| if in_32s && level == 2 { 32 } else { 1 };
    if most >= 0x8000_0006 {
        let leaf = read(0x8000_0006, 0);
        for (word, page_size) in [(leaf[1], K4), (leaf[0], M2)] {
            amd_tlb((word, unit(2)), 2, page_size, "CPUID 0x80000006", list);
        }
    }
    if most >= 0x8000_0019 {
        let leaf = read(0x8000_0019, 0);
        for (word, level) in [(leaf[0], 1), (leaf[1], 2)] {
            amd_tlb((word, unit(level)), level, G1, "CPUID 0x80000019", list);
        }
    }
    // "Topology extensions": 8000_001D is there.
    if most >= 0x8000_001d && read(0x8000_0001, 0)[2] >> 22 & 1 == 1 {
        caches(read, 0x8000_001d, "CPUID 0x8000001d", list);
    }
}

/// A data TLB in the upper half of a register: 4 bits of associativity, 12 of entries, in units of so many.
fn amd_tlb((word, unit): (u32, u32), level: u32, page_size: PageSize, source: &str, list: &mut Vec<Stated>) {
    let entries = (word >> 16 & 0xfff) * unit;
    // Table "L2/L3 cache and TLB associativity field encoding".
    let ways = match word >> 28 {
        0 => return, // there is none
        ways @ 1..=3 => Some((ways, ways)),
        4 => Some((4, 5)),
        5 => Some((6, 7)),
        6 => Some((8, 15)),
        8 => Some((16, 31)),
        0xa => Some((32, 47)),
        0xb => Some((48, 63)),
        0xc => Some((64, 95)),
        0xd => Some((96, 127)),
        0xe => Some((128, u32::MAX)),
        0xf => Some((entries, entries)),
        _ => None,
    };
    if entries > 0 {
        let part = Part::DataTlb { level, page_size };
        add(list, source, part, Shape { amount: entries.into(), most: entries.into(), ways });
    }
}
