//! Baking other processes from outside: those named by number, by program or by control group, new ones picked up,
//! ended ones let go. By `PAGEMAP_SCAN` or the kernel module; nothing is put into a process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::baker::Baker;
use super::clock::thread_nanos;
use super::error::BakeError;
use super::helper_status::HelperStatus;
use super::perf::RunningPmu;
use super::process::{family, mappings, members, named, BakeableMapping, Identity};
use super::rank::{Rank, Ranking, EVENTS};
use super::region::{BakedRegion, Target};
use super::settings::Settings;
use super::stats::BakeStats;
use super::survey::Survey;
use super::survey::{worth, MOST};

/// Which processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSelection {
    /// By number. These have to be there at the start.
    pub pids: Vec<u32>,
    /// By the program's name, as `ps -o comm` has it.
    pub comms: Vec<String>,
    /// Members of these control groups and of those below them.
    pub groups: Vec<PathBuf>,
    /// These and all that come from them, as far as they are there.
    pub families: Vec<u32>,
    /// Of all processes those for which it may be worth it: with 256 MiB or more in small pages, using a fifth of a CPU
    /// or more (less than a fiftieth: let go), not baked by others; at most 16.
    pub system: bool,
}

/// What became of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessReport {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Whether it still runs that program.
    pub running: bool,
    /// Whether it was let go, since it was not worth it any more.
    pub let_go: bool,
    /// Mappings baked when last looked at.
    pub mappings: usize,
    /// Bytes of these in small pages.
    pub small_bytes: u64,
    /// What the helper did.
    pub stats: BakeStats,
    /// Why it is not baked, or not any more.
    pub refused: Option<String>,
    /// What its helper tells beside, where the program bakes itself.
    #[serde(default)]
    pub within: Option<HelperStatus>,
    /// How it was ranked, where it was chosen of the whole system.
    #[serde(default)]
    pub rank: Option<ProcessRank>,
}

/// How a process was ranked among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessRank {
    /// By what.
    #[serde(flatten)]
    pub ranking: Ranking,
    /// Cycles a second of its walks for loads in the last second; `None` = not counted, or not yet.
    pub walk_cycles_per_second: Option<f64>,
}

/// Bakers of several processes.
#[derive(Debug)]
pub struct ProcessBakers {
    settings: Settings,
    wanted: ProcessSelection,
    survey: Survey,
    /// Ranks the whole system's processes, if these are wanted.
    rank: Option<Rank>,
    running: BTreeMap<u32, BakedProcess>,
    ended: Vec<ProcessReport>,
    looks: LookTimes,
}

/// What looking for processes and their memory costs.
#[derive(Clone, Copy, Debug)]
struct LookTimes {
    /// CPU time of all looks.
    all: Duration,
    /// Of the last one.
    last: Duration,
    started: Instant,
}

/// A process that is baked.
#[derive(Debug)]
struct BakedProcess {
    identity: Identity,
    /// Why there is none, or the baker.
    baker: Result<Baker, String>,
    regions: Vec<BakedRegion>,
    small_bytes: u64,
}

/// A look at processes and their memory is made so often, where their share of a CPU allows it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Part of the share that looks may use.
const LOOKS_PART: f64 = 0.5;
/// So many processes that have ended are remembered; of more the first are forgotten.
const ENDED: usize = 1000;

impl ProcessBakers {
    /// Looks for the processes and begins.
    ///
    /// # Errors
    /// Settings that cannot be or do not reach other processes; nobody wanted; a process by number that is not there or
    /// may not be looked at; a control group that is none; a kernel without the call.
    pub fn start(settings: &Settings, wanted: ProcessSelection) -> Result<Self, BakeError> {
        settings.check()?;
        settings.check_reach()?;
        if wanted == ProcessSelection::default() {
            return Err(BakeError::Setting("no process: name one by number, by program or by control group".into()));
        }
        for &pid in &wanted.pids {
            Identity::of(pid)?;
            mappings(pid)?;
            Baker::start_for(Target::Process(pid), settings, &[])?;
        }
        let mut outside = Self {
            settings: settings.clone(),
            survey: Survey::new(),
            rank: wanted.system.then(|| Rank::new(Box::new(RunningPmu::new()), &EVENTS)),
            wanted,
            running: BTreeMap::new(),
            ended: Vec::new(),
            looks: LookTimes { all: Duration::ZERO, last: Duration::ZERO, started: Instant::now() },
        };
        outside.refresh()?;
        Ok(outside)
    }

    /// Looks anew: for processes, and for their mappings. To be called when [`ProcessBakers::until_refresh`] has gone
    /// by. Gives how many are there.
    ///
    /// # Errors
    /// A control group that is gone.
    pub fn refresh(&mut self) -> Result<usize, BakeError> {
        let before = thread_nanos();
        self.look()?;
        self.looks.last = Duration::from_nanos(thread_nanos().saturating_sub(before));
        self.looks.all += self.looks.last;
        self.share_out()?;
        Ok(self.running.len())
    }

    /// How long to wait from one refresh to the next: a second, and longer where the last look took so much CPU time
    /// that looks would use more than half of the share.
    pub fn until_refresh(&self) -> Duration {
        LOOK_INTERVAL.max(self.looks.last.div_f64(self.settings.cpu_share * LOOKS_PART))
    }

    /// Share of a CPU that looks used since the start.
    pub fn looks_cpu_share(&self) -> f64 {
        self.looks.all.as_secs_f64() / self.looks.started.elapsed().as_secs_f64().max(1e-9)
    }

    /// One budget for all that have something to bake: what the looks leave.
    fn share_out(&self) -> Result<(), BakeError> {
        let looks = self.looks.last.as_secs_f64() / self.until_refresh().as_secs_f64();
        let busy = || {
            self.running.values().filter(|kept| !kept.regions.is_empty()).filter_map(|kept| kept.baker.as_ref().ok())
        };
        let share = (self.settings.cpu_share - looks) / busy().count().max(1) as f64;
        busy().try_for_each(|baker| baker.set_cpu_share(share))
    }

    fn look(&mut self) -> Result<(), BakeError> {
        let mut pids = self.wanted.pids.clone();
        for comm in &self.wanted.comms {
            pids.extend(named(comm)?);
        }
        for group in &self.wanted.groups {
            pids.extend(members(group)?);
        }
        pids.extend(self.wanted.families.iter().flat_map(|&pid| family(pid)));
        if let Some(rank) = &mut self.rank {
            let baked: BTreeSet<u32> = self.running.keys().copied().collect();
            let found = self.survey.look()?;
            pids.extend(rank.order(worth(&found, &baked), Instant::now()).into_iter().take(MOST));
        }
        pids.sort_unstable();
        pids.dedup();
        let now: BTreeMap<u32, Identity> =
            pids.into_iter().filter_map(|pid| Some((pid, Identity::of(pid).ok()?))).collect();
        let gone = |(pid, kept): &(&u32, &BakedProcess)| now.get(pid) != Some(&kept.identity);
        let gone: Vec<u32> = self.running.iter().filter(gone).map(|(pid, _)| *pid).collect();
        for pid in gone {
            if let Some(kept) = self.running.remove(&pid) {
                let running = Identity::of(pid).is_ok_and(|identity| identity == kept.identity);
                self.ended.push(ProcessReport { running, let_go: running, ..kept.end(pid) });
            }
        }
        let excess = self.ended.len().saturating_sub(ENDED);
        self.ended.drain(..excess);
        for (pid, identity) in now {
            let settings = &self.settings;
            self.running.entry(pid).or_insert_with(|| {
                let baker = Baker::start_for(Target::Process(pid), settings, &[]).map_err(|e| e.to_string());
                BakedProcess { identity, baker, regions: Vec::new(), small_bytes: 0 }
            });
        }
        for (pid, kept) in &mut self.running {
            kept.refresh(*pid);
        }
        Ok(())
    }

    /// What became of each process so far: those that ended first, then by number.
    pub fn report(&self) -> Vec<ProcessReport> {
        let running = self.running.iter().map(|(pid, kept)| kept.report(*pid, true));
        self.ended.iter().cloned().chain(running).map(|baked| self.ranked(baked)).collect()
    }

    /// By what the processes of the whole system are ranked; `None` where only some are wanted.
    pub fn ranking(&self) -> Option<Ranking> {
        self.rank.as_ref().map(Rank::ranking)
    }

    /// With how it was ranked.
    fn ranked(&self, baked: ProcessReport) -> ProcessReport {
        let ranked = |rank: &Rank| ProcessRank {
            ranking: rank.ranking(),
            walk_cycles_per_second: rank.cycles_per_second(baked.pid).filter(|_| baked.running),
        };
        ProcessReport { rank: self.rank.as_ref().map(ranked), ..baked }
    }

    /// Stops all; gives what became of each.
    pub fn stop(mut self) -> Vec<ProcessReport> {
        let running = std::mem::take(&mut self.running);
        let ended = std::mem::take(&mut self.ended);
        let stopped = running.into_iter().map(|(pid, kept)| ProcessReport { running: true, ..kept.end(pid) });
        ended.into_iter().chain(stopped).map(|baked| self.ranked(baked)).collect()
    }
}

impl BakedProcess {
    /// The process's mappings as they are now.
    fn refresh(&mut self, pid: u32) {
        let Ok(baker) = &self.baker else { return };
        let found = mappings(pid).and_then(|found: Vec<BakeableMapping>| {
            let regions: Vec<BakedRegion> = found.iter().map(|mapping| mapping.region).collect();
            if regions != self.regions {
                baker.set_regions(&regions)?;
                self.regions = regions;
            }
            self.small_bytes = found.iter().map(|mapping| mapping.small_bytes).sum();
            Ok(())
        });
        // A process that has ended meanwhile is found out at the next look.
        if let (Err(error), true) = (found, Identity::of(pid).is_ok()) {
            self.baker = Err(error.to_string());
        }
    }

    fn report(&self, pid: u32, running: bool) -> ProcessReport {
        ProcessReport {
            pid,
            comm: self.identity.comm.clone(),
            running,
            let_go: false,
            mappings: self.regions.len(),
            small_bytes: self.small_bytes,
            stats: self.baker.as_ref().map_or_else(|_| BakeStats::default(), Baker::stats),
            refused: self.baker.as_ref().err().cloned(),
            within: None,
            rank: None,
        }
    }

    fn end(self, pid: u32) -> ProcessReport {
        let report = self.report(pid, false);
        let stats = self.baker.map_or(report.stats, Baker::stop);
        ProcessReport { stats, ..report }
    }
}

#[cfg(test)]
mod tests;
