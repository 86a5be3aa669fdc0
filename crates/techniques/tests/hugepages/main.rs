//! Plans of huge pages against slow twins: counting by hand, greedy choice and all sets by plain engine runs, windows
//! page by page.

mod apply;
mod choice;
mod code;
mod files;
mod native;
mod plans;
mod twin;
