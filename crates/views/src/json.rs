//! Which data the JSON of a result is.

use lookaside_report::json;
use lookaside_techniques::Analysis;

/// The `schema` of [`render`]. A field that is renamed, or changes its meaning, gets a new number;
/// fields may be added without.
pub const ANALYSIS_SCHEMA: &str = "lookaside-analysis/2";

/// The `schema` of a comparison, [`lookaside_runtime::compare::Comparison`], by [`json::document`].
pub const COMPARISON_SCHEMA: &str = "lookaside-comparison/1";

/// The `schema` of huge pages made of a running process's memory, [`lookaside_runtime::hugepages::PromotionReport`], by [`json::document`].
pub const HUGEPAGES_SCHEMA: &str = "lookaside-hugepages/1";

/// The whole analysis: `"schema": "lookaside-analysis/2"`, then the fields of [`Analysis`] by their names.
/// Units and denominators are those of the fields' documentation.
pub fn render(analysis: &Analysis) -> String {
    json::document(ANALYSIS_SCHEMA, analysis)
}
