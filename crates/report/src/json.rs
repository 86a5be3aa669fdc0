//! Results for programs: the data as it is, with a word on which data that is.

use serde::Serialize;

/// A struct's (or map's) fields with `"schema"` in front, indented, ended by a line feed. Numbers that
/// are not finite become `null`.
///
/// # Panics
/// If `value` is no struct or map, has a map with keys that are not text, or fails to serialize: a bug in its type.
pub fn document<T: Serialize>(schema: &str, value: &T) -> String {
    #[derive(Serialize)]
    struct JsonDocument<'a, T> {
        schema: &'a str,
        #[serde(flatten)]
        value: &'a T,
    }
    let mut text = serde_json::to_string_pretty(&JsonDocument { schema, value }).expect("a struct that JSON can hold");
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
