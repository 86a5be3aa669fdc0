//! What happens in the program's own threads: before `main`, after a fork, at exit.

use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

use lookaside_runtime::bake::freestanding::HelperState;
use lookaside_runtime::bake::PreloadSettings;
use lookaside_runtime::hugepages::remote_collapse::VALUE;
use lookaside_runtime::hugepages::CodeBudget;

use crate::code::{self, CodeOrder};
use crate::cpus::number;
use crate::helper_memory::{self, BakerMemory, BakerPlan};
use crate::remote_collapse::CollapserMemory;
use crate::sys::Errno;
use crate::{baker, remote_collapse, sys};

/// The memory of this process; null = nothing is baked.
static BAKER: AtomicPtr<BakerMemory> = AtomicPtr::new(std::ptr::null_mut());
/// What the thread that makes huge pages has; null = there is none.
static COLLAPSER: AtomicPtr<CollapserMemory> = AtomicPtr::new(std::ptr::null_mut());

/// Called by the loader, before the program's `main`.
#[used]
#[link_section = ".init_array"]
static BEGIN: extern "C" fn() = begin;

/// Called when the program exits, unless it does so by `_exit`.
#[used]
#[link_section = ".fini_array"]
static END: extern "C" fn() = end;

/// A variable of the environment.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    words(name).map(CStr::to_bytes)
}

/// The same, as the environment has it.
fn words(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: before `main` nobody changes the environment.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: the environment's own text, which stays as long as it is looked at here.
    Some(unsafe { CStr::from_ptr(value) })
}

extern "C" fn begin() {
    // Before there are helpers: where there are other threads, code stays as it is.
    if let Some(plan) = code_plan() {
        code::begin(&plan);
    }
    let memory = baker_plan().and_then(BakerMemory::new);
    let collapser = wants_collapser().and_then(|()| helper_memory::map::<CollapserMemory>());
    if memory.is_none() && collapser.is_none() {
        return;
    }
    BAKER.store(memory.unwrap_or(std::ptr::null_mut()), Ordering::Release);
    COLLAPSER.store(collapser.unwrap_or(std::ptr::null_mut()), Ordering::Release);
    start();
    // SAFETY: registers a function that lives as long as the program: the library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// The variable's text, read; what is wrong with it is said. `lookaside run` has checked it; by hand it may be
/// anything.
fn read<T>(name: &CStr, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
    let text = variable(name).filter(|text| !text.is_empty())?;
    let text = std::str::from_utf8(text).map_err(|_| "no UTF-8 text".to_string());
    match text.and_then(read) {
        Ok(value) => Some(value),
        Err(why) => {
            let line = format!("lookaside: {}: {why}; the program runs without\n", name.to_string_lossy());
            // Nothing to do where it can't be said.
            let _ = sys::write(2, line.as_bytes());
            None
        }
    }
}

/// What is to be baked, and how.
fn baker_plan() -> Option<BakerPlan> {
    let baker = read(c"LOOKASIDE_BAKE", |text| text.parse::<PreloadSettings>().map_err(|e| e.to_string()))?;
    let mut plan = BakerPlan { baker, baker_text: [0; 128], start_cpu: sys::current_cpu(), stats_path: [0; 4096] };
    let text = plan.baker.to_string();
    plan.baker_text.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    let path = variable(c"LOOKASIDE_BAKE_STATS").filter(|path| path.len() < plan.stats_path.len()).unwrap_or_default();
    plan.stats_path.iter_mut().zip(path).for_each(|(to, from)| *to = *from);
    Some(plan)
}

/// How much code is to be on huge pages.
fn code_plan() -> Option<CodeOrder> {
    let budget = read(c"LOOKASIDE_CODE", |text| text.parse::<CodeBudget>().map_err(|e| e.to_string()))?;
    let path = |name| words(name).filter(|path| !path.is_empty());
    let (weights, report) = (path(c"LOOKASIDE_CODE_WEIGHTS"), path(c"LOOKASIDE_CODE_REPORT"));
    let harmless_filters = variable(c"LOOKASIDE_CODE_FILTERS").and_then(number);
    Some(CodeOrder { budget, weights, report, harmless_filters })
}

/// Whether there is to be a thread that makes huge pages.
fn wants_collapser() -> Option<()> {
    read(c"LOOKASIDE_HUGEPAGES", |text| match text {
        VALUE => Ok(()),
        other => Err(format!("`{other}`: want {VALUE}, for lookaside hugepages run")),
    })
}

/// Starts the helpers; where the system refuses a thread, nothing is baked, or nobody takes orders.
fn start() {
    let (memory, collapser) = (BAKER.load(Ordering::Acquire), COLLAPSER.load(Ordering::Acquire));
    if !memory.is_null() {
        // SAFETY: the memory is never unmapped.
        let counters = unsafe { &(*memory).counters };
        counters.reset(sys::now_nanos());
        if let Err(errno) = spawn(memory, baker::main) {
            counters.errno.store(errno.into_raw(), Ordering::Relaxed);
            counters.set_state(HelperState::Refused);
        }
    }
    if !collapser.is_null() {
        // Whoever has orders finds nobody, and says so.
        let _ = spawn(collapser, remote_collapse::main);
    }
}

/// Starts a helper that has this memory.
fn spawn<T>(own: *mut T, entry: extern "C" fn(*mut T) -> !) -> Result<(), Errno> {
    let mask = sys::block_signals();
    // SAFETY: stack, block and buffers are this helper's alone: there is one of it a process, and a forked child's
    // memory is its own.
    let started = unsafe { sys::spawn(helper_memory::stack_end(own), helper_memory::block(own), entry, own) };
    sys::set_signal_mask(mask);
    started
}

/// In a forked child, where no helper is: threads are not inherited. Only system calls may be made here.
extern "C" fn forked() {
    start();
}

extern "C" fn end() {
    let memory = BAKER.load(Ordering::Acquire);
    if memory.is_null() {
        return;
    }
    // SAFETY: the plan never changes, the counters are atomic.
    let (plan, counters) = unsafe { (&(*memory).plan, &(*memory).counters) };
    let Ok(path) = CStr::from_bytes_until_nul(&plan.stats_path) else { return };
    if path.is_empty() {
        return;
    }
    let Some(line) = plan.line(counters, sys::now_nanos()) else { return };
    if let Ok(file) = sys::open(libc::AT_FDCWD, path, libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT) {
        // A full disk costs the statistics.
        let _ = sys::write(file, line.bytes());
        sys::close(file);
    }
}
