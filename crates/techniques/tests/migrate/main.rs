//! TLB migration's interfaces against the paper's tables and a packing bit by bit.

mod book;
mod cases;
mod naive;
mod ports;
mod twin;
