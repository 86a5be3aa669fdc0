//! Ids of spaces and tags of pages are fewer than there may ever be: how they are given out, and given out anew.

use crate::engine::{Engine, KERNEL};
use crate::places::NAMES_A_PLACE;

impl Engine {
    /// The id of a space in keys, if it has one: without, no entry is held under it.
    pub(crate) fn id_if_any(&self, space: usize) -> Option<u64> {
        self.ids[space]
    }

    /// The id of a space in keys. There are fewer ids than processes may ever be: the ones that no
    /// entry holds any more are given out again.
    pub(crate) fn id(&mut self, space: usize) -> u64 {
        if let Some(id) = self.ids[space] {
            return id;
        }
        if self.next_id > self.max_id && self.free_ids.is_empty() {
            self.reclaim_ids();
        }
        let id = self.free_ids.pop().unwrap_or(self.next_id);
        self.next_id = self.next_id.max(id + 1);
        self.ids[space] = Some(id);
        id
    }

    #[cold]
    fn reclaim_ids(&mut self) {
        self.places.forget();
        let held = self.parts.ids_held(&self.plan);
        for id in &mut self.ids[KERNEL + 1..] {
            if let Some(free) = id.take_if(|id| !held.contains(id)) {
                self.free_ids.push(free);
            }
        }
        if self.free_ids.is_empty() {
            // More spaces hold entries than there are ids (over 250 even at 1024 threads and 57 bits):
            // as real ASID allocators do, start over with everything flushed.
            for id in &mut self.ids[KERNEL + 1..] {
                if let Some(id) = id.take() {
                    self.parts.shoot_down(&self.plan, id, None, &mut self.counts.invalidated);
                    self.free_ids.push(id);
                }
            }
        }
    }

    /// Sees to it that so many accesses find free tags.
    pub(crate) fn make_room_for_tags(&mut self, accesses: usize) {
        let plan = &self.plan;
        let of_walks = 2 * (plan.walk_caches.len() + plan.directories.arrays.len());
        let names_an_access = plan.tlbs.len() + of_walks + NAMES_A_PLACE as usize;
        let wanted = (accesses * names_an_access) as u32;
        if self.parts.tags.room() >= wanted {
            return;
        }
        self.places.forget();
        self.parts.renew_tags(&self.plan);
        if self.parts.tags.room() < wanted {
            // More chunks are held at once than there are tags for, over 3 TiB of memory. As when the ids run out.
            self.parts.empty_tlbs(&self.plan, &mut self.counts.invalidated);
        }
    }
}
