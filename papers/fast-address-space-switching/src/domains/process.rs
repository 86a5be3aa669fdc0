//! Spaces: processes, each with a PID slot and a page directory of its own, and shared regions.

use super::address::SECTIONS;
use super::pool::{bit, NONE};

/// A process that lives; one that has exited is known by its number not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pub(super) slot: u8,
    pub(super) serial: u64,
}

impl ProcessId {
    /// Its PID slot.
    pub fn slot(self) -> u8 {
        self.slot
    }
}

/// An entry of a process's own page directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionEntry {
    /// Nothing.
    Empty,
    /// Under the process's domain. `fixed`: something in it was put there by address.
    Private { table: u32, fixed: bool },
    /// A shared region's own table, under the region's domain.
    Shared { region: u8, table: u32 },
}

/// A shared region that the process is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) region: u8,
    /// Where, by the process's addresses.
    pub(super) addr: u32,
    /// By the region's own tables and domain; else by tables of the process's.
    pub(super) shared: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessSpace {
    pub(super) serial: u64,
    /// [`NONE`]: it has none now.
    pub(super) domain: u8,
    /// Its DACR while it runs: the kernel's domains, its own, those of regions that it shares.
    pub(super) dacr: u32,
    /// Writable pages under its own domain.
    pub(super) writable_pages: u32,
    /// By its own addresses: those below 32 MiB are not relocated here.
    pub(super) directory: Vec<SectionEntry>,
    pub(super) attachments: Vec<Attachment>,
}

impl ProcessSpace {
    pub(super) fn new(serial: u64, kernel: u32) -> Self {
        Self {
            serial,
            domain: NONE,
            dacr: kernel,
            writable_pages: 0,
            directory: vec![SectionEntry::Empty; SECTIONS],
            attachments: Vec::new(),
        }
    }

    /// The process has this domain now, or none.
    pub(super) fn set_domain(&mut self, domain: u8) {
        self.dacr = self.dacr & !bit(self.domain) | bit(domain);
        self.domain = domain;
    }
}
