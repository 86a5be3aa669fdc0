//! Selective huge pages for running programs: the windows in which a program is seen most become huge pages. All is seen and chosen from
//! outside, and done from there by `process_madvise(MADV_COLLAPSE)`; where there is no right to, a thread of a preloaded library does
//! that, and no more, in the program ([`remote_collapse`]).
//!
//! [`Memory`] says what windows a process has, a [`Look`] where the program is seen, [`choose()`] takes the best, [`Handle::collapse`]
//! makes huge pages of them. [`once`] does it all for a process, [`Watch`] again and again for a program and those that it starts, [`Apply`] makes a plan's windows huge.

mod choose;
mod collapse;
mod pages;
mod planned;
mod promote;
mod referenced;
pub mod remote_collapse;
mod sampler;
mod watch;
mod windows;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::bake::{BakeError, PAGE_BYTES};
pub use choose::{choose, spread, tally, Choice, Chosen, Fell, View, Weight, Weights};
pub use collapse::{way, Handle, Tried, Way, LEAST_PAUSE};
pub use pages::Memory;
pub use planned::{Apply, Find, Place, Planned};
pub use promote::{once, Applied, Order, Row};
pub use referenced::{Referenced, INTERVAL};
pub use watch::{Followed, Settings, Watch};
pub use windows::{window_of, windows, Area, PageRange, PageState, Unfit, Window, WINDOW_BYTES, WINDOW_PAGES};

/// Why nothing can be done: in a line, what, where, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HugeError {
    /// Bad input, no permission, or something that the system lacks.
    #[error("{0}")]
    Bad(String),
}

impl From<BakeError> for HugeError {
    fn from(e: BakeError) -> Self {
        Self::Bad(e.to_string())
    }
}

/// How it is found out where a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Samples of data addresses, at equal times of the program's CPU time: where it waits.
    Sample,
    /// The referenced bits of pages, of which the system tells a sum for each mapping.
    Referenced,
}

/// Whether this is meant as a plan's file, and not as `auto:K`: it has a name like a file's, or is one.
pub fn names_plan(text: &str) -> bool {
    let path = Path::new(text);
    path.extension().is_some() || path.exists()
}

/// Sees which data addresses a process waits for. The sampler is another room's: whoever starts this brings it.
pub trait Look: Send + Sync {
    /// Samples a process for so long, or until `stop` says so, or it ends. Gives its data addresses in order of time; 0 = not known.
    ///
    /// # Errors
    /// In a line: why it cannot be sampled.
    fn look(&self, pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Vec<u64>, String>;
}
