//! What the clock sampler says of the busiest processes: the share of their time in page-table walks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lookaside_capture::{sample_bursts, BurstPlan, BurstSample};
use lookaside_engine::Setup;
use lookaside_host::Process;
use lookaside_machine::{Machine, Serves};
use lookaside_runtime::bake::Surveyed;
use lookaside_techniques::translation_share::{translation_share, MemoryRange, WaitingSample, TranslationShare};

use lookaside_cli::exit::Failure;

/// Processes sampled at once: the busiest that are too large for the TLB.
const MOST: usize = 8;
/// CPUs that a process must use to be sampled: below, ten seconds give no hundred samples.
const LEAST_CPUS: f64 = 0.03;
/// Bursts that an estimate is made of: ten seconds of them.
const KEPT: usize = 100;
/// 40 samples of a busy thread ten times a second: at 15 to 21 µs a sample (docs/results/sampling.md) 0.6 to 0.8 % of
/// its time.
const PERIOD: Duration = Duration::from_micros(50);
const BURST: Duration = Duration::from_millis(2);
const EVERY: Duration = Duration::from_millis(100);

/// A process by its number and when it started.
type Identity = (u32, u64);
/// What a burst says of one process.
type BurstOfProcess = Vec<WaitingSample>;

/// Samples processes and keeps what was seen last of each.
pub struct TranslationSampler {
    setup: Setup,
    reach_bytes: u64,
    kept: BTreeMap<Identity, VecDeque<BurstOfProcess>>,
}

impl TranslationSampler {
    /// For a machine of this description.
    pub fn new(machine: Machine) -> Self {
        Self { reach_bytes: reach_bytes(&machine), setup: Setup::new(machine), kept: BTreeMap::new() }
    }

    /// Samples for so long; `stop` is asked now and then. What is refused of all is the reason that is given.
    pub fn sample(&mut self, processes: &[Surveyed], time: Duration, stop: &dyn Fn() -> bool) -> Option<String> {
        let chosen = chosen(processes, self.reach_bytes);
        self.kept.retain(|identity, _| processes.iter().any(|process| identity_of(process) == *identity));
        let plan = BurstPlan { period: PERIOD, burst: BURST, every: EVERY, time };
        let mut pids: Vec<u32> = chosen.iter().map(|process| process.pid).collect();
        let mut refused = None;
        // One that may not be sampled must not cost the others their samples.
        pids.retain(|&pid| {
            let tried = sample_bursts(&[pid], BurstPlan { time: Duration::ZERO, ..plan }, stop);
            refused = tried.as_ref().err().map(ToString::to_string).or_else(|| refused.take());
            tried.is_ok()
        });
        let bursts = match pids.is_empty() {
            true => {
                wait(time, stop);
                return refused;
            }
            false => sample_bursts(&pids, plan, stop),
        };
        match bursts {
            Ok(bursts) => bursts.iter().for_each(|burst| self.keep(&chosen, burst)),
            Err(error) => refused = Some(error.to_string()),
        }
        refused
    }

    fn keep(&mut self, chosen: &[&Surveyed], burst: &[BurstSample]) {
        for process in chosen {
            let its = burst.iter().filter(|sample| sample.process == process.pid);
            let its = its.map(|sample| WaitingSample { thread: sample.thread, addr: sample.addr }).collect();
            let kept = self.kept.entry(identity_of(process)).or_default();
            kept.push_back(its);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
    }

    /// What is known of each process, by its number.
    pub fn estimates(&self) -> Result<BTreeMap<u32, TranslationShare>, Failure> {
        let mut found = BTreeMap::new();
        for (&(pid, _), bursts) in &self.kept {
            let Ok(areas) = Process::of(pid).smaps() else { continue };
            let range = |area: lookaside_host::Vma| MemoryRange {
                start: area.start,
                end: area.end,
                resident_bytes: area.resident_bytes,
                huge_bytes: area.huge_bytes(),
            };
            let memory: Vec<MemoryRange> = areas.into_iter().map(range).collect();
            let bursts: Vec<BurstOfProcess> = bursts.iter().cloned().collect();
            if let Some(share) = translation_share(&bursts, &memory, &self.setup).map_err(Failure::bad)? {
                found.insert(pid, share);
            }
        }
        Ok(found)
    }
}

fn identity_of(process: &Surveyed) -> Identity {
    (process.pid, process.started_ticks)
}

fn wait(time: Duration, stop: &dyn Fn() -> bool) {
    let end = std::time::Instant::now() + time;
    while std::time::Instant::now() < end && !stop() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes that are worth sampling.
fn chosen(processes: &[Surveyed], reach_bytes: u64) -> Vec<&Surveyed> {
    let mut chosen: Vec<&Surveyed> = processes
        .iter()
        .filter(|process| process.cpus >= LEAST_CPUS && process.small_bytes() > reach_bytes)
        .collect();
    chosen.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    chosen.truncate(MOST);
    chosen
}

/// Bytes that the machine's largest TLB of small data pages reaches.
fn reach_bytes(machine: &Machine) -> u64 {
    let Some(&size) = machine.page_table.format.page_sizes().first() else { return 0 };
    let serving = machine.tlbs.iter().filter(|tlb| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&size));
    serving.map(|tlb| u64::from(tlb.entries) * size.bytes()).max().unwrap_or(0)
}
