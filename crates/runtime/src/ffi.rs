//! The C interface; `include/pt_baker.h` has its contract.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr, CString};

use crate::bake::{BakeError, BakeStats, BakedRegion, Baker, Settings};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// A baker as C sees it.
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct pt_baker(Baker);

/// `pt_baker_region` of the header.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pt_baker_region {
    /// Its first byte.
    pub start: *const u8,
    /// Its bytes.
    pub len: usize,
}

/// `pt_baker_stats` of the header.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pt_baker_stats {
    /// Whole rounds through all regions.
    pub rounds: u64,
    /// Touches.
    pub touches: u64,
    /// Nanoseconds spent touching.
    pub busy_nanos: u64,
    /// Nanoseconds of CPU of the helper thread.
    pub cpu_nanos: u64,
    /// Nanoseconds since the start.
    pub elapsed_nanos: u64,
    /// Kernel calls that failed.
    pub failed_calls: u64,
    /// Error number of the last of these.
    pub last_errno: i32,
    /// CPU that the helper stays on; -1 = any.
    pub cpu: i32,
}

impl From<BakeStats> for pt_baker_stats {
    fn from(stats: BakeStats) -> Self {
        Self {
            rounds: stats.rounds,
            touches: stats.touches,
            busy_nanos: stats.busy_nanos,
            cpu_nanos: stats.cpu_nanos,
            elapsed_nanos: stats.elapsed_nanos,
            failed_calls: stats.failed_calls,
            last_errno: stats.last_errno,
            cpu: stats.cpu,
        }
    }
}

/// Keeps the sentence, sets `errno`.
fn fail(error: &BakeError) -> c_int {
    // A sentence has no NUL; if it had, the part before it would do.
    let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
    ERROR.with(|kept| *kept.borrow_mut() = text);
    let number = match error {
        BakeError::Setting(_) | BakeError::Region { .. } => libc::EINVAL,
        BakeError::Unsupported(_) => libc::ENOTSUP,
    };
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() = number };
    -1
}

impl From<pt_baker_region> for BakedRegion {
    fn from(region: pt_baker_region) -> Self {
        Self { start: region.start as u64, len: region.len as u64 }
    }
}

/// The caller's regions.
///
/// # Safety
/// `regions` points to `count` of them; NULL if there are none.
unsafe fn list(regions: *const pt_baker_region, count: usize) -> Result<Vec<BakedRegion>, BakeError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if regions.is_null() {
        return Err(BakeError::Setting(format!("{count} regions at NULL")));
    }
    // SAFETY: the caller's.
    Ok(unsafe { std::slice::from_raw_parts(regions, count) }.iter().map(|&region| region.into()).collect())
}

fn started(settings: Option<&CStr>, regions: &[BakedRegion]) -> Result<Baker, BakeError> {
    let settings = match settings {
        None => Settings::default(),
        Some(text) => {
            text.to_str().map_err(|_| BakeError::Setting("the settings are no UTF-8 text".into()))?.parse()?
        }
    };
    Baker::start(&settings, regions)
}

/// Starts a baker; see the header.
///
/// # Safety
/// `regions` points to `count` regions; `settings` is NULL or a NUL-terminated text. For the backend `load` the regions
/// stay mapped.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_start(
    regions: *const pt_baker_region,
    count: usize,
    settings: *const c_char,
) -> *mut pt_baker {
    // SAFETY: the caller's.
    let regions = unsafe { list(regions, count) };
    // SAFETY: as above.
    let settings = if settings.is_null() { None } else { Some(unsafe { CStr::from_ptr(settings) }) };
    match regions.and_then(|regions| started(settings, &regions)) {
        Ok(baker) => Box::into_raw(Box::new(pt_baker(baker))),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// What a call on a baker gives to C.
///
/// # Safety
/// `baker` is NULL or from [`pt_baker_start`], and not stopped yet.
unsafe fn with(baker: *const pt_baker, act: impl FnOnce(&Baker) -> Result<(), BakeError>) -> c_int {
    // SAFETY: the caller's.
    let Some(baker) = (unsafe { baker.as_ref() }) else {
        return fail(&BakeError::Setting("the baker is NULL".into()));
    };
    act(&baker.0).map_or_else(|error| fail(&error), |()| 0)
}

/// Other regions; see the header.
///
/// # Safety
/// `baker` is from [`pt_baker_start`] and not stopped yet; `regions` points to `count` regions.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_set_regions(
    baker: *const pt_baker,
    regions: *const pt_baker_region,
    count: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { with(baker, |baker| baker.set_regions(&list(regions, count)?)) }
}

/// One more region; see the header.
///
/// # Safety
/// `baker` is from [`pt_baker_start`] and not stopped yet.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_add(baker: *const pt_baker, region: pt_baker_region) -> c_int {
    // SAFETY: the caller's.
    unsafe { with(baker, |baker| baker.add(region.into())) }
}

/// Takes a region out; see the header.
///
/// # Safety
/// `baker` is from [`pt_baker_start`] and not stopped yet.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_remove(baker: *const pt_baker, region: pt_baker_region) -> c_int {
    // SAFETY: the caller's.
    unsafe { with(baker, |baker| baker.remove(region.into())) }
}

/// What it did so far; see the header.
///
/// # Safety
/// `baker` is from [`pt_baker_start`] and not stopped yet; `stats` points to a structure of the caller's.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_get_stats(baker: *const pt_baker, stats: *mut pt_baker_stats) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        with(baker, |baker| match stats.as_mut() {
            Some(stats) => {
                *stats = baker.stats().into();
                Ok(())
            }
            None => Err(BakeError::Setting("stats is NULL".into())),
        })
    }
}

/// What it is doing; see the header.
///
/// # Safety
/// `baker` is NULL or from [`pt_baker_start`], and not stopped yet.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_state(baker: *const pt_baker) -> *const c_char {
    // SAFETY: the caller's.
    match unsafe { baker.as_ref() } {
        Some(baker) => baker.0.state().name().as_ptr(),
        None => {
            fail(&BakeError::Setting("the baker is NULL".into()));
            std::ptr::null()
        }
    }
}

/// Stops a baker and frees it; see the header.
///
/// # Safety
/// `baker` is NULL or from [`pt_baker_start`], and not used any more; `stats` is NULL or points to a structure of the
/// caller's.
#[no_mangle]
pub unsafe extern "C" fn pt_baker_stop(baker: *mut pt_baker, stats: *mut pt_baker_stats) {
    if baker.is_null() {
        return;
    }
    // SAFETY: the caller's, made by `pt_baker_start`.
    let done = unsafe { Box::from_raw(baker) }.0.stop();
    // SAFETY: the caller's.
    if let Some(stats) = unsafe { stats.as_mut() } {
        *stats = done.into();
    }
}

/// What went wrong last in this thread; see the header.
#[no_mangle]
pub extern "C" fn pt_baker_error() -> *const c_char {
    ERROR.with(|kept| kept.borrow().as_ptr())
}
