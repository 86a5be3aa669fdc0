//! From TOML to a checked [`Machine`], and back.

use std::path::Path;

use crate::check::check;
use crate::{Machine, MachineError};

/// Longest text that is taken for a machine file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads and checks a machine file.
///
/// # Errors
/// The file cannot be read or is longer than 1 MiB; else as [`parse`].
pub fn load(path: impl AsRef<Path>) -> Result<Machine, MachineError> {
    let (name, text) = read_text(path.as_ref())?;
    parse(&text, &name)
}

/// Reads and checks a machine's TOML. `file_name` is what errors call it.
///
/// # Errors
/// The text is no TOML (with line and column), a key is missing, unknown or of the wrong type, or the
/// machine is impossible (with the key's path).
pub fn parse(text: &str, file_name: &str) -> Result<Machine, MachineError> {
    from_table(table(text, file_name)?, file_name)
}

/// A file's name for errors, and its text.
pub(crate) fn read_text(path: &Path) -> Result<(String, String), MachineError> {
    let name = path.display().to_string();
    let unreadable = |e: std::io::Error| MachineError::new(&name, "", &format!("cannot be read: {e}"));
    // A device or a pipe may have no end: one byte past the limit is enough to refuse it.
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES + 1), &mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| MachineError::new(&name, "", "is no UTF-8 text"))?;
    Ok((name, text))
}

/// The table that a TOML text is.
pub(crate) fn table(text: &str, file_name: &str) -> Result<toml::Table, MachineError> {
    if text.len() as u64 > MAX_BYTES {
        return Err(MachineError::new(file_name, "", "is longer than 1 MiB, which no file of this kind is"));
    }
    toml::from_str(text).map_err(|e| {
        let place = e.span().map(|span| line_and_column(text, span.start)).unwrap_or_default();
        // The parser has no words for a value that is missing at the end of the text.
        let message = if e.message().is_empty() { "a value is missing" } else { e.message() };
        MachineError::new(file_name, &place, &message.replace('\n', ", "))
    })
}

/// What a table holds, not yet checked.
pub(crate) fn typed<T: serde::de::DeserializeOwned>(table: toml::Table, file_name: &str) -> Result<T, MachineError> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|e| {
        let (at, reason) = reword(&e.path().to_string(), e.inner().message());
        MachineError::new(file_name, &at, &reason)
    })
}

/// Writes a machine as TOML that [`parse`] reads back to an equal one. Comments are not kept.
pub fn to_toml(machine: &Machine) -> String {
    // Every type in the schema has a TOML form; only a map with keys that are no strings has none.
    toml::to_string(machine).unwrap_or_default()
}

impl Machine {
    /// Checks a machine that was changed by hand, as [`parse`] does one that it reads.
    ///
    /// # Errors
    /// The machine is impossible; the error names it in place of a file.
    pub fn check(&self) -> Result<(), MachineError> {
        check(self).map_err(|fault| MachineError::new(&self.name, &fault.at, &fault.reason))
    }
}

/// A checked machine from a parsed TOML table.
pub(crate) fn from_table(table: toml::Table, file_name: &str) -> Result<Machine, MachineError> {
    let machine: Machine = typed(table, file_name)?;
    check(&machine).map_err(|fault| MachineError::new(file_name, &fault.at, &fault.reason))?;
    Ok(machine)
}

/// `line 3, column 7` of a byte offset, both from 1, the column in characters.
fn line_and_column(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}")
}

/// Says serde's messages in the words of the TOML: (key path, reason).
fn reword(path: &str, message: &str) -> (String, String) {
    let path = if path == "." { "" } else { path };
    let inside = |key: &str| match path {
        "" => key.to_string(),
        _ if path == key || path.ends_with(&format!(".{key}")) => path.to_string(),
        _ => format!("{path}.{key}"),
    };
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return (inside(key), "is missing".into());
    }
    if let Some((key, rest)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected "))
    {
        let known = rest.trim_start_matches("one of ").replace('`', "");
        return (inside(key), format!("unknown key; known keys: {known}"));
    }
    if let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "))
    {
        let expected = match expected {
            "u32" | "u64" => "a whole number, not negative",
            "f64" => "a number",
            "a sequence" => "a list",
            other => other.trim_start_matches("struct "),
        };
        return (path.to_string(), format!("expected {expected}, found {}", found.replace('`', "")));
    }
    (path.to_string(), message.replace('`', "\""))
}
