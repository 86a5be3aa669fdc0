//! Set-index functions: a matrix over GF(2), one mask of page-number bits an index bit.

use serde::{Deserialize, Serialize};

/// A set-index function. Bit `i` of the set number is `parity(page_number & mask[i])`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawIndex", into = "RawIndex")]
pub enum IndexFn {
    /// The low log2(sets) bits of the page number.
    #[default]
    Linear,
    /// One mask an index bit, low bit first.
    Masks(Vec<u64>),
}

impl IndexFn {
    /// The masks for an array of `sets` sets (a power of two).
    pub fn masks(&self, sets: u32) -> Vec<u64> {
        match self {
            Self::Linear => (0..sets.trailing_zeros()).map(|bit| 1u64 << bit).collect(),
            Self::Masks(masks) => masks.clone(),
        }
    }

    /// The set of a page number, straight from the definition.
    pub fn set_of(&self, page_number: u64, sets: u32) -> u32 {
        self.masks(sets).iter().enumerate().map(|(bit, mask)| ((page_number & mask).count_ones() & 1) << bit).sum()
    }
}

/// How the TOML writes it: the word `"linear"`, or a list of masks as integers or `"0x…"` strings.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawIndex {
    Word(String),
    Masks(Vec<RawMask>),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawMask {
    Number(u64),
    Text(String),
}

impl TryFrom<RawIndex> for IndexFn {
    type Error = String;

    fn try_from(raw: RawIndex) -> Result<Self, String> {
        match raw {
            RawIndex::Word(word) if word == "linear" => Ok(Self::Linear),
            RawIndex::Word(word) => Err(format!("index {word:?} is not known; write \"linear\" or a list of masks")),
            RawIndex::Masks(masks) => masks
                .into_iter()
                .map(|mask| match mask {
                    RawMask::Number(n) => Ok(n),
                    RawMask::Text(t) => t
                        .strip_prefix("0x")
                        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                        .ok_or_else(|| format!("index mask {t:?} is not of the form \"0x…\"")),
                })
                .collect::<Result<_, _>>()
                .map(Self::Masks),
        }
    }
}

impl From<IndexFn> for RawIndex {
    fn from(index: IndexFn) -> Self {
        match index {
            IndexFn::Linear => Self::Word("linear".into()),
            IndexFn::Masks(masks) => Self::Masks(masks.into_iter().map(|m| RawMask::Text(format!("{m:#x}"))).collect()),
        }
    }
}
