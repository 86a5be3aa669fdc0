//! The folder `schemas/`, which the tests of the tool and of the papers hold to their types.

use std::path::{Path, PathBuf};

/// Where the JSON Schemas are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

/// The file of the schema of this name, such as `lookaside-analysis/3`.
pub fn file(name: &str) -> String {
    format!("{}.json", name.replace('/', "-"))
}

/// Asserts that each of these schemas (name, text) stands in the folder. Those that don't are left in the build's
/// folder, to be copied from there.
pub fn assert_current(schemas: Vec<(&str, String)>) {
    let mut changed = Vec::new();
    for (name, schema) in schemas {
        if std::fs::read_to_string(folder().join(file(name))).unwrap_or_default() != schema {
            let today = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file(name));
            std::fs::write(&today, schema).expect("a folder of the build");
            changed.push(today.display().to_string());
        }
    }
    assert!(
        changed.is_empty(),
        "a JSON result is not as schemas/ says. If fields are new: cp {} schemas/. If others changed: a new version",
        changed.join(" ")
    );
}
