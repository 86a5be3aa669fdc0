//! The loop of a helper: it looks for what there is to bake, goes through it in chunks, and pauses.
//!
//! The helper thread of [`Baker`](super::Baker) and the preloaded library's run this one loop. Each brings its own
//! system calls ([`HelperCalls`]) and its own memory ([`HelperHost`]). Nothing here allocates, panics or asks the
//! system by itself, so that it also runs in a thread that the C library does not know.

use std::sync::atomic::Ordering;

use super::address_range::AddressRange;
use super::auto::{Auto, ClockReading, Turn};
use super::counters::{HelperCounters, HelperState};
use super::cpu_demand::{CpuDemand, CpuWait};
use super::module::Walk;
use super::pace::{BatchTimes, BATCH_TOUCHES};
use super::pm_scan::CHUNK_BYTES;
use super::region::PAGE_BYTES;
use super::settings::{BakeBackend, Settings};
use super::small_pages::{LookSchedule, SmallPages};
use super::status_line::STATUS_NANOS;
use super::ticks::ticks;
use super::touch;

/// Touches of a chunk: some 100 µs if each goes to memory for its entry and for its data. Memory is taken out between
/// two chunks.
const CHUNK_TOUCHES: u64 = 512;
/// Pauses that the share of a CPU asks for are made when there are so many nanoseconds: a shorter sleep takes longer
/// than asked for.
const SHORTEST_PAUSE_NANOS: u64 = 1_000_000;

/// The system calls of a helper. None of them gives a page a frame. Errors are the system's numbers.
pub trait HelperCalls {
    /// The clock that only goes forward, in nanoseconds.
    fn now_nanos(&self) -> u64;

    /// CPU time of the calling thread, in nanoseconds.
    fn cpu_nanos(&self) -> u64;

    /// Has the kernel read all page-table entries of a range (`PAGEMAP_SCAN`).
    ///
    /// # Errors
    /// The call's.
    fn scan(&mut self, range: AddressRange) -> Result<(), i32>;

    /// The same by `mincore`, for at most [`CHUNK_BYTES`] of the caller's own memory.
    ///
    /// # Errors
    /// The call's: where there is a hole, after the entries before it.
    fn mincore(&mut self, range: AddressRange) -> Result<(), i32>;

    /// The same by the kernel module: from the range's begin on, every so many pages, as far as one call goes.
    ///
    /// # Errors
    /// The call's.
    fn walk(&mut self, range: AddressRange, stride_pages: u32, nops: u32) -> Result<Walk, i32>;

    /// Sleeps for [`LET_IN`](super::pm_scan::LET_IN), so that those who wait for `mmap_lock` get it.
    fn let_others_in(&mut self);

    /// Leaves its CPU to those who wait for it; goes on at once where nobody does.
    fn yield_cpu(&mut self);
}

/// What became of a step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundStep<T> {
    /// The next range was touched.
    Touched(T),
    /// There is nothing from that address on: the round is complete.
    Complete,
    /// There is no memory at all, any more.
    NoMemory,
}

/// The program that a helper is in or beside: its memory, and whoever steers the helper.
///
/// # Safety
/// With [`BakeBackend::Load`] the ranges that [`HelperHost::with_range`] gives stay mapped and readable until `touch`
/// returns.
pub unsafe trait HelperHost {
    /// Its system calls.
    type Calls: HelperCalls;
    /// Why the loop ends.
    type Stop;

    /// Its system calls.
    fn calls(&mut self) -> &mut Self::Calls;

    /// What the program used without the helper, and how many threads want a CPU.
    fn cpu_demand(&mut self) -> CpuDemand;

    /// Share of a CPU that the helper may use, by its CPU time: above 0, at most 1.
    fn cpu_share(&self) -> f64;

    /// Sleeps for so many nanoseconds.
    ///
    /// # Errors
    /// The helper is to end.
    fn sleep(&mut self, nanos: u64) -> Result<(), Self::Stop>;

    /// Whether the program named other memory since this was asked last.
    fn memory_changed(&mut self) -> bool;

    /// Finds the small pages that there are to bake.
    ///
    /// # Errors
    /// The helper is to end.
    fn look(&mut self) -> Result<SmallPages, Self::Stop>;

    /// Gives `touch` the first range with memory to bake from an address on. Until it returns, none of that memory is
    /// taken out.
    ///
    /// # Errors
    /// The helper is to end.
    fn with_range<T>(
        &mut self,
        from: u64,
        touch: impl FnOnce(&mut Self::Calls, AddressRange) -> T,
    ) -> Result<RoundStep<T>, Self::Stop>;

    /// A call failed with this error number.
    fn call_failed(&mut self, errno: i32);

    /// Writes the status file: at once, or if it is time to.
    fn publish(&mut self, now_nanos: u64, at_once: bool);
}

/// A helper's loop, between two turns.
#[derive(Debug)]
pub struct HelperLoop<'a, H> {
    /// The program that it is in or beside.
    pub host: H,
    settings: &'a Settings,
    counters: &'a HelperCounters,
    /// How it touches: as asked, or as `auto` chose.
    backend: BakeBackend,
    auto: Option<Auto>,
    /// Whether it has to wait for its CPU.
    wait: CpuWait,
    /// Until when it rests since it had to, in nanoseconds of the clock.
    rest_until: u64,
    /// When to look for small pages; `None` = all of the memory is baked, as it was named.
    looks: Option<LookSchedule>,
    small_pages: SmallPages,
    /// CPU time of the helper that its share was reckoned with.
    reckoned_nanos: u64,
    /// Pause that it owes for that.
    owed_nanos: u64,
}

impl<'a, H: HelperHost> HelperLoop<'a, H> {
    /// Before the first turn. `auto` paces it, where the settings ask for that; `looks` says when to look for small
    /// pages, where not all of the memory is to be baked as it was named.
    pub fn new(
        host: H,
        settings: &'a Settings,
        counters: &'a HelperCounters,
        backend: BakeBackend,
        auto: Option<Auto>,
        looks: Option<LookSchedule>,
    ) -> Self {
        counters.by_module.store(backend == BakeBackend::Module, Ordering::Relaxed);
        Self {
            host,
            settings,
            counters,
            backend,
            auto,
            wait: CpuWait::new(),
            rest_until: 0,
            looks,
            small_pages: SmallPages::default(),
            reckoned_nanos: 0,
            owed_nanos: 0,
        }
    }

    /// Looks for small pages if it is time to; then goes through them once, or rests.
    ///
    /// # Errors
    /// The helper is to end.
    pub fn turn(&mut self) -> Result<(), H::Stop> {
        self.look_if_due()?;
        let turn = self.choose();
        self.enter(turn.state());
        match turn {
            Turn::Rest(_, until) => {
                let until = until.min(self.next_look());
                let nanos = until.saturating_sub(self.host.calls().now_nanos());
                // So that the status file stays fresh.
                self.sleep(nanos.min(STATUS_NANOS))
            }
            Turn::Round(_) => {
                let used = self.host.calls().cpu_nanos();
                let wall_nanos = self.round()?;
                let cpu_nanos = self.host.calls().cpu_nanos().saturating_sub(used);
                let rest = self.wait.after_round(wall_nanos, cpu_nanos);
                self.rest_until = self.host.calls().now_nanos().saturating_add(rest);
                let pause = self.pause_after_round();
                let until_look = self.next_look().saturating_sub(self.host.calls().now_nanos());
                self.sleep(pause.min(until_look))
            }
        }
    }

    /// What it does from now on; published at once where that is another thing.
    pub fn enter(&mut self, state: HelperState) {
        let changed = self.counters.state() != state;
        self.counters.set_state(state);
        self.count_cpu();
        self.publish(changed);
    }

    fn publish(&mut self, at_once: bool) {
        let now = self.host.calls().now_nanos();
        self.host.publish(now, at_once);
    }

    /// Its CPU time until now, which the counters tell.
    fn count_cpu(&mut self) -> u64 {
        let cpu_nanos = self.host.calls().cpu_nanos();
        self.counters.cpu_nanos.store(cpu_nanos, Ordering::Relaxed);
        cpu_nanos
    }

    fn sleep(&mut self, nanos: u64) -> Result<(), H::Stop> {
        match nanos {
            0 => Ok(()),
            _ => self.host.sleep(nanos),
        }
    }

    /// When to look next, in nanoseconds of the clock.
    fn next_look(&self) -> u64 {
        self.looks.as_ref().map_or(u64::MAX, |looks| looks.next_nanos)
    }

    fn look_if_due(&mut self) -> Result<(), H::Stop> {
        let Some(looks) = &mut self.looks else { return Ok(()) };
        let changed = self.host.memory_changed();
        let begin = self.host.calls().now_nanos();
        if !changed && begin < looks.next_nanos {
            return Ok(());
        }
        let used = self.host.calls().cpu_nanos();
        let found = self.host.look()?;
        let as_before = found == self.small_pages;
        if let (false, Some(auto)) = (as_before, &mut self.auto) {
            auto.forget();
        }
        self.small_pages = found;
        let end = self.host.calls().now_nanos();
        looks.after(end, self.host.calls().cpu_nanos().saturating_sub(used), as_before);
        self.counters.looks.fetch_add(1, Ordering::Relaxed);
        self.counters.longest_look_nanos.fetch_max(end.saturating_sub(begin), Ordering::Relaxed);
        self.counters.set_small_pages(found.ranges as u64, found.small_bytes);
        Ok(())
    }

    /// A round, or a rest.
    fn choose(&mut self) -> Turn {
        if self.looks.is_some() && self.small_pages.small_bytes == 0 {
            return Turn::Rest(HelperState::Looking, u64::MAX);
        }
        let now = self.host.calls().now_nanos();
        if now < self.rest_until {
            return Turn::Rest(HelperState::Crowded, self.rest_until);
        }
        let Some(auto) = &mut self.auto else { return Turn::Round(HelperState::Baking) };
        auto.turn(now, self.small_pages.small_bytes, || self.host.cpu_demand())
    }

    /// How long to pause after a round, in nanoseconds.
    fn pause_after_round(&mut self) -> u64 {
        let now = ClockReading { nanos: self.host.calls().now_nanos(), ticks: ticks() };
        let pause = match &mut self.auto {
            Some(auto) => {
                let pause = auto.after_round(now);
                let (after_pause, right_after) = auto.sensed_picos();
                self.counters.after_pause_picos.store(after_pause, Ordering::Relaxed);
                self.counters.right_after_picos.store(right_after, Ordering::Relaxed);
                pause
            }
            None => self.settings.sleep.as_nanos() as u64,
        };
        self.counters.pause_nanos.store(pause, Ordering::Relaxed);
        pause
    }

    /// Goes through all memory once; gives the nanoseconds, by the clock, in which it wanted its CPU.
    fn round(&mut self) -> Result<u64, H::Stop> {
        let (mut at, mut wall_nanos) = (0, 0u64);
        loop {
            let (backend, settings) = (self.backend, self.settings);
            let times = self.auto.as_mut().map(Auto::times);
            let step = self.host.with_range(at, |calls, range| Chunk::touch(calls, backend, settings, times, range))?;
            let chunk = match step {
                RoundStep::Touched(chunk) => chunk,
                RoundStep::Complete => break,
                RoundStep::NoMemory => return Ok(wall_nanos),
            };
            at = chunk.next;
            self.counters.touches.fetch_add(chunk.touches, Ordering::Relaxed);
            self.counters.busy_nanos.fetch_add(chunk.nanos, Ordering::Relaxed);
            if let Some(errno) = chunk.errno {
                self.host.call_failed(errno);
            }
            let yielded = self.let_others_run(&chunk);
            wall_nanos = wall_nanos.saturating_add(chunk.nanos).saturating_add(yielded);
            self.publish(false);
            self.stay_within_share()?;
        }
        self.counters.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(wall_nanos)
    }

    /// After a chunk; gives the nanoseconds in which others had its CPU.
    fn let_others_run(&mut self, chunk: &Chunk) -> u64 {
        let calls = self.host.calls();
        match self.backend {
            BakeBackend::Scan | BakeBackend::Mincore => calls.let_others_in(),
            // The module lets them in by itself; but of a process that has ended it would be asked again without a
            // pause.
            BakeBackend::Module if chunk.errno.is_some() => calls.let_others_in(),
            BakeBackend::Module => {}
            // These never sleep: a thread of the program on the same CPU would wait for a whole time slice.
            BakeBackend::Load | BakeBackend::Prefetch(_) => {
                let begin = calls.now_nanos();
                calls.yield_cpu();
                return calls.now_nanos().saturating_sub(begin);
            }
        }
        0
    }

    /// Pauses so that the helper's CPU time stays within its share: touches, looks and all else that it does.
    fn stay_within_share(&mut self) -> Result<(), H::Stop> {
        let cpu_nanos = self.count_cpu();
        let used = cpu_nanos.saturating_sub(std::mem::replace(&mut self.reckoned_nanos, cpu_nanos));
        let owed = used as f64 * (1.0 / self.host.cpu_share() - 1.0);
        self.owed_nanos = self.owed_nanos.saturating_add(owed as u64);
        if self.owed_nanos < SHORTEST_PAUSE_NANOS {
            return Ok(());
        }
        let owed = std::mem::take(&mut self.owed_nanos);
        self.sleep(owed)
    }
}

/// A chunk of touches.
struct Chunk {
    /// Where the next one begins.
    next: u64,
    touches: u64,
    nanos: u64,
    /// Of a call that failed.
    errno: Option<i32>,
}

impl Chunk {
    /// Touches from a range's begin on, at most to its end. `times` gets the times of batches.
    fn touch<C: HelperCalls>(
        calls: &mut C,
        backend: BakeBackend,
        settings: &Settings,
        times: Option<&mut BatchTimes>,
        range: AddressRange,
    ) -> Self {
        let begin = calls.now_nanos();
        let mut chunk = match backend {
            BakeBackend::Load | BakeBackend::Prefetch(_) => Self::sweep(backend, settings, times, range),
            BakeBackend::Module | BakeBackend::Scan | BakeBackend::Mincore => {
                let ticks_before = ticks();
                let chunk = Self::call(calls, backend, settings, range);
                if let Some(times) = times {
                    times.add_call(ticks().saturating_sub(ticks_before), chunk.touches);
                }
                chunk
            }
        };
        chunk.nanos = calls.now_nanos().saturating_sub(begin);
        chunk
    }

    /// By the program's own addresses.
    fn sweep(
        backend: BakeBackend,
        settings: &Settings,
        mut times: Option<&mut BatchTimes>,
        AddressRange { start, end }: AddressRange,
    ) -> Self {
        let stride = u64::from(settings.stride_pages).saturating_mul(PAGE_BYTES);
        let touches = end.saturating_sub(start).div_ceil(stride).min(CHUNK_TOUCHES);
        let batch = if times.is_some() { BATCH_TOUCHES } else { touches };
        let (mut at, mut left) = (start, touches);
        while left > 0 {
            let count = batch.min(left);
            let begin = ticks();
            // SAFETY: for loads the host keeps the range mapped and readable; prefetches never fault.
            unsafe { touch::sweep(backend, at, stride, count, settings.nops) };
            if let Some(times) = times.as_mut().filter(|_| count == BATCH_TOUCHES) {
                times.add(ticks().saturating_sub(begin));
            }
            at = at.saturating_add(count.saturating_mul(stride));
            left = left.saturating_sub(count);
        }
        // Not beyond the range: the next one may begin within the stride.
        Self { next: at.min(end), touches, nanos: 0, errno: None }
    }

    /// By a call of the kernel.
    fn call<C: HelperCalls>(calls: &mut C, backend: BakeBackend, settings: &Settings, range: AddressRange) -> Self {
        let AddressRange { start, end } = range;
        let part = AddressRange { start, end: end.min(start.saturating_add(CHUNK_BYTES)) };
        let pages = part.end.saturating_sub(start) / PAGE_BYTES;
        let done = match backend {
            BakeBackend::Module => calls
                .walk(range, settings.stride_pages, settings.nops)
                .map(|walk| (walk.next.max(start.saturating_add(PAGE_BYTES)).min(end), walk.touched)),
            BakeBackend::Mincore => calls.mincore(part).map(|()| (part.end, pages)),
            _ => calls.scan(part).map(|()| (part.end, pages)),
        };
        match done {
            Ok((next, touches)) => Self { next, touches, nanos: 0, errno: None },
            Err(errno) => {
                // It fails at a hole, having read what is before it.
                let touches = if backend == BakeBackend::Mincore { pages } else { 0 };
                Self { next: part.end, touches, nanos: 0, errno: Some(errno) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
