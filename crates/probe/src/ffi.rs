//! The C interface; `include/lookaside_probe.h` has its contract.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::time::Duration;

use crate::counter::error::CounterError;
use crate::counter::miss_counter::{MissCounter, MissCounts, ROUNDS};
use crate::counter::verdict::AccessVerdict;
use crate::eviction_sets::TlbLevels;
use crate::metal::{HostMachine, MetalError};
use crate::options::{ProbeOptions, ProbeStep};
use crate::run::probe;

/// Memory for the pages of a calibration; it needs a few MiB, the probe more.
const MEMORY_BYTES: u64 = 256 << 20;
/// How long the TLBs are probed at most.
const PROBE: Duration = Duration::from_secs(30);

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// A counter as C sees it.
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct lookaside_counter {
    counter: RefCell<MissCounter<HostMachine>>,
    /// Kept beside it: the counter is busy while an act runs.
    judged: [[usize; 4]; 3],
}

/// `lookaside_misses` of the header.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lookaside_misses {
    /// Accesses that miss the first level.
    pub l1_misses: usize,
    /// Accesses that miss all levels.
    pub stlb_misses: usize,
    /// Accesses that do now this, now that.
    pub mixed: usize,
    /// Rounds that each access was timed in.
    pub rounds: usize,
}

/// An error number and a sentence.
type ErrnoMessage = (c_int, String);

/// Sets both, gives what the caller returns.
fn failed<T>((number, text): ErrnoMessage, value: T) -> T {
    // A sentence has no NUL but where a file name had one.
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    ERROR.with(|error| *error.borrow_mut() = text);
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() = number };
    value
}

impl From<CounterError> for ErrnoMessage {
    fn from(error: CounterError) -> Self {
        let number = match &error {
            CounterError::Metal(MetalError::Memory { .. }) => libc::ENOMEM,
            CounterError::Metal(_) => libc::ENOTSUP,
            CounterError::Length(_) => libc::EINVAL,
            CounterError::Indistinct(..) => libc::EAGAIN,
        };
        (number, error.to_string())
    }
}

/// Opens a counter; see the header.
///
/// # Safety
/// `machine` is NULL or a NUL-terminated text.
#[no_mangle]
pub unsafe extern "C" fn lookaside_counter_open(
    machine: *const c_char,
    rounds: usize,
    seed: u64,
) -> *mut lookaside_counter {
    // SAFETY: the caller's.
    let path = (!machine.is_null()).then(|| unsafe { CStr::from_ptr(machine) });
    match open(path, rounds, seed) {
        Ok(counter) => Box::into_raw(Box::new(counter)),
        Err(error) => failed(error, std::ptr::null_mut()),
    }
}

fn open(path: Option<&CStr>, rounds: usize, seed: u64) -> Result<lookaside_counter, ErrnoMessage> {
    let refused = |error: MetalError| ErrnoMessage::from(CounterError::Metal(error));
    let known = match path {
        None => None,
        Some(path) => {
            use std::os::unix::ffi::OsStrExt;
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
            let machine = lookaside_machine::load(path).map_err(|e| (libc::EINVAL, e.to_string()))?;
            Some(TlbLevels::of(&machine).map_err(|e| (libc::EINVAL, e))?)
        }
    };
    let mut host = HostMachine::new(MEMORY_BYTES).map_err(refused)?;
    let levels = match known {
        Some(levels) => levels,
        None => probed(&mut host, seed)?,
    };
    let rounds = if rounds == 0 { ROUNDS } else { rounds };
    let counter = MissCounter::calibrate(host, levels, rounds, seed)?;
    let judged = counter.confusion().judged;
    Ok(lookaside_counter { counter: RefCell::new(counter), judged })
}

/// The levels of this machine by timing.
fn probed(host: &mut HostMachine, seed: u64) -> Result<TlbLevels, ErrnoMessage> {
    let options = ProbeOptions { only: Some(ProbeStep::L2), seed, time: Some(PROBE), ..ProbeOptions::default() };
    let report = probe(host, &options, &|| None, &mut |_| ());
    let known = |level: usize| match report.levels.get(level) {
        None => Err((libc::ENOTSUP, format!("level {}: not determined", level + 1))),
        Some(found) => found.geometry.value().cloned().ok_or_else(|| {
            let reason = found.geometry.reason().unwrap_or_default();
            (libc::ENOTSUP, format!("level {}: not determined: {reason}", level + 1))
        }),
    };
    Ok(TlbLevels { first: known(0)?, second: Some(known(1)?) })
}

/// Closes a counter; see the header.
///
/// # Safety
/// `counter` is NULL, or was opened by this thread and not closed yet; no act of it is running.
#[no_mangle]
pub unsafe extern "C" fn lookaside_counter_close(counter: *mut lookaside_counter) {
    if !counter.is_null() {
        // SAFETY: the caller's: it came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(counter) });
    }
}

/// Which pages an act evicts; see the header.
///
/// # Safety
/// As the header says: pointers and lengths, and pages that can be read.
#[no_mangle]
pub unsafe extern "C" fn lookaside_counter_evicted(
    counter: *mut lookaside_counter,
    prime: *const *const c_void,
    n_prime: usize,
    act: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    timed: *const *const c_void,
    n_timed: usize,
    misses: *mut lookaside_misses,
    verdicts: *mut u8,
    extra_ticks: *mut f64,
) -> c_int {
    let act = || {
        if let Some(act) = act {
            // SAFETY: the caller's function, with what it wants to have.
            unsafe { act(context) };
        }
    };
    let places = OutPointers { misses, verdicts, extra_ticks };
    // SAFETY: the caller's lists and places, and pages that can be read.
    unsafe {
        counted(counter, (prime, n_prime), (timed, n_timed), places, |counter, prime, timed| {
            counter.evicted(prime, act, timed)
        })
    }
}

/// Which accesses of a sequence miss; see the header.
///
/// # Safety
/// As the header says: pointers and lengths, and pages that can be read.
#[no_mangle]
pub unsafe extern "C" fn lookaside_counter_count(
    counter: *mut lookaside_counter,
    before: *const *const c_void,
    n_before: usize,
    sequence: *const *const c_void,
    n_sequence: usize,
    misses: *mut lookaside_misses,
    verdicts: *mut u8,
    extra_ticks: *mut f64,
) -> c_int {
    let places = OutPointers { misses, verdicts, extra_ticks };
    // SAFETY: the caller's lists and places, and pages that can be read.
    unsafe {
        counted(counter, (before, n_before), (sequence, n_sequence), places, |counter, before, sequence| {
            counter.count(before, sequence)
        })
    }
}

/// Where results go.
struct OutPointers {
    misses: *mut lookaside_misses,
    verdicts: *mut u8,
    extra_ticks: *mut f64,
}

/// Checks what came from C, counts, and writes the results.
///
/// # Safety
/// The counter is NULL or open, the lists have those lengths, the places are NULL or as long as the second list.
unsafe fn counted(
    counter: *mut lookaside_counter,
    (before, n_before): (*const *const c_void, usize),
    (timed, n_timed): (*const *const c_void, usize),
    places: OutPointers,
    count: impl FnOnce(&mut MissCounter<HostMachine>, &[*const u8], &[*const u8]) -> Result<MissCounts, CounterError>,
) -> c_int {
    let null = |what: &str| failed((libc::EINVAL, format!("{what} is NULL")), -1);
    // SAFETY: the caller's: NULL or open. Shared only, since an act might come here again.
    let Some(counter) = (unsafe { counter.as_ref() }) else { return null("counter") };
    if places.misses.is_null() {
        return null("misses");
    }
    if timed.is_null() {
        return null("the list of timed addresses");
    }
    if before.is_null() && n_before > 0 {
        return null("the list of addresses before");
    }
    let Ok(mut busy) = counter.counter.try_borrow_mut() else {
        return failed((libc::EDEADLK, "the counter is in use: an act must not use it".into()), -1);
    };
    // SAFETY: the caller's lists, of those lengths; an empty one need not exist.
    let (before, timed): (&[*const u8], &[*const u8]) = unsafe {
        let before = if n_before == 0 { &[] } else { std::slice::from_raw_parts(before.cast(), n_before) };
        (before, if n_timed == 0 { &[] } else { std::slice::from_raw_parts(timed.cast(), n_timed) })
    };
    let counted = match count(&mut busy, before, timed) {
        Ok(counted) => counted,
        Err(error) => return failed(error.into(), -1),
    };
    let all = lookaside_misses {
        l1_misses: counted.l1_misses,
        stlb_misses: counted.stlb_misses,
        mixed: counted.mixed,
        rounds: counted.rounds,
    };
    // SAFETY: the caller's places, of the lengths that the header asks for.
    unsafe {
        places.misses.write(all);
        for (i, access) in counted.accesses.iter().enumerate() {
            if !places.verdicts.is_null() {
                places.verdicts.add(i).write(code(access.verdict));
            }
            if !places.extra_ticks.is_null() {
                places.extra_ticks.add(i).write(access.extra_ticks);
            }
        }
    }
    0
}

/// The header's numbers.
fn code(verdict: AccessVerdict) -> u8 {
    match verdict {
        AccessVerdict::Hit => 0,
        AccessVerdict::L1Miss => 1,
        AccessVerdict::StlbMiss => 2,
        AccessVerdict::Mixed => 3,
    }
}

/// The errors of a counter; see the header.
///
/// # Safety
/// `counter` is NULL or open; `judged` is NULL or has room for 3 times 4 numbers.
#[no_mangle]
pub unsafe extern "C" fn lookaside_counter_confusion(
    counter: *const lookaside_counter,
    judged: *mut [usize; 4],
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { counter.as_ref() } {
        Some(counter) if !judged.is_null() => {
            for (row, counts) in counter.judged.iter().enumerate() {
                // SAFETY: the caller's room.
                unsafe { judged.add(row).write(*counts) };
            }
            0
        }
        _ => failed((libc::EINVAL, "counter or judged is NULL".into()), -1),
    }
}

/// The last failure; see the header.
#[no_mangle]
pub extern "C" fn lookaside_probe_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}
