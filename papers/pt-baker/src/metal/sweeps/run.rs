//! The sweeps of `reproduce pt-baker --metal`: dependent random reads in this process, with the baker in each setting
//! and without, in turns. What is measured and what it means is the papers' business, how ratios are judged the
//! runtime's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lookaside_harness::Reproduction;
use lookaside_host::{allowed_cpus, available_bytes, bind_to, current_cpu};
use lookaside_report::num::bytes;
use lookaside_runtime::bake::{beside, BakeBackend, BakedRegion, Baker, Hint, Placement, Settings};
use lookaside_runtime::compare::in_turns;
use lookaside_stats::{ratio, RESAMPLES};
use lookaside_workloads::{workload, Pages, Workload, WorkloadSpec};

use super::settings::{ways, HelperLevel, HelperPlace, HelperSetting};
use super::times::{RatioInterval, SettingTimes, SweepTimes};

/// Rounds: beyond, the intervals become little narrower for the time that they take.
const ROUNDS: u32 = 15;
/// What each setting runs before it counts: time for some rounds of the helper at its longest sleep.
const WARM: Duration = Duration::from_millis(50);
/// And what counts: over a million reads.
const WINDOW: Duration = Duration::from_millis(250);
/// Bytes of the reads' table, if nothing else is asked for.
const USUAL_BYTES: u64 = 1 << 30;
/// Fewer bytes have tables that the caches hold by themselves.
const LEAST_BYTES: u64 = 256 << 20;

/// What a run of a setting came to.
pub(crate) struct RunTimes {
    /// Nanoseconds a read.
    pub ns_per_read: f64,
    /// CPU time of the helper: share of one CPU.
    pub helper_cpu_share: f64,
}

/// Who measures.
pub(crate) trait SettingMeasurer {
    /// Why a setting can't be.
    fn refuses(&self, way: &HelperSetting) -> Option<String>;
    /// Runs it once; without a helper if there is none.
    fn measure(&mut self, way: Option<&HelperSetting>) -> Result<RunTimes, String>;
    /// What is measured, where.
    fn how(&self) -> String;
}

/// Measures all settings in turns, until `halt` says why to stop.
pub(crate) fn sweep(
    measurer: &mut dyn SettingMeasurer,
    seed: u64,
    halt: &dyn Fn() -> Option<String>,
    progress: &mut dyn FnMut(&str),
) -> SweepTimes {
    let refusals: Vec<(HelperSetting, Option<String>)> =
        ways().into_iter().map(|way| (way, measurer.refuses(&way))).collect();
    let usable: Vec<&HelperSetting> = refusals.iter().filter(|(_, why)| why.is_none()).map(|(way, _)| way).collect();
    let (taken, ended) = in_turns(2 + usable.len(), ROUNDS, seed, &mut |round, which| {
        if let Some(why) = halt() {
            return Err(why);
        }
        let way = which.checked_sub(2).and_then(|at| usable.get(at)).copied();
        let name = way.map_or("without a helper".to_string(), HelperSetting::to_string);
        progress(&format!("sweeps, round {} of {ROUNDS}: {name}", round + 1));
        measurer.measure(way)
    });
    let mut came = taken.into_iter().map(|runs| SettingTimes {
        ns_per_read: runs.iter().map(|run| run.ns_per_read).collect(),
        helper_cpu_share: runs.iter().map(|run| run.helper_cpu_share).collect(),
    });
    let [base, again] = [came.next(), came.next()].map(|came| came.unwrap_or_default().ns_per_read);
    let settings = usable.len();
    let ways = refusals.iter().map(|(way, why)| {
        let came = match why {
            Some(why) => Err(why.clone()),
            None => Ok(came.next().unwrap_or_default()),
        };
        (*way, came)
    });
    SweepTimes {
        ways: ways.collect(),
        how: vec![
            measurer.how(),
            format!(
                "sweeps: a round runs each of {settings} settings once and no helper twice, {} ms uncounted and {} ms counted each, in an order \
                 drawn anew (seed {seed}). Improvement: median time a read without a helper ÷ with it, less 1; 95 % interval by {} resamples of \
                 whole rounds, each by itself: of twenty settings without effect one may look significant",
                WARM.as_millis(),
                WINDOW.as_millis(),
                RESAMPLES
            ),
        ],
        base,
        again,
        rounds_wanted: ROUNDS,
        ended,
    }
}

/// Sweeps on this machine, and adds what comes of it. `memory` is the most bytes for the table.
pub(crate) fn add(
    found: &mut Reproduction,
    memory: Option<u64>,
    seed: u64,
    halt: &dyn Fn() -> Option<String>,
    progress: &mut dyn FnMut(&str),
) {
    let why = found.halted.clone().or_else(halt);
    let native = match why {
        Some(why) => Err(format!("not reached: {why}")),
        None => {
            progress("sweeps: building the table");
            size(memory, available_bytes().ok_or("the system does not say how much memory is free".into()))
                .and_then(|bytes| ReadsBench::new(bytes, seed))
        }
    };
    let swept = native.map(|mut native| sweep(&mut native, seed, halt, progress));
    put(found, swept.as_ref().map_err(String::as_str), seed, RESAMPLES);
}

/// The rows, judged as `compare` judges.
fn put(found: &mut Reproduction, swept: Result<&SweepTimes, &str>, seed: u64, resamples: usize) {
    super::add(found, swept, &|above, below| {
        let ratio = ratio(above, below, seed, resamples)?;
        Some(RatioInterval { value: ratio.value, low: ratio.low, high: ratio.high, significant: ratio.significant })
    });
}

/// Bytes of the table: at most half of what is free.
fn size(memory: Option<u64>, free: Result<u64, String>) -> Result<u64, String> {
    let free = free?;
    let most = memory.unwrap_or(USUAL_BYTES).min(free / 2) & !((1 << 20) - 1);
    if most < LEAST_BYTES {
        return Err(format!(
            "needs {} for its table, whose entries the caches else hold by themselves; {} are allowed (--memory; half of what is free)",
            bytes(LEAST_BYTES),
            bytes(most)
        ));
    }
    Ok(most)
}

/// The reads in this process, and the helper beside them.
struct ReadsBench {
    workload: Box<dyn Workload>,
    baked: Vec<BakedRegion>,
    seed: u64,
    /// CPUs that this thread may use.
    allowed: Vec<usize>,
    /// Where the reads run.
    cpu: u32,
    /// Another core under the same last-level cache.
    other: Option<u32>,
    /// The other hardware thread of the core.
    sibling: Option<u32>,
}

impl ReadsBench {
    /// Builds the table, and chooses CPUs.
    fn new(bytes: u64, seed: u64) -> Result<Self, String> {
        let allowed = allowed_cpus().map_err(|e| format!("the CPUs of this thread are not told: {e}"))?;
        // As many rounds as can be: each run goes on where the one before stopped.
        let spec = WorkloadSpec { bytes, seed, rounds: u32::MAX.into(), pages: Pages::Base };
        let workload = workload("reads", &spec).map_err(|e| e.to_string())?;
        let main = workload.regions().iter().filter(|region| region.main);
        let baked = main.map(|region| BakedRegion { start: region.start, len: region.bytes }).collect();
        let cpu = current_cpu() as u32;
        let [other, sibling] =
            [Placement::Auto, Placement::Sibling].map(|placement| beside(cpu, placement).ok().flatten());
        Ok(Self { workload, baked, seed, allowed, cpu, other, sibling })
    }

    fn settings(&self, way: &HelperSetting) -> Result<Settings, String> {
        let cpu = match way.place {
            HelperPlace::OtherCore => {
                self.other.ok_or("no other core under the same last-level cache that this program may use")
            }
            HelperPlace::Sibling => self.sibling.ok_or("no SMT sibling here that this program may use"),
            HelperPlace::Same => Ok(self.cpu),
        };
        let backend = match way.level {
            HelperLevel::User => BakeBackend::Prefetch(Hint::T0),
            HelperLevel::Kernel => BakeBackend::Scan,
        };
        Ok(Settings {
            auto: false,
            backend,
            stride_pages: way.stride_pages,
            nops: way.nops,
            sleep: Duration::from_micros(way.sleep_microseconds.into()),
            placement: Placement::Cpu(cpu?),
            cpu_share: 1.0,
        })
    }

    /// This thread may use these CPUs.
    fn bind(cpus: &[usize]) -> Result<(), String> {
        bind_to(cpus).map_err(|e| format!("this thread can't be kept on a CPU: {e}"))
    }

    fn start(&self, way: &HelperSetting) -> Result<Baker, String> {
        Baker::start(&self.settings(way)?, &self.baked).map_err(|e| e.to_string())
    }
}

impl SettingMeasurer for ReadsBench {
    fn refuses(&self, way: &HelperSetting) -> Option<String> {
        self.start(way).err()
    }

    fn measure(&mut self, way: Option<&HelperSetting>) -> Result<RunTimes, String> {
        // Helper and timer begin with all CPUs: what this thread is kept on they would be, too.
        Self::bind(&self.allowed)?;
        let baker = way.map(|way| self.start(way)).transpose()?;
        let only = [self.cpu as usize];
        let (warm, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let timer = || {
            std::thread::sleep(WARM);
            warm.store(true, Ordering::Relaxed);
            std::thread::sleep(WINDOW);
            over.store(true, Ordering::Relaxed);
        };
        let ns_per_read = std::thread::scope(|scope| {
            scope.spawn(timer);
            Self::bind(&only)?;
            self.workload.run(&warm);
            let (before, began) = (self.workload.operations(), Instant::now());
            self.workload.run(&over);
            let nanos = began.elapsed().as_secs_f64() * 1e9;
            // None in all that time: as slow as one at least.
            Ok::<f64, String>(nanos / (self.workload.operations() - before).max(1) as f64)
        })?;
        let helper_cpu_share = match (baker.map(Baker::stop), way) {
            (Some(stats), Some(way)) if stats.failed_calls > 0 => {
                let why = std::io::Error::from_raw_os_error(stats.last_errno);
                return Err(format!("{way}: {} of the kernel's calls failed, the last: {why}", stats.failed_calls));
            }
            (Some(stats), _) => stats.cpu_nanos as f64 / stats.elapsed_nanos.max(1) as f64,
            (None, _) => 0.0,
        };
        Ok(RunTimes { ns_per_read, helper_cpu_share })
    }

    fn how(&self) -> String {
        let total: u64 = self.baked.iter().map(|region| region.len).sum();
        let on = |cpu: Option<u32>| cpu.map_or("none here".to_string(), |cpu| format!("CPU {cpu}"));
        format!(
            "sweeps: `reads`, random reads each of which needs the one before, of {} in pages of 4 KiB ({} of entries), seed {}, on CPU {}; \
             helper on another core under the same last-level cache: {}; SMT sibling: {}",
            bytes(total),
            bytes(total / 512), // an entry of 8 bytes for 4096
            self.seed,
            self.cpu,
            on(self.other),
            on(self.sibling)
        )
    }
}

impl Drop for ReadsBench {
    fn drop(&mut self) {
        let _ = Self::bind(&self.allowed); // nothing to be done about it, and nothing is measured after it
    }
}

#[cfg(test)]
mod tests;
