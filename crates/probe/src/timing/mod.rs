//! Measures what reads, page faults and streams take in nanoseconds: [`lookaside_machine::Timing`]. It rests on nothing
//! that other steps find.

pub(crate) mod measure;
mod page_faults;
mod random_reads;
mod rounds;
