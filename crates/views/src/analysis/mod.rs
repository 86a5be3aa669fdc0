//! What translation costs a program: the answer, who causes it, what would help.

mod causes;
mod cost;
mod curve;
mod gain;
mod heat;
mod method;
mod remedies;
mod rows;
mod summary;
mod totals;

use lookaside_report::{num, Document, Medium, Paint, RichText, Section};
use lookaside_techniques::{Analysis, ChildExit, Seeing};
use lookaside_trace::Granularity;

use causes::Kind;

/// The document of an analysis. On a terminal it fits on one screen.
pub fn view(analysis: &Analysis) -> Document {
    let mut document = Document::new("Translation cost", command(analysis));
    document.one_screen = true;
    document.version.clone_from(&analysis.version);
    summary::answer(analysis, &mut document);
    banners(analysis, &mut document);
    facts(analysis, &mut document);
    document.section(summary::cards(analysis).only(Medium::Page));
    document.section(cost::rates(analysis));
    document.section(causes::section(analysis, Kind::Objects));
    document.section(causes::section(analysis, Kind::Functions));
    document.pair(curve::section(analysis), causes::section(analysis, Kind::Regions));
    document.section(remedies::section(analysis));
    document.section(gain::section(analysis));
    document.section(curve::by_sets(analysis).only(Medium::Page));
    document.section(cost::walk_references(analysis).only(Medium::Page));
    document.section(heat::section(analysis).only(Medium::Page));
    if !is_sampled(analysis) {
        document.section(rows::pages(analysis).only(Medium::Page));
        document.section(rows::threads(analysis).only(Medium::Page));
    }
    document.section(method::section(analysis).only(Medium::Page));
    document.section(method::counts(analysis).only(Medium::Page));
    document.section(crate::machine::section(&analysis.machine).only(Medium::Page));
    analysis.notes.iter().for_each(|note| document.note(note));
    document
}

fn banners(analysis: &Analysis, document: &mut Document) {
    if !analysis.complete {
        let words = RichText::painted(Paint::Warn, "Cut short.");
        document.banner(words.plain(" This is what was known until then; the notes say where."));
    }
    let words = match analysis.child_exit {
        None | Some(ChildExit::Code(0)) => return,
        Some(ChildExit::Code(code)) => format!("The program ended with exit code {code}."),
        Some(ChildExit::Signal(signal)) => format!("The program was killed by signal {signal}."),
    };
    document.banner(RichText::painted(Paint::Warn, words));
}

fn facts(analysis: &Analysis, document: &mut Document) {
    let (label, words) = seeing(&analysis.seeing);
    let paint = if is_sampled(analysis) { Paint::Warn } else { Paint::Plain };
    document.fact(label, RichText::painted(paint, words));
    let machine = &analysis.machine;
    let mut words = machine.name.clone();
    if !machine.description.is_empty() {
        words += &format!(", {}", machine.description);
    }
    if !analysis.machine_reason.is_empty() {
        words += &format!("; {}", analysis.machine_reason);
    }
    document.fact("machine", words);
    if !is_sampled(analysis) {
        document.fact("model", os(analysis));
    }
}

/// The command in one line.
fn command(analysis: &Analysis) -> String {
    if analysis.command.is_empty() {
        "(no command recorded)".into()
    } else {
        analysis.command.join(" ")
    }
}

/// Only time was seen, not accesses.
fn is_sampled(analysis: &Analysis) -> bool {
    matches!(analysis.seeing, Seeing::Sampled { .. })
}

/// How the program was seen: in a word, and what to know of it.
fn seeing(seeing: &Seeing) -> (&'static str, String) {
    match seeing {
        Seeing::Exact { recorder, granularity, .. } => {
            let by = if recorder.is_empty() { String::new() } else { format!("by {recorder}, ") };
            let fine = match granularity {
                Granularity::Byte => "full addresses",
                Granularity::Line => "line-granular (64 bytes)",
                Granularity::Page => "page-granular (4 KiB)",
            };
            ("recorded", format!("every access ({by}{fine})"))
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

/// The modelled OS, in words.
fn os(analysis: &Analysis) -> String {
    use lookaside_engine::{FrameLayout, PagePolicy};
    let base = analysis.machine.page_table.format.page_sizes().first().copied();
    let huge = analysis.os.huge_page.map_or("huge pages".to_string(), |size| format!("{size} pages"));
    let pages = match &analysis.os.pages {
        PagePolicy::Base => base.map_or("base pages only".to_string(), |size| format!("{size} pages only")),
        PagePolicy::Thp => format!("{huge} wherever a whole one fits (THP)"),
        PagePolicy::Selective(ranges) => format!("{huge} in {} chosen ranges", ranges.len()),
    };
    let frames = match analysis.os.frames {
        FrameLayout::Contiguous => "contiguous frames".to_string(),
        FrameLayout::Fragmented { run_pages } => format!("frames contiguous in runs of {run_pages} pages"),
        FrameLayout::Random => "scattered frames".to_string(),
    };
    format!("{pages}, {frames}, seed {}", analysis.seed)
}

/// Time that a number of samples stands for, in seconds.
fn sampled_seconds(samples: u64, period_ns: u64) -> f64 {
    samples as f64 * period_ns as f64 / 1e9
}

/// A section that has nothing to show.
fn nothing() -> Section {
    Section::default()
}
