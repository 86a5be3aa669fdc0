//! The layouts, one table each, as the paper prints them.
//!
//! In each of the paper's tables the bits follow one another without gap, and the sums of Table 5.1 (92, 64 and 55
//! bits) are those of tables A.8 to A.10: nothing was torn when the text was taken out of the PDF.

use super::layout::{Field, RegisterLayout};

/// Fields of [`CORTEX_A7`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named in the table
pub enum A7Field {
    Valid,
    Size,
    NsWalk,
    Va,
    Vmid,
    Asid,
    NotGlobal,
    Ap,
    Hap,
    NsDescriptor,
    Pa,
    Pxn,
    Xn1,
    Xn2,
    Memory,
    Domain,
    S1Size,
    S2Level,
}

/// The main TLB's descriptor (Table 3.1).
///
/// The manual that the paper cites (DDI 0464F, 6.6.3) puts bits `[62:32]` into Data Register 1 and `[85:64]` into bits
/// `[19:0]` of Data Register 2. Neither fits: 32 bits hold `[63:32]`, and 22 bits are `[21:0]`. Read so here.
pub static CORTEX_A7: RegisterLayout<A7Field> = RegisterLayout {
    name: "Cortex-A7 descriptor",
    source: "Table 3.1",
    registers: &["Data 0", "Data 1", "Data 2"],
    fields: &[
        Field::new(A7Field::Valid, 0, 0, "Valid", "the entry contains valid data"),
        Field::new(A7Field::Size, 3, 1, "Size", "VMSAv7 or LPAE TLB RAM size"),
        Field::new(A7Field::NsWalk, 4, 4, "NS, walk", "security state that the entry was fetched in"),
        Field::new(A7Field::Va, 17, 5, "VA", "virtual address"),
        Field::new(A7Field::Vmid, 25, 18, "VMID", "virtual machine identifier"),
        Field::new(A7Field::Asid, 33, 26, "ASID", "address space identifier"),
        Field::new(A7Field::NotGlobal, 34, 34, "nG", "not global"),
        Field::new(A7Field::Ap, 37, 35, "AP or HYP", "access permissions of stage 1, HYP mode flag"),
        Field::new(A7Field::Hap, 39, 38, "HAP", "hypervisor access permissions of stage 2"),
        Field::new(A7Field::NsDescriptor, 40, 40, "NS, descriptor", "security state of the memory region"),
        Field::new(A7Field::Pa, 68, 41, "PA", "physical address"),
        Field::new(A7Field::Pxn, 69, 69, "PXN", "privileged execute never"),
        Field::new(A7Field::Xn1, 70, 70, "XN1", "execute never of stage 1"),
        Field::new(A7Field::Xn2, 71, 71, "XN2", "execute never of stage 2"),
        Field::new(A7Field::Memory, 77, 72, "Memory Type and shareability", "memory type and shareability"),
        Field::new(A7Field::Domain, 81, 78, "Domain", "domain, if fetched in VMSAv7 format"),
        Field::new(A7Field::S1Size, 83, 82, "S1 Size", "size of stage 1"),
        Field::new(A7Field::S2Level, 85, 84, "S2 Level", "level of stage 2; 0: none"),
    ],
};

/// Fields of [`A7_OPERATION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named in the table
pub enum OperationField {
    Index,
    Way,
}

/// The TLB Data Read Operation Register of Cortex-A7 (Table 3.2).
pub static A7_OPERATION: RegisterLayout<OperationField> = RegisterLayout {
    name: "Cortex-A7 operation register",
    source: "Table 3.2",
    registers: &["Operation"],
    fields: &[
        Field::new(OperationField::Index, 7, 0, "TLB index", "0 to 127 in the main TLB"),
        Field::new(OperationField::Way, 31, 31, "TLB way", "0 or 1"),
    ],
};

/// Fields of [`V1`], [`V2`] and [`V3`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named in the table
pub enum Gem5Field {
    Asid,
    Valid,
    N,
    VAddr,
    PAddr,
    Ap,
    Attributes,
    InnerAttrs,
    OuterAttrs,
    Domain,
    MType,
    NonCacheable,
    Shareable,
    Xn,
    LookupLevel,
    Global,
}

const VALID: &str = "the entry contains valid data";
const ASID: &str = "address space identifier";
const N: &str = "page shift factor";
const V_ADDR: &str = "virtual address";
const P_ADDR: &str = "physical address";
const AP: &str = "access permissions";
const ATTRIBUTES: &str = "memory attributes formatted for PAR";
const INNER: &str = "inner attributes";
const OUTER: &str = "outer attributes";
const DOMAIN: &str = "domain type";
const MTYPE: &str = "memory type";
const NON_CACHEABLE: &str = "not cacheable";
const XN: &str = "execute never";
const LEVEL: &str = "lookup level";
const GLOBAL: &str = "global";

/// Interface version 1: 92 bits (Table A.8).
pub static V1: RegisterLayout<Gem5Field> = RegisterLayout {
    name: "V1",
    source: "Table A.8",
    registers: &["Data 0", "Data 1", "Data 2"],
    fields: &[
        Field::new(Gem5Field::Asid, 7, 0, "asid", ASID),
        Field::new(Gem5Field::Valid, 8, 8, "valid", VALID),
        Field::new(Gem5Field::N, 15, 9, "N", N),
        Field::new(Gem5Field::VAddr, 35, 16, "v_addr", V_ADDR),
        Field::new(Gem5Field::PAddr, 55, 36, "p_addr", P_ADDR),
        Field::new(Gem5Field::Ap, 63, 56, "ap", AP),
        Field::new(Gem5Field::Attributes, 75, 64, "attributes", ATTRIBUTES),
        Field::new(Gem5Field::InnerAttrs, 78, 76, "innerAttrs", INNER),
        Field::new(Gem5Field::OuterAttrs, 79, 79, "outerAttrs", OUTER),
        Field::new(Gem5Field::Domain, 82, 80, "domain", DOMAIN),
        Field::new(Gem5Field::MType, 84, 83, "mtype", MTYPE),
        Field::new(Gem5Field::NonCacheable, 85, 85, "nonCacheable", NON_CACHEABLE),
        Field::new(Gem5Field::Shareable, 86, 86, "shareable", "shareable"),
        Field::new(Gem5Field::Xn, 87, 87, "xn", XN),
        Field::new(Gem5Field::LookupLevel, 90, 88, "lookupLevel", LEVEL),
        Field::new(Gem5Field::Global, 91, 91, "global", GLOBAL),
    ],
};

/// Interface version 2: 64 bits (Table A.9).
pub static V2: RegisterLayout<Gem5Field> = RegisterLayout {
    name: "V2",
    source: "Table A.9",
    registers: &["Data 0", "Data 1"],
    fields: &[
        Field::new(Gem5Field::Asid, 7, 0, "asid", ASID),
        Field::new(Gem5Field::Valid, 8, 8, "valid", VALID),
        Field::new(Gem5Field::N, 9, 9, "N", N),
        Field::new(Gem5Field::VAddr, 29, 10, "v_addr", V_ADDR),
        Field::new(Gem5Field::PAddr, 49, 30, "p_addr", P_ADDR),
        Field::new(Gem5Field::Ap, 51, 50, "ap", AP),
        Field::new(Gem5Field::Attributes, 53, 52, "attributes", ATTRIBUTES),
        Field::new(Gem5Field::InnerAttrs, 55, 54, "innerAttrs", INNER),
        Field::new(Gem5Field::OuterAttrs, 56, 56, "outerAttrs", OUTER),
        Field::new(Gem5Field::Domain, 58, 57, "domain", DOMAIN),
        Field::new(Gem5Field::MType, 59, 59, "mtype", MTYPE),
        Field::new(Gem5Field::NonCacheable, 60, 60, "nonCacheable", NON_CACHEABLE),
        Field::new(Gem5Field::Xn, 61, 61, "xn", XN),
        Field::new(Gem5Field::LookupLevel, 62, 62, "lookupLevel", LEVEL),
        Field::new(Gem5Field::Global, 63, 63, "global", GLOBAL),
    ],
};

/// Interface versions 3 and 4: 55 bits (Table A.10). Version 4 strings them together, seven bytes each.
pub static V3: RegisterLayout<Gem5Field> = RegisterLayout {
    name: "V3",
    source: "Table A.10",
    registers: &["Data 0", "Data 1"],
    fields: &[
        Field::new(Gem5Field::N, 0, 0, "N", N),
        Field::new(Gem5Field::VAddr, 20, 1, "v_addr", V_ADDR),
        Field::new(Gem5Field::PAddr, 40, 21, "p_addr", P_ADDR),
        Field::new(Gem5Field::Ap, 42, 41, "ap", AP),
        Field::new(Gem5Field::Attributes, 44, 43, "attributes", ATTRIBUTES),
        Field::new(Gem5Field::InnerAttrs, 46, 45, "innerAttrs", INNER),
        Field::new(Gem5Field::OuterAttrs, 47, 47, "outerAttrs", OUTER),
        Field::new(Gem5Field::Domain, 49, 48, "domain", DOMAIN),
        Field::new(Gem5Field::MType, 50, 50, "mtype", MTYPE),
        Field::new(Gem5Field::NonCacheable, 51, 51, "nonCacheable", NON_CACHEABLE),
        Field::new(Gem5Field::Xn, 52, 52, "xn", XN),
        Field::new(Gem5Field::LookupLevel, 53, 53, "lookupLevel", LEVEL),
        Field::new(Gem5Field::Global, 54, 54, "global", GLOBAL),
    ],
};
