//! Huge pages that were made of a running program's memory, for a terminal.

use lookaside_runtime::hugepages::{Applied, By, Fell, Followed, Planned, Row, Tried, Way, WINDOW_BYTES};

use lookaside_report::num;
use lookaside_report::text;
use lookaside_report::{Column, Table};
use lookaside_report::{Line, Paint, Style};

/// Rows shown; all are in the JSON.
const ROWS: usize = 20;

/// What was seen, the windows chosen and what became of each, and what it comes to.
pub fn render(applied: &Applied, style: &Style) -> String {
    let mut before = vec![seen(applied)];
    before.extend(applied.fell.as_ref().map(places));
    before.push(chosen(applied));
    let mut out = sentences(&before, style);
    if !applied.rows.is_empty() {
        out.push('\n');
        out += &rows(applied).render(style);
        if applied.rows.len() > ROWS {
            out += &format!("… and {} more (--json has all)\n", num::grouped((applied.rows.len() - ROWS) as u64));
        }
    }
    out.push('\n');
    out + &sentences(&done(applied), style)
}

/// Each on a line of its own, wrapped; what programs call themselves is made harmless.
fn sentences(all: &[String], style: &Style) -> String {
    let parts = all.iter().flat_map(|sentence| text::wrap(&text::clean(sentence), style.columns()));
    parts.map(|part| Line::of(Paint::Plain, part).render(style) + "\n").collect()
}

fn seen(applied: &Applied) -> String {
    let head = format!("{} ({}), looked at for {:.1} s by ", applied.comm, applied.pid, applied.seconds);
    match applied.by {
        By::Sample => {
            head + &format!("samples of data addresses ({} taken): weights are its time", num::grouped(applied.weight))
        }
        By::Referenced => {
            let why = applied.no_samples.as_ref().map(|why| format!("; not by samples: {why}")).unwrap_or_default();
            head + &format!(
                "referenced bits ({}; the longest clearing, for which page faults of the program wait, took {}): the system \
                 tells a sum for each mapping, which is spread evenly over its pages in memory, so windows of one mapping differ only by how \
                 much of them is in memory{why}",
                match applied.intervals.unwrap_or(0) {
                    1 => "1 interval".to_string(),
                    many => format!("{many} intervals"),
                },
                num::seconds(applied.longest_clearing_nanos.unwrap_or(0) as f64 / 1e9)
            )
        }
    }
}

/// Where samples fell.
fn places(fell: &Fell) -> String {
    let of = |count: u64| num::percent(num::share(count as f64, fell.samples as f64));
    let mut parts = vec![format!("{} in private anonymous memory in small pages", of(fell.small))];
    let rest = [
        (fell.huge, "in huge pages already"),
        (fell.edges, "beside whole windows of 2 MiB"),
        (fell.unmapped, "in no mapping that is still there"),
        (fell.unknown, "without an address"),
    ];
    let unfit = fell.unfit.iter().map(|(unfit, count)| (*count, unfit.words()));
    let unfit = unfit.map(|(count, words)| (count, format!("in {words}")));
    let rest = rest.map(|(count, words)| (count, words.to_string()));
    parts.extend(
        unfit.chain(rest).filter(|(count, _)| *count > 0).map(|(count, words)| format!("{} {words}", of(count))),
    );
    match fell.samples {
        0 => "It used no CPU in user code meanwhile: it was seen nowhere.".into(),
        _ => format!("Of its samples {}.", parts.join(", ")),
    }
}

fn chosen(applied: &Applied) -> String {
    let share = |weight: u64| num::percent(num::share(weight as f64, applied.weight as f64));
    let mut text = format!(
        "Chosen: {} of {} windows ({}), budget {}: {} of all {}",
        num::grouped(applied.rows.len() as u64),
        num::grouped(applied.candidates as u64),
        num::bytes(applied.rows.len() as u64 * WINDOW_BYTES),
        num::grouped(applied.budget as u64),
        share(applied.chosen_weight),
        weights(applied.by),
    );
    if let Some(held_out) = applied.held_out {
        let of_all = held_out * num::share(applied.candidates_weight as f64, applied.weight as f64);
        text += &format!(
            " (it was chosen by these, so that chance flatters it; chosen by half of them, it has {} of the other half)",
            num::percent(of_all)
        );
    }
    if applied.rows.len() < applied.budget && applied.rows.len() < applied.candidates {
        text += "; in no other was it seen";
    }
    text + "."
}

/// What windows are weighed by.
fn weights(by: By) -> &'static str {
    match by {
        By::Sample => "samples",
        By::Referenced => "referenced bytes",
    }
}

fn rows(applied: &Applied) -> Table {
    let head = match applied.by {
        By::Sample => "samples",
        By::Referenced => "referenced, KiB",
    };
    let mut table = Table::new([
        Column::right("window"),
        Column::left("region").cut(16),
        Column::right(head),
        Column::right("of all"),
        Column::right("in memory, KiB").optional(2),
        Column::right("adds, KiB"),
        Column::right("call, ms").optional(1),
        Column::left("outcome").wrap(),
    ]);
    for row in applied.rows.iter().take(ROWS) {
        let window = &row.chosen.window;
        let weight = match applied.by {
            By::Sample => row.chosen.weight,
            By::Referenced => row.chosen.weight >> 10,
        };
        table.row([
            format!("{:#x}", window.start).into(),
            row.chosen.region.as_str().into(),
            num::grouped(weight).into(),
            num::percent(num::share(row.chosen.weight as f64, applied.weight as f64)).into(),
            num::grouped(u64::from(window.small_pages) * 4).into(),
            num::grouped(row.chosen.bloat_bytes >> 10).into(),
            row.tried
                .as_ref()
                .map_or_else(|| num::NONE.into(), |tried| format!("{:.2}", tried.nanos() as f64 / 1e6))
                .into(),
            outcome(row).into(),
        ]);
    }
    table
}

fn outcome(row: &Row) -> String {
    match (&row.tried, row.huge_at_end) {
        (None, _) => "not tried".into(),
        (Some(Tried::Collapsed { .. }), Some(false)) => "huge, and split or gone again by the program".into(),
        (Some(Tried::Collapsed { .. }), _) => "huge".into(),
        (Some(Tried::Refused { errno: 0, why, .. }), _) => format!("refused: {why}"),
        (Some(Tried::Refused { errno, why, .. }), _) => format!("refused ({}): {why}", name(*errno)),
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

fn done(applied: &Applied) -> Vec<String> {
    let bloat: u64 = applied.rows.iter().map(|row| row.chosen.bloat_bytes).sum();
    if applied.dry_run {
        return vec![format!(
            "Dry run: nothing was changed. It would add up to {} to the memory in use.",
            num::bytes(bloat)
        )];
    }
    let made = applied.rows.iter().filter(|row| row.tried.as_ref().is_some_and(Tried::is_collapsed));
    let (count, weight, bloat) = made.fold((0u64, 0u64, 0u64), |(count, weight, bloat), row| {
        (count + 1, weight + row.chosen.weight, bloat + row.chosen.bloat_bytes)
    });
    if applied.rows.is_empty() {
        return vec!["Nothing was done.".into()];
    }
    let mut sentences = vec![format!(
        "Made {} of {} chosen windows huge ({} of all {}) {}; {} more in memory. The longest call took {}: page faults and mmap of the \
         program may have waited as long.",
        num::grouped(count),
        num::grouped(applied.rows.len() as u64),
        num::percent(num::share(weight as f64, applied.weight as f64)),
        weights(applied.by),
        applied.way.words(),
        num::bytes(bloat),
        num::seconds(applied.longest_call_nanos() as f64 / 1e9),
    )];
    if applied.stopped {
        sentences.push("Interrupted: the rest was not tried.".into());
    }
    sentences
}

/// Who made them, if anybody was found that can.
fn from(way: Option<Way>) -> String {
    way.map_or_else(String::new, |way| format!("; {}", way.words()))
}

/// What was done for a program from its start to its end: a line, then a line for whatever was refused or has to be known.
pub fn summary(followed: &Followed) -> String {
    let by = match followed.by {
        None => {
            "nothing was looked at closer: no process of it had 8 MiB in small pages that stayed, or it ended before"
                .to_string()
        }
        Some(by) => {
            let seen = match by {
                By::Sample => format!("{} samples", num::grouped(followed.weight)),
                By::Referenced => format!("{} referenced", num::bytes(followed.weight)),
            };
            let covered = followed.covered.map_or_else(String::new, |share| {
                format!(", {} of the last of them in huge pages", num::percent(share))
            });
            format!(
                "{} made, {} in use at the last look, budget {}; {} {} by {seen}{covered}; {} more in memory; longest call {}{}",
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
pub fn planned(planned: &Planned) -> String {
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
