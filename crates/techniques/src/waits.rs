//! Which part of an instruction's page visits waits for others, as the recorder tells it.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use lookaside_trace::{Block, Event};

/// Of each process and instruction of which the recorder says so ([`Event::Waits`]): the part of its visits that waits.
#[derive(Clone, Debug, Default)]
pub struct WaitingShares {
    of: HashMap<(u32, u64), f64, FixedState>,
}

impl WaitingShares {
    /// Heeds a block's events.
    pub fn run(&mut self, block: &Block) {
        for (_, event) in &block.events {
            if let Event::Waits { ip, visits, waits } = *event {
                self.of.insert((block.process, ip), waits.min(visits) as f64 / visits.max(1) as f64);
            }
        }
    }

    /// The recorder says anything of it.
    pub fn are_told(&self) -> bool {
        !self.of.is_empty()
    }

    /// Of all visits of this instruction; 0 where nothing is said of it.
    pub fn share(&self, process: u32, ip: u64) -> f64 {
        self.of.get(&(process, ip)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_stands() {
        let mut shares = WaitingShares::default();
        assert!(!shares.are_told());
        let mut block = Block { process: 7, ..Block::default() };
        for (ip, visits, waits) in [(1, 4, 1), (2, 0, 9), (1, 8, 6), (3, 2, 5)] {
            block.push_event(Event::Waits { ip, visits, waits });
        }
        shares.run(&block);
        assert_eq!([1, 2, 3, 4].map(|ip| shares.share(7, ip)), [0.75, 0.0, 1.0, 0.0]);
        assert_eq!(shares.share(8, 1), 0.0);
        assert!(shares.are_told());
    }
}
