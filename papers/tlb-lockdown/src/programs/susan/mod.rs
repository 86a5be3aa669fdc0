//! SUSAN, low-level image processing (Smith and Brady 1997): what a pixel's circular neighbourhood has of its own
//! brightness.
//!
//! The neighbourhood is of 37 pixels; how much two are alike comes from a table by the difference of their brightness.

mod corners;
mod detector;
mod edges;
mod image;
mod picture;
mod smooth;

pub(super) use detector::Susan;
pub(super) use smooth::Smooth;
