//! What CPUID or sysfs says of one TLB or cache, and whether that agrees with the measurement.

use lookaside_machine::PageSize;
use serde::Serialize;

/// A thing that is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "part")]
pub enum HardwarePart {
    /// What translates loads at a level; its amount is entries.
    DataTlb {
        /// 1 or 2.
        level: u32,
        /// Size of the pages.
        page_size: PageSize,
    },
    /// A data or unified cache; its amount is bytes.
    DataCache {
        /// From 1.
        level: u32,
    },
}

/// Entries or bytes, and how many ways share a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PartSize {
    /// Entries of a TLB, bytes of a cache.
    pub amount: u64,
    /// The most it can be, where a measurement gives a range; else the same again.
    pub most: u64,
    /// Fewest and most ways: some encodings give a range, a measurement gives the same twice. `None` = not said.
    pub ways: Option<(u32, u32)>,
}

impl PartSize {
    /// This many ways exactly.
    pub fn new(amount: u64, ways: u32) -> Self {
        Self { amount, most: amount, ways: Some((ways, ways)) }
    }

    /// From this much to that much, of some number of ways.
    pub fn between(amount: u64, most: u64) -> Self {
        Self { amount, most, ways: None }
    }

    fn allows(&self, measured: &PartSize) -> bool {
        let ways = match (self.ways, measured.ways) {
            (Some((low, high)), Some((least, most))) => low <= least && most <= high,
            _ => true,
        };
        (measured.amount..=measured.most).contains(&self.amount) && ways
    }
}

/// What a source says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Claim {
    /// Where it is said: a CPUID leaf, a file.
    pub source: String,
    /// Of what.
    #[serde(flatten)]
    pub part: HardwarePart,
    /// What.
    #[serde(rename = "stated")]
    pub shape: PartSize,
    /// Arrays that it is the sum of (Golden Cove's second level has two for 4 KiB pages).
    pub arrays: u32,
}

/// A statement beside what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CheckedClaim {
    /// The measured value; `None` = not determined, or not looked at.
    pub measured: Option<PartSize>,
    /// What is said.
    #[serde(flatten)]
    pub stated: Claim,
    /// Whether they agree; `None` = nothing was measured.
    pub agrees: Option<bool>,
}

impl CheckedClaim {
    /// Holds a statement against a measurement.
    pub fn new(stated: Claim, measured: Option<PartSize>) -> Self {
        let agrees = measured.map(|measured| stated.shape.allows(&measured));
        Self { measured, stated, agrees }
    }
}

/// Adds a statement; another of the same source about the same part is another array of it.
pub(super) fn add(list: &mut Vec<Claim>, source: &str, part: HardwarePart, shape: PartSize) {
    let same = list.iter_mut().find(|stated| stated.part == part && stated.source == source);
    let Some(same) = same else {
        list.push(Claim { source: source.into(), part, shape, arrays: 1 });
        return;
    };
    // Arrays of as many sets are, to a page, ways of one; of others no number of ways can be said.
    let sets = |shape: &PartSize| shape.ways.map(|ways| shape.amount / u64::from(ways.0.max(1)));
    same.shape.ways = match (same.shape.ways, shape.ways) {
        (Some(one), Some(other)) if sets(&same.shape) == sets(&shape) => {
            Some((one.0.saturating_add(other.0), one.1.saturating_add(other.1)))
        }
        _ => None,
    };
    same.shape.amount += shape.amount;
    same.shape.most += shape.most;
    same.arrays += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: HardwarePart = HardwarePart::DataTlb { level: 2, page_size: PageSize::K4 };

    #[test]
    fn a_claim_agrees_if_it_allows_what_was_measured() {
        let stated = |amount, ways| Claim {
            source: "it".into(),
            part: PART,
            shape: PartSize { amount, most: amount, ways },
            arrays: 1,
        };
        let agrees = |stated, measured| CheckedClaim::new(stated, measured).agrees;
        let measured = Some(PartSize::new(1536, 12));
        assert_eq!(agrees(stated(1536, Some((12, 12))), measured), Some(true));
        assert_eq!(agrees(stated(1536, Some((8, 15))), measured), Some(true));
        assert_eq!(agrees(stated(1536, None), measured), Some(true));
        assert_eq!(agrees(stated(1536, Some((6, 6))), measured), Some(false));
        assert_eq!(agrees(stated(1024, None), measured), Some(false));
        assert_eq!(agrees(stated(1024, None), None), None);
        // A range that was measured.
        let measured = Some(PartSize::between(1000, 1600));
        assert_eq!(agrees(stated(1024, Some((4, 4))), measured), Some(true));
        assert_eq!(agrees(stated(2048, None), measured), Some(false));
    }

    #[test]
    fn arrays_of_as_many_sets_are_ways_of_one() {
        let mut list = Vec::new();
        add(&mut list, "it", PART, PartSize::new(1024, 8));
        add(&mut list, "it", PART, PartSize::new(1024, 8));
        add(&mut list, "another", PART, PartSize::new(5, 5));
        assert_eq!((list[0].shape, list[0].arrays, list.len()), (PartSize::new(2048, 16), 2, 2));
        add(&mut list, "it", PART, PartSize::new(16, 16));
        assert_eq!((list[0].shape, list[0].arrays), (PartSize::between(2064, 2064), 3));
    }
}
