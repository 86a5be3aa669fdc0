//! The stream that the Valgrind tool and the QEMU plugin write from inside the program into a pipe, and its reader.
//!
//! Frames of at most 4096 bytes (`PIPE_BUF`: each write is atomic, whatever the number of processes that share the
//! pipe): a header of 16 bytes (u16 magic, u16 kind, u32 bytes of payload, u32 process, u32 thread, little-endian),
//! then the payload. `docs/explanation/recorders.md` describes payloads, the filter, and the memory that records come
//! in where it is shared.

mod filter_mirror;
mod filter_slot;
mod frame;
mod live_processes;
mod messages;
mod reader;
mod record;
mod shared_slots;
mod window;

use lookaside_trace::{Granularity, TraceInfo};

use crate::request::RecordRequest;
pub(crate) use live_processes::LiveProcesses;
pub(crate) use messages::RecorderMessages;
pub use reader::WireReader;
pub(crate) use record::{MAX_LOG2_CLASSES, MAX_WINDOW};
pub(crate) use shared_slots::SharedSlots;

/// The trace's description of a recording made as `request` says.
pub(crate) fn info(request: &RecordRequest, recorder: &str, command: Vec<String>) -> TraceInfo {
    let filtered = request.granularity != Granularity::Byte;
    TraceInfo {
        granularity: request.granularity,
        recorder: recorder.into(),
        command,
        filter_log2_classes: if filtered { request.filter_log2_classes } else { 0 },
        filter_window: 0,
        filter_class_pages: 0,
        filter_stores_apart: filtered && request.filter_stores_apart && !request.filter_unified,
        has_fetches: request.fetches,
        has_ip: true,
        sample_period_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RecordTarget;

    #[test]
    fn a_trace_says_of_its_filter_what_holds() {
        use Granularity::{Byte, Line, Page};
        // Granularity, stores apart, unified; classes and stores apart as they are said.
        for (granularity, apart, unified, classes, said) in [
            (Page, true, false, 4, true),
            (Page, false, false, 4, false),
            (Page, true, true, 4, false),
            (Page, false, true, 4, false),
            (Line, true, false, 4, true),
            (Byte, true, false, 0, false),
            (Byte, false, false, 0, false),
        ] {
            let request = RecordRequest {
                granularity,
                filter_log2_classes: 4,
                filter_stores_apart: apart,
                filter_unified: unified,
                fetches: true,
                ..RecordRequest::sampling(RecordTarget::Command(vec!["true".into()]), 0)
            };
            let expected = TraceInfo {
                granularity,
                recorder: "valgrind".into(),
                command: vec!["true".into()],
                filter_log2_classes: classes,
                filter_stores_apart: said,
                has_fetches: true,
                has_ip: true,
                ..TraceInfo::default()
            };
            assert_eq!(info(&request, "valgrind", vec!["true".into()]), expected);
        }
    }
}
