//! Encoders and decoders against the bit-by-bit packing of the paper's tables, and there and back.

use lookaside_tlb_migration::layout::{join, split, RegisterLayout};
use lookaside_tlb_migration::tables::*;
use lookaside_tlb_migration::*;
use proptest::prelude::*;

use crate::naive::*;

fn printed<F: Copy + PartialEq>(layout: &RegisterLayout<F>) -> Vec<(&'static str, u32, u32)> {
    layout.fields.iter().map(|row| (row.name, row.high, row.low)).collect()
}

#[test]
fn tables_are_the_paper_s() {
    assert_eq!(printed(&CORTEX_A7), rows(TABLE_3_1));
    assert_eq!(printed(&A7_OPERATION), [("TLB index", 7, 0), ("TLB way", 31, 31)]);
    assert_eq!(printed(&V1), rows(TABLE_A_8));
    assert_eq!(printed(&V2), rows(TABLE_A_9));
    assert_eq!(printed(&V3), rows(TABLE_A_10));
    assert_eq!([CORTEX_A7.bits(), V1.bits(), V2.bits(), V3.bits()], [86, 92, 64, 55], "section 3.2, Table 5.1");
    // No gaps, no overlaps.
    for table in [TABLE_3_1, TABLE_A_8, TABLE_A_9, TABLE_A_10] {
        rows(table).windows(2).for_each(|pair| assert_eq!(pair[0].1 + 1, pair[1].2, "{pair:?}"));
    }
}

#[test]
fn table_5_1_has_the_widths_of_the_appendix() {
    use Gem5Field::*;
    let widths = [
        (Asid, [8, 8, 0]),
        (Valid, [1, 1, 0]),
        (N, [7, 1, 1]),
        (VAddr, [20, 20, 20]),
        (PAddr, [20, 20, 20]),
        (Ap, [8, 2, 2]),
        (Attributes, [12, 2, 2]),
        (InnerAttrs, [3, 2, 2]),
        (OuterAttrs, [1, 1, 1]),
        (Domain, [3, 2, 2]),
        (MType, [2, 1, 1]),
        (NonCacheable, [1, 1, 1]),
        (Shareable, [1, 0, 0]),
        (Xn, [1, 1, 1]),
        (LookupLevel, [3, 1, 1]),
        (Global, [1, 1, 1]),
    ];
    for (field, width) in widths {
        assert_eq!([&V1, &V2, &V3].map(|layout| layout.row(field).map_or(0, |row| row.width())), width, "{field:?}");
    }
}

/// One bit per size and level: 4 KiB is (0, 1), 1 MiB (1, 0).
fn two_sizes(entry: &Entry) -> (u32, u32) {
    let section = u32::from(entry.page == ArmPageSize::Section);
    (section, 1 - section)
}

proptest! {
    #[test]
    fn descriptors_there_and_back(descriptor in descriptors()) {
        let encoded = descriptor.encode().unwrap();
        prop_assert_eq!(encoded.to_vec(), registers(&bits(TABLE_3_1, &descriptor_numbers(&descriptor))));
        prop_assert_eq!(Descriptor::decode(encoded).unwrap(), descriptor);
    }

    #[test]
    fn any_86_bits_are_a_descriptor_or_an_impossible_size(word in any::<u128>()) {
        let registers = split(word & ((1 << 86) - 1));
        match Descriptor::decode(registers) {
            Ok(descriptor) => prop_assert_eq!(descriptor.encode().unwrap(), registers),
            Err(error) => {
                let impossible = matches!(error, InterfaceError::Covers { .. });
                prop_assert!(impossible, "{}", error);
            }
        }
    }

    #[test]
    fn addresses_come_back_from_field_and_index(addr: u32, way in 0..2u8, size in 0..2u8) {
        let (va, index) = Descriptor::va_and_index(addr);
        let at = ReadOperation::new(way, index).unwrap();
        let descriptor = Descriptor { va, size, ..Descriptor::default() };
        prop_assert_eq!(descriptor.virtual_address(at).unwrap(), addr & !0xfff);
    }

    #[test]
    fn operations_there_and_back(register: u32) {
        match ReadOperation::decode(register) {
            Ok(operation) => prop_assert_eq!(operation.encode(), register),
            Err(error) => {
                let expected = if register & 0x7fff_ff00 != 0 {
                    matches!(error, InterfaceError::Reserved { .. })
                } else {
                    matches!(error, InterfaceError::OtherRam { .. }) && register & 0xff >= 128
                };
                prop_assert!(expected, "{}", error);
            }
        }
        // And of those that are mostly right.
        let operation = ReadOperation::new((register & 1) as u8, (register >> 1 & 127) as u8).unwrap();
        prop_assert_eq!(operation.encode(), (register & 1) << 31 | register >> 1 & 127);
        prop_assert_eq!(ReadOperation::decode(operation.encode()), Ok(operation));
    }

    #[test]
    fn version_1_there_and_back(entry in entries(false)) {
        let word = entry.encode_v1().unwrap();
        let numbers = entry_numbers(&entry, entry.page.shift(), entry.page.level());
        prop_assert_eq!(split::<3>(word).to_vec(), registers(&bits(TABLE_A_8, &numbers)));
        prop_assert_eq!(Entry::decode_v1(word), Ok(Some(entry)));
    }

    #[test]
    fn versions_2_and_3_there_and_back(entry in entries(true)) {
        let (n, level) = two_sizes(&entry);
        let numbers = entry_numbers(&entry, n, level);
        let v2 = entry.encode_v2().unwrap();
        prop_assert_eq!(split::<2>(v2.into()).to_vec(), registers(&bits(TABLE_A_9, &numbers)));
        prop_assert_eq!(Entry::decode_v2(v2), Ok(Some(entry)));
        let v3 = entry.encode_v3().unwrap();
        prop_assert_eq!(split::<2>(v3.into()).to_vec(), registers(&bits(TABLE_A_10, &numbers)));
        prop_assert_eq!(Entry::decode_v3(v3, entry.asid), Ok(Some(entry)));
        prop_assert_ne!(v3, 0);
    }

    /// A flipped bit is refused, or is another entry's code: nothing is read that would not be written so.
    #[test]
    fn one_flipped_bit(entry in entries(true), bit in 0..96u32) {
        let v1 = entry.encode_v1().unwrap() ^ 1 << bit;
        if let Ok(Some(other)) = Entry::decode_v1(v1) {
            prop_assert_eq!(other.encode_v1().unwrap(), v1);
        }
        let v2 = entry.encode_v2().unwrap() ^ 1 << (bit % 64);
        if let Ok(Some(other)) = Entry::decode_v2(v2) {
            prop_assert_eq!(other.encode_v2().unwrap(), v2);
        }
        let v3 = entry.encode_v3().unwrap() ^ 1 << (bit % 64);
        match Entry::decode_v3(v3, 7) {
            Ok(Some(other)) => prop_assert_eq!(other.encode_v3().unwrap(), v3),
            other => prop_assert!(other.is_err() && (bit % 64 >= 55 || entry.page == ArmPageSize::Section || matches!(bit % 64, 0 | 53))),
        }
    }

    #[test]
    fn packed_there_and_back(entries in proptest::collection::vec(entries(true), 0..70), asid: u8) {
        let entries: Vec<_> = entries.into_iter().map(|entry| Entry { asid, ..entry }).collect();
        let mut all = Vec::new();
        for entry in &entries {
            let (n, level) = two_sizes(entry);
            all.extend(bits(TABLE_A_10, &entry_numbers(entry, n, level)));
            all.push(false);
        }
        all.resize(all.len().div_ceil(64) * 64, false);
        let naive: Vec<Pair> = registers(&all).chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        prop_assert_eq!(naive.len(), packed_pairs(entries.len()));
        match pack(&entries) {
            Ok(pairs) => {
                prop_assert_eq!(&pairs[..naive.len()], naive);
                prop_assert_eq!(&pairs[packed_pairs(entries.len())..], [[0, 0]]);
                prop_assert_eq!(unpack(&pairs, asid).unwrap(), entries);
            }
            Err(error) => prop_assert!(naive.contains(&[0, 0]), "{}", error),
        }
    }

    #[test]
    fn any_pairs_are_a_stream_or_refused(pairs in proptest::collection::vec(any::<[u32; 2]>(), 0..9)) {
        if let Ok(entries) = unpack(&pairs, 1) {
            let again = pack(&entries).unwrap();
            prop_assert_eq!(&again[..again.len() - 1], &pairs[..again.len() - 1]);
        }
    }

    #[test]
    fn registers_join_and_split(registers: [u32; 3]) {
        prop_assert_eq!(split(join(registers)), registers);
    }
}
