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
