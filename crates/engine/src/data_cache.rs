//! Data caches: which lines they hold, what an access brings in, what it throws out (`SEMANTICS.md` §7).

use lookaside_stats::SplitMix64;
use lookaside_trace::Kind;

use crate::lookup::LookupResult;
use crate::os::PHYSICAL_BITS;
use crate::plan::{CachePlan, FillRule};
use crate::set_index::SetIndex;
use crate::store::KeyStore;

/// One data cache instance.
#[derive(Debug)]
pub(crate) struct CacheInstance {
    /// Its number in the machine file.
    pub(crate) number: usize,
    write_allocate: bool,
    fill: FillRule,
    /// The instances that hand on to this one, by slot.
    feeders: Vec<usize>,
    pub(crate) store: KeyStore,
    pub(crate) layout: LineLayout,
}

/// How set and key of a line come from an address.
#[derive(Clone, Debug)]
pub(crate) struct LineLayout {
    pub(crate) shifts: LineShifts,
    pub(crate) index: SetIndex,
}

/// How a line's key is cut out of an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineShifts {
    line: u32,
    /// Low bits of a line's number that its set says already.
    key: u32,
}

impl LineShifts {
    /// The set, by this index of a line's number, and the key of the line of this address.
    #[inline(always)]
    pub(crate) fn key_by(&self, set_of: impl Fn(u64) -> u32, physical: u64) -> (u32, u64) {
        let line = physical >> self.line;
        (set_of(line), line >> self.key)
    }
}

/// No line is thrown out: no physical address is all ones.
pub(crate) const NO_LINE: u64 = u64::MAX;

impl LineLayout {
    /// The set and the key of the line of this address.
    #[inline(always)]
    fn key(&self, physical: u64) -> (usize, u64) {
        let (set, key) = self.shifts.key_by(|line| self.index.set_of(line) as u32, physical);
        (set as usize, key)
    }

    /// The address of the line of a key in a set.
    fn physical_of(&self, set: usize, key: u64) -> u64 {
        // Without such bits the key is the whole number.
        let low = if self.shifts.key == 0 { 0 } else { set as u64 };
        (key << self.shifts.key | low) << self.shifts.line
    }
}

impl CacheInstance {
    /// An empty instance of the cache of this number.
    pub(crate) fn new(number: usize, cache: &CachePlan, rng: SplitMix64) -> Self {
        let set_bits = match cache.index {
            SetIndex::Low { .. } => cache.shape.sets.trailing_zeros(),
            _ => 0,
        };
        // One more: no key is all ones.
        let store = KeyStore::new(cache.shape, PHYSICAL_BITS - cache.line_shift - set_bits + 1, rng);
        let key = if matches!(store, KeyStore::Any(_)) { 0 } else { set_bits };
        let layout = LineLayout { shifts: LineShifts { line: cache.line_shift, key }, index: cache.index.clone() };
        Self { number, write_allocate: cache.write_allocate, fill: cache.fill, feeders: Vec::new(), store, layout }
    }

    /// Is the line of this address there? What follows from that is as the cache's [`FillRule`] says. `thrown_out`: the
    /// address of the line that the cache asked before threw out, or [`NO_LINE`]; then what this one throws out, if it
    /// hands that on.
    #[inline(always)]
    pub(crate) fn access(&mut self, physical: u64, is_store: bool, thrown_out: &mut u64) -> bool {
        let (set, key) = self.layout.key(physical);
        match self.fill {
            FillRule::Misses if is_store && !self.write_allocate => self.store.access(set, key),
            FillRule::Misses => self.store.access_or_fill(set, key) == LookupResult::Hit,
            FillRule::MissesAndHandsOn => {
                let (result, old) = self.store.access_or_replace(set, key);
                let is_full = result == LookupResult::Evicted;
                *thrown_out = if is_full { self.layout.physical_of(set, old) } else { NO_LINE };
                result == LookupResult::Hit
            }
            FillRule::VictimsOf(_) => {
                let was_there = self.store.remove(set, key);
                let victim = std::mem::replace(thrown_out, NO_LINE);
                if victim != NO_LINE {
                    let (set, key) = self.layout.key(victim);
                    self.store.access_or_fill(set, key);
                }
                was_there
            }
        }
    }

    /// An instance that is there hands on to this one.
    pub(crate) fn add_feeder(&mut self, slot: usize) {
        if !self.feeders.contains(&slot) {
            self.feeders.push(slot);
        }
    }

    /// Is the line of this address there? Changes nothing.
    fn holds(&self, physical: u64) -> bool {
        let (set, key) = self.layout.key(physical);
        self.store.holds(set, key)
    }

    /// Brings the set of this address nearer, which will be asked soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, physical: u64) {
        self.store.prefetch(self.layout.key(physical).0);
    }
}

/// Asks the data caches of a route in turn for a byte's line, for an access of this kind; fills those that had it not
/// and are filled by such. The server's position in the route; its length = memory.
#[inline(always)]
pub(crate) fn serve(caches: &mut [CacheInstance], route: &[usize], kind: usize, physical: u64) -> usize {
    let (mut thrown_out, mut before) = (NO_LINE, None);
    for (position, &slot) in route.iter().enumerate() {
        let was_there = caches[slot].access(physical, kind == Kind::Store as usize, &mut thrown_out);
        if was_there || is_in_a_peer(caches, slot, before, physical) {
            return position;
        }
        before = Some(slot);
    }
    route.len()
}

/// Does one of the instances that hand on to this one hold the line, but for the access's own?
#[inline(always)]
pub(crate) fn is_in_a_peer(caches: &[CacheInstance], slot: usize, own: Option<usize>, physical: u64) -> bool {
    caches[slot].feeders.iter().any(|&peer| Some(peer) != own && caches[peer].holds(physical))
}
