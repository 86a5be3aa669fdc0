//! The first screen: what it costs, who causes it, what helps.

use lookaside_engine::Side;
use lookaside_techniques::{Analysis, NamedCost, Seeing};

use super::parts::{bar, Cell, Esc, Table};
use crate::analysis_facts::{self as facts, Savings, Totals};
use lookaside_report::num;

/// Rows of each list here.
const TOP: usize = 4;

/// What ran, how it was seen, on which machine.
pub fn header(analysis: &Analysis) -> String {
    let class = if facts::is_sampled(analysis) { "estimate" } else { "exact" };
    let (kind, words) = facts::seeing(&analysis.seeing);
    let machine = &analysis.machine;
    let mut out = format!(
        r#"<header><h1 class="mono">{}</h1>{}<p class="sub"><span class="badge {class}">{kind}</span> {}</p><p class="sub">Machine: <strong>{}</strong>"#,
        Esc(&facts::command(analysis)),
        answer(analysis),
        Esc(&words),
        Esc(&machine.name)
    );
    for part in [&machine.description, &analysis.machine_reason] {
        if !part.is_empty() {
            out += &format!("; {}", Esc(part));
        }
    }
    if !facts::is_sampled(analysis) {
        out += &format!("; {}", Esc(&facts::os(analysis)));
    }
    out += "</p>";
    if let Some((words, false)) = facts::ending(analysis) {
        out += &format!(r#"<p class="banner">The {words}.</p>"#);
    }
    if !analysis.complete {
        out += r#"<p class="banner"><strong>Cut short.</strong> This is what was known until then; the notes say where.</p>"#;
    }
    out + "</header>\n"
}

/// The three cards in one sentence.
fn answer(analysis: &Analysis) -> String {
    let dearest = [&analysis.objects, &analysis.regions, &analysis.functions].into_iter().find_map(|rows| rows.first());
    let cause = dearest.map(|row| {
        let share = num::share(facts::weight(row, facts::is_sampled(analysis)), facts::whole(analysis));
        (facts::name(row), Esc(&num::percent(share)).to_string())
    });
    let mut out = String::from(r#"<p class="answer">"#);
    match analysis.seeing {
        Seeing::Exact { .. } => {
            let totals = Totals::of(analysis);
            out += &Esc(&totals.verdict()).to_string();
            if let (true, Some((name, share))) = (totals.worth_it(), cause) {
                out += &format!(" <strong>{}</strong> causes {share} of it.", Esc(name));
            }
            if let (true, Some(best)) = (totals.worth_it(), analysis.remedies.first()) {
                let saved = Savings::of(best).of_translation;
                if saved > 0.0 {
                    out += &format!(
                        " <strong>{}</strong> would save {}{} of it.",
                        Esc(&best.what),
                        facts::near(best),
                        Esc(&num::percent(saved))
                    );
                }
            }
        }
        Seeing::Sampled { .. } => {
            match cause {
                Some((name, share)) => {
                    out += &format!("An estimated {share} of the time goes to <strong>{}</strong>, translation and all else together.", Esc(name));
                }
                None => out += "No sample could be attributed.",
            }
        }
    }
    out + "</p>"
}

/// The three cards.
pub fn cards(analysis: &Analysis) -> String {
    let cost = match analysis.seeing {
        Seeing::Exact { .. } => exact_cost(analysis),
        Seeing::Sampled { period_ns, samples, resolved } => sampled_cost(period_ns, samples, resolved),
    };
    format!(
        r#"<div class="summary"><div class="card"><h2>What it costs</h2>{cost}</div><div class="card"><h2>Who causes it</h2>{}</div><div class="card"><h2>What would help</h2>{}</div></div>
"#,
        causes(analysis),
        helps(analysis)
    )
}

fn exact_cost(analysis: &Analysis) -> String {
    let totals = Totals::of(analysis);
    if totals.accesses == 0 {
        return format!("<p>{}</p>", totals.verdict());
    }
    let class = if totals.worth_it() { "bad" } else { "good" };
    let mut out = format!(r#"<p class="big {class}">{}</p>"#, Esc(&num::percent(totals.share)));
    let what = if totals.worth_it() {
        "of the modelled cycles are translation"
    } else {
        "of the modelled cycles are translation: nothing to gain here"
    };
    out +=
        &format!(r#"<p>{what}: {} of {}"#, num::short(totals.translation_cycles), num::short(totals.modelled_cycles));
    let time = facts::cycles_seconds(totals.translation_cycles, &analysis.machine);
    if time.is_finite() {
        out += &format!(
            "; at {} MHz that is {} of {}",
            num::short(analysis.machine.clock_mhz),
            num::seconds(time),
            num::seconds(facts::cycles_seconds(totals.modelled_cycles, &analysis.machine))
        );
    }
    out + ".</p>" + &rates(analysis).plain()
}

/// Rates with the sides as columns, which fits a narrow card.
fn rates(analysis: &Analysis) -> Table<'static> {
    let mut sides: Vec<(&str, &Side)> = vec![("loads, stores", &analysis.outcome.data)];
    let mut caption = "Per 1,000 loads and stores";
    if analysis.outcome.fetch.accesses > 0 {
        sides.push(("fetches", &analysis.outcome.fetch));
        caption = "Per 1,000 loads and stores, and per 1,000 fetches";
    }
    let row = |name: &str, value: &dyn Fn(&Side) -> Cell| {
        let mut cells = vec![Cell::Text(name.into())];
        cells.extend(sides.iter().map(|(_, side)| value(side)));
        cells
    };
    let per_kilo = |side: &Side, n: f64| Cell::rate(num::per_kilo(n, side.accesses));
    let rows = vec![
        row("translation cycles", &|side| per_kilo(side, side.cost.cycles())),
        row("first-level TLB misses", &|side| per_kilo(side, side.cost.l1_misses as f64)),
        row("walks", &|side| per_kilo(side, side.cost.walks as f64)),
        row("references a walk", &|side| {
            Cell::rate(num::share(side.cost.walk_references as f64, side.cost.walks as f64))
        }),
        row("accesses in all", &|side| Cell::Number(side.accesses as f64, num::short(side.accesses as f64))),
    ];
    let mut heads = vec![("", false)];
    heads.extend(sides.iter().map(|(name, _)| (*name, true)));
    Table { caption, heads, rows }
}

fn sampled_cost(period_ns: u64, samples: u64, resolved: u64) -> String {
    let share = num::share(resolved as f64, samples as f64);
    format!(
        r#"<p class="big warn">{}</p><p>of the program's time was seen, in {} samples of {} each. Samples tell where time goes, translation and all else together; they count no misses and no walks.</p><div class="row"><span class="name">data address found</span><span class="value">{}</span></div>{}"#,
        num::seconds(facts::sampled_seconds(samples, period_ns)),
        num::grouped(samples),
        num::seconds(period_ns as f64 / 1e9),
        Esc(&num::percent(share)),
        bar(&[(share, "fill")])
    )
}

fn causes(analysis: &Analysis) -> String {
    let of = if facts::is_sampled(analysis) { "time (all samples)" } else { "translation cycles" };
    let mut out = format!(r#"<p class="sub">Shares of {of}.</p>"#);
    let mut any = false;
    for (title, rows) in [("Objects", &analysis.objects), ("Functions", &analysis.functions)] {
        // Without objects, mappings are the next best answer.
        let (title, rows) =
            if rows.is_empty() && title == "Objects" { ("Regions", &analysis.regions) } else { (title, rows) };
        if !rows.is_empty() {
            any = true;
            out += &format!(r#"<h3>{title}</h3><ul class="bars">{}</ul>"#, list(analysis, rows));
        }
    }
    if any {
        out
    } else {
        "<p>Nothing was attributed.</p>".into()
    }
}

fn list(analysis: &Analysis, rows: &[NamedCost]) -> String {
    let sampled = facts::is_sampled(analysis);
    let item = |row: &NamedCost| {
        let share = num::share(facts::weight(row, sampled), facts::whole(analysis));
        format!(
            r#"<li><div class="row"><span class="name" title="{0}">{0}</span><span class="value">{1}</span></div>{2}</li>"#,
            Esc(facts::name(row)),
            Esc(&num::percent(share)),
            bar(&[(share, "fill")])
        )
    };
    rows.iter().take(TOP).map(item).collect()
}

fn helps(analysis: &Analysis) -> String {
    if analysis.remedies.is_empty() {
        return if facts::is_sampled(analysis) {
            format!(
                r#"<p>Samples cannot tell. To have it computed:</p><p><code>lookaside analyze --exact -- {}</code></p>"#,
                Esc(&facts::command(analysis))
            )
        } else if Totals::of(analysis).worth_it() {
            "<p>Nothing was computed; the notes say why.</p>".into()
        } else {
            "<p>Nothing has to: there is next to no cost to save.</p>".into()
        };
    }
    let mut out = String::from(
        r#"<p class="sub">Saved translation cycles; each computed by running the model again.</p><ul class="bars">"#,
    );
    if facts::is_sampled(analysis) {
        out.insert_str(0, r#"<p class="sub"><span class="badge estimate">estimate</span></p>"#);
    }
    for remedy in analysis.remedies.iter().take(TOP) {
        let saved = Savings::of(remedy).of_translation;
        let how = if remedy.how.is_empty() { "not to be had on this machine" } else { &remedy.how };
        out += &format!(
            r#"<li><div class="row"><span class="name" title="{0}">{0}</span><span class="value">{1}</span></div>{2}<span class="how">{3}</span></li>"#,
            Esc(&remedy.what),
            Esc(&format!("{}{}", facts::near(remedy), num::percent(saved))),
            saving_bar(saved),
            Esc(how)
        );
    }
    out + "</ul>"
}

/// A bar of what is saved; in the colour of a warning what it costs more.
pub fn saving_bar(saved: f64) -> String {
    bar(&[(saved.abs(), if saved < 0.0 { "worse" } else { "fill" })])
}
