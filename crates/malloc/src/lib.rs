//! The C library's malloc family inside a TLB partition: `LD_PRELOAD=liblookaside_malloc.so LOOKASIDE_COLOR=LINE CMD`.
//!
//! All that an unmodified program allocates lies in pages of one partition (`lookaside color run`); its stacks,
//! globals, code and mappings do not. Nothing is looked up in other libraries: the first call works, whoever makes it,
//! the loader included.
//!
//! Variables: `LOOKASIDE_COLOR` the partition ([`lookaside_runtime::color::spec`]); `LOOKASIDE_COLOR_STATS` a file that
//! gets a line for each process that exits by `exit`: bytes in the partition's pages, the most of them in use,
//! allocations and bytes that had to lie elsewhere, allocations refused.
//!
//! There is no Rust interface, and so no example here: the library acts by being loaded into a program, as its tests
//! do.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod environment;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod fixed_line;
