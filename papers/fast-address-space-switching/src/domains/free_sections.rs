//! Free sections of the shared part of the address space, 2 GiB and up: blocks of 1 MiB that no two spaces use, while
//! there are any.

use super::address::{section_of, SECTIONS, SHARED_START};

/// How many spaces use each section, by relocated address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeSections {
    /// At most 64 processes and one region each.
    users: Vec<u8>,
    /// Where the kernel's part begins.
    end: usize,
    /// Where the search for free blocks goes on: blocks just given up are used again last, since what is left of them
    /// in the caches would have to be flushed.
    next: usize,
}

impl FreeSections {
    pub(super) fn new(kernel_start: u32) -> Self {
        Self { users: vec![0; SECTIONS], end: section_of(kernel_start), next: section_of(SHARED_START) }
    }

    /// Sections above 2 GiB, below the kernel's.
    pub(super) fn shared(&self) -> std::ops::Range<usize> {
        section_of(SHARED_START)..self.end
    }

    pub(super) fn enter(&mut self, section: usize) {
        self.users[section] = self.users[section].saturating_add(1);
    }

    pub(super) fn leave(&mut self, section: usize) {
        self.users[section] = self.users[section].saturating_sub(1);
    }

    /// How many use the section.
    pub(super) fn users(&self, section: usize) -> u8 {
        self.users[section]
    }

    /// The next search begins at this section.
    pub(super) fn go_on_at(&mut self, section: usize) {
        self.next = section;
    }

    /// The first of so many neighbouring sections that `fits` takes, at or after where the search goes on, else from
    /// the start.
    pub(super) fn run(&self, sections: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let all = self.shared();
        let next = if all.contains(&self.next) { self.next } else { all.start };
        first_run(next..all.end, sections, &fits).or_else(|| first_run(all, sections, &fits))
    }
}

/// The first of so many neighbours in the range that all fit.
fn first_run(range: std::ops::Range<usize>, length: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let mut run = 0;
    for section in range {
        run = if fits(section) { run + 1 } else { 0 };
        if run == length {
            return Some(section + 1 - length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again_last() {
        let mut free = FreeSections::new(SHARED_START + (4 << 20));
        let take = |free: &mut FreeSections, sections: usize| {
            let found = free.run(sections, |section| free.users(section) == 0)?;
            free.go_on_at(found + sections);
            Some(found)
        };
        assert_eq!(take(&mut free, 1), Some(2048));
        // Nobody entered it, and still the next is another.
        assert_eq!(take(&mut free, 2), Some(2049));
        assert_eq!(take(&mut free, 2), Some(2048));
        free.enter(2050);
        assert_eq!(take(&mut free, 3), None);
        assert_eq!(take(&mut free, 1), Some(2051));
        assert_eq!(take(&mut free, 1), Some(2048));
        assert_eq!(free.run(4, |_| true), Some(2048));
        free.leave(2050);
        assert_eq!(take(&mut free, 4), Some(2048));
    }
}
