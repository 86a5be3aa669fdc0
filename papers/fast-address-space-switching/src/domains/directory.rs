//! The caching page directory: entries of several spaces' page directories, each tagged with its domain (section 2.3,
//! Figure 1).

use super::address::SECTIONS;
use super::pool::{DomainOwner, DOMAINS, NONE};

/// An entry: whose leaf page table the section has, or whose it had last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirectoryEntry {
    /// The space, as long as it has this serial number; 0 = nobody's.
    pub(super) space: DomainOwner,
    pub(super) serial: u64,
    /// The flush of the caches since which lines may lie there without a domain (`domain` is [`NONE`]).
    pub(super) since: u64,
    /// The leaf page table.
    pub(super) table: u32,
    /// The tag; [`NONE`] = the processor finds nothing here.
    pub(super) domain: u8,
    /// The mapping was put there by address.
    pub(super) fixed: bool,
}

/// Nobody's.
const EMPTY: DirectoryEntry =
    DirectoryEntry { space: DomainOwner::Process(0), serial: 0, since: 0, table: 0, domain: NONE, fixed: false };

/// Sections in a word of a [`Sections`].
const WORD: usize = 64;

/// A set of sections, which can be gone through without looking at all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sections {
    words: [u64; SECTIONS / WORD],
    /// A bit for each word that is not 0.
    summary: u64,
}

impl Sections {
    const NONE: Self = Self { words: [0; SECTIONS / WORD], summary: 0 };

    fn insert(&mut self, section: usize) {
        self.words[section / WORD] |= 1 << (section % WORD);
        self.summary |= 1 << (section / WORD);
    }

    fn remove(&mut self, section: usize) {
        let word = &mut self.words[section / WORD];
        *word &= !(1 << (section % WORD));
        if *word == 0 {
            self.summary &= !(1 << (section / WORD));
        }
    }

    fn pop(&mut self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let word = self.summary.trailing_zeros() as usize;
        let section = word * WORD + self.words[word].trailing_zeros() as usize;
        self.remove(section);
        Some(section)
    }
}

/// 4096 entries, and which of them each domain has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachingDirectory {
    entries: Vec<DirectoryEntry>,
    of_domain: [Sections; DOMAINS],
}

impl CachingDirectory {
    pub(super) fn new() -> Self {
        Self { entries: vec![EMPTY; SECTIONS], of_domain: [Sections::NONE; DOMAINS] }
    }

    #[inline]
    pub(super) fn get(&self, section: usize) -> DirectoryEntry {
        self.entries[section]
    }

    /// Puts an entry in the place of what is there.
    pub(super) fn load(&mut self, section: usize, entry: DirectoryEntry) {
        let old = std::mem::replace(&mut self.entries[section], entry);
        if let Some(sections) = self.of_domain.get_mut(usize::from(old.domain)) {
            sections.remove(section);
        }
        if let Some(sections) = self.of_domain.get_mut(usize::from(entry.domain)) {
            sections.insert(section);
        }
    }

    /// The section is nobody's: no line or TLB entry of it is left.
    pub(super) fn clear(&mut self, section: usize) {
        self.load(section, EMPTY);
    }

    /// The domain is taken from its owner: the processor finds none of its entries any more. With `since`, whose they
    /// were stays known, since lines may lie there from that flush on.
    pub(super) fn revoke(&mut self, domain: u8, since: Option<u64>) {
        let Some(sections) = self.of_domain.get_mut(usize::from(domain)) else { return };
        while let Some(section) = sections.pop() {
            let entry = &mut self.entries[section];
            *entry = match since {
                Some(since) => DirectoryEntry { since, domain: NONE, ..*entry },
                None => EMPTY,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revoked_domain_has_no_entries_left() {
        let mut directory = CachingDirectory::new();
        let entry = |serial, domain| DirectoryEntry { serial, domain, ..EMPTY };
        for section in [0, 63, 64, 4095] {
            directory.load(section, entry(1, 5));
        }
        directory.load(63, entry(2, 6));
        directory.revoke(5, Some(9));
        let left =
            |section| (directory.get(section).serial, directory.get(section).domain, directory.get(section).since);
        assert_eq!([0, 63, 64, 4095].map(left), [(1, NONE, 9), (2, 6, 0), (1, NONE, 9), (1, NONE, 9)]);
        directory.revoke(6, None);
        directory.revoke(5, None);
        assert_eq!(directory.get(63), EMPTY);
        assert_eq!(directory.get(64).serial, 1);
    }
}
