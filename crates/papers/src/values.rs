//! What the papers publish, read from the TOML files that are built in.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::row::{Finding, Published, Row, Rule, Verdict};

/// One of the five papers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Short name, as `lookaside reproduce` takes it.
    pub name: String,
    /// The technique's name here.
    pub technique: String,
    /// Its reference.
    pub cite: String,
}

impl Paper {
    /// Its experiments are written.
    pub fn available(&self) -> bool {
        crate::experiments::of(&self.name).is_some()
    }
}

/// The five papers.
pub fn papers() -> &'static [Paper] {
    #[derive(Deserialize)]
    struct File {
        paper: Vec<Paper>,
    }
    static PAPERS: OnceLock<Vec<Paper>> = OnceLock::new();
    PAPERS.get_or_init(|| {
        toml::from_str::<File>(include_str!("../values/papers.toml")).expect("built in, and read by every test").paper
    })
}

/// A row as the file holds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    /// Name by which an experiment gives its finding.
    pub(crate) id: String,
    place: String,
    what: String,
    published: Published,
    #[serde(default)]
    unit: String,
    rule: Rule,
    /// What was fitted on this row; such a row does not count.
    fitted: Option<String>,
    /// Why there is no value of ours.
    not_reproduced: Option<String>,
}

/// The rows of a built-in file.
pub(crate) fn rows(toml: &str) -> Vec<Value> {
    #[derive(Deserialize)]
    struct File {
        row: Vec<Value>,
    }
    toml::from_str::<File>(toml).expect("built in, and read by a test").row
}

impl Value {
    pub(crate) fn beside(self, paper: &str, finding: Option<Finding>) -> Row {
        let (ours, mut note) = finding.map_or((None, String::new()), |f| (Some(f.ours), f.note));
        let verdict = match (&ours, &self.fitted) {
            (None, _) => Verdict::NotReproduced,
            (Some(_), Some(_)) => Verdict::Fitted,
            (Some(_), None) if self.rule == Rule::Shown => Verdict::AnotherMachine,
            (Some(_), None) if self.rule == Rule::Beyond => Verdict::Beyond,
            (Some(ours), None) if self.rule.holds(&self.published, ours) => Verdict::Holds,
            (Some(_), None) => Verdict::Differs,
        };
        let reason = if ours.is_none() { &self.not_reproduced } else { &self.fitted };
        if let Some(reason) = reason {
            let rest = if note.is_empty() { String::new() } else { format!("; {note}") };
            note = format!("{reason}{rest}");
        }
        Row {
            paper: paper.into(),
            place: self.place,
            what: self.what,
            published: self.published,
            ours,
            unit: self.unit,
            rule: self.rule,
            verdict,
            note,
        }
    }

    /// The row without a value of ours, and why.
    pub(crate) fn without(mut self, paper: &str, reason: &str) -> Row {
        self.not_reproduced.get_or_insert_with(|| reason.into());
        self.beside(paper, None)
    }

    /// Whether the file says why there is nothing of ours.
    #[cfg(test)]
    pub(crate) fn is_excused(&self) -> bool {
        self.not_reproduced.is_some()
    }
}
