//! What runs inside or beside a real program and changes what translation costs it.
//!
//! [`bake`] is PT-Baker (Chatzopoulos 2024): a helper that keeps the page-table entries of a program's data in the caches.
//! [`color`] is a heap that owns its TLB sets (Panchamukhi 2014).
//! [`domains`] is compartments by protection keys (after Wiggins et al. 2003).
//! [`hugepages`] makes huge pages of the windows of a program that it is seen in most, from outside or, without the right to, from inside.
//! Nothing here simulates anything; what it would gain is the engine's business, what it gains is measured.

pub mod bake;
pub mod color;
pub mod compare;
pub mod domains;
mod ffi;
pub mod hugepages;
