//! One published value beside ours.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One published value or claim beside ours.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PaperRow {
    /// Short name of the paper.
    pub paper: String,
    /// Table, figure or section.
    pub place: String,
    /// What is measured or claimed.
    pub what: String,
    /// What the paper says.
    pub published: Published,
    /// What we find; `None` = not reproduced.
    pub ours: Option<Ours>,
    /// Unit of both values; empty for a claim.
    pub unit: String,
    /// When a value of ours holds.
    pub rule: Rule,
    /// Whether it holds.
    pub verdict: RowVerdict,
    /// Why, where that needs words.
    pub note: String,
}

/// What a paper says.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Value(f64),
    /// A statement.
    Claim(String),
}

/// What we find.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Ours {
    /// A number.
    Value(f64),
    /// For a claim: what was computed, and whether it bears the claim out.
    Claim {
        /// What was computed.
        found: String,
        /// It does.
        holds: bool,
    },
}

/// When a value of ours holds against a published one.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It is the same.
    Equal,
    /// It differs by at most this part of the published value.
    Within(f64),
    /// It is not greater.
    AtMost,
    /// It is not smaller.
    AtLeast,
    /// A claim: the experiment says whether what it computed bears it out.
    Claim,
    /// A figure of the paper's own machine, shown beside that of another: neither can hold nor differ.
    Shown,
    /// Ours alone, on the paper's experiment: nothing that was published.
    Beyond,
}

/// Whether a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// Ours agrees by the row's rule.
    Holds,
    /// It does not.
    Differs,
    /// The model was made to agree here: does not count.
    Fitted,
    /// Figures of two machines, shown beside each other: does not count.
    AnotherMachine,
    /// Beside what the paper asked: does not count.
    Beyond,
    /// There is no value of ours.
    NotReproduced,
}

/// What an experiment gives for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFinding {
    /// Ours.
    pub ours: Ours,
    /// Why, where that needs words.
    pub note: String,
}

impl Rule {
    /// Whether `ours` holds against `published`; a number never holds against a claim.
    pub fn holds(self, published: &Published, ours: &Ours) -> bool {
        match (self, published, ours) {
            (Rule::Claim, _, Ours::Claim { holds, .. }) => *holds,
            (Rule::Equal, Published::Value(p), Ours::Value(o)) => p == o,
            (Rule::Within(part), Published::Value(p), Ours::Value(o)) => (o - p).abs() <= part * p.abs(),
            (Rule::AtMost, Published::Value(p), Ours::Value(o)) => o <= p,
            (Rule::AtLeast, Published::Value(p), Ours::Value(o)) => o >= p,
            _ => false,
        }
    }
}

impl fmt::Display for RowVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RowVerdict::Holds => "holds",
            RowVerdict::Differs => "differs",
            RowVerdict::Fitted => "fitted",
            RowVerdict::AnotherMachine => "another machine",
            RowVerdict::Beyond => "beyond the paper",
            RowVerdict::NotReproduced => "not reproduced",
        })
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Published::Value(value) => write!(f, "{value}"),
            Published::Claim(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ours::Value(value) => write!(f, "{value}"),
            Ours::Claim { found, .. } => f.write_str(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        let holds = |rule: Rule, p: f64, o: f64| rule.holds(&Published::Value(p), &Ours::Value(o));
        assert!(holds(Rule::Equal, 64.0, 64.0) && !holds(Rule::Equal, 64.0, 65.0));
        assert!(holds(Rule::Within(0.01), 100.0, 101.0) && !holds(Rule::Within(0.01), 100.0, 101.5));
        assert!(holds(Rule::Within(0.01), -100.0, -101.0) && !holds(Rule::Within(0.5), 1.0, f64::NAN));
        assert!(holds(Rule::AtMost, 2.0, 2.0) && !holds(Rule::AtMost, 2.0, 2.1));
        assert!(holds(Rule::AtLeast, 2.0, 2.0) && !holds(Rule::AtLeast, 2.0, 1.9));
        assert!(!holds(Rule::Claim, 1.0, 1.0));
        let claim = |holds| Ours::Claim { found: String::new(), holds };
        let published = Published::Claim(String::new());
        assert!(Rule::Claim.holds(&published, &claim(true)) && !Rule::Claim.holds(&published, &claim(false)));
        assert!(!Rule::Equal.holds(&published, &Ours::Value(1.0)));
    }
}
