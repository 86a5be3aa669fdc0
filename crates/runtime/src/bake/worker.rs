//! The helper thread: rounds through the regions in chunks, paced, stopped at once.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use super::kernel::{mincore, Scanner, CHUNK_BYTES, LET_IN};
use super::module::Module;
use super::settings::check_share;
use super::{place, touch, Backend, BakeError, Placement, Region, Settings, Stats, Target, PAGE_BYTES};

/// Touches of a chunk: some 100 µs if each goes to memory for its entry and for its data. A region is taken out between two chunks.
const CHUNK_TOUCHES: u64 = 512;
/// Pauses that pacing owes are made when there are so many: a shorter sleep takes longer than asked for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Stack of the helper: it needs a few KiB.
const STACK_BYTES: usize = 128 << 10;

/// What of the kernel has to be opened to be asked.
#[derive(Debug)]
enum Kernel {
    Scan(Scanner),
    Module(Module),
}

/// What the helper and those who steer it share.
#[derive(Debug)]
pub(crate) struct Shared {
    settings: Settings,
    kernel: Option<Kernel>,
    /// Where the helper may run; anywhere if none is named.
    cpus: Vec<u32>,
    /// Bits of the share of a CPU that may be used.
    cpu_share: AtomicU64,
    /// Sorted, disjoint, in whole pages: first byte and the byte after the last. Locked during each chunk of touches.
    regions: Mutex<Vec<(u64, u64)>>,
    /// Told of a stop, and of regions where there were none.
    changed: Condvar,
    stop: AtomicBool,
    /// Whoever wants to change the regions goes first.
    waiting: AtomicU64,
    started: Instant,
    rounds: AtomicU64,
    touches: AtomicU64,
    busy_nanos: AtomicU64,
    cpu_nanos: AtomicU64,
    failed_calls: AtomicU64,
    last_errno: AtomicI32,
    bound_to: AtomicI32,
}

impl Shared {
    /// Everything that can be wrong is found here, in the caller's thread.
    pub(crate) fn new(target: Target, settings: &Settings, regions: &[Region]) -> Result<Self, BakeError> {
        settings.check()?;
        if target != Target::Own && !settings.backend.reaches_others() {
            let text = format!(
                "{}: reaches only the program's own memory; scan and module reach other processes",
                settings.backend
            );
            return Err(BakeError::Setting(text));
        }
        let kernel = match settings.backend {
            Backend::Scan => Some(Kernel::Scan(Scanner::open(target)?)),
            Backend::Module => Some(Kernel::Module(Module::open(target)?)),
            _ => None,
        };
        Ok(Self {
            settings: settings.clone(),
            kernel,
            cpus: match (target, settings.placement) {
                (Target::Process(pid), Placement::Auto) => place::near(pid),
                _ => place::choose(settings.placement)?.into_iter().collect(),
            },
            cpu_share: AtomicU64::new(settings.cpu_share.to_bits()),
            regions: Mutex::new(normal(regions)?),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            waiting: AtomicU64::new(0),
            started: Instant::now(),
            rounds: AtomicU64::new(0),
            touches: AtomicU64::new(0),
            busy_nanos: AtomicU64::new(0),
            cpu_nanos: AtomicU64::new(0),
            failed_calls: AtomicU64::new(0),
            last_errno: AtomicI32::new(0),
            bound_to: AtomicI32::new(-1),
        })
    }

    /// The regions, before the helper's next chunk.
    fn change(&self, change: impl FnOnce(&mut Vec<(u64, u64)>)) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut regions = self.lock();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        change(&mut regions);
        drop(regions);
        self.changed.notify_all();
    }

    pub(crate) fn set_regions(&self, regions: &[Region]) -> Result<(), BakeError> {
        let wanted = normal(regions)?;
        self.change(|regions| *regions = wanted);
        Ok(())
    }

    pub(crate) fn add(&self, region: Region) -> Result<(), BakeError> {
        let (start, end) = region.pages()?;
        self.change(|regions| {
            regions.push((start, end));
            merge(regions);
        });
        Ok(())
    }

    pub(crate) fn remove(&self, region: Region) -> Result<(), BakeError> {
        let (start, end) = region.pages()?;
        self.change(|regions| {
            let parts = |&(from, to): &(u64, u64)| [(from, to.min(start)), (from.max(end), to)];
            *regions = regions.iter().flat_map(parts).filter(|(from, to)| from < to).collect();
        });
        Ok(())
    }

    pub(crate) fn set_cpu_share(&self, share: f64) -> Result<(), BakeError> {
        check_share(share)?;
        self.cpu_share.store(share.to_bits(), Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // Taking the lock once, so that the helper is either before its look at `stop` or waiting already.
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            rounds: read(&self.rounds),
            touches: read(&self.touches),
            busy_nanos: read(&self.busy_nanos),
            cpu_nanos: read(&self.cpu_nanos),
            elapsed_nanos: self.started.elapsed().as_nanos() as u64,
            failed_calls: read(&self.failed_calls),
            last_errno: self.last_errno.load(Ordering::Relaxed),
            cpu: self.bound_to.load(Ordering::Relaxed),
        }
    }

    /// A helper that panicked leaves whole lists behind: each change is one assignment.
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Regions as the helper goes through them.
fn normal(regions: &[Region]) -> Result<Vec<(u64, u64)>, BakeError> {
    let mut pages = regions.iter().map(Region::pages).collect::<Result<Vec<_>, _>>()?;
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

/// Starts the helper, all signals blocked: they are the program's.
pub(crate) fn spawn(shared: Arc<Shared>, name: String) -> Result<JoinHandle<()>, BakeError> {
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

/// The helper's life.
fn run(shared: &Shared) {
    shared.bound_to.store(place::bind(&shared.cpus), Ordering::Relaxed);
    let mut hand = Hand { shared, at: 0, owed: Duration::ZERO, resident: Vec::new() };
    while hand.round() {}
}

/// The helper's place in its round.
struct Hand<'a> {
    shared: &'a Shared,
    /// Where the next chunk begins, or the first region after it.
    at: u64,
    /// Pause that pacing owes.
    owed: Duration,
    /// What `mincore` fills.
    resident: Vec<u8>,
}

impl Hand<'_> {
    /// One round; false = it is to stop.
    fn round(&mut self) -> bool {
        let shared = self.shared;
        self.at = 0;
        loop {
            while shared.waiting.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
            let regions = shared.lock();
            if shared.stop.load(Ordering::SeqCst) {
                return false;
            }
            if regions.is_empty() {
                // Nothing to do until somebody says so.
                drop(shared.changed.wait(regions).unwrap_or_else(PoisonError::into_inner));
                return true;
            }
            let Some(&(start, end)) = regions.iter().find(|region| region.1 > self.at) else { break };
            let begin = Instant::now();
            let touches = self.chunk(start.max(self.at), end);
            let busy = begin.elapsed();
            drop(regions);
            if matches!(shared.settings.backend, Backend::Scan | Backend::Mincore) {
                std::thread::sleep(LET_IN);
            }
            shared.touches.fetch_add(touches, Ordering::Relaxed);
            shared.busy_nanos.fetch_add(busy.as_nanos() as u64, Ordering::Relaxed);
            self.owed += busy.mul_f64(1.0 / f64::from_bits(shared.cpu_share.load(Ordering::Relaxed)) - 1.0);
            if self.owed >= SHORTEST_PAUSE {
                let owed = std::mem::take(&mut self.owed);
                if !self.pause(owed) {
                    return false;
                }
            }
        }
        shared.rounds.fetch_add(1, Ordering::Relaxed);
        let used = clock_gettime(ClockId::ThreadCPUTime);
        shared.cpu_nanos.store(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64, Ordering::Relaxed);
        self.pause(shared.settings.sleep)
    }

    /// Touches from here on, at most to the region's end; moves on. The regions are locked.
    fn chunk(&mut self, from: u64, end: u64) -> u64 {
        let settings = &self.shared.settings;
        let stride = u64::from(settings.stride_pages) * PAGE_BYTES;
        match settings.backend {
            Backend::Load | Backend::Prefetch(_) => {
                let touches = (end - from).div_ceil(stride).min(CHUNK_TOUCHES);
                // SAFETY: loads only touch regions that the caller keeps mapped until they are taken out, which waits for the lock.
                unsafe { touch::sweep(settings.backend, from, stride, touches, settings.nops) };
                // Not beyond the region: the next one may begin within the stride.
                self.at = (from + touches * stride).min(end);
                touches
            }
            Backend::Module | Backend::Scan | Backend::Mincore => {
                let to = end.min(from + CHUNK_BYTES);
                let pages = (to - from) / PAGE_BYTES;
                let done = match &self.shared.kernel {
                    Some(Kernel::Module(module)) => module
                        .walk(from, end, settings.stride_pages, settings.nops)
                        .map(|walk| (walk.next.clamp(from + PAGE_BYTES, end), walk.touched)),
                    Some(Kernel::Scan(scanner)) => scanner.scan(from, to).map(|()| (to, pages)),
                    None => mincore(from, to, &mut self.resident).map(|()| (to, pages)),
                };
                let (next, touches) = done.unwrap_or_else(|errno| {
                    self.shared.failed_calls.fetch_add(1, Ordering::Relaxed);
                    self.shared.last_errno.store(errno, Ordering::Relaxed);
                    if settings.backend == Backend::Module {
                        std::thread::sleep(LET_IN); // a process that has ended would be asked without a pause
                    }
                    // mincore fails at a hole, having read what is before it.
                    (to, if self.shared.kernel.is_none() { pages } else { 0 })
                });
                self.at = next;
                touches
            }
        }
    }

    /// Waits; false = it is to stop.
    fn pause(&self, time: Duration) -> bool {
        if !time.is_zero() {
            let stopped = || self.shared.stop.load(Ordering::SeqCst);
            let end = Instant::now() + time;
            let mut regions = self.shared.lock();
            while !stopped() {
                let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                    break;
                };
                let waited = self.shared.changed.wait_timeout(regions, left);
                regions = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        !self.shared.stop.load(Ordering::SeqCst)
    }
}
