//! Who serves the references of walks, as PT-Baker's Figure 3.2 stacks them, and which tables they read.

use lookaside_engine::Side;
use lookaside_techniques::Analysis;

use super::parts::{swatch, Cell, Esc, Table};
use crate::analysis_facts as facts;
use lookaside_report::num;

/// The section; nothing if there were no walks.
pub fn section(analysis: &Analysis) -> String {
    let outcome = &analysis.outcome;
    let servers = figure(
        "Served by",
        "Walk references by what served them",
        [("loads, stores", &outcome.data), ("fetches", &outcome.fetch)],
        |side| &side.walk_references_by_server,
    );
    let tables = figure(
        "Read from",
        "Walk references by table level (leaf = L1)",
        [("loads, stores", &outcome.data), ("fetches", &outcome.fetch)],
        |side| &side.walk_references_by_table,
    );
    if servers.is_empty() && tables.is_empty() {
        return String::new();
    }
    format!(
        r#"<section aria-labelledby="walks"><h2 id="walks">Walk references</h2><p class="lead">Page-table entries read by walks, in shares of each side's references. What memory serves is what hurts.</p>{servers}{tables}</section>
"#
    )
}

fn figure(
    title: &str,
    caption: &str,
    sides: [(&str, &Side); 2],
    counts: impl Fn(&Side) -> &Vec<(String, u64)>,
) -> String {
    let sides: Vec<_> = sides.into_iter().filter(|(_, side)| facts::sum(counts(side)) > 0).collect();
    let mut names: Vec<&str> = Vec::new();
    for (_, side) in &sides {
        for (name, _) in counts(side) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names.sort_by_key(|name| *name == "memory");
    if sides.is_empty() {
        return String::new();
    }
    let count = |side: &Side, name: &str| {
        counts(side).iter().filter(|(of, _)| of == name).fold(0u64, |sum, (_, n)| sum.saturating_add(*n))
    };

    let mut out = format!(r#"<h3>{title}</h3><ul class="legend">"#);
    for (i, name) in names.iter().enumerate() {
        out += &format!("<li>{}{}</li>", swatch(&class(i, name)), Esc(name));
    }
    out += r#"</ul><ul class="bars">"#;
    for (side_name, side) in &sides {
        let total = facts::sum(counts(side)) as f64;
        let shares: Vec<(f64, String, &str)> = names
            .iter()
            .enumerate()
            .map(|(i, name)| (num::share(count(side, name) as f64, total), class(i, name), *name))
            .collect();
        out += &format!(
            r#"<li><div class="row"><span class="name">{side_name}</span><span class="value">{}, {} a walk</span></div>{}</li>"#,
            num::short(total),
            Esc(&num::rate(num::share(side.cost.walk_references as f64, side.cost.walks as f64))),
            stacked(&shares)
        );
    }
    out += "</ul>";
    let mut heads = vec![("", false)];
    heads.extend(sides.iter().flat_map(|(side, _)| [(*side, true), ("share", true)]));
    let rows = names.iter().map(|name| {
        let mut row = vec![Cell::Text(name.to_string())];
        for (_, side) in &sides {
            let n = count(side, name);
            row.push(Cell::Number(n as f64, num::short(n as f64)));
            row.push(Cell::percent(num::share(n as f64, facts::sum(counts(side)) as f64)));
        }
        row
    });
    out + &Table { caption, heads, rows: rows.collect() }.plain()
}

/// Caches in the machine's order, memory always in its own colour.
fn class(i: usize, name: &str) -> String {
    if name == "memory" {
        "memory".into()
    } else {
        format!("s{}", i % 5 + 1)
    }
}

/// One bar of all shares, with a gap between them so that they can be told apart without colour.
fn stacked(shares: &[(f64, String, &str)]) -> String {
    let words: Vec<String> = shares.iter().map(|(share, _, name)| format!("{name} {}", num::percent(*share))).collect();
    let mut out = format!(
        r#"<svg class="bar stack" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="{}">"#,
        Esc(&words.join(", "))
    );
    let mut x = 0.0;
    for ((share, class, _), words) in shares.iter().zip(&words) {
        let width = if share.is_finite() { share * 1000.0 } else { 0.0 };
        out += &format!(
            r#"<rect class="{class}" x="{x:.1}" width="{:.1}" height="10"><title>{}</title></rect>"#,
            (width - 2.0).max(0.0),
            Esc(words)
        );
        x += width;
    }
    out + "</svg>"
}
