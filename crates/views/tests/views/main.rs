//! Reports of hand-made results, as text, page and data.

mod any;
mod common;
mod comparison;
mod docs;
mod drawn;
mod html;
mod hugepages_live;
mod probe;
mod terminal;
