//! First in, first out.

use super::set_policy::SetPolicy;

/// The next victim of each set.
#[derive(Clone, Debug)]
pub(crate) struct FillOrder {
    next: Vec<u32>,
    ways: u32,
}

impl FillOrder {
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        Self { next: vec![0; sets], ways }
    }
}

impl SetPolicy for FillOrder {
    #[inline(always)]
    fn touch(&mut self, _: usize, _: u32) {}

    #[inline(always)]
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        invalid().unwrap_or_else(|| {
            let way = self.next[set];
            self.next[set] = if way + 1 == self.ways { 0 } else { way + 1 };
            way
        })
    }
}
