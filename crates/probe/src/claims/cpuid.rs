//! What CPUID says of data TLBs and data caches.
//!
//! Intel: leaves 2, 4 and 18H (Software Developer's Manual, volume 2A, CPUID, tables 3-8 and 3-12). AMD: 8000_0005,
//! 8000_0006, 8000_0019, 8000_001D and 8000_0021 (Architecture Programmer's Manual, volume 3, appendix E.4).
//!
//! The crate `raw-cpuid` decodes them but for three, which are decoded here. Of leaf 2 it (11.6) gives sentences and no
//! numbers, skips a register's first byte, and ends at the first descriptor that it does not know. Of 8000_0019 it cuts
//! 12 bits of entries to 8, and the associativity field of that and of 8000_0006 it takes for one number where it
//! stands for a range. Of 8000_0021 it has no bit 14.

use lookaside_machine::PageSize;
use raw_cpuid::{Associativity, CacheType, CpuId, CpuIdReader, CpuIdResult, DatType};

use crate::claims::claim::{add, Claim, HardwarePart, PartSize};

const K4: PageSize = PageSize::K4;
const M2: PageSize = PageSize::M2;
const G1: PageSize = PageSize::G1;

/// EAX, EBX, ECX and EDX of a leaf.
pub type CpuidRegisters = [u32; 4];

/// Most parts of a leaf that are asked for: no processor has more, and a wrong hypervisor does not hold us up.
const MOST_SUBLEAVES: u32 = 64;

/// Intel's descriptors of TLBs that translate loads (leaf 2, table 3-12): code, level, page sizes, entries, ways (0 =
/// fully associative). Where a code names two arrays it is there twice. Left out: 4 MiB pages (4, 5, 56), and codes
/// whose associativity the manual does not give (5B, 5C, 5D).
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
pub(crate) fn here() -> Vec<Claim> {
    #[cfg(target_arch = "x86_64")]
    {
        claims(&|leaf, subleaf| {
            let result = std::arch::x86_64::__cpuid_count(leaf, subleaf);
            [result.eax, result.ebx, result.ecx, result.edx]
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// What the leaves say. `read` gives a leaf and its subleaf (EAX and ECX of the instruction).
pub fn claims(read: &dyn Fn(u32, u32) -> CpuidRegisters) -> Vec<Claim> {
    let cpuid = CpuId::with_cpuid_reader(|leaf, subleaf| possible(leaf, subleaf, read(leaf, subleaf)));
    let vendor = cpuid.get_vendor_info();
    let mut list = Vec::new();
    match vendor.as_ref().map(|vendor| vendor.as_str()) {
        Some("GenuineIntel") => intel(&cpuid, read, &mut list),
        Some("AuthenticAMD") => amd(&cpuid, read, &mut list),
        _ => {} // no others are known to fill these leaves
    }
    list
}

/// What a processor may say: a hypervisor may let anything through, and `raw-cpuid` takes it as it is.
fn possible(leaf: u32, subleaf: u32, [eax, ebx, ecx, edx]: CpuidRegisters) -> CpuIdResult {
    let mut result = CpuIdResult { eax, ebx, ecx, edx };
    match (leaf, subleaf) {
        // Hygon's processors are AMD's, and fill AMD's leaves.
        (0, _) if text(&result) == *b"HygonGenuine" => {
            let [b, d, c] = [*b"Auth", *b"enti", *b"cAMD"].map(u32::from_le_bytes);
            (result.ebx, result.edx, result.ecx) = (b, d, c);
        }
        // Number of the last subleaf.
        (0x18, 0) => result.eax = eax.min(MOST_SUBLEAVES),
        // Sets less one, to which one is added.
        (4 | 0x8000_001d, _) => result.ecx = ecx.min(u32::MAX - 1),
        _ => {}
    }
    result
}

/// The vendor's name in leaf 0.
fn text(leaf: &CpuIdResult) -> [u8; 12] {
    let mut text = [0; 12];
    for (at, word) in text.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    text
}

fn intel<R: CpuIdReader>(cpuid: &CpuId<R>, read: &dyn Fn(u32, u32) -> CpuidRegisters, list: &mut Vec<Claim>) {
    // The iterator is only there where the leaf is.
    if cpuid.get_cache_info().is_some() {
        descriptors(read(2, 0), list);
    }
    caches(cpuid, "CPUID 4", list);
    for tlb in cpuid.get_deterministic_address_translation_info().into_iter().flatten() {
        if !matches!(tlb.cache_type(), DatType::DataTLB | DatType::UnifiedTLB | DatType::LoadOnly) {
            continue;
        }
        let entries = u64::from(tlb.ways()) * u64::from(tlb.sets());
        let ways = match tlb.is_fully_associative() {
            true => entries.min(u32::MAX.into()) as u32,
            false => tlb.ways().into(),
        };
        let sizes = [(tlb.has_4k_entries(), K4), (tlb.has_2mb_entries(), M2), (tlb.has_1gb_entries(), G1)];
        for (_, page_size) in sizes.into_iter().filter(|(has, _)| *has) {
            let part = HardwarePart::DataTlb { level: tlb.cache_level().into(), page_size };
            add(list, "CPUID 0x18", part, PartSize::new(entries, ways));
        }
    }
}

/// Leaf 2: a byte each a descriptor, but the lowest of EAX, and registers whose highest bit is set.
fn descriptors(leaf: CpuidRegisters, list: &mut Vec<Claim>) {
    let words = leaf.iter().enumerate().filter(|(_, word)| *word >> 31 == 0);
    let bytes = words.flat_map(|(i, word)| word.to_le_bytes().into_iter().skip(usize::from(i == 0)));
    for byte in bytes {
        for (_, level, sizes, entries, ways) in DESCRIPTORS.iter().filter(|(code, ..)| *code == byte) {
            let ways = if *ways == 0 { *entries } else { *ways };
            for &page_size in *sizes {
                let part = HardwarePart::DataTlb { level: *level, page_size };
                add(list, "CPUID 2", part, PartSize::new((*entries).into(), ways));
            }
        }
    }
}

/// Leaf 4 and AMD's 8000_001D: one subleaf a cache.
fn caches<R: CpuIdReader>(cpuid: &CpuId<R>, source: &str, list: &mut Vec<Claim>) {
    for cache in cpuid.get_cache_parameters().into_iter().flatten().take(MOST_SUBLEAVES as usize) {
        if cache.cache_type() == CacheType::Instruction {
            continue;
        }
        let line = cache.coherency_line_size() as u64;
        let lines = [cache.physical_line_partitions(), cache.associativity()].map(|n| n as u64);
        let bytes = (line * lines[0] * lines[1]).saturating_mul(cache.sets() as u64);
        let ways = match cache.is_fully_associative() {
            true => (bytes / line) as u32,
            false => cache.associativity() as u32,
        };
        add(list, source, HardwarePart::DataCache { level: cache.level().into() }, PartSize::new(bytes, ways));
    }
}

fn amd<R: CpuIdReader>(cpuid: &CpuId<R>, read: &dyn Fn(u32, u32) -> CpuidRegisters, list: &mut Vec<Claim>) {
    if let Some(tlbs) = cpuid.get_l1_cache_and_tlb_info() {
        let of_4k = (tlbs.dtlb_4k_size(), tlbs.dtlb_4k_associativity(), K4);
        let of_2m = (tlbs.dtlb_2m_4m_size(), tlbs.dtlb_2m_4m_associativity(), M2);
        for (entries, associativity, page_size) in [of_4k, of_2m] {
            let ways = match associativity {
                Associativity::FullyAssociative => entries.into(),
                Associativity::NWay(ways) => ways.into(),
                Associativity::DirectMapped => 1,
                Associativity::Disabled | Associativity::Unknown => continue,
            };
            if entries > 0 {
                let part = HardwarePart::DataTlb { level: 1, page_size };
                add(list, "CPUID 0x80000005", part, PartSize::new(entries.into(), ways));
            }
        }
    }
    // 8000_0021, EAX bit 14, "L2TlbSizeX32": second levels are counted in 32s, since 4096 entries (Zen 5) do not fit 12
    // bits. A hypervisor may hide it, and let the rest through.
    let features = cpuid.get_extended_feature_identification_2();
    let in_32s = features.is_some() && read(0x8000_0021, 0)[0] >> 14 & 1 == 1;
    let unit = |level: u32| if in_32s && level == 2 { 32 } else { 1 };
    if cpuid.get_l2_l3_cache_and_tlb_info().is_some() {
        let leaf = read(0x8000_0006, 0);
        for (word, page_size) in [(leaf[1], K4), (leaf[0], M2)] {
            amd_tlb((word, unit(2)), 2, page_size, "CPUID 0x80000006", list);
        }
    }
    if cpuid.get_tlb_1gb_page_info().is_some() {
        let leaf = read(0x8000_0019, 0);
        for (word, level) in [(leaf[0], 1), (leaf[1], 2)] {
            amd_tlb((word, unit(level)), level, G1, "CPUID 0x80000019", list);
        }
    }
    // "Topology extensions": 8000_001D is there.
    let features = cpuid.get_extended_processor_and_feature_identifiers();
    if features.is_some_and(|features| features.has_topology_extensions()) {
        caches(cpuid, "CPUID 0x8000001d", list);
    }
}

/// A data TLB in the upper half of a register: 4 bits of associativity, 12 of entries, in units of so many.
fn amd_tlb((word, unit): (u32, u32), level: u32, page_size: PageSize, source: &str, list: &mut Vec<Claim>) {
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
        let part = HardwarePart::DataTlb { level, page_size };
        add(list, source, part, PartSize { amount: entries.into(), most: entries.into(), ways });
    }
}
