//! Records real programs as traces, and names the code that they ran.
//!
//! [`start`] runs a program under one of the recorders ([`RecorderBackend`]): Valgrind and QEMU see every access, the
//! sampler sees where the program waits, and a program that [`recording_compiler`] built tells its own. The recording
//! is a [`Source`](lookaside_trace::Source) that yields blocks **while the program runs**. [`Symbols`] names the
//! recorded code addresses. [`plain_run`] tells where a program's memory lies when no recorder's memory is among it.
//!
//! ```
//! use lookaside_capture::{start, ChildEnd, RecordRequest, RecordTarget};
//! use lookaside_trace::{Block, FilterWindow, Granularity};
//!
//! let mut recording = start(&RecordRequest {
//!     target: RecordTarget::Command(vec!["true".into()]),
//!     backend: None, // the best that is installed and fits the program
//!     granularity: Granularity::Page,
//!     filter_log2_classes: 0,
//!     filter_window: FilterWindow::default(),
//!     filter_stores_apart: false,
//!     filter_unified: false,
//!     fetches: true,
//!     waits: false,
//!     sample_hz: 1000, // for the sampler only
//!     intervals: None,
//! })?;
//! let (mut block, mut accesses) = (Block::default(), 0);
//! while recording.source.next_block(&mut block)? {
//!     accesses += block.accesses();
//! }
//! assert_eq!(recording.control.wait()?, ChildEnd::Code(0));
//! println!("{accesses} accesses recorded by {:?}", recording.backend);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backends;
mod build_cache;
mod error;
mod launch;
mod native_clock;
pub mod plain_run;
mod program;
mod recording;
mod request;
mod symbols;
mod wire;

pub use backends::{
    choose, exact_backend, find_progress_mark, mark_of_function, recording_compiler, sample_bursts, start, BurstPlan,
    BurstSample, ProgressMark, RecordingCompiler,
};
pub use error::CaptureError;
pub use native_clock::{native_run, NativeRun};
pub use program::{inspect_program, ProgramFile, ProgramIsa};
pub use recording::{ChildEnd, ProgramControl, Recording};
pub use request::{IntervalLength, Intervals, RecordRequest, RecordTarget, RecorderBackend, RunMoment};
pub use symbols::{CodeName, Symbols};
pub use wire::WireReader;
