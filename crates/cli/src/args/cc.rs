//! The arguments of `cc`.

use std::ffi::OsString;

use clap::Args;

#[derive(Args)]
pub struct CcArgs {
    /// The compiler (gcc, g++, clang, clang++, rustc or cargo) and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMPILER", required = true)]
    pub command: Vec<OsString>,
}
