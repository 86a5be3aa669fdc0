//! What the JSON of results may hold, as schemas: for the tests, which keep `schemas/`.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{json_schema, JsonSchema, Schema};

/// The JSON Schema (draft 2020-12) of what [`document`](crate::json::document) writes for a `T`, indented, ended by a
/// line feed. It allows fields that it does not name, since they are added without a new version.
///
/// # Panics
/// If `T` is no struct or map: a bug in its type.
pub fn schema<T: JsonSchema>(name: &str) -> String {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(finite_or_null))
        .with_transform(RecursiveTransform(for_readers));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let object = schema.ensure_object();
    object.insert("title".into(), name.into());
    object
        .entry("properties")
        .or_insert_with(|| json_schema!({}).to_value())
        .as_object_mut()
        .expect("fields by their names")
        .insert("schema".into(), json_schema!({ "const": name }).to_value());
    let required = object.entry("required").or_insert_with(|| Vec::<String>::new().into());
    required.as_array_mut().expect("names").insert(0, "schema".into());
    let mut text = serde_json::to_string_pretty(&schema).expect("a value that JSON can hold");
    text.push('\n');
    text
}

/// A number that is not finite is written as `null`.
fn finite_or_null(schema: &mut Schema) {
    if schema.get("type").is_some_and(|kind| kind == "number") {
        schema.insert("type".into(), vec!["number", "null"].into());
    }
}

/// Descriptions are the documentation of types, which speaks to those who use them in Rust: here in JSON's words, and
/// one line a paragraph.
fn for_readers(schema: &mut Schema) {
    let Some(text) = schema.get("description").and_then(|text| text.as_str()) else { return };
    let mut words = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    for (rust, plain) in
        [("`None`", "`null`"), ("[`", "`"), ("`]", "`"), ("`crate::", "`"), ("`super::", "`"), ("`Self::", "`")]
    {
        words = words.replace(rust, plain);
    }
    schema.insert("description".into(), words.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_names_itself_and_speaks_of_json() {
        /// Gains of
        /// [`Self::count`] runs.
        #[derive(JsonSchema)]
        #[allow(dead_code)] // it is only looked at
        struct Gains {
            /// `None` = not counted.
            count: Option<u64>,
            seconds: Vec<f64>,
        }
        let text = schema::<Gains>("lookaside-gains/1");
        let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(found["title"], "lookaside-gains/1");
        assert_eq!(found["description"], "Gains of `count` runs.");
        assert_eq!(found["required"], serde_json::json!(["schema", "count", "seconds"]));
        let fields = &found["properties"];
        assert_eq!(fields["schema"], serde_json::json!({ "const": "lookaside-gains/1" }));
        assert_eq!(fields["count"]["description"], "`null` = not counted.");
        assert_eq!(
            fields["seconds"]["items"]["type"],
            serde_json::json!(["number", "null"]),
            "what is not finite is null"
        );
    }
}
