//! The command as its users run it.

mod analyze;
mod bad_input;
mod bake;
mod common;
mod compare;
mod experiment;
mod experiment_migrate;
mod granularity;
mod hard_places;
mod heap;
mod hugepages;
mod hugepages_inside;
mod lock_mapping;
mod measure;
mod plan;
mod plan_huge;
mod plan_lock;
mod probe;
mod reproduce;
mod run;
mod simulate_bake;
mod switching;
mod unit;
mod validate;
mod workload;
