//! The helper thread of a [`Baker`](super::Baker): the loop of [`super::helper_loop`], on the regions that the program
//! names.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::address_range::AddressRange;
use super::auto::{Auto, ClockReading};
use super::clock::{now_nanos, others_nanos, thread_nanos};
use super::control::BakerControl;
use super::counters::HelperState;
use super::cpu_demand::{runnable, CpuDemand};
use super::error::BakeError;
use super::helper_loop::{HelperCalls, HelperHost, HelperLoop, RoundStep};
use super::kernel::{self, mincore};
use super::kernel_tables::KernelTables;
use super::module::Walk;
use super::place;
use super::pm_scan::LET_IN;
use super::region::Target;
use super::region_pages::RegionPages;
use super::settings::BakeBackend;
use super::small_pages::{LookSchedule, SmallPages};
use super::status_file::HelperStatusFile;
use super::ticks::ticks;

/// A helper that never bakes publishes so often that it does not.
const NEVER_BAKES_NANOS: u64 = 60_000_000_000;
/// Stack of the helper: it needs a few KiB.
const STACK_BYTES: usize = 128 << 10;

/// Starts the helper, all signals blocked: they are the program's.
pub(crate) fn spawn(shared: Arc<BakerControl>, name: String) -> Result<JoinHandle<()>, BakeError> {
    // SAFETY: sets of signals, filled in by the calls; the caller's mask is put back right after.
    let spawned = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let builder = std::thread::Builder::new().name(name).stack_size(STACK_BYTES);
        let spawned = builder.spawn(move || run(&shared));
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned
    };
    spawned.map_err(|e| BakeError::Unsupported(format!("no helper thread can be started: {e}")))
}

/// Threads that want a CPU now, but for the caller.
fn runnable_now() -> Option<u32> {
    runnable(&lookaside_host::load_average().ok()?)
}

/// The helper's life.
fn run(shared: &BakerControl) {
    shared.bound_to.store(place::bind(&shared.cpus), Ordering::Relaxed);
    let (mut helper, never) = begin(shared);
    while life(shared, &mut helper, never).is_ok() {}
}

/// A turn: of the loop, or a wait where there is nothing to bake.
fn life(
    shared: &BakerControl,
    helper: &mut HelperLoop<'_, ThreadHost<'_>>,
    never: Option<HelperState>,
) -> Result<(), Stopped> {
    if let Some(state) = never {
        helper.enter(state);
        return helper.host.sleep(NEVER_BAKES_NANOS);
    }
    if shared.lock().is_empty() {
        helper.enter(HelperState::Looking);
        return helper.host.wait_for_regions();
    }
    helper.turn()
}

/// The loop before its first turn, and why it never bakes, if so.
fn begin(shared: &BakerControl) -> (HelperLoop<'_, ThreadHost<'_>>, Option<HelperState>) {
    let settings = &shared.settings;
    // Before it opens any file: the helper's are in a table of their own.
    let status_file = (shared.target == Target::Own).then(HelperStatusFile::open).flatten();
    let open = |backend| KernelTables::open(backend, shared.target);
    let module = settings.auto.then(|| open(BakeBackend::Module).ok().flatten()).flatten();
    let (backend, tables) = match module {
        Some(module) => (BakeBackend::Module, Ok(Some(module))),
        None => (settings.backend, open(settings.backend)),
    };
    // It could be opened when the baker was made; a process may have ended since.
    let never = match &tables {
        Err(_) => {
            shared.failed(kernel::errno());
            Some(HelperState::Refused)
        }
        // It would take the program's only one away.
        Ok(_) => (settings.auto && shared.cpu_counts.allowed < 2).then_some(HelperState::NoCpu),
    };
    let auto = settings.auto.then(|| {
        let now = ClockReading { nanos: now_nanos(), ticks: ticks() };
        Auto::new(now, place::last_cache_bytes().unwrap_or(u64::MAX), shared.cpu_counts)
    });
    let host = ThreadHost {
        shared,
        calls: ThreadCalls { tables: tables.unwrap_or(None), resident: Vec::new() },
        status_file,
        region_pages: settings.auto.then(RegionPages::new),
        changes: 0,
    };
    let looks = settings.auto.then(|| LookSchedule::new(0));
    (HelperLoop::new(host, settings, &shared.counters, backend, auto, looks), never)
}

/// The helper is to end.
#[derive(Debug)]
struct Stopped;

/// The system calls of the helper thread, by the C library.
#[derive(Debug)]
struct ThreadCalls {
    tables: Option<KernelTables>,
    /// What `mincore` fills.
    resident: Vec<u8>,
}

impl HelperCalls for ThreadCalls {
    fn now_nanos(&self) -> u64 {
        now_nanos()
    }

    fn cpu_nanos(&self) -> u64 {
        thread_nanos()
    }

    fn scan(&mut self, range: AddressRange) -> Result<(), i32> {
        match &self.tables {
            Some(KernelTables::Scan(scanner)) => scanner.scan(range.start, range.end),
            _ => Err(libc::EBADF),
        }
    }

    fn mincore(&mut self, range: AddressRange) -> Result<(), i32> {
        mincore(range.start, range.end, &mut self.resident)
    }

    fn walk(&mut self, range: AddressRange, stride_pages: u32, nops: u32) -> Result<Walk, i32> {
        match &self.tables {
            Some(KernelTables::Module(module)) => module.walk(range.start, range.end, stride_pages, nops),
            _ => Err(libc::EBADF),
        }
    }

    fn let_others_in(&mut self) {
        std::thread::sleep(LET_IN);
    }

    fn yield_cpu(&mut self) {
        std::thread::yield_now();
    }
}

/// The regions that the program names, and whoever steers the helper.
#[derive(Debug)]
struct ThreadHost<'a> {
    shared: &'a BakerControl,
    calls: ThreadCalls,
    status_file: Option<HelperStatusFile>,
    /// What `auto` bakes of the regions.
    region_pages: Option<RegionPages>,
    /// Changes of the regions that it knows of.
    changes: u64,
}

impl ThreadHost<'_> {
    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::SeqCst)
    }

    fn go_on(&self) -> Result<(), Stopped> {
        if self.stopped() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// Sleeps while there is nothing to bake.
    fn wait_for_regions(&self) -> Result<(), Stopped> {
        let regions = self.shared.lock();
        if regions.is_empty() && !self.stopped() {
            drop(self.shared.changed.wait(regions).unwrap_or_else(PoisonError::into_inner));
        }
        self.go_on()
    }
}

// SAFETY: the caller of the baker keeps regions mapped until they are taken out, which waits for the lock that
// `with_range` holds.
unsafe impl HelperHost for ThreadHost<'_> {
    type Calls = ThreadCalls;
    type Stop = Stopped;

    fn calls(&mut self) -> &mut ThreadCalls {
        &mut self.calls
    }

    fn cpu_demand(&mut self) -> CpuDemand {
        CpuDemand { program_nanos: others_nanos(), runnable: runnable_now() }
    }

    fn cpu_share(&self) -> f64 {
        self.shared.cpu_share()
    }

    fn sleep(&mut self, nanos: u64) -> Result<(), Stopped> {
        let end = Instant::now() + Duration::from_nanos(nanos);
        let mut regions = self.shared.lock();
        while !self.stopped() {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
            let waited = self.shared.changed.wait_timeout(regions, left);
            regions = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.go_on()
    }

    fn memory_changed(&mut self) -> bool {
        let changes = self.shared.changes.load(Ordering::SeqCst);
        std::mem::replace(&mut self.changes, changes) != changes
    }

    fn look(&mut self) -> Result<SmallPages, Stopped> {
        let regions = self.shared.lock().clone();
        let stopped = || self.shared.stop.load(Ordering::SeqCst);
        let found = self.region_pages.as_mut().map(|pages| pages.look(&regions, stopped));
        found.unwrap_or_default().ok_or(Stopped)
    }

    fn with_range<T>(
        &mut self,
        from: u64,
        touch: impl FnOnce(&mut ThreadCalls, AddressRange) -> T,
    ) -> Result<RoundStep<T>, Stopped> {
        while self.shared.waiting.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        let regions = self.shared.lock();
        self.go_on()?;
        if regions.is_empty() {
            return Ok(RoundStep::NoMemory);
        }
        let mut ahead = regions.iter().filter(|region| region.1 > from).map(|&(start, end)| (start.max(from), end));
        let part = ahead.find_map(|(start, end)| match &self.region_pages {
            Some(pages) => pages.part(start, end),
            None => Some((start, end)),
        });
        Ok(match part {
            Some((start, end)) => RoundStep::Touched(touch(&mut self.calls, AddressRange { start, end })),
            None => RoundStep::Complete,
        })
    }

    fn call_failed(&mut self, errno: i32) {
        self.shared.failed(errno);
    }

    fn publish(&mut self, now_nanos: u64, at_once: bool) {
        let BakerControl { bake, settings, counters, .. } = self.shared;
        let written = self
            .status_file
            .as_mut()
            .is_none_or(|file| file.write(at_once, bake, settings.backend, counters, now_nanos));
        if !written {
            self.status_file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::BakedRegion;
    use super::*;

    fn control(settings: &str, regions: &[(u64, u64)]) -> BakerControl {
        let region = |&(start, end): &(u64, u64)| BakedRegion { start, len: end - start };
        let regions: Vec<BakedRegion> = regions.iter().map(region).collect();
        BakerControl::new(Target::Own, &settings.parse().expect("settings"), &regions).expect("a control")
    }

    /// A host in this thread, which calls nothing.
    fn host(shared: &BakerControl) -> ThreadHost<'_> {
        let calls = ThreadCalls { tables: None, resident: Vec::new() };
        ThreadHost { shared, calls, status_file: None, region_pages: None, changes: 0 }
    }

    /// What is touched from an address on; `None`: nothing, the round is complete.
    fn touched(host: &mut ThreadHost<'_>, from: u64) -> Option<(u64, u64)> {
        match host.with_range(from, |_, range| (range.start, range.end)) {
            Ok(RoundStep::Touched(range)) => Some(range),
            Ok(RoundStep::Complete) => None,
            other => panic!("{other:?}"),
        }
    }

    const REGIONS: [(u64, u64); 2] = [(0x10_0000, 0x20_0000), (0x30_0000, 0x40_0000)];

    #[test]
    fn a_round_goes_through_the_regions_from_where_it_is() {
        let shared = control("prefetch", &REGIONS);
        let mut host = host(&shared);
        let from = [0, 0x10_0000, 0x18_0000, 0x1f_ffff, 0x20_0000, 0x3f_f000, 0x40_0000, u64::MAX];
        let expected = [
            Some(REGIONS[0]),
            Some(REGIONS[0]),
            Some((0x18_0000, 0x20_0000)),
            Some((0x1f_ffff, 0x20_0000)),
            Some(REGIONS[1]),
            Some((0x3f_f000, 0x40_0000)),
            None,
            None,
        ];
        assert_eq!(from.map(|from| touched(&mut host, from)), expected);
        shared.set_regions(&[]).expect("none");
        let none = host.with_range(0, |_, range| range.start);
        assert!(matches!(none, Ok(RoundStep::NoMemory)), "{none:?}");
    }

    #[test]
    fn a_change_is_told_once() {
        let shared = control("prefetch", &REGIONS);
        let mut host = host(&shared);
        assert!(!host.memory_changed());
        shared.remove(BakedRegion { start: REGIONS[0].0, len: 4096 }).expect("a region");
        shared.add(BakedRegion { start: 1 << 30, len: 4096 }).expect("a region");
        assert_eq!([host.memory_changed(), host.memory_changed()], [true, false]);
        assert_eq!(touched(&mut host, 0), Some((REGIONS[0].0 + 4096, REGIONS[0].1)));
    }

    #[test]
    fn who_is_to_stop_touches_and_waits_no_more() {
        let shared = control("prefetch", &REGIONS);
        let mut host = host(&shared);
        let began = Instant::now();
        assert!(host.sleep(2_000_000).is_ok() && began.elapsed() >= Duration::from_millis(2));
        assert!(host.sleep(0).is_ok() && host.wait_for_regions().is_ok(), "there are some");
        shared.ask_to_stop();
        assert!(host.with_range(0, |_, _| panic!("it is to stop")).is_err());
        // A minute would be noticed.
        assert!(host.sleep(NEVER_BAKES_NANOS).is_err() && host.wait_for_regions().is_err());
        shared.set_regions(&[]).expect("none");
        assert!(host.wait_for_regions().is_err());
    }

    #[test]
    fn who_waits_for_regions_is_woken_by_them() {
        let shared = control("prefetch", &[]);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| host(&shared).wait_for_regions().is_ok());
            // Whether it waits already or is about to.
            shared.add(BakedRegion { start: REGIONS[0].0, len: 4096 }).expect("a region");
            assert!(waits.join().expect("it ends"));
        });
    }

    #[test]
    fn calls_that_were_not_opened_are_refused_and_what_failed_is_counted() {
        let shared = control("prefetch", &REGIONS);
        let mut host = host(&shared);
        let range = AddressRange { start: REGIONS[0].0, end: REGIONS[0].1 };
        assert_eq!(host.calls().scan(range), Err(libc::EBADF));
        assert_eq!(host.calls().walk(range, 1, 0).map(|_| ()), Err(libc::EBADF));
        host.call_failed(libc::EBADF);
        assert_eq!((shared.stats().failed_calls, shared.stats().last_errno), (1, libc::EBADF));
        let data = vec![1u8; 1 << 20];
        let start = (data.as_ptr() as u64).next_multiple_of(4096);
        assert_eq!(host.calls().mincore(AddressRange { start, end: start + (1 << 19) }), Ok(()));
        // A page that the kernel lets nobody have (vm.mmap_min_addr).
        assert_eq!(host.calls().mincore(AddressRange { start: 4096, end: 8192 }), Err(libc::ENOMEM));
        assert_eq!(host.calls.resident.len(), 128);
        let began = Instant::now();
        host.calls().let_others_in();
        assert!(began.elapsed() >= LET_IN);
        shared.set_cpu_share(0.25).expect("a share");
        assert_eq!(host.cpu_share(), 0.25);
        let (now, used) = (now_nanos(), thread_nanos());
        let at = (HelperCalls::now_nanos(host.calls()), host.calls().cpu_nanos());
        assert!((now..=now_nanos()).contains(&at.0) && (used..=thread_nanos()).contains(&at.1), "{at:?}");
    }

    #[test]
    fn what_the_program_wants_of_the_cpus_is_what_the_system_says() {
        let shared = control("prefetch", &[]);
        let mut host = host(&shared);
        let before = others_nanos();
        let demand = host.cpu_demand();
        assert!(demand.program_nanos.abs_diff(before) <= others_nanos().abs_diff(before) + 1_000_000, "{demand:?}");
        assert!(demand.runnable.is_some(), "every Linux has a load average");
    }

    /// Three that run all the time, and this thread, which asks.
    #[test]
    fn threads_that_want_a_cpu_are_those_of_the_systems_line() {
        let ended = std::sync::atomic::AtomicBool::new(false);
        let told = || runnable(&lookaside_host::load_average().expect("every Linux has it"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            // Others come and go between two looks.
            let is_told = (0..10_000).any(|_| {
                let (before, now, after) = (told(), runnable_now(), told());
                before == now && now == after
            });
            ended.store(true, Ordering::Relaxed);
            assert!(is_told, "never the same three times: {:?}", runnable_now());
        });
    }

    #[test]
    fn whoever_changes_the_regions_goes_first() {
        let shared = control("prefetch", &REGIONS);
        let touches = std::sync::atomic::AtomicBool::new(false);
        shared.waiting.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                touched(&mut host(&shared), 0);
                touches.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(30));
            assert!(!touches.load(Ordering::SeqCst), "it did not wait");
            shared.waiting.store(0, Ordering::SeqCst);
        });
        assert!(touches.load(Ordering::SeqCst));
    }

    /// By this thread itself: what the loop is made of before its first turn.
    #[test]
    fn auto_never_bakes_where_the_program_has_one_cpu() {
        let never = |settings: &str, allowed| {
            let mut shared = control(settings, &[]);
            shared.cpu_counts.allowed = allowed;
            // In a thread of its own: it leaves the program's files.
            std::thread::scope(|scope| scope.spawn(|| begin(&shared).1).join().expect("it ends"))
        };
        assert_eq!([1, 2, 3].map(|allowed| never("auto", allowed)), [Some(HelperState::NoCpu), None, None]);
        assert_eq!([1, 2].map(|allowed| never("prefetch", allowed)), [None; 2]);
    }
}
