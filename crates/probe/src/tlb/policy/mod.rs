//! Replacement policy of a level: sequences of accesses to one set under which policies miss differently often.

mod choose_sequences;
pub(crate) mod identify;
mod plru_tree;
mod rules;
mod sequence;
mod set_meter;
mod simulated_set;
pub(crate) mod tree_shape;
pub(crate) mod trial;

pub use identify::policy;
pub use sequence::Prediction;
pub use tree_shape::is_modelled_tree;
pub use trial::{TlbPolicy, Trial, TrialRole};
