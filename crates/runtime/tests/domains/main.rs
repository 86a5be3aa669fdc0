//! Compartments: the policy, over keys that are only said to be there.

mod cases;
mod fake;
mod naive;
mod twin;
