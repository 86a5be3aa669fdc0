//! Page-table formats: how a virtual address picks its entry in each table, and which levels may be leaves.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{format_bytes, parse_bytes};

/// A page size, a power of two of at least 1 KiB; written `"4K"`, `"2M"`, `"1G"` in the TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u8);

impl PageSize {
    /// 4 KiB, the base page of every format here.
    pub const K4: Self = Self(12);
    /// 64 KiB (ARM short-descriptor large page).
    pub const K64: Self = Self(16);
    /// 1 MiB (ARM short-descriptor section).
    pub const M1: Self = Self(20);
    /// 2 MiB.
    pub const M2: Self = Self(21);
    /// 16 MiB (ARM short-descriptor supersection).
    pub const M16: Self = Self(24);
    /// 1 GiB.
    pub const G1: Self = Self(30);

    /// From log2 of the size in bytes; `None` below 1 KiB or above 2^52.
    pub fn from_shift(shift: u32) -> Option<Self> {
        (10..=52).contains(&shift).then_some(Self(shift as u8))
    }

    /// log2 of the size in bytes.
    #[inline]
    pub fn shift(self) -> u32 {
        u32::from(self.0)
    }

    /// Size in bytes.
    #[inline]
    pub fn bytes(self) -> u64 {
        1 << self.0
    }
}

impl std::fmt::Display for PageSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format_bytes(self.bytes()))
    }
}

impl std::str::FromStr for PageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = parse_bytes(text)?;
        if !bytes.is_power_of_two() {
            return Err(format!("page size {text:?} is not a power of two"));
        }
        Self::from_shift(bytes.trailing_zeros()).ok_or_else(|| format!("page size {text:?} is out of range"))
    }
}

impl Serialize for PageSize {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PageSize {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A page-table format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TableFormat {
    /// x86-64, 4 levels, 48-bit addresses; 4K, 2M, 1G (Intel SDM vol. 3A §4.5).
    #[serde(rename = "x86-64-4level")]
    X86_64L4,
    /// x86-64, 5 levels, 57-bit addresses; 4K, 2M, 1G.
    #[serde(rename = "x86-64-5level")]
    X86_64L5,
    /// ARMv7 short descriptors, 2 levels, 4-byte entries; 4K, 64K, 1M, 16M (ARM ARM DDI 0406C §B3.5).
    #[serde(rename = "armv7-short")]
    Armv7Short,
    /// ARMv7 LPAE long descriptors, 3 levels, 32-bit addresses; 4K, 2M, 1G (§B3.6).
    #[serde(rename = "armv7-lpae")]
    Armv7Lpae,
    /// AArch64, 4 KiB granule, 4 levels, 48-bit addresses; 4K, 2M, 1G (ARM ARM DDI 0487 §D8.2).
    #[serde(rename = "aarch64-4k")]
    Aarch64K4,
    /// RISC-V Sv39, 3 levels; 4K, 2M, 1G (Privileged Architecture §12.4).
    #[serde(rename = "sv39")]
    Sv39,
    /// RISC-V Sv48, 4 levels; 4K, 2M, 1G (and 512G, not modelled).
    #[serde(rename = "sv48")]
    Sv48,
}

/// One level of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLevel {
    /// Number of the level, the leaf table being 1.
    pub level: u32,
    /// Lowest virtual-address bit of this level's index.
    pub index_low_bit: u32,
    /// Bits of this level's index: the table has `2^index_bits` entries.
    pub index_bits: u32,
    /// Bytes an entry: 4 or 8.
    pub entry_bytes: u32,
    /// Page sizes that may end a walk here. A size larger than `2^index_low_bit` is written as
    /// repeated entries (ARM 64K and 16M: 16 neighbouring entries).
    pub leaf_sizes: &'static [PageSize],
}

impl TableLevel {
    /// Index of an address's entry in this level's table.
    #[inline]
    pub fn index_of(self, address: u64) -> u64 {
        (address >> self.index_low_bit) & ((1 << self.index_bits) - 1)
    }
}

impl TableFormat {
    /// Levels of a walk, root first.
    pub fn levels(self) -> &'static [TableLevel] {
        const fn l(level: u32, low: u32, bits: u32, entry: u32, leaf: &'static [PageSize]) -> TableLevel {
            TableLevel { level, index_low_bit: low, index_bits: bits, entry_bytes: entry, leaf_sizes: leaf }
        }
        const L4: &[TableLevel] = &[
            l(4, 39, 9, 8, &[]),
            l(3, 30, 9, 8, &[PageSize::G1]),
            l(2, 21, 9, 8, &[PageSize::M2]),
            l(1, 12, 9, 8, &[PageSize::K4]),
        ];
        const L5: &[TableLevel] = &[
            l(5, 48, 9, 8, &[]),
            l(4, 39, 9, 8, &[]),
            l(3, 30, 9, 8, &[PageSize::G1]),
            l(2, 21, 9, 8, &[PageSize::M2]),
            l(1, 12, 9, 8, &[PageSize::K4]),
        ];
        const SHORT: &[TableLevel] =
            &[l(2, 20, 12, 4, &[PageSize::M1, PageSize::M16]), l(1, 12, 8, 4, &[PageSize::K4, PageSize::K64])];
        const LPAE: &[TableLevel] =
            &[l(3, 30, 2, 8, &[PageSize::G1]), l(2, 21, 9, 8, &[PageSize::M2]), l(1, 12, 9, 8, &[PageSize::K4])];
        const SV39: &[TableLevel] =
            &[l(3, 30, 9, 8, &[PageSize::G1]), l(2, 21, 9, 8, &[PageSize::M2]), l(1, 12, 9, 8, &[PageSize::K4])];
        match self {
            Self::X86_64L4 | Self::Aarch64K4 | Self::Sv48 => L4,
            Self::X86_64L5 => L5,
            Self::Armv7Short => SHORT,
            Self::Armv7Lpae => LPAE,
            Self::Sv39 => SV39,
        }
    }

    /// Bits of a virtual address that are translated; higher bits are ignored by the model.
    pub fn address_bits(self) -> u32 {
        let root = self.levels()[0];
        root.index_low_bit + root.index_bits
    }

    /// Page sizes that the format has, smallest first.
    pub fn page_sizes(self) -> Vec<PageSize> {
        let mut sizes: Vec<_> = self.levels().iter().flat_map(|l| l.leaf_sizes.iter().copied()).collect();
        sizes.sort();
        sizes
    }
}
