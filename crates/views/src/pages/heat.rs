//! The page heat map: accesses over time (columns) and address (rows), in bands by mapping.

use lookaside_techniques::{Analysis, HeatMap, HeatRow};

use super::parts::{swatch, Esc};
use lookaside_report::{num, text};

/// Colours of the scale.
const LEVELS: usize = 8;

/// Height that the map aims at, bounds of a row, and least height of a band, that its name may fit; CSS pixels.
const AIMED: f64 = 460.0;
const ROW: (f64, f64) = (2.0, 14.0);
const BAND: f64 = 15.0;

/// Space between bands.
const GAP: f64 = 2.0;

/// Columns that a band's name may take beside the map.
const NAME: usize = 31;

/// The section; nothing if nothing was seen.
pub fn section(analysis: &Analysis) -> String {
    let heat = &analysis.heat;
    let columns = heat.rows.iter().map(|row| row.accesses.len()).max().unwrap_or(0);
    let most = heat.rows.iter().flat_map(|row| row.accesses.iter().copied()).max().unwrap_or(0);
    if columns == 0 || most == 0 {
        return String::new();
    }
    let bands = bands(heat);
    let mut out = format!(
        r#"<section aria-labelledby="heat"><h2 id="heat">Pages over time</h2><p class="lead">Accesses to pages: across, time in {} columns of {} accesses; down, address, in bands by mapping (what nobody touched is left out). Colours step by equal factors.</p>"#,
        num::grouped(columns as u64),
        num::grouped(heat.accesses_per_column)
    );
    out += r#"<ul class="legend"><li>accesses in a cell:</li>"#;
    for level in 1..=LEVELS {
        out += &format!("<li>{}from {}</li>", swatch(&format!("h{level}")), num::grouped(fewest(level, most)));
    }
    out += "</ul>";

    let row_height = (AIMED / heat.rows.len() as f64).clamp(ROW.0, ROW.1);
    let heights: Vec<f64> = bands.iter().map(|band| (band.len() as f64 * row_height).max(BAND)).collect();
    let height: f64 = heights.iter().map(|h| h + GAP).sum();
    let several = heat.rows.windows(2).any(|pair| pair[0].process != pair[1].process);
    out += &format!(
        r#"<figure><div class="chart heat"><svg height="{height:.1}" role="img" aria-label="{}">"#,
        Esc(&spoken(&bands))
    );
    let mut y = 0.0;
    let mut names = String::new();
    for (band, height) in bands.iter().zip(&heights) {
        let Some(first) = band.first() else { continue };
        let process = if several { format!("[{}] ", first.process) } else { String::new() };
        let title = format!(
            "{process}{}: {:#x} to {:#x}, {} accesses",
            first.name,
            first.start,
            band.last().map_or(first.end, |row| row.end),
            num::grouped(sum(band))
        );
        out += &format!(
            r#"<g><title>{}</title><rect class="back" x="0" y="{y:.1}" width="100%" height="{height:.1}"/><svg x="0" y="{y:.1}" width="100%" height="{height:.1}" viewBox="0 0 {columns} {}" preserveAspectRatio="none" shape-rendering="crispEdges">{}</svg></g>"#,
            Esc(&title),
            band.len(),
            cells(band, most)
        );
        let name = text::cut_middle(&text::clean(&(process + &first.name)), NAME);
        names += &format!(r#"<text class="band" x="-8" y="{:.1}" dy="4">{}</text>"#, y + height / 2.0, Esc(&name));
        y += height + GAP;
    }
    out += &names;
    for quarter in 0..=4u64 {
        let accesses = heat.accesses_per_column as f64 * columns as f64 * quarter as f64 / 4.0;
        let anchor = ["start", "middle", "middle", "middle", "end"][quarter as usize];
        out += &format!(
            r#"<text x="{}%" y="100%" dy="15" text-anchor="{anchor}">{}</text>"#,
            quarter * 25,
            num::short(accesses)
        );
    }
    out + r#"<text x="100%" y="100%" dy="31" text-anchor="end">accesses so far</text></svg></div></figure></section>
"#
}

/// Neighbouring rows of one mapping.
fn bands(heat: &HeatMap) -> Vec<&[HeatRow]> {
    heat.rows.chunk_by(|a, b| a.process == b.process && a.name == b.name).collect()
}

fn sum(band: &[HeatRow]) -> u64 {
    band.iter().flat_map(|row| row.accesses.iter().copied()).fold(0, u64::saturating_add)
}

/// The colour of a cell, 1 to [`LEVELS`]; 0 = never accessed.
fn level(accesses: u64, most: u64) -> usize {
    (1..=LEVELS).rev().find(|&level| accesses >= fewest(level, most)).unwrap_or(0)
}

/// Fewest accesses of a colour: equal factors from 1 up to the cell with most.
fn fewest(level: usize, most: u64) -> u64 {
    let exponent = (level - 1) as f64 / LEVELS as f64;
    ((most as f64).powf(exponent).ceil() as u64).max(level as u64)
}

/// One path a colour, each of runs of cells.
fn cells(band: &[HeatRow], most: u64) -> String {
    let mut paths = vec![String::new(); LEVELS + 1];
    for (y, row) in band.iter().enumerate() {
        let levels: Vec<usize> = row.accesses.iter().map(|&n| level(n, most)).collect();
        let mut x = 0;
        for run in levels.chunk_by(|a, b| a == b) {
            if run[0] > 0 {
                paths[run[0]] += &format!("M{x} {y}h{0}v1h-{0}z", run.len());
            }
            x += run.len();
        }
    }
    let drawn = paths.iter().enumerate().filter(|(_, d)| !d.is_empty());
    drawn.map(|(level, d)| format!(r#"<path class="h{level}" d="{d}"/>"#)).collect()
}

fn spoken(bands: &[&[HeatRow]]) -> String {
    let mut by_accesses: Vec<(u64, &str)> = bands.iter().map(|band| (sum(band), band[0].name.as_str())).collect();
    by_accesses.sort_by_key(|(accesses, _)| std::cmp::Reverse(*accesses));
    let most: Vec<String> = by_accesses
        .iter()
        .take(5)
        .map(|(accesses, name)| format!("{name}, {} accesses", num::grouped(*accesses)))
        .collect();
    format!("Heat map of accesses to pages. Most accessed: {}", most.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_strictly_rising_and_covers_all_counts() {
        for most in [1, 2, 7, 9, 100, 60_000, u64::MAX] {
            let bounds: Vec<u64> = (1..=LEVELS).map(|level| fewest(level, most)).collect();
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
            assert_eq!(level(0, most), 0);
            assert_eq!(level(1, most), 1);
            assert!(most < 256 || level(most, most) == LEVELS);
        }
    }

    #[test]
    fn cells_are_runs_by_colour() {
        let row = HeatRow { accesses: vec![0, 1, 1, 100, 0], ..HeatRow::default() };
        let expected = "<path class=\"h1\" d=\"M1 0h2v1h-2z\"/><path class=\"h4\" d=\"M3 0h1v1h-1z\"/>";
        assert_eq!(cells(&[row], 65_536), expected);
    }
}
