//! What known processors say of themselves, from their recorded CPUID leaves.

use lookaside_host::CpuTopology;
use lookaside_machine::PageSize;
use lookaside_probe::{cpuid_claims, sysfs_claims, Claim, CpuidRegisters, HardwarePart, PartSize};

const K4: PageSize = PageSize::K4;
const M2: PageSize = PageSize::M2;
const G1: PageSize = PageSize::G1;

/// Leaf, subleaf and registers.
type Recorded = (u32, u32, CpuidRegisters);

const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65];

fn stated(recorded: &[Recorded]) -> Vec<Claim> {
    cpuid_claims(&|leaf, part| {
        let found = recorded.iter().find(|(l, p, _)| (*l, *p) == (leaf, part));
        found.map_or([0; 4], |found| found.2)
    })
}

fn leaf0(most: u32, [b, c, d]: [u32; 3]) -> Recorded {
    (0, 0, [most, b, c, d])
}

/// What is said about a data TLB, by which source.
fn tlb(stated: &[Claim], level: u32, page_size: PageSize) -> Option<(&str, PartSize)> {
    let part = HardwarePart::DataTlb { level, page_size };
    stated.iter().find(|stated| stated.part == part).map(|stated| (stated.source.as_str(), stated.shape))
}

fn cache(stated: &[Claim], level: u32) -> Option<PartSize> {
    let part = HardwarePart::DataCache { level };
    stated.iter().find(|stated| stated.part == part).map(|stated| stated.shape)
}

/// Xeon Gold 6252 (Cascade Lake), leaves as the tests of the crate raw-cpuid 11.6 have them. Its second level is known
/// to have 12 ways; the descriptor says 6.
#[test]
fn cascade_lake_by_descriptors() {
    let stated = stated(&[
        leaf0(0x16, INTEL),
        (2, 0, [0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000]),
        (4, 0, [0x7c00_4121, 0x01c0_003f, 0x3f, 0]),
        (4, 1, [0x7c00_4122, 0x01c0_003f, 0x3f, 0]),
        (4, 2, [0x7c00_4143, 0x03c0_003f, 0x3ff, 0]),
        (4, 3, [0x7c0f_c163, 0x0280_003f, 0xcfff, 5]),
    ]);
    assert_eq!(tlb(&stated, 1, K4), Some(("CPUID 2", PartSize::new(64, 4))));
    assert_eq!(tlb(&stated, 1, M2), Some(("CPUID 2", PartSize::new(32, 4))));
    assert_eq!(tlb(&stated, 1, G1), Some(("CPUID 2", PartSize::new(4, 4))));
    assert_eq!(tlb(&stated, 2, K4), Some(("CPUID 2", PartSize::new(1536, 6))));
    assert_eq!(tlb(&stated, 2, M2), Some(("CPUID 2", PartSize::new(1536, 6))));
    assert_eq!(tlb(&stated, 2, G1), Some(("CPUID 2", PartSize::new(16, 4))));
    assert_eq!(cache(&stated, 1), Some(PartSize::new(32 << 10, 8)));
    assert_eq!(cache(&stated, 2), Some(PartSize::new(1 << 20, 16)));
    assert_eq!(cache(&stated, 3), Some(PartSize::new(0xd000 * 64 * 11, 11)));
    assert_eq!(stated.len(), 9);
}

/// A descriptor that names one array for two page sizes (table 3-12: C2).
#[test]
fn an_array_for_two_page_sizes() {
    let stated = stated(&[leaf0(2, INTEL), (2, 0, [0xc201, 0, 0, 0])]);
    for size in [K4, M2] {
        assert_eq!(tlb(&stated, 1, size), Some(("CPUID 2", PartSize::new(16, 4))));
    }
    assert_eq!(stated.len(), 2);
}

/// Core i7-12700K (Alder Lake), a performance core, from the same place: two arrays of the second level take 4 KiB
/// pages; one of the first is for loads, one for stores.
#[test]
fn alder_lake_by_address_translation_parameters() {
    let stated = stated(&[
        leaf0(0x20, INTEL),
        (2, 0, [0x00fe_ff01, 0xf0, 0, 0]),
        (4, 0, [0xfc00_4121, 0x02c0_003f, 0x3f, 0]),
        (0x18, 0, [8, 0, 0, 0]),
        (0x18, 1, [0, 0x0008_0001, 0x20, 0x4022]),
        (0x18, 2, [0, 0x0008_0006, 0x04, 0x4022]),
        (0x18, 3, [0, 0x0010_000f, 0x01, 0x4125]),
        (0x18, 4, [0, 0x0004_0001, 0x10, 0x4024]),
        (0x18, 5, [0, 0x0004_0006, 0x08, 0x4024]),
        (0x18, 6, [0, 0x0008_0008, 0x01, 0x4124]),
        (0x18, 7, [0, 0x0008_0007, 0x80, 0x4043]),
        (0x18, 8, [0, 0x0008_0009, 0x80, 0x4043]),
    ]);
    assert_eq!(tlb(&stated, 1, K4), Some(("CPUID 0x18", PartSize::new(64, 4))));
    assert_eq!(tlb(&stated, 1, M2), Some(("CPUID 0x18", PartSize::new(32, 4))));
    assert_eq!(tlb(&stated, 1, G1), Some(("CPUID 0x18", PartSize::new(8, 8))));
    assert_eq!(tlb(&stated, 2, K4), Some(("CPUID 0x18", PartSize::new(2048, 16))));
    assert_eq!(tlb(&stated, 2, M2), Some(("CPUID 0x18", PartSize::new(1024, 8))));
    assert_eq!(tlb(&stated, 2, G1), Some(("CPUID 0x18", PartSize::new(1024, 8))));
    assert_eq!(cache(&stated, 1), Some(PartSize::new(48 << 10, 12)));
    let arrays: Vec<u32> = stated.iter().map(|stated| stated.arrays).collect();
    assert_eq!(arrays.iter().sum::<u32>(), stated.len() as u32 + 1);
}

/// The development machine: EPYC (family 25, model 17: Zen 4) in a virtual machine.
#[test]
fn zen_4_by_amds_own_leaves() {
    let stated = stated(&[
        leaf0(0x1c, AMD),
        (0x8000_0000, 0, [0x8000_0021, 0, 0, 0]),
        (0x8000_0001, 0, [0x00a1_0f11, 0x4000_0000, 0x0040_03f3, 0x2fd3_fbff]),
        (0x8000_0005, 0, [0xff48_ff40, 0xff48_ff40, 0x2008_0140, 0x2008_0140]),
        (0x8000_0006, 0, [0x5c00_2200, 0x6c00_4200, 0x0400_6140, 0x0a00_9140]),
        (0x8000_001d, 0, [0x121, 0x01c0_003f, 0x3f, 0]),
        (0x8000_001d, 1, [0x122, 0x01c0_003f, 0x3f, 0]),
        (0x8000_001d, 2, [0x143, 0x01c0_003f, 0x7ff, 2]),
        (0x8000_001d, 3, [0x4163, 0x03c0_003f, 0x7fff, 1]),
    ]);
    let range = |amount, low, high| PartSize { amount, most: amount, ways: Some((low, high)) };
    assert_eq!(tlb(&stated, 1, K4), Some(("CPUID 0x80000005", PartSize::new(72, 72))));
    assert_eq!(tlb(&stated, 1, M2), Some(("CPUID 0x80000005", PartSize::new(72, 72))));
    assert_eq!(tlb(&stated, 2, K4), Some(("CPUID 0x80000006", range(3072, 8, 15))));
    assert_eq!(tlb(&stated, 2, M2), Some(("CPUID 0x80000006", range(3072, 6, 7))));
    assert_eq!(tlb(&stated, 1, G1), None);
    assert_eq!(cache(&stated, 1), Some(PartSize::new(32 << 10, 8)));
    assert_eq!(cache(&stated, 2), Some(PartSize::new(1 << 20, 8)));
    assert_eq!(cache(&stated, 3), Some(PartSize::new(32 << 20, 16)));
}

/// EPYC (family 26, model 2: Zen 5) in a virtual machine, whose hypervisor hides the bit that says how its second level
/// is counted; and the same with it.
#[test]
fn zen_5_counts_its_second_level_in_32s() {
    let with = |bits: u32| {
        stated(&[
            leaf0(0x10, AMD),
            (0x8000_0000, 0, [0x8000_0021, 0, 0, 0]),
            (0x8000_0005, 0, [0xff60_ff40, 0xff60_ff40, 0x300c_0140, 0x2008_0140]),
            (0x8000_0006, 0, [0x4080_2040, 0x6080_4040, 0x0400_8140, 0x0c00_9140]),
            (0x8000_0019, 0, [0xf060_f040, 0xf040_f000, 0, 0]),
            (0x8000_0021, 0, [bits, 0, 0, 0]),
        ])
    };
    let range = |amount, low, high| PartSize { amount, most: amount, ways: Some((low, high)) };
    for (bits, unit) in [(0x204, 1u32), (0x4204, 32)] {
        let stated = with(bits);
        assert_eq!(tlb(&stated, 1, K4), Some(("CPUID 0x80000005", PartSize::new(96, 96))));
        assert_eq!(tlb(&stated, 2, K4), Some(("CPUID 0x80000006", range(128 * u64::from(unit), 8, 15))));
        assert_eq!(tlb(&stated, 2, M2), Some(("CPUID 0x80000006", range(128 * u64::from(unit), 4, 5))));
        assert_eq!(tlb(&stated, 1, G1), Some(("CPUID 0x80000019", PartSize::new(96, 96))));
        let (entries, ways) = (64 * u64::from(unit), 64 * unit);
        assert_eq!(tlb(&stated, 2, G1), Some(("CPUID 0x80000019", PartSize::new(entries, ways))));
    }
}

/// The field of entries of 1 GiB pages has 12 bits; Hygon's processors fill AMD's leaves; code 3 is 3 ways.
#[test]
fn hygon_fills_amds_leaves_and_counts_to_4095() {
    let hygon = ["Hygo", "uine", "nGen"].map(|word| u32::from_le_bytes(word.as_bytes().try_into().expect("4 bytes")));
    let stated = stated(&[
        leaf0(0xd, hygon),
        (0x8000_0000, 0, [0x8000_001f, 0, 0, 0]),
        (0x8000_0001, 0, [0, 0, 1 << 22, 0]),
        (0x8000_0019, 0, [0xf3ff_0000, 0x3180_0000, 0, 0]),
        (0x8000_001d, 0, [0x121, 0x01c0_003f, 0x3f, 0]),
    ]);
    assert_eq!(tlb(&stated, 1, G1), Some(("CPUID 0x80000019", PartSize::new(0x3ff, 0x3ff))));
    assert_eq!(tlb(&stated, 2, G1), Some(("CPUID 0x80000019", PartSize::new(0x180, 3))));
    assert_eq!(cache(&stated, 1), Some(PartSize::new(32 << 10, 8)));
}

/// Descriptors that nobody knows, a register that says that it holds none, and parts without end hide nothing, and end.
#[test]
fn unknown_descriptors_and_endless_subleaves_hide_nothing() {
    let known = stated(&[
        leaf0(0x18, INTEL),
        (2, 0, [0x7b03_fd01, 0x8000_0064, 0, 0xc4fc]),
        (4, 0, [0x121, 0x01c0_003f, u32::MAX, 0]),
        (0x18, 0, [u32::MAX, 0, 0, 0]),
        (0x18, 7, [0, 0x0008_0001, 0x20, 0x21]),
    ]);
    assert_eq!(tlb(&known, 1, K4), Some(("CPUID 2", PartSize::new(64, 4))));
    assert_eq!(tlb(&known, 1, M2), Some(("CPUID 2", PartSize::new(32, 4))));
    assert!(known.iter().any(|claim| claim.source == "CPUID 0x18" && claim.shape == PartSize::new(256, 8)));
    assert!(cache(&known, 1).is_some());
}

/// Ryzen of family 23, model 113 (Matisse, Zen 2), as the tests of raw-cpuid have it.
#[test]
fn zen_2_has_no_second_level_for_huge_pages() {
    let stated = stated(&[
        leaf0(0x10, AMD),
        (0x8000_0000, 0, [0x8000_0020, 0, 0, 0]),
        (0x8000_0005, 0, [0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140]),
        (0x8000_0006, 0, [0x4800_6400, 0x6800_6400, 0x0200_6140, 0x0100_9140]),
        (0x8000_0019, 0, [0xf040_f040, 0, 0, 0]),
    ]);
    assert_eq!(tlb(&stated, 1, G1), Some(("CPUID 0x80000019", PartSize::new(64, 64))));
    assert_eq!(tlb(&stated, 2, G1), None);
    assert_eq!(
        tlb(&stated, 2, K4),
        Some(("CPUID 0x80000006", PartSize { amount: 2048, most: 2048, ways: Some((8, 15)) }))
    );
    assert_eq!(cache(&stated, 1), None); // without topology extensions 8000_001D means nothing
}

#[test]
fn nonsense_says_nothing_and_ends() {
    assert_eq!(stated(&[]), Vec::new());
    // A hypervisor that answers every leaf with the same.
    for word in [0, 1, 0x7fff_ffff, u32::MAX] {
        let constant = |leaf: u32, _: u32| match leaf {
            0 => leaf0(word, INTEL).2,
            _ => [word; 4],
        };
        for stated in cpuid_claims(&constant) {
            assert!(stated.shape.ways.is_none_or(|(low, high)| low <= high), "{stated:?}");
        }
    }
}

#[test]
fn sysfs_has_the_data_caches() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let put = |index: u32, files: &[(&str, &str)]| {
        let at = folder.path().join(format!("cpu3/cache/index{index}"));
        std::fs::create_dir_all(&at).expect("a folder");
        for (name, text) in files {
            std::fs::write(at.join(name), format!("{text}\n")).expect("a file");
        }
    };
    put(0, &[("type", "Data"), ("level", "1"), ("size", "48K"), ("ways_of_associativity", "12")]);
    put(1, &[("type", "Instruction"), ("level", "1"), ("size", "32K"), ("ways_of_associativity", "8")]);
    put(2, &[("type", "Unified"), ("level", "2"), ("size", "1280K")]);
    put(3, &[("type", "Unified"), ("level", "x"), ("size", "many")]);
    let stated = sysfs_claims(&CpuTopology::in_folder(folder.path()), 3);
    let shapes: Vec<PartSize> = stated.iter().map(|stated| stated.shape).collect();
    assert_eq!(shapes, [PartSize::new(48 << 10, 12), PartSize::between(1280 << 10, 1280 << 10)]);
    assert_eq!(stated[0].source, "sysfs cpu3/cache/index0");
    assert_eq!(sysfs_claims(&CpuTopology::in_folder(folder.path()), 4), Vec::new());
}
