//! Reports of hand-made analyses, comparisons and reproductions, as text, page and data.

mod any;
mod common;
mod comparison;
mod docs;
mod drawn;
mod experiment;
mod html;
mod hugepages_live;
mod migration;
mod probe;
mod reproduction;
mod switching;
mod terminal;
