//! Results for programs: the data as it is, with a word on which data that is.

use lookaside_techniques::Analysis;
use serde::Serialize;

/// The `schema` of [`render`]. A field that is renamed, or changes its meaning, gets a new number;
/// fields may be added without.
pub const ANALYSIS_SCHEMA: &str = "lookaside-analysis/2";

/// The `schema` of a comparison, [`lookaside_runtime::compare::Comparison`], by [`document`].
pub const COMPARISON_SCHEMA: &str = "lookaside-comparison/1";

/// The `schema` of huge pages made of a running process's memory, [`lookaside_runtime::hugepages::Applied`], by [`document`].
pub const HUGEPAGES_SCHEMA: &str = "lookaside-hugepages/1";

/// The `schema` of what switches take, [`lookaside_experiment::switch::Report`], by [`document`].
pub const SWITCH_SCHEMA: &str = "lookaside-switch/1";
/// The `schema` of a thread's moves, [`lookaside_experiment::migrate::Report`], by [`document`].
pub const MIGRATION_SCHEMA: &str = "lookaside-migration/1";

/// The whole analysis: `"schema": "lookaside-analysis/2"`, then the fields of [`Analysis`] by their names.
/// Units and denominators are those of the fields' documentation.
pub fn render(analysis: &Analysis) -> String {
    document(ANALYSIS_SCHEMA, analysis)
}

/// A struct's (or map's) fields with `"schema"` in front, indented, ended by a line feed. Numbers that
/// are not finite become `null`.
///
/// # Panics
/// If `value` is no struct or map, has a map with keys that are not text, or fails to serialize: a bug in its type.
pub fn document<T: Serialize>(schema: &str, value: &T) -> String {
    #[derive(Serialize)]
    struct Document<'a, T> {
        schema: &'a str,
        #[serde(flatten)]
        value: &'a T,
    }
    let mut text = serde_json::to_string_pretty(&Document { schema, value }).expect("a struct that JSON can hold");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_comes_first_and_fields_keep_their_order() {
        #[derive(Serialize)]
        struct Machines {
            b: u64,
            a: Vec<&'static str>,
        }
        let text = document("lookaside-machines/1", &Machines { b: u64::MAX, a: vec!["x"] });
        let expected = "{\n  \"schema\": \"lookaside-machines/1\",\n  \"b\": 18446744073709551615,\n  \"a\": [\n    \"x\"\n  ]\n}\n";
        assert_eq!(text, expected);
    }
}
