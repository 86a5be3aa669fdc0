//! The baker of an unmodified program: `LD_PRELOAD=liblookaside_preload.so LOOKASIDE_BAKE=auto CMD`.
//!
//! The library's constructor starts a helper in the program. The helper never loads from the program's memory and never calls
//! the program's libraries: it has its own memory, makes its own system calls, and lives in a thread that the C library does not know.
//! So it runs whatever the program does to its allocator, its locks and its signals. It has no files in common with the program either.
//!
//! Variables: `LOOKASIDE_BAKE` what to do (`auto`, or a backend with its settings; see [`lookaside_runtime::bake::Unmodified`]);
//! `LOOKASIDE_BAKE_STATS` a file that gets a line of JSON for each process that exits.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod area;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cpus;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod helper;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod look;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod maps;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod start;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tell;
