//! What the thread that makes intervals tells the source of blocks.

use lookaside_trace::Event;

use super::block_plan::BlockPlan;

/// News of an interval, in the order of the program.
#[derive(Debug)]
pub(super) enum IntervalNews {
    /// An interval of this thread begins, of which the first so many instructions warm up. `thread_base`: where the
    /// thread's own memory is (`fs`). `is_new`: blocks are numbered from 0 again.
    Begin { process: u32, thread: u32, thread_base: u64, cpu_ns: u64, warm_up: u64, is_new: bool },
    /// Between accesses of the interval, or before its first.
    Events(Vec<Event>),
    /// Further blocks of the process's code.
    Plans(Vec<BlockPlan>),
    /// What blocks logged.
    Words(Vec<u64>),
}
