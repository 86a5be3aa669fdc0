//! The helper's life in a program. Nothing here allocates, panics or unwinds: all arithmetic wraps or saturates, all indexing is checked.

use std::sync::atomic::Ordering;

use lookaside_runtime::bake::raw::{
    prefetch, runnable, ticks, Auto, Busy, Counters, Found, Looks, Moment, Range, State, Took, Turn, Walk,
    BATCH_TOUCHES, CHUNK_BYTES, DEVICE, HELPER, WALK,
};
use lookaside_runtime::bake::{Backend, PAGE_BYTES};

use crate::area::{Area, Buffers, Plan};
use crate::cpus;
use crate::look::{Files, Looker, LEAST_BYTES};
use crate::program::{self, Program};
use crate::sys::{self, Errno};
use crate::tell::Teller;

/// What a process does in its first milliseconds is not waited for; short ones pay for a thread and no more.
pub(crate) const SETTLE_NANOS: u64 = 20_000_000;
/// Pauses that pacing owes are made when there are so many: a shorter sleep takes longer than asked for.
const SHORTEST_PAUSE_NANOS: u64 = 1_000_000;
/// Longest single sleep.
const NAP_NANOS: u64 = 100_000_000;

/// Why it ends.
enum End {
    Refused(Errno),
    NoCpu,
    Left,
}

impl From<Errno> for End {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

/// The thread's first and last function.
pub(crate) extern "C" fn main(area: *mut Area) -> ! {
    // SAFETY: the area is never unmapped; its buffers are the helper's alone, the rest is atomic or never changes.
    let (plan, counters, buffers) = unsafe { (&(*area).plan, &(*area).counters, &mut (*area).buffers) };
    let Err(end) = live(plan, counters, buffers);
    match end {
        End::NoCpu => counters.set_state(State::NoCpu),
        End::Left => counters.set_state(State::Left),
        End::Refused(errno) => {
            counters.errno.store(errno.into_raw(), Ordering::Relaxed);
            counters.set_state(State::Refused);
        }
    }
    counters.cpu_nanos.store(own_nanos(), Ordering::Relaxed);
    program::leave()
}

fn live(plan: &Plan, counters: &Counters, buffers: &mut Buffers) -> Result<std::convert::Infallible, End> {
    sys::leave_files()?;
    sys::lower(HELPER);
    sys::sleep_nanos(SETTLE_NANOS);
    let program = Program::open()?;
    let (maps, pagemap) = (program.file(c"maps")?, program.file(c"pagemap")?);
    let looker = Looker::new(Files { maps, pagemap })?;
    if plan.baker.settings.backend == Backend::Scan && !looker.has_scan {
        return Err(End::Refused(Errno::ENOTTY));
    }
    let settings = &plan.baker.settings;
    let (backend, module) = match (settings.auto, settings.backend) {
        (false, Backend::Module) => (Backend::Module, sys::open(libc::AT_FDCWD, DEVICE, libc::O_RDONLY)?),
        (false, asked) => (asked, -1),
        (true, otherwise) => open_module().map_or((otherwise, -1), |module| (Backend::Module, module)),
    };
    counters.by_module.store(backend == Backend::Module, Ordering::Relaxed);
    let cpus = cpus::settle(settings.placement, plan.start_cpu, &mut buffers.text).map_err(|_| End::NoCpu)?;
    let cache_bytes = cpus::last_cache_bytes(plan.start_cpu, &mut buffers.text).unwrap_or(u64::MAX);
    let now = sys::now_nanos();
    let mut helper = Helper {
        plan,
        counters,
        teller: Teller::new(),
        buffers,
        looker,
        backend,
        module,
        program,
        found: Found::default(),
        looks: Looks::new(now),
        owed_nanos: 0,
        auto: settings.auto.then(|| Auto::new(Moment { nanos: now, ticks: ticks() }, cache_bytes, cpus)),
    };
    loop {
        helper.turn()?;
    }
}

/// The kernel module, where it is loaded, lets itself be used, and is of this version.
fn open_module() -> Result<i32, Errno> {
    let module = sys::open(libc::AT_FDCWD, DEVICE, libc::O_RDONLY)?;
    let mut walk = Walk::chunk(None, PAGE_BYTES, PAGE_BYTES.saturating_mul(2), 1, 0);
    // SAFETY: the structure that the call takes; of what is mapped it changes nothing.
    match unsafe { sys::ioctl(module, WALK, &mut walk) } {
        Ok(_) => Ok(module),
        Err(errno) => {
            sys::close(module);
            Err(errno)
        }
    }
}

/// CPU time of the helper.
fn own_nanos() -> u64 {
    sys::clock_nanos(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What the program used without the helper, and who wants a CPU now.
fn busy(text: &mut [u8]) -> Busy {
    let own = own_nanos();
    let loadavg = sys::read_file(libc::AT_FDCWD, c"/proc/loadavg", text);
    Busy {
        program_nanos: sys::clock_nanos(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(own),
        runnable: loadavg.ok().and_then(runnable),
    }
}

struct Helper<'a> {
    plan: &'a Plan,
    counters: &'a Counters,
    teller: Teller,
    buffers: &'a mut Buffers,
    looker: Looker,
    /// How it bakes: as asked, or as `auto` chose.
    backend: Backend,
    /// The kernel module's device, where that is how it bakes.
    module: i32,
    program: Program,
    found: Found,
    looks: Looks,
    owed_nanos: u64,
    auto: Option<Auto>,
}

impl Helper<'_> {
    /// A look if it is time to, and a round if there is something to bake; or a nap.
    fn turn(&mut self) -> Result<(), End> {
        let mut now = sys::now_nanos();
        if now >= self.looks.next_nanos {
            self.look(now)?;
            now = sys::now_nanos();
        }
        self.teller.tell(self.plan, self.counters, now);
        let nap = |until: u64| sys::sleep_nanos(until.saturating_sub(now).min(NAP_NANOS));
        let state = self.counters;
        if self.found.ranges == 0 {
            state.set_state(State::Looking);
            nap(self.looks.next_nanos);
            return Ok(());
        }
        let turn = match &mut self.auto {
            Some(auto) => auto.turn(now, self.found.small_bytes, || busy(&mut self.buffers.text)),
            None => Turn::Round(State::Baking),
        };
        state.set_state(turn.state());
        if let Turn::Rest(_, until) = turn {
            nap(until.min(self.looks.next_nanos));
            return Ok(());
        }
        let used = own_nanos();
        let wall_nanos = self.round();
        let took = Took { wall_nanos, cpu_nanos: own_nanos().saturating_sub(used) };
        let mut pause = self.plan.baker.settings.sleep.as_nanos() as u64;
        if let Some(auto) = &mut self.auto {
            pause = auto.after_round(Moment { nanos: sys::now_nanos(), ticks: ticks() }, took);
            let (after_pause, right_after) = auto.sensed_picos();
            state.after_pause_picos.store(after_pause, Ordering::Relaxed);
            state.right_after_picos.store(right_after, Ordering::Relaxed);
        }
        state.pause_nanos.store(pause, Ordering::Relaxed);
        while pause > 0 {
            let part = pause.min(NAP_NANOS);
            sys::sleep_nanos(part);
            pause = pause.saturating_sub(part);
            if sys::now_nanos() >= self.looks.next_nanos {
                break;
            }
        }
        Ok(())
    }

    /// What there is to bake now, and whether to go on at all.
    fn look(&mut self, now: u64) -> Result<(), End> {
        let used = own_nanos();
        if self.program.is_over(&mut self.buffers.text)? {
            return Err(End::Left);
        }
        let found =
            if self.resident_bytes()? < LEAST_BYTES { Found::default() } else { self.looker.look(self.buffers)? };
        let as_before = found == self.found;
        if let (false, Some(auto)) = (as_before, &mut self.auto) {
            auto.forget();
        }
        self.found = found;
        let end = sys::now_nanos();
        self.looks.after(end, own_nanos().saturating_sub(used), as_before);
        let counters = self.counters;
        counters.looks.fetch_add(1, Ordering::Relaxed);
        counters.longest_look_nanos.fetch_max(end.saturating_sub(now), Ordering::Relaxed);
        counters.found(found.ranges as u64, found.small_bytes);
        self.count_cpu();
        Ok(())
    }

    /// Bytes of the process that have frames.
    fn resident_bytes(&mut self) -> Result<u64, Errno> {
        let statm = self.program.read(c"statm", &mut self.buffers.text)?;
        let digits = statm.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let pages = digits
            .iter()
            .fold(0u64, |number, &digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))));
        Ok(pages.wrapping_mul(PAGE_BYTES))
    }

    fn count_cpu(&self) {
        self.counters.cpu_nanos.store(own_nanos(), Ordering::Relaxed);
    }

    /// All ranges once; gives the nanoseconds spent touching.
    fn round(&mut self) -> u64 {
        let mut all = 0u64;
        for index in 0..self.found.ranges {
            let Some(Range { mut start, end }) = self.buffers.ranges.get(index).copied() else { break };
            while start < end {
                let begin = sys::now_nanos();
                start = self.chunk(start, end);
                let busy = sys::now_nanos().saturating_sub(begin);
                all = all.saturating_add(busy);
                self.pay(busy);
                // The module lets them in by itself.
                if !matches!(self.backend, Backend::Prefetch(_) | Backend::Module) {
                    sys::let_others_in();
                }
            }
        }
        self.counters.rounds.fetch_add(1, Ordering::Relaxed);
        self.counters.busy_nanos.fetch_add(all, Ordering::Relaxed);
        self.count_cpu();
        all
    }

    /// Touches from here on, at most to the end; gives where it came to.
    fn chunk(&mut self, start: u64, end: u64) -> u64 {
        /// Batches between two looks at the clock: some 10 to 20 µs.
        const BATCHES: u64 = 8;
        let settings = &self.plan.baker.settings;
        let stride = u64::from(settings.stride_pages).saturating_mul(PAGE_BYTES);
        let mut at = start;
        let mut touches = 0u64;
        match self.backend {
            Backend::Prefetch(hint) => {
                for _ in 0..BATCHES {
                    let count = end.saturating_sub(at).div_ceil(stride).min(BATCH_TOUCHES);
                    if count == 0 {
                        break;
                    }
                    let begin = ticks();
                    prefetch(hint, at, stride, count, settings.nops);
                    if let Some(auto) = self.auto.as_mut().filter(|_| count == BATCH_TOUCHES) {
                        auto.times().add(ticks().saturating_sub(begin));
                    }
                    at = at.saturating_add(count.saturating_mul(stride));
                    touches = touches.saturating_add(count);
                }
            }
            Backend::Scan | Backend::Mincore => {
                at = end.min(start.saturating_add(CHUNK_BYTES));
                touches = at.saturating_sub(start) / PAGE_BYTES;
                // What is unmapped meanwhile can't be read, and need not be.
                let _ = match self.backend {
                    Backend::Scan => self.looker.read_entries(start, at),
                    _ => sys::mincore(start, touches, &mut self.buffers.resident),
                };
            }
            Backend::Module => {
                let mut walk = Walk::chunk(None, start, end, settings.stride_pages, settings.nops);
                let begin = ticks();
                // SAFETY: the structure that the call takes; of what is mapped it changes nothing.
                let walked = unsafe { sys::ioctl(self.module, WALK, &mut walk) };
                if let Some(auto) = &mut self.auto {
                    auto.times().add_call(ticks().saturating_sub(begin), walk.touched);
                }
                let next = if walked.is_ok() { walk.next } else { end };
                at = next.max(start.saturating_add(PAGE_BYTES)).min(end);
                touches = walk.touched;
            }
            // Refused before it came here.
            Backend::Load => at = end,
        }
        self.counters.touches.fetch_add(touches, Ordering::Relaxed);
        at.min(end)
    }

    /// Pauses so that the time spent stays within the share.
    fn pay(&mut self, busy_nanos: u64) {
        let share = self.plan.baker.settings.cpu_share;
        let owed = (busy_nanos as f64 * (1.0 / share - 1.0)) as u64;
        self.owed_nanos = self.owed_nanos.saturating_add(owed);
        if self.owed_nanos >= SHORTEST_PAUSE_NANOS {
            sys::sleep_nanos(std::mem::take(&mut self.owed_nanos));
        }
    }
}
