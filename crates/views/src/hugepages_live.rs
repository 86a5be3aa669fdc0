//! Huge pages that were made of a running program's memory.

use lookaside_report::chart::{Axis, Lines, Look, Point, Scale, Series};
use lookaside_report::{num, text, Cell, Chart, Column, Document, Medium, Section, Table};
use lookaside_runtime::hugepages::{
    AppliedPlan, CollapseResult, CollapseSide, ObservedBy, PromotionReport, PromotionSummary, SampleCounts, WindowRow,
    WINDOW_BYTES,
};

/// Windows that a terminal shows.
const ROWS: usize = 20;

/// What was made huge, how the windows were chosen, and what became of each.
pub fn view(applied: &PromotionReport) -> Document {
    let mut document = Document::new("Huge pages of a running process", format!("{} ({})", applied.comm, applied.pid));
    document.answer(answer(applied));
    if applied.stopped {
        document.banner("Interrupted: the remaining windows were not tried.");
    }
    document.fact("watched", watched(applied));
    if let Some(fell) = &applied.fell {
        document.fact("samples", places(fell));
    }
    document.fact("chosen", chosen(applied));
    document.section(Section::unheaded("Windows").with(rows(applied)));
    document.section(Section::unheaded("What more huge pages cover").with(covered(applied)).only(Medium::Page));
    notes(applied).into_iter().for_each(|note| document.note(note));
    document
}

fn answer(applied: &PromotionReport) -> String {
    if applied.dry_run {
        let bloat = applied.rows.iter().map(|row| row.chosen.bloat_bytes).sum();
        return format!("Dry run: nothing was changed. It would add up to {} to the memory in use.", num::bytes(bloat));
    }
    if applied.rows.is_empty() {
        return "Nothing was done.".into();
    }
    let made = applied.rows.iter().filter(|row| row.tried.as_ref().is_some_and(CollapseResult::is_collapsed));
    let (count, weight, bloat) = made.fold((0u64, 0u64, 0u64), |(count, weight, bloat), row| {
        (count + 1, weight + row.chosen.weight, bloat + row.chosen.bloat_bytes)
    });
    format!(
        "Made {} of {} chosen windows huge ({} of {}) {}; {} more in memory.",
        num::grouped(count),
        num::grouped(applied.rows.len() as u64),
        share(applied, weight),
        weights(applied.by),
        applied.way.words(),
        num::bytes(bloat),
    )
}

/// A weight's share of all.
fn share(applied: &PromotionReport, weight: u64) -> String {
    num::percent(num::share(weight as f64, applied.weight as f64))
}

/// What windows are weighed by.
fn weights(by: ObservedBy) -> &'static str {
    match by {
        ObservedBy::Sample => "samples",
        ObservedBy::Referenced => "referenced bytes",
    }
}

/// For how long and by what.
fn watched(applied: &PromotionReport) -> String {
    let by = match applied.by {
        ObservedBy::Sample => format!("{} of data addresses", num::counted(applied.weight as usize, "sample")),
        ObservedBy::Referenced => {
            format!("referenced bits in {}", num::counted(applied.intervals.unwrap_or(0) as usize, "interval"))
        }
    };
    format!("{:.1} s, {by}", applied.seconds)
}

/// Where samples fell.
fn places(fell: &SampleCounts) -> String {
    let of = |count: u64| num::percent(num::share(count as f64, fell.samples as f64));
    let mut parts = vec![format!("{} in private anonymous memory in small pages", of(fell.small))];
    let rest = [
        (fell.huge, "in huge pages already"),
        (fell.edges, "outside whole windows of 2 MiB"),
        (fell.unmapped, "in memory unmapped since"),
        (fell.unknown, "without an address"),
    ];
    let unfit = fell.unfit.iter().map(|(unfit, count)| (*count, unfit.words()));
    let unfit = unfit.map(|(count, words)| (count, format!("in {words}")));
    let rest = rest.map(|(count, words)| (count, words.to_string()));
    parts.extend(
        unfit.chain(rest).filter(|(count, _)| *count > 0).map(|(count, words)| format!("{} {words}", of(count))),
    );
    match fell.samples {
        0 => "none: the process used no CPU in user code".into(),
        _ => parts.join(", "),
    }
}

fn chosen(applied: &PromotionReport) -> String {
    let mut text = format!(
        "{} of {} windows ({}), budget {}: {} of {}",
        num::grouped(applied.rows.len() as u64),
        num::grouped(applied.candidates as u64),
        num::bytes(applied.rows.len() as u64 * WINDOW_BYTES),
        num::grouped(applied.budget as u64),
        share(applied, applied.chosen_weight),
        weights(applied.by),
    );
    if let Some(held_out) = applied.held_out {
        let of_all = held_out * num::share(applied.candidates_weight as f64, applied.weight as f64);
        text += &format!(" (cross-validated: {})", num::percent(of_all));
    }
    if applied.rows.len() < applied.budget && applied.rows.len() < applied.candidates {
        text += &format!("; no other window has {}", weights(applied.by));
    }
    text
}

fn rows(applied: &PromotionReport) -> Table {
    let weight = match applied.by {
        ObservedBy::Sample => "samples",
        ObservedBy::Referenced => "referenced, KiB",
    };
    let mut table = Table::new([
        Column::right("window"),
        Column::left("region").cut(16),
        Column::right(weight),
        Column::right("of all"),
        Column::right("in memory, KiB").optional(2),
        Column::right("adds, KiB"),
        Column::right("call, ms").optional(1),
        Column::left("outcome").wrap(),
    ])
    .shown(ROWS, ROWS)
    .of("window", "windows");
    for row in &applied.rows {
        let window = &row.chosen.window;
        let weight = match applied.by {
            ObservedBy::Sample => row.chosen.weight,
            ObservedBy::Referenced => row.chosen.weight >> 10,
        };
        let millis = |tried: &CollapseResult| tried.nanos() as f64 / 1e6;
        table.row([
            format!("{:#x}", window.start).into(),
            row.chosen.region.as_str().into(),
            Cell::count(weight),
            Cell::share(num::share(row.chosen.weight as f64, applied.weight as f64)),
            Cell::count(u64::from(window.small_pages) * 4),
            Cell::count(row.chosen.bloat_bytes >> 10),
            Cell::optional(row.tried.as_ref(), |tried| Cell::number(millis(tried), format!("{:.2}", millis(tried)))),
            outcome(row).into(),
        ]);
    }
    table
}

fn outcome(row: &WindowRow) -> String {
    match (&row.tried, row.huge_at_end) {
        (None, _) => "not tried".into(),
        (Some(CollapseResult::Collapsed { .. }), Some(false)) => "made huge, then split or freed by the program".into(),
        (Some(CollapseResult::Collapsed { .. }), _) => "huge".into(),
        (Some(CollapseResult::Refused { errno: 0, why, .. }), _) => format!("refused: {why}"),
        (Some(CollapseResult::Refused { errno, why, .. }), _) => format!("refused ({}): {why}", name(*errno)),
    }
}

/// The system's name of an error number.
fn name(errno: i32) -> String {
    match errno {
        1 => "EPERM".into(),
        3 => "ESRCH".into(),
        11 => "EAGAIN".into(),
        12 => "ENOMEM".into(),
        13 => "EACCES".into(),
        14 => "EFAULT".into(),
        16 => "EBUSY".into(),
        22 => "EINVAL".into(),
        110 => "ETIMEDOUT".into(),
        other => format!("error {other}"),
    }
}

/// The share of all that the first windows have together, the heaviest first.
fn covered(applied: &PromotionReport) -> Chart {
    let mut weights_by_rank: Vec<u64> = applied.rows.iter().map(|row| row.chosen.weight).collect();
    weights_by_rank.sort_unstable_by_key(|weight| std::cmp::Reverse(*weight));
    let mut sum = 0;
    let points = weights_by_rank.iter().enumerate().map(|(i, weight)| {
        sum += weight;
        Point::new((i + 1) as f64, 100.0 * num::share(sum as f64, applied.weight as f64))
    });
    let series = Series::new("", points.collect()).look(Look::Step);
    let percent = Axis::new(format!("% of {}", weights(applied.by)), Scale::Auto);
    let title = format!("{} covered", weights(applied.by));
    Chart::lines(title, Lines::new(Axis::new("huge pages", Scale::Linear), percent).with(series))
}

/// What has to be known to read the figures.
fn notes(applied: &PromotionReport) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &applied.no_samples {
        notes.push(format!("Not by samples: {why}"));
    }
    if applied.by == ObservedBy::Referenced {
        let longest = num::seconds(applied.longest_clearing_nanos.unwrap_or(0) as f64 / 1e9);
        notes.push(format!("Clearing referenced bits took {longest} at most; the program's page faults wait for it."));
        notes.push(
            "The system gives one sum per mapping. It is spread evenly over the mapping's pages in memory, so \
             windows of one mapping differ only by how much of them is in memory."
                .into(),
        );
    }
    if applied.rows.iter().any(|row| row.tried.is_some()) {
        let longest = num::seconds(applied.longest_call_nanos() as f64 / 1e9);
        notes.push(format!(
            "The longest call took {longest}; page faults and mmap calls of the program may have waited as long."
        ));
    }
    if applied.rows.iter().any(|row| matches!(row.tried, Some(CollapseResult::Collapsed { .. }))) {
        let undo = applied.undo.map(|number| format!(", or until lookaside undo {number}")).unwrap_or_default();
        notes.push(format!(
            "The pages stay huge until the process frees that memory or ends{undo}. Memory that it allocates later gets \
             small pages as before."
        ));
    }
    notes
}

/// Who made them, if anybody was found that can.
fn from(way: Option<CollapseSide>) -> String {
    way.map_or_else(String::new, |way| format!("; {}", way.words()))
}

/// What was done for a program from its start to its end: a line, then a line for whatever was refused or has to be
/// known.
pub fn summary(followed: &PromotionSummary) -> String {
    let by = match followed.by {
        None => {
            "no process was sampled: none kept 8 MiB in small pages, or the program ended before a choice, which takes 2 s \
             once its memory stops growing"
                .to_string()
        }
        Some(by) => {
            let seen = match by {
                ObservedBy::Sample => format!("{} samples", num::grouped(followed.weight)),
                ObservedBy::Referenced => format!("{} referenced", num::bytes(followed.weight)),
            };
            let covered = followed.covered.map_or_else(String::new, |share| {
                format!(", {} of the last samples in huge pages", num::percent(share))
            });
            format!(
                "{} made, {} in use when last checked, budget {}; {} {} by {seen}{covered}; {} more in memory; \
                 longest call {}{}",
                num::grouped(followed.collapsed as u64),
                num::grouped(followed.in_use as u64),
                num::grouped(followed.budget as u64),
                followed.choices,
                if followed.choices == 1 { "choice" } else { "choices" },
                num::bytes(followed.bloat_bytes),
                num::seconds(followed.longest_call_nanos as f64 / 1e9),
                from(followed.way),
            )
        }
    };
    let mut text = format!("lookaside: huge pages: {by}\n");
    for (why, count) in &followed.refused {
        text += &format!("lookaside:   {count} refused: {why}\n");
    }
    for note in &followed.notes {
        text += &format!("lookaside:   {}\n", text::clean(note));
    }
    text
}

/// What became of a plan: a line, then one for each kind of refusal and each region that is not what was planned for.
pub fn planned(planned: &AppliedPlan) -> String {
    let mut text = format!(
        "lookaside: huge pages: {} of {} windows found of the plan made; {} more in memory; longest call {}{}\n",
        num::grouped(planned.collapsed as u64),
        num::grouped(planned.found as u64),
        num::bytes(planned.bloat_bytes),
        num::seconds(planned.longest_call_nanos as f64 / 1e9),
        from(planned.way),
    );
    for (region, why) in &planned.changed {
        text += &format!("lookaside:   not as planned: {}: {}\n", text::clean(region), text::clean(why));
    }
    for (why, count) in &planned.refused {
        text += &format!("lookaside:   {count} refused: {why}\n");
    }
    if planned.empty > 0 {
        text += &format!("lookaside:   {} had nothing in memory, or were still being filled\n", planned.empty);
    }
    text
}
