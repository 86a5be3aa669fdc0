//! Recording a real program as a trace: three backends behind one [`start`].
//!
//! A recording is a [`Source`](lookaside_trace::Source) that yields blocks **while the program runs**.

mod request;
#[allow(dead_code, reason = "function bounds and code are for the sampler")]
mod symbols;

pub use request::{Backend, CaptureError, ChildEnd, Control, Recording, Request, Target};
pub use symbols::{CodeName, Symbols};
