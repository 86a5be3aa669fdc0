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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::region::PAGE_BYTES;
    use super::*;

    fn control(settings: &str) -> BakerControl {
        BakerControl::new(Target::Own, &settings.parse().expect("settings"), &[]).expect("a control")
    }

    fn pages_of(region: &BakedRegion) -> std::ops::Range<u64> {
        region.start / PAGE_BYTES..(region.start + region.len).div_ceil(PAGE_BYTES)
    }

    #[derive(Clone, Debug)]
    enum Change {
        Set(Vec<BakedRegion>),
        Add(BakedRegion),
        Remove(BakedRegion),
    }

    fn change() -> impl Strategy<Value = Change> {
        let region = || (0..64 * PAGE_BYTES, 1..9 * PAGE_BYTES).prop_map(|(start, len)| BakedRegion { start, len });
        prop_oneof![
            1 => prop::collection::vec(region(), 0..4).prop_map(Change::Set),
            4 => region().prop_map(Change::Add),
            4 => region().prop_map(Change::Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Page by page: those that were named and not taken out since, in as few regions as they make.
        #[test]
        fn regions_are_the_pages_that_were_named(changes in prop::collection::vec(change(), 1..30)) {
            let (control, mut pages, mut most) = (control("prefetch"), BTreeSet::new(), 0);
            for (at, change) in changes.iter().enumerate() {
                match change {
                    Change::Set(regions) => {
                        control.set_regions(regions).expect("regions");
                        pages = regions.iter().flat_map(pages_of).collect();
                    }
                    Change::Add(region) => {
                        control.add(*region).expect("a region");
                        pages.extend(pages_of(region));
                    }
                    Change::Remove(region) => {
                        control.remove(*region).expect("a region");
                        pages.retain(|page| !pages_of(region).contains(page));
                    }
                }
                let regions = control.lock().clone();
                let named = regions.iter().flat_map(|(from, to)| from / PAGE_BYTES..to / PAGE_BYTES);
                prop_assert_eq!(named.collect::<Vec<u64>>(), pages.iter().copied().collect::<Vec<u64>>());
                prop_assert!(regions.iter().all(|(from, to)| from < to), "{:?}", regions);
                prop_assert!(regions.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", regions);
                let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let bytes = pages.len() as u64 * PAGE_BYTES;
                most = bytes.max(most);
                let HelperCounters { ranges, small_bytes, most_small_bytes, .. } = &control.counters;
                let counted = [ranges, small_bytes, most_small_bytes].map(read);
                prop_assert_eq!(counted, [regions.len() as u64, bytes, most]);
                prop_assert_eq!((read(&control.changes), read(&control.waiting)), (at as u64 + 1, 0));
            }
        }
    }

    #[test]
    fn what_cannot_be_changes_nothing() {
        let control = control("prefetch,share=0.25");
        control.add(BakedRegion { start: 1 << 20, len: 1 }).expect("a region");
        let nowhere = BakedRegion { start: u64::MAX, len: 1 };
        let refused = [
            control.set_regions(&[BakedRegion { start: 0, len: 1 }, nowhere]),
            control.add(nowhere),
            control.remove(BakedRegion { start: 1 << 20, len: 0 }),
        ];
        assert!(refused.iter().all(Result::is_err), "{refused:?}");
        assert_eq!(*control.lock(), [(1 << 20, (1 << 20) + PAGE_BYTES)]);
        for share in [0.0, -0.5, 1.01, f64::NAN] {
            let error = control.set_cpu_share(share).expect_err("no share").to_string();
            assert!(error.contains("above 0 and at most 1"), "{error}");
        }
        assert_eq!(control.cpu_share(), 0.25);
        control.set_cpu_share(1.0).expect("a whole one");
        assert_eq!(control.cpu_share(), 1.0);
    }

    #[test]
    fn what_was_counted_is_told() {
        let control = control("prefetch:t1");
        let stats = control.stats();
        assert_eq!(BakeStats { elapsed_nanos: 0, ..stats }, BakeStats { cpu: -1, ..BakeStats::default() });
        let sensed = |after: u64, right_after: u64| {
            control.counters.after_pause_picos.store(after, Ordering::Relaxed);
            control.counters.right_after_picos.store(right_after, Ordering::Relaxed);
            let status = control.status();
            (status.after_pause_nanos, status.right_after_nanos)
        };
        assert_eq!(sensed(0, 0), (None, None), "nothing yet");
        assert_eq!(sensed(12_345, 1), (Some(12.345), Some(0.001)));
        control.failed(libc::EAGAIN);
        control.failed(libc::ENOMEM);
        control.counters.set_state(HelperState::Warm);
        let set = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        set(&control.counters.rounds, 1);
        set(&control.counters.touches, 2);
        set(&control.counters.busy_nanos, 3);
        set(&control.counters.cpu_nanos, 4);
        set(&control.counters.pause_nanos, 5);
        control.bound_to.store(6, Ordering::Relaxed);
        let stats = BakeStats { elapsed_nanos: 0, ..control.stats() };
        let expected = BakeStats {
            rounds: 1,
            touches: 2,
            busy_nanos: 3,
            cpu_nanos: 4,
            failed_calls: 2,
            last_errno: libc::ENOMEM,
            cpu: 6,
            ..BakeStats::default()
        };
        assert_eq!((stats, control.state()), (expected, HelperState::Warm));
        let status = control.status();
        assert_eq!((status.bake.as_str(), status.backend.as_str()), ("prefetch:t1", "prefetch:t1"));
        assert_eq!((status.state.as_str(), status.pause_nanos), ("warm", 5));
        control.counters.by_module.store(true, Ordering::Relaxed);
        assert_eq!(control.status().backend, "module");
        assert!(!control.stop.load(Ordering::SeqCst));
        control.ask_to_stop();
        assert!(control.stop.load(Ordering::SeqCst));
    }

    #[test]
    fn a_place_is_chosen_and_other_processes_are_reached_by_the_kernel_alone() {
        let refused = |target, settings: &str| {
            BakerControl::new(target, &settings.parse().expect(settings), &[])
                .map(|_| ())
                .expect_err(settings)
                .to_string()
        };
        assert!(refused(Target::Process(std::process::id()), "prefetch").contains("scan and module reach other"));
        assert!(refused(Target::Own, "prefetch,cpu=99999").contains("cpu=99999"));
        let cpu = lookaside_host::allowed_cpus().expect("CPUs")[0] as u32;
        assert_eq!(control(&format!("prefetch,cpu={cpu}")).cpus, [cpu]);
    }
}
