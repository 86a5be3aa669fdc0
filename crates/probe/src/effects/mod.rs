//! What else puts entries into the TLBs, or takes them out: prefetch instructions, stores, the system, other CPUs.
//!
//! Each question is put twice, with fresh pages, and answered only if both answers are the same.

mod describe;
mod disturbed;
mod fills;
mod lab;
mod neighbours;
mod sharing;
mod switches;

pub use disturbed::{Disturbed, SetEvictions};
pub use fills::{Fill, PrefetchFill, Stores};
pub use neighbours::{NeighbourCpu, Takes};
pub use sharing::{sharing, Entries, Look, Misses, Sharing};
pub use switches::{Kept, Lost};

use serde::Serialize;

use crate::bench::{Bench, Halt};
use crate::finding::Finding;
use crate::metal::{Act, Hint};
use crate::pick::Levels;
use crate::tlb::Geometry;
use lab::Lab;

/// Times that a question is put at most until two answers are the same.
const LOOKS: usize = 4;

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub struct Effects {
    /// What prefetch instructions do.
    pub prefetches: Vec<PrefetchFill>,
    /// Whether stores use the entries of loads.
    pub stores: Finding<Stores>,
    /// Entries, ways, sets and index of the first level that stores use, by atomic additions of zero, which load and store.
    pub store_level: Finding<Geometry>,
    /// What is lost by a switch to another process and back.
    pub process_switch: Finding<Kept>,
    /// By a switch to another thread of the process and back.
    pub thread_switch: Finding<Kept>,
    /// By a system call that does next to nothing.
    pub system_call: Finding<Kept>,
    /// Whether threads on other CPUs take entries; `None` = not looked at, empty = there is no other CPU.
    pub neighbours: Option<Vec<NeighbourCpu>>,
    /// Evictions by set, for each level that has sets.
    pub disturbed: Vec<Disturbed>,
}

impl Effects {
    /// Nothing was looked at.
    pub fn not_asked() -> Self {
        let prefetch = |hint| PrefetchFill { hint, fills: Finding::not_asked(), faults: Finding::not_asked() };
        Self {
            prefetches: Hint::ALL.map(prefetch).into(),
            stores: Finding::not_asked(),
            store_level: Finding::not_asked(),
            process_switch: Finding::not_asked(),
            thread_switch: Finding::not_asked(),
            system_call: Finding::not_asked(),
            neighbours: None,
            disturbed: Vec::new(),
        }
    }

    /// Nothing is known, for this reason.
    pub(crate) fn unknown(reason: &str) -> Self {
        let mut all = Self::not_asked();
        all.explain(reason);
        all
    }

    /// Why what was not looked at was not.
    pub(crate) fn explain(&mut self, reason: &str) {
        for prefetch in &mut self.prefetches {
            explain(&mut prefetch.fills, reason);
            explain(&mut prefetch.faults, reason);
        }
        explain(&mut self.stores, reason);
        if self.stores.value() == Some(&Stores::Apart) {
            explain(&mut self.store_level, reason);
        }
        for kept in [&mut self.process_switch, &mut self.thread_switch, &mut self.system_call] {
            explain(kept, reason);
        }
        for neighbour in self.neighbours.iter_mut().flatten() {
            explain(&mut neighbour.takes, reason);
        }
        for level in &mut self.disturbed {
            for finding in [&mut level.per_system_call, &mut level.per_context_switch, &mut level.per_second] {
                explain(finding, reason);
            }
        }
    }

    /// What was looked for in vain: what, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for prefetch in &self.prefetches {
            missing.extend(prefetch.fills.lacks(&format!("what prefetch {} fills", prefetch.hint.word())));
            missing.extend(prefetch.faults.lacks(&format!("whether prefetch {} faults", prefetch.hint.word())));
        }
        missing.extend(self.stores.lacks("whether stores use the entries of loads"));
        missing.extend(self.store_level.lacks("entries of stores"));
        missing.extend(self.process_switch.lacks("entries lost by a process switch"));
        missing.extend(self.thread_switch.lacks("entries lost by a thread switch"));
        missing.extend(self.system_call.lacks("entries lost by a system call"));
        for neighbour in self.neighbours.iter().flatten() {
            missing.extend(neighbour.takes.lacks(&format!("whether CPU {} takes entries", neighbour.cpu)));
            missing.extend(neighbour.sharing.lacks(&format!("whether CPU {} shares entries", neighbour.cpu)));
        }
        for level in &self.disturbed {
            let what = |by: &str| format!("evictions of level {} by set and {by}", level.level);
            missing.extend(level.per_system_call.lacks(&what("system call")));
            missing.extend(level.per_context_switch.lacks(&what("context switch")));
            missing.extend(level.per_second.lacks(&what("second")));
        }
        missing
    }
}

fn explain<T>(finding: &mut Finding<T>, reason: &str) {
    if finding.is_unasked() {
        *finding = Finding::not_determined(reason);
    }
}

/// Looks at all of them, in levels that are known; what was found stays in `effects` if it is halted.
///
/// # Errors
/// It is to end.
pub fn effects(bench: &mut Bench<'_>, levels: &Levels, effects: &mut Effects) -> Result<(), Halt> {
    match look(bench, levels, effects) {
        // What this machine cannot do here is no reason to end the probe.
        Err(Halt::Metal(error)) => {
            effects.explain(&error.to_string());
            Ok(())
        }
        other => other,
    }
}

fn look(bench: &mut Bench<'_>, levels: &Levels, effects: &mut Effects) -> Result<(), Halt> {
    let mut lab = match Lab::new(bench, levels)? {
        Ok(lab) => lab,
        Err(reason) => {
            effects.explain(&reason);
            return Ok(());
        }
    };
    effects.stores = fills::stores(&mut lab)?;
    for prefetch in &mut effects.prefetches {
        lab.bench.note(&format!("prefetch {}", prefetch.hint.word()));
        prefetch.fills = fills::prefetch(&mut lab, prefetch.hint)?;
        prefetch.faults = fills::faults(&mut lab, prefetch.hint)?;
    }
    effects.system_call = switches::kept(&mut lab, Act::SystemCall)?;
    effects.thread_switch = switches::kept(&mut lab, Act::SwitchThread)?;
    effects.process_switch = switches::kept(&mut lab, Act::SwitchProcess)?;
    neighbours::neighbours(&mut lab, &mut effects.neighbours)?;
    disturbed::disturbed(&mut lab, &mut effects.disturbed)?;
    let apart = effects.stores.value() == Some(&Stores::Apart);
    effects.store_level = fills::store_level(&mut lab, &levels.first, apart)?;
    Ok(())
}

/// Puts a question until two answers are the same; else gives all of them. `None` is no answer.
fn twice<T>(
    mut look: impl FnMut() -> Result<Option<T>, Halt>,
    same: impl Fn(&T, &T) -> bool,
) -> Result<Result<(T, T), Vec<T>>, Halt> {
    let mut seen: Vec<T> = Vec::new();
    for _ in 0..LOOKS {
        let Some(last) = look()? else { continue };
        if let Some(at) = seen.iter().position(|other| same(other, &last)) {
            return Ok(Ok((seen.swap_remove(at), last)));
        }
        seen.push(last);
    }
    Ok(Err(seen))
}

/// A measurement that this machine refuses is no reason to end the others.
fn refused<T>(result: Result<Finding<T>, Halt>) -> Result<Finding<T>, Halt> {
    match result {
        Err(Halt::Metal(error)) => Ok(Finding::not_determined(error.to_string())),
        other => other,
    }
}
