//! One TLB array at work: what its entries are called, lookups and fills, coalesced blocks of pages.

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use crate::assoc::{Assoc, EMPTY_KEY};
use crate::classes::{BASE, BASE_SHIFT, HUGE};
use crate::form_store::ArrayForm;
use crate::lookup::{LookupCounts, LookupKeys, LookupResult, SimdLevel};
use crate::lru::{LruSets, MAX_WAYS};
use crate::plan::{EnginePlan, TlbPlan};
use crate::store::KeyStore;
use crate::tag_layout::OTHER_SIZE;
use crate::tags::{page_in_chunk, Tags, KERNEL_ID, MAX_HOLDER, PAGE_BITS};

/// The bit of a tag that tells the entry of a directory from pages: none of a chunk's base pages has it, of which there
/// are no more than `2^(21 - 12)`.
const DIRECTORY: u32 = 1 << (PAGE_BITS - 2);

/// One TLB array instance.
#[derive(Debug)]
pub(crate) struct TlbInstance {
    pub(crate) number: usize,
    entries: TlbEntries,
    /// Fills shared out to the arrays beside this one.
    pub(crate) rotation: u64,
    /// The same array in other forms, if it is asked in such.
    pub(crate) forms: Vec<ArrayForm>,
}

#[derive(Debug)]
enum TlbEntries {
    /// One page each.
    Pages(KeyStore),
    /// LRU, a block of pages each that have one distance to their frames: the pages covered beside each tag.
    Blocks(LruSets),
    /// Blocks under any policy, or of pages that keep no common distance: covered pages and distance, by slot.
    Scattered(Assoc, Vec<(u64, u64)>),
}

/// What an access looks for in one array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlbKey {
    pub(crate) set: usize,
    pub(crate) tag: u32,
    /// The page's bit in its block; 1 where the array does not coalesce it.
    pub(crate) bit: u64,
}

impl TlbPlan {
    /// Which of a chunk's tags it goes by: see [`crate::chunks::KnownChunk::tags`].
    pub(crate) fn tag_name(&self) -> usize {
        usize::from(self.hw_tag) + 2 * usize::from(self.global)
    }

    /// Largest space id that an entry can be held under.
    pub(crate) fn max_id(&self, plan: &EnginePlan) -> u64 {
        MAX_HOLDER / self.hw_factor(plan) - 1
    }

    fn hw_factor(&self, plan: &EnginePlan) -> u64 {
        if self.hw_tag {
            plan.hw_threads as u64
        } else {
            1
        }
    }

    /// Who holds an entry: the space, or the space on a hardware thread.
    #[inline]
    pub(crate) fn holder(&self, plan: &EnginePlan, id: u64, hw: usize) -> u64 {
        if self.hw_tag {
            id * plan.hw_threads as u64 + hw as u64
        } else {
            id
        }
    }

    /// Id of the space that an entry is held under.
    pub(crate) fn id_of(&self, plan: &EnginePlan, tags: &Tags, tag: u32) -> u64 {
        tags.of(tag).0 / self.hw_factor(plan)
    }

    /// Does what an entry covers overlap these bytes? An entry of a directory always does, as those of walk caches do.
    pub(crate) fn overlaps(
        &self,
        plan: &EnginePlan,
        tags: &Tags,
        tag: u32,
        mask: u64,
        (start, end): (u64, u64),
    ) -> bool {
        let (_, chunk) = tags.of(tag);
        let place = page_in_chunk(tag);
        if place & DIRECTORY != 0 {
            return true;
        }
        let layout = &self.layouts[if place & OTHER_SIZE == 0 { BASE } else { HUGE }];
        layout.overlaps((chunk << plan.chunk_shift, place & !OTHER_SIZE), mask, (start, end))
    }

    /// Is the page of a class at `va` locked here, the kernel's half being `global`?
    #[inline]
    pub(crate) fn is_locked(&self, process: u32, global: bool, va: u64, class: usize) -> bool {
        let shift = self.layouts[class].page_shift;
        self.locks.iter().any(|lock| {
            lock.va >> shift == va >> shift && lock.global == global && lock.process.is_none_or(|p| p == process)
        })
    }

    /// May a locked page, of the largest size that the array holds, overlap these bytes?
    pub(crate) fn has_locks_in(&self, start: u64, end: u64) -> bool {
        let shift = self.entry_shift.into_iter().flatten().max().unwrap_or(BASE_SHIFT);
        self.locks.iter().any(|lock| lock.va >> shift << shift < end && start < ((lock.va >> shift) + 1) << shift)
    }

    /// What to look for: the page of a class at `va`, its chunk's tag being given.
    #[inline]
    pub(crate) fn key(&self, chunk: u32, va: u64, class: usize) -> TlbKey {
        let layout = &self.layouts[class];
        TlbKey { set: self.index.set_of(va >> layout.set_shift), tag: layout.tag(chunk, va), bit: layout.bit(va) }
    }

    /// The same, where nothing is known of the page: its space's id is given, the kernel's half being `global`.
    pub(crate) fn key_held_by(
        &self,
        plan: &EnginePlan,
        tags: &mut Tags,
        (global, id, hw): (bool, u64, usize),
        va: u64,
        class: usize,
    ) -> TlbKey {
        let holder = self.holder(plan, held_under(self, global, id), hw);
        let chunk = tags.of_chunk(holder, self.layouts[class].chunk(va));
        self.key(chunk, va, class)
    }

    /// What to look for: the entry that points to the leaf table of `va`, held by `holder`. Its set is that of a page
    /// as large as what it covers.
    pub(crate) fn directory_key(&self, plan: &EnginePlan, tags: &mut Tags, holder: u64, va: u64) -> TlbKey {
        let low_bit = plan.directories.low_bit;
        let chunk = tags.of_chunk(holder, va >> low_bit << low_bit >> plan.chunk_shift);
        TlbKey { set: self.index.set_of(va >> (low_bit + self.coalesce_shift)), tag: chunk | DIRECTORY, bit: 1 }
    }
}

/// The id that an array holds a page under.
#[inline]
pub(crate) fn held_under(tlb: &TlbPlan, global: bool, id: u64) -> u64 {
    if global && tlb.global {
        KERNEL_ID
    } else {
        id
    }
}

impl TlbInstance {
    /// An empty instance of the array of this number.
    pub(crate) fn new(plan: &EnginePlan, number: usize, rng: SplitMix64) -> Self {
        let tlb = &plan.tlbs[number];
        let shape = tlb.shape;
        let forms = plan.forms.iter().flat_map(|forms| forms.instances_of(number, plan.tlbs.len(), &rng)).collect();
        let entries = if tlb.coalesce_shift == 0 {
            TlbEntries::Pages(KeyStore::new(shape, 32, rng))
        } else if shape.replacement == Replacement::Lru && shape.ways <= MAX_WAYS && tlb.keeps_distance {
            TlbEntries::Blocks(LruSets::new(shape.sets, shape.ways, true))
        } else {
            TlbEntries::Scattered(Assoc::new(shape, rng), vec![(0, 0); shape.sets * shape.ways])
        };
        Self { number, entries, rotation: 0, forms }
    }

    /// Is the page there? Touches its entry if so.
    #[inline(always)]
    pub(crate) fn access(&mut self, key: &TlbKey) -> bool {
        match &mut self.entries {
            TlbEntries::Pages(store) => store.access(key.set, key.tag.into()),
            TlbEntries::Blocks(sets) => sets.access_masked(key.set, key.tag, key.bit as u32),
            TlbEntries::Scattered(assoc, blocks) => {
                let slot = assoc.find_that(key.set, key.tag.into(), |slot| blocks[slot].0 & key.bit != 0);
                slot.inspect(|&slot| assoc.touch(key.set, slot)).is_some()
            }
        }
    }

    /// Asks for a list of pages, each filled where it is not there. In instances that do not [hold
    /// pages](Self::holds_pages) the tags' second words are what to fill: the pages of the block that have been
    /// touched; `bits`: the page's own.
    pub(crate) fn look_up_list(
        &mut self,
        simd: SimdLevel,
        keys: LookupKeys<'_>,
        bits: &[u32],
        missed: &mut [u16],
    ) -> LookupCounts {
        match &mut self.entries {
            TlbEntries::Pages(store) => store.look_up_list(simd, LookupKeys { seconds: &[], ..keys }, missed),
            TlbEntries::Blocks(sets) => sets.look_up_masked_list(simd, keys, bits, missed),
            TlbEntries::Scattered(..) => {
                let mut lookups = LookupCounts::default();
                for (k, ((&set, &tag), (&mask, &bit))) in
                    keys.sets.iter().zip(keys.words).zip(keys.seconds.iter().zip(bits)).enumerate()
                {
                    let key = TlbKey { set: set as usize, tag, bit: bit.into() };
                    if !self.access(&key) {
                        lookups.add_miss(k, self.fill(&key, mask.into(), 0), missed);
                    }
                }
                lookups
            }
        }
    }

    /// Fills the page, which is not there; `mask`: the pages of its block that have its distance to their frames, this
    /// one included. [`LookupResult::Hit`]: they were added to an entry of the block.
    #[inline]
    pub(crate) fn fill(&mut self, key: &TlbKey, mask: u64, distance: u64) -> LookupResult {
        match &mut self.entries {
            TlbEntries::Pages(store) => store.access_or_fill(key.set, key.tag.into()),
            TlbEntries::Blocks(sets) => sets.fill_masked(key.set, key.tag, mask as u32),
            TlbEntries::Scattered(assoc, blocks) => {
                let tag = key.tag.into();
                if let Some(slot) = assoc.find_that(key.set, tag, |slot| blocks[slot].1 == distance) {
                    blocks[slot].0 |= mask;
                    assoc.touch(key.set, slot);
                    return LookupResult::Hit;
                }
                let (slot, old) = assoc.fill(key.set, tag);
                blocks[slot] = (mask, distance);
                if old == EMPTY_KEY {
                    LookupResult::New
                } else {
                    LookupResult::Evicted
                }
            }
        }
    }

    /// Puts an entry in its place behind `depth` others of its set that were used later, if it stands before that.
    /// Where there is another order than that of use, nothing happens.
    pub(crate) fn set_back(&mut self, key: &TlbKey, depth: usize) {
        match &mut self.entries {
            TlbEntries::Pages(KeyStore::Narrow(sets)) | TlbEntries::Blocks(sets) => {
                sets.set_back(key.set, key.tag, depth);
            }
            TlbEntries::Pages(KeyStore::Any(assoc)) => assoc.set_back(key.set, key.tag.into(), depth),
            TlbEntries::Pages(_) | TlbEntries::Scattered(..) => {}
        }
    }

    /// Invalidates the entries whose tag and covered pages the predicate picks: how many is added by array and, of forms,
    /// by place.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(u32, u64) -> bool, invalidated: &mut [u64]) {
        self.forms.iter_mut().for_each(|form| form.invalidate(|tag| picks(tag, 1), invalidated));
        invalidated[self.number] += match &mut self.entries {
            TlbEntries::Pages(store) => store.invalidate(|tag| picks(tag as u32, 1)),
            TlbEntries::Blocks(sets) => sets.update(|tag, mask| (!picks(tag, mask.into())).then_some(tag)),
            TlbEntries::Scattered(assoc, blocks) => assoc.invalidate(|slot, tag| picks(tag as u32, blocks[slot].0)),
        };
    }

    /// Calls `f` with the tag of each entry.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        self.forms.iter().for_each(|form| form.for_each(&mut f));
        match &self.entries {
            TlbEntries::Pages(store) => store.for_each(|tag| f(tag as u32)),
            TlbEntries::Blocks(sets) => sets.for_each(|tag, _| f(tag)),
            TlbEntries::Scattered(assoc, _) => {
                assoc.keys().iter().filter(|&&key| key != EMPTY_KEY).for_each(|&tag| f(tag as u32));
            }
        }
    }

    /// Puts other tags in the place of those that are there.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(u32) -> u32) {
        self.forms.iter_mut().for_each(|form| form.rename(&mut name));
        match &mut self.entries {
            TlbEntries::Pages(store) => store.rename(name),
            TlbEntries::Blocks(sets) => {
                sets.update(|tag, _| Some(name(tag)));
            }
            TlbEntries::Scattered(assoc, _) => assoc.rename(|tag| name(tag as u32).into()),
        }
    }
}
