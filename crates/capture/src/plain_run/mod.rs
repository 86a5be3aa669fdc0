//! A plain run of a program: where its memory lies when no recorder's memory is among it.
//!
//! The program runs at nearly its own speed: it is stopped at its system calls only, to follow its mappings. A 32-bit
//! program for another processor runs under QEMU's user mode, without our plugin; addresses are the program's own then.

mod guest;
mod map_calls;
mod maps;
mod ptrace;
mod run;
mod tracer;

pub use maps::{Aslr, PlainRunMaps, StopPoint, StoppedProgram};
pub use run::PlainRun;
