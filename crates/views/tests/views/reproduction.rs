//! What the page says of a hand-made side-by-side.

use lookaside_report::Paint;
use lookaside_views::pages as html;
use lookaside_views::reproduction::{Curve, Page, Row};

fn page(curves: &[Curve<'_>], halted: Option<&str>) -> String {
    let row = |verdict, last: &str| Row {
        cells: ["Figure <1>", "what & where", "5 %", "6 %", last].map(String::from).to_vec(),
        verdict,
        remark: "because \"it\" is".into(),
    };
    html::reproduction::render(&Page {
        version: "0.1.0",
        title: "pt-baker",
        cite: "Author <2024>",
        summary: "1 of 2 rows that count hold",
        halted,
        machine: ("measured", "a CPU & a kernel"),
        lines: ("how", &["seed 1, <CPU 0>".into()]),
        headers: &["place", "what", "published", "ours", "verdict"],
        rows: &[row(Paint::Good, "holds"), row(Paint::Bad, "differs"), row(Paint::Plain, "not reproduced")],
        curves,
    })
}

fn check(page: &str) {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).expect("well-formed");
    assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
}

#[test]
fn rows_curves_and_circumstances_are_there() {
    let points = [(0.0, 20.0), (30.0, -3.5), (1000.0, 0.5)];
    let intervals = [(19.0, 21.0), (-4.0, -3.0), (0.0, 1.0)];
    let sweep = Curve {
        name: "Figure 6.10: user",
        x: "NOPs",
        y: "percent <more>",
        points: &points,
        intervals: &intervals,
        labels: &[],
    };
    let labels = ["another core", "same CPU", "SMT sibling"].map(String::from);
    let placed = Curve { name: "Figure 6.8", labels: &labels, ..sweep };
    let page = page(&[sweep, placed], Some("interrupted"));
    check(&page);
    for text in [
        "Cut short: interrupted",
        "1 hold, 1 do not, 1 do not count",
        "Figure &lt;1&gt;",
        "because &quot;it&quot; is",
        "how: seed 1, &lt;CPU 0&gt;",
        "percent &lt;more&gt;",
        "30: -3.50 (-4.00 to -3.00)",
        "same CPU: -3.50",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    // Places have no order, and so no line between them.
    assert_eq!(page.matches("class=\"curve\"").count(), 1);
    assert_eq!(page.matches("class=\"spread\"").count(), 6);
}

#[test]
fn curves_without_points_or_width_do_no_harm() {
    let none = Curve { name: "none", x: "x", y: "y", points: &[], intervals: &[], labels: &[] };
    let text = page(&[none], None);
    check(&text);
    assert!(!text.contains("<figure>") && !text.contains("Cut short"));
    check(&page(&[Curve { points: &[(1.0, 0.0)], ..none }], None));
    let flat: Vec<(f64, f64)> = (0..200).map(|_| (7.0, 7.0)).collect();
    check(&page(&[Curve { points: &flat, ..none }], None));
    let many: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i) * 100.0, f64::from(i % 7))).collect();
    let text = page(&[Curve { points: &many, name: "many", ..none }], None);
    check(&text);
    assert!(text.contains("many: 200 points"), "{text}");
    check(&page(&[Curve { points: &[(0.0, f64::NAN), (1.0, 2.0)], ..none }], None));
}
