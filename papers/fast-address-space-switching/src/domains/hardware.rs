//! What the mechanism asks of the processor, and what the processor reads.

/// The processor's part: caches and TLBs that know no address spaces, a domain access control register (DACR), a PID
/// register.
///
/// An implementation that drops more than it is asked to is slower, never wrong.
pub trait DomainHardware {
    /// Writes dirty lines back, and empties both caches and both TLBs.
    fn flush_all(&mut self);

    /// Empties both TLBs.
    fn flush_tlbs(&mut self);

    /// Drops these pages from both TLBs, and their lines from both caches, dirty ones written back first. Page numbers
    /// are of relocated addresses.
    fn flush_range(&mut self, first_page: u32, pages: u32);

    /// Drops the page of a relocated address from the TLBs.
    fn drop_entry(&mut self, addr: u32);

    /// Sets the DACR: two bits a domain, 01 = access as the TLB's entry says, 00 = none.
    fn set_dacr(&mut self, dacr: u32);

    /// Sets the PID register: addresses below 32 MiB are moved to this slot ([`super::relocate`]).
    fn set_pid(&mut self, slot: u8);
}

/// What a walk of the caching page directory finds: what the processor puts into a TLB entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedPage {
    /// Tag: the access counts only if the DACR grants this domain, else it is a domain fault.
    pub domain: u8,
    /// Page frame number.
    pub frame: u32,
    /// Stores are allowed.
    pub writable: bool,
    /// May be kept in caches.
    pub cached: bool,
}
