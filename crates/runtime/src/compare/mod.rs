//! Does it help? The same program run in several ways, in turns, and what is significant of the difference.
//!
//! Each round runs every variant once, in an order drawn anew, so that what drifts (clocks, other guests, caches) falls
//! on all alike. Medians are compared by rounds: [`lookaside_stats::ratio`].

mod child;
mod comparison;
mod energy;
mod error;
mod in_turns;
mod made_words;
mod plan;
mod preloaded_baker;
pub mod pressure;
mod turns;
mod variant;
mod watch;

use crate::bake::{Baker, Target};
use crate::hugepages;
pub use comparison::{Comparison, EarlyEnd, VariantOutcome, VariantRun};
use energy::Meter;
pub use error::CompareError;
pub use in_turns::in_turns;
pub use plan::{ComparisonHooks, ComparisonPlan, Metric, ReadLine};
pub use preloaded_baker::PreloadedBaker;
use pressure::Stress;
use turns::InterleavedRuns;
pub use variant::Variant;
pub use watch::{HelperTotals, PageUse};

/// Runs all variants in turns. What was found until it was halted, or until a program failed, is given too.
///
/// # Errors
/// What can't be done at all is found before the first program starts, but for programs that can't be started.
pub fn compare(plan: &ComparisonPlan, hooks: &ComparisonHooks<'_>) -> Result<Comparison, CompareError> {
    check(plan)?;
    let (meter, no_energy) = match Meter::open(&lookaside_host::powercap_folder()) {
        Ok(meter) => (Some(meter), None),
        Err(why) => (None, Some(why)),
    };
    let stress = Stress::start(plan.pressure, hooks.halt)?;
    let mut turns = InterleavedRuns::new(plan, hooks, (meter, no_energy), stress);
    let early = turns.all()?;
    Ok(turns.comparison(early))
}

/// Finds what cannot be, before anything is run: [`compare`] does it too.
///
/// # Errors
/// What is missing, or switched off, or says nothing; and what to do.
pub fn check(plan: &ComparisonPlan) -> Result<(), CompareError> {
    if plan.variants.is_empty() || plan.runs == 0 {
        return Err(CompareError::Bad("nothing is to be run".into()));
    }
    for variant in &plan.variants {
        let bad = |e: String| CompareError::Bad(format!("variant {variant}: {e}"));
        match variant {
            Variant::Thp => variant::check_thp()?,
            Variant::Scan(settings) => {
                // On this process, so that what the kernel lacks is known before a program runs.
                Baker::start_for(Target::Process(std::process::id()), settings, &[]).map_err(|e| bad(e.to_string()))?;
            }
            Variant::Huge(_) => {
                hugepages::collapse_side().map_err(|e| bad(e.to_string()))?;
                if plan.look.is_none() {
                    return Err(bad("needs a sampler".into()));
                }
            }
            Variant::Planned(file) => {
                hugepages::collapse_side().map_err(|e| bad(e.to_string()))?;
                if !plan.plans.contains_key(file) {
                    return Err(bad("needs the plan".into()));
                }
            }
            Variant::Text(_) => hugepages::check_code().map_err(|e| bad(e.to_string()))?,
            Variant::PlannedText(file) => {
                hugepages::check_code().map_err(|e| bad(e.to_string()))?;
                if plan.inside.as_ref().is_some_and(|inside| !inside.code_plans.contains_key(file)) {
                    return Err(bad("needs the plan".into()));
                }
            }
            _ => {}
        }
        if variant.needs_preload() && plan.inside.is_none() {
            return Err(bad("needs the preload library".into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
