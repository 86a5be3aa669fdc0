//! Colouring plans and bounds, against a slow twin: a naive simulation of tasks and TLBs, a plain heap, and trying
//! everything.

mod bounds;
mod brute;
mod engine;
mod plans;
mod twin;
