//! The inner drawing of a chart, which fits any width.

/// Units of the inner drawing in both directions.
pub const UNITS: f64 = 1000.0;

/// Paths in these units, stretched to the chart.
pub fn stretched(paths: &str) -> String {
    format!(
        r#"<svg width="100%" height="100%" viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none" overflow="visible">{paths}</svg>"#
    )
}
