//! How a program was seen, and what was modelled of it, in words.

use lookaside_report::num;
use lookaside_techniques::{Analysis, Seeing};
use lookaside_trace::Granularity;

/// The command in one line.
pub(super) fn command(analysis: &Analysis) -> String {
    if analysis.command.is_empty() {
        "(no command recorded)".into()
    } else {
        analysis.command.join(" ")
    }
}

/// Only time was seen, not accesses.
pub(super) fn is_sampled(analysis: &Analysis) -> bool {
    matches!(analysis.seeing, Seeing::Sampled { .. })
}

/// How the program was seen: in a word, and what to know of it.
pub(super) fn seeing(seeing: &Seeing) -> (&'static str, String) {
    match seeing {
        Seeing::Exact { recorder, granularity, .. } => {
            let fine = match granularity {
                Granularity::Byte => "full addresses",
                Granularity::Line => "line-granular (64 bytes)",
                Granularity::Page => "page-granular (4 KiB)",
            };
            let words = match recorder.as_str() {
                "" => format!("every access ({fine})"),
                "compiled" => {
                    format!("the program's own loads and stores, without libraries and fetches (by itself, {fine})")
                }
                "intervals" => format!("every access in intervals of the run (in copies of the process, {fine})"),
                recorder => format!("every access (by {recorder}, {fine})"),
            };
            ("recorded", words)
        }
        Seeing::Sampled { period_ns, samples, resolved } => (
            "sampled",
            format!(
                "an estimate: {} samples by the clock, one every {}; {} have a data address",
                num::grouped(*samples),
                num::seconds(*period_ns as f64 / 1e9),
                num::percent(num::share(*resolved as f64, *samples as f64)),
            ),
        ),
    }
}

/// What the intervals of the run say, in words; `None` = it was seen whole.
pub(super) fn intervals(analysis: &Analysis) -> Option<String> {
    let estimate = analysis.intervals.as_ref()?;
    let walks = estimate.walks_per_1000_accesses.map(|walks| {
        let [value, low, high] = [walks.value, walks.low.max(0.0), walks.high].map(num::rate);
        format!("; {value} walks a 1,000 accesses ({low} … {high})")
    });
    let short = match estimate.too_short {
        0 => String::new(),
        n => format!("; {} more ended before the model had warmed up", num::grouped(n)),
    };
    let cold = match estimate.cold {
        0 => String::new(),
        n => format!("; the share leaves out {}, in which the model's caches were still filling", num::grouped(n)),
    };
    let time = num::seconds(estimate.cpu_seconds);
    let count = num::grouped(estimate.intervals);
    Some(format!("{count} of the run, up to {time} of its CPU time{}{cold}{short}", walks.unwrap_or_default()))
}

/// The modelled OS, in words.
pub(super) fn os(analysis: &Analysis) -> String {
    use lookaside_engine::{FrameLayout, PagePolicy};
    let base = analysis.machine.page_table.format.page_sizes().first().copied();
    let huge = analysis.os.huge_page.map_or("huge pages".to_string(), |size| format!("{size} pages"));
    let pages = match &analysis.os.pages {
        PagePolicy::Base => base.map_or("base pages only".to_string(), |size| format!("{size} pages only")),
        PagePolicy::Thp => format!("{huge} wherever a whole one fits (THP)"),
        PagePolicy::Selective(ranges) => format!("{huge} in {} chosen ranges", ranges.len()),
        PagePolicy::SelectiveFiles(ranges) => format!("{huge} in {} chosen ranges of files", ranges.len()),
    };
    let frames = match analysis.os.frames {
        FrameLayout::Contiguous => "contiguous frames".to_string(),
        FrameLayout::Fragmented { run_pages } => format!("frames contiguous in runs of {run_pages} pages"),
        FrameLayout::Random => "scattered frames".to_string(),
    };
    format!("{pages}, {frames}, seed {}", analysis.seed)
}

/// Time that a number of samples stands for, in seconds.
pub(super) fn sampled_seconds(samples: u64, period_ns: u64) -> f64 {
    samples as f64 * period_ns as f64 / 1e9
}
