//! What works inside an unmodified program: the baker, `LD_PRELOAD=liblookaside_preload.so LOOKASIDE_BAKE=auto CMD`,
//! and a thread that makes huge pages when it is ordered to from outside.
//!
//! The library's constructor starts these helpers in the program. They never load from the program's memory and never
//! call the program's libraries: each has its own memory, makes its own system calls, and lives in a thread that the C
//! library does not know. So they run whatever the program does to its allocator, its locks and its signals. They have
//! no files in common with the program either.
//!
//! They read `/proc` and `/sys` by themselves, into buffers of their own, and not through `lookaside-host`: that crate
//! allocates, and a helper that calls the program's allocator can deadlock with the program or change what it does.
//!
//! Variables: `LOOKASIDE_BAKE` what to do (`auto`, or a backend with its settings; see
//! [`lookaside_runtime::bake::PreloadSettings`]); `LOOKASIDE_BAKE_STATS` a file that gets a line of JSON for each
//! process that exits; `LOOKASIDE_HUGEPAGES=orders` for the other thread
//! ([`lookaside_runtime::hugepages::remote_collapse`]); `LOOKASIDE_CODE` for code on huge pages (`all` or a number of
//! windows; [`lookaside_runtime::hugepages::CodeBudget`]), which the constructor does itself.
//!
//! There is no Rust interface, and so no example here: the library acts by being loaded into a program, as its tests
//! do. The baker's loop is [`lookaside_runtime::bake::freestanding::HelperLoop`].

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod address_space;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod baker;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code_limit;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code_report;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code_windows;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cpus;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod helper_memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod maps;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod program;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod remote_collapse;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod small_pages;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod start;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod status_file;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sys;
