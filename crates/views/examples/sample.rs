//! Writes the report of a hand-made analysis: `cargo run -p lookaside-views --example sample`.
//! Arguments: `exact`, `sampled`, `tiny` or `empty`, then the width of the terminal, `html` or `json`.

#[path = "../tests/views/common.rs"]
mod common;
#[path = "../tests/views/native.rs"]
mod native;

use lookaside_report::{html, terminal, Style};
use lookaside_views::{analysis::view, json};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let analysis = match arguments.next().as_deref() {
        Some("sampled") => common::sampled(),
        Some("tiny") => common::tiny(),
        Some("empty") => common::empty(),
        _ => common::exact(),
    };
    let text = match arguments.next().as_deref() {
        Some("json") => json::render(&analysis),
        Some("html") => html::render(&view(&analysis)),
        width => {
            let width = width.and_then(|width| width.parse().ok()).unwrap_or(100);
            terminal::render(&view(&analysis), &Style { width, plots: true, color: true, ..Style::default() })
        }
    };
    print!("{text}");
}
