//! A TLB array in its forms at work, each asked for the same list of keys.

use lookaside_stats::SplitMix64;

use crate::array_forms::{FormPlan, FormsPlan, PlaceCounts, ROUTES};
use crate::lookup::{LookupKeys, SimdLevel};
use crate::store::KeyStore;
use crate::way_stack::WayStacks;

/// A form of an array, empty at first.
#[derive(Debug)]
pub(crate) struct ArrayForm {
    /// Its first place.
    pub(crate) place: usize,
    /// The same among what is invalidated.
    invalidated: usize,
    store: FormStore,
}

#[derive(Debug)]
enum FormStore {
    One(Box<KeyStore>),
    Stacks(WayStacks),
}

impl FormsPlan {
    /// An instance of each form of an array of this number, of so many.
    pub(crate) fn instances_of(&self, number: usize, arrays: usize, rng: &SplitMix64) -> Vec<ArrayForm> {
        let its = self.arrays.iter().filter(|array| array.number == number);
        let forms = its.flat_map(|array| &array.by_index).flat_map(|its| &its.forms);
        let instance = |form: &FormPlan| ArrayForm {
            place: form.place,
            invalidated: arrays + form.place,
            store: if form.is_stack() {
                FormStore::Stacks(WayStacks::new(form.shape.sets, form.shape.ways))
            } else {
                FormStore::One(Box::new(KeyStore::new(form.shape, 32, rng.clone())))
            },
        };
        forms.map(instance).collect()
    }
}

impl ArrayForm {
    /// Asks for each key of a list, which came by these routes, so many by each.
    pub(crate) fn look_up_list(
        &mut self,
        simd: SimdLevel,
        keys: LookupKeys<'_>,
        (came, routes): (&[u64; ROUTES], &[u16]),
        missed: &mut [u16],
        counts: &mut [PlaceCounts],
    ) {
        match &mut self.store {
            FormStore::One(store) => {
                let lookups = store.look_up_list(simd, keys, missed);
                let counts = &mut counts[0];
                counts.filled += (lookups.missed - lookups.evicted) as u64;
                counts.hits.iter_mut().zip(came).for_each(|(hits, came)| *hits += came);
                if let Some(only) = came.iter().position(|&came| came == keys.sets.len() as u64) {
                    counts.hits[only] -= lookups.missed as u64;
                } else {
                    missed[..lookups.missed]
                        .iter()
                        .for_each(|&k| counts.hits[usize::from(routes[usize::from(k)])] -= 1);
                }
            }
            FormStore::Stacks(stacks) => stacks.look_up_list(keys, |k, lookup| {
                if let Some(depth) = lookup.depth {
                    counts[depth].hits[usize::from(routes[k]) % ROUTES] += 1;
                }
                if let Some(hole) = lookup.hole {
                    counts[hole].filled += 1;
                    lookup.depth.into_iter().for_each(|depth| counts[depth].emptied += 1);
                }
            }),
        }
    }

    /// Invalidates the entries whose tag the predicate picks: how many is added where its places count.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(u32) -> bool, invalidated: &mut [u64]) {
        let invalidated = &mut invalidated[self.invalidated..];
        match &mut self.store {
            FormStore::One(store) => invalidated[0] += store.invalidate(|tag| picks(tag as u32)),
            FormStore::Stacks(stacks) => stacks.invalidate(picks, invalidated),
        }
    }

    /// Calls `f` with the tag of each entry.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        match &self.store {
            FormStore::One(store) => store.for_each(|tag| f(tag as u32)),
            FormStore::Stacks(stacks) => stacks.for_each(f),
        }
    }

    /// Puts other tags in the place of those that are there.
    pub(crate) fn rename(&mut self, name: impl FnMut(u32) -> u32) {
        match &mut self.store {
            FormStore::One(store) => store.rename(name),
            FormStore::Stacks(stacks) => stacks.rename(name),
        }
    }
}
