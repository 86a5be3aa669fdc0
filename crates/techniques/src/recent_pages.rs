//! The pages visited last: what a first TLB level holds, whatever its sets.

/// A page as a TLB may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// Number of its process.
    pub number: u32,
    /// Number of the 4 KiB page.
    pub page: u64,
    /// Of a table of stores that is apart from that of loads.
    pub apart: bool,
}

/// The last so many different pages, the last one first.
pub struct RecentPages {
    pages: Vec<PageKey>,
    most: usize,
}

impl RecentPages {
    /// None yet; so many at most.
    pub fn new(most: usize) -> Self {
        Self { pages: Vec::with_capacity(most), most }
    }

    /// Visits a page; whether it was among them.
    pub fn visit(&mut self, page: PageKey) -> bool {
        let found = self.pages.iter().position(|held| *held == page);
        match found {
            Some(at) => self.pages[..=at].rotate_right(1),
            None => {
                self.pages.truncate(self.most.saturating_sub(1));
                if self.most > 0 {
                    self.pages.insert(0, page);
                }
            }
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A page is held if fewer others than `most` were visited since.
        #[test]
        fn holds_the_last(pages in prop::collection::vec(0u64..12, 0..80), most in 0usize..10) {
            let key = |page| PageKey { number: 0, page, apart: false };
            let mut recent = RecentPages::new(most);
            for (at, &page) in pages.iter().enumerate() {
                let since: Vec<u64> = pages[..at].iter().rev().take_while(|before| **before != page).copied().collect();
                let known = since.len() < at;
                let mut others = since;
                others.sort_unstable();
                others.dedup();
                prop_assert_eq!(recent.visit(key(page)), known && others.len() < most);
            }
        }
    }
}
