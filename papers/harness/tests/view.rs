//! What text and page say of a hand-made side-by-side.

#[path = "support/drawn.rs"]
mod drawn;

use lookaside_harness::{view, Ours, PaperCurve, PaperRow, Published, Reproduction, RowVerdict, Rule};

use drawn::{flat, page, text, words};

fn row(what: &str, published: f64, ours: Option<f64>, verdict: RowVerdict, note: &str) -> PaperRow {
    PaperRow {
        paper: "pt-baker".into(),
        place: "Figure <4.2>".into(),
        what: what.into(),
        published: Published::Value(published),
        ours: ours.map(Ours::Value),
        unit: "pages".into(),
        rule: Rule::Equal,
        verdict,
        note: note.into(),
    }
}

fn found() -> Reproduction {
    Reproduction {
        paper: "pt-baker".into(),
        cite: "Author <2024>".into(),
        machine: "a CPU & a kernel".into(),
        measured: false,
        assumptions: vec!["seed 1, <CPU 0>".into()],
        rows: vec![
            row("L1 thrashes from", 64.0, Some(64.0), RowVerdict::Holds, ""),
            row("L2 thrashes fully by", 2560.0, Some(3000.0), RowVerdict::Differs, "no coalescing \"modelled\""),
            row("a helper", 5.0, None, RowVerdict::NotReproduced, "nobody has it"),
        ],
        series: Vec::new(),
        halted: None,
    }
}

fn sweep() -> PaperCurve {
    PaperCurve {
        name: "Figure 6.10: user".into(),
        x: "NOPs".into(),
        y: "percent <more>".into(),
        points: vec![(0.0, 20.0), (30.0, -3.5), (1000.0, 0.5)],
        intervals: vec![(19.0, 21.0), (-4.0, -3.0), (0.0, 1.0)],
        labels: Vec::new(),
    }
}

fn with(series: PaperCurve) -> Reproduction {
    Reproduction { series: vec![series], ..found() }
}

#[test]
fn the_answer_comes_first_and_reasons_stand_below_their_rows() {
    let expected = "\
Reproduction: pt-baker
1 of 2 rows that count hold; 1 do not, and 1 more do not count.
paper  Author <2024>
model  a CPU & a kernel

place         what                  published   ours        verdict
Figure <4.2>  L1 thrashes from      64 pages    64 pages    holds
Figure <4.2>  L2 thrashes fully by  2560 pages  3000 pages  differs
  no coalescing \"modelled\"
Figure <4.2>  a helper              5 pages                 not reproduced
  nobody has it

Assumed
· seed 1, <CPU 0>
";
    assert_eq!(text(&view(&found()), 100), expected);
    let style = lookaside_report::Style { color: true, ..Default::default() };
    let coloured = lookaside_report::terminal::render(&view(&found()), &style);
    assert!(coloured.contains("\x1b[0;32mholds\x1b[0m") && coloured.contains("\x1b[0;31mdiffers\x1b[0m"));
}

#[test]
fn rows_curves_and_circumstances_are_on_the_page() {
    let labels = ["another core", "same CPU", "SMT sibling"].map(String::from).to_vec();
    let placed = PaperCurve { name: "Figure 6.8".into(), labels, ..sweep() };
    let series = vec![sweep(), placed];
    let measured = Reproduction { series, measured: true, halted: Some("interrupted".into()), ..found() };
    let page = page(&view(&measured));
    for part in ["30 NOPs: -3.50 (-4.00 – -3.00)", "same CPU NOPs: -3.50"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let words = words(&page);
    for part in [
        "Cut short: interrupted. This is what was known by then.",
        "1 of 2 rows that count hold ; 1 do not, and 1 more do not count.",
        "paper Author <2024> measured a CPU & a kernel",
        "Figure <4.2> L2 thrashes fully by 2560 pages 3000 pages differs no coalescing \"modelled\"",
        "How it was measured seed 1, <CPU 0>",
        "Figure 6.10: user percent <more>",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    // Places have no order, and so no line between them.
    assert_eq!(page.matches("class=\"curve\"").count(), 1);
    assert_eq!(page.matches("class=\"spread\"").count(), 6);
}

#[test]
fn a_terminal_shows_the_curves_that_were_measured_with_their_ends() {
    let points: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i), f64::from(i) / 10.0)).collect();
    let intervals = points.iter().map(|(_, y)| (y - 0.1, y + 0.1)).collect();
    let curve = PaperCurve { x: "pages".into(), y: "cycles".into(), points, intervals, ..sweep() };
    let modelled = with(curve);
    assert!(!text(&view(&modelled), 100).contains("Figure 6.10"));
    let text = text(&view(&Reproduction { measured: true, ..modelled }), 100);
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "Figure 6.10: user").skip(1).collect();
    let end = lines.iter().position(|line| line.is_empty()).expect("an end");
    assert_eq!((flat(lines[0]), end), ("pages cycles interval".into(), 17));
    assert_eq!(flat(&lines[1].replace('▏', "")), "1 0.10 0 – 0.20");
    assert_eq!(flat(lines[16]), "100 10.0 ████████ 9.90 – 10.1");
}

#[test]
fn curves_without_points_or_width_do_no_harm() {
    let none = PaperCurve { points: Vec::new(), intervals: Vec::new(), ..sweep() };
    let empty = page(&view(&with(none.clone())));
    assert!(!empty.contains("<figure>") && !empty.contains("Cut short"));
    let of = |points: Vec<(f64, f64)>| page(&view(&with(PaperCurve { points, ..none.clone() })));
    of(vec![(1.0, 0.0)]);
    of(vec![(7.0, 7.0); 200]);
    of((0..200).map(|i| (f64::from(i) * 100.0, f64::from(i % 7))).collect());
    of(vec![(0.0, f64::NAN), (1.0, 2.0)]);
    // A point that has no place is left out.
    assert_eq!(of(vec![(f64::NAN, 1.0), (1.0, 2.0)]).matches("<circle").count(), 1);
}
