//! The baker's helper in a program: the loop of [`HelperLoop`], with system calls of its own. Nothing here allocates,
//! panics or unwinds: all arithmetic wraps or saturates, all indexing is checked.

use std::sync::atomic::Ordering;

use lookaside_runtime::bake::freestanding::{
    runnable, ticks, AddressRange, Auto, ClockReading, CpuDemand, HelperCalls, HelperCounters, HelperHost, HelperLoop,
    HelperState, LookSchedule, RoundStep, SmallPages, Walk, DEVICE, HELPER, WALK,
};
use lookaside_runtime::bake::{BakeBackend, PAGE_BYTES};

use crate::cpus;
use crate::helper_memory::{BakerBuffers, BakerMemory, BakerPlan};
use crate::program::{self, PreloadedProcess};
use crate::small_pages::{PageFiles, SmallPageFinder, LEAST_BYTES};
use crate::status_file::PublishedStatus;
use crate::sys::{self, Errno};

/// What a process does in its first milliseconds is not waited for; short ones pay for a thread and no more.
pub(crate) const SETTLE_NANOS: u64 = 20_000_000;

/// Why the helper ends.
enum HelperEnd {
    /// The system refused a call.
    Refused(Errno),
    /// There is no CPU for it.
    NoCpu,
    /// The program is over.
    Left,
}

impl From<Errno> for HelperEnd {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

/// The thread's first and last function.
pub(crate) extern "C" fn main(memory: *mut BakerMemory) -> ! {
    // SAFETY: the memory is never unmapped; its buffers are the helper's alone, the rest is atomic or never changes.
    let (plan, counters, buffers) = unsafe { (&(*memory).plan, &(*memory).counters, &mut (*memory).buffers) };
    let Err(end) = bake(plan, counters, buffers);
    match end {
        HelperEnd::NoCpu => counters.set_state(HelperState::NoCpu),
        HelperEnd::Left => counters.set_state(HelperState::Left),
        HelperEnd::Refused(errno) => {
            counters.errno.store(errno.into_raw(), Ordering::Relaxed);
            counters.set_state(HelperState::Refused);
        }
    }
    counters.cpu_nanos.store(own_nanos(), Ordering::Relaxed);
    program::leave()
}

fn bake(
    plan: &BakerPlan,
    counters: &HelperCounters,
    buffers: &mut BakerBuffers,
) -> Result<std::convert::Infallible, HelperEnd> {
    sys::leave_files()?;
    sys::lower(HELPER);
    sys::sleep_nanos(SETTLE_NANOS);
    let program = PreloadedProcess::open()?;
    let (maps, pagemap) = (program.file(c"maps")?, program.file(c"pagemap")?);
    let finder = SmallPageFinder::new(PageFiles { maps, pagemap })?;
    let settings = &plan.baker.settings;
    if settings.backend == BakeBackend::Scan && !finder.has_scan {
        return Err(HelperEnd::Refused(Errno::ENOTTY));
    }
    let (backend, module) = match (settings.auto, settings.backend) {
        (false, BakeBackend::Module) => (BakeBackend::Module, sys::open(libc::AT_FDCWD, DEVICE, libc::O_RDONLY)?),
        (false, asked) => (asked, -1),
        (true, otherwise) => open_module().map_or((otherwise, -1), |module| (BakeBackend::Module, module)),
    };
    let cpus = cpus::settle(settings.placement, plan.start_cpu, &mut buffers.text).map_err(|_| HelperEnd::NoCpu)?;
    let cache_bytes = cpus::last_cache_bytes(plan.start_cpu, &mut buffers.text).unwrap_or(u64::MAX);
    let now = sys::now_nanos();
    let auto = settings.auto.then(|| Auto::new(ClockReading { nanos: now, ticks: ticks() }, cache_bytes, cpus));
    let host = InsideHost {
        plan,
        counters,
        calls: InsideCalls { finder, module, buffers },
        status_file: PublishedStatus::new(),
        program,
        ranges: 0,
    };
    let mut helper = HelperLoop::new(host, settings, counters, backend, auto, Some(LookSchedule::new(now)));
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

/// The helper's system calls, which leave `errno` alone.
struct InsideCalls<'a> {
    finder: SmallPageFinder,
    /// The kernel module's device, where that is how it bakes.
    module: i32,
    buffers: &'a mut BakerBuffers,
}

impl HelperCalls for InsideCalls<'_> {
    fn now_nanos(&self) -> u64 {
        sys::now_nanos()
    }

    fn cpu_nanos(&self) -> u64 {
        own_nanos()
    }

    fn scan(&mut self, range: AddressRange) -> Result<(), i32> {
        self.finder.read_entries(range).map_err(Errno::into_raw)
    }

    fn mincore(&mut self, range: AddressRange) -> Result<(), i32> {
        let pages = range.end.saturating_sub(range.start) / PAGE_BYTES;
        sys::mincore(range.start, pages, &mut self.buffers.resident).map_err(Errno::into_raw)
    }

    fn walk(&mut self, range: AddressRange, stride_pages: u32, nops: u32) -> Result<Walk, i32> {
        let mut walk = Walk::chunk(None, range.start, range.end, stride_pages, nops);
        // SAFETY: the structure that the call takes; of what is mapped it changes nothing.
        let walked = unsafe { sys::ioctl(self.module, WALK, &mut walk) };
        walked.map(|_| walk).map_err(Errno::into_raw)
    }

    fn let_others_in(&mut self) {
        sys::let_others_in();
    }

    fn yield_cpu(&mut self) {
        sys::yield_cpu();
    }
}

/// The program that the helper is in.
struct InsideHost<'a> {
    plan: &'a BakerPlan,
    counters: &'a HelperCounters,
    calls: InsideCalls<'a>,
    status_file: PublishedStatus,
    program: PreloadedProcess,
    /// Ranges in the buffer.
    ranges: usize,
}

impl InsideHost<'_> {
    /// Bytes of the process that have frames.
    fn resident_bytes(&mut self) -> Result<u64, Errno> {
        let statm = self.program.read(c"statm", &mut self.calls.buffers.text)?;
        let digits = statm.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let pages = digits
            .iter()
            .fold(0u64, |number, &digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))));
        Ok(pages.wrapping_mul(PAGE_BYTES))
    }
}

// SAFETY: the settings of a preloaded baker never have loads; reading them refuses that.
unsafe impl<'a> HelperHost for InsideHost<'a> {
    type Calls = InsideCalls<'a>;
    type Stop = HelperEnd;

    fn calls(&mut self) -> &mut InsideCalls<'a> {
        &mut self.calls
    }

    fn cpu_demand(&mut self) -> CpuDemand {
        let own = own_nanos();
        let loadavg = sys::read_file(libc::AT_FDCWD, c"/proc/loadavg", &mut self.calls.buffers.text);
        CpuDemand {
            program_nanos: sys::clock_nanos(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(own),
            runnable: loadavg.ok().and_then(runnable),
        }
    }

    fn cpu_share(&self) -> f64 {
        self.plan.baker.settings.cpu_share
    }

    fn sleep(&mut self, nanos: u64) -> Result<(), HelperEnd> {
        sys::sleep_nanos(nanos);
        Ok(())
    }

    fn memory_changed(&mut self) -> bool {
        false // it looks by itself, at times
    }

    fn look(&mut self) -> Result<SmallPages, HelperEnd> {
        if self.program.is_over(&mut self.calls.buffers.text)? {
            return Err(HelperEnd::Left);
        }
        let found = match self.resident_bytes()? < LEAST_BYTES {
            true => SmallPages::default(),
            false => self.calls.finder.look(self.calls.buffers)?,
        };
        self.ranges = found.ranges;
        Ok(found)
    }

    fn with_range<T>(
        &mut self,
        from: u64,
        touch: impl FnOnce(&mut InsideCalls<'a>, AddressRange) -> T,
    ) -> Result<RoundStep<T>, HelperEnd> {
        let ranges = self.calls.buffers.ranges.get(..self.ranges).unwrap_or_default();
        let next = ranges.get(ranges.partition_point(|range| range.end <= from)).copied();
        Ok(match next {
            Some(AddressRange { start, end }) => {
                RoundStep::Touched(touch(&mut self.calls, AddressRange { start: start.max(from), end }))
            }
            None => RoundStep::Complete,
        })
    }

    fn call_failed(&mut self, _errno: i32) {
        // What is unmapped meanwhile can't be read, and need not be.
    }

    fn publish(&mut self, now_nanos: u64, at_once: bool) {
        self.status_file.write(at_once, self.plan, self.counters, now_nanos);
    }
}
