//! Snapshots of all processes, and the rows that are made of them.

use std::collections::BTreeMap;

use lookaside_cli::exit::Failure;
use lookaside_host::Process;
use lookaside_runtime::bake::{ProcessReport, Survey, Surveyed};
use lookaside_views::top::{control_groups, sort, SmallBytes, TopProcesses, TopRow};

use super::inspection::Inspection;
use crate::bake_status::command_files;
use crate::bake_status::helper_files::HelperFiles;

/// Takes snapshots of all processes and of what their bakers do.
pub struct ProcessObserver {
    survey: Survey,
    helpers: Option<HelperFiles>,
}

/// All processes at one moment.
#[derive(Clone)]
pub struct Snapshot {
    /// The processes.
    pub processes: Vec<Surveyed>,
    /// What bakers tell, by process.
    pub baked: BTreeMap<u32, ProcessReport>,
}

impl ProcessObserver {
    /// Before the first snapshot.
    pub fn new() -> Self {
        Self { survey: Survey::new(), helpers: HelperFiles::new() }
    }

    /// As it is now.
    pub fn snapshot(&mut self) -> Result<Snapshot, Failure> {
        let processes = self.survey.look().map_err(Failure::bad)?;
        let mut baked_by_pid = command_files::running();
        for process in &processes {
            let itself = process.helpers.iter().any(|&(by, _)| by == process.pid);
            let helpers = self.helpers.as_ref().filter(|_| itself);
            if let Some(baked) = helpers.and_then(|helpers| helpers.baked(process.pid, &process.comm)) {
                baked_by_pid.insert(process.pid, baked);
            }
        }
        Ok(Snapshot { processes, baked: baked_by_pid })
    }
}

impl Snapshot {
    /// What bakers did since an earlier snapshot; since they began, for those that it does not have.
    pub fn since(&self, before: &Self) -> BTreeMap<u32, ProcessReport> {
        let recent = |(pid, baked): (&u32, &ProcessReport)| {
            let stats = before.baked.get(pid).map_or(baked.stats, |before| baked.stats.since(&before.stats));
            (*pid, ProcessReport { stats, ..baked.clone() })
        };
        self.baked.iter().map(recent).collect()
    }

    /// The rows, with what was found out about them.
    pub fn rows(self, inspection: &Inspection, groups: bool) -> TopProcesses {
        let mut baked = self.baked;
        let row = |process: Surveyed| TopRow {
            control_group: Process::of(process.pid).control_group().ok(),
            translation: inspection.translation.get(&process.pid).copied(),
            small_pages: small_pages(inspection, process.pid),
            baked: baked.remove(&process.pid),
            process,
        };
        let mut processes: Vec<TopRow> = self.processes.into_iter().map(row).collect();
        sort(&mut processes);
        let control_groups = if groups { control_groups(&processes) } else { Vec::new() };
        let (machine, notes) = (inspection.machine.clone(), inspection.notes.clone());
        TopProcesses { processes, control_groups, machine, notes }
    }
}

fn small_pages(inspection: &Inspection, pid: u32) -> Vec<SmallBytes> {
    let found = inspection.small.get(&pid).into_iter().flatten();
    let mut found: Vec<SmallBytes> = found.map(|(&reason, &bytes)| SmallBytes { reason, bytes }).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.bytes));
    found
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::BakeStats;

    use super::*;

    #[test]
    fn a_snapshot_has_what_was_done_since_the_one_before() {
        let snapshot = |rounds_by_pid: &[(u32, u64)]| {
            let baked = |&(pid, rounds): &(u32, u64)| ProcessReport {
                pid,
                comm: "db".into(),
                running: true,
                let_go: false,
                mappings: 1,
                small_bytes: 0,
                stats: BakeStats { rounds, elapsed_nanos: 2 * rounds, ..BakeStats::default() },
                refused: None,
                within: None,
                rank: None,
            };
            Snapshot { processes: Vec::new(), baked: rounds_by_pid.iter().map(|row| (row.0, baked(row))).collect() }
        };
        // The second is new, the third began anew.
        let recent = snapshot(&[(1, 150), (2, 7), (3, 4)]).since(&snapshot(&[(1, 100), (3, 90), (4, 1)]));
        let rounds: Vec<_> =
            recent.values().map(|baked| (baked.pid, baked.stats.rounds, baked.stats.elapsed_nanos)).collect();
        assert_eq!(rounds, [(1, 50, 100), (2, 7, 14), (3, 4, 8)]);
    }
}
