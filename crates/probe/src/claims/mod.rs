//! What the processor and the system say of themselves, held against what was measured.
//!
//! In a virtual machine CPUID is what the hypervisor lets through, and sysfs is derived from it: a claim, no more.

mod cpuid;
mod sysfs;

pub use cpuid::{stated as stated_by_cpuid, Leaf};
pub use sysfs::stated as stated_by_sysfs;

use std::path::Path;

use lookaside_machine::PageSize;
use serde::Serialize;

use crate::run::Report;

/// A thing that is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "part")]
pub enum Part {
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
pub struct Shape {
    /// Entries of a TLB, bytes of a cache.
    pub amount: u64,
    /// The most it can be, where a measurement gives a range; else the same again.
    pub most: u64,
    /// Fewest and most ways: some encodings give a range, a measurement gives the same twice. `None` = not said.
    pub ways: Option<(u32, u32)>,
}

impl Shape {
    /// This many ways exactly.
    pub fn new(amount: u64, ways: u32) -> Self {
        Self { amount, most: amount, ways: Some((ways, ways)) }
    }

    /// From this much to that much, of some number of ways.
    pub fn between(amount: u64, most: u64) -> Self {
        Self { amount, most, ways: None }
    }

    fn allows(&self, measured: &Shape) -> bool {
        let ways = match (self.ways, measured.ways) {
            (Some((low, high)), Some((least, most))) => low <= least && most <= high,
            _ => true,
        };
        (measured.amount..=measured.most).contains(&self.amount) && ways
    }
}

/// What a source says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stated {
    /// Where it is said: a CPUID leaf, a file.
    pub source: String,
    /// Of what.
    #[serde(flatten)]
    pub part: Part,
    /// What.
    #[serde(rename = "stated")]
    pub shape: Shape,
    /// Arrays that it is the sum of (Golden Cove's second level has two for 4 KiB pages).
    pub arrays: u32,
}

/// A statement beside what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The measured value; `None` = not determined, or not looked at.
    pub measured: Option<Shape>,
    /// What is said.
    #[serde(flatten)]
    pub stated: Stated,
    /// Whether they agree; `None` = nothing was measured.
    pub agrees: Option<bool>,
}

impl Claim {
    /// Holds a statement against a measurement.
    pub fn new(stated: Stated, measured: Option<Shape>) -> Self {
        let agrees = measured.map(|measured| stated.shape.allows(&measured));
        Self { measured, stated, agrees }
    }
}

/// Adds a statement; another of the same source about the same part is another array of it.
fn add(list: &mut Vec<Stated>, source: &str, part: Part, shape: Shape) {
    let same = list.iter_mut().find(|stated| stated.part == part && stated.source == source);
    let Some(same) = same else {
        list.push(Stated { source: source.into(), part, shape, arrays: 1 });
        return;
    };
    // Arrays of as many sets are, to a page, ways of one; of others no number of ways can be said.
    let sets = |shape: &Shape| shape.ways.map(|ways| shape.amount / u64::from(ways.0.max(1)));
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

/// What CPUID (on x86-64) and sysfs say about this CPU. To be called on it: cores of one machine can differ.
pub fn stated_here(cpu: usize) -> Vec<Stated> {
    let mut stated = cpuid::here();
    stated.extend(sysfs::stated(Path::new("/sys/devices/system/cpu"), cpu));
    stated
}

impl Report {
    /// Holds what is stated against what was found, and keeps both.
    pub fn compare(&mut self, stated: Vec<Stated>) {
        let claims = stated.into_iter().map(|stated| {
            let measured = self.measured(stated.part);
            Claim::new(stated, measured)
        });
        self.claims = claims.collect();
    }

    fn measured(&self, part: Part) -> Option<Shape> {
        match part {
            Part::DataTlb { level, page_size } => {
                let found = self.levels.iter().find(|found| (found.level, found.page_size) == (level, page_size))?;
                let geometry = found.geometry.value()?;
                Some(Shape::new(geometry.entries.into(), geometry.ways))
            }
            Part::DataCache { level } => {
                let found = self.caches.as_ref()?.levels.iter().find(|found| found.level == level)?;
                if let Some(shape) = found.shape.value() {
                    return Some(Shape::new(shape.bytes, shape.ways));
                }
                let bytes = found.bytes.value()?;
                Some(Shape::between(bytes.low as u64, bytes.high as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part::DataTlb { level: 2, page_size: PageSize::K4 };

    #[test]
    fn a_claim_agrees_if_it_allows_what_was_measured() {
        let stated = |amount, ways| Stated {
            source: "it".into(),
            part: PART,
            shape: Shape { amount, most: amount, ways },
            arrays: 1,
        };
        let agrees = |stated, measured| Claim::new(stated, measured).agrees;
        let measured = Some(Shape::new(1536, 12));
        assert_eq!(agrees(stated(1536, Some((12, 12))), measured), Some(true));
        assert_eq!(agrees(stated(1536, Some((8, 15))), measured), Some(true));
        assert_eq!(agrees(stated(1536, None), measured), Some(true));
        assert_eq!(agrees(stated(1536, Some((6, 6))), measured), Some(false));
        assert_eq!(agrees(stated(1024, None), measured), Some(false));
        assert_eq!(agrees(stated(1024, None), None), None);
        // A range that was measured.
        let measured = Some(Shape::between(1000, 1600));
        assert_eq!(agrees(stated(1024, Some((4, 4))), measured), Some(true));
        assert_eq!(agrees(stated(2048, None), measured), Some(false));
    }

    #[test]
    fn arrays_of_as_many_sets_are_ways_of_one() {
        let mut list = Vec::new();
        add(&mut list, "it", PART, Shape::new(1024, 8));
        add(&mut list, "it", PART, Shape::new(1024, 8));
        add(&mut list, "another", PART, Shape::new(5, 5));
        assert_eq!((list[0].shape, list[0].arrays, list.len()), (Shape::new(2048, 16), 2, 2));
        add(&mut list, "it", PART, Shape::new(16, 16));
        assert_eq!((list[0].shape, list[0].arrays), (Shape::between(2064, 2064), 3));
    }
}
