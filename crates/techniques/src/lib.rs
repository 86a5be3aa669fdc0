//! What can be *done about* translation cost, computed in the model.

mod analysis;

pub use analysis::*;
