//! What the commands share: exit codes, output, interrupts, machines by their names, and probing this machine.
//!
//! `lookaside` and `lookaside-lab` are built of it; it is no interface for other programs.
//!
//! ```
//! use lookaside_cli::exit::BAD_INPUT;
//! use lookaside_cli::machines;
//!
//! assert_eq!(machines::find("skylake")?.name, "skylake");
//! assert_eq!(machines::find("sky-lake").expect_err("no such preset").code, BAD_INPUT);
//! # Ok::<(), lookaside_cli::exit::Failure>(())
//! ```

pub mod exit;
pub mod here;
pub mod interrupt;
pub mod machines;
pub mod memory;
pub mod nearest;
pub mod output;
pub mod probing;
pub mod say;
