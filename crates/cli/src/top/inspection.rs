//! A closer look at the processes that matter: the share of their time in translation, by the clock sampler, and why
//! their memory is in small pages.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use lookaside_capture::{sample_bursts, BurstPlan, BurstSample};
use lookaside_cli::exit::Failure;
use lookaside_cli::here::MachineHere;
use lookaside_engine::Setup;
use lookaside_machine::{Machine, Serves};
use lookaside_runtime::bake::Surveyed;
use lookaside_runtime::hugepages::{HugePageRules, MemoryPart, SmallMemory, SmallReason};
use lookaside_techniques::translation_share::{translation_share, MemoryRange, TranslationShare, WaitingSample};

/// Processes sampled at once: the busiest that are too large for the TLB.
const MOST_SAMPLED: usize = 8;
/// Processes whose memory is looked at, which takes the kernel some 20 ms a GiB.
const MOST_INSPECTED: usize = 16;
/// CPUs that a process must use to be sampled: below, ten seconds give no hundred samples.
const LEAST_CPUS: f64 = 0.03;
/// Bursts that an estimate is made of: ten seconds of them.
const KEPT: usize = 100;
/// 40 samples of a busy thread ten times a second: at 15 to 21 µs a sample (docs/results/sampling.md) 0.6 to 0.8 % of
/// its time.
const PLAN: BurstPlan = BurstPlan {
    period: Duration::from_micros(50),
    burst: Duration::from_millis(2),
    every: Duration::from_millis(100),
    time: Duration::ZERO,
};
/// How soon an interruption is heeded.
const STEP: Duration = Duration::from_millis(20);

/// A process by its number and when it started.
type ProcessStart = (u32, u64);
/// What a burst says of one process.
type BurstOfProcess = Vec<WaitingSample>;

/// What was found out about processes, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The share of their time in translation.
    pub translation: BTreeMap<u32, TranslationShare>,
    /// Bytes in small pages by why they are.
    pub small: BTreeMap<u32, BTreeMap<SmallReason, u64>>,
    /// What the shares are estimated with.
    pub machine: Option<String>,
    /// What could not be told.
    pub notes: Vec<String>,
}

/// Samples processes, keeps what was seen last of each, and looks at their memory.
pub struct Inspector {
    sampling: Option<Sampling>,
}

struct Sampling {
    setup: Setup,
    reason: String,
    reach_bytes: u64,
    kept: BTreeMap<ProcessStart, VecDeque<BurstOfProcess>>,
    /// The last that was refused.
    refused: Option<String>,
}

impl Inspector {
    /// With a machine, shares of translation are estimated for it; without one nothing is sampled.
    pub fn new(machine: Option<MachineHere>) -> Self {
        let sampling = machine.map(|MachineHere { machine, reason, measured }| Sampling {
            reason: match measured {
                true => format!("this machine as measured; {reason}"),
                false => format!("preset {}: {reason}", machine.name),
            },
            reach_bytes: reach_bytes(&machine),
            setup: Setup::new(machine),
            kept: BTreeMap::new(),
            refused: None,
        });
        Self { sampling }
    }

    /// Samples the busiest for so long; `stop` is asked now and then.
    pub fn sample(&mut self, processes: &[Surveyed], time: Duration, stop: &dyn Fn() -> bool) {
        let end = Instant::now() + time;
        if let Some(sampling) = &mut self.sampling {
            sampling.sample(processes, time, stop);
        }
        while Instant::now() < end && !stop() {
            std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// What is known of each process now.
    pub fn inspect(&self, processes: &[Surveyed]) -> Result<Inspection, Failure> {
        let mut found = Inspection::default();
        let rules = HugePageRules::here();
        let mut parts: BTreeMap<u32, Vec<MemoryPart>> = BTreeMap::new();
        let is_kept = |process: &Surveyed| {
            self.sampling.as_ref().is_some_and(|sampling| sampling.kept.contains_key(&identity(process)))
        };
        for (at, process) in processes.iter().enumerate() {
            if at >= MOST_INSPECTED && !is_kept(process) {
                continue;
            }
            // Of one that may not be looked at nothing is known.
            if let Ok(memory) = SmallMemory::of(process.pid, &rules) {
                found.small.insert(process.pid, memory.bytes_by_reason);
                parts.insert(process.pid, memory.parts);
            }
        }
        if let Some(sampling) = &self.sampling {
            found.machine = Some(sampling.reason.clone());
            found.translation = sampling.estimates(&parts)?;
            found.notes.extend(sampling.refused.iter().map(|why| format!("not all could be sampled: {why}")));
        }
        Ok(found)
    }
}

impl Sampling {
    fn sample(&mut self, processes: &[Surveyed], time: Duration, stop: &dyn Fn() -> bool) {
        self.kept.retain(|kept, _| processes.iter().any(|process| identity(process) == *kept));
        self.refused = None;
        let mut chosen = chosen(processes, self.reach_bytes);
        // One that may not be sampled must not cost the others their samples.
        chosen.retain(|process| match sample_bursts(&[process.pid], PLAN, stop) {
            Ok(_) => true,
            Err(error) => {
                self.refused = Some(format!("{} ({}): {error}", process.comm, process.pid));
                false
            }
        });
        let pids: Vec<u32> = chosen.iter().map(|process| process.pid).collect();
        if pids.is_empty() {
            return;
        }
        match sample_bursts(&pids, BurstPlan { time, ..PLAN }, stop) {
            Ok(bursts) => bursts.iter().for_each(|burst| self.keep(&chosen, burst)),
            Err(error) => self.refused = Some(error.to_string()),
        }
    }

    fn keep(&mut self, chosen: &[&Surveyed], burst: &[BurstSample]) {
        for process in chosen {
            let its = burst.iter().filter(|sample| sample.process == process.pid);
            let its = its.map(|sample| WaitingSample { thread: sample.thread, addr: sample.addr }).collect();
            let kept = self.kept.entry(identity(process)).or_default();
            kept.push_back(its);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
    }

    fn estimates(&self, parts: &BTreeMap<u32, Vec<MemoryPart>>) -> Result<BTreeMap<u32, TranslationShare>, Failure> {
        let mut found = BTreeMap::new();
        for (&(pid, _), bursts) in &self.kept {
            let Some(parts) = parts.get(&pid) else { continue };
            let memory: Vec<MemoryRange> = parts.iter().map(range).collect();
            let bursts: Vec<BurstOfProcess> = bursts.iter().cloned().collect();
            if let Some(share) = translation_share(&bursts, &memory, &self.setup).map_err(Failure::bad)? {
                found.insert(pid, share);
            }
        }
        Ok(found)
    }
}

fn identity(process: &Surveyed) -> ProcessStart {
    (process.pid, process.started_ticks)
}

fn range(part: &MemoryPart) -> MemoryRange {
    let MemoryPart { start, end, resident_bytes, huge_bytes } = *part;
    MemoryRange { start, end, resident_bytes, huge_bytes }
}

/// The processes that are worth sampling.
fn chosen(processes: &[Surveyed], reach_bytes: u64) -> Vec<&Surveyed> {
    let is_worth = |process: &&Surveyed| process.cpus >= LEAST_CPUS && process.small_bytes() > reach_bytes;
    let mut chosen: Vec<&Surveyed> = processes.iter().filter(is_worth).collect();
    chosen.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    chosen.truncate(MOST_SAMPLED);
    chosen
}

/// Bytes that the machine's largest TLB of small data pages reaches.
fn reach_bytes(machine: &Machine) -> u64 {
    let Some(&size) = machine.page_table.format.page_sizes().first() else { return 0 };
    let serves = |tlb: &&lookaside_machine::Tlb| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&size);
    machine.tlbs.iter().filter(serves).map(|tlb| u64::from(tlb.entries) * size.bytes()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, mib: u64, cpus: f64) -> Surveyed {
        Surveyed {
            pid,
            comm: "db".into(),
            cpus,
            resident_bytes: mib << 20,
            huge_bytes: 0,
            table_bytes: 0,
            helpers: Vec::new(),
            started_ticks: 3,
        }
    }

    #[test]
    fn the_busiest_that_are_larger_than_the_tlb_are_sampled() {
        let machine = lookaside_machine::preset("skylake").expect("a preset");
        // 1,536 entries of 4 KiB.
        assert_eq!(reach_bytes(&machine), 6 << 20);
        let mut all: Vec<Surveyed> = (0..12).map(|pid| process(pid, 7, 0.1 + f64::from(pid))).collect();
        all.extend([process(20, 6, 50.0), process(21, 7, 0.02)]);
        let pids: Vec<u32> = chosen(&all, 6 << 20).iter().map(|process| process.pid).collect();
        assert_eq!(pids, [11, 10, 9, 8, 7, 6, 5, 4]);
    }

    #[test]
    fn what_was_seen_last_is_kept_for_each_process() {
        let machine = lookaside_machine::preset("skylake").expect("a preset");
        let here = MachineHere { machine, reason: "asked for".into(), measured: false };
        let mut inspector = Inspector::new(Some(here));
        let sampling = inspector.sampling.as_mut().expect("a machine was given");
        assert_eq!(sampling.reason, "preset skylake: asked for");
        let process = process(7, 100, 1.0);
        let sample = |process, addr| BurstSample { process, thread: process, addr, ip: 1 };
        for burst in 0..KEPT as u64 + 5 {
            sampling.keep(&[&process], &[sample(7, burst), sample(8, 1)]);
        }
        let kept = &sampling.kept[&(7, 3)];
        assert_eq!((kept.len(), kept[0].clone()), (KEPT, vec![WaitingSample { thread: 7, addr: 5 }]));
        assert!(Inspector::new(None).inspect(&[]).expect("nothing to do").machine.is_none());
    }
}
