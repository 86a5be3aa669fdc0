//! Code on huge pages, before `main`: whole windows of 2 MiB of the executable's and the libraries' code. Of the file
//! itself where the kernel can; else copied into private memory that is one huge page, which is moved over the code by
//! one call. The contents are the same at the same addresses, so whoever executes them notices nothing.
//!
//! This library's own code stays where it is. Nothing here allocates, panics or unwinds, and nothing calls the C
//! library, whose code may be what is moved.

use std::ffi::CStr;

use lookaside_runtime::hugepages::{CodeBudget, CodeObstacle, WINDOW_BYTES};

use crate::address_space as space;
use crate::code_limit;
use crate::code_report::CodeReport;
use crate::code_windows::{choose, code, planned, run, CodeWindow, MappedCode, MOST_WINDOWS};
use crate::cpus::number;
use crate::maps::{self, Span, TEXT_BYTES};
use crate::sys::{self, Errno};

/// Windows that are copied at a time: so much memory there is twice meanwhile.
const WINDOWS_AT_ONCE: usize = 16;

/// A small page.
const PAGE_BYTES: u64 = 4096;

/// What this works with. All zero at first.
#[repr(C)]
struct CodeMemory {
    text: [u8; TEXT_BYTES],
    weights: [u8; TEXT_BYTES],
    windows: [CodeWindow; MOST_WINDOWS],
}

/// What is asked for.
pub(crate) struct CodeOrder {
    pub(crate) budget: CodeBudget,
    /// The file with a plan's weights.
    pub(crate) weights: Option<&'static CStr>,
    /// The file that gets the report.
    pub(crate) report: Option<&'static CStr>,
    /// So many seccomp filters are known to let all calls of this through.
    pub(crate) harmless_filters: Option<u64>,
}

/// Puts code on huge pages, and reports it.
pub(crate) fn begin(plan: &CodeOrder) {
    let bytes = size_of::<CodeMemory>() as u64;
    let Ok(at) = space::map(bytes) else { return };
    let began = sys::now_nanos();
    let mut report = CodeReport::default();
    let mask = sys::block_signals();
    // SAFETY: new memory, all zero, which are values of all that is in there; page-aligned.
    let memory = unsafe { &mut *(at as *mut CodeMemory) };
    if let Err(errno) = make_all(plan, memory, &mut report) {
        report.obstacle(CodeObstacle::Unreadable, errno);
    }
    sys::set_signal_mask(mask);
    report.nanos = sys::now_nanos().saturating_sub(began);
    if let Some(file) = plan.report {
        report.write(file, &mut memory.text);
    }
    // SAFETY: what was in there is not used any more.
    unsafe { space::unmap(at, bytes) };
}

/// Finds the windows, chooses, and makes huge pages of them.
fn make_all(plan: &CodeOrder, memory: &mut CodeMemory, report: &mut CodeReport) -> Result<(), Errno> {
    let found = find(plan, memory, report)?;
    let windows = memory.windows.get_mut(..found).unwrap_or_default();
    if windows.is_empty() {
        return Ok(());
    }
    if let Some(obstacle) = obstacle(plan, &mut memory.text)? {
        report.obstacle(obstacle, Errno::new(0));
        return Ok(());
    }
    leave_changed(windows, &mut memory.text, report)?;
    let limit = code_limit::most_windows(&mut memory.text);
    let taken = choose(windows, plan.budget.windows());
    if taken > limit {
        report.obstacle(CodeObstacle::MemoryLimit, Errno::new(0));
    }
    let taken = choose(windows, plan.budget.windows().min(limit));
    let mut left = windows.get(..taken).unwrap_or_default();
    while !left.is_empty() {
        let (now, later) = left.split_at(run(left, WINDOWS_AT_ONCE));
        if make(now, report).is_err() {
            // Some of it may do yet; where one window does not, the others won't either.
            for window in now {
                if let Err((obstacle, errno)) = make(std::slice::from_ref(window), report) {
                    report.obstacle(obstacle, errno);
                    return Ok(());
                }
            }
        }
        left = later;
    }
    Ok(())
}

/// All whole windows of code, with their weights. Gives how many.
fn find(plan: &CodeOrder, memory: &mut CodeMemory, report: &mut CodeReport) -> Result<usize, Errno> {
    let own = begin as *const () as u64;
    let CodeMemory { text, weights, windows } = memory;
    let weights_file = match plan.weights {
        Some(path) => Some(sys::open(libc::AT_FDCWD, path, libc::O_RDONLY)?),
        None => None,
    };
    let list = sys::open(libc::AT_FDCWD, c"/proc/self/maps", libc::O_RDONLY)?;
    let mut found = 0usize;
    let mut weighed = Ok(());
    let read = maps::each_line(list, text, |line| {
        let Some(mapping) = code(line).filter(|mapping| !(mapping.span.start..mapping.span.end).contains(&own)) else {
            return;
        };
        report.code_bytes = report.code_bytes.saturating_add(mapping.span.end.wrapping_sub(mapping.span.start));
        let Some(whole) = mapping.whole() else { return };
        let first = found;
        for start in (whole.start..whole.end).step_by(WINDOW_BYTES as usize) {
            if let Some(window) = windows.get_mut(found) {
                *window = mapping.window(start);
                found = found.saturating_add(1);
            }
        }
        if let Some(file) = weights_file {
            let these = windows.get_mut(first..found).unwrap_or_default();
            weighed = weighed.and(weigh(&mapping, these, file, weights));
        }
    });
    sys::close(list);
    weights_file.into_iter().for_each(sys::close);
    report.windows = u32::try_from(found).unwrap_or(u32::MAX);
    read.and(weighed).map(|()| found)
}

/// Gives a mapping's windows their weights by the plan.
fn weigh(mapping: &MappedCode<'_>, windows: &mut [CodeWindow], file: i32, text: &mut [u8]) -> Result<(), Errno> {
    windows.iter_mut().for_each(|window| window.weight = 0);
    maps::each_line(file, text, |line| {
        let Some(planned) = planned(line) else { return };
        for window in windows.iter_mut() {
            window.weight = window.weight.saturating_add(mapping.part(window.start, &planned));
        }
    })
}

/// What forbids all of it.
fn obstacle(plan: &CodeOrder, text: &mut [u8]) -> Result<Option<CodeObstacle>, Errno> {
    if space::huge_pages_are_off() {
        return Ok(Some(CodeObstacle::SwitchedOff));
    }
    let status = sys::read_file(libc::AT_FDCWD, c"/proc/self/status", text)?;
    let field = |name: &[u8]| {
        let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        number(line.trim_ascii())
    };
    let filters_are_harmless =
        || plan.harmless_filters.is_some() && field(b"Seccomp_filters:") == plan.harmless_filters;
    Ok(match (field(b"Threads:"), field(b"Seccomp:")) {
        (Some(1), Some(0) | None) => None,
        (Some(1), _) if filters_are_harmless() => None,
        (Some(1), _) => Some(CodeObstacle::Seccomp),
        _ => Some(CodeObstacle::Threads),
    })
}

/// Takes no window of a mapping some page of which is not the file's: a debugger's breakpoints, the kernel's probes
/// (whose traps belong to pages of the file) or relocations are in there.
fn leave_changed(windows: &mut [CodeWindow], text: &mut [u8], report: &mut CodeReport) -> Result<(), Errno> {
    let list = sys::open(libc::AT_FDCWD, c"/proc/self/smaps", libc::O_RDONLY)?;
    let mut mapping = 0;
    let read = maps::each_line(list, text, |line| {
        if let Some(found) = maps::mapping(line) {
            mapping = found.span.start;
        }
        let Some(count) = line.strip_prefix(b"Anonymous:") else { return };
        if count.trim_ascii() == b"0 kB" {
            return;
        }
        for window in windows.iter_mut().filter(|window| window.mapping == mapping) {
            window.weight = 0;
            report.obstacle(CodeObstacle::Changed, Errno::new(0));
        }
    });
    sys::close(list);
    read
}

/// Makes huge pages of windows that follow one another.
fn make(windows: &[CodeWindow], report: &mut CodeReport) -> Result<(), (CodeObstacle, Errno)> {
    let Some(first) = windows.first() else { return Ok(()) };
    let (count, bytes) = (windows.len() as u32, (windows.len() as u64).saturating_mul(WINDOW_BYTES));
    if first.fits && sys::collapse(first.start, bytes).is_ok() {
        report.by_file = report.by_file.saturating_add(count);
        return Ok(());
    }
    space::bring_in(first.start, bytes).map_err(|errno| (CodeObstacle::Unreadable, errno))?;
    let copy = HugeCopy::new(bytes)?;
    // SAFETY: both have so many bytes; what is read is in memory, and code does not change.
    unsafe { space::copy(first.start, copy.span.start, bytes) };
    copy.replace(first.start)?;
    report.by_copy = report.by_copy.saturating_add(count);
    report.moved(Span { start: first.start, end: first.start.saturating_add(bytes) });
    Ok(())
}

/// Private memory in huge pages, given back when dropped.
struct HugeCopy {
    span: Span,
}

impl HugeCopy {
    /// All zero. A page of each window is touched; where that is no huge one, a collapse makes it: where it can't, or
    /// the control group has no room for one, that says so, and nobody is killed for want of memory.
    fn new(bytes: u64) -> Result<Self, (CodeObstacle, Errno)> {
        let with_room = bytes.saturating_add(WINDOW_BYTES);
        let at = space::map(with_room).map_err(|errno| (CodeObstacle::NoCopy, errno))?;
        let start = at.next_multiple_of(WINDOW_BYTES);
        let end = start.saturating_add(bytes);
        // SAFETY: what was just mapped, and nobody uses.
        unsafe {
            space::unmap(at, start.wrapping_sub(at));
            space::unmap(end, at.saturating_add(with_room).wrapping_sub(end));
        }
        let copy = Self { span: Span { start, end } };
        space::advise_huge(start, bytes);
        let mut all_huge = true;
        for window in (start..end).step_by(WINDOW_BYTES as usize) {
            // SAFETY: within the copy.
            unsafe { space::touch(window) };
            all_huge &= is_huge(window);
        }
        // A collapse has all CPUs put away what they hold back: tens of milliseconds where they are busy.
        if !all_huge {
            sys::collapse(start, bytes).map_err(|errno| (CodeObstacle::NotCollapsed, errno))?;
        }
        Ok(copy)
    }

    /// Puts it in the place of the code that it is a copy of.
    fn replace(self, code: u64) -> Result<(), (CodeObstacle, Errno)> {
        let bytes = self.span.end.wrapping_sub(self.span.start);
        // SAFETY: nobody writes to it any more.
        unsafe { space::make_executable(self.span.start, bytes) }
            .map_err(|errno| (CodeObstacle::NotExecutable, errno))?;
        // SAFETY: the same bytes.
        if let Err(errno) = unsafe { space::move_over(self.span.start, bytes, code) } {
            // The kernel unmaps what was there first, and only then can run out of memory.
            // SAFETY: the copy is still there, and this code is none of what is put there.
            unsafe { space::restore(self.span.start, bytes, code) };
            return Err((CodeObstacle::NotMoved, errno));
        }
        std::mem::forget(self);
        Ok(())
    }
}

/// Whether the first touch of a window brought all of it into memory, which it does in one page only.
fn is_huge(window: u64) -> bool {
    let mut resident = [0];
    let last = window.saturating_add(WINDOW_BYTES - PAGE_BYTES);
    sys::mincore(last, 1, &mut resident).is_ok() && resident[0] & 1 != 0
}

impl Drop for HugeCopy {
    fn drop(&mut self) {
        // SAFETY: its own, which nobody else knows of.
        unsafe { space::unmap(self.span.start, self.span.end.wrapping_sub(self.span.start)) };
    }
}
