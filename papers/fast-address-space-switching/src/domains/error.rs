//! What is refused, and why.

use thiserror::Error;

use super::address::{REGIONS, SHARED_START, SLOTS};

/// Why something was refused; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddressSpaceError {
    /// Too few domains beside the kernel's.
    #[error("{reserved} domains reserved for the kernel: it takes 1 to {most}")]
    Reserved {
        /// As asked.
        reserved: u8,
        /// The most.
        most: u8,
    },
    /// The kernel's part must begin at a section above the slots.
    #[error("kernel from {addr:#x}: it has to begin at a multiple of 1 MiB above {:#x}", SHARED_START)]
    KernelStart {
        /// As asked.
        addr: u32,
    },
    /// All PID slots are taken.
    #[error("no free PID slot: {} processes live; one has to exit first", SLOTS)]
    NoSlot,
    /// All shared regions are taken.
    #[error("no free shared region: there are {}; destroy one first", REGIONS)]
    NoRegion,
    /// The process has exited, or never was.
    #[error("no such process")]
    NoProcess,
    /// The region was destroyed, or never was.
    #[error("no such shared region")]
    NoSuchRegion,
    /// No pages.
    #[error("a mapping of no pages")]
    Empty,
    /// An address that is no multiple of what it has to be.
    #[error("{addr:#x}: not a multiple of {to:#x}")]
    Unaligned {
        /// As asked.
        addr: u32,
        /// Of what.
        to: u32,
    },
    /// It ends beyond the address space.
    #[error("{pages} pages at {addr:#x} end beyond 4 GiB")]
    OverTheEnd {
        /// First address.
        addr: u32,
        /// Pages.
        pages: u32,
    },
    /// It reaches into the kernel's part.
    #[error("{pages} pages at {addr:#x} reach into the kernel's part from {kernel_start:#x}")]
    Kernel {
        /// First address.
        addr: u32,
        /// Pages.
        pages: u32,
        /// Where that begins.
        kernel_start: u32,
    },
    /// Addresses that PID relocation makes the same as the process's own below 32 MiB.
    #[error("{addr:#x} lies in the process's own PID slot {slot}, where its addresses below 32 MiB are")]
    OwnSlot {
        /// First address.
        addr: u32,
        /// The slot.
        slot: u8,
    },
    /// A region has to be at home in the shared part.
    #[error("{addr:#x} lies below {:#x}, where no region can be at home", SHARED_START)]
    NotShared {
        /// As asked.
        addr: u32,
    },
    /// The process has something there.
    #[error("{addr:#x} is mapped already; unmap it first")]
    Taken {
        /// First address that is.
        addr: u32,
    },
    /// Nothing is mapped there.
    #[error("{addr:#x} is not mapped")]
    NotMapped {
        /// First address that is not.
        addr: u32,
    },
    /// A page of a shared region.
    #[error("{addr:#x} belongs to a shared region; detach that")]
    OfRegion {
        /// Its address.
        addr: u32,
    },
    /// Frames end beyond 4 GiB.
    #[error("{pages} frames from {frame:#x} end beyond 4 GiB of memory")]
    Frames {
        /// First frame.
        frame: u32,
        /// How many.
        pages: u32,
    },
    /// There is no gap of that many pages above 2 GiB.
    #[error("no room for {pages} pages in the shared part of the address space")]
    NoRoom {
        /// Pages.
        pages: u32,
    },
    /// The process has the region already.
    #[error("the process is attached to the region already")]
    Attached,
    /// The process does not have the region.
    #[error("the process is not attached to the region")]
    NotAttached,
    /// It would exit with shared regions.
    #[error("the process is attached to {regions} shared regions; detach them before it exits")]
    StillShares {
        /// How many.
        regions: usize,
    },
    /// Somebody is attached to it.
    #[error("the region is in use by {processes} processes; all have to detach first")]
    RegionInUse {
        /// How many.
        processes: u32,
    },
    /// A domain that whoever runs needs, or of the kernel, or none at all.
    #[error("domain {domain} is in use: the kernel's, the running process's, or none at all")]
    DomainInUse {
        /// Which.
        domain: u8,
    },
}

/// Why an access was denied: what becomes a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// No process runs.
    #[error("no process runs")]
    Nobody,
    /// The address is the kernel's.
    #[error("kernel address")]
    Kernel,
    /// Nothing is mapped there.
    #[error("not mapped")]
    Unmapped,
    /// A store to a page that is not writable.
    #[error("not writable")]
    ReadOnly,
}
