//! The lookaside-lab command as its users run it.

mod common;
mod experiment;
mod experiment_migrate;
mod reproduce;
mod schemas;
mod switching;
