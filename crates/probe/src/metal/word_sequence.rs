//! Times accesses to chosen words in a chosen order, each of which waits for the one before it, or none of which does.

use std::collections::HashSet;

use crate::metal::page_reservation::PageReservation;
use crate::metal::{clock, AccessOrder, MetalError, WordSequence};
use lookaside_machine::PageSize;
use lookaside_stats::{median, SplitMix64};

/// Bytes of a word.
const WORD: u64 = 8;
/// log2 of what a `u32` of words reaches.
const REACH_BITS: u32 = 35;
/// Accesses made before each sample, at least one round: a last-level cache may keep a line only when it comes again
/// and again (a chase over 64 MiB of pages took four rounds to settle on Zen 4).
const WARM: usize = 1 << 17;
/// Accesses timed together: so many that the timer's cost does not show, and less than a millisecond from memory, which
/// is less than a thread waits for a CPU that another has.
const SLICE: usize = 1 << 12;
/// A slice that takes so many times the median took part of it elsewhere.
const DISTURBED: f64 = 3.0;

/// Memory that is all zero, for sequences at one page size.
#[derive(Debug)]
pub(crate) struct WordArena {
    memory: PageReservation,
    size: PageSize,
    /// Small pages are parts of huge ones that were split.
    split: bool,
    /// What is known to be backed, in units of [`Self::unit`].
    backed: HashSet<u64>,
}

impl WordArena {
    /// Address space only; at most `max_bytes` of it are backed at any time.
    pub(crate) fn new(size: PageSize, max_bytes: u64) -> Result<Self, MetalError> {
        let mut memory = PageReservation::within(size, max_bytes, REACH_BITS)?;
        if size > PageSize::K4 && !memory.has_pages_of_its_size() {
            return Err(MetalError::Unsupported(format!("no pages of {size} can be had")));
        }
        let split = size == PageSize::K4 && max_bytes >= PageSize::M2.bytes() && memory.zero_split(&[0]).is_ok();
        Ok(Self { memory, size, split, backed: if split { HashSet::from([0]) } else { HashSet::new() } })
    }

    /// Size of its pages.
    pub(crate) fn page_size(&self) -> PageSize {
        self.size
    }

    /// Whether small pages have neighbouring frames, in runs of huge pages.
    pub(crate) fn is_split(&self) -> bool {
        self.split
    }

    /// The pages that are backed as one.
    fn unit(&self) -> PageSize {
        if self.split {
            PageSize::M2
        } else {
            self.size
        }
    }

    /// Bytes that are backed.
    pub(crate) fn backed_bytes(&self) -> u64 {
        self.backed.len() as u64 * self.unit().bytes()
    }

    /// Backs what the sequence needs: by parts of huge pages, or else in a random order, so that neighbouring pages
    /// have no neighbouring frames.
    fn back(&mut self, sequence: &WordSequence<'_>) -> Result<(), MetalError> {
        let unit = self.unit();
        let of = |word: u32| ((u64::from(word) * WORD) >> unit.shift()) as usize;
        // A sequence has far more words than pages.
        let mut is_wanted = vec![false; of(sequence.reach()) + 1];
        sequence.all_words().for_each(|word| is_wanted[of(word)] = true);
        let wanted = || (0..is_wanted.len() as u64).filter(|&page| is_wanted[page as usize]);
        let room = self.memory.max_pages() as u64 * self.size.bytes() / unit.bytes();
        let mut fresh: Vec<u64> = wanted().filter(|page| !self.backed.contains(page)).collect();
        if (fresh.len() + self.backed.len()) as u64 > room {
            self.memory.drop_all()?;
            self.backed.clear();
            fresh = wanted().collect();
        }
        if fresh.len() as u64 > room {
            return Err(MetalError::Memory {
                pages: fresh.len(),
                size: unit,
                reason: format!("at most {room} are allowed"),
            });
        }
        if self.split {
            self.memory.zero_split(&fresh)?;
            self.backed.extend(fresh);
            return Ok(());
        }
        SplitMix64::new(fresh.len() as u64).shuffle(&mut fresh);
        for page in fresh {
            self.memory.zero(page)?;
            self.backed.insert(page);
        }
        Ok(())
    }

    /// Makes the sequence's accesses, then times `rounds` whole rounds, `samples` times: ticks a round.
    pub(crate) fn replay(
        &mut self,
        sequence: &WordSequence<'_>,
        rounds: u32,
        samples: usize,
    ) -> Result<Vec<f64>, MetalError> {
        let words = sequence.words;
        if words.is_empty() {
            return Err(MetalError::Unsupported("a sequence has at least one access".into()));
        }
        let reach = self.memory.bytes() / WORD;
        if u64::from(sequence.reach()) >= reach {
            let reason = format!("a sequence reaches {reach} words at most");
            return Err(MetalError::Memory { pages: words.len(), size: self.size, reason });
        }
        self.back(sequence)?;
        let itself = WARM.div_ceil(words.len()) as u32;
        let mut last = 0;
        let mut slices = Vec::new();
        Ok((0..samples)
            .map(|_| {
                match sequence.before {
                    [] => self.accesses(words, itself, (sequence.order, sequence.update), &mut last),
                    before => self.accesses(before, 1, (AccessOrder::Independent, false), &mut last),
                }
                slices.clear();
                self.timed(sequence, rounds.max(1), &mut last, &mut slices);
                undisturbed(&slices) / f64::from(rounds.max(1))
            })
            .collect())
    }

    /// Goes through the rounds and adds the ticks of each slice, with its accesses.
    fn timed(&self, sequence: &WordSequence<'_>, rounds: u32, last: &mut u64, slices: &mut Vec<(f64, usize)>) {
        let words = sequence.words;
        let together = (SLICE.div_ceil(words.len()) as u32).min(rounds);
        let mut left = rounds;
        while left > 0 {
            let together = together.min(left);
            left -= together;
            for slice in words.chunks(SLICE) {
                clock::fence();
                let start = clock::now();
                self.accesses(slice, together, (sequence.order, sequence.update), last);
                clock::fence();
                slices.push((clock::now().saturating_sub(start) as f64, slice.len() * together as usize));
            }
        }
    }

    /// Makes the accesses, so many times; `last` is what the one before them read, 0.
    fn accesses(&self, words: &[u32], times: u32, how: (AccessOrder, bool), last: &mut u64) {
        for _ in 0..times {
            // SAFETY: `replay` checked that the words, at least one, lie in the arena, which is mapped; all words in it
            // are zero.
            unsafe { clock::access_run(self.memory.base(), words.as_ptr(), words.len() as u64, how, last) };
        }
    }
}

impl WordSequence<'_> {
    /// Those of the sequence, and those before it.
    fn all_words(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().chain(self.before).copied()
    }

    /// The last word, by number.
    pub(super) fn reach(&self) -> u32 {
        self.all_words().max().unwrap_or(0)
    }

    /// Bytes up to its last word: no fewer than it needs of huge pages.
    pub(super) fn reach_bytes(&self) -> u64 {
        ((u64::from(self.reach()) + 1) * WORD).next_multiple_of(PageSize::M2.bytes())
    }
}

/// Ticks of all slices, those that something else took time from put back to the median of an access.
pub(super) fn undisturbed(slices: &[(f64, usize)]) -> f64 {
    let an_access = |slice: &(f64, usize)| slice.0 / slice.1.max(1) as f64;
    let Some(middle) = median(slices.iter().map(an_access)) else { return 0.0 };
    let ticks = |slice: &(f64, usize)| {
        if an_access(slice) > DISTURBED * middle {
            middle * slice.1 as f64
        } else {
            slice.0
        }
    };
    slices.iter().map(ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_that_waited_for_its_cpu_counts_as_the_others() {
        let slices = vec![(400.0, 100), (420.0, 100), (100_000.0, 100), (390.0, 100), (210.0, 50)];
        assert_eq!(undisturbed(&slices), 400.0 + 420.0 + 420.0 + 390.0 + 210.0);
        assert_eq!(undisturbed(&[]), 0.0);
    }
}
