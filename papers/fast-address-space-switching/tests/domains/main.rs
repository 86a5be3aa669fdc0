//! Fast address-space switching: cases by hand, and any schedule against a model that has nothing to flush.

mod cases;
mod naive;
mod processor;
mod twin;
