//! Misses over TLB size, log over log; below it the same for each number of sets.
//!
//! The picture fits any width: lines lie in a stretched inner drawing with strokes that are not scaled,
//! texts are placed by percentages and keep their size.

use lookaside_techniques::{Analysis, MissCurve, Seeing};

use super::parts::{Cell, Esc, Table};
use super::stretched::{stretched, UNITS};
use crate::analysis_facts as facts;
use lookaside_report::num;

/// Least distance of points that are drawn, in these units: a curve may have one for every entry.
const LINE_STEP: f64 = 0.5;
const DOT_STEP: f64 = 10.0;

/// Height of the large and of the small charts, CSS pixels.
const HEIGHT: u32 = 260;
const MINI_HEIGHT: u32 = 90;

/// Markers nearer than this share of the width get their names on two heights.
const LABEL_ROOM: f64 = 0.3;

/// The section; nothing if there is no curve.
pub fn section(analysis: &Analysis) -> String {
    let Some(curve) = &analysis.curve else { return String::new() };
    let points = facts::curve_points(curve);
    let levels = facts::tlb_levels(&analysis.machine);
    let sets: Vec<(String, Vec<(f64, f64)>)> = curve
        .set_associative
        .iter()
        .map(|set| {
            let ways = set.misses_by_ways.iter().zip(1u64..);
            let points = ways.map(|(&misses, way)| {
                (u64::from(set.sets).saturating_mul(way) as f64, num::per_kilo(misses as f64, curve.accesses))
            });
            (
                format!("{} set{}", num::grouped(set.sets.into()), if set.sets == 1 { "" } else { "s" }),
                points.filter(|p| p.0 > 0.0 && p.1.is_finite()).collect(),
            )
        })
        .filter(|(_, points): &(_, Vec<_>)| !points.is_empty())
        .collect();
    let cold = num::per_kilo(curve.cold_misses as f64, curve.accesses);
    let Some(axes) = Axes::around(points.iter().chain(sets.iter().flat_map(|(_, points)| points)), &levels, cold)
    else {
        return String::new();
    };
    let unit = if curve.estimate { "estimated misses per 1,000 samples" } else { "misses per 1,000 accesses" };
    let mut out = String::from(r#"<section aria-labelledby="curve"><h2 id="curve">Misses over TLB size</h2>"#);
    if curve.estimate {
        out += r#"<p class="lead"><span class="badge estimate">estimate</span> From samples, as if each reference were independent of those before (independent-reference model): a shape, not a count.</p>"#;
    } else {
        out += &format!(
            r#"<p class="lead">Data accesses to 4 KiB pages, LRU, one pass over {} accesses. Where the line falls steeply, a little more reach helps much. Dashed: this machine's own levels.</p>"#,
            num::grouped(curve.accesses)
        );
        if let Seeing::Exact { window: window @ 1.., .. } = analysis.seeing {
            out += &format!(
                r#"<p class="lead">Of sizes below {window} the recorder left out what they would tell, and of sets: <code>--granularity line</code> shows them.</p>"#
            );
        }
    }
    out += &format!(
        r#"<figure><figcaption>{unit}, fully associative, by entries</figcaption>{}</figure>"#,
        large(&points, &axes, &levels, cold)
    );
    let of_sets = Axes::around(sets.iter().flat_map(|(_, points)| points), &[], f64::NAN);
    if let Some(axes) = of_sets {
        out += "<h3>By sets, each step one way more (dotted: fully associative)</h3><div class=\"multiples\">";
        for (name, of_set) in &sets {
            out += &format!(
                "<figure><figcaption>{name}</figcaption>{}</figure>",
                small(name, of_set, &points, cold, &axes)
            );
        }
        out += "</div>";
    }
    out += "<details><summary>The curve in numbers</summary>";
    out += &numbers(curve).scrolled();
    out + "</details></section>\n"
}

fn numbers(curve: &MissCurve) -> Table<'static> {
    let rows = curve.fully_associative.iter().map(|&(entries, misses)| {
        vec![
            Cell::Text(num::grouped(entries)),
            Cell::Number(entries as f64 * 4096.0, num::bytes(entries.saturating_mul(4096))),
            Cell::count(misses),
            Cell::rate(num::per_kilo(misses as f64, curve.accesses)),
        ]
    });
    Table {
        caption: "Misses of a fully associative LRU TLB by its entries; reach at 4 KiB pages",
        heads: vec![("entries", false), ("reach", true), ("misses", true), ("per 1,000", true)],
        rows: rows.collect(),
    }
}

/// Bounds: log2 of entries, log10 of the rate.
struct Axes {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl Axes {
    fn around<'a>(points: impl Iterator<Item = &'a (f64, f64)>, levels: &[(u32, u64)], cold: f64) -> Option<Self> {
        let points: Vec<&(f64, f64)> = points.collect();
        let sizes = || points.iter().map(|p| p.0).chain(levels.iter().map(|l| (l.1 as f64).max(1.0)));
        let rates = || points.iter().map(|p| p.1).chain([cold]).filter(|y| *y > 0.0);
        let left = sizes().reduce(f64::min)?.log2().floor();
        let right = sizes().reduce(f64::max)?.log2().ceil().max(left + 1.0);
        let top = rates().reduce(f64::max)?.log10().ceil();
        let bottom = rates().reduce(f64::min)?.log10().floor().min(top - 1.0);
        (!points.is_empty()).then_some(Self { left, right, bottom, top })
    }

    /// The point lies on the drawing.
    fn hold(&self, (entries, rate): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&entries.log2()) && (self.bottom..=self.top).contains(&rate.log10())
    }

    /// Share of the width.
    fn x(&self, entries: f64) -> f64 {
        ((entries.max(1.0).log2() - self.left) / (self.right - self.left)).clamp(0.0, 1.0)
    }

    /// Share of the height, from the top.
    fn y(&self, rate: f64) -> f64 {
        if rate > 0.0 {
            ((self.top - rate.log10()) / (self.top - self.bottom)).clamp(0.0, 1.0)
        } else {
            1.0
        }
    }

    /// Powers of two to be named, at most about `most`.
    fn x_ticks(&self, most: f64) -> impl Iterator<Item = (f64, String)> + '_ {
        let step = ((self.right - self.left) / most).ceil().max(1.0) as usize;
        (self.left as u32..=self.right as u32).step_by(step).map(|power| {
            let label = match power {
                0..=9 => (1u64 << power).to_string(),
                10..=19 => format!("{}Ki", 1u64 << (power - 10)),
                20..=29 => format!("{}Mi", 1u64 << (power - 20)),
                _ => format!("2^{power}"),
            };
            ((f64::from(power) - self.left) / (self.right - self.left), label)
        })
    }

    /// Powers of ten to be named, at most about `most`.
    fn y_ticks(&self, most: f64) -> impl Iterator<Item = (f64, String)> + '_ {
        let step = ((self.top - self.bottom) / most).ceil().max(1.0) as usize;
        (self.bottom as i32..=self.top as i32).rev().step_by(step).map(|power| {
            let label = if power >= 0 {
                num::short(10f64.powi(power))
            } else if power >= -4 {
                10f64.powi(power).to_string()
            } else {
                format!("1e{power}")
            };
            ((self.top - f64::from(power)) / (self.top - self.bottom), label)
        })
    }

    /// The points that lie so far from the one before, in units of the inner drawing; first and last always.
    fn apart(&self, points: &[(f64, f64)], step: f64) -> Vec<(f64, f64)> {
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for (i, &(entries, rate)) in points.iter().enumerate() {
            let far = kept.last().is_none_or(|&(last_entries, last_rate)| {
                (self.x(entries) - self.x(last_entries)).abs() * UNITS >= step
                    || (self.y(rate) - self.y(last_rate)).abs() * UNITS >= step
            });
            if far || i + 1 == points.len() {
                kept.push((entries, rate));
            }
        }
        kept
    }

    /// The step function as a path of the inner drawing.
    fn path(&self, points: &[(f64, f64)], cold: f64, class: &str) -> String {
        let mut d = String::new();
        for (i, (entries, rate)) in self.apart(points, LINE_STEP).into_iter().enumerate() {
            let (x, y) = (self.x(entries) * UNITS, self.y(rate) * UNITS);
            d += &if i == 0 { format!("M{x:.1} {y:.1}") } else { format!("H{x:.1}V{y:.1}") };
        }
        // Where only first touches are left, more entries change nothing.
        if points.last().is_some_and(|&(_, rate)| rate <= cold) {
            d += &format!("H{UNITS}");
        }
        format!(r#"<path class="{class}" d="{d}"/>"#)
    }
}

fn large(points: &[(f64, f64)], axes: &Axes, levels: &[(u32, u64)], cold: f64) -> String {
    let mut out = format!(
        r#"<div class="chart"><svg height="{HEIGHT}" role="img" aria-label="{}">"#,
        Esc(&spoken(points, levels))
    );
    for (y, label) in axes.y_ticks(6.0) {
        let y = y * 100.0;
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%"/><text x="-8" y="{y:.2}%" dy="4" text-anchor="end">{label}</text>"#
        );
    }
    for (x, label) in axes.x_ticks(8.0) {
        let x = x * 100.0;
        out += &format!(
            r#"<line class="grid" x1="{x:.2}%" x2="{x:.2}%" y1="0" y2="100%"/><text x="{x:.2}%" y="100%" dy="17" text-anchor="middle">{label}</text>"#
        );
    }
    out += r#"<text x="100%" y="100%" dy="33" text-anchor="end">entries</text>"#;
    if cold > 0.0 {
        let y = axes.y(cold) * 100.0;
        out += &format!(
            r#"<line class="cold" x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%"/><text x="6" y="{y:.2}%" dy="-5">first touches: {}</text>"#,
            Esc(&num::rate(cold))
        );
    }
    out += &stretched(&axes.path(points, cold, "curve"));
    for (entries, rate) in axes.apart(points, DOT_STEP) {
        out += &format!(
            r#"<circle class="dot" cx="{:.2}%" cy="{:.2}%" r="2.5"><title>{} entries: {} per 1,000</title></circle>"#,
            axes.x(entries) * 100.0,
            axes.y(rate) * 100.0,
            num::grouped(entries as u64),
            Esc(&num::rate(rate))
        );
    }
    let mut last: Option<f64> = None;
    for &(level, entries) in levels {
        let x = axes.x(entries as f64);
        let raised = last.is_some_and(|last| x - last < LABEL_ROOM);
        let dy = if raised { -17 } else { -5 };
        let anchor = match x {
            ..0.05 => "start", // clear of the axis
            0.85.. => "end",
            _ => "middle",
        };
        out += &format!(
            r#"<line class="level" x1="{0:.2}%" x2="{0:.2}%" y1="0" y2="100%"/><text class="mark" x="{0:.2}%" y="0" dy="{dy}" text-anchor="{anchor}">L{level}: {1}</text>"#,
            x * 100.0,
            num::grouped(entries)
        );
        last = if raised { None } else { Some(x) };
    }
    out + "</svg></div>"
}

fn small(name: &str, points: &[(f64, f64)], full: &[(f64, f64)], cold: f64, axes: &Axes) -> String {
    let mut out = format!(
        r#"<div class="chart mini"><svg height="{MINI_HEIGHT}" role="img" aria-label="{}">"#,
        Esc(&format!("With {name}: {}", spoken(points, &[])))
    );
    out += r#"<line class="grid" x1="0" x2="100%" y1="100%" y2="100%"/>"#;
    for (y, label) in axes.y_ticks(2.0) {
        let y = y * 100.0;
        out += &format!(
            r#"<line class="grid" x1="0" x2="100%" y1="{y:.2}%" y2="{y:.2}%"/><text x="-5" y="{y:.2}%" dy="4" text-anchor="end">{label}</text>"#
        );
    }
    for (x, label) in axes.x_ticks(3.0) {
        let x = x * 100.0;
        out += &format!(r#"<text x="{x:.2}%" y="100%" dy="13" text-anchor="middle">{label}</text>"#);
    }
    let inside: Vec<(f64, f64)> = full.iter().copied().filter(|&point| axes.hold(point)).collect();
    out += &stretched(&(axes.path(&inside, f64::NAN, "ghost") + &axes.path(points, cold, "curve")));
    out + "</svg></div>"
}

/// The curve in words, for those who cannot see it.
fn spoken(points: &[(f64, f64)], levels: &[(u32, u64)]) -> String {
    let say = |&(entries, rate): &(f64, f64)| {
        format!("{} misses per 1,000 at {} entries", num::rate(rate), num::grouped(entries as u64))
    };
    let mut words: Vec<String> = points.first().iter().map(|p| say(p)).collect();
    for &(_, entries) in levels {
        words.extend(
            points
                .iter()
                .take_while(|(x, _)| *x <= entries as f64)
                .last()
                .map(|&(_, rate)| say(&(entries as f64, rate))),
        );
    }
    words.extend(points.last().iter().map(|p| say(p)));
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_every_entry_is_thinned_to_what_can_be_seen() {
        let points: Vec<(f64, f64)> = (1..=200_000u32).map(|e| (f64::from(e), 1e6 / f64::from(e))).collect();
        let axes = Axes::around(points.iter(), &[], f64::NAN).unwrap();
        let drawn = axes.apart(&points, LINE_STEP);
        assert!(drawn.len() < 2000, "{} points", drawn.len());
        assert_eq!((drawn[0], drawn.last()), (points[0], points.last()));
        assert_eq!(axes.apart(&points[..3], LINE_STEP), points[..3]);
    }

    #[test]
    fn nothing_to_draw_has_no_axes() {
        assert!(Axes::around([].iter(), &[(1, 64)], 1.0).is_none());
        assert!(Axes::around([(1.0, 0.0)].iter(), &[], 0.0).is_none());
    }
}
