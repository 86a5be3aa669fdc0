//! Domains change hands, and spaces collide: what has to be flushed, and why.
//!
//! What keeps one process from reading another's lines is this. A line or a TLB entry of a section can only have come
//! in while the section's entry in the caching page directory was its owner's, and the entry goes to another owner only
//! after a flush, or if nothing of the old owner can be left. For that an entry whose domain was taken without a flush
//! (section 3.1: clean ones are) still says whose it was: clean lines are left, and whoever maps the same addresses
//! next must not hit them.

use super::address::SHARED_START;
use super::counts::FlushCause;
use super::directory::DirectoryEntry;
use super::hardware::DomainHardware;
use super::pool::{bit, DomainOwner, NONE};
use super::spaces::AddressSpaces;

impl AddressSpaces {
    /// Lines of the entry's owner may be in the caches.
    pub(super) fn lingers(&self, entry: &DirectoryEntry) -> bool {
        if entry.domain == NONE {
            entry.serial != 0 && entry.since == self.flushes
        } else {
            self.pool.is_touched(entry.domain)
        }
    }

    /// Which of the cases it is that the running process comes upon this entry of another space.
    pub(super) fn cause(&self, addr: u32, fixed: bool, there: &DirectoryEntry) -> FlushCause {
        if !self.lives(there) {
            FlushCause::Leftover
        } else if addr < SHARED_START {
            FlushCause::FixedInSlot
        } else if fixed || there.fixed {
            FlushCause::FixedInShared
        } else {
            FlushCause::NoRoom
        }
    }

    /// The entry's owner is still there.
    fn lives(&self, entry: &DirectoryEntry) -> bool {
        match entry.space {
            DomainOwner::Process(slot) => self.process(slot).is_some_and(|process| process.serial == entry.serial),
            DomainOwner::Region(number) => self.region(number).is_some_and(|region| region.serial == entry.serial),
        }
    }

    /// Flushes caches and TLBs: all domains are clean then, but for those of who runs on.
    pub(super) fn flush(&mut self, cause: FlushCause, hardware: &mut impl DomainHardware) {
        hardware.flush_all();
        self.flushes += 1;
        self.pool.flushed(self.running_dacr());
        self.counts.flushes[cause as usize] += 1;
    }

    /// The DACR of who runs; the kernel's domains if nobody does.
    pub(super) fn running_dacr(&self) -> u32 {
        self.running.and_then(|slot| self.process(slot)).map_or(self.pool.kernel(), |process| process.dacr)
    }

    /// Who runs is granted what its DACR says.
    pub(super) fn grant(&mut self, hardware: &mut impl DomainHardware) {
        let dacr = self.running_dacr();
        self.pool.granted(dacr);
        hardware.set_dacr(dacr);
    }

    /// The space's domain; [`NONE`] if it has none.
    pub(super) fn domain_of(&self, space: DomainOwner) -> u8 {
        match space {
            DomainOwner::Process(slot) => self.process(slot).map_or(NONE, |process| process.domain),
            DomainOwner::Region(region) => self.region(region).map_or(NONE, |region| region.domain),
        }
    }

    /// Gives the space a domain, taken from another space if none is free. Whoever runs is granted it where it may use
    /// it.
    pub(super) fn allocate(&mut self, space: DomainOwner, hardware: &mut impl DomainHardware) -> u8 {
        let own = self.running.and_then(|slot| self.process(slot)).map_or(NONE, |process| process.domain);
        let domain = self.pool.choose(self.running_dacr(), bit(own));
        self.revoke(domain, hardware);
        let writable = match space {
            DomainOwner::Process(slot) => self.process(slot).is_some_and(|process| process.writable_pages > 0),
            DomainOwner::Region(region) => self.region(region).is_some_and(|region| region.writable),
        };
        self.pool.assign(domain, space, writable);
        self.hand_over(space, domain);
        self.grant(hardware);
        domain
    }

    /// Takes the domain from its owner, if it has one, so that nothing of it is left in the TLBs, and nothing dirty in
    /// the caches.
    pub(super) fn revoke(&mut self, domain: u8, hardware: &mut impl DomainHardware) {
        let owner = self.pool.owner(domain);
        if let Some(space) = owner {
            self.hand_over(space, NONE);
        }
        if self.pool.is_dirty(domain) {
            self.flush(FlushCause::NoDomain, hardware);
            self.counts.recycled_dirty += 1;
        } else {
            self.counts.recycled_clean += u64::from(owner.is_some());
        }
        let left = self.pool.is_touched(domain).then_some(self.flushes);
        self.directory.revoke(domain, left);
        if self.pool.is_in_tlbs(domain) {
            hardware.flush_tlbs();
            self.counts.tlb_flushes += 1;
            self.pool.tlbs_flushed(self.running_dacr());
        }
        self.pool.forget(domain);
    }

    /// The space has this domain from now on ([`NONE`]: none), and so have the DACRs of all who may use it.
    fn hand_over(&mut self, space: DomainOwner, domain: u8) {
        match space {
            DomainOwner::Process(slot) => {
                if let Some(process) = self.process_mut(slot) {
                    process.set_domain(domain);
                }
            }
            DomainOwner::Region(number) => {
                let Some(region) = self.region_mut(number) else { return };
                let old = std::mem::replace(&mut region.domain, domain);
                let mut sharing = region.sharing;
                while sharing != 0 {
                    let slot = sharing.trailing_zeros() as u8;
                    sharing &= sharing - 1;
                    if let Some(process) = self.process_mut(slot) {
                        process.dacr = process.dacr & !bit(old) | bit(domain);
                    }
                }
            }
        }
    }
}
