//! By hand: what the paper works out, and what is refused in which words.

use std::collections::BTreeSet;

use lookaside_tlb_migration::tables::{V1, V2};
use lookaside_tlb_migration::*;

use crate::naive::page;

#[test]
fn the_address_of_section_2_1() {
    // 0xffc00248: PT1 = 1023, PT2 = 0, offset 584. The page number 0xffc00 is 1111111111000 and, as index, 0000000.
    assert_eq!(0xffc0_0248_u32 & 0xfff, 584);
    assert_eq!(Descriptor::va_and_index(0xffc0_0248), (0b1_1111_1111_1000, 0));
    // ASID and physical address lie across two registers each.
    let descriptor = Descriptor {
        valid: true,
        ns_walk: true,
        va: 0x1ff8,
        asid: 0xa5,
        not_global: true,
        pa: 0x0c1_2345,
        s2_level: 3,
        ..Descriptor::default()
    };
    // Data 0: 1 | 1 << 4 | 0x1ff8 << 5 | 0b100101 << 26; Data 1: 0b10 | 1 << 2 | 0x412345 << 9; Data 2: 1 | 3 << 20.
    assert_eq!(descriptor.encode(), Ok([0x9403_ff11, 0x8246_8a06, 0x0030_0001]));
}

#[test]
fn strides_use_the_indices_of_section_4_3() {
    let indices = |stride_pages: u32| -> BTreeSet<u8> {
        (0..1024).map(|n| Descriptor::va_and_index((n * stride_pages) << 12).1).collect()
    };
    assert_eq!(indices(16).len(), 8, "64 KiB: the same 8 of 128");
    assert_eq!(indices(17).len(), 128, "68 KiB");
}

#[test]
fn all_256_entries_are_asked_for() {
    let registers: BTreeSet<u32> = ReadOperation::all().map(ReadOperation::encode).collect();
    assert_eq!(registers.len(), 256);
    assert_eq!(registers.into_iter().collect::<Vec<_>>()[126..130], [126, 127, 0x8000_0000, 0x8000_0001]);
}

#[test]
fn an_entry_in_each_version() {
    // ap 3, innerAttrs 1, outerAttrs, domain 1, mtype 1, xn, level 2.
    let entry = page(0x2a, 0x12345);
    // Data 0: asid | valid | 12 << 9 | v_addr[15:0] << 16; Data 1: v_addr[19:16] | p_addr << 4 | ap << 24.
    let v1 = 0x2a | 1 << 8 | 12 << 9 | 0x2345 << 16 | (0x1 | 0x92345 << 4 | 3 << 24) << 32;
    // Data 2: innerAttrs << 12 | outerAttrs << 15 | domain << 16 | mtype << 19 | shareable << 22 | xn << 23 | level <<
    // 24.
    assert_eq!(entry.encode_v1(), Ok(v1 | (0x02c9_0000 | 0x9000) << 64));
    // Data 0: asid | valid | v_addr << 10 | p_addr[1:0] << 30; Data 1: p_addr[19:2] | ap << 18 | inner << 22 | outer <<
    // 24 | ...
    assert_eq!(entry.encode_v2(), Ok(0x2a | 1 << 8 | 0x12345 << 10 | 0x92345 << 30 | 0x6b4c_0000 << 32));
    assert_eq!(entry.encode_v3(), Ok(0x12345 << 1 | 0x92345 << 21 | 3 << 41 | 1 << 45 | 0x0035_8000 << 32));
}

#[test]
fn bytes_that_versions_2_and_4_save() {
    // Section 6.2: "version 2 needs 4 B less", section 5.2: 1 B an entry, "64 B (or one cache-line) in total".
    assert_eq!((V1.registers.len() - V2.registers.len()) * 4 * 64, 256);
    assert_eq!(64 * 8 - packed_pairs(64) * 8, 64);
    // Section 6.2 has a whole word saved after 32 pages. It is a word after 4, both registers after 8, and 32 bytes
    // after 32.
    assert_eq!([7, 8, 9, 15, 16, 32].map(packed_pairs), [7, 7, 8, 14, 14, 28]);
}

#[test]
fn the_last_byte_goes_beside_the_first() {
    let (a, b) = (page(9, 0x00001), page(9, 0xfffff));
    let [first, second] = [a, b].map(|entry| entry.encode_v3().unwrap());
    let pairs = pack(&[a, b]).unwrap();
    assert_eq!(pairs.len(), 3);
    let words: Vec<u64> = pairs.iter().map(|[low, high]| u64::from(*high) << 32 | u64::from(*low)).collect();
    assert_eq!(words, [first | second << 56, second >> 8, 0]);
}

#[test]
fn refused() {
    let text = |error: InterfaceError| error.to_string();
    let error = |result: Result<ReadOperation, InterfaceError>| text(result.unwrap_err());
    assert_eq!(error(ReadOperation::decode(128)), "TLB index 128 is not in the main TLB (0 to 127): the walk cache");
    assert_eq!(
        error(ReadOperation::decode(0x8000_00a0)),
        "TLB index 160 is not in the main TLB (0 to 127): the IPA cache"
    );
    assert_eq!(error(ReadOperation::decode(192)), "TLB index 192 is not in the main TLB (0 to 127): nothing");
    let reserved = "Cortex-A7 operation register: bits 0x100 belong to no field and have to be zero";
    assert_eq!(error(ReadOperation::decode(0x100)), reserved);
    assert_eq!(error(ReadOperation::new(2, 0)), "TLB way 2: there are 2");

    let covers = Descriptor { valid: true, size: 0b100, s1_size: 1, ..Descriptor::default() };
    let words = "Cortex-A7 descriptor: Size 0b100 covers more than S1 Size 0b01";
    assert_eq!(text(covers.encode().unwrap_err()), words);
    assert_eq!(text(Descriptor::decode([0b1001, 0, 1 << 18]).unwrap_err()), words);
    assert!(Descriptor::decode([0b1000, 0, 1 << 18]).is_ok(), "not valid: anything may be in it");
    let high = Descriptor::decode([0, 0, 1 << 22]).unwrap_err();
    assert_eq!(high, InterfaceError::Reserved { layout: "Cortex-A7 descriptor", bits: 1 << 86 });
    let at = ReadOperation::new(0, 3).unwrap();
    let section = Descriptor { size: 0b100, ..Descriptor::default() };
    let words = "Cortex-A7 descriptor: Size 0b100 is no 4 KiB page: how its address is stored is not published";
    assert_eq!(text(section.virtual_address(at).unwrap_err()), words);
    let wide = Descriptor { va: 0x2000, ..Descriptor::default() };
    let words = "Cortex-A7 descriptor: VA 0x2000 does not fit in 13 bits";
    assert_eq!([text(wide.encode().unwrap_err()), text(wide.virtual_address(at).unwrap_err())], [words, words]);

    let entry = page(1, 0x100);
    let large = Entry { page: ArmPageSize::Large, ..entry };
    let words = "V2: has one bit for the page size, 4 KiB or 1 MiB: no code for pages of 2^16 bytes";
    assert_eq!(text(large.encode_v2().unwrap_err()), words);
    let words = "page number 0x101 is not a multiple of a page of 2^20 bytes";
    assert_eq!(text(Entry { page: ArmPageSize::Section, v_page: 0x101, ..entry }.encode_v3().unwrap_err()), words);
    let words = "V3: has no shareable, which is taken for 1";
    assert_eq!(text(Entry { shareable: false, ..entry }.encode_v3().unwrap_err()), words);
    assert_eq!(text(Entry { ap: 4, ..entry }.encode_v2().unwrap_err()), "V2: ap 0x4 does not fit in 2 bits");
    assert_eq!(text(Entry { domain: 4, ..entry }.encode_v1().unwrap_err()), "V1: domain cannot be 0x4");
    assert_eq!(text(Entry { mtype: 3, ..entry }.encode_v1().unwrap_err()), "V1: mtype cannot be 0x3");

    let v1 = entry.encode_v1().unwrap();
    assert_eq!(text(Entry::decode_v1(v1 ^ 1 << 9).unwrap_err()), "V1: N cannot be 0xd");
    let words = "V1: page shift 12 does not come from level 3 of a table walk";
    assert_eq!(text(Entry::decode_v1(v1 | 1 << 88).unwrap_err()), words);
    let words = "V1: bits 0x100000000000000000000000 belong to no field and have to be zero";
    assert_eq!(text(Entry::decode_v1(v1 | 1 << 92).unwrap_err()), words);
    assert_eq!(Entry::decode_v1(v1 & !(1 << 8)), Ok(None));
    let v3 = entry.encode_v3().unwrap();
    let words = "V3: page shift 20 does not come from level 2 of a table walk";
    assert_eq!(text(Entry::decode_v3(v3 | 1, 1).unwrap_err()), words);
    assert!(matches!(Entry::decode_v3(v3 | 1 << 55, 1), Err(InterfaceError::Reserved { .. })));
}

#[test]
fn zeros_amid_a_packed_stream() {
    // A section at 0 that nobody may access: N alone is set. Its bytes behind the first are zero.
    let nothing = Entry {
        page: ArmPageSize::Section,
        v_page: 0,
        p_page: 0,
        ap: 0,
        inner_attrs: 0,
        outer_attrs: false,
        domain: 0,
        mtype: 0,
        xn: false,
        ..page(0, 0)
    };
    assert_eq!(nothing.encode_v3(), Ok(1));
    assert_eq!(pack(&[nothing]), Ok(vec![[1, 0], [0, 0]]));
    let error = pack(&[page(0, 5), nothing, page(0, 0x8000)]).unwrap_err();
    assert_eq!(error, InterfaceError::ZeroPair { entry: 2 });
    assert_eq!(
        error.to_string(),
        "V4: entries up to number 2 pack to a pair of zero registers, which would end the stream"
    );
    // Behind seven entries there is room for an eighth.
    let mut pairs = pack(&[page(0, 5); 7]).unwrap();
    assert_eq!(unpack(&pairs, 0).map(|entries| entries.len()), Ok(7));
    pairs[6][1] |= 1 << 31;
    assert!(unpack(&pairs, 0).is_err());
    let mut pairs = pack(&[page(0, 5)]).unwrap();
    pairs[0][1] |= 1 << 24;
    assert_eq!(
        unpack(&pairs, 0).unwrap_err().to_string(),
        "V4: byte 7 is not zero, behind the last entry of the stream"
    );
}
