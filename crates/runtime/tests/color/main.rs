//! The coloured heap.

mod faults;
mod forks;
mod growing;
mod pages;
mod shadow;
mod support;
mod system;
