//! The coloured heap.

mod faults;
mod forks;
mod pages;
mod shadow;
mod support;
