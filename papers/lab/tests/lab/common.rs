//! What the tests of the command share.

#[path = "../../../../crates/cli/tests/cli/command.rs"]
mod command;

use std::process::{Command, Output};

pub use command::{assert_bad_input, json, stderr, stdout, valid_json};

/// The command under test.
pub fn lab() -> Command {
    command::command("lookaside-lab")
}

/// The text without its line breaks, spaces run together.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs it with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    lab().args(arguments).output().expect("the command can be started")
}
