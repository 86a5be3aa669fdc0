//! What each result says: a module a result.

mod analysis_facts;
pub mod analysis_text;
pub mod bake_model;
pub mod baked;
pub mod color;
pub mod comparison;
pub mod experiment;
mod gain;
pub mod hugepages;
pub mod hugepages_live;
pub mod json;
pub mod lock;
pub mod migration;
pub mod openmetrics;
pub mod pages;
mod placed;
pub mod probe;
pub mod reproduction;
pub mod simulate;
pub mod switching;
pub mod top;
pub mod validation;
