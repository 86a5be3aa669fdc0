//! `lookaside reproduce`: published, ours, verdict.

use lookaside_papers::{Row, Verdict};
use lookaside_report::{json, reproduction, Paint};

use crate::args::Reproduce;
use crate::exit::{Failure, NOT_CLEAN};
use crate::output::{print, style};

/// Runs a paper's experiments. Exit code 1 when a row that counts does not hold.
pub fn run(args: &Reproduce) -> Result<u8, Failure> {
    let found = lookaside_papers::reproduce(&args.paper).map_err(Failure::bad)?;
    if args.json {
        print(&json::document("lookaside-reproduction/1", &found))?;
    } else {
        let mut text = format!("{}\nmodel: {}\n", found.cite, found.machine);
        for assumption in &found.assumptions {
            text.push_str(&format!("assumed: {assumption}\n"));
        }
        let headers = ["place", "what", "published", "ours", "verdict"];
        let rows: Vec<_> = found.rows.iter().map(row).collect();
        text.push('\n');
        text.push_str(&reproduction::render(&headers, &rows, &style(None)));
        text.push_str(&format!("\n{} of {} rows that count hold\n", found.holding(), found.counted().count()));
        print(&text)?;
    }
    Ok(if found.holding() == found.counted().count() { 0 } else { NOT_CLEAN })
}

fn row(row: &Row) -> reproduction::Row {
    let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
    let ours = row.ours.as_ref().map(|ours| format!("{ours}{unit}")).unwrap_or_default();
    reproduction::Row {
        cells: vec![
            row.place.clone(),
            row.what.clone(),
            format!("{}{unit}", row.published),
            ours,
            row.verdict.to_string(),
        ],
        verdict: match row.verdict {
            Verdict::Holds => Paint::Good,
            Verdict::Differs => Paint::Bad,
            Verdict::Fitted => Paint::Warn,
            Verdict::NotReproduced => Paint::Plain,
        },
        remark: row.note.clone(),
    }
}
