//! Which tree a tree-PLRU has whose number of ways is no power of two: the model has one of those that are tried.

use crate::tlb::policy::plru_tree::PlruTree;
use crate::tlb::policy::rules::rules;
use crate::tlb::policy::simulated_set::ReplacementRule;
use crate::tlb::policy::trial::{Trial, DISTURBED};

/// Whether trials that say tree-PLRU say so of the shape that the model has ([`lookaside_machine::tree_left_ways`]),
/// and of no other.
///
/// # Errors
/// What they say instead.
pub fn is_modelled_tree(trials: &[Trial], ways: u32) -> Result<(), String> {
    let modelled = PlruTree::halved(ways as usize);
    let mut fits = [Vec::new(), Vec::new()];
    for (at, (name, _, rule)) in rules(ways as usize).into_iter().enumerate() {
        if let ReplacementRule::Tree(tree) = rule {
            if all_fit(trials, at) {
                fits[usize::from(tree == modelled)].push(name);
            }
        }
    }
    match fits {
        [others, modelled] if others.is_empty() && !modelled.is_empty() => Ok(()),
        [others, _] if others.is_empty() => {
            Err(format!("found tree-PLRU over {ways} ways, in a shape that nothing says"))
        }
        [others, modelled] => {
            let all: Vec<String> = modelled.into_iter().chain(others).collect();
            Err(format!("found tree-PLRU over {ways} ways, which may be {}", all.join(" or ")))
        }
    }
}

/// But for those that may have been disturbed.
fn all_fit(trials: &[Trial], rule: usize) -> bool {
    let off = trials.iter().filter(|trial| rule < trial.predicted.len() && trial.off(rule) > 1.0).count();
    !trials.is_empty() && off <= trials.len() / DISTURBED
}
