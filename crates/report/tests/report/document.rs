//! A document that holds everything, drawn for a terminal and as a page; and whatever a document holds, its form is
//! kept.

use lookaside_report::chart::{
    Axis, BarRow, Bars, Heat, HeatBand, Lines, Look, Mark, Point, PointRow, Points, Scale, Series,
};
use lookaside_report::{
    html, terminal, text, Bar, Card, CardItem, Cell, Chart, Column, Document, DocumentBlock, Medium, Paint, RichText,
    Section, Style, Table,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn curve() -> Chart {
    let points = (0..16).map(|i| Point::new(f64::from(1 << i), 500.0 / f64::from(1 << i))).collect();
    let lines = Lines::new(Axis::new("entries", Scale::Log2), Axis::new("misses per 1,000", Scale::Log10));
    let lines = lines.with(Series::new("", points).look(Look::Step));
    let lines = Lines { marks: vec![Mark::new(64.0, "L1: 64"), Mark::new(1536.0, "L2: 1,536")], ..lines };
    Chart::lines("misses per 1,000 accesses over entries", lines).in_words("Misses at 64 entries: 7.8")
}

fn all() -> Document {
    let mut document = Document::new("Kind of report", "./a.out --big");
    document.answer(
        RichText::painted(Paint::Bad, "It costs a quarter.").plain(" ").strong("f (a.c:1)").plain(" causes it."),
    );
    document.cut_short("interrupted");
    document.fact("seen", "every access");
    document.fact("machine", RichText::from("golden-cove; ").code("--machine"));
    let item = CardItem {
        label: "huge pages".into(),
        value: "90 %".into(),
        bar: Some(Bar::saving(0.9)),
        detail: "madvise".into(),
    };
    let card = Card {
        title: "What would help".into(),
        figure: Some((Paint::Bad, "25 %".into())),
        text: vec!["of cycles".into()],
        lists: vec![(String::new(), vec![item])],
    };
    document.section(Section::new("Cards").with(vec![card]).only(Medium::Page));
    let columns = [
        Column::left("function").cut(30).last(),
        Column::right("of cost"),
        Column::right("walks"),
        Column::left("how").remark(),
    ];
    let mut table = Table::new(columns).caption("Functions").shown(2, 1);
    let mut table_of = table.clone().of_shares(["function", "functions"], 1, "unattributed");
    for (name, share) in [("f (a.c:1)", 0.5), ("g (a.c:9)", 0.25), ("h (b.c:3)", 0.125)] {
        let cells = [name.into(), Cell::share(share).bar(Bar::of(share)), Cell::count(1000), "do this".into()];
        table.row(cells.clone());
        table_of.row(cells);
    }
    document.section(Section::unheaded("Functions").with(table_of));
    document.pair(Section::unheaded("Misses").with(curve()), Section::unheaded("Regions").with(table));
    let parts = [("l2", 3.0), ("memory", 1.0)].map(|(name, part)| (name.to_string(), part)).to_vec();
    let row = BarRow { label: "loads".into(), value: "4".into(), parts };
    let bars = Bars { unit: "references".into(), rows: vec![row], hot: "memory".into() };
    document.section(Section::new("Walk references").lead("Shares.").with(Chart::bars("served by", bars)));
    let rows = [(1.1, 1.05, 1.2), (0.98, 0.9, 1.06)].map(|(y, low, high)| PointRow {
        label: format!("variant {y}"),
        value: Some(Point::new(0.0, y).between(low, high)),
        ..PointRow::default()
    });
    let points = Points { x: Axis::new("ratio", Scale::Linear), reference: Some(1.0), rows: rows.to_vec() };
    document.section(Section::new("Ratios").with(Chart::points("base ÷ variant", points)));
    let line = |name: &str| Series::new(name, (1..4).map(|i| Point::new(f64::from(i), f64::from(i * i))).collect());
    let lines = Lines::new(Axis::new("pages", Scale::Even), Axis::new("ns", Scale::Auto)).with(line("a"));
    let charts = vec![Chart::lines("one", lines.clone()), Chart::lines("two", lines.with(line("b")))];
    document.section(Section::new("Sweeps").with(charts));
    let band = HeatBand { name: "[heap]".into(), words: "[heap], 12 accesses".into(), rows: vec![vec![0, 3, 9]] };
    let heat = Heat { x: "accesses".into(), x_end: 12.0, unit: "accesses".into(), columns: 3, bands: vec![band] };
    document.section(Section::new("Pages").with(Chart::heat("pages over time", heat)).only(Medium::Page));
    document.section(
        Section::new("How").with(DocumentBlock::Details("More".into(), vec![DocumentBlock::Text("details".into())])),
    );
    document.note("A note of the metal.");
    document
}

#[test]
fn a_terminal_shows_everything_in_lines_that_fit() {
    let expected = "\
Kind of report: ./a.out --big
Cut short: interrupted. This is what was known by then.
It costs a quarter. f (a.c:1) causes it.
seen     every access
machine  golden-cove; --machine

of cost        walks  function
 50.0 %  ████  1,000  f (a.c:1)
  do this
 25.0 %  ██    1,000  g (a.c:9)
  do this
 25.0 %               1 more function, unattributed

Misses at 64 entries: 7.8

of cost        walks  function
 50.0 %  ████  1,000  f (a.c:1)
  do this
 25.0 %  ██    1,000  g (a.c:9)
  do this
1 more row with --html or --json

Walk references
served by, loads: l2 75.0 % · memory 25.0 %

Ratios
base ÷ variant
                           ratio
variant 1.1   1.10 (1.05 – 1.20)            ┊    ├───●───────┤
variant 0.98  0.98 (0.90 – 1.06)    ├─────●──────┤

Sweeps
one
pages    ns
    1  1.00  ▉
    2  4.00  ███▌
    3  9.00  ████████

two
pages     a     b
    1  1.00  1.00
    2  4.00  4.00
    3  9.00  9.00

· A note of the metal.
";
    assert_eq!(terminal::render(&all(), &Style::default()), expected);
    let plotted = terminal::render(&all(), &Style { plots: true, ..Style::default() });
    assert!(plotted.contains('⠉') && plotted.contains("L1: 64"), "{plotted}");
}

/// Text of the page without its elements, spaces run together.
fn words(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).expect("well-formed XML");
    let body = document.descendants().find(|node| node.has_tag_name("body")).expect("a body");
    let texts: Vec<&str> = body.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
    texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_shows_everything_and_loads_nothing() {
    let page = html::render(&all());
    let words = words(&page);
    for part in [
        "Kind of report ./a.out --big It costs a quarter. f (a.c:1) causes it.",
        "Cut short: interrupted. This is what was known by then.",
        "seen every access machine golden-cove; --machine",
        "What would help 25 % of cycles huge pages 90 % madvise",
        "Functions function of cost walks how f (a.c:1) 50.0 % 1,000 do this",
        "L1: 64",
        "l2 memory",
        "variant 1.1: 1.10 (1.05 – 1.20)",
        "accesses: from 1",
        "How More details",
        "Notes A note of the metal.",
    ] {
        assert!(words.contains(part), "{part:?} is not in {words}");
    }
    for word in ["http:", "https:", "url(", "@import", "src=", "href="] {
        assert!(!page.contains(word), "{word} in the page");
    }
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page, html::render(&all()));
}

#[test]
fn one_screen_gives_way_to_what_was_asked_for() {
    let mut document = Document { one_screen: true, ..Document::new("t", "") };
    for _ in 0..2 {
        let mut table = Table::new([Column::left("row")]).shown(40, 3);
        (0..60).for_each(|i| table.row([i.to_string().into()]));
        document.section(Section::unheaded("s").with(table));
    }
    (0..9).for_each(|i| document.note(format!("note {i}")));
    assert_eq!(terminal::render(&document, &Style::default()).lines().count(), 45);
    let text = terminal::render(&document, &Style { top: Some(50), ..Style::default() });
    assert!(text.contains("\n49\n10 more rows") && text.contains("note 8"), "{text}");
}

/// Names as a hostile program chooses them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("</script><img src=x onerror=alert(1)>]]>&\"'".to_string()),
        Just("\x1b[2J\x1b]0;x\x07\r\n\t\0\u{202e}\u{200b}\u{85}".to_string()),
        "[a-z]{0,300}",
        "(日本|e\u{301}|👩){0,40}",
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(0.0), Just(f64::NAN), -10.0..1000.0f64]
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let scale = || {
        prop_oneof![Just(Scale::Linear), Just(Scale::Log2), Just(Scale::Log10), Just(Scale::Auto), Just(Scale::Even)]
    };
    let look = prop_oneof![Just(Look::Line), Just(Look::Step), Just(Look::Model), Just(Look::Ghost), Just(Look::Dots)];
    let points = || vec((number(), number(), number(), number(), name()), 0..6);
    let lines = (name(), scale(), scale(), look, vec((name(), points()), 0..4), number()).prop_map(
        |(title, x, y, look, series, mark)| {
            let series = series.into_iter().map(|(name, points)| {
                let point = |(x, y, low, high, label)| Point::new(x, y).between(low, high).labelled(label);
                Series::new(name, points.into_iter().map(point).collect()).look(look)
            });
            let lines = Lines::new(Axis::new(title.clone(), x), Axis::new(title.clone(), y));
            let marks = vec![Mark::new(mark, title.clone())];
            Chart::lines(title, Lines { series: series.collect(), levels: marks.clone(), marks, ..lines })
        },
    );
    let bars = (name(), vec((name(), number()), 0..4)).prop_map(|(title, parts)| {
        let row = BarRow { label: title.clone(), value: title.clone(), parts };
        Chart::bars(title, Bars { unit: "x".into(), rows: vec![row], hot: "memory".into() })
    });
    let rows = (name(), scale(), vec((name(), number(), number(), number()), 0..5)).prop_map(|(title, scale, rows)| {
        let row = |(label, y, low, high): (String, f64, f64, f64)| PointRow {
            value: Some(Point::new(0.0, y).between(low, high)),
            singles: vec![(low, label.clone())],
            middle: Some(high),
            label,
        };
        let rows = rows.into_iter().map(row).collect();
        Chart::points(title.clone(), Points { x: Axis::new(title, scale), reference: Some(1.0), rows })
    });
    let heat =
        (name(), vec((name(), vec(vec(any::<u64>(), 3), 1..3)), 0..3), number()).prop_map(|(x, bands, x_end)| {
            let band = |(name, rows): (String, _)| HeatBand { words: name.clone(), name, rows };
            let bands = bands.into_iter().map(band).collect();
            Chart::heat(x.clone(), Heat { unit: x.clone(), x, x_end, columns: 3, bands })
        });
    prop_oneof![lines, bars, rows, heat]
}

fn any_document() -> impl Strategy<Value = Document> {
    let rows = vec((name(), number(), name()), 0..9);
    (vec(name(), 4), rows, vec(any_chart(), 0..3), any::<bool>()).prop_map(|(names, rows, charts, one_screen)| {
        let mut document = Document { one_screen, ..Document::new(&names[0], &names[1]) };
        document.answer(RichText::painted(Paint::Good, &names[2]).code(&names[3]));
        document.fact(&names[3], &names[2]);
        document.banner(&names[1]);
        document.note(&names[2]);
        let columns = [
            Column::left(&names[0]).last().cut(20),
            Column::right(&names[1]).optional(1),
            Column::left(&names[2]).remark(),
        ];
        let mut table = Table::new(columns).caption(&names[3]).shown(4, 1).of_shares(["row", "rows"], 1, &names[0]);
        for (name, value, how) in rows {
            table.row([name.into(), Cell::share(value).bar(Bar::of_two(value, value)), how.into()]);
        }
        let item = CardItem { label: names[0].clone(), value: names[1].clone(), bar: None, detail: names[2].clone() };
        let card = Card {
            title: names[3].clone(),
            figure: Some((Paint::Bad, names[0].clone())),
            lists: vec![(names[1].clone(), vec![item])],
            ..Card::default()
        };
        document.section(Section::new(&names[0]).with(vec![card]));
        document.pair(Section::new(&names[1]).lead(&*names[2]).with(charts), Section::new(&names[1]).with(table));
        document
    })
}

proptest! {
    #[test]
    fn whatever_a_document_holds_its_form_is_kept(document in any_document(), width in 0usize..300, unicode: bool) {
        let style = Style { width, color: false, unicode, plots: width % 2 == 0, top: None };
        let shown = terminal::render(&document, &style);
        for line in shown.lines() {
            prop_assert!(text::width(line) <= width.clamp(60, 240), "{:?} at {}", line, width);
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
            prop_assert!(unicode || line.is_ascii(), "{:?}", line);
        }
        let page = html::render(&document);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let parsed = roxmltree::Document::parse_with_options(&page, options);
        prop_assert!(parsed.is_ok(), "{:?}", parsed.err());
        let parsed = parsed.expect("well-formed");
        let scripts = parsed.descendants().filter(|node| node.has_tag_name("script")).count();
        prop_assert!(scripts == 1 && !parsed.descendants().any(|node| node.has_tag_name("img")));
        let numbers = parsed.descendants().flat_map(|node| node.attributes()).filter(|a| ["x", "x1", "y1", "cx", "cy", "width", "d"].contains(&a.name()));
        for number in numbers {
            prop_assert!(!number.value().contains("NaN") && !number.value().contains("inf"), "{:?}", number);
        }
    }
}
