//! Ascending walks over lines, which prefetchers keep up with (`SEMANTICS.md` §7).

/// Walks followed at once: what second-level prefetchers of current cores follow is of this order (Intel's Optimization
/// Reference Manual, section on hardware prefetching: 32 streams, one forward or backward a page).
const HEADS: usize = 16;

/// Lines from which on a walk is one: two steps of one line tell its direction.
const SURE: u32 = 3;

/// The walks that a hardware thread is on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    /// Line read last and lines so far of each; the least recently used first.
    heads: Vec<(u64, u32)>,
}

impl Streams {
    /// An access to a line: does it go on with a walk?
    pub(crate) fn access(&mut self, line: u64) -> bool {
        let (at, streamed) = match self.heads.iter().position(|head| head.0 == line) {
            Some(same) => (same, false),
            None => match self.heads.iter().position(|head| head.0.wrapping_add(1) == line) {
                Some(before) => {
                    let lines = self.heads[before].1.saturating_add(1);
                    self.heads[before] = (line, lines);
                    (before, lines >= SURE)
                }
                None => {
                    if self.heads.len() == HEADS {
                        self.heads.remove(0);
                    }
                    self.heads.push((line, 1));
                    return false;
                }
            },
        };
        self.heads[at..].rotate_left(1);
        streamed
    }

    /// Whether an access to a line would; nothing changes.
    pub(crate) fn would_go_on(&self, line: u64) -> bool {
        let is = |head: &(u64, u32), line: u64| head.0 == line;
        let sure = |head: &(u64, u32)| head.1.saturating_add(1) >= SURE;
        !self.heads.iter().any(|head| is(head, line))
            && self.heads.iter().find(|head| is(head, line.wrapping_sub(1))).is_some_and(sure)
    }
}
