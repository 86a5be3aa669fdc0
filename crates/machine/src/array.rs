//! What a description says of TLBs, walk caches and data caches alike: ways, policy, who asks, who shares.

use serde::{de, Deserialize, Deserializer, Serialize};

/// Ways of a set-associative array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Ways {
    /// This many ways.
    Count(u32),
    /// Fully associative; written `"full"`.
    Full(Full),
}

impl Ways {
    /// The number of ways in an array of `entries` entries.
    pub fn count(self, entries: u32) -> u32 {
        match self {
            Self::Count(ways) => ways,
            Self::Full(Full::Full) => entries,
        }
    }

    /// The number of sets in an array of `entries` entries; 0 for an array without entries or ways.
    pub fn sets(self, entries: u32) -> u32 {
        entries.checked_div(self.count(entries)).unwrap_or(0)
    }
}

impl std::fmt::Display for Ways {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(ways) => ways.fmt(f),
            Self::Full(Full::Full) => "full".fmt(f),
        }
    }
}

// By hand: serde's own reading of an untagged enum says only that no variant fits.
impl<'de> Deserialize<'de> for Ways {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct WaysVisitor;
        impl de::Visitor<'_> for WaysVisitor {
            type Value = Ways;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number or \"full\"")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Ways, E> {
                let ways = u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))?;
                Ok(Ways::Count(ways))
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Ways, E> {
                let ways = u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))?;
                Ok(Ways::Count(ways))
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Ways, E> {
                if word == "full" {
                    return Ok(Ways::Full(Full::Full));
                }
                Err(E::invalid_value(de::Unexpected::Str(word), &self))
            }
        }
        d.deserialize_any(WaysVisitor)
    }
}

/// The word `"full"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Full {
    /// Fully associative.
    Full,
}

/// Kind of access that a TLB array serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Serves {
    /// Data loads.
    Load,
    /// Data stores.
    Store,
    /// Instruction fetches.
    Fetch,
}

/// Replacement policy of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Least recently used, exact.
    Lru,
    /// Tree pseudo-LRU; a tree of a number of ways that is no power of two has the shape of [`crate::tree_left_ways`].
    TreePlru,
    /// First in, first out; the same as round robin over the ways.
    Fifo,
    /// Seeded pseudo-random way; an invalid way is used first.
    Random,
    /// Static re-reference interval prediction, 2 bits, hit priority: what was filled goes before what was hit (Jaleel
    /// et al., ISCA 2010, section 4.1). Only in data caches that others are asked before.
    Srrip,
}

/// What fills a data cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FilledBy {
    /// The lines that it is asked for in vain.
    #[default]
    Misses,
    /// The lines that the cache before it throws out. A hit moves the line to the caches before (an exclusive or victim
    /// cache: AMD's L3, those of Intel's servers since Skylake).
    Victims,
}

impl FilledBy {
    pub(crate) fn is_misses(&self) -> bool {
        *self == Self::Misses
    }
}

/// What an entry is tagged with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// Address-space identifier (ARM ASID, x86 PCID).
    Asid,
    /// Virtual-machine identifier.
    Vmid,
    /// Hardware thread that filled it.
    HwThread,
    /// ARM domain number.
    Domain,
    /// The global bit is honoured: a global entry matches every address space.
    Global,
}

/// Who shares one instance of an array or cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SharedBy {
    /// One a hardware thread.
    Thread,
    /// One a core.
    #[default]
    Core,
    /// One a socket.
    Socket,
}
