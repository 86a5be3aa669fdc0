//! What the kernels and programs touch on their paths: the constants that no source gives.

use lookaside_trace::Kind;
use lookaside_workloads::switching::{Path, Segment};

/// Bytes that a pipe holds: a page (Linux 2.4, `PIPE_BUF`) [recalled].
pub(super) const PIPE_BYTES: u32 = 4096;
/// Bytes that a UNIX socket takes before its writer waits: Linux 2.4's usual send buffer, 64 KiB [recalled].
pub(super) const SOCKET_BYTES: u32 = 64 << 10;
/// Where in its data a program has the array that it adds up, and its buffer.
const ARRAY: u32 = 16 << 10;

/// Where the kernel keeps what is in a pipe or a socket.
const BUFFER: u32 = 0x0018_0000;

/// Lines of kernel code of a pipe's `write` and `read`. Fitted on Table 1, pipe, original: 257 µs.
const PIPE_CODE: u32 = 204;
/// Cycles of a pipe's `write` and `read`, and of the program around them. Fitted on Figure 2, 57 times at two processes.
const PIPE_CYCLES: f64 = 1040.0;
/// Cycles of a switch without misses. Fitted on Table 1, pipe, fast: 15.4 µs.
const SCHEDULE_CYCLES: f64 = 430.0;
/// Lines of kernel code of an L4 IPC. Fitted on Figure 5, standard: 135 µs.
const IPC_CODE: u32 = 125;
/// Cycles of an L4 IPC one way. Fitted on Figure 5, fast, at its least: 10 µs.
const IPC_CYCLES: f64 = 980.0;
/// The paths of Linux: seeds differ so that they lie apart.
pub(super) struct Linux {
    /// Put to sleep, choose another, switch, wake up.
    pub(super) schedule: Path,
    /// `write` to and `read` from a pipe.
    pub(super) pipe: Path,
    /// A system call that does next to nothing: `sched_yield`, `fcntl`.
    pub(super) small_call: Path,
    /// The benchmark's loop.
    pub(super) program: Path,
}

impl Linux {
    pub(super) fn new() -> Self {
        Self {
            schedule: Path::kernel(1, 40, 10, 10, SCHEDULE_CYCLES),
            pipe: Path::kernel(2, PIPE_CODE, 14, 18, PIPE_CYCLES),
            small_call: Path::kernel(3, 12, 2, 4, 60.0),
            program: Path::program(6, 6, 2, 3, 70.0),
        }
    }

    /// As much again as a pipe's, elsewhere: what a UNIX socket takes. Fitted on Table 1, unix, original, which is twice the pipe's.
    pub(super) fn second_half_of_socket() -> Path {
        Path::kernel(4, PIPE_CODE, 14, 18, PIPE_CYCLES + SCHEDULE_CYCLES)
    }
}

/// A round of `lat_ctx` adds up so many bytes.
pub(super) fn array(bytes: u32) -> Path {
    Path::bytes(Kind::Load, Segment::Data, ARRAY, bytes, f64::from(bytes / 4))
}

/// A page, by its number, is copied between a program's buffer and the kernel's: four bytes in four cycles (assumed).
pub(super) fn copy(page: u32, into_kernel: bool) -> [Path; 2] {
    let (program, kernel) = if into_kernel { (Kind::Load, Kind::Store) } else { (Kind::Store, Kind::Load) };
    let at = page * PIPE_BYTES;
    [
        Path::bytes(program, Segment::Data, ARRAY + at, PIPE_BYTES, f64::from(PIPE_BYTES)),
        Path::bytes(kernel, Segment::Kernel, BUFFER + at, PIPE_BYTES, 0.0),
    ]
}

/// L4: the kernel's IPC path, and the threads' few lines.
pub(super) fn ipc() -> [Path; 2] {
    [Path::kernel(5, IPC_CODE, 6, 8, IPC_CYCLES), Path::program(5, 0, 1, 3, 20.0)]
}

/// What the kernel does on a fault that loads an entry of the caching page directory (assumed).
pub(super) fn fault() -> Path {
    Path::kernel(6, 24, 4, 4, 150.0)
}

/// What the model was told.
pub(super) fn assumptions() -> Vec<String> {
    vec![
        "costs are the paper's section 2: a line 70 cycles, a walk 45 (a level 22.5), a flush 1,000 cycles and 66.4 more a dirty line, which makes the \
         18,000 of an all-dirty 8 KiB cache and the 75,000 of the paper's worst case; a dirty line that another puts out costs those 66.4 too (assumed: the \
         memory does one thing at a time)"
            .into(),
        format!(
            "footprints are assumed, in lines of 32 bytes: a switch 40 of kernel code, 10 of its data, 10 of the process's; a pipe's write and read {PIPE_CODE} (fitted on Table \
             1, pipe, original), 14, 18; a call that does little 12, 2, 4; the program 6 of code, 6 of the library in 2 pages, 3 of stack, 4 of data. Every other line of data is stored \
             to. The kernel is mapped by sections"
        ),
        format!(
            "instructions: a pipe's write and read {PIPE_CYCLES} cycles (fitted on Figure 2, 57 times), a switch {SCHEDULE_CYCLES} (fitted on Table 1, pipe, fast), the program 70. A UNIX \
             socket is taken to be two pipes' path, since its original value is twice the pipe's. lat_ctx takes off what one process alone takes for the pipe and the array, as lmbench does"
        ),
        format!(
            "L4: an IPC one way touches {IPC_CODE} lines of kernel code (fitted on Figure 5, standard), 6 of its data, 8 of the thread's, and takes {IPC_CYCLES} cycles (fitted on Figure 5, fast, least); 12 \
             lines of the program"
        ),
        "a fault that loads an entry of the caching page directory: 150 cycles, 24 lines of code, 8 of data (assumed). Victims among domains: free ones, then clean ones, then round robin. Nothing \
         else runs: no timer, no other process"
            .into(),
    ]
}
