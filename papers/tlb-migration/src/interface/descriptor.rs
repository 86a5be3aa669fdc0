//! The Cortex-A7's own interface: an operation register to write, three data registers to read. The TLB cannot be
//! written.

use super::layout::{join, split};
use super::tables::{A7Field, OperationField, A7_OPERATION, CORTEX_A7};
use super::InterfaceError;

/// Entries of the main TLB's index, of each of two ways (section 3.2).
pub const A7_SETS: u8 = 128;
/// Ways (section 3.2).
pub const A7_WAYS: u8 = 2;

/// log2 of [`A7_SETS`].
const INDEX_BITS: u32 = 7;
/// log2 of a small page's bytes.
const PAGE_SHIFT: u32 = 12;
/// Bits of VA: the page number without the index.
const VA_BITS: u32 = u32::BITS - PAGE_SHIFT - INDEX_BITS;

/// What is asked of the TLB Data Read Operation Register (Table 3.2): an entry of the main TLB.
///
/// Table 3.2 has eight bits of index, and section 3.2 seven: the manual (DDI 0464F, Table 6.8) has the walk cache and
/// the IPA cache behind the main TLB's 128. The paper's 256 entries are 128 of both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadOperation {
    way: u8,
    index: u8,
}

impl ReadOperation {
    /// Of a way and an index.
    ///
    /// # Errors
    /// There is no such way; or the index is of another RAM, or of none.
    pub fn new(way: u8, index: u8) -> Result<Self, InterfaceError> {
        if way >= A7_WAYS {
            return Err(InterfaceError::Way { way });
        }
        // DDI 0464F, Table 6.8.
        let ram = match index {
            0..=127 => return Ok(Self { way, index }),
            128..=159 => "the walk cache",
            160..=191 => "the IPA cache",
            192..=255 => "nothing",
        };
        Err(InterfaceError::OtherRam { index, ram })
    }

    /// Those that read the whole main TLB, way by way.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..A7_WAYS).flat_map(|way| (0..A7_SETS).map(move |index| Self { way, index }))
    }

    /// The way, 0 or 1.
    pub fn way(self) -> u8 {
        self.way
    }

    /// The index in the way, 0 to 127.
    pub fn index(self) -> u8 {
        self.index
    }

    /// What to write to the register.
    pub fn encode(self) -> u32 {
        let word = A7_OPERATION.pack(|field| match field {
            OperationField::Index => self.index.into(),
            OperationField::Way => self.way.into(),
        });
        // Way and index fit, by construction.
        word.map_or(0, |word| word as u32)
    }

    /// What the register was written with.
    ///
    /// # Errors
    /// Unused bits are set, or the index is beyond the main TLB.
    pub fn decode(register: u32) -> Result<Self, InterfaceError> {
        let word = u128::from(register);
        A7_OPERATION.check_unused(word)?;
        let number = |field| A7_OPERATION.number(word, field) as u8;
        Self::new(number(OperationField::Way), number(OperationField::Index))
    }
}

/// An entry of the main TLB, field by field as in Table 3.1.
///
/// The paper needs `valid`, `va` and `asid`; the others are numbers here, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Contains valid data. If not, the others mean nothing.
    pub valid: bool,
    /// Size of what the entry covers, 3 bits: 0b000 and 0b001 are 4 KiB.
    ///
    /// The paper has no codes. These are the Cortex-A53's (DDI 0500D, Table 6-13), whose TLB is the same RAM grown
    /// wider: bit 0 for LPAE, then 4K, 64K, 1M (LPAE 2M), 16M (LPAE more).
    pub size: u8,
    /// Fetched in Non-secure state.
    pub ns_walk: bool,
    /// Address bits 31 to 19 of a 4 KiB page: what the index does not say.
    pub va: u16,
    /// Virtual machine.
    pub vmid: u8,
    /// Address space.
    pub asid: u8,
    /// Holds for this ASID only.
    pub not_global: bool,
    /// Access permissions, 3 bits.
    pub ap: u8,
    /// Hypervisor access permissions, 2 bits.
    pub hap: u8,
    /// The region is Non-secure.
    pub ns_descriptor: bool,
    /// Physical address bits 39 to 12: 28 bits.
    pub pa: u32,
    /// Privileged execute never.
    pub pxn: bool,
    /// Execute never, stage 1.
    pub xn1: bool,
    /// Execute never, stage 2.
    pub xn2: bool,
    /// Memory type and shareability, 6 bits.
    pub memory: u8,
    /// Domain, 4 bits.
    pub domain: u8,
    /// Size of stage 1's page, 2 bits: 4K, 64K, 1M (LPAE 2M), 16M (LPAE 1G), by DDI 0464F, Table 6.9.
    pub s1_size: u8,
    /// Level of stage 2, 2 bits; 0 for none.
    pub s2_level: u8,
}

impl Descriptor {
    /// Data Register 0 to 2.
    ///
    /// # Errors
    /// A number does not fit its field, or the sizes cannot be.
    pub fn encode(&self) -> Result<[u32; 3], InterfaceError> {
        self.check_sizes()?;
        let word = CORTEX_A7.pack(|field| match field {
            A7Field::Valid => self.valid.into(),
            A7Field::Size => self.size.into(),
            A7Field::NsWalk => self.ns_walk.into(),
            A7Field::Va => self.va.into(),
            A7Field::Vmid => self.vmid.into(),
            A7Field::Asid => self.asid.into(),
            A7Field::NotGlobal => self.not_global.into(),
            A7Field::Ap => self.ap.into(),
            A7Field::Hap => self.hap.into(),
            A7Field::NsDescriptor => self.ns_descriptor.into(),
            A7Field::Pa => self.pa,
            A7Field::Pxn => self.pxn.into(),
            A7Field::Xn1 => self.xn1.into(),
            A7Field::Xn2 => self.xn2.into(),
            A7Field::Memory => self.memory.into(),
            A7Field::Domain => self.domain.into(),
            A7Field::S1Size => self.s1_size.into(),
            A7Field::S2Level => self.s2_level.into(),
        })?;
        Ok(split(word))
    }

    /// What Data Register 0 to 2 say.
    ///
    /// # Errors
    /// Unused bits are set, or a valid entry's sizes cannot be. An entry that is not valid may contain anything.
    pub fn decode(registers: [u32; 3]) -> Result<Self, InterfaceError> {
        let word = join(registers);
        CORTEX_A7.check_unused(word)?;
        let number = |field| CORTEX_A7.number(word, field);
        let (bit, byte) = (|field| number(field) != 0, |field| number(field) as u8);
        let descriptor = Self {
            valid: bit(A7Field::Valid),
            size: byte(A7Field::Size),
            ns_walk: bit(A7Field::NsWalk),
            va: number(A7Field::Va) as u16,
            vmid: byte(A7Field::Vmid),
            asid: byte(A7Field::Asid),
            not_global: bit(A7Field::NotGlobal),
            ap: byte(A7Field::Ap),
            hap: byte(A7Field::Hap),
            ns_descriptor: bit(A7Field::NsDescriptor),
            pa: number(A7Field::Pa),
            pxn: bit(A7Field::Pxn),
            xn1: bit(A7Field::Xn1),
            xn2: bit(A7Field::Xn2),
            memory: byte(A7Field::Memory),
            domain: byte(A7Field::Domain),
            s1_size: byte(A7Field::S1Size),
            s2_level: byte(A7Field::S2Level),
        };
        descriptor.check_sizes()?;
        Ok(descriptor)
    }

    /// The first address of the 4 KiB page whose entry this is, at this place in the TLB: VA, then the seven bits of
    /// the index.
    ///
    /// # Errors
    /// A larger page: "after adjusting for the alignment" (section 3.2) says that it is found by higher bits, and
    /// neither paper nor manual says what VA then contains. Or VA has more than 13 bits.
    pub fn virtual_address(&self, at: ReadOperation) -> Result<u32, InterfaceError> {
        if self.size >> 1 != 0 {
            return Err(InterfaceError::LargerPage { size: self.size });
        }
        let va = u32::from(self.va);
        if va >> VA_BITS != 0 {
            return Err(InterfaceError::TooWide { layout: CORTEX_A7.name, field: "VA", value: va, bits: VA_BITS });
        }
        Ok((va << INDEX_BITS | u32::from(at.index)) << PAGE_SHIFT)
    }

    /// VA and index of the 4 KiB page that the address lies in.
    pub fn va_and_index(addr: u32) -> (u16, u8) {
        let page = addr >> PAGE_SHIFT;
        ((page >> INDEX_BITS) as u16, (page & (u32::from(A7_SETS) - 1)) as u8)
    }

    /// An entry covers what stage 1 translates, or less where stage 2 has smaller pages.
    fn check_sizes(&self) -> Result<(), InterfaceError> {
        if self.valid && self.size >> 1 > self.s1_size {
            return Err(InterfaceError::Covers { size: self.size, s1_size: self.s1_size });
        }
        Ok(())
    }
}
