//! What translation costs a program: the answer, who causes it, what would help.

mod causes;
mod cost;
mod curve;
mod gain;
mod heat;
mod method;
mod mosaic;
mod remedies;
mod rows;
mod seeing;
mod summary;
mod totals;
mod verdict;

use lookaside_report::{Document, Medium, Paint, RichText};
use lookaside_techniques::{Analysis, ChildExit};

use causes::CauseKind;
use seeing::{command, is_sampled, os, seeing};

/// The document of an analysis. On a terminal it fits on one screen.
pub fn view(analysis: &Analysis) -> Document {
    let mut document = Document::new("Translation cost", command(analysis));
    document.one_screen = true;
    document.version.clone_from(&analysis.version);
    verdict::answer(analysis, &mut document);
    summary::answer(analysis, &mut document);
    banners(analysis, &mut document);
    facts(analysis, &mut document);
    document.section(summary::cards(analysis).only(Medium::Page));
    // Seconds first; on a terminal they stand last, where the eye is.
    document.section(gain::section(analysis).only(Medium::Page));
    document.section(cost::rates(analysis));
    document.section(causes::section(analysis, CauseKind::Objects));
    document.section(causes::section(analysis, CauseKind::Functions));
    document.pair(curve::section(analysis), causes::section(analysis, CauseKind::Regions));
    document.section(remedies::section(analysis));
    document.section(gain::section(analysis).only(Medium::Terminal));
    document.section(mosaic::section(analysis));
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
        document.banner(words.plain(" This is what was known by then; the notes say where it ended."));
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
    let mut words = match (machine.name.as_str(), machine.description.as_str()) {
        (name, "") => name.into(),
        // Of the machine at hand the description says so itself.
        ("this", description) => description.into(),
        (name, description) => format!("{name}, {description}"),
    };
    if !analysis.machine_reason.is_empty() {
        words += &format!("; {}", analysis.machine_reason);
    }
    document.fact("machine", words);
    if !is_sampled(analysis) {
        document.fact("model", os(analysis));
    }
    if let Some(words) = seeing::intervals(analysis) {
        document.fact("intervals", words);
    }
    if let Some(native) = &analysis.native {
        document.fact("natively", gain::native(native, analysis));
    }
}
