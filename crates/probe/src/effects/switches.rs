//! Which entries outlive a system call, and a switch to another thread or process and back (PCID).

use serde::Serialize;

use super::lab::{Lab, Losses};
use super::{refused, twice};
use crate::bench::Halt;
use crate::finding::Finding;
use crate::metal::Act;

/// Pages that were loaded before: enough for a share, few enough that they all stay without the act.
const PAGES: usize = 32;
/// Samples of each.
const SAMPLES: usize = 256;
/// Looks agree where shares of lost entries differ by no more than this.
const AGREE: f64 = 0.1;

/// What an act leaves in the TLBs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// In the first level.
    pub l1: Lost,
    /// In the second level.
    pub stlb: Lost,
}

/// Entries lost of those that were loaded right before, a mean: the least and the most that two looks saw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// Loaded before.
    pub of: usize,
    /// The lower.
    pub low: f64,
    /// The higher.
    pub high: f64,
}

impl Lost {
    fn new(of: usize, a: f64, b: f64) -> Self {
        Self { of, low: a.min(b), high: a.max(b) }
    }

    /// Share of the entries lost: the mean of both looks.
    pub fn share(&self) -> f64 {
        (self.low + self.high) / 2.0 / self.of.max(1) as f64
    }
}

/// What is left after an act.
pub(super) fn kept(lab: &mut Lab<'_, '_, '_>, act: Act<'_>) -> Result<Finding<Kept>, Halt> {
    lab.bench.note(&format!("{act:?}"));
    let first = &lab.picker.levels.first;
    // In each set of the first level there has to be room for what the shot itself touches.
    let pages = PAGES.min(first.entries as usize / 2);
    let same = |a: &Losses, b: &Losses| {
        a.of == b.of && (a.l1 - b.l1).abs() <= AGREE * a.of as f64 && (a.stlb - b.stlb).abs() <= AGREE * a.of as f64
    };
    let found = twice(|| lab.losses(&[act], pages, SAMPLES), same);
    refused(found.map(|found| match found {
        Ok((a, b)) => {
            let kept = Kept { l1: Lost::new(a.of, a.l1, b.l1), stlb: Lost::new(a.of, a.stlb, b.stlb) };
            let said = |x: &Losses| {
                format!("of {} entries {:.1} lost in the first level, {:.1} in the second", x.of, x.l1, x.stlb)
            };
            Finding::confirmed(kept, vec![said(&a), said(&b)])
        }
        Err(all) => {
            let seen = all.iter().map(|x| format!("of {}: {:.1} and {:.1}", x.of, x.l1, x.stlb)).collect();
            Finding::not_determined("no two looks see the same").with_evidence(seen)
        }
    }))
}
