//! What a paper publishes, read from the TOML that is built in.

use serde::Deserialize;

use crate::row::{PaperRow, Published, RowFinding, RowVerdict, Rule};

/// A published value, with the rule that says when ours holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// Name by which an experiment gives its finding.
    pub id: String,
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

/// The values of a built-in file, in its order.
///
/// # Panics
/// The text is no such file: each paper's tests read its own.
pub fn rows(toml: &str) -> Vec<PublishedValue> {
    #[derive(Deserialize)]
    struct File {
        row: Vec<PublishedValue>,
    }
    toml::from_str::<File>(toml).expect("built in, and read by a test").row
}

impl PublishedValue {
    /// The row with what we found, if anything was.
    pub fn beside(self, paper: &str, finding: Option<RowFinding>) -> PaperRow {
        let (ours, mut note) = finding.map_or((None, String::new()), |f| (Some(f.ours), f.note));
        let verdict = match (&ours, &self.fitted) {
            (None, _) => RowVerdict::NotReproduced,
            (Some(_), Some(_)) => RowVerdict::Fitted,
            (Some(_), None) if self.rule == Rule::Shown => RowVerdict::AnotherMachine,
            (Some(_), None) if self.rule == Rule::Beyond => RowVerdict::Beyond,
            (Some(ours), None) if self.rule.holds(&self.published, ours) => RowVerdict::Holds,
            (Some(_), None) => RowVerdict::Differs,
        };
        let reason = if ours.is_none() { &self.not_reproduced } else { &self.fitted };
        if let Some(reason) = reason {
            let rest = if note.is_empty() { String::new() } else { format!("; {note}") };
            note = format!("{reason}{rest}");
        }
        PaperRow {
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
    pub fn without(mut self, paper: &str, reason: &str) -> PaperRow {
        self.not_reproduced.get_or_insert_with(|| reason.into());
        self.beside(paper, None)
    }

    /// Whether the file says why there is nothing of ours.
    pub fn is_excused(&self) -> bool {
        self.not_reproduced.is_some()
    }
}
