//! The helper thread: rounds through the regions in chunks, paced, stopped at once.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::auto::{Auto, Moment, Took, Turn};
use super::clock::{now_nanos, others_nanos, thread_nanos};
use super::counters::{Counters, State};
use super::kernel::{self, mincore, Scanner, CHUNK_BYTES, LET_IN};
use super::module::Module;
use super::own::Own;
use super::pace::BATCH_TOUCHES;
use super::raw::{ticks, TELL_NANOS};
use super::settings::check_share;
use super::tell::Teller;
use super::{place, touch, Backend, BakeError, Placement, Region, Settings, Stats, Target, Within, PAGE_BYTES};

/// Touches of a chunk: some 100 µs if each goes to memory for its entry and for its data. A region is taken out between two chunks.
const CHUNK_TOUCHES: u64 = 512;
/// Pauses that pacing owes are made when there are so many: a shorter sleep takes longer than asked for.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Longest single rest of `auto`, so that what is told goes on.
const NAP: Duration = Duration::from_nanos(TELL_NANOS);
/// One that never bakes sleeps so long until it tells again.
const A_WHILE: Duration = Duration::from_secs(60);
/// Stack of the helper: it needs a few KiB.
const STACK_BYTES: usize = 128 << 10;

/// What of the kernel has to be opened to be asked.
#[derive(Debug)]
enum Kernel {
    Scan(Scanner),
    Module(Module),
}

impl Kernel {
    /// What a backend needs of it.
    fn open(backend: Backend, target: Target) -> Result<Option<Self>, BakeError> {
        Ok(match backend {
            Backend::Scan => Some(Self::Scan(Scanner::open(target)?)),
            Backend::Module => Some(Self::Module(Module::open(target)?)),
            _ => None,
        })
    }
}

/// What the helper and those who steer it share.
#[derive(Debug)]
pub(crate) struct Shared {
    target: Target,
    settings: Settings,
    /// The settings as text.
    bake: String,
    /// `auto` has no CPU for the helper: it would take the program's only one away.
    no_cpu: bool,
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
    /// Changes of the regions.
    changes: AtomicU64,
    started: Instant,
    counters: Counters,
    failed_calls: AtomicU64,
    bound_to: AtomicI32,
}

impl Shared {
    /// Everything that can be wrong is found here, in the caller's thread.
    pub(crate) fn new(target: Target, settings: &Settings, regions: &[Region]) -> Result<Self, BakeError> {
        settings.check()?;
        if target != Target::Own {
            settings.check_reach()?;
        }
        // The helper opens its own: its files are not the program's.
        drop(Kernel::open(settings.backend, target)?);
        let regions = normal(regions)?;
        let counters = Counters::default();
        counters.reset(now_nanos());
        count(&counters, &regions);
        Ok(Self {
            target,
            settings: settings.clone(),
            bake: settings.to_string(),
            no_cpu: settings.auto && place::only_one_cpu(),
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
        let counters = &self.counters;
        Stats {
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
    fn failed(&self, errno: i32) {
        self.failed_calls.fetch_add(1, Ordering::Relaxed);
        self.counters.errno.store(errno, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        self.counters.state()
    }

    pub(crate) fn within(&self) -> Within {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let nanos = |picos: u64| (picos > 0).then_some(picos as f64 / 1e3);
        let counters = &self.counters;
        Within {
            bake: self.bake.clone(),
            backend: counters.backend(self.settings.backend).to_string(),
            state: counters.state().name().to_string_lossy().into_owned(),
            pause_nanos: read(&counters.pause_nanos),
            after_pause_nanos: nanos(read(&counters.after_pause_picos)),
            right_after_nanos: nanos(read(&counters.right_after_picos)),
        }
    }

    /// A helper that panicked leaves whole lists behind: each change is one assignment.
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells how much there is to bake.
fn count(counters: &Counters, regions: &[(u64, u64)]) {
    counters.found(regions.len() as u64, regions.iter().map(|(start, end)| end - start).sum());
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
    let mut hand = Hand::new(shared);
    while hand.turn() {}
}

/// The helper's place in its round.
struct Hand<'a> {
    shared: &'a Shared,
    /// Why it never bakes.
    end: Option<State>,
    /// How it touches: as asked, or as `auto` chose.
    backend: Backend,
    kernel: Option<Kernel>,
    teller: Option<Teller>,
    auto: Option<Auto>,
    /// What `auto` bakes of the regions.
    own: Option<Own>,
    /// Changes of the regions that it knows of.
    changes: u64,
    /// Where the next chunk begins, or the first region after it.
    at: u64,
    /// Pause that pacing owes.
    owed: Duration,
    /// What `mincore` fills.
    resident: Vec<u8>,
}

impl<'a> Hand<'a> {
    fn new(shared: &'a Shared) -> Self {
        let (settings, counters) = (&shared.settings, &shared.counters);
        // Before it opens any file: the helper's are in a table of their own.
        let teller = (shared.target == Target::Own).then(Teller::open).flatten();
        let module = settings.auto.then(|| Kernel::open(Backend::Module, shared.target).ok().flatten()).flatten();
        let (backend, kernel) = match module {
            Some(module) => (Backend::Module, Ok(Some(module))),
            None => (settings.backend, Kernel::open(settings.backend, shared.target)),
        };
        // It could be opened when the baker was made; a process may have ended since.
        let end = match &kernel {
            Err(_) => {
                shared.failed(kernel::errno());
                Some(State::Refused)
            }
            Ok(_) => shared.no_cpu.then_some(State::NoCpu),
        };
        counters.by_module.store(backend == Backend::Module, Ordering::Relaxed);
        let auto = settings.auto.then(|| {
            let now = Moment { nanos: now_nanos(), ticks: ticks() };
            Auto::new(now, place::last_cache_bytes().unwrap_or(u64::MAX))
        });
        Self {
            shared,
            end,
            backend,
            kernel: kernel.unwrap_or(None),
            teller,
            own: auto.is_some().then(Own::new),
            auto,
            changes: 0,
            at: 0,
            owed: Duration::ZERO,
            resident: Vec::new(),
        }
    }

    /// A round, or a rest where `auto` wants one; false = it is to stop.
    fn turn(&mut self) -> bool {
        let shared = self.shared;
        let counters = &shared.counters;
        if let Some(end) = self.end {
            self.enter(end);
            return self.pause(A_WHILE);
        }
        if shared.lock().is_empty() {
            self.enter(State::Looking);
            return self.wait_for_regions();
        }
        let Some(turn) = self.judge() else {
            self.enter(State::Baking);
            counters.pause_nanos.store(shared.settings.sleep.as_nanos() as u64, Ordering::Relaxed);
            return self.round().is_some() && self.pause(shared.settings.sleep);
        };
        self.enter(turn.state());
        if let Turn::Rest(_, until) = turn {
            return self.pause(Duration::from_nanos(until.saturating_sub(now_nanos())).min(NAP));
        }
        let used = thread_nanos();
        let Some(busy) = self.round() else { return false };
        let took = Took { wall_nanos: busy.as_nanos() as u64, cpu_nanos: thread_nanos().saturating_sub(used) };
        let Some(auto) = &mut self.auto else { return false };
        let pause = auto.after_round(Moment { nanos: now_nanos(), ticks: ticks() }, took);
        let (after_pause, right_after) = auto.sensed_picos();
        counters.after_pause_picos.store(after_pause, Ordering::Relaxed);
        counters.right_after_picos.store(right_after, Ordering::Relaxed);
        counters.pause_nanos.store(pause, Ordering::Relaxed);
        self.pause(Duration::from_nanos(pause))
    }
    /// What `auto` has it do now; `None` = it bakes as it was told.
    fn judge(&mut self) -> Option<Turn> {
        let shared = self.shared;
        let (auto, own) = (self.auto.as_mut()?, self.own.as_mut()?);
        let changes = shared.changes.load(Ordering::SeqCst);
        let changed = std::mem::replace(&mut self.changes, changes) != changes;
        if changed || own.is_time(now_nanos()) {
            let regions = shared.lock().clone();
            let as_before = own.look(&regions, &shared.counters, || shared.stop.load(Ordering::SeqCst));
            if as_before != Some(true) {
                auto.forget();
            }
        }
        let (now, small_bytes) = (now_nanos(), own.small_bytes());
        if small_bytes == 0 {
            // Until the next look, which a nap is never longer than.
            return Some(Turn::Rest(State::Looking, u64::MAX));
        }
        Some(auto.turn(now, small_bytes, others_nanos))
    }

    /// What it does from now on; told at once where that is another thing.
    fn enter(&mut self, state: State) {
        let counters = &self.shared.counters;
        let other = counters.state() != state;
        counters.set_state(state);
        counters.cpu_nanos.store(thread_nanos(), Ordering::Relaxed);
        self.tell(other);
    }

    /// Tells if it is time to, or at once.
    fn tell(&mut self, at_once: bool) {
        let shared = self.shared;
        let told = self.teller.as_mut().is_none_or(|teller| {
            teller.tell(at_once, &shared.bake, shared.settings.backend, &shared.counters, now_nanos())
        });
        if !told {
            self.teller = None;
        }
    }

    /// Sleeps while there is nothing to bake; false = it is to stop.
    fn wait_for_regions(&self) -> bool {
        let regions = self.shared.lock();
        if regions.is_empty() && !self.shared.stop.load(Ordering::SeqCst) {
            drop(self.shared.changed.wait(regions).unwrap_or_else(PoisonError::into_inner));
        }
        !self.shared.stop.load(Ordering::SeqCst)
    }

    /// One round; gives the time spent touching, `None` = it is to stop.
    fn round(&mut self) -> Option<Duration> {
        let shared = self.shared;
        let counters = &shared.counters;
        let mut all = Duration::ZERO;
        self.at = 0;
        loop {
            while shared.waiting.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
            let regions = shared.lock();
            if shared.stop.load(Ordering::SeqCst) {
                return None;
            }
            if regions.is_empty() {
                return Some(all);
            }
            let Some(&(start, end)) = regions.iter().find(|region| region.1 > self.at) else { break };
            let from = start.max(self.at);
            let part = self.own.as_ref().map_or(Some((from, end)), |own| own.part(from, end));
            let Some((from, to)) = part else {
                self.at = end;
                continue;
            };
            let begin = Instant::now();
            let touches = self.chunk(from, to);
            let busy = begin.elapsed();
            drop(regions);
            if matches!(self.backend, Backend::Scan | Backend::Mincore) {
                std::thread::sleep(LET_IN);
            }
            all += busy;
            counters.touches.fetch_add(touches, Ordering::Relaxed);
            counters.busy_nanos.fetch_add(busy.as_nanos() as u64, Ordering::Relaxed);
            self.tell(false);
            self.owed += busy.mul_f64(1.0 / f64::from_bits(shared.cpu_share.load(Ordering::Relaxed)) - 1.0);
            if self.owed >= SHORTEST_PAUSE {
                let owed = std::mem::take(&mut self.owed);
                if !self.pause(owed) {
                    return None;
                }
            }
        }
        counters.rounds.fetch_add(1, Ordering::Relaxed);
        counters.cpu_nanos.store(thread_nanos(), Ordering::Relaxed);
        Some(all)
    }

    /// Touches from here on, at most to the region's end; moves on. The regions are locked.
    fn chunk(&mut self, from: u64, end: u64) -> u64 {
        let settings = &self.shared.settings;
        let stride = u64::from(settings.stride_pages) * PAGE_BYTES;
        match self.backend {
            Backend::Load | Backend::Prefetch(_) => {
                let touches = (end - from).div_ceil(stride).min(CHUNK_TOUCHES);
                // `auto` times them in batches.
                let batch = if self.auto.is_some() { BATCH_TOUCHES } else { touches };
                for first in (0..touches).step_by(batch as usize) {
                    let count = batch.min(touches - first);
                    let begin = ticks();
                    // SAFETY: loads only touch regions that the caller keeps mapped until they are taken out, which waits for the lock.
                    unsafe { touch::sweep(self.backend, from + first * stride, stride, count, settings.nops) };
                    if let Some(auto) = self.auto.as_mut().filter(|_| count == BATCH_TOUCHES) {
                        auto.times().add(ticks().saturating_sub(begin));
                    }
                }
                // Not beyond the region: the next one may begin within the stride.
                self.at = (from + touches * stride).min(end);
                touches
            }
            Backend::Module | Backend::Scan | Backend::Mincore => {
                let to = end.min(from + CHUNK_BYTES);
                let pages = (to - from) / PAGE_BYTES;
                let begin = ticks();
                let done = match &self.kernel {
                    Some(Kernel::Module(module)) => module
                        .walk(from, end, settings.stride_pages, settings.nops)
                        .map(|walk| (walk.next.clamp(from + PAGE_BYTES, end), walk.touched)),
                    Some(Kernel::Scan(scanner)) => scanner.scan(from, to).map(|()| (to, pages)),
                    None => mincore(from, to, &mut self.resident).map(|()| (to, pages)),
                };
                let (next, touches) = done.unwrap_or_else(|errno| {
                    self.shared.failed(errno);
                    if self.backend == Backend::Module {
                        std::thread::sleep(LET_IN); // a process that has ended would be asked without a pause
                    }
                    // mincore fails at a hole, having read what is before it.
                    (to, if self.kernel.is_none() { pages } else { 0 })
                });
                if let Some(auto) = &mut self.auto {
                    auto.times().add_call(ticks().saturating_sub(begin), touches);
                }
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
