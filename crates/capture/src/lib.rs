//! Recording a real program as a trace: three backends behind one [`start`].
//!
//! A recording is a [`Source`](lookaside_trace::Source) that yields blocks **while the program runs**.

mod request;

pub use request::{Backend, CaptureError, ChildEnd, Control, Recording, Request, Target};
