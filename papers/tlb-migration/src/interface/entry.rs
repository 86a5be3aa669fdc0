//! An entry of the simulated TLB, and its bits in versions 1 to 3 of the interface.

use super::error::InterfaceError;
use super::layout::RegisterLayout;
use super::tables::{Gem5Field, V1, V2, V3};

/// What an entry covers: the sizes of ARMv7's short descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArmPageSize {
    /// 4 KiB.
    Small,
    /// 64 KiB. Version 1 only.
    Large,
    /// 1 MiB.
    Section,
    /// 16 MiB. Version 1 only.
    Supersection,
}

impl ArmPageSize {
    /// All.
    pub const ALL: [Self; 4] = [Self::Small, Self::Large, Self::Section, Self::Supersection];

    /// log2 of its bytes: what the paper calls page shift factor.
    pub fn shift(self) -> u32 {
        match self {
            Self::Small => 12,
            Self::Large => 16,
            Self::Section => 20,
            Self::Supersection => 24,
        }
    }

    /// Level of the table walk that ends with it.
    pub fn level(self) -> u32 {
        match self {
            Self::Small | Self::Large => 2,
            Self::Section | Self::Supersection => 1,
        }
    }

    /// In units of 4 KiB.
    fn pages(self) -> u32 {
        1 << (self.shift() - Self::Small.shift())
    }
}

/// A valid entry. The numbers of ap, attributes, inner and outer attributes, domain and mtype are gem5's.
///
/// Versions 2 and 3 have fewer bits for some; by which codes is not published ("a more sophisticated encoding", section
/// 5.1). Here a number that fits is written as it is, and one that does not is refused. They have none for shareable:
/// it must have had one value, and as Linux on four cores maps memory shareable, that is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Address space.
    pub asid: u8,
    /// Size, and by that N and lookupLevel.
    pub page: ArmPageSize,
    /// Virtual address in units of 4 KiB, 20 bits, whatever the size: section 3.2 has 20 bits for that. (gem5 itself
    /// shifts by N.)
    pub v_page: u32,
    /// Physical address in units of 4 KiB, 20 bits.
    pub p_page: u32,
    /// Access permissions.
    pub ap: u8,
    /// Memory attributes as in the physical address register, 12 bits.
    pub attributes: u16,
    /// Inner attributes, 3 bits.
    pub inner_attrs: u8,
    /// Outer attributes: gem5 has two bits, the paper one.
    pub outer_attrs: bool,
    /// 0 no access, 1 client, 2 reserved, 3 manager.
    pub domain: u8,
    /// 0 strongly ordered, 1 device, 2 normal.
    pub mtype: u8,
    /// Not cacheable.
    pub non_cacheable: bool,
    /// Shareable.
    pub shareable: bool,
    /// Execute never.
    pub xn: bool,
    /// For all address spaces.
    pub global: bool,
}

impl Entry {
    /// Its 92 bits in version 1.
    ///
    /// # Errors
    /// A number does not fit or means nothing, or an address is no multiple of the page's size.
    pub fn encode_v1(&self) -> Result<u128, InterfaceError> {
        self.encode(&V1, self.page.shift(), self.page.level())
    }

    /// Its 64 bits in version 2.
    ///
    /// # Errors
    /// As version 1; and the page is neither 4 KiB nor 1 MiB, or is not shareable.
    pub fn encode_v2(&self) -> Result<u64, InterfaceError> {
        let (n, level) = self.two_sizes(&V2)?;
        Ok(self.encode(&V2, n, level)? as u64)
    }

    /// Its 55 bits in versions 3 and 4, without ASID. Never all zero: N or lookupLevel is set.
    ///
    /// # Errors
    /// As version 2.
    pub fn encode_v3(&self) -> Result<u64, InterfaceError> {
        let (n, level) = self.two_sizes(&V3)?;
        Ok(self.encode(&V3, n, level)? as u64)
    }

    /// The entry in version 1; none if its valid bit is clear.
    ///
    /// # Errors
    /// A bit of no field is set, or a number means nothing.
    pub fn decode_v1(word: u128) -> Result<Option<Self>, InterfaceError> {
        V1.check_unused(word)?;
        if V1.number(word, Gem5Field::Valid) == 0 {
            return Ok(None);
        }
        let shift = V1.number(word, Gem5Field::N);
        let page = ArmPageSize::ALL.into_iter().find(|page| page.shift() == shift);
        let page = page.ok_or(InterfaceError::Unused { layout: V1.name, field: "N", value: shift })?;
        let level = V1.number(word, Gem5Field::LookupLevel);
        Self::decode(&V1, word, V1.number(word, Gem5Field::Asid) as u8, page, level).map(Some)
    }

    /// The entry in version 2; none if its valid bit is clear.
    ///
    /// # Errors
    /// A number means nothing.
    pub fn decode_v2(word: u64) -> Result<Option<Self>, InterfaceError> {
        let word = u128::from(word);
        if V2.number(word, Gem5Field::Valid) == 0 {
            return Ok(None);
        }
        let (page, level) = size_of_bits(&V2, word);
        Self::decode(&V2, word, V2.number(word, Gem5Field::Asid) as u8, page, level).map(Some)
    }

    /// The entry in versions 3 and 4, of a stream of this ASID; none if all is zero, which ends the stream.
    ///
    /// # Errors
    /// A bit of no field is set, or a number means nothing.
    pub fn decode_v3(word: u64, asid: u8) -> Result<Option<Self>, InterfaceError> {
        let word = u128::from(word);
        V3.check_unused(word)?;
        if word == 0 {
            return Ok(None);
        }
        let (page, level) = size_of_bits(&V3, word);
        Self::decode(&V3, word, asid, page, level).map(Some)
    }

    /// N and lookupLevel where they have one bit: 0 and 1 for 4 KiB at level 2, 1 and 0 for 1 MiB at level 1.
    ///
    /// Which of the two is which, and even which two, is not published. Linux maps 4 KiB pages and 1 MiB sections. And
    /// N counts up with the size, lookupLevel with the level: then no entry is all zero, and zeroed registers can end a
    /// stream.
    fn two_sizes(&self, layout: &RegisterLayout<Gem5Field>) -> Result<(u32, u32), InterfaceError> {
        match self.page {
            ArmPageSize::Small => Ok((0, 1)),
            ArmPageSize::Section => Ok((1, 0)),
            ArmPageSize::Large | ArmPageSize::Supersection => {
                Err(InterfaceError::PageSize { layout: layout.name, shift: self.page.shift() })
            }
        }
    }

    fn encode(&self, layout: &RegisterLayout<Gem5Field>, n: u32, level: u32) -> Result<u128, InterfaceError> {
        self.check(layout)?;
        layout.pack(|field| match field {
            Gem5Field::Asid => self.asid.into(),
            Gem5Field::Valid => 1,
            Gem5Field::N => n,
            Gem5Field::VAddr => self.v_page,
            Gem5Field::PAddr => self.p_page,
            Gem5Field::Ap => self.ap.into(),
            Gem5Field::Attributes => self.attributes.into(),
            Gem5Field::InnerAttrs => self.inner_attrs.into(),
            Gem5Field::OuterAttrs => self.outer_attrs.into(),
            Gem5Field::Domain => self.domain.into(),
            Gem5Field::MType => self.mtype.into(),
            Gem5Field::NonCacheable => self.non_cacheable.into(),
            Gem5Field::Shareable => self.shareable.into(),
            Gem5Field::Xn => self.xn.into(),
            Gem5Field::LookupLevel => level,
            Gem5Field::Global => self.global.into(),
        })
    }

    /// The level is the walk's, 1 or 2, as it should be for the page's size.
    fn decode(
        layout: &RegisterLayout<Gem5Field>,
        word: u128,
        asid: u8,
        page: ArmPageSize,
        level: u32,
    ) -> Result<Self, InterfaceError> {
        if level != page.level() {
            return Err(InterfaceError::Level { layout: layout.name, shift: page.shift(), level });
        }
        let number = |field| layout.number(word, field);
        let (bit, byte) = (|field| number(field) != 0, |field| number(field) as u8);
        let entry = Self {
            asid,
            page,
            v_page: number(Gem5Field::VAddr),
            p_page: number(Gem5Field::PAddr),
            ap: byte(Gem5Field::Ap),
            attributes: number(Gem5Field::Attributes) as u16,
            inner_attrs: byte(Gem5Field::InnerAttrs),
            outer_attrs: bit(Gem5Field::OuterAttrs),
            domain: byte(Gem5Field::Domain),
            mtype: byte(Gem5Field::MType),
            non_cacheable: bit(Gem5Field::NonCacheable),
            shareable: layout.row(Gem5Field::Shareable).is_none() || bit(Gem5Field::Shareable),
            xn: bit(Gem5Field::Xn),
            global: bit(Gem5Field::Global),
        };
        entry.check(layout)?;
        Ok(entry)
    }

    /// What both directions refuse.
    fn check(&self, layout: &RegisterLayout<Gem5Field>) -> Result<(), InterfaceError> {
        let shift = self.page.shift();
        if let Some(page) = [self.v_page, self.p_page].into_iter().find(|page| !page.is_multiple_of(self.page.pages()))
        {
            return Err(InterfaceError::Unaligned { page, shift });
        }
        // gem5's DomainType has four values, its MemoryType three; version 1 has a bit more than they need.
        let unused = |field, value: u8| Err(InterfaceError::Unused { layout: layout.name, field, value: value.into() });
        if self.domain > 3 {
            return unused("domain", self.domain);
        }
        if self.mtype > 2 {
            return unused("mtype", self.mtype);
        }
        if !self.shareable && layout.row(Gem5Field::Shareable).is_none() {
            return Err(InterfaceError::LeftOut { layout: layout.name, field: "shareable" });
        }
        Ok(())
    }
}

/// Page size and level where they have a bit each.
fn size_of_bits(layout: &RegisterLayout<Gem5Field>, word: u128) -> (ArmPageSize, u32) {
    let page = if layout.number(word, Gem5Field::N) == 0 { ArmPageSize::Small } else { ArmPageSize::Section };
    (page, layout.number(word, Gem5Field::LookupLevel) + 1)
}
