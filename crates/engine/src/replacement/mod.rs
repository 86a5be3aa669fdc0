//! Replacement policies: which way of a set is the victim (`SEMANTICS.md` §9). Each is a file that implements
//! [`SetPolicy`]; [`ReplacementPolicy`] has a line for it.

mod fill_order;
mod random;
mod reuse_intervals;
mod set_policy;
#[cfg(test)]
mod tests;
mod tree;
mod uneven_tree;
mod use_list;
mod use_order;

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use fill_order::FillOrder;
use random::RandomWays;
use reuse_intervals::ReuseIntervals;
use tree::Tree;
use uneven_tree::UnevenTree;
use use_list::UseList;
use use_order::UseOrder;

pub(crate) use set_policy::SetPolicy;

/// Any of the policies.
#[derive(Clone, Debug)]
pub(crate) enum ReplacementPolicy {
    UseOrder(UseOrder),
    UseList(UseList),
    FillOrder(FillOrder),
    Tree(Tree),
    UnevenTree(UnevenTree),
    Random(RandomWays),
    ReuseIntervals(ReuseIntervals),
}

impl ReplacementPolicy {
    pub(crate) fn new(replacement: Replacement, sets: usize, ways: u32, rng: SplitMix64) -> Self {
        match replacement {
            Replacement::Lru if ways <= use_order::MAX_WAYS => Self::UseOrder(UseOrder::new(sets, ways)),
            Replacement::Lru => Self::UseList(UseList::new(sets, ways)),
            Replacement::Fifo => Self::FillOrder(FillOrder::new(sets, ways)),
            Replacement::TreePlru if ways.is_power_of_two() => Self::Tree(Tree::new(sets, ways)),
            Replacement::TreePlru => Self::UnevenTree(UnevenTree::new(sets, ways)),
            Replacement::Random => Self::Random(RandomWays::new(ways, rng)),
            Replacement::Srrip => Self::ReuseIntervals(ReuseIntervals::new(sets, ways)),
        }
    }
}

/// Does the same for whichever policy it is.
macro_rules! each {
    ($policy:expr, $its:ident => $does:expr) => {
        match $policy {
            $crate::replacement::ReplacementPolicy::UseOrder($its) => $does,
            $crate::replacement::ReplacementPolicy::UseList($its) => $does,
            $crate::replacement::ReplacementPolicy::FillOrder($its) => $does,
            $crate::replacement::ReplacementPolicy::Tree($its) => $does,
            $crate::replacement::ReplacementPolicy::UnevenTree($its) => $does,
            $crate::replacement::ReplacementPolicy::Random($its) => $does,
            $crate::replacement::ReplacementPolicy::ReuseIntervals($its) => $does,
        }
    };
}

pub(crate) use each as each_policy;

impl SetPolicy for ReplacementPolicy {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        each!(self, policy => policy.touch(set, way));
    }

    #[inline(always)]
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        each!(self, policy => policy.replace(set, invalid))
    }

    fn invalidated(&mut self, set: usize, way: u32, is_valid: impl Fn(u32) -> bool) {
        each!(self, policy => policy.invalidated(set, way, is_valid));
    }

    fn set_back(&mut self, set: usize, way: u32, depth: u32, valid: u32) {
        each!(self, policy => policy.set_back(set, way, depth, valid));
    }

    #[inline(always)]
    fn prefetch(&self, set: usize) {
        each!(self, policy => policy.prefetch(set));
    }
}
