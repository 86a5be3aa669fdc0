//! What is known of a process.

use lookaside_runtime::bake::{ProcessReport, Surveyed};
use lookaside_runtime::hugepages::SmallReason;
use lookaside_techniques::translation_share::TranslationShare;
use serde::Serialize;

/// A process and, where it is baked, what its baker did since it began.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopRow {
    /// What the system tells of it.
    #[serde(flatten)]
    pub process: Surveyed,
    /// Its control group; `null`: the system does not say.
    pub control_group: Option<String>,
    /// The share of its time in translation, estimated; `null`: it was not sampled, or too seldom.
    pub translation: Option<TranslationShare>,
    /// Its bytes in small pages by why they are, the most first; empty where it was not looked at.
    pub small_pages: Vec<SmallBytes>,
    /// What its baker did; `null`: it is not baked, or the baker does not tell.
    pub baked: Option<ProcessReport>,
}

/// Memory in small pages for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SmallBytes {
    /// Why.
    pub reason: SmallReason,
    /// How much.
    pub bytes: u64,
}

impl TopRow {
    /// CPUs that translation takes, as far as it is known.
    pub fn translating_cpus(&self) -> f64 {
        self.translation.map_or(0.0, |translation| translation.share * self.process.cpus)
    }
}

/// Puts rows in order: those of which most is known to go to translation, then by what they may walk to.
pub fn sort(rows: &mut [TopRow]) {
    let weight = |row: &TopRow| row.process.weight();
    rows.sort_by(|a, b| {
        let known = b.translating_cpus().total_cmp(&a.translating_cpus());
        known.then(weight(b).total_cmp(&weight(a))).then(a.process.pid.cmp(&b.process.pid))
    });
}
