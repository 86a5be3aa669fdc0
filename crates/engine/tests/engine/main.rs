//! The engine against its slow twin, answers known by hand, and brute force.

mod curve;
mod known_answers;
mod leaves;
mod recorder;
mod run;
mod twin;
