//! Turns a report into a machine description.

mod arrays;
mod caches;
mod costs;
mod effects;
mod machine;
mod tlbs;
mod walk_caches;
