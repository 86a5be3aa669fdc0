//! Lock plans against slow twins: counting by hand, greedy choice and all sets by plain engine runs.

mod files;
mod plans;
mod selectors;
mod twin;
