//! What a plain run tells: the memory map at the points where the program is stopped, and its end.

use lookaside_trace::Region;

use crate::backends::read_memory;
use crate::recording::ChildEnd;

/// Address space layout randomization: whether the kernel puts stack, heap, libraries and program at random addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aslr {
    /// The same addresses in each run with the same arguments and environment (`personality(ADDR_NO_RANDOMIZE)`).
    Off,
    /// As the system is configured.
    System,
}

/// A point at which the program is stopped to read its memory map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPoint {
    /// The libraries that it begins with are mapped; none of its own functions has made a system call.
    Loaded,
    /// Right before its end, by itself or by a signal: all that it has mapped is still there.
    Exit,
}

/// A stopped program.
#[derive(Debug)]
pub struct StoppedProgram<'a> {
    /// The point at which it is stopped.
    pub point: StopPoint,
    /// What is mapped, and what was ([`Region::gone`]), in order of address; [`Region::made`] numbers the calls that
    /// made it.
    pub regions: &'a [Region],
    /// As in [`PlainRunMaps::entry_stack`].
    pub entry_stack: Option<u64>,
    pub(super) process: u32,
    /// Where the program's address 0 is in the process.
    pub(super) base: u64,
}

impl StoppedProgram<'_> {
    /// Copies the program's bytes at `addr`; how many could be read.
    pub fn read(&self, addr: u64, into: &mut [u8]) -> usize {
        read_memory(self.process, self.base.wrapping_add(addr), into)
    }
}

/// The memory maps of a plain run, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainRunMaps {
    /// [`StoppedProgram::regions`] at [`StopPoint::Loaded`]; empty if the program didn't get that far.
    pub loaded: Vec<Region>,
    /// [`StoppedProgram::regions`] at [`StopPoint::Exit`]; empty if it was killed before its map could be read.
    pub exit: Vec<Region>,
    /// Stack pointer at the first instruction; `None` = the kernel doesn't say.
    pub entry_stack: Option<u64>,
    /// It ran under QEMU: a program for another processor.
    pub emulated: bool,
    /// How the program ended: its own exit code or signal.
    pub end: ChildEnd,
    /// For the reader of the result: what could not be read, and why.
    pub notes: Vec<String>,
}
