//! A cache by physical addresses, whose lines may still be on their way.

use lookaside_machine::{Cache as CacheShape, IndexFn, Replacement};
use lookaside_stats::SplitMix64;

use super::MigrationModelError;

#[derive(Clone, Copy, Debug, Default)]
struct CacheSlot {
    line: u32,
    /// Cycle from which the line is there.
    ready: u64,
    /// Of the cache when it was filled: an older one is a flushed line. 0 is none.
    epoch: u32,
    /// When it was used last.
    used: u64,
    /// Stored to since it came.
    dirty: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SimulatedCache {
    slots: Vec<CacheSlot>,
    ways: usize,
    line_shift: u32,
    set_mask: u32,
    random: Option<SplitMix64>,
    epoch: u32,
    uses: u64,
    pub(super) hit_cycles: u64,
}

impl SimulatedCache {
    /// Empty. `seed` is what random replacement draws from.
    ///
    /// # Errors
    /// Its policy is neither LRU nor random, its index not the low bits, or its sets are no power of two.
    pub(super) fn new(shape: &CacheShape, machine: &str, seed: u64) -> Result<Self, MigrationModelError> {
        let (sets, ways) = (shape.sets(), shape.ways.count(shape.lines()).max(1));
        let known =
            matches!(shape.replacement, Replacement::Lru | Replacement::Random) && shape.index == IndexFn::Linear;
        if !known || !sets.is_power_of_two() {
            return Err(MigrationModelError::Machine {
                machine: machine.into(),
                what: "caches of LRU or random replacement, indexed by the low bits",
            });
        }
        Ok(Self {
            slots: vec![CacheSlot::default(); (sets * ways) as usize],
            ways: ways as usize,
            line_shift: shape.line_bytes.trailing_zeros(),
            set_mask: sets - 1,
            random: (shape.replacement == Replacement::Random).then(|| SplitMix64::new(seed)),
            epoch: 1,
            uses: 0,
            hit_cycles: shape.hit_cycles.round() as u64,
        })
    }

    /// Since when, or from when, the line of a byte is there. It is used.
    pub(super) fn find(&mut self, addr: u32) -> Option<u64> {
        self.uses += 1;
        let (line, epoch, uses) = (addr >> self.line_shift, self.epoch, self.uses);
        let slot = self.set(line).iter_mut().find(|slot| slot.line == line && slot.epoch == epoch)?;
        slot.used = uses;
        Some(slot.ready)
    }

    /// Fills the line of a byte, which is not there.
    pub(super) fn fill(&mut self, addr: u32, ready: u64) {
        let (line, epoch, uses, ways) = (addr >> self.line_shift, self.epoch, self.uses, self.ways as u32);
        let free = self.set(line).iter().position(|slot| slot.epoch != epoch);
        let way = free.unwrap_or_else(|| match &mut self.random {
            Some(random) => random.below_u32(ways) as usize,
            None => self.set(line).iter().enumerate().min_by_key(|(_, slot)| slot.used).map_or(0, |(way, _)| way),
        });
        self.set(line)[way] = CacheSlot { line, ready, epoch, used: uses, dirty: false };
    }

    /// Drops the line of a byte, if it is there.
    pub(super) fn drop_line(&mut self, addr: u32) {
        let (line, epoch) = (addr >> self.line_shift, self.epoch);
        self.set(line)
            .iter_mut()
            .filter(|slot| slot.line == line && slot.epoch == epoch)
            .for_each(|slot| slot.epoch = 0);
    }

    /// The line of a byte, if it is there, was stored to.
    pub(super) fn store(&mut self, addr: u32) {
        let (line, epoch) = (addr >> self.line_shift, self.epoch);
        let found = self.set(line).iter_mut().find(|slot| slot.line == line && slot.epoch == epoch);
        found.into_iter().for_each(|slot| slot.dirty = true);
    }

    /// Lines that were stored to.
    pub(super) fn dirty(&self) -> u64 {
        self.slots.iter().filter(|slot| slot.epoch == self.epoch && slot.dirty).count() as u64
    }

    /// Empties it.
    pub(super) fn flush(&mut self) {
        self.epoch += 1;
    }

    fn set(&mut self, line: u32) -> &mut [CacheSlot] {
        let first = (line & self.set_mask) as usize * self.ways;
        &mut self.slots[first..first + self.ways]
    }
}
