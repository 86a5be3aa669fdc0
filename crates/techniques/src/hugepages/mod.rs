//! Selective huge pages: 2 MiB pages as a limited resource, given to the parts of memory that a profile says gain most.
//!
//! What TLB lockdown ([`crate::lock`]) does with four entries, with the means of today: a huge page holds 512 base
//! pages in one TLB entry, but costs a copy, zeroing, and memory that nobody touched. [`regions`] finds the aligned
//! windows of address space that can be huge, [`profile`] counts what each costs, [`select`] chooses, [`cost`] prices a
//! collapse, [`plan`] puts it side by side, as a file ([`file`](mod@file)), and [`apply`] finds a plan's windows in
//! another run. [`code_planner`] chooses windows of code in the same way. [`mosaic`] is another way to ask: runs with
//! different windows huge, and a model fitted on them.

pub mod apply;
pub mod bench;
pub mod code_mappings;
pub mod code_plan;
pub mod code_planner;
pub mod code_profile;
pub mod cost;
pub mod file;
pub mod mosaic;
pub mod native;
pub mod plan;
pub mod planner;
pub mod profile;
pub mod regions;
pub mod select;

use lookaside_machine::{Machine, PageSize};
use serde::{Deserialize, Serialize};

use crate::plan::PlanError;

/// Bytes of a huge page.
pub const WINDOW_BYTES: u64 = 2 << 20;

/// Bytes of a base page, on all machines that have 2 MiB pages.
pub(crate) const BASE_BYTES: u64 = 4 << 10;

/// An aligned window of [`WINDOW_BYTES`]: what one huge page maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Whose.
    pub process: u32,
    /// First byte, a multiple of [`WINDOW_BYTES`].
    pub addr: u64,
}

impl Window {
    /// The one that holds an address.
    pub fn of(process: u32, addr: u64) -> Self {
        Self { process, addr: addr - addr % WINDOW_BYTES }
    }
}

/// Whether a machine can have the huge pages that are planned here.
///
/// # Errors
/// Its page tables have no 2 MiB pages over 4 KiB ones.
pub fn check(machine: &Machine) -> Result<(), PlanError> {
    let sizes = machine.page_table.format.page_sizes();
    if sizes.first() == Some(&PageSize::K4) && sizes.contains(&PageSize::M2) {
        return Ok(());
    }
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    Err(PlanError::Impossible(format!(
        "{}: its page tables have no 2M pages, only {}; choose a machine that has them, such as skylake or neoverse-n1",
        machine.name,
        sizes.join(", ")
    )))
}
