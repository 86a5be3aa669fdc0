//! The coloured heap.

mod faults;
mod forks;
mod growing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instructions;
mod pages;
mod shadow;
mod support;
mod system;
