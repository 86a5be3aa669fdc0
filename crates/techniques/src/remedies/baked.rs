//! The row for baking: a helper on another core keeps page-table lines in a cache that both share.

use lookaside_engine::{PagePolicy, Setup, WalkModel};

use super::variant::RemedyVariant;
use crate::bake::{ModelledBaker, TargetFinder, TouchMethod};
use crate::rerun::StretchCounts;
use crate::RemedyKind;

/// The helper that `lookaside bake run --settings prefetch` starts, for the process with most to bake. `None` where it
/// has nothing to do: no 4 MiB in one place, huge pages, or walks that read no memory in the model.
pub(crate) fn helper(base: &Setup, found: &TargetFinder) -> Option<ModelledBaker> {
    if base.walks != WalkModel::Full || base.os.pages != PagePolicy::Base {
        return None;
    }
    let targets = found.finish()?;
    Some(ModelledBaker::new(TouchMethod::Prefetch, targets.process, targets.ranges()))
}

/// The row, of the program's counts without the helper and with it.
pub(crate) fn variant(base: &Setup, (without, with): (&[StretchCounts], &[StretchCounts])) -> RemedyVariant {
    let [without, with] = [without, with].map(StretchCounts::sum);
    let others = |counts: &StretchCounts| counts.modelled_cycles - counts.translation_cycles;
    let change = (others(&with) - others(&without)) / without.modelled_cycles.max(1.0);
    RemedyVariant {
        kind: RemedyKind::Baked,
        what: "baking by a helper on another core".into(),
        setup: base.clone(),
        how: "lookaside bake run --settings prefetch CMD".into(),
        caveat: format!(
            "the helper takes a CPU to itself; what it pushes out of shared caches changes all cycles by {:+.1} %, \
             not counted in this row; memory bandwidth is not modelled",
            100.0 * change
        ),
        bloat_bytes: None,
    }
}
