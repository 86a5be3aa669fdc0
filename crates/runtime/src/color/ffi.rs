//! The C interface; `include/tlb_malloc.h` has its contract.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;

use lookaside_machine::{nearest_preset, ColorLevel, CpuId, PageSize, Partitions};

use super::error::HeapError;
use super::forks;
use super::options::HeapOptions;
use super::pool::{BadFree, ColorStats};
use super::shared::SharedHeap;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

const CHECKED: c_uint = 1;
const LOCKED: c_uint = 2;
const ONE_TASK: c_uint = 4;

/// A heap as C sees it.
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct tlb_heap {
    heap: SharedHeap,
    /// Of the colours, by number.
    names: Vec<String>,
}

/// Keeps the sentence, sets `errno`.
fn fail(error: &HeapError) {
    let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
    ERROR.with(|kept| *kept.borrow_mut() = text);
    set_errno(match error {
        HeapError::Asked(_) => libc::EINVAL,
        HeapError::System(_) => libc::ENOMEM,
    });
}

fn set_errno(number: c_int) {
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() = number };
}

/// A pointer that was never given out: the program is wrong, and goes on no further. Nothing is allocated for the line.
fn end(what: &str, bytes: *const c_void, fault: BadFree) -> ! {
    use std::io::Write;
    let mut line = [0u8; 200];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "{what}({bytes:p}): {fault}");
    let left = rest.len();
    let len = line.len() - left;
    // SAFETY: a buffer of that size.
    unsafe {
        libc::write(2, line.as_ptr().cast(), len);
        libc::abort()
    }
}

impl tlb_heap {
    fn new(options: &HeapOptions, one_task: bool) -> Result<Box<Self>, HeapError> {
        let names = options.colors.iter().map(|color| color.name.clone()).collect();
        // SAFETY: the header's contract for TLB_ONE_TASK.
        let heap = if one_task { unsafe { SharedHeap::without_lock(options)? } } else { SharedHeap::new(options)? };
        let heap = Box::new(Self { heap, names });
        forks::add(&heap.heap);
        Ok(heap)
    }

    /// NULL with `errno` where there is no memory.
    fn given(&self, start: *mut u8, color: c_uint) -> *mut c_void {
        if start.is_null() {
            set_errno(if color as usize >= self.names.len() { libc::EINVAL } else { libc::ENOMEM });
        }
        start.cast()
    }
}

impl Drop for tlb_heap {
    fn drop(&mut self) {
        forks::remove(&self.heap);
    }
}

/// The heap of the paper's calls.
struct PaperHeap {
    heap: Box<tlb_heap>,
    /// Colours of up to a page: M − R.
    small: u32,
    page_bytes: usize,
}

static PAPER: OnceLock<PaperHeap> = OnceLock::new();

/// The levels of this machine, from the first that has sets on.
fn levels_here() -> Result<Vec<ColorLevel>, HeapError> {
    let asked = |e: lookaside_machine::MachineError| HeapError::Asked(e.to_string());
    let machine = match std::env::var_os("LOOKASIDE_MACHINE").filter(|name| !name.is_empty()) {
        None => {
            let cpu = CpuId::from_cpuinfo(lookaside_host::CpuInfo::here().text());
            lookaside_machine::preset(nearest_preset(&cpu).0).map_err(asked)?
        }
        Some(name) => match name.to_str().and_then(|name| lookaside_machine::preset(name).ok()) {
            Some(machine) => machine,
            None => lookaside_machine::load(Path::new(&name)).map_err(asked)?,
        },
    };
    let mut levels = machine.color_levels(PageSize::K4);
    match levels.iter().position(|level| level.sets > 1) {
        Some(first) => Ok(levels.split_off(first)),
        None => Err(HeapError::Asked(format!("{}: no data TLB for 4K pages has sets to colour", machine.name))),
    }
}

fn init(reserved_sets: u32) -> Result<(), HeapError> {
    let again = || HeapError::Asked("tlb_malloc_init was called before".into());
    if PAPER.get().is_some() {
        return Err(again());
    }
    let options = HeapOptions::paper(PageSize::K4, levels_here()?, reserved_sets)?;
    let small = options.levels.first().map_or(0, |level| level.sets) - reserved_sets;
    let heap = tlb_heap::new(&options, false)?;
    PAPER.set(PaperHeap { heap, small, page_bytes: options.page_size.bytes() as usize }).map_err(|_| again())
}

/// The paper's start; see the header.
#[no_mangle]
pub extern "C" fn tlb_malloc_init(reserved_sets: c_uint) -> c_int {
    match init(reserved_sets) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// The paper's malloc; see the header.
#[no_mangle]
pub extern "C" fn tlb_malloc(size: usize, color: c_uint) -> *mut c_void {
    let Some(paper) = PAPER.get() else {
        fail(&HeapError::Asked("tlb_malloc_init was not called".into()));
        return null_mut();
    };
    let number = match size <= paper.page_bytes {
        true if color < paper.small => color,
        true => u32::MAX,
        false => color.saturating_add(paper.small),
    };
    paper.heap.given(paper.heap.heap.malloc(size, number), number)
}

/// The paper's free; see the header.
///
/// # Safety
/// `ptr` came from [`tlb_malloc`] and nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn tlb_free(ptr: *mut c_void, color: c_uint) {
    if ptr.is_null() {
        return;
    }
    let Some(paper) = PAPER.get() else { end("tlb_free", ptr, BadFree::Foreign) };
    let Some(own) = paper.heap.heap.color_of(ptr.cast()) else { end("tlb_free", ptr, BadFree::Foreign) };
    let said = if own < paper.small { color } else { color.saturating_add(paper.small) };
    if said != own {
        let number = if own < paper.small { own } else { own - paper.small };
        end("tlb_free", ptr, BadFree::Color(number));
    }
    // SAFETY: the caller's.
    if let Err(fault) = unsafe { paper.heap.heap.free(ptr.cast(), Some(own)) } {
        end("tlb_free", ptr, fault);
    }
}

/// A heap of a file's partitions; see the header.
///
/// # Safety
/// `partitions` is NULL or a NUL-terminated text.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_create(partitions: *const c_char, flags: c_uint) -> *mut tlb_heap {
    let made = (|| {
        if partitions.is_null() || flags & !(CHECKED | LOCKED | ONE_TASK) != 0 {
            return Err(HeapError::Asked(format!("tlb_heap_create: no file, or unknown flags {flags:#x}")));
        }
        // SAFETY: the caller's.
        let path = unsafe { CStr::from_ptr(partitions) };
        let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path.to_bytes());
        let file = Partitions::load(path).map_err(|e| HeapError::Asked(e.to_string()))?;
        let mut options = HeapOptions::of(&file);
        options.checked = flags & CHECKED != 0;
        options.locked = flags & LOCKED != 0;
        tlb_heap::new(&options, flags & ONE_TASK != 0)
    })();
    made.map_or_else(
        |error| {
            fail(&error);
            null_mut()
        },
        Box::into_raw,
    )
}

/// Ends a heap; see the header.
///
/// # Safety
/// `heap` is NULL or from [`tlb_heap_create`], and neither it nor what came from it is used any more.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_destroy(heap: *mut tlb_heap) {
    if !heap.is_null() {
        // SAFETY: the caller's, made by `tlb_heap_create`.
        drop(unsafe { Box::from_raw(heap) });
    }
}

/// Number of a colour; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `name` is a NUL-terminated text.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_color(heap: *const tlb_heap, name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let (heap, name) = unsafe { (&*heap, CStr::from_ptr(name).to_bytes()) };
    heap.names.iter().position(|known| known.as_bytes() == name).map_or_else(
        || {
            let name = String::from_utf8_lossy(name).into_owned();
            fail(&HeapError::Asked(format!("{name:?} is no colour of the heap; known: {}", heap.names.join(", "))));
            -1
        },
        |number| number as c_int,
    )
}

/// As malloc; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`].
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_malloc(heap: *mut tlb_heap, size: usize, color: c_uint) -> *mut c_void {
    // SAFETY: the caller's.
    let heap = unsafe { &*heap };
    heap.given(heap.heap.malloc(size, color), color)
}

/// As calloc; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`].
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_calloc(heap: *mut tlb_heap, count: usize, size: usize, color: c_uint) -> *mut c_void {
    // SAFETY: the caller's.
    let heap = unsafe { &*heap };
    heap.given(heap.heap.calloc(count, size, color), color)
}

/// As realloc; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `ptr` is NULL or came from it.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_realloc(
    heap: *mut tlb_heap,
    ptr: *mut c_void,
    size: usize,
    color: c_uint,
) -> *mut c_void {
    // SAFETY: the caller's.
    let heap = unsafe { &*heap };
    // SAFETY: the caller's.
    match unsafe { heap.heap.realloc(ptr.cast(), size, color) } {
        Ok(new) => heap.given(new, color),
        Err(fault) => end("tlb_heap_realloc", ptr, fault),
    }
}

/// As aligned_alloc; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`].
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_aligned_alloc(
    heap: *mut tlb_heap,
    alignment: usize,
    size: usize,
    color: c_uint,
) -> *mut c_void {
    // SAFETY: the caller's.
    let heap = unsafe { &*heap };
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    heap.given(heap.heap.aligned(alignment, size, color), color)
}

/// As malloc_usable_size; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `ptr` is NULL or came from it.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_usable_size(heap: *mut tlb_heap, ptr: *const c_void) -> usize {
    if ptr.is_null() {
        return 0;
    }
    // SAFETY: the caller's.
    match unsafe { &*heap }.heap.usable_size(ptr.cast_mut().cast()) {
        Ok(bytes) => bytes,
        Err(fault) => end("tlb_heap_usable_size", ptr, fault),
    }
}

/// As free; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `ptr` is NULL, or came from it and nobody uses it any more.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_free(heap: *mut tlb_heap, ptr: *mut c_void) {
    // SAFETY: the caller's.
    if let Err(fault) = unsafe { (*heap).heap.free(ptr.cast(), None) } {
        end("tlb_heap_free", ptr, fault);
    }
}

/// Counts; see the header. `ColorStats` has the layout of `tlb_heap_stats`.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `stats` is NULL or points to a structure of the caller's.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_get_stats(heap: *mut tlb_heap, color: c_uint, stats: *mut ColorStats) -> c_int {
    // SAFETY: the caller's.
    match unsafe { ((*heap).heap.stats(color), stats.as_mut()) } {
        (Some(found), Some(stats)) => {
            *stats = found;
            0
        }
        _ => {
            fail(&HeapError::Asked(format!("no colour {color}, or stats is NULL")));
            -1
        }
    }
}

/// Constant-time check; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`].
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_is_sound(heap: *mut tlb_heap) -> c_int {
    // SAFETY: the caller's.
    unsafe { &*heap }.heap.is_sound().into()
}

/// What [`tlb_heap_walk`] calls.
pub type Each = unsafe extern "C" fn(*mut c_void, usize, c_int, *mut c_void);

/// All blocks; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `each` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn tlb_heap_walk(
    heap: *mut tlb_heap,
    color: c_uint,
    each: Option<Each>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    let heap = unsafe { &*heap };
    heap.heap
        .walk(color, |ptr, size, in_use| {
            if let Some(each) = each {
                // SAFETY: the caller's.
                unsafe { each(ptr.cast(), size, in_use.into(), context) };
            }
        })
        .into()
}

/// A stack; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `size` points to a number.
#[no_mangle]
pub unsafe extern "C" fn tlb_stack_create(heap: *mut tlb_heap, size: *mut usize, color: c_uint) -> *mut c_void {
    // SAFETY: the caller's.
    let (heap, size) = unsafe { (&*heap, &mut *size) };
    match heap.heap.stack(*size, color) {
        Ok((lowest, bytes)) => {
            *size = bytes;
            lowest.cast()
        }
        Err(error) => {
            fail(&error);
            set_errno(if color as usize >= heap.names.len() { libc::EINVAL } else { libc::ENOMEM });
            null_mut()
        }
    }
}

/// Gives a stack back; see the header.
///
/// # Safety
/// `lowest` is NULL or from [`tlb_stack_create`], and no thread is on it.
#[no_mangle]
pub unsafe extern "C" fn tlb_stack_destroy(heap: *mut tlb_heap, lowest: *mut c_void) {
    if lowest.is_null() {
        return;
    }
    // SAFETY: the caller's.
    if unsafe { (*heap).heap.end_stack(lowest.cast()) }.is_err() {
        end("tlb_stack_destroy", lowest, BadFree::NoStart);
    }
}

/// A copy of data; see the header.
///
/// # Safety
/// `heap` is from [`tlb_heap_create`]; `data` points to `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn tlb_section_copy(
    heap: *mut tlb_heap,
    data: *const c_void,
    size: usize,
    color: c_uint,
) -> *mut c_void {
    // SAFETY: the caller's.
    let copy = unsafe { tlb_heap_malloc(heap, size, color) };
    if !copy.is_null() {
        // SAFETY: as many bytes as the caller's, just allocated.
        unsafe { std::ptr::copy_nonoverlapping(data.cast::<u8>(), copy.cast(), size) };
    }
    copy
}

/// What went wrong last in this thread; see the header.
#[no_mangle]
pub extern "C" fn tlb_error() -> *const c_char {
    ERROR.with(|kept| kept.borrow().as_ptr())
}
