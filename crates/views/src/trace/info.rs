//! What a trace holds.

use lookaside_report::{num, Document};
use lookaside_trace::{Granularity, Summary, TraceInfo};

use super::check;

/// Who recorded it and how, its accesses, pages, processes and size; a line each.
pub fn view(path: &str, summary: &Summary) -> Document {
    let mut document = Document { titled: false, ..Document::new("Trace", path) };
    recording(&summary.info, &mut document);
    accesses(summary, &mut document);
    file(summary, &mut document);
    document.parts = check::view(path, &summary.damage).parts;
    document
}

fn recording(info: &TraceInfo, document: &mut Document) {
    if !info.recorder.is_empty() {
        document.fact("recorder", info.recorder.clone());
    }
    if !info.command.is_empty() {
        document.fact("command", info.command.join(" "));
    }
    if info.sample_period_ns > 0 {
        let nanoseconds = num::grouped(info.sample_period_ns);
        document.fact("samples", format!("one stands for {nanoseconds} ns of a thread's time"));
    } else {
        document.fact("granularity", format!("{:?}", info.granularity).to_lowercase());
        document.fact("left out", left_out(info));
    }
}

fn accesses(summary: &Summary, document: &mut Document) {
    let all = summary.recorded_accesses.saturating_add(summary.left_out_repeats);
    document.fact("accesses", num::grouped(all));
    document.fact("of those recorded", num::grouped(summary.recorded_accesses));
    let [loads, stores, fetches] =
        [summary.recorded_loads, summary.recorded_stores, summary.recorded_fetches].map(num::grouped);
    document.fact("recorded by kind", format!("{loads} loads, {stores} stores, {fetches} fetches"));
    let about = if summary.distinct_pages_exact { "" } else { "about " };
    document.fact("distinct 4K pages", format!("{about}{}", num::grouped(summary.distinct_pages)));
    document.fact("processes, threads", format!("{}, {}", summary.processes, summary.threads));
}

fn file(summary: &Summary, document: &mut Document) {
    if summary.file_bytes > 0 {
        document.fact("bytes", num::grouped(summary.file_bytes));
        document.fact("bytes an access", format!("{:.4}", summary.bytes_per_access));
        document.fact("bytes a recorded access", format!("{:.4}", summary.bytes_per_recorded_access));
    }
    if summary.chunks > 0 {
        document.fact("chunks", num::grouped(summary.chunks));
    }
    let events: Vec<String> = summary.events.iter().map(|(name, n)| format!("{name} {}", num::grouped(*n))).collect();
    if !events.is_empty() {
        document.fact("events", events.join(", "));
    }
}

/// Which accesses the recorder left out.
fn left_out(info: &TraceInfo) -> String {
    let what = match info.granularity {
        Granularity::Byte => return "nothing".into(),
        Granularity::Line => "line",
        Granularity::Page => "page",
    };
    let classes = 1u64.checked_shl(info.filter_log2_classes).map_or("many".into(), num::grouped);
    let of_classes = |before: String| match info.filter_log2_classes {
        0 => before,
        _ => format!("{before} of each of {classes} classes of pages"),
    };
    let repeats = match info.window() {
        None => of_classes(format!("repeats of the last {what}")),
        Some(window) if window.log2_classes == 0 => format!("repeats of the {} pages used last", window.pages),
        Some(window) => of_classes(format!("repeats of the {} pages used last, {}", window.pages, window.class_pages)),
    };
    if info.filter_stores_apart {
        format!("{repeats}; loads and stores apart")
    } else {
        repeats
    }
}
