//! The command as its users run it.

mod analyze;
mod bad_input;
mod bake;
mod command;
mod common;
mod compare;
mod granularity;
mod hard_places;
mod heap;
mod here;
mod hugepages;
mod hugepages_inside;
mod lab;
mod lock_mapping;
mod measure;
mod native;
mod output;
mod plan;
mod plan_huge;
mod plan_lock;
mod probe;
mod run;
mod simulate_bake;
mod unit;
mod validate;
mod workload;
