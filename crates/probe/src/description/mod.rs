//! Turns a report into a machine description.

mod arrays;
mod caches;
mod costs;
mod cpuid;
mod effects;
mod machine;
mod origins;
mod timing;
mod tlbs;
mod walk_caches;
