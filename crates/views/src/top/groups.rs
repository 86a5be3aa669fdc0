//! Processes by control group.

use std::collections::BTreeMap;

use lookaside_runtime::hugepages::SmallReason;
use lookaside_techniques::translation_share::TranslationShare;
use serde::Serialize;

use super::rows::{SmallBytes, TopRow};

/// The processes of a control group, added up.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopGroup {
    /// Its path below the mount of control groups.
    pub control_group: String,
    /// Processes.
    pub processes: u64,
    /// CPUs that they used on average.
    pub cpus: f64,
    /// Of those, CPUs of the processes that `translation` is of.
    pub sampled_cpus: f64,
    /// Bytes of them in memory; what they share counts for each.
    pub resident_bytes: u64,
    /// Of those, bytes that huge pages map.
    pub huge_bytes: u64,
    /// Bytes of their page tables.
    pub table_bytes: u64,
    /// The share of their time in translation; `null`: none of them was sampled.
    pub translation: Option<TranslationShare>,
    /// Bytes in small pages by why they are, of the processes that were looked at.
    pub small_pages: Vec<SmallBytes>,
}

/// The groups of these processes, the likely dearest first.
pub fn control_groups(rows: &[TopRow]) -> Vec<TopGroup> {
    let mut by_group: BTreeMap<&str, Vec<&TopRow>> = BTreeMap::new();
    for row in rows {
        by_group.entry(row.control_group.as_deref().unwrap_or("")).or_default().push(row);
    }
    let mut groups: Vec<TopGroup> = by_group.into_iter().map(|(name, rows)| group(name, &rows)).collect();
    groups.sort_by(|a, b| b.translating_cpus().total_cmp(&a.translating_cpus()).then(b.cpus.total_cmp(&a.cpus)));
    groups
}

impl TopGroup {
    /// CPUs that translation takes, as far as it is known.
    fn translating_cpus(&self) -> f64 {
        self.translation.map_or(0.0, |translation| translation.share * self.sampled_cpus)
    }
}

fn group(name: &str, rows: &[&TopRow]) -> TopGroup {
    let sum = |of: &dyn Fn(&TopRow) -> u64| rows.iter().map(|row| of(row)).sum();
    let shares: Vec<(f64, TranslationShare)> =
        rows.iter().filter_map(|row| Some((row.process.cpus, row.translation?))).collect();
    let mut small: BTreeMap<SmallReason, u64> = BTreeMap::new();
    for one in rows.iter().flat_map(|row| &row.small_pages) {
        *small.entry(one.reason).or_default() += one.bytes;
    }
    TopGroup {
        control_group: name.into(),
        processes: rows.len() as u64,
        cpus: rows.iter().map(|row| row.process.cpus).sum(),
        sampled_cpus: shares.iter().map(|(cpus, _)| cpus).sum(),
        resident_bytes: sum(&|row| row.process.resident_bytes),
        huge_bytes: sum(&|row| row.process.huge_bytes),
        table_bytes: sum(&|row| row.process.table_bytes),
        translation: TranslationShare::of_several(&shares),
        small_pages: small.into_iter().map(|(reason, bytes)| SmallBytes { reason, bytes }).collect(),
    }
}
