//! The replacement rules that are tried on a set.

use crate::tlb::policy::plru_tree::PlruTree;
use crate::tlb::policy::simulated_set::ReplacementRule;
use crate::tlb::policy::trial::TlbPolicy;

/// A set has more rules played on it up to so many ways.
const FOILS: usize = 32;

/// The rules that a set may follow.
#[derive(Debug)]
pub struct RuleSet {
    pub ways: usize,
    pub rules: Vec<(String, TlbPolicy, ReplacementRule)>,
}

/// The rules that a set of so many ways may follow, with their names.
pub(super) fn rules(ways: usize) -> Vec<(String, TlbPolicy, ReplacementRule)> {
    let mut rules = vec![
        ("LRU".to_string(), TlbPolicy::Lru, ReplacementRule::Lru),
        ("FIFO".to_string(), TlbPolicy::Fifo, ReplacementRule::Fifo),
        ("random".to_string(), TlbPolicy::Random, ReplacementRule::Random),
    ];
    // A tree of two ways is LRU.
    if ways > 2 {
        let mut trees = vec![("tree-PLRU", PlruTree::padded(ways))];
        // Where the ways are no power of two there are several.
        for (name, tree) in [
            ("tree-PLRU with equal sides", PlruTree::balanced(ways)),
            ("tree-PLRU with equal sides at the root", PlruTree::halved(ways)),
        ] {
            if trees.iter().all(|(_, known)| *known != tree) {
                trees.push((name, tree));
            }
        }
        rules.extend(
            trees.into_iter().map(|(name, tree)| (name.to_string(), TlbPolicy::TreePlru, ReplacementRule::Tree(tree))),
        );
        if ways <= FOILS {
            rules.push(("bit-PLRU".to_string(), TlbPolicy::NoneOfThese, ReplacementRule::Bits));
            rules.push(("SRRIP".to_string(), TlbPolicy::NoneOfThese, ReplacementRule::Distances));
        }
    }
    rules
}
