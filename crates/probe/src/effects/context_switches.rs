//! Which entries outlive a system call, and a switch to another thread or process and back (PCID).

use crate::bench::Halt;
use crate::effects::eviction_bench::{EntryLosses, EvictionBench};
use crate::effects::repeat::{refused, until_answers_agree};
use crate::finding::Finding;
use crate::metal::single_shot::Act;
use crate::report::effects::LostEntries;
use crate::report::effects::SwitchLosses;

/// Pages that were loaded before: enough for a share, few enough that they all stay without the act.
const PAGES: usize = 32;
/// Samples of each.
const SAMPLES: usize = 256;
/// Looks agree where shares of lost entries differ by no more than this.
const AGREE: f64 = 0.1;

/// What is left after an act.
pub(super) fn switch_losses(
    evictions: &mut EvictionBench<'_, '_, '_>,
    act: Act<'_>,
) -> Result<Finding<SwitchLosses>, Halt> {
    evictions.bench.note(&format!("{act:?}"));
    let first = &evictions.picker.levels.first;
    // In each set of the first level there has to be room for what the shot itself touches.
    let pages = PAGES.min(first.entries as usize / 2);
    let same = |a: &EntryLosses, b: &EntryLosses| {
        a.of == b.of && (a.l1 - b.l1).abs() <= AGREE * a.of as f64 && (a.stlb - b.stlb).abs() <= AGREE * a.of as f64
    };
    let found = until_answers_agree(|| evictions.losses(&[act], pages, SAMPLES), same);
    refused(found.map(|found| match found {
        Ok((a, b)) => {
            let kept =
                SwitchLosses { l1: LostEntries::new(a.of, a.l1, b.l1), stlb: LostEntries::new(a.of, a.stlb, b.stlb) };
            let said = |x: &EntryLosses| {
                format!("of {} entries {:.1} lost in the first level, {:.1} in the second", x.of, x.l1, x.stlb)
            };
            Finding::confirmed(kept, vec![said(&a), said(&b)])
        }
        Err(all) => {
            let seen = all.iter().map(|x| format!("of {}: {:.1} and {:.1}", x.of, x.l1, x.stlb)).collect();
            Finding::not_determined("no two measurements agree").with_evidence(seen)
        }
    }))
}
