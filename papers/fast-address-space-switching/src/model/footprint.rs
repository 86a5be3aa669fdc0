//! What the kernels and programs touch on their paths: the constants that no source gives.

use crate::benchmarks::{CodePath, MemorySegment};

/// Pages that a pipe holds (Linux 2.4, `PIPE_BUF`) [recalled].
pub(super) const PIPE_PAGES: u32 = 1;
/// Pages that a UNIX socket takes before its writer waits: Linux 2.4's usual send buffer, 64 KiB [recalled].
pub(super) const SOCKET_PAGES: u32 = 16;
/// Pages that a UNIX socket takes as one message: half of that (Linux 2.4.0, `unix_stream_sendmsg`).
pub(super) const SOCKET_CHUNK_PAGES: u32 = 8;
/// Round trips of a pipe that one of a UNIX socket is taken for. Fitted on Table 1, unix: both values are twice the
/// pipe's. Who waits for an answer is woken too when its message is taken, and may run for nothing (Linux 2.4.0,
/// `unix_write_space`).
pub(super) const SOCKET_TRIPS: usize = 2;
/// Pages that lmbench's programs write from, and read to, one after the other: 64 KiB (lmbench 2, `XFERSIZE`).
pub(super) const TRANSFER_PAGES: u32 = 16;
/// Calls of `fcntl` that each process makes in a round (lmbench 2, `lat_fcntl.c`: two locks, each waited for and
/// released).
pub(super) const FCNTL_CALLS: usize = 4;
/// Where in its data a program has the array that it adds up, and its buffer.
const ARRAY: u32 = 16 << 10;

/// Where the kernel keeps what is in a pipe or a socket.
const BUFFER: u32 = 0x0018_0000;
/// Where it has the page tables that a fork copies, and where the copy is.
const TABLES: (u32, u32) = (0x0020_0000, 0x0020_2000);
/// Where it has the pages of files, and pages that it has just got.
const FILE_PAGES: u32 = 0x0030_0000;
const NEW_PAGES: u32 = 0x0040_0000;
const PAGE_BYTES: u32 = 4096;

/// Lines of kernel code of a pipe's `write` and `read`. Fitted on Table 1, pipe, original: 257 µs.
const PIPE_CODE: u32 = 168;
/// Cycles of a pipe's `write` and `read`, and of the program around them. Fitted on Figure 2, 57 times at two
/// processes.
const PIPE_CYCLES: f64 = 1040.0;
/// Cycles of a switch without misses. Fitted on Table 1, pipe, fast: 15.4 µs.
const SCHEDULE_CYCLES: f64 = 430.0;
/// Lines of kernel code of an L4 IPC. Fitted on Figure 5, standard: 135 µs.
const IPC_CODE: u32 = 110;
/// Cycles of an L4 IPC one way. Fitted on Figure 5, fast, at its least: 10 µs.
const IPC_CYCLES: f64 = 980.0;
/// The paths of Linux: seeds differ so that they lie apart.
pub(super) struct LinuxPaths {
    /// Put to sleep, choose another, switch, wake up.
    pub(super) schedule: CodePath,
    /// `write` to and `read` from a pipe.
    pub(super) pipe: CodePath,
    /// A system call that does next to nothing: `sched_yield`, `fcntl`.
    pub(super) small_call: CodePath,
    /// The benchmark's loop.
    pub(super) program: CodePath,
}

impl LinuxPaths {
    pub(super) fn new() -> Self {
        Self {
            schedule: CodePath::kernel(1, 40, 10, 10, SCHEDULE_CYCLES),
            pipe: CodePath::kernel(2, PIPE_CODE, 14, 18, PIPE_CYCLES),
            small_call: CodePath::kernel(3, 12, 2, 4, 60.0),
            program: CodePath::system_calls(6, 2, 3, 3, 70.0),
        }
    }
}

/// A round of `lat_ctx` adds up so many bytes.
pub(super) fn array(bytes: u32) -> CodePath {
    CodePath::loads(MemorySegment::Data, ARRAY, bytes, array_cycles(bytes))
}

/// What adding them up takes by itself: what lmbench takes off for the array, measured on 4 KiB that stay in the cache
/// (lmbench 2, `lat_ctx.c`).
pub(super) fn array_cycles(bytes: u32) -> f64 {
    f64::from(bytes / 4)
}

/// A page is copied from a program's buffer, where it has this number, to the kernel's, where it has that one, or back:
/// four bytes in four cycles (assumed).
pub(super) fn copy((of_program, of_kernel): (u32, u32), into_kernel: bool) -> CodePath {
    let program = (MemorySegment::Data, ARRAY + of_program * PAGE_BYTES);
    let kernel = (MemorySegment::Kernel, BUFFER + of_kernel * PAGE_BYTES);
    let (from, to) = if into_kernel { (program, kernel) } else { (kernel, program) };
    CodePath::copy(from, to, 1, false, f64::from(PAGE_BYTES))
}

/// Pages of data that a child writes to after a fork, each copied first: its stack, the program's and the library's
/// data (assumed); and those of one that calls `exec` at once, where the other goes through the library's `exit`
/// (lmbench 2, `lat_proc.c`): stack and data.
const CHILD_COPIES: u32 = 8;
pub(super) const COPIES_BEFORE_EXEC: usize = 2;
/// Of these, the parent's own that it writes to again (assumed).
pub(super) const PARENT_FAULTS: usize = 4;
/// Of either, those that may hold code: the stack and the heap are executable (Linux 2.4, `VM_STACK_FLAGS`,
/// `VM_DATA_DEFAULT_FLAGS`) [recalled].
pub(super) const EXECUTABLE_COPIES: usize = 2;
/// Areas that a dynamically linked program has, in pages: text, data and heap; the linker's text and data; the
/// library's text, the hole behind it, its data, and what is zero; the stack (Linux 2.4's `binfmt_elf` and glibc's
/// linker [recalled]; sizes assumed).
pub(super) const AREAS: [u32; 10] = [8, 2, 4, 20, 1, 256, 8, 4, 3, 2];
/// Entries of the page tables that a fork copies (assumed), each once for the processor and once for Linux.
const ENTRIES: u32 = 96;
const ENTRY_BYTES: u32 = 2 * 4;
/// Cycles of each (assumed).
const ENTRY_CYCLES: u32 = 60;
/// Pages that a program faults in after an `exec`: of files, which are in memory already; of zeros; of data that it
/// writes to (assumed).
const FILE_FAULTS: u32 = 24;
const ZERO_FAULTS: u32 = 6;
const DATA_FAULTS: u32 = 4;

/// What `proc_create` does beside [`LinuxPaths`]. In lines of code a `fork`, an `exec` and an `exit` are each taken for
/// a pipe's `write` and `read`, a fault and the unmapping of an area for half, a `wait` for a quarter of these
/// (assumed).
pub(super) struct CreationPaths {
    /// `fork` up to the copy of the address space, and that and the rest.
    pub(super) fork: [Vec<CodePath>; 2],
    /// What a child does for each page that it writes to before it exits.
    pub(super) child: Vec<[CodePath; 2]>,
    /// What a parent does when it goes on, and for each page that it writes to.
    pub(super) parent: CodePath,
    pub(super) fault: CodePath,
    /// An area is unmapped.
    pub(super) unmap: CodePath,
    /// `exec` up to the new address space; that and the rest, and what the program does in it.
    pub(super) exec: [Vec<CodePath>; 2],
    /// `exit` up to the end of the address space, and the rest.
    pub(super) exit: [Vec<CodePath>; 2],
}

impl CreationPaths {
    pub(super) fn new() -> Self {
        let kernel = |seed, quarters: u32| {
            let code = PIPE_CODE * quarters / 4;
            CodePath::kernel(seed, code, code / 14, code / 11, PIPE_CYCLES * f64::from(quarters) / 4.0)
        };
        let fault = kernel(11, 2);
        let faults = |pages: u32, page: fn(u32) -> CodePath| -> Vec<CodePath> {
            (0..pages).flat_map(|n| [fault.clone(), page(n)]).collect()
        };
        let entries = ENTRIES * ENTRY_BYTES;
        let tables = [
            CodePath::loads(MemorySegment::Kernel, TABLES.0, entries, f64::from(ENTRIES * ENTRY_CYCLES)),
            CodePath::zeros(MemorySegment::Kernel, TABLES.1, entries, 0.0),
        ];
        let program = [faults(FILE_FAULTS, from_file), faults(ZERO_FAULTS, zeroed), faults(DATA_FAULTS, copied)];
        Self {
            fork: [vec![kernel(12, 1)], [&tables[..], &[kernel(13, 3)]].concat()],
            child: (0..CHILD_COPIES).map(|n| [fault.clone(), copied(n)]).collect(),
            parent: kernel(14, 1),
            unmap: kernel(19, 2),
            exec: [
                vec![kernel(15, 2)],
                [&[kernel(16, 2)], &program.concat()[..], &[CodePath::program(60, 120, 10, 8, 4000.0)]].concat(),
            ],
            exit: [vec![kernel(17, 1)], vec![kernel(18, 3)]],
            fault,
        }
    }
}

/// The page is in memory: its first line is looked at, no more.
fn from_file(n: u32) -> CodePath {
    CodePath::loads(MemorySegment::Kernel, FILE_PAGES + n * PAGE_BYTES, 1, 0.0)
}

/// A page is copied within the kernel's memory, as one that a process writes to first after a fork.
fn copied(n: u32) -> CodePath {
    let [from, to] = [FILE_PAGES, NEW_PAGES].map(|at| (MemorySegment::Kernel, at + n * PAGE_BYTES));
    CodePath::copy(from, to, 1, true, f64::from(PAGE_BYTES))
}

fn zeroed(n: u32) -> CodePath {
    CodePath::zeros(
        MemorySegment::Kernel,
        NEW_PAGES + (CHILD_COPIES + n) * PAGE_BYTES,
        PAGE_BYTES,
        f64::from(PAGE_BYTES / 4),
    )
}

/// L4: the kernel's IPC path, and the threads' few lines.
pub(super) fn ipc() -> [CodePath; 2] {
    [CodePath::kernel(5, IPC_CODE, 6, 8, IPC_CYCLES), CodePath::program(5, 0, 1, 3, 20.0)]
}

/// What the kernel does on a fault that loads an entry of the caching page directory (assumed).
pub(super) fn fault() -> CodePath {
    CodePath::kernel(6, 24, 4, 4, 150.0)
}

/// What the model was told.
pub(super) fn assumptions() -> Vec<String> {
    vec![
        "costs are the paper's section 2: a line 70 cycles, a walk 45 (a level 22.5), a flush 1,000 cycles and 66.4 more a dirty line, which makes the \
         18,000 of an all-dirty 8 KiB cache and the 75,000 of the paper's worst case"
            .into(),
        "the data cache is filled by loads alone; stores that miss, and dirty lines put out, go to a write buffer of eight blocks of up to 16 bytes (SA-1100 Developer's Manual, sections 6.2 \
         and 6.3). The memory takes 33.2 cycles for a block, half a dirty line's time, however full (assumed), while instructions go on; lines that are fetched come first"
            .into(),
        format!(
            "footprints are assumed, in lines of 32 bytes: a switch 40 of kernel code, 10 of its data, 10 of the process's; a pipe's write and read {PIPE_CODE} (fitted on Table \
             1, pipe, original), 14, 18; a call that does little 12, 2, 4; the program 6 of code and one of jumps into the library, there one for each of two system calls and no data (glibc 2.2), 3 of stack, 3 of data. Each line of data is loaded, every other \
             stored to; each function of 8 lines has one of constants, which is loaded as data (section 3.2). The kernel is mapped by sections"
        ),
        format!(
            "instructions: a pipe's write and read {PIPE_CYCLES} cycles (fitted on Figure 2, 57 times), a switch {SCHEDULE_CYCLES} (fitted on Table 1, pipe, fast), the program 70. A UNIX \
             socket's round trip is taken for {SOCKET_TRIPS} of a pipe's (fitted on Table 1, unix: both values are twice the pipe's; in Linux 2.4.0 who waits for an answer is woken, too, when its message is taken). lat_ctx takes off what one process alone takes for the pipe, \
             and for the array in the cache; fcntl makes {FCNTL_CALLS} calls a process and round: as lmbench 2 does"
        ),
        "bandwidth: 64 KiB written from and read to (lmbench 2), through a pipe of one page, or a socket of 64 KiB in two messages (Linux 2.4.0); a word copied in 4 cycles (assumed). Copies \
         from and to programs take four blocks of the write buffer a line (Linux 2.4.0, arch/arm/lib/uaccess.S: a page's first word moves by itself, so that stores of four words lie in two blocks each)"
            .into(),
        format!(
            "creation of processes, numbers assumed: fork, exec and exit touch as many lines as a pipe's write and read each, a fault and the unmapping of an area half of that, wait a quarter. A fork copies \
             {ENTRIES} entries of page tables; {CHILD_COPIES} pages are copied when the child writes, {PARENT_FAULTS} faults are the parent's; an exec faults in {FILE_FAULTS} pages of files, {ZERO_FAULTS} of zeros, \
             {DATA_FAULTS} copies. Both kernels flush on a fork, and drop a page's lines when it is copied, {EXECUTABLE_COPIES} times with all code. The original one also flushes on each switch, on exec and on exit, and on exit drops \
             all code, above 32 KiB everything, with each of {} areas that it unmaps (Linux 2.4.18: dup_mmap, break_cow, exit_mmap, zap_page_range; arch/arm/mm/proc-sa110.S)",
            AREAS.len()
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
