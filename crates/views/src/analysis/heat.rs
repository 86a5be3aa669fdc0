//! The page heat map: accesses over time (columns) and address (rows), in bands by mapping.

use lookaside_report::chart::{Heat, HeatBand};
use lookaside_report::{num, Chart, Section};
use lookaside_techniques::{Analysis, HeatRow};

/// Bands that are named in words.
const SPOKEN: usize = 5;

/// The section; nothing if nothing was seen.
pub fn section(analysis: &Analysis) -> Section {
    let heat = &analysis.heat;
    let columns = heat.rows.iter().map(|row| row.accesses.len()).max().unwrap_or(0);
    if columns == 0 {
        return Section::default();
    }
    let several = heat.rows.windows(2).any(|pair| pair[0].process != pair[1].process);
    let bands: Vec<&[HeatRow]> = heat.rows.chunk_by(|a, b| a.process == b.process && a.name == b.name).collect();
    let map = Heat {
        x: "accesses so far".into(),
        x_end: heat.accesses_per_column as f64 * columns as f64,
        unit: "accesses in a cell".into(),
        columns,
        bands: bands.iter().map(|rows| band(rows, several)).collect(),
    };
    let lead = format!(
        "Accesses to pages: across, time in {} columns of {} accesses; down, address, in bands by mapping \
         (untouched addresses are left out). Colours step by equal factors.",
        num::grouped(columns as u64),
        num::grouped(heat.accesses_per_column)
    );
    Section::unheaded("Pages over time").lead(lead).with(Chart::heat("", map).in_words(in_words(&bands)))
}

fn band(rows: &[HeatRow], several: bool) -> HeatBand {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return HeatBand::default() };
    let process = if several { format!("[{}] ", first.process) } else { String::new() };
    let name = format!("{process}{}", first.name);
    HeatBand {
        words: format!("{name}: {:#x} to {:#x}, {} accesses", first.start, last.end, num::grouped(sum(rows))),
        name,
        rows: rows.iter().map(|row| row.accesses.clone()).collect(),
    }
}

fn sum(rows: &[HeatRow]) -> u64 {
    rows.iter().flat_map(|row| row.accesses.iter().copied()).fold(0, u64::saturating_add)
}

fn in_words(bands: &[&[HeatRow]]) -> String {
    let mut by_accesses: Vec<(u64, &str)> = bands.iter().map(|rows| (sum(rows), rows[0].name.as_str())).collect();
    by_accesses.sort_by_key(|(accesses, _)| std::cmp::Reverse(*accesses));
    let most = by_accesses.iter().take(SPOKEN);
    let most: Vec<String> =
        most.map(|(accesses, name)| format!("{name}, {} accesses", num::grouped(*accesses))).collect();
    format!("Heat map of accesses to pages. Most accessed: {}", most.join("; "))
}
