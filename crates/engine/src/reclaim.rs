//! Reclaims ids of address spaces and tags of chunks when they run out: those that no entry has are given out anew.

use crate::chunks::TAGS_PER_CHUNK;
use crate::engine::Engine;

impl Engine {
    /// The id of a space in keys.
    pub(crate) fn space_id(&mut self, space: usize) -> u64 {
        if let Some(id) = self.ids.of(space) {
            return id;
        }
        if self.ids.are_used_up() {
            self.chunks.forget();
            self.ids.reclaim(&mut self.hardware, &self.plan, &mut self.counts.invalidated);
        }
        self.ids.give(space)
    }

    /// Sees to it that so many accesses find free tags.
    pub(crate) fn make_room_for_tags(&mut self, accesses: usize) {
        let plan = &self.plan;
        let of_walks = plan.walk_caches.len() + plan.directories.arrays.len();
        let beyond_chunks = plan.tlbs.len();
        let tags_per_access = TAGS_PER_CHUNK as usize + of_walks + beyond_chunks;
        let wanted = (accesses * tags_per_access) as u32;
        if self.hardware.tags.room() >= wanted {
            return;
        }
        self.chunks.forget();
        self.hardware.renew_tags(&self.plan);
        if self.hardware.tags.room() < wanted {
            // More chunks are held at once than there are tags for, over 3 TiB of memory. As when the ids run out.
            self.hardware.empty_tlbs(&self.plan, &mut self.counts.invalidated);
        }
    }
}
