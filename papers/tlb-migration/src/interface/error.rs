//! What an encoder, a decoder or a port refuses, and why.

use thiserror::Error;

use super::version::{Version, AGES};

/// Why bits are no entry, an entry has no bits, or a register was accessed out of turn. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InterfaceError {
    /// A number that a field has no room for.
    #[error("{layout}: {field} {value:#x} does not fit in {bits} bits")]
    TooWide {
        /// Which layout.
        layout: &'static str,
        /// Its field.
        field: &'static str,
        /// As given.
        value: u32,
        /// What there is.
        bits: u32,
    },
    /// Bits of no field are set.
    #[error("{layout}: bits {bits:#x} belong to no field and have to be zero")]
    Reserved {
        /// Which layout.
        layout: &'static str,
        /// Those that are set.
        bits: u128,
    },
    /// A number that the field cannot have.
    #[error("{layout}: {field} cannot be {value:#x}")]
    Unused {
        /// Which layout.
        layout: &'static str,
        /// Its field.
        field: &'static str,
        /// As found.
        value: u32,
    },
    /// A page size and a level of the walk that do not go together.
    #[error("{layout}: page shift {shift} does not come from level {level} of a table walk")]
    Level {
        /// Which layout.
        layout: &'static str,
        /// log2 of the page's bytes.
        shift: u32,
        /// 1 or 2.
        level: u32,
    },
    /// A page size that only version 1 has a code for.
    #[error("{layout}: has one bit for the page size, 4 KiB or 1 MiB: no code for pages of 2^{shift} bytes")]
    PageSize {
        /// Which layout.
        layout: &'static str,
        /// log2 of the page's bytes.
        shift: u32,
    },
    /// An address that no page of that size has.
    #[error("page number {page:#x} is not a multiple of a page of 2^{shift} bytes")]
    Unaligned {
        /// In units of 4 KiB.
        page: u32,
        /// log2 of the page's bytes.
        shift: u32,
    },
    /// A field that the layout leaves out can only have one value.
    #[error("{layout}: has no {field}, which is taken for 1")]
    LeftOut {
        /// Which layout.
        layout: &'static str,
        /// The field.
        field: &'static str,
    },
    /// An entry of a Cortex-A7 that covers more than its stage 1 translates.
    #[error("Cortex-A7 descriptor: Size {size:#05b} covers more than S1 Size {s1_size:#04b}")]
    Covers {
        /// Code of the entry's size.
        size: u8,
        /// Code of stage 1's.
        s1_size: u8,
    },
    /// The address of a large page's entry.
    #[error("Cortex-A7 descriptor: Size {size:#05b} is no 4 KiB page: how its address is stored is not published")]
    LargerPage {
        /// Code of the entry's size.
        size: u8,
    },
    /// An index of another RAM than the main TLB's.
    #[error("TLB index {index} is not in the main TLB (0 to 127): {ram}")]
    OtherRam {
        /// As asked.
        index: u8,
        /// What lies there.
        ram: &'static str,
    },
    /// A way that there is not.
    #[error("TLB way {way}: there are 2")]
    Way {
        /// As asked.
        way: u8,
    },
    /// An index beyond the TLB.
    #[error("TLB index {index:#x}: there are {entries} entries")]
    Index {
        /// As written.
        index: u32,
        /// How many.
        entries: u32,
    },
    /// More than eight bits of ASID.
    #[error("ASID {value:#x} written to the operation register: it has 8 bits")]
    Asid {
        /// As written.
        value: u32,
    },
    /// Software that reads every entry is not told its age.
    #[error("{version} does not choose entries by age: V3 and V4 do")]
    NoAges {
        /// Which version.
        version: Version,
    },
    /// An age that there is not.
    #[error("entries younger than {value}: 1 to {} can be asked for, the last of which is all", AGES)]
    Age {
        /// As written.
        value: u32,
    },
    /// A register that this version does not have.
    #[error("{version} has no Data Register {register}")]
    NoRegister {
        /// Which version.
        version: Version,
        /// As asked.
        register: usize,
    },
    /// Data registers accessed in the wrong order.
    #[error("{version}: Data Register {register} accessed where Data Register {expected} is next")]
    Order {
        /// Which version.
        version: Version,
        /// As asked.
        register: usize,
        /// What would have been right.
        expected: usize,
    },
    /// An entry committed in parts.
    #[error("{version}: entry committed before Data Register {register} was written")]
    Unwritten {
        /// Which version.
        version: Version,
        /// The one missing.
        register: usize,
    },
    /// Data registers before the operation register.
    #[error("{version}: data accessed before an {wanted} was written to the operation register")]
    NotStarted {
        /// Which version.
        version: Version,
        /// Index or ASID.
        wanted: &'static str,
    },
    /// The operation register can only be written.
    #[error("the operation register is write-only")]
    WriteOnly,
    /// An entry written with its valid bit clear, or of zeros.
    #[error("{version}: the entry written is not valid")]
    Invalid {
        /// Which version.
        version: Version,
    },
    /// A stream longer than the TLB.
    #[error("V4: stream of more than {entries} entries, as many as the TLB has")]
    TooMany {
        /// What the TLB holds.
        entries: u32,
    },
    /// Eight zero bytes amid the entries of version 4, which would end the stream.
    #[error("V4: entries up to number {entry} pack to a pair of zero registers, which would end the stream")]
    ZeroPair {
        /// Of the entries, from 0.
        entry: usize,
    },
    /// Something behind the last entry of version 4.
    #[error("V4: byte {byte} is not zero, behind the last entry of the stream")]
    Padding {
        /// Of the stream, from 0.
        byte: usize,
    },
}
