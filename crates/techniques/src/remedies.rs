//! "What would help": the model run again with one thing changed.
//!
//! Each row is a [`Setup`] of its own, run over the same accesses as the base. Nothing is scaled or
//! guessed: a row is what the model counted.

pub(crate) mod baked;
mod hardware;
mod huge;
mod variant;
mod windows;

use lookaside_engine::{Filter, Setup};
use lookaside_stats::{ratio_of_sums, Figure};

use crate::rerun::StretchCounts;
use crate::{Remedy, RemedyKind};

pub use variant::{RemedyContext, RemedyVariant};

/// The variants worth running. Those that can't differ from the base (no mapping of a huge page's size, none in which
/// translation costs anything, no data cache, …) are left out.
pub fn variants(base: &Setup, context: RemedyContext) -> Vec<RemedyVariant> {
    let RemedyContext { outcome, what_if, .. } = context;
    let lockable = base.machine.tlbs.iter().any(|tlb| tlb.lockable_entries > 0);
    [
        huge::everywhere(base, outcome),
        windows::best(base, context),
        huge::code(base, outcome),
        huge::gigabyte(base, outcome),
        huge::on_the_host(base, outcome),
        hardware::without_host(base),
        (what_if || lockable).then(|| hardware::lock_best_pages(base, outcome)).flatten(),
        what_if.then(|| hardware::twice_the_last_level(base)).flatten(),
        what_if.then(|| hardware::walks_hit_last_cache(base)).flatten(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a recorder may leave out: exact for the base and, but for windows, for any later [`variants`] of it.
pub fn filter(base: &Setup) -> Filter {
    let mut setups = vec![base.clone()];
    setups.extend(huge::page(base).and_then(|_| huge::with_huge_pages(base)));
    setups.extend(hardware::twice_the_last_level(base).map(|v| v.setup));
    let (own, all) = (Filter::exact_for(&setups[..1]), Filter::exact_for(&setups));
    // Windows are worth it though huge pages may be asked for elsewhere, in another order.
    let same_tables = (own.stores_apart, own.unified) == (all.stores_apart, all.unified);
    Filter { window: if same_tables { own.window } else { all.window }, ..all }
}

/// What a comparison ran over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RerunScope {
    /// The counts are of windows of the run.
    pub(crate) is_sampled: bool,
    /// Accesses that were counted.
    pub(crate) accesses: u64,
    /// Of all recorded accesses, the share that was counted.
    pub(crate) accesses_share: f64,
    /// The counts of the whole run without a change, where windows stand for it.
    pub(crate) whole: Option<StretchCounts>,
    /// The recorder left out accesses that the variant would have told apart.
    pub(crate) approximate: bool,
}

/// Puts a variant's counts beside the base's, window by window. `None` where translation costs nothing in any of them,
/// or where the program's code has no page that is huge.
pub(crate) fn compare(
    variant: &RemedyVariant,
    (base, with): (&[StretchCounts], &[StretchCounts]),
    scope: RerunScope,
) -> Option<Remedy> {
    let (base_sum, sum) = (StretchCounts::sum(base), StretchCounts::sum(with));
    let unchanged = variant.kind == RemedyKind::HugeCode && sum == base_sum;
    if base_sum.translation_cycles <= 0.0 || unchanged {
        return None;
    }
    let saved_share = 1.0 - sum.translation_cycles / base_sum.translation_cycles;
    let saved = |(base, with): (&StretchCounts, &StretchCounts)| {
        (base.translation_cycles - with.translation_cycles, base.translation_cycles)
    };
    let interval = match scope.is_sampled {
        true => ratio_of_sums(&base.iter().zip(with).map(saved).collect::<Vec<_>>()),
        false => Some(Figure { value: saved_share, low: saved_share, high: saved_share }),
    };
    // A window begins with other caches than the run had there. How far that leads astray, the run without a change shows,
    // of which the whole is known; the run with it may be as far off by itself.
    let astray = scope.whole.map_or(0.0, |whole| base_sum.error_of_cost(&whole));
    let reach = astray * (1.0 - saved_share).abs();
    Some(Remedy {
        kind: variant.kind,
        what: variant.what.clone(),
        translation_cycles: sum.translation_cycles,
        base_translation_cycles: base_sum.translation_cycles,
        walk_cycles: sum.walk_cycles,
        base_walk_cycles: base_sum.walk_cycles,
        walks: sum.walks,
        base_walks: base_sum.walks,
        base_modelled_cycles: base_sum.modelled_cycles,
        saved_share,
        least_saved_share: interval.map(|interval| interval.low - reach),
        // More than all can't be saved.
        most_saved_share: interval.map(|interval| (interval.high + reach).min(1.0)),
        windows: if scope.is_sampled { base.len() as u32 } else { 0 },
        accesses: scope.accesses,
        accesses_share: scope.accesses_share,
        approximate: scope.approximate,
        how: variant.how.clone(),
        caveat: variant.caveat.clone(),
        bloat_bytes: variant.bloat_bytes,
    })
}

/// Those first that save most of the cost of what they ran over; ties in the order of the variants.
pub(crate) fn rank(remedies: &mut [Remedy]) {
    remedies.sort_by(|a, b| b.saved_share.total_cmp(&a.saved_share));
}

#[cfg(test)]
mod tests;
