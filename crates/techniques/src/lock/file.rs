//! Lock plans as TOML files.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::plan::LockPlan;
use crate::plan::Plan;

/// Longest text that is taken for a plan.
const MAX_BYTES: u64 = 1 << 20;

/// Why a plan cannot be had; one line with file, key, reason and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlanFileError(pub(crate) String);

impl Plan for LockPlan {}

impl LockPlan {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or holds what cannot be.
    pub fn load(path: &Path) -> Result<Self, PlanFileError> {
        Self::parse(&read(path, "lock plan")?, &path.display().to_string())
    }

    /// Reads and checks what [`Plan::to_toml`] writes; `file_name` is what errors call it.
    ///
    /// # Errors
    /// As [`LockPlan::load`].
    pub fn parse(text: &str, file_name: &str) -> Result<Self, PlanFileError> {
        let plan: Self = from_toml(text, file_name, AGAIN)?;
        plan.check().map_err(|why| PlanFileError(format!("{file_name}: {why}")))?;
        Ok(plan)
    }

    /// Key and reason of what cannot be.
    fn check(&self) -> Result<(), String> {
        if !self.page_bytes.is_power_of_two() {
            return Err(format!("page_bytes: {} is no power of two; write the bytes of a page", self.page_bytes));
        }
        if self.pages.len() > self.entries as usize {
            let (pages, entries) = (self.pages.len(), self.entries);
            return Err(format!("page: {pages} pages for {entries} entries; leave some out, or raise entries"));
        }
        let mut seen = HashSet::new();
        for (i, page) in self.pages.iter().enumerate() {
            if !seen.insert((page.process, page.vpn)) {
                return Err(format!("page[{i}].vpn: {:#x} stands twice; leave one out", page.vpn));
            }
            if page.vpn > u64::MAX / self.page_bytes {
                return Err(format!("page[{i}].vpn: {:#x} is beyond all addresses; write a page number", page.vpn));
            }
        }
        Ok(())
    }
}

/// The text of a file; `what` is what it should be.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, PlanFileError> {
    let name = path.display();
    let unreadable = |e: std::io::Error| PlanFileError(format!("{name}: cannot be read: {e}"));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // A device or a pipe may have no end.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(PlanFileError(format!("{name}: is longer than 1 MiB, which no {what} is")));
    }
    String::from_utf8(bytes).map_err(|_| PlanFileError(format!("{name}: is no UTF-8 text")))
}

/// What TOML says; `again` is what helps where it says nothing of use.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str, file_name: &str, again: &str) -> Result<T, PlanFileError> {
    let table: toml::Table = toml::from_str(text).map_err(|e| {
        let line = e.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        PlanFileError(format!("{file_name}: {at}{}; {again}", one_line(e.message())))
    })?;
    let table = toml::Value::Table(table);
    if let Some(path) = not_finite(&table, String::new()) {
        return Err(PlanFileError(format!("{file_name}: {path}: nan and inf are no numbers here; {again}")));
    }
    serde_path_to_error::deserialize(table).map_err(|e| {
        let path = e.path().to_string();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        PlanFileError(format!("{file_name}: {at}{}; {again}", one_line(e.inner().message())))
    })
}

/// Where the first number stands that is none.
fn not_finite(value: &toml::Value, path: String) -> Option<String> {
    match value {
        toml::Value::Float(number) => (!number.is_finite()).then_some(path),
        toml::Value::Array(values) => {
            values.iter().enumerate().find_map(|(i, value)| not_finite(value, format!("{path}[{i}]")))
        }
        toml::Value::Table(table) => table.iter().find_map(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            not_finite(value, path)
        }),
        _ => None,
    }
}

/// What helps against a file that was changed to what it cannot be.
const AGAIN: &str = "mend it, or make it again with lookaside lock plan";

fn one_line(message: &str) -> String {
    message.trim_end().replace('\n', ", ").replace('`', "\"")
}
