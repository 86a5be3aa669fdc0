//! What the plans of all techniques have in common, and the planners that make them for a program.

use std::sync::atomic::AtomicBool;

use lookaside_engine::{Filter, Setup, SetupError};
use lookaside_trace::{Block, Damage, Source, TraceError, TraceInfo};
use serde::Serialize;
use thiserror::Error;

use crate::lock::regions::RegionMatching;
use crate::names::Namer;

/// What to do about translation: a report, and a file for the tool that does it.
pub trait Plan: Serialize {
    /// The plan file, in TOML.
    fn to_toml(&self) -> String {
        // Every plan has a TOML form.
        toml::to_string(self).unwrap_or_default()
    }

    /// Whether the plan does all that was asked for.
    fn is_complete(&self) -> bool {
        true
    }
}

/// A plan for the memory of a recorded program.
pub trait ProgramPlan: Plan {
    /// What a reader must know to believe the numbers.
    fn remarks_mut(&mut self) -> &mut Vec<String>;

    /// Says of all that is planned where it lies in a plain run of this process, or why that is not known.
    fn find_natively(&mut self, process: u32, mapping: &RegionMatching);
}

/// Plans for a program in two steps: one pass over its accesses, then a choice by model runs.
pub trait Planner {
    /// What the pass over the accesses gives.
    type Profile;
    /// What is chosen.
    type Plan: ProgramPlan;

    /// The machine and operating system of the model runs.
    fn setup(&self) -> &Setup;

    /// What a recorder may leave out.
    fn filter(&self) -> Filter;

    /// What a reader must know of a plan for accesses that were recorded like this.
    fn remarks(&self, _info: &TraceInfo) -> Vec<String> {
        Vec::new()
    }

    /// Pulls a source to its end; `watch` sees each block first.
    ///
    /// # Errors
    /// A setup or a source that can't be planned for; a temporary file that can't be made or read. An error of the
    /// source is kept in [`Coverage`]: what came before it counts.
    fn profile(&self, source: &mut dyn Source, watch: &mut dyn FnMut(&Block)) -> Result<Self::Profile, PlanError>;

    /// How much of the source a profile covers.
    fn coverage(profile: &mut Self::Profile) -> &mut Coverage;

    /// Chooses for a profiled program; `command` is the program and its arguments, or the trace.
    ///
    /// # Errors
    /// A setup that can't be run; [`PlanError::Stopped`] where `stop` was set.
    fn plan(
        &self,
        profile: &Self::Profile,
        command: Vec<String>,
        namer: &dyn Namer,
        stop: &AtomicBool,
    ) -> Result<Self::Plan, PlanError>;
}

/// How much of a source a profile covers.
#[derive(Debug)]
pub struct Coverage {
    /// What a reader must know to believe the numbers.
    pub remarks: Vec<String>,
    /// Parts of the input that could not be read.
    pub damage: Vec<Damage>,
    /// The source ended with this error; what came before it counts.
    pub error: Option<TraceError>,
}

/// Why there is no plan for a program.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The setup can't be run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// What was asked for cannot be planned; one line.
    #[error("{0}")]
    Impossible(String),
    /// The spool can't be made or read.
    #[error("temporary file for the model's further runs: {0}; set TMPDIR to a folder with room")]
    Spool(#[from] std::io::Error),
    /// The caller asked to stop: there is no plan.
    #[error("interrupted: nothing was chosen")]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::planner::LockPlanner;
    use crate::lock::select::{PageSelector, SearchLimits};
    use crate::lock::target::LockTarget;

    #[derive(Serialize)]
    struct Pages {
        pages: [u64; 2],
    }

    impl Plan for Pages {}

    #[test]
    fn a_plan_is_complete_and_without_remarks_unless_its_technique_says_otherwise() {
        let plan = Pages { pages: [16, 17] };
        assert_eq!((plan.to_toml().as_str(), plan.is_complete()), ("pages = [16, 17]\n", true));

        let setup = Setup::new(lookaside_machine::preset("cortex-a9").expect("a preset"));
        let target = LockTarget::find(&setup.machine, None, None).expect("it can lock");
        let planner = LockPlanner { setup, target, selector: PageSelector::Gain, search: SearchLimits::default() };
        assert_eq!(planner.remarks(&TraceInfo::default()), [""; 0]);
    }
}
