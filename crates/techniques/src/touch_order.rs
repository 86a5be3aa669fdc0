//! The order in which a program's pages are touched first.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use lookaside_timing::VisitLine;

/// log2 of the pages that are noted together.
const GROUP_SHIFT: u32 = 6;

/// Notes each page once.
#[derive(Default)]
pub struct TouchOrder {
    order: Vec<VisitLine>,
    /// Of 64 pages side by side, those touched.
    groups: HashMap<(u32, u64), u64, FixedState>,
    /// The page asked for last: most accesses are to it.
    last: Option<(u32, u64)>,
}

impl TouchOrder {
    /// Whether this is the first touch of a page, by this process; from here on it isn't.
    pub fn is_new(&mut self, process: u32, addr: u64) -> bool {
        let page = addr >> 12;
        if self.last.replace((process, page)) == Some((process, page)) {
            return false;
        }
        let group = self.groups.entry((process, page >> GROUP_SHIFT)).or_default();
        let before = *group;
        *group |= 1 << (page & ((1 << GROUP_SHIFT) - 1));
        before != *group
    }

    /// Adds a line of a page that is new.
    pub fn push(&mut self, line: VisitLine) {
        self.order.push(line);
    }

    /// A line of each page, in the order of first touches.
    pub fn finish(self) -> Vec<VisitLine> {
        self.order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_page_is_new_once(touches in prop::collection::vec((0u32..3, 0u64..200 << 12), 0..300)) {
            let (mut touched, mut seen) = (TouchOrder::default(), HashSet::new());
            for (process, addr) in touches {
                prop_assert_eq!(touched.is_new(process, addr), seen.insert((process, addr >> 12)));
            }
        }
    }
}
