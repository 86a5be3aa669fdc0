//! What happens in the program's own threads: before `main`, after a fork, at exit.

use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicPtr, Ordering};

use lookaside_runtime::bake::raw::State;
use lookaside_runtime::bake::Unmodified;

use crate::area::{Area, Plan};
use crate::{helper, sys};

/// The area of this process; null = nothing is baked.
static AREA: AtomicPtr<Area> = AtomicPtr::new(std::ptr::null_mut());

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
    // SAFETY: before `main` nobody changes the environment.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: the environment's own text, which stays as long as it is looked at here.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

extern "C" fn begin() {
    let Some(text) = variable(c"LOOKASIDE_BAKE").filter(|text| !text.is_empty()) else { return };
    // `lookaside run` has checked it; by hand it may be anything.
    let read = std::str::from_utf8(text).map_err(|_| "no UTF-8 text".to_string());
    let baker = match read.and_then(|text| text.parse::<Unmodified>().map_err(|e| e.to_string())) {
        Ok(baker) => baker,
        Err(why) => {
            let line = format!("lookaside: LOOKASIDE_BAKE: {why}; the program runs without\n");
            // Nothing to do where it can't be said.
            let _ = sys::write(2, line.as_bytes());
            return;
        }
    };
    let mut plan = Plan { baker, baker_text: [0; 128], start_cpu: sys::current_cpu(), stats_path: [0; 4096] };
    let text = plan.baker.to_string();
    plan.baker_text.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    let path = variable(c"LOOKASIDE_BAKE_STATS").filter(|path| path.len() < plan.stats_path.len()).unwrap_or_default();
    plan.stats_path.iter_mut().zip(path).for_each(|(to, from)| *to = *from);
    let Some(area) = Area::new(plan) else { return };
    AREA.store(area, Ordering::Release);
    start(area);
    // SAFETY: registers a function that lives as long as the program: the library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// Starts the helper; where the system refuses a thread, nothing is baked.
fn start(area: *mut Area) {
    // SAFETY: the area is never unmapped.
    let counters = unsafe { &(*area).counters };
    counters.reset(sys::now_nanos());
    let mask = sys::block_signals();
    // SAFETY: stack, block and buffers are this helper's alone: there is one a process, and a forked child's memory is its own.
    let started = unsafe { sys::spawn(Area::stack_end(area), Area::block(area), helper::main, area) };
    sys::set_signal_mask(mask);
    if let Err(errno) = started {
        counters.errno.store(errno.into_raw(), Ordering::Relaxed);
        counters.set_state(State::Refused);
    }
}

/// In a forked child, where no helper is: threads are not inherited. Only system calls may be made here.
extern "C" fn forked() {
    let area = AREA.load(Ordering::Acquire);
    if !area.is_null() {
        start(area);
    }
}

extern "C" fn end() {
    let area = AREA.load(Ordering::Acquire);
    if area.is_null() {
        return;
    }
    // SAFETY: the plan never changes, the counters are atomic.
    let (plan, counters) = unsafe { (&(*area).plan, &(*area).counters) };
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
