//! TLB migration's interfaces against the paper's tables and a packing bit by bit; and the model of the paper's
//! machines.

mod book;
mod cases;
mod model;
mod naive;
mod ports;
mod task_sets;
mod twin;
