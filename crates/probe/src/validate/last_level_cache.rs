//! How much of a shared last-level cache this program has at the moment: like the clock, no property of the machine.
//!
//! Programs on other cores, and on a cloud's machines other guests, take as much of it as they use. On the development
//! machine 3 to 12 of 32 MiB were left, within minutes.

use crate::metal::{Metal, MetalError, WordSequence};
use crate::validate::model::WORD;
use lookaside_machine::{Cache, FilledBy, Machine, PageSize, Serves, SharedBy, Ways};
use lookaside_stats::SplitMix64;

/// Bytes of a small page, and of a data-cache line where the description has none of its own.
const PAGE: u64 = 4096;
/// All lines of so many pages are read in random order before the next window's: translations stay in a first-level TLB
/// (every one has 32 entries or more), and no prefetcher sees a stream.
const WINDOW: u64 = 32;
/// Footprints tried are so many to an octave.
const AN_OCTAVE: f64 = 4.0;
/// The most that is tried, as a multiple of the description's size.
const MOST: f64 = 4.0;
/// Where the share before a run is so many times the share after it, or less than one over that, it changed meanwhile:
/// two steps of the search.
const STEADY: f64 = 1.45;

/// The last data cache, if others use it too.
#[derive(Clone, Debug)]
pub(crate) struct LastLevelCache {
    number: usize,
    /// Bytes that earlier caches hold.
    earlier: u64,
    /// What the description says that it holds, with what the cache before holds beside it if it is filled by victims.
    pub(crate) described: u64,
    /// Bytes of that which the cache before holds.
    beside: u64,
    /// Half of the accesses miss where they take so many cycles.
    half_cycles: f64,
    line: u64,
}

impl LastLevelCache {
    /// `None` where the description has no shared cache behind another one.
    pub(crate) fn of(machine: &Machine) -> Option<Self> {
        let loads = |cache: &&(usize, &Cache)| cache.1.serves.contains(&Serves::Load);
        let caches: Vec<(usize, &Cache)> = machine.caches.iter().enumerate().collect();
        let (number, last) = *caches.iter().filter(loads).max_by_key(|(_, cache)| cache.level)?;
        let before = caches.iter().filter(loads).filter(|(_, cache)| cache.level < last.level);
        let earlier = before.map(|(_, cache)| cache.size).max()?;
        let beside = if last.filled_by == FilledBy::Victims { earlier } else { 0 };
        (last.shared_by == SharedBy::Socket && last.size > earlier).then_some(Self {
            number,
            earlier,
            described: last.size + beside,
            beside,
            half_cycles: (last.hit_cycles + machine.memory.cycles) / 2.0,
            line: u64::from(last.line_bytes),
        })
    }

    /// Whether a pattern of so many accesses may reach it: each to a line and two leaf entries of its own.
    pub(crate) fn serves(&self, accesses: usize) -> bool {
        3 * accesses as u64 * self.line > self.earlier / 2
    }

    /// Bytes that it holds for a program now, within a quarter of an octave: the least footprint in a circle of whose
    /// accesses half miss. At most `max_bytes`.
    ///
    /// # Errors
    /// What the metal refuses.
    pub(crate) fn now(
        &self,
        metal: &mut dyn Metal,
        size: PageSize,
        cycles_per_tick: f64,
        max_bytes: u64,
    ) -> Result<u64, MetalError> {
        let bytes = |step: u32| (self.earlier as f64 * (f64::from(step) / AN_OCTAVE).exp2()) as u64;
        let most = ((self.described as f64 * MOST) as u64).min(max_bytes);
        // What fits, and what does not.
        let (mut low, mut high) = (1, 2);
        while bytes(high) < most {
            high += 1;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            let words = self.words(bytes(middle));
            let ticks =
                metal.replay(&WordSequence::dependent(size, &words), 1, 1)?.first().copied().unwrap_or_default();
            match ticks * cycles_per_tick / words.len() as f64 > self.half_cycles {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok((bytes(low) as f64 * bytes(high) as f64).sqrt() as u64)
    }

    /// Whether two of its sizes are the same as far as can be told.
    pub(crate) fn same(a: u64, b: u64) -> bool {
        a.max(b) as f64 <= STEADY * a.min(b) as f64
    }

    /// The description with so many bytes in its place: the nearest that 8, 10, 12 or 14 ways of a power of two of sets
    /// make.
    pub(crate) fn resized(&self, machine: &Machine, bytes: u64) -> Machine {
        let mut machine = machine.clone();
        let cache = &mut machine.caches[self.number];
        let lines = bytes.saturating_sub(self.beside).max(1) as f64 / self.line as f64;
        let shapes = (1..40).flat_map(|log2| [8u32, 10, 12, 14].map(|ways| (ways, 1u64 << log2)));
        let off = |shape: &(u32, u64)| (lines / (f64::from(shape.0) * shape.1 as f64)).ln().abs();
        if let Some((ways, sets)) = shapes.min_by(|a, b| off(a).total_cmp(&off(b))) {
            cache.set_shape(u64::from(ways) * sets * self.line, Ways::Count(ways));
        }
        machine
    }

    /// All lines of a footprint, window by window.
    fn words(&self, bytes: u64) -> Vec<u32> {
        let mut rng = SplitMix64::new(bytes);
        let mut pages: Vec<u64> = (0..bytes.div_ceil(PAGE)).collect();
        rng.shuffle(&mut pages);
        let mut words = Vec::with_capacity((bytes / self.line) as usize);
        for window in pages.chunks(WINDOW as usize) {
            let from = words.len();
            let lines = (0..PAGE / self.line).flat_map(|line| window.iter().map(move |page| (page, line)));
            words.extend(lines.map(|(page, line)| ((page * PAGE + line * self.line) / WORD) as u32));
            rng.shuffle(&mut words[from..]);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_machine::preset;

    #[test]
    fn another_size_is_a_possible_machine() {
        for (name, beside) in [("zen4", 1 << 20), ("xeon-e5-2650", 0)] {
            let machine = preset(name).expect("a preset");
            let cache = LastLevelCache::of(&machine).expect("a shared last level");
            let size = machine.caches[cache.number].size;
            assert_eq!(cache.described, size + beside, "{name}");
            let whole = cache.resized(&machine, cache.described).caches[cache.number].size;
            assert!(LastLevelCache::same(whole, size), "{name}: {whole}");
            let small = cache.resized(&machine, (4 << 20) + beside);
            small.check().expect("a possible machine");
            assert_eq!(small.caches[cache.number].size, 4 << 20, "{name}");
        }
    }
}
