//! Measures all effects, one after the other.

use crate::bench::{ChainBench, Halt};
use crate::effects::eviction_bench::EvictionBench;
use crate::effects::{context_switches, fills, other_cpus, set_evictions, stores};
use crate::eviction_sets::TlbLevels;
use crate::metal::single_shot::Act;
use crate::report::effects::{StoreEntries, TlbEffects};

/// Looks at all of them, in levels that are known; what was found stays in `effects` if it is halted.
///
/// # Errors
/// It is to end.
pub fn measure_effects(bench: &mut ChainBench<'_>, levels: &TlbLevels, effects: &mut TlbEffects) -> Result<(), Halt> {
    match measure_each(bench, levels, effects) {
        // What this machine cannot do here is no reason to end the probe.
        Err(Halt::Metal(error)) => {
            effects.explain(&error.to_string());
            Ok(())
        }
        other => other,
    }
}

fn measure_each(bench: &mut ChainBench<'_>, levels: &TlbLevels, effects: &mut TlbEffects) -> Result<(), Halt> {
    let mut evictions = match EvictionBench::new(bench, levels)? {
        Ok(evictions) => evictions,
        Err(reason) => {
            effects.explain(&reason);
            return Ok(());
        }
    };
    effects.stores = stores::stores(&mut evictions)?;
    for prefetch in &mut effects.prefetches {
        evictions.bench.note(&format!("prefetch {}", prefetch.hint.word()));
        prefetch.fills = fills::prefetch_fill(&mut evictions, prefetch.hint)?;
        prefetch.faults = fills::prefetch_faults(&mut evictions, prefetch.hint)?;
    }
    effects.system_call = context_switches::switch_losses(&mut evictions, Act::SystemCall)?;
    effects.thread_switch = context_switches::switch_losses(&mut evictions, Act::SwitchThread)?;
    effects.process_switch = context_switches::switch_losses(&mut evictions, Act::SwitchProcess)?;
    other_cpus::other_cpus(&mut evictions, &mut effects.neighbours)?;
    set_evictions::set_evictions(&mut evictions, &mut effects.disturbed)?;
    let apart = effects.stores.value() == Some(&StoreEntries::Apart);
    effects.store_level = stores::store_level(&mut evictions, &levels.first, apart)?;
    Ok(())
}
