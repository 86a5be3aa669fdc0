//! The paper's tables as printed, and bits put one by one.

use std::collections::BTreeMap;

use lookaside_tlb_migration::*;
use proptest::prelude::*;

/// Table 3.1, bits and names.
pub const TABLE_3_1: &str = "[0] Valid|[3:1] Size|[4] NS, walk|[17:5] VA|[25:18] VMID|[33:26] ASID|[34] nG|[37:35] AP or HYP|\
    [39:38] HAP|[40] NS, descriptor|[68:41] PA|[69] PXN|[70] XN1|[71] XN2|[77:72] Memory Type and shareability|[81:78] Domain|\
    [83:82] S1 Size|[85:84] S2 Level";
/// Table A.8.
pub const TABLE_A_8: &str =
    "[7:0] asid|[8] valid|[15:9] N|[35:16] v_addr|[55:36] p_addr|[63:56] ap|[75:64] attributes|\
    [78:76] innerAttrs|[79] outerAttrs|[82:80] domain|[84:83] mtype|[85] nonCacheable|[86] shareable|[87] xn|\
    [90:88] lookupLevel|[91] global";
/// Table A.9.
pub const TABLE_A_9: &str = "[7:0] asid|[8] valid|[9] N|[29:10] v_addr|[49:30] p_addr|[51:50] ap|[53:52] attributes|\
    [55:54] innerAttrs|[56] outerAttrs|[58:57] domain|[59] mtype|[60] nonCacheable|[61] xn|[62] lookupLevel|[63] global";
/// Table A.10.
pub const TABLE_A_10: &str = "[0] N|[20:1] v_addr|[40:21] p_addr|[42:41] ap|[44:43] attributes|[46:45] innerAttrs|\
    [47] outerAttrs|[49:48] domain|[50] mtype|[51] nonCacheable|[52] xn|[53] lookupLevel|[54] global";

/// Name, high, low of a table's rows.
pub fn rows(table: &'static str) -> Vec<(&'static str, u32, u32)> {
    let row = |row: &'static str| {
        let (bits, name) = row.trim_start_matches('[').split_once("] ").unwrap();
        let (high, low) = bits.split_once(':').unwrap_or((bits, bits));
        (name, high.parse().unwrap(), low.parse().unwrap())
    };
    table.split('|').map(row).collect()
}

/// Bits, lowest first, from numbers by name: each number bit by bit.
pub fn bits(table: &'static str, numbers: &BTreeMap<&str, u32>) -> Vec<bool> {
    let rows = rows(table);
    let mut bits = vec![false; rows.last().unwrap().1 as usize + 1];
    for (name, high, low) in rows {
        for bit in low..=high {
            bits[bit as usize] = numbers[name] >> (bit - low) & 1 == 1;
        }
    }
    bits
}

/// Registers from bits, lowest first.
pub fn registers(bits: &[bool]) -> Vec<u32> {
    let register = |bits: &[bool]| (0..bits.len()).map(|bit| u32::from(bits[bit]) << bit).sum();
    bits.chunks(32).map(register).collect()
}

/// A descriptor's numbers by the paper's names.
pub fn descriptor_numbers(d: &Descriptor) -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("Valid", d.valid.into()),
        ("Size", d.size.into()),
        ("NS, walk", d.ns_walk.into()),
        ("VA", d.va.into()),
        ("VMID", d.vmid.into()),
        ("ASID", d.asid.into()),
        ("nG", d.not_global.into()),
        ("AP or HYP", d.ap.into()),
        ("HAP", d.hap.into()),
        ("NS, descriptor", d.ns_descriptor.into()),
        ("PA", d.pa),
        ("PXN", d.pxn.into()),
        ("XN1", d.xn1.into()),
        ("XN2", d.xn2.into()),
        ("Memory Type and shareability", d.memory.into()),
        ("Domain", d.domain.into()),
        ("S1 Size", d.s1_size.into()),
        ("S2 Level", d.s2_level.into()),
    ])
}

/// An entry's numbers, N and lookupLevel as given.
pub fn entry_numbers(e: &Entry, n: u32, level: u32) -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("asid", e.asid.into()),
        ("valid", 1),
        ("N", n),
        ("v_addr", e.v_page),
        ("p_addr", e.p_page),
        ("ap", e.ap.into()),
        ("attributes", e.attributes.into()),
        ("innerAttrs", e.inner_attrs.into()),
        ("outerAttrs", e.outer_attrs.into()),
        ("domain", e.domain.into()),
        ("mtype", e.mtype.into()),
        ("nonCacheable", e.non_cacheable.into()),
        ("shareable", e.shareable.into()),
        ("xn", e.xn.into()),
        ("lookupLevel", level),
        ("global", e.global.into()),
    ])
}

/// All descriptors that can be.
pub fn descriptors() -> impl Strategy<Value = Descriptor> {
    // Three numbers of any kind hold all fields.
    (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(a, b, valid)| {
        let s1_size = (a & 3) as u8;
        let class = (a >> 2 & 3) as u8;
        Descriptor {
            valid,
            size: (if valid { class.min(s1_size) } else { class }) << 1 | (a >> 4 & 1) as u8,
            ns_walk: a >> 5 & 1 == 1,
            va: (a >> 6 & 0x1fff) as u16,
            vmid: (a >> 19) as u8,
            asid: (a >> 27) as u8,
            not_global: a >> 35 & 1 == 1,
            ap: (a >> 36 & 7) as u8,
            hap: (a >> 39 & 3) as u8,
            ns_descriptor: a >> 41 & 1 == 1,
            pa: (b & 0xfff_ffff) as u32,
            pxn: b >> 28 & 1 == 1,
            xn1: b >> 29 & 1 == 1,
            xn2: b >> 30 & 1 == 1,
            memory: (b >> 31 & 0x3f) as u8,
            domain: (b >> 37 & 0xf) as u8,
            s1_size,
            s2_level: (b >> 41 & 3) as u8,
        }
    })
}

/// Entries that version 1 has bits for, or, if narrow, versions 2 and 3.
pub fn entries(narrow: bool) -> impl Strategy<Value = Entry> {
    let pages = if narrow { vec![ArmPageSize::Small, ArmPageSize::Section] } else { ArmPageSize::ALL.to_vec() };
    (proptest::sample::select(pages), any::<u64>(), any::<u64>()).prop_map(move |(page, a, b)| {
        let aligned = |page_number: u64| (page_number & 0xf_ffff) as u32 >> (page.shift() - 12) << (page.shift() - 12);
        let few = |bits: u64, wide: u64, slim: u64| bits & if narrow { slim } else { wide };
        Entry {
            asid: a as u8,
            page,
            v_page: aligned(a >> 8),
            p_page: aligned(a >> 28),
            ap: few(b, 0xff, 3) as u8,
            attributes: few(b >> 8, 0xfff, 3) as u16,
            inner_attrs: few(b >> 20, 7, 3) as u8,
            outer_attrs: b >> 23 & 1 == 1,
            domain: (b >> 24 & 3) as u8,
            mtype: (few(b >> 26, 0xff, 1) % 3) as u8,
            non_cacheable: b >> 34 & 1 == 1,
            shareable: narrow || b >> 35 & 1 == 1,
            xn: b >> 36 & 1 == 1,
            global: b >> 37 & 1 == 1,
        }
    })
}

/// A page of a program as Linux maps it.
pub fn page(asid: u8, v_page: u32) -> Entry {
    Entry {
        asid,
        page: ArmPageSize::Small,
        v_page,
        p_page: v_page ^ 0x8_0000,
        ap: 3,
        attributes: 0,
        inner_attrs: 1,
        outer_attrs: true,
        domain: 1,
        mtype: 1,
        non_cacheable: false,
        shareable: true,
        xn: true,
        global: false,
    }
}
