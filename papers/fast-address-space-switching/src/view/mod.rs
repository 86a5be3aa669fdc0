//! What a switch takes, as a document: the verdict, processes beside threads in each ring, what has to be known.

mod charts;
mod tables;
mod verdict;
mod words;

use lookaside_report::{num, Document, DocumentBlock, Medium, Paint, RichText, Section};
use lookaside_stats::{LEAST_ROUNDS, RESAMPLES};

use crate::metal::{RingPoint, SwitchReport};
use words::{rings, unit, who};

/// The `schema` of a [`SwitchReport`]'s JSON.
pub const SWITCH_SCHEMA: &str = "lookaside-switch/1";

/// The verdict and the machine; a row a ring on a terminal, charts and all figures on the page; what else ran.
pub fn view(report: &SwitchReport) -> Document {
    let mut document = Document::new("What a switch takes", "");
    document.version.clone_from(&report.version);
    for (i, sentence) in verdict::sentences(report).into_iter().enumerate() {
        document.answer(RichText::painted(if i == 0 { Paint::Strong } else { Paint::Plain }, sentence));
    }
    if let Some(early) = &report.early {
        let cut_short = RichText::painted(Paint::Warn, format!("Cut short: {early}."));
        document.banner(cut_short.plain(" Figures are of the rounds that were complete."));
    }
    document.fact("measured", circumstances(report));
    document.fact("TLB", translations(report));
    document.fact("protection keys", keys(report));
    document.fact("mitigations", mitigations(report));
    for (about, table) in [(LAT_CTX, tables::lat_ctx(report)), (EXTREME, tables::extreme(report))] {
        if !table.is_empty() {
            let heading = about.split(':').next().unwrap_or_default();
            let section = Section::unheaded(heading).with(RichText::from(about)).with(table);
            document.section(section.only(Medium::Terminal));
        }
    }
    let page = [
        Section::unheaded("lat_ctx: a switch over participants").lead(CHARTS).with(charts::lat_ctx(report)),
        Section::unheaded("extreme: a switch over pages visited").lead(CHARTS).with(charts::extreme(report)),
        Section::unheaded("Processes against threads").with(tables::contrasts(report)),
        Section::unheaded("Every ring").with(tables::points(report)),
        Section::unheaded("How this was made")
            .with(DocumentBlock::Text(TURNS.into()))
            .with(DocumentBlock::Text(judged(report).into())),
    ];
    page.into_iter().for_each(|section| document.section(section.only(Medium::Page)));
    disturbances(report).into_iter().for_each(|note| document.note(note));
    document
}

const LAT_CTX: &str = "lat_ctx: a token goes round; who has it reads its own KiB. Nanoseconds a switch: a \
                       participant's turn less the same turn of one that hands the token to itself";
const EXTREME: &str = "extreme: likewise, a word of each of so many pages of 4 KiB in random order, of memory of \
                       each one's own, or the same for all. T: threads, P: processes, K: compartments by protection \
                       keys; of pages: P over T of the same memory, less that with the fewest pages";

/// How to read the charts.
const CHARTS: &str = "Medians of the rounds, bars: their 95 % intervals. Sizes stand at even distances; charts whose \
                      figures differ by more than ten times are logarithmic.";

const TURNS: &str =
    "Participants stand in a ring of pipes, all on one CPU; who has the token does its work and hands it on. A turn \
     is the time of a lap over the participants. Alone is the same turn of one participant that hands the token to \
     itself: work, one write and one read, and no switch. A switch is the difference, round by round: what the \
     kernel does, and what work takes longer because others ran in between. Processes and threads read the same \
     memory at the same addresses; \"the same\" memory is one area that all read, inherited by processes, so that \
     they have the same frames by tables of their own. Compartments by protection keys, where there are any, are \
     entered and left by one thread: a turn is an enter, the work and a leave, and alone is the work by itself.";

/// How figures are judged.
fn judged(report: &SwitchReport) -> String {
    format!(
        "Each round measured every ring once, in an order drawn anew (seed {}). Intervals are percentile bootstraps \
         of medians: {RESAMPLES} draws of whole rounds. Each holds by itself with 95 %; of twenty without effect one \
         may look significant. Significant: the interval does not hold 0, and at least {LEAST_ROUNDS} rounds are \
         complete. What grows with the pages of the same memory is what processes pay for translations of their own: \
         the most that sharing them could save.",
        report.seed
    )
}

/// What was measured and how, in a sentence.
fn circumstances(report: &SwitchReport) -> String {
    let facts = &report.facts;
    let rounds = match report.rounds == report.rounds_wanted {
        true => format!("{} rounds", report.rounds),
        false => format!("{} of {} rounds", report.rounds, report.rounds_wanted),
    };
    let guest = match facts.is_guest {
        Some(true) => ", a virtual machine",
        _ => "",
    };
    format!(
        "{}, Linux {}{guest}; all participants on CPU {}; {rounds}, each in a new order with new memory, processes \
         and threads (seed {}); {} ms each, {} in all",
        facts.processor,
        facts.kernel,
        report.cpu,
        report.seed,
        report.window_ms,
        num::seconds(report.wall_ms / 1e3),
    )
}

/// What becomes of TLB entries and page tables at a switch.
fn translations(report: &SwitchReport) -> String {
    let spaces = match report.facts.pcid {
        Some(true) => {
            "entries name their address space (PCID): those of other processes outlive a switch, as long as the \
             kernel has numbers for them (Linux: the last 6 address spaces of a CPU)"
        }
        Some(false) => "entries name no address space (no PCID): a switch of processes flushes them",
        None => "whether entries name their address space is not known here",
    };
    let tables = match report.facts.isolates_tables {
        Some(true) => "page-table isolation is on: each system call switches page tables, too",
        Some(false) => "page-table isolation is off",
        None => "whether page tables are isolated the kernel does not say",
    };
    format!("{spaces}; {tables}")
}

fn keys(report: &SwitchReport) -> String {
    match &report.no_compartments {
        None => "compartments of one process take part, in base pages; a switch is a leave and an enter by one \
            thread"
            .into(),
        Some(why) => why.clone(),
    }
}

fn mitigations(report: &SwitchReport) -> String {
    let list: Vec<String> =
        report.facts.vulnerabilities.iter().map(|(name, state)| format!("{name}: {state}")).collect();
    match list.is_empty() {
        true => "the kernel names no vulnerability".into(),
        false => list.join("; "),
    }
}

/// What else ran, and what was not to be had.
fn disturbances(report: &SwitchReport) -> Vec<String> {
    let mut lines = Vec::new();
    let extra = |point: &&RingPoint| point.extra_switches_per_kilo_step;
    if let Some(worst) = report.points.iter().max_by(|a, b| extra(a).total_cmp(&extra(b))) {
        let quiet = report.points.iter().filter(|point| extra(point) < 1.0).count();
        let ring = worst.ring;
        lines.push(format!(
            "switches beside those that hand over the token: under 1 in 1,000 turns in {quiet} of {}, at most {} in \
             1,000 ({} {}, {} {}); medians of the rounds",
            rings(report.points.len()),
            num::rate(extra(&worst)),
            ring.participants,
            who(worst.who),
            ring.size,
            unit(ring.benchmark),
        ));
    }
    if let Some(stolen) = report.stolen_ms {
        lines.push(format!(
            "the host gave CPU {} to others for {} of {} (steal)",
            report.cpu,
            num::seconds(stolen / 1e3),
            num::seconds(report.wall_ms / 1e3)
        ));
    }
    match report.huge_share {
        None => lines.push(
            "no huge pages to be had (/sys/kernel/mm/transparent_hugepage/enabled): rings in them are left out".into(),
        ),
        Some(share) if share < 1.0 => lines.push(format!(
            "of the memory meant for huge pages {} lay in them, in the worst round",
            num::percent(share)
        )),
        Some(_) => {}
    }
    lines
}
