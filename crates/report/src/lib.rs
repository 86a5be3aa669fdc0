//! Tables, plots, HTML, JSON: what the other rooms found out, for people and for programs.
//!
//! [`terminal::render`] and [`html::render`] draw an [`lookaside_techniques::Analysis`], [`json::render`]
//! writes it as it is; [`simulate::render`] sets runs side by side, [`reproduction::render`] published
//! figures and ours, [`probe::render`] says what a machine is, [`comparison::render`] which way of running a program is faster,
//! [`switching::render`] what a switch takes,
//! [`baked::render`] what a baker did, [`bake_model::render`] what one would do, [`hugepages_live::render`] which huge pages were made, [`color::render`] whose pages may lie where,
//! [`migration::render`] what a thread's moves cost,
//! [`lock::render`] which pages to pin, [`hugepages::render`] which to make huge; [`Table`] is for whatever else the command line has to list.

pub mod bake_model;
pub mod baked;
pub mod color;
pub mod comparison;
pub mod experiment;
mod facts;
mod gain;
pub mod html;
pub mod hugepages;
pub mod hugepages_live;
pub mod json;
mod line;
pub mod lock;
pub mod migration;
pub mod num;
pub mod openmetrics;
mod placed;
pub mod probe;
pub mod reproduction;
pub mod simulate;
pub mod switching;
mod table;
pub mod terminal;
pub mod text;
pub mod top;
pub mod validation;

pub use line::{render as render_lines, Line, Paint, Style};
pub use table::{Cell, Column, Table};
