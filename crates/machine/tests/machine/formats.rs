//! Known answers for each page-table format and each kind of set index, worked out by hand.

use lookaside_machine::{preset, to_toml, Full, IndexFn, PageSize, TableFormat, Ways};
use proptest::prelude::*;

use crate::common::good;

/// Index at each level, root first.
fn indexes(format: TableFormat, address: u64) -> Vec<u64> {
    format.levels().iter().map(|level| level.index_of(address)).collect()
}

/// Level numbers, root first, and the bytes of an entry.
fn shape(format: TableFormat) -> (Vec<u32>, u32) {
    let levels = format.levels();
    assert!(levels.iter().all(|l| l.entry_bytes == levels[0].entry_bytes));
    (levels.iter().map(|l| l.level).collect(), levels[0].entry_bytes)
}

// 0x7f12_3456_7890: bits 47-39 are 0x7f1 >> 3, bits 38-30 are 0x7f123 >> 2, bits 29-21 are 0x7f12345 >> 1 and
// bits 20-12 are 0x7f1234567, each & 0x1ff.
const FOUR_LEVELS: (u64, [u64; 4]) = (0x7f12_3456_7890, [0x0fe, 0x048, 0x1a2, 0x167]);

#[test]
fn x86_64_with_4_levels() {
    let f = TableFormat::X86_64L4;
    assert_eq!(shape(f), (vec![4, 3, 2, 1], 8));
    assert_eq!(indexes(f, FOUR_LEVELS.0), FOUR_LEVELS.1);
    assert_eq!(f.address_bits(), 48);
    assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::M2, PageSize::G1]);
}

#[test]
fn aarch64_and_sv48_cut_as_x86_64_does() {
    for f in [TableFormat::Aarch64K4, TableFormat::Sv48] {
        assert_eq!(shape(f), (vec![4, 3, 2, 1], 8));
        assert_eq!(indexes(f, FOUR_LEVELS.0), FOUR_LEVELS.1);
        assert_eq!(f.address_bits(), 48);
        assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::M2, PageSize::G1]);
    }
}

#[test]
fn x86_64_with_5_levels() {
    let f = TableFormat::X86_64L5;
    assert_eq!(shape(f), (vec![5, 4, 3, 2, 1], 8));
    // 0x0123_4567_89ab_cdef: 0x123, 0x123456 >> 3, 0x12345678 >> 2, 0x123456789a >> 1, 0x123456789abc, each & 0x1ff.
    assert_eq!(indexes(f, 0x0123_4567_89ab_cdef), [0x123, 0x08a, 0x19e, 0x04d, 0x0bc]);
    assert_eq!(f.address_bits(), 57);
    assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::M2, PageSize::G1]);
}

#[test]
fn armv7_short_descriptors() {
    let f = TableFormat::Armv7Short;
    assert_eq!(shape(f), (vec![2, 1], 4));
    // 0xdead_beef: the first level takes bits 31-20, the second bits 19-12.
    assert_eq!(indexes(f, 0xdead_beef), [0xdea, 0xdb]);
    assert_eq!(f.address_bits(), 32);
    assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::K64, PageSize::M1, PageSize::M16]);
    // Sixteen neighbouring entries hold the one translation of a large page or a supersection.
    assert_eq!(PageSize::K64.bytes() >> f.levels()[1].index_low_bit, 16);
    assert_eq!(PageSize::M16.bytes() >> f.levels()[0].index_low_bit, 16);
}

#[test]
fn armv7_long_descriptors() {
    let f = TableFormat::Armv7Lpae;
    assert_eq!(shape(f), (vec![3, 2, 1], 8));
    // 0xdead_beef: bits 31-30 are 3, bits 29-21 are (0xdea >> 1) & 0x1ff, bits 20-12 are 0xdeadb & 0x1ff.
    assert_eq!(indexes(f, 0xdead_beef), [3, 0x0f5, 0x0db]);
    assert_eq!(f.address_bits(), 32);
    assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::M2, PageSize::G1]);
}

#[test]
fn sv39() {
    let f = TableFormat::Sv39;
    assert_eq!(shape(f), (vec![3, 2, 1], 8));
    assert_eq!(indexes(f, 0x12_3456_7890), [0x048, 0x1a2, 0x167]);
    assert_eq!(f.address_bits(), 39);
    assert_eq!(f.page_sizes(), [PageSize::K4, PageSize::M2, PageSize::G1]);
}

#[test]
fn linear_index_takes_the_low_bits() {
    assert_eq!(IndexFn::Linear.set_of(0xabcd, 16), 0xd);
    assert_eq!(IndexFn::Linear.set_of(0xabcd, 1), 0);
    assert_eq!(IndexFn::Linear.masks(8), [1, 2, 4]);
}

#[test]
fn skylake_second_level_folds_seven_bits() {
    let skylake = preset("skylake").unwrap();
    let stlb = skylake.tlbs.iter().find(|t| t.name == "stlb").unwrap();
    // Pages 0x81 and 0 differ in bits 0 and 7, which cancel; page 0x80 shares its set with page 1.
    for (page, set) in [(0, 0), (1, 1), (0x7f, 127), (0x80, 1), (0x81, 0), (0x3fff, 0), (0x2040, 0), (0x2000, 64)] {
        assert_eq!(stlb.index.set_of(page, stlb.sets()), set, "page {page:#x}");
    }
}

#[test]
fn a_mask_is_a_parity() {
    let index = IndexFn::Masks(vec![0b0111, 0b1010]);
    // Page 0b0110: two of mask 0's bits (even), one of mask 1's (odd).
    assert_eq!(index.set_of(0b0110, 4), 0b10);
    assert_eq!(index.set_of(0b1101, 4), 0b10);
    assert_eq!(index.set_of(0b0001, 4), 0b01);
}

proptest! {
    #[test]
    fn skylake_is_page_xor_page_shifted_by_seven(page in 0u64..1 << 36) {
        let skylake = preset("skylake").unwrap();
        let stlb = skylake.tlbs.iter().find(|t| t.name == "stlb").unwrap();
        prop_assert_eq!(u64::from(stlb.index.set_of(page, 128)), (page ^ (page >> 7)) & 127);
    }

    #[test]
    fn indexes_and_offset_put_the_address_together_again(address in any::<u64>()) {
        for f in [
            TableFormat::X86_64L4, TableFormat::X86_64L5, TableFormat::Armv7Short, TableFormat::Armv7Lpae,
            TableFormat::Aarch64K4, TableFormat::Sv39, TableFormat::Sv48,
        ] {
            let translated = address & ((1 << f.address_bits()) - 1);
            let parts: u64 = f.levels().iter().map(|l| l.index_of(translated) << l.index_low_bit).sum();
            prop_assert_eq!(parts + (address & 0xfff), translated);
            // A leaf page is as large as what one entry of its level covers, or sixteen of these.
            for l in f.levels() {
                for size in l.leaf_sizes {
                    prop_assert!([0, 4].contains(&(size.shift() - l.index_low_bit)));
                }
            }
        }
    }
}

/// What is written as text has a name of its own in JSON Schemas, and so one definition.
#[test]
fn texts_have_a_definition_in_schemas() {
    let schema = schemars::schema_for!(lookaside_machine::Machine);
    let definitions = schema.get("$defs").and_then(|defs| defs.as_object()).expect("definitions");
    let bytes = serde_json::json!({
        "type": "string", "description": "Bytes, with a binary unit.", "pattern": "^[0-9]+[KMG]?$"
    });
    assert_eq!(definitions.get("PageSize"), Some(&bytes));
    let mask = serde_json::json!({ "type": "string", "pattern": "^0x[0-9a-f]+$" });
    let index = serde_json::json!({ "anyOf": [{ "const": "linear" }, { "type": "array", "items": mask }] });
    assert_eq!(definitions.get("IndexFn"), Some(&index));
    // A size that is no page's is described where it stands.
    let size = definitions["Cache"]["properties"]["size"].as_object().expect("a schema");
    assert_eq!((&size["type"], &size["pattern"]), (&bytes["type"], &bytes["pattern"]));
}

#[test]
fn ways_are_written_as_in_the_file() {
    let written = [Ways::Count(12), Ways::Full(Full::Full)].map(|ways| ways.to_string());
    assert_eq!(written, ["12", "full"]);
}

/// What is as usual is not written.
#[test]
fn a_cache_that_allocates_for_stores_does_not_say_so() {
    let mut machine = good();
    assert!(!to_toml(&machine).contains("write_allocate"));
    machine.caches[0].write_allocate = false;
    assert!(to_toml(&machine).contains("write_allocate = false"));
}
