//! The pages of the book, for the tests that hold it.

use std::path::{Path, PathBuf};

/// All of `docs/` and `papers/`, and those of the top folder that users read.
pub fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = ["docs", "papers"].map(|name| root.join(name)).to_vec();
    let mut found = ["README.md", "SECURITY.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|end| end == "md") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}
