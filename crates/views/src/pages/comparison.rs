//! Runs in turns as a page: the verdict, ratios with their intervals, every run.

use lookaside_runtime::compare::{Comparison, VariantOutcome};
use lookaside_stats::{LEAST_ROUNDS, RESAMPLES};

use super::parts::{Cell, Esc, Table};
use crate::comparison::{
    circumstances, helper_cpus, huge_share, interval, middle, notes, ratio_is, unfinished, value, verdict,
};
use lookaside_report::{num, text};

/// Height of a variant's row in a chart, CSS pixels.
const ROW: u32 = 30;
/// Columns of a variant's name in a chart.
const NAME_COLUMNS: usize = 26;

/// Draws the comparison as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from anywhere.
pub fn render(comparison: &Comparison) -> String {
    let mut page = super::head(&format!("Does it help? {}", comparison.command.join(" ")));
    page += &header(comparison);
    page += "<main>\n";
    page += &ratios(comparison);
    page += &spread(comparison);
    page += &variants(comparison);
    page += &runs(comparison);
    page += &method(comparison);
    page + "</main>\n" + &super::foot(&comparison.version)
}

fn header(comparison: &Comparison) -> String {
    let mut out = format!(
        r#"<header><h1>Does it help? <span class="mono">{}</span></h1><p class="answer">{}</p><p class="sub">{}</p>"#,
        Esc(&comparison.command.join(" ")),
        Esc(&verdict(comparison)),
        Esc(&circumstances(comparison))
    );
    if let Some(early) = &comparison.early {
        let cut = Esc(&early.to_string()).to_string();
        out +=
            &format!(r#"<p class="banner"><strong>Cut short: {cut}.</strong> This is what was known until then.</p>"#);
    }
    for line in unfinished(comparison).iter().chain(&notes(comparison)) {
        out += &format!(r#"<p class="sub">{}</p>"#, Esc(line));
    }
    out + "</header>\n"
}

/// An axis between the least and the greatest number, with a little room at each end.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) width: f64,
}

impl Axis {
    pub(super) fn over(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let ends = numbers.filter(|x| x.is_finite()).fold(None, |ends: Option<(f64, f64)>, x| {
            Some(ends.map_or((x, x), |(low, high)| (low.min(x), high.max(x))))
        });
        let (low, high) = ends?;
        let room = ((high - low) * 0.06).max(high.abs() * 1e-3).max(1e-12);
        Some(Self { low: low - room, width: high - low + 2.0 * room })
    }

    /// Percent of the axis.
    pub(super) fn at(&self, x: f64) -> f64 {
        ((x - self.low) / self.width * 100.0).clamp(0.0, 100.0)
    }

    /// Round numbers on the axis, two to eleven of them: multiples of 1, 2 or 5 times a power of ten. None where numbers are too large for a
    /// step between them.
    pub(super) fn round_numbers(&self) -> Vec<f64> {
        let about = self.width / 5.0;
        let power = 10f64.powf(about.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|step| *step >= about);
        let step = step.unwrap_or(10.0 * power);
        let (first, last) = ((self.low / step).ceil(), ((self.low + self.width) / step).floor());
        if !(last - first).is_finite() {
            return Vec::new();
        }
        (0..=(last - first).min(10.0) as u32).map(|n| (first + f64::from(n)) * step).collect()
    }

    /// Decimals that tell round numbers from each other.
    pub(super) fn decimals(&self) -> usize {
        (-(self.width / 5.0).log10().floor()).clamp(0.0, 9.0) as usize
    }

    /// Round numbers with their names; a name that is that of the one before is left out with its line.
    pub(super) fn ticks(&self, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let mut ticks: Vec<_> = self.round_numbers().into_iter().map(|x| (x, name(x))).collect();
        ticks.dedup_by(|later, before| later.1 == before.1);
        ticks
    }

    /// Lines at round numbers, with what they are.
    fn grid(&self, name: impl Fn(f64) -> String) -> String {
        let line = |(x, name): (f64, String)| {
            format!(
                r#"<line class="grid" x1="{0:.2}%" x2="{0:.2}%" y1="0" y2="100%"/><text x="{0:.2}%" y="100%" dy="16" text-anchor="middle">{1}</text>"#,
                self.at(x),
                Esc(&name)
            )
        };
        self.ticks(name).into_iter().map(line).collect()
    }
}

/// A section with a chart: a row a variant, drawn by `marks` at its height.
fn chart(
    id: &str,
    title: &str,
    lead: &str,
    grid: &str,
    rows: &[VariantOutcome],
    marks: impl Fn(&VariantOutcome, u32) -> String,
) -> String {
    let mut out = format!(
        r#"<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2><p class="lead">{lead}</p><div class="chart compared"><svg height="{}" role="img" aria-label="{title}: the numbers are in the table below">{grid}"#,
        rows.len() as u32 * ROW
    );
    for (y, variant) in (0..).map(|i: u32| i * ROW + ROW / 2).zip(rows) {
        let name = text::cut_middle(&text::clean(&variant.name), NAME_COLUMNS);
        out += &format!(r#"<text x="-8" y="{y}" dy="4" text-anchor="end">{}</text>"#, Esc(&name));
        out += &marks(variant, y);
    }
    out + "</svg></div></section>\n"
}

fn ratios(comparison: &Comparison) -> String {
    let others = comparison.variants.get(1..).unwrap_or_default();
    let ends = others.iter().filter_map(|variant| variant.ratio.as_ref()).flat_map(|r| [r.low, r.high]);
    let mut ends = ends.peekable();
    if ends.peek().is_none() {
        return String::new();
    }
    let Some(axis) = Axis::over(ends.chain([1.0])) else { return String::new() };
    let one = axis.at(1.0);
    let decimals = axis.decimals().max(2);
    let grid = axis.grid(|x| format!("{x:.decimals$}"))
        + &format!(r#"<line class="level" x1="{one:.2}%" x2="{one:.2}%" y1="0" y2="100%"/>"#);
    let lead = format!(
        "Ratio of the medians, {}, with its 95 % interval. Dashed: 1, no difference{}.",
        ratio_is(comparison),
        if comparison.is_time { "; to the right of it: faster than base" } else { "" }
    );
    chart("ratios", "Ratio to base", &lead, &grid, others, |variant, y| {
        let Some(ratio) = &variant.ratio else { return String::new() };
        let [low, value, high] = [ratio.low, ratio.value, ratio.high].map(|x| axis.at(x));
        let words = format!("{}: {:.3} ({})", variant.name, ratio.value, interval(ratio));
        format!(
            r#"<line class="spread" x1="{low:.2}%" x2="{high:.2}%" y1="{y}" y2="{y}"/><circle class="dot" cx="{value:.2}%" cy="{y}" r="4"><title>{}</title></circle>"#,
            Esc(&words)
        )
    })
}

fn spread(comparison: &Comparison) -> String {
    let all = comparison.variants.iter().flat_map(|variant| &variant.runs).map(|run| run.value);
    let Some(axis) = Axis::over(all) else { return String::new() };
    let grid = axis.grid(|x| value(comparison, x));
    let lead = format!("A ring a run, a bar at the median: {}.", Esc(&comparison.metric));
    chart("every", "Every run", &lead, &grid, &comparison.variants, |variant, y| {
        let mut out = String::new();
        for run in &variant.runs {
            let words = format!("{}, round {}: {}", variant.name, run.round, value(comparison, run.value));
            out += &format!(
                r#"<circle class="ring" cx="{:.2}%" cy="{y}" r="3.5"><title>{}</title></circle>"#,
                axis.at(run.value),
                Esc(&words)
            );
        }
        if let Some(median) = variant.median {
            let at = axis.at(median);
            out += &format!(
                r#"<line class="spread" x1="{at:.2}%" x2="{at:.2}%" y1="{}" y2="{}"/>"#,
                y - ROW / 3,
                y + ROW / 3
            );
        }
        out
    })
}

fn variants(comparison: &Comparison) -> String {
    let number = |x: f64| Cell::Number(x, value(comparison, x));
    let optional = |x: Option<f64>| number(x.unwrap_or(f64::NAN));
    let rows = comparison.variants.iter().enumerate().map(|(i, variant)| {
        let ratio = variant.ratio.as_ref().filter(|_| i > 0);
        let of =
            |r: Option<f64>| Cell::Number(r.unwrap_or(f64::NAN), r.map_or(num::NONE.into(), |r| format!("{r:.3}")));
        let energy_ratio = variant.energy_ratio.as_ref().filter(|_| i > 0);
        vec![
            Cell::Text(variant.name.clone()),
            Cell::Text(variant.what.clone()),
            optional(variant.median),
            optional(variant.least),
            optional(variant.most),
            of(ratio.map(|r| r.value)),
            Cell::Text(ratio.map_or(num::NONE.into(), interval)),
            Cell::Text(ratio.map_or(String::new(), |r| if r.significant { "yes" } else { "no" }.into())),
            seconds(middle(variant, |run| run.wall_seconds)),
            seconds(middle(variant, |run| run.user_seconds)),
            seconds(middle(variant, |run| run.sys_seconds)),
            Cell::percent(huge_share(variant)),
            Cell::rate(helper_cpus(variant).unwrap_or(f64::NAN)),
            Cell::rate(variant.energy_joules.unwrap_or(f64::NAN)),
            of(energy_ratio.map(|r| r.value)),
        ]
    });
    let table = Table {
        caption: "Medians of each variant",
        heads: vec![
            ("variant", false),
            ("what it is", false),
            ("median", true),
            ("least", true),
            ("most", true),
            (ratio_is(comparison), true),
            ("95 % interval", false),
            ("significant", false),
            ("wall", true),
            ("user", true),
            ("sys", true),
            ("in huge pages", true),
            ("helper, CPUs", true),
            ("energy, J", true),
            ("energy, base ÷ variant", true),
        ],
        rows: rows.collect(),
    };
    format!(
        "<section class=\"long\" aria-labelledby=\"variants\"><h2 id=\"variants\">Variants</h2>{}</section>\n",
        table.scrolled()
    )
}

fn seconds(x: f64) -> Cell {
    Cell::Number(x, num::seconds(x))
}

fn runs(comparison: &Comparison) -> String {
    let rows = comparison.variants.iter().flat_map(|variant| {
        variant.runs.iter().map(move |run| {
            vec![
                Cell::Text(variant.name.clone()),
                Cell::count(u64::from(run.round)),
                Cell::count(u64::from(run.position)),
                Cell::Number(run.value, value(comparison, run.value)),
                seconds(run.wall_seconds),
                seconds(run.user_seconds),
                seconds(run.sys_seconds),
                Cell::Number(run.max_resident_bytes as f64, num::bytes(run.max_resident_bytes)),
                Cell::rate(run.energy_joules.unwrap_or(f64::NAN)),
            ]
        })
    });
    let table = Table {
        caption: "Every run",
        heads: vec![
            ("variant", false),
            ("round", true),
            ("place in it", true),
            ("metric", true),
            ("wall", true),
            ("user", true),
            ("sys", true),
            ("most resident", true),
            ("energy, J", true),
        ],
        rows: rows.collect(),
    };
    format!(
        "<section class=\"long\" aria-labelledby=\"runs\"><h2 id=\"runs\">Runs</h2>{}</section>\n",
        table.scrolled()
    )
}

fn method(comparison: &Comparison) -> String {
    format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How this was made</h2><p>Each round ran every variant once, in an order drawn anew. Intervals are percentile bootstraps of the ratio of medians: {RESAMPLES} draws of whole rounds, seed {}. Each holds by itself with 95 %; of twenty variants without effect one may look significant. A difference is called significant where the interval does not hold 1 and at least {LEAST_ROUNDS} rounds are complete.</p></section>\n",
        comparison.seed
    )
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn an_axis_holds_its_numbers_whatever_they_are() {
        assert!(Axis::over([f64::NAN].into_iter()).is_none());
        for numbers in [vec![0.0], vec![1.0, 1.0], vec![-5.0, 1e300], vec![1e-9, 2e-9]] {
            let axis = Axis::over(numbers.iter().copied()).expect("an axis");
            for x in numbers {
                assert!((0.0..=100.0).contains(&axis.at(x)) && axis.width > 0.0);
            }
            assert!(axis.round_numbers().len() <= 11);
        }
    }

    #[test]
    fn lines_are_at_round_numbers() {
        let ticks = |numbers: [f64; 2]| {
            let axis = Axis::over(numbers.into_iter()).expect("an axis");
            axis.ticks(|x| format!("{x:.2}")).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks([0.44, 4.3]), "1.00 2.00 3.00 4.00");
        assert_eq!(ticks([50.6, 338.0]), "100.00 200.00 300.00");
        assert_eq!(ticks([0.97, 1.02]), "0.98 1.00 1.02");
        assert_eq!(ticks([-0.03, 0.03]), "-0.02 0.00 0.02");
        // Names that would be alike: 1.001, 1.002 and so on.
        assert_eq!(ticks([1.0, 1.004]), "1.00");
    }
}
