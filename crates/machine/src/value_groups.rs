//! A description's values in groups, each of which is from one place, mostly.

use crate::{Machine, Origin, Origins};

impl Machine {
    /// The paths of all groups of values that a description has, in the order of its file: each TLB, walk cache and
    /// data cache, and what is not within one of these.
    pub fn value_groups(&self) -> Vec<String> {
        let mut groups: Vec<String> =
            ["clock_mhz", "topology", "page_table", "page_table.host", "walker"].map(String::from).into();
        groups.extend(self.tlbs.iter().map(|tlb| format!("tlb.{}", tlb.name)));
        groups.extend(self.walk_caches.iter().map(|cache| format!("walk_cache.{}", cache.name)));
        groups.extend(self.caches.iter().map(|cache| format!("cache.{}", cache.name)));
        groups.push("memory".into());
        groups.extend(self.stream.map(|_| "stream".into()));
        groups.push("context_switch".into());
        groups.extend(self.disturbances.iter().map(|disturbance| format!("disturbance.{}", disturbance.tlb)));
        groups.extend(self.timing.as_ref().map(|_| "timing".into()));
        groups
    }

    /// The same machine, all of whose values are from one place.
    #[must_use]
    pub fn all_from(mut self, origin: Origin) -> Self {
        self.origins = Origins::default();
        self.value_groups().iter().for_each(|group| self.origins.set(group, origin));
        self
    }
}
