//! Reports of hand-made results, as text, page and data.

mod any;
mod common;
mod comparison;
mod docs;
mod drawn;
mod html;
mod hugepages_live;
mod machine;
mod native;
mod probe;
#[path = "../../../machine/tests/machine/random.rs"]
mod random_machine;
mod schemas;
mod terminal;
mod trial;
