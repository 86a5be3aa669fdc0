//! The `top` command: all processes by what translation costs them, live.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use lookaside_cli::exit::Failure;
use lookaside_cli::here::MachineHere;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{check_writable, print, style, write_file};
use lookaside_host::Process;
use lookaside_runtime::bake::{ProcessReport, Survey, Surveyed};
use lookaside_views::top::{control_groups, sort, view, SmallBytes, TopProcesses, TopRow};
use lookaside_views::{json, openmetrics_top};

use crate::args::top::TopArgs;
use crate::bake_status::command_files;
use crate::bake_status::helper_files::HelperFiles;
use inspection::{Inspection, Inspector};

mod inspection;
mod live;

/// Between two looks that say which processes are busy now, before they are sampled.
const FIRST: Duration = Duration::from_millis(300);

/// Shows them until `q`, Ctrl-C or a signal; or once.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    args.output.check()?;
    let metrics = args.openmetrics.as_deref();
    let printed = metrics.is_some_and(|path| path == Path::new("-"));
    if printed && args.output.prints_json() {
        return Err(Failure::bad("--openmetrics, --json: both print; give one of them a file, as --json=FILE"));
    }
    metrics.filter(|_| !printed).map_or(Ok(()), check_writable)?;
    let interval = Duration::from_secs(args.interval);
    let mut observer = ProcessObserver { survey: Survey::new(), helpers: HelperFiles::new() };
    let first = observer.snapshot()?;
    let inspector = Inspector::new(if args.no_samples { None } else { Some(MachineHere::kept()?) });
    if !args.once && !args.output.asked() && metrics.is_none() && std::io::stdout().is_terminal() {
        return live::run(args, observer, first, inspector);
    }
    let interrupt = Interrupt::install()?;
    let mut inspector = inspector;
    std::thread::sleep(FIRST);
    let busy = observer.snapshot()?;
    inspector.sample(&busy.processes, interval, &|| interrupt.asked());
    let mut seen = observer.snapshot()?;
    let recent = seen.since(&first);
    let inspection = inspector.inspect(&seen.processes)?;
    let all = seen.rows(&inspection, args.cgroups);
    let text = metrics.map(|_| openmetrics_top::render(&all));
    match &text {
        Some(text) if printed => {
            print(text)?;
            args.output.write_files(&view(&all, &recent), &json::render(&all))?;
        }
        _ => args.output.write(&view(&all, &recent), &json::render(&all), &style(None))?,
    }
    if let (Some(path), Some(text), false) = (metrics, &text, printed) {
        write_file(path, text)?;
    }
    Ok(if interrupt.asked() { interrupt.code() } else { 0 })
}

/// Takes snapshots of all processes and of what their bakers do.
struct ProcessObserver {
    survey: Survey,
    helpers: Option<HelperFiles>,
}

/// All processes at one moment.
struct Snapshot {
    processes: Vec<Surveyed>,
    /// By process.
    baked: BTreeMap<u32, ProcessReport>,
}

impl ProcessObserver {
    fn snapshot(&mut self) -> Result<Snapshot, Failure> {
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
    fn since(&self, before: &Self) -> BTreeMap<u32, ProcessReport> {
        let recent = |(pid, baked): (&u32, &ProcessReport)| {
            let stats = before.baked.get(pid).map_or(baked.stats, |before| baked.stats.since(&before.stats));
            (*pid, ProcessReport { stats, ..baked.clone() })
        };
        self.baked.iter().map(recent).collect()
    }

    /// The rows, with what was found out about them.
    fn rows(&mut self, inspection: &Inspection, groups: bool) -> TopProcesses {
        let mut baked = std::mem::take(&mut self.baked);
        let row = |process: Surveyed| TopRow {
            control_group: Process::of(process.pid).control_group().ok(),
            translation: inspection.translation.get(&process.pid).copied(),
            small_pages: small_pages(inspection, process.pid),
            baked: baked.remove(&process.pid),
            process,
        };
        let mut processes: Vec<TopRow> = std::mem::take(&mut self.processes).into_iter().map(row).collect();
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
