//! Can data caches stand in this order? Some policies and ways to be filled need another cache before.

use crate::violation::{fault, CheckResult};
use crate::{FilledBy, Machine, Replacement, Serves};

/// Checks what a data cache needs of those before it.
pub(crate) fn check_order(machine: &Machine, number: usize) -> CheckResult {
    let cache = &machine.caches[number];
    if cache.replacement == Replacement::Srrip && !is_behind_others(machine, number) {
        let only = "srrip is for caches alone whose accesses all ask, and fill, another cache before: traces leave \
                    out what hits the same line again at once, which makes a difference to it";
        return fault(format!("cache[{number}].replacement"), only);
    }
    let reason = if cache.filled_by == FilledBy::Victims { not_fed(machine, number) } else { None };
    reason.map_or(Ok(()), |reason| fault(format!("cache[{number}].filled_by"), format!("victims: {reason}")))
}

impl Machine {
    /// Lets each cache that was filled by what another throws out, and can't be any more, be filled by misses; their
    /// names. For who changes caches one by one.
    pub fn drop_unfed_victims(&mut self) -> Vec<String> {
        let unfed: Vec<usize> = (0..self.caches.len())
            .filter(|&i| self.caches[i].filled_by == FilledBy::Victims && not_fed(self, i).is_some())
            .collect();
        unfed.iter().for_each(|&i| self.caches[i].filled_by = FilledBy::Misses);
        unfed.into_iter().map(|i| self.caches[i].name.clone()).collect()
    }
}

/// Does each access that a cache serves ask one before, which has the line from then on?
fn is_behind_others(machine: &Machine, number: usize) -> bool {
    let place = |i: usize| (machine.caches[i].level, i);
    machine.caches[number].serves.iter().all(|kind| {
        (0..machine.caches.len()).filter(|&i| place(i) < place(number)).any(|i| {
            let before = &machine.caches[i];
            before.serves.contains(kind) && (*kind != Serves::Store || before.write_allocate)
        })
    })
}

/// Why no cache before this one can hand it what it throws out, if none can. That has to be one cache for all accesses, the
/// last that each of them asks before.
fn not_fed(machine: &Machine, number: usize) -> Option<String> {
    let victims = &machine.caches[number];
    let place = |i: usize| (machine.caches[i].level, i);
    let before_of = |kind: Serves, first_level: u32| {
        let asked = |&i: &usize| machine.caches[i].serves.contains(&kind) && machine.caches[i].level >= first_level;
        (0..machine.caches.len()).filter(|&i| place(i) < place(number)).filter(asked).max_by_key(|&i| place(i))
    };
    let walks = victims.serves.contains(&Serves::Load) && victims.level >= machine.walker.first_cache_level;
    let walks = walks.then_some((Serves::Load, machine.walker.first_cache_level));
    let mut before =
        victims.serves.iter().map(|&kind| (kind, 0)).chain(walks).map(|(kind, level)| before_of(kind, level));
    let Some(first) = before.next().flatten() else { return Some("no cache is asked before it".into()) };
    let (name, feeder) = (&machine.caches[first].name, &machine.caches[first]);
    if before.any(|other| other != Some(first)) {
        Some(format!("some accesses or walks ask another cache, or none, before it, and others {name}"))
    } else if !feeder.serves.iter().all(|kind| victims.serves.contains(kind)) {
        Some(format!("it has to serve all that {name} before it serves"))
    } else if feeder.filled_by == FilledBy::Victims || !feeder.write_allocate {
        Some(format!("{name} before it has to be filled by all that it is asked for in vain"))
    } else if !victims.write_allocate {
        Some("it has no write_allocate of its own".into())
    } else if feeder.line_bytes != victims.line_bytes {
        Some(format!("lines of {} bytes, but {name} before it throws out {}", victims.line_bytes, feeder.line_bytes))
    } else {
        None
    }
}
