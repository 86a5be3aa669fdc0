//! Lines for the user on standard error.

use std::fmt::Display;
use std::io::Write;

use lookaside_report::text::clean;

/// Prints one line. What programs, files and their contents are called goes into such lines, so it is made harmless to
/// a terminal. A standard error that takes nothing (a full disk, a reader that has gone) changes nothing else.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "lookaside: {}", clean(&line.to_string()));
}
