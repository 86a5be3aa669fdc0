//! Set-index functions: a matrix over GF(2), one mask of page-number bits an index bit.

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// A set-index function. Bit `i` of the set number is `parity(page_number & mask[i])` (in data caches, of the line
/// number).
///
/// The TOML writes it as the word `"linear"`, or as a list of masks, each a `"0x…"` string or a whole number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The low bits?
    pub(crate) fn is_linear(&self) -> bool {
        *self == Self::Linear
    }

    /// The set of a page number, straight from the definition.
    pub fn set_of(&self, page_number: u64, sets: u32) -> u32 {
        self.masks(sets).iter().enumerate().map(|(bit, mask)| ((page_number & mask).count_ones() & 1) << bit).sum()
    }

    /// The first mask that is a sum over GF(2) of those before it, or zero: with it some sets are never used.
    pub(crate) fn first_dependent(&self) -> Option<usize> {
        let Self::Masks(masks) = self else { return None };
        // Rows sorted from the highest leading bit down; no two have the same one.
        let mut basis: Vec<u64> = Vec::new();
        for (i, mask) in masks.iter().enumerate() {
            let rest = basis.iter().fold(*mask, |rest, row| rest.min(rest ^ row));
            if rest == 0 {
                return Some(i);
            }
            basis.push(rest);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
        None
    }
}

impl Serialize for IndexFn {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Linear => s.serialize_str("linear"),
            Self::Masks(masks) => s.collect_seq(masks.iter().map(|mask| format!("{mask:#x}"))),
        }
    }
}

impl<'de> Deserialize<'de> for IndexFn {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MasksVisitor;
        impl<'de> de::Visitor<'de> for MasksVisitor {
            type Value = IndexFn;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"linear\" or a list of masks")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<IndexFn, E> {
                if word == "linear" {
                    return Ok(IndexFn::Linear);
                }
                Err(E::invalid_value(de::Unexpected::Str(word), &self))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<IndexFn, A::Error> {
                let mut masks = Vec::new();
                while let Some(Mask(mask)) = list.next_element()? {
                    masks.push(mask);
                }
                Ok(IndexFn::Masks(masks))
            }
        }
        d.deserialize_any(MasksVisitor)
    }
}

/// One mask: a `"0x…"` string, or a whole number.
struct Mask(u64);

impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MaskVisitor;
        impl de::Visitor<'_> for MaskVisitor {
            type Value = Mask;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mask: \"0x…\" in hexadecimal, or a whole number")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Mask, E> {
                u64::try_from(n).map(Mask).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Mask, E> {
                Ok(Mask(n))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Mask, E> {
                text.strip_prefix("0x")
                    .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                    .map(Mask)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        d.deserialize_any(MaskVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::IndexFn;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dependent_means_that_some_subset_cancels(masks in proptest::collection::vec(0u64..64, 0..8)) {
            // The first mask that, with some choice of those before it, XORs to nothing.
            let cancels = |i: usize| {
                (0u32..1 << i).any(|choice| {
                    let chosen = (0..i).filter(|bit| choice >> bit & 1 == 1);
                    chosen.fold(masks[i], |sum, before| sum ^ masks[before]) == 0
                })
            };
            let naive = (0..masks.len()).find(|&i| cancels(i));
            prop_assert_eq!(IndexFn::Masks(masks.clone()).first_dependent(), naive);
        }
    }
}
