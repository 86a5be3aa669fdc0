//! The sixteen domains: whose each is, and what may still lie in TLBs and caches under it.
//!
//! Sets of domains are masks as the DACR has them: bit 2d stands for domain d.

/// Domains of the architecture (section 2.1).
pub const DOMAINS: usize = 16;
/// No domain.
pub(super) const NONE: u8 = u8::MAX;
/// Bits of all domains.
const ALL: u32 = 0x5555_5555;

/// A domain's bit: the DACR's value 01, access as the TLB entry says.
#[inline]
pub(super) fn bit(domain: u8) -> u32 {
    if domain == NONE {
        0
    } else {
        1 << (2 * domain)
    }
}

/// Whose a domain is: by number of slot or region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DomainOwner {
    Process(u8),
    Region(u8),
}

/// Who has which domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainPool {
    owners: [Option<DomainOwner>; DOMAINS],
    /// The kernel's: always granted, never given away.
    kernel: u32,
    /// Those with an owner.
    owned: u32,
    /// Those whose owner has writable pages.
    writable: u32,
    /// Caches may hold lines that were written under it and not written back: writable, and granted to somebody who ran
    /// since the last flush of the caches.
    dirty: u32,
    /// Caches may hold lines under it: granted to somebody who ran since that flush.
    touched: u32,
    /// TLBs may hold entries under it: granted to somebody who ran since the last flush of the TLBs.
    in_tlbs: u32,
    /// Where the search for the next victim begins.
    next: u8,
}

impl DomainPool {
    /// The first `reserved` are the kernel's.
    pub(super) fn new(reserved: u8) -> Self {
        Self {
            owners: [None; DOMAINS],
            kernel: (0..reserved).map(bit).sum(),
            owned: 0,
            writable: 0,
            dirty: 0,
            touched: 0,
            in_tlbs: 0,
            next: 0,
        }
    }

    /// The DACR that grants the kernel's alone.
    pub(super) fn kernel(&self) -> u32 {
        self.kernel
    }

    pub(super) fn owner(&self, domain: u8) -> Option<DomainOwner> {
        self.owners.get(usize::from(domain)).copied().flatten()
    }

    /// The domain that the next space gets. `running` are those granted to who runs, `own` is that one's own: never
    /// taken.
    ///
    /// Clean ones before dirty ones (section 3.1), those without an owner first; else round robin. What the running
    /// process has been granted comes last: an instruction may need two regions at once, and must get on.
    pub(super) fn choose(&mut self, running: u32, own: u32) -> u8 {
        let users = ALL & !self.kernel;
        let (free, idle) = (users & !self.owned, users & !running);
        let order = [free & !self.dirty, idle & !self.dirty, free, idle, users & !own];
        let from = order.into_iter().find(|set| *set != 0).unwrap_or(users);
        let rotated = from.rotate_right(2 * u32::from(self.next));
        let domain = (self.next + (rotated.trailing_zeros() / 2) as u8) % DOMAINS as u8;
        self.next = (domain + 1) % DOMAINS as u8;
        domain
    }

    /// The space owns the domain now.
    pub(super) fn assign(&mut self, domain: u8, space: DomainOwner, writable: bool) {
        if let Some(owner) = self.owners.get_mut(usize::from(domain)) {
            *owner = Some(space);
            self.owned |= bit(domain);
            self.set_writable(domain, writable);
        }
    }

    /// The domain's owner is gone. What lies in TLBs and caches stays known.
    pub(super) fn orphan(&mut self, domain: u8) {
        if let Some(owner) = self.owners.get_mut(usize::from(domain)) {
            *owner = None;
            self.owned &= !bit(domain);
            self.writable &= !bit(domain);
        }
    }

    /// Nothing lies in TLBs and caches under it that is not known otherwise.
    pub(super) fn forget(&mut self, domain: u8) {
        self.orphan(domain);
        self.dirty &= !bit(domain);
        self.touched &= !bit(domain);
        self.in_tlbs &= !bit(domain);
    }

    /// Whether the domain's owner has writable pages.
    pub(super) fn set_writable(&mut self, domain: u8, writable: bool) {
        self.writable = self.writable & !bit(domain) | if writable { bit(domain) } else { 0 };
    }

    /// Somebody runs with these granted.
    #[inline]
    pub(super) fn granted(&mut self, dacr: u32) {
        self.dirty |= dacr & self.writable;
        self.touched |= dacr;
        self.in_tlbs |= dacr;
    }

    /// Caches and TLBs were flushed: all are clean, but for those of who runs on.
    pub(super) fn flushed(&mut self, running: u32) {
        (self.dirty, self.touched, self.in_tlbs) = (0, 0, 0);
        self.granted(running);
    }

    /// TLBs were flushed.
    pub(super) fn tlbs_flushed(&mut self, running: u32) {
        self.in_tlbs = running;
    }

    pub(super) fn is_dirty(&self, domain: u8) -> bool {
        self.dirty & bit(domain) != 0
    }

    pub(super) fn is_touched(&self, domain: u8) -> bool {
        self.touched & bit(domain) != 0
    }

    pub(super) fn is_in_tlbs(&self, domain: u8) -> bool {
        self.in_tlbs & bit(domain) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_then_clean_then_round_robin() {
        let mut pool = DomainPool::new(13);
        let process = DomainOwner::Process;
        let take = |pool: &mut DomainPool, slot: u8| {
            let domain = pool.choose(0, 0);
            pool.forget(domain);
            pool.assign(domain, process(slot), true);
            domain
        };
        assert_eq!([0, 1, 2].map(|slot| take(&mut pool, slot)), [13, 14, 15]);
        // 13 and 15 ran; 14 is clean.
        pool.granted(bit(13) | bit(15));
        assert_eq!(take(&mut pool, 3), 14);
        pool.granted(bit(14));
        // All dirty: round robin goes on after 14.
        assert_eq!([pool.choose(0, 0), pool.choose(0, 0)], [15, 13]);
        // What runs is not taken, and its own never.
        assert_eq!(pool.choose(bit(14), bit(14)), 15);
        assert_eq!(pool.choose(ALL, bit(13)), 14);
        // Free and dirty comes before owned and dirty, after owned and clean.
        pool.orphan(13);
        assert_eq!(pool.choose(0, 0), 13);
        pool.flushed(bit(13));
        assert!(!pool.is_dirty(13) && !pool.is_dirty(14) && pool.is_touched(13) && !pool.is_touched(14));
    }
}
