//! Which shape a tree over a number of ways that is no power of two has: the model has one of those that are tried.

use super::paper::Rule;
use super::tree::Tree;
use super::{rules, Trial, DISTURBED};

/// Whether trials that say tree-PLRU say so of the shape that the model has ([`lookaside_machine::tree_left_ways`]), and of no other.
///
/// # Errors
/// What they say instead.
pub fn is_modelled_tree(trials: &[Trial], ways: u32) -> Result<(), String> {
    let modelled = Tree::halved(ways as usize);
    let mut fits = [Vec::new(), Vec::new()];
    for (at, (name, _, rule)) in rules(ways as usize).into_iter().enumerate() {
        if let Rule::Tree(tree) = rule {
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
