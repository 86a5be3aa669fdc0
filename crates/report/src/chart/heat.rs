//! Heat maps: counts over columns and rows, in bands.

use super::{Heat, HeatBand};
use crate::html::Esc;
use crate::{num, text};

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

impl Heat {
    /// The greatest count.
    pub(super) fn most(&self) -> u64 {
        self.bands.iter().flat_map(|band| band.rows.iter().flatten()).copied().max().unwrap_or(0)
    }
}

/// The map; nothing if nothing was counted.
pub(super) fn draw(plot: &Heat, spoken: &str) -> String {
    let most = plot.most();
    if plot.columns == 0 || most == 0 {
        return String::new();
    }
    let rows: usize = plot.bands.iter().map(|band| band.rows.len()).sum();
    let row_height = (AIMED / rows as f64).clamp(ROW.0, ROW.1);
    let heights: Vec<f64> = plot.bands.iter().map(|band| (band.rows.len() as f64 * row_height).max(BAND)).collect();
    let height: f64 = heights.iter().map(|h| h + GAP).sum();
    let mut out =
        format!(r#"<div class="chart heat"><svg height="{height:.1}" role="img" aria-label="{}">"#, Esc(spoken));
    let mut y = 0.0;
    let mut names = String::new();
    for (band, height) in plot.bands.iter().zip(&heights) {
        out += &format!(
            r#"<g><title>{}</title><rect class="back" x="0" y="{y:.1}" width="100%" height="{height:.1}"/><svg x="0" y="{y:.1}" width="100%" height="{height:.1}" viewBox="0 0 {} {}" preserveAspectRatio="none" shape-rendering="crispEdges">{}</svg></g>"#,
            Esc(&band.words),
            plot.columns,
            band.rows.len(),
            cells(band, most)
        );
        let name = text::cut_middle(&text::clean(&band.name), NAME);
        names += &format!(r#"<text class="band" x="-8" y="{:.1}" dy="4">{}</text>"#, y + height / 2.0, Esc(&name));
        y += height + GAP;
    }
    out += &names;
    for quarter in 0..=4u8 {
        let anchor = ["start", "middle", "middle", "middle", "end"][usize::from(quarter)];
        out += &format!(
            r#"<text x="{}%" y="100%" dy="15" text-anchor="{anchor}">{}</text>"#,
            quarter * 25,
            num::short(plot.x_end * f64::from(quarter) / 4.0)
        );
    }
    out + &format!(r#"<text x="100%" y="100%" dy="31" text-anchor="end">{}</text></svg></div>"#, Esc(&plot.x))
}

/// What the colours mean.
pub(super) fn legend(plot: &Heat) -> Vec<(String, String)> {
    let most = plot.most();
    if most == 0 {
        return Vec::new();
    }
    let level = |level| {
        let unit = if level == 1 { format!("{}: ", plot.unit) } else { String::new() };
        (format!("h{level}"), format!("{unit}from {}", num::grouped(fewest(level, most))))
    };
    (1..=LEVELS).map(level).collect()
}

/// The colour of a cell, 1 to [`LEVELS`]; 0 = nothing.
fn level(count: u64, most: u64) -> usize {
    (1..=LEVELS).rev().find(|&level| count >= fewest(level, most)).unwrap_or(0)
}

/// The least count of a colour: equal factors from 1 up to the cell with most.
fn fewest(level: usize, most: u64) -> u64 {
    let exponent = (level - 1) as f64 / LEVELS as f64;
    ((most as f64).powf(exponent).ceil() as u64).max(level as u64)
}

/// One path a colour, each of runs of cells.
fn cells(band: &HeatBand, most: u64) -> String {
    let mut paths = vec![String::new(); LEVELS + 1];
    for (y, row) in band.rows.iter().enumerate() {
        let levels: Vec<usize> = row.iter().map(|&n| level(n, most)).collect();
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
        let band = HeatBand { rows: vec![vec![0, 1, 1, 100, 0]], ..HeatBand::default() };
        let expected = "<path class=\"h1\" d=\"M1 0h2v1h-2z\"/><path class=\"h4\" d=\"M3 0h1v1h-1z\"/>";
        assert_eq!(cells(&band, 65_536), expected);
    }
}
