//! Results as JSON: which data each is.

use lookaside_machine::Machine;
use lookaside_probe::validate::Validation;
use lookaside_probe::ProbeReport;
use lookaside_report::json;
#[cfg(feature = "schemas")]
use lookaside_report::json_schema;
use lookaside_runtime::compare::Comparison;
use lookaside_runtime::hugepages::PromotionReport;
use lookaside_techniques::color::plan::ColorPlan;
use lookaside_techniques::hugepages::code_plan::CodePlan;
use lookaside_techniques::hugepages::plan::HugePlan;
use lookaside_techniques::lock::plan::LockPlan;
use lookaside_techniques::Analysis;
use lookaside_trace::Summary;
use serde::Serialize;

use crate::bake_model::BakeModel;
use crate::baked::BakedProcesses;
use crate::machine::check::MachineCheck;
use crate::machine::presets::MachineList;
use crate::simulate::Simulation;
use crate::top::TopProcesses;
use crate::trace::check::TraceCheck;
use crate::trial::{JournalList, Trials, UndoneTrials};
use crate::workload::list::WorkloadList;
use crate::workload::recording::WorkloadRecording;
use crate::workload::run::WorkloadOutcome;

/// A result that a command prints as JSON.
pub trait JsonResult: Serialize {
    /// `lookaside-NAME/VERSION`, the field `schema` of its JSON. A field that is renamed, left out, or changes its
    /// meaning gets a new version; fields may be added without.
    const SCHEMA: &'static str;
}

/// Names the schema of each result, and lists them.
macro_rules! results {
    ($($result:ty => $schema:literal,)*) => {
        $(impl JsonResult for $result {
            const SCHEMA: &'static str = $schema;
        })*

        /// The JSON Schema (draft 2020-12) of each result, by the name of its `schema`: what `schemas/` holds.
        #[cfg(feature = "schemas")]
        pub fn schemas() -> Vec<(&'static str, String)> {
            vec![$(($schema, json_schema::schema::<$result>($schema)),)*]
        }
    };
}

results! {
    Analysis => "lookaside-analysis/3",
    BakeModel => "lookaside-bake-model/1",
    BakedProcesses => "lookaside-bake/1",
    CodePlan => "lookaside-code-plan/1",
    ColorPlan => "lookaside-color-plan/1",
    Comparison => "lookaside-comparison/1",
    HugePlan => "lookaside-hugepages-plan/1",
    JournalList => "lookaside-trial-journal/1",
    LockPlan => "lookaside-lock-plan/1",
    Machine => "lookaside-machine/1",
    MachineCheck => "lookaside-machine-check/1",
    MachineList => "lookaside-machine-list/1",
    ProbeReport => "lookaside-probe/1",
    PromotionReport => "lookaside-hugepages/1",
    Simulation => "lookaside-simulation/1",
    Summary => "lookaside-trace-info/1",
    TopProcesses => "lookaside-top/1",
    TraceCheck => "lookaside-trace-check/1",
    Trials => "lookaside-trial/1",
    UndoneTrials => "lookaside-undo/1",
    Validation => "lookaside-validation/1",
    WorkloadList => "lookaside-workload-list/1",
    WorkloadOutcome => "lookaside-workload/1",
    WorkloadRecording => "lookaside-workload-recording/1",
}

/// The result as JSON: `"schema": "lookaside-NAME/VERSION"`, then its fields by their names. Units and denominators are
/// those of the fields' documentation.
pub fn render<T: JsonResult>(result: &T) -> String {
    json::document(T::SCHEMA, result)
}
