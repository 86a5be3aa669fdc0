//! The helper thread: rounds through the regions in chunks, paced, stopped at once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::auto::{Auto, Moment, Took, Turn};
use super::clock::{now_nanos, others_nanos, thread_nanos};
use super::counters::State;
use super::kernel::{self, mincore, Scanner, CHUNK_BYTES, LET_IN};
use super::module::Module;
use super::others::{runnable, Busy};
use super::own::Own;
use super::pace::BATCH_TOUCHES;
use super::raw::{ticks, TELL_NANOS};
use super::shared::Shared;
use super::tell::Teller;
use super::{place, touch, Backend, BakeError, Target, PAGE_BYTES};

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

/// What of the kernel has to be opened to be asked, by the thread that asks.
#[derive(Debug)]
pub(super) enum Kernel {
    Scan(Scanner),
    Module(Module),
}

impl Kernel {
    /// What a backend needs of it.
    pub(super) fn open(backend: Backend, target: Target) -> Result<Option<Self>, BakeError> {
        Ok(match backend {
            Backend::Scan => Some(Self::Scan(Scanner::open(target)?)),
            Backend::Module => Some(Self::Module(Module::open(target)?)),
            _ => None,
        })
    }
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

/// Threads that want a CPU now, but for the caller.
fn runnable_now() -> Option<u32> {
    runnable(&std::fs::read("/proc/loadavg").ok()?)
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
            // It would take the program's only one away.
            Ok(_) => (settings.auto && shared.cpu_counts.allowed < 2).then_some(State::NoCpu),
        };
        counters.by_module.store(backend == Backend::Module, Ordering::Relaxed);
        let auto = settings.auto.then(|| {
            let now = Moment { nanos: now_nanos(), ticks: ticks() };
            Auto::new(now, place::last_cache_bytes().unwrap_or(u64::MAX), shared.cpu_counts)
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
        Some(auto.turn(now, small_bytes, || Busy { program_nanos: others_nanos(), runnable: runnable_now() }))
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
            self.owed += busy.mul_f64(1.0 / shared.cpu_share() - 1.0);
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
