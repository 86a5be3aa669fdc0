//! What running bakers do, for `top`: bakers of other processes write a file each; helpers inside a program write a
//! memory file.

pub mod command_files;
pub mod helper_files;
