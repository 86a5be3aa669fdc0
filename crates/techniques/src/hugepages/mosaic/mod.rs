//! Runs of a program with different parts of its memory huge, and a model of its time fitted on them.
//!
//! A mosaic is a set of windows that are huge while all others have small pages (Agbarya, Yaniv and Tsafrir, Predicting
//! Execution Times With Partial Simulations in Virtual Memory Research, MICRO 2020: Mosalloc). [`windows`] takes the
//! windows that cost something in the model, [`layout`] makes mosaics of them, whoever runs programs runs each, and
//! [`model`] fits the program's seconds to what the huge windows cost with small pages. How good that model is, it says
//! itself: each mosaic in turn is left out and foretold by the others.

pub mod layout;
pub mod model;
pub mod windows;

pub use crate::mosaic_gain::{MosaicGain, MosaicRow};
pub use layout::{mosaics, Mosaic};
pub use model::{fit, MosaicRun, RanMosaic};
pub use windows::{MosaicWindow, RecordedMemory};
