//! Which processes may have entries on a hardware thread, where they are bounded: Linux's few PCIDs of each x86 CPU.

/// Places in a row, given out in turn.
#[derive(Clone, Debug)]
pub(crate) struct Residents {
    places: Vec<Option<u32>>,
    next: usize,
}

impl Residents {
    /// So many free places, at least one.
    pub(crate) fn new(places: u32) -> Self {
        Self { places: vec![None; places as usize], next: 0 }
    }

    /// A process runs next: the one that loses its place to it, if it had none and the next one is taken.
    pub(crate) fn enter(&mut self, process: u32) -> Option<u32> {
        if self.places.contains(&Some(process)) {
            return None;
        }
        let gone = self.places[self.next].replace(process);
        self.next = (self.next + 1) % self.places.len();
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_in_turn_to_those_that_have_none() {
        let mut residents = Residents::new(2);
        let gone: Vec<_> = [7, 8, 7, 9, 7, 8, 8].into_iter().map(|process| residents.enter(process)).collect();
        // 9 takes the place of 7, though 8 was used longer ago; 7 that of 8, 8 that of 9.
        assert_eq!(gone, [None, None, None, Some(7), Some(8), Some(9), None]);
    }
}
