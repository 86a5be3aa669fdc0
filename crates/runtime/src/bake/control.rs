//! What the helper thread and those who steer it share: settings, regions, counters.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::clock::now_nanos;
use super::counters::{HelperCounters, HelperState};
use super::cpu_demand::CpuCounts;
use super::error::BakeError;
use super::helper_status::HelperStatus;
use super::kernel_tables::KernelTables;
use super::place;
use super::region::{BakedRegion, Target};
use super::settings::check_share;
use super::settings::{Placement, Settings};
use super::stats::BakeStats;

/// What the helper and those who steer it share.
#[derive(Debug)]
pub(super) struct BakerControl {
    pub(super) target: Target,
    pub(super) settings: Settings,
    /// The settings as text.
    pub(super) bake: String,
    /// How many CPUs the program may use.
    pub(super) cpu_counts: CpuCounts,
    /// Where the helper may run; anywhere if none is named.
    pub(super) cpus: Vec<u32>,
    /// Bits of the share of a CPU that may be used.
    cpu_share: AtomicU64,
    /// Sorted, disjoint, in whole pages: first byte and the byte after the last. Locked during each chunk of touches.
    regions: Mutex<Vec<(u64, u64)>>,
    /// Notified of a stop, and of regions where there were none.
    pub(super) changed: Condvar,
    pub(super) stop: AtomicBool,
    /// Whoever wants to change the regions goes first.
    pub(super) waiting: AtomicU64,
    /// Changes of the regions.
    pub(super) changes: AtomicU64,
    started: Instant,
    pub(super) counters: HelperCounters,
    failed_calls: AtomicU64,
    pub(super) bound_to: AtomicI32,
}

impl BakerControl {
    /// Everything that can be wrong is found here, in the caller's thread.
    pub(super) fn new(target: Target, settings: &Settings, regions: &[BakedRegion]) -> Result<Self, BakeError> {
        settings.check()?;
        if target != Target::Own {
            settings.check_reach()?;
        }
        // The helper opens its own: its files are not the program's.
        drop(KernelTables::open(settings.backend, target)?);
        let regions = normal(regions)?;
        let counters = HelperCounters::default();
        counters.reset(now_nanos());
        count(&counters, &regions);
        Ok(Self {
            target,
            settings: settings.clone(),
            bake: settings.to_string(),
            cpu_counts: place::cpus(),
            cpus: match (target, settings.placement) {
                (Target::Process(pid), Placement::Auto) => place::near(pid),
                _ => place::choose(settings.placement)?.into_iter().collect(),
            },
            cpu_share: AtomicU64::new(settings.cpu_share.to_bits()),
            regions: Mutex::new(regions),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            waiting: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            started: Instant::now(),
            counters,
            failed_calls: AtomicU64::new(0),
            bound_to: AtomicI32::new(-1),
        })
    }

    /// The regions, before the helper's next chunk.
    fn change(&self, change: impl FnOnce(&mut Vec<(u64, u64)>)) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut regions = self.lock();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        change(&mut regions);
        count(&self.counters, &regions);
        self.changes.fetch_add(1, Ordering::SeqCst);
        drop(regions);
        self.changed.notify_all();
    }

    pub(super) fn set_regions(&self, regions: &[BakedRegion]) -> Result<(), BakeError> {
        let wanted = normal(regions)?;
        self.change(|regions| *regions = wanted);
        Ok(())
    }

    pub(super) fn add(&self, region: BakedRegion) -> Result<(), BakeError> {
        let (start, end) = region.pages()?;
        self.change(|regions| {
            regions.push((start, end));
            merge(regions);
        });
        Ok(())
    }

    pub(super) fn remove(&self, region: BakedRegion) -> Result<(), BakeError> {
        let (start, end) = region.pages()?;
        self.change(|regions| {
            let parts = |&(from, to): &(u64, u64)| [(from, to.min(start)), (from.max(end), to)];
            *regions = regions.iter().flat_map(parts).filter(|(from, to)| from < to).collect();
        });
        Ok(())
    }

    pub(super) fn set_cpu_share(&self, share: f64) -> Result<(), BakeError> {
        check_share(share)?;
        self.cpu_share.store(share.to_bits(), Ordering::Relaxed);
        Ok(())
    }

    /// The share of a CPU that may be used.
    pub(super) fn cpu_share(&self) -> f64 {
        f64::from_bits(self.cpu_share.load(Ordering::Relaxed))
    }

    pub(super) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // Taking the lock once, so that the helper is either before its look at `stop` or waiting already.
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(super) fn stats(&self) -> BakeStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        BakeStats {
            rounds: read(&counters.rounds),
            touches: read(&counters.touches),
            busy_nanos: read(&counters.busy_nanos),
            cpu_nanos: read(&counters.cpu_nanos),
            elapsed_nanos: self.started.elapsed().as_nanos() as u64,
            failed_calls: read(&self.failed_calls),
            last_errno: counters.errno.load(Ordering::Relaxed),
            cpu: self.bound_to.load(Ordering::Relaxed),
        }
    }

    /// A call of the kernel failed.
    pub(super) fn failed(&self, errno: i32) {
        self.failed_calls.fetch_add(1, Ordering::Relaxed);
        self.counters.errno.store(errno, Ordering::Relaxed);
    }

    pub(super) fn state(&self) -> HelperState {
        self.counters.state()
    }

    pub(super) fn status(&self) -> HelperStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let nanos = |picos: u64| (picos > 0).then_some(picos as f64 / 1e3);
        let counters = &self.counters;
        HelperStatus {
            bake: self.bake.clone(),
            backend: counters.backend(self.settings.backend).to_string(),
            state: counters.state().name().to_string_lossy().into_owned(),
            pause_nanos: read(&counters.pause_nanos),
            after_pause_nanos: nanos(read(&counters.after_pause_picos)),
            right_after_nanos: nanos(read(&counters.right_after_picos)),
        }
    }

    /// A helper that panicked leaves whole lists behind: each change is one assignment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts how much there is to bake.
fn count(counters: &HelperCounters, regions: &[(u64, u64)]) {
    counters.set_small_pages(regions.len() as u64, regions.iter().map(|(start, end)| end - start).sum());
}

/// Regions as the helper goes through them.
fn normal(regions: &[BakedRegion]) -> Result<Vec<(u64, u64)>, BakeError> {
    let mut pages = regions.iter().map(BakedRegion::pages).collect::<Result<Vec<_>, _>>()?;
    merge(&mut pages);
    Ok(pages)
}

/// Sorts, and makes one of those that overlap or touch.
fn merge(regions: &mut Vec<(u64, u64)>) {
    regions.sort_unstable();
    regions.dedup_by(|next, before| {
        let joined = next.0 <= before.1;
        if joined {
            before.1 = before.1.max(next.1);
        }
        joined
    });
}
