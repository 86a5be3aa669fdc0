//! The thread that makes huge pages of the program's memory, and small ones again, when it is ordered to from outside
//! ([`lookaside_runtime::hugepages::remote_collapse`]). Which, it is told; it chooses nothing. Nothing here allocates,
//! panics or unwinds.

use lookaside_runtime::hugepages::remote_collapse::{CollapseAnswer, ANSWERS, COLLAPSER, ORDERS, SPLIT};
use lookaside_runtime::hugepages::{LEAST_PAUSE, WINDOW_BYTES};

use crate::baker::SETTLE_NANOS;
use crate::maps::{self, Span, TEXT_BYTES};
use crate::program::{self, PreloadedProcess};
use crate::sys::{self, Errno};

/// So often it is looked whether the program is still there.
const LOOK_NANOS: u64 = 1_000_000_000;

/// What the thread writes to. All zero at first.
#[repr(C)]
pub(crate) struct CollapserMemory {
    text: [u8; TEXT_BYTES],
}

/// The thread's first and last function. Why it ends is seen from outside by its pipes, which end with it.
pub(crate) extern "C" fn main(buffers: *mut CollapserMemory) -> ! {
    // SAFETY: the buffers are never unmapped, and this thread's alone.
    let _ = unsafe { take_orders(&mut (*buffers).text) };
    program::leave()
}

/// Until the program is over, or the system refuses a call.
fn take_orders(text: &mut [u8]) -> Result<(), Errno> {
    sys::leave_files()?;
    sys::lower(COLLAPSER);
    sys::sleep_nanos(SETTLE_NANOS);
    let ([orders, _], [_, answers]) = (sys::pipe()?, sys::pipe()?);
    if [orders, answers] != [ORDERS[0], ANSWERS[1]] {
        return Err(Errno::EBADF);
    }
    let program = PreloadedProcess::open()?;
    loop {
        let ordered = sys::wait_readable(orders, LOOK_NANOS)?;
        if program.is_over(text)? {
            return Ok(());
        }
        let mut order = [0; size_of::<u64>()];
        // An order may have been taken back meanwhile.
        if !ordered || sys::read(orders, &mut order) != Ok(order.len()) {
            continue;
        }
        let began = sys::now_nanos();
        let answer = make(u64::from_ne_bytes(order), &program, text);
        // Where nobody reads answers any more, there is nobody to tell.
        let _ = sys::write(answers, answer.to_bytes().as_flattened());
        let pause = sys::now_nanos().saturating_sub(began);
        sys::sleep_nanos(pause.max(LEAST_PAUSE.as_nanos() as u64));
    }
}

/// Makes a window one huge page, or splits that into small ones, if it is a window.
fn make(order: u64, program: &PreloadedProcess, text: &mut [u8]) -> CollapseAnswer {
    let (mut errno, mut nanos) = (libc::EINVAL, 0);
    let window = order & !SPLIT;
    if is_window(window, program, text) == Ok(true) {
        let began = sys::now_nanos();
        let done = match order & SPLIT {
            0 => sys::collapse(window, WINDOW_BYTES),
            _ => sys::split(window),
        };
        errno = done.map_or_else(Errno::into_raw, |()| 0);
        nanos = sys::now_nanos().saturating_sub(began);
    }
    CollapseAnswer { start: order, errno, nanos }
}

/// Whether it begins a window that lies whole in one mapping of private anonymous memory now.
fn is_window(start: u64, program: &PreloadedProcess, text: &mut [u8]) -> Result<bool, Errno> {
    let Some(end) = start.checked_add(WINDOW_BYTES).filter(|_| start.is_multiple_of(WINDOW_BYTES)) else {
        return Ok(false);
    };
    let holds = |mapping: Span| mapping.start <= start && end <= mapping.end;
    let mut found = false;
    let list = program.file(c"maps")?;
    let read = maps::each_line(list, text, |line| found |= maps::anonymous(line).is_some_and(holds));
    sys::close(list);
    read.map(|()| found)
}
