//! What text, page and data say of hand-made moves of a thread.

#[path = "../../harness/tests/support/drawn.rs"]
mod drawn;

use lookaside_report::json;
use lookaside_stats::Figure;
use lookaside_tlb_migration::metal::plan::MoveCase;
use lookaside_tlb_migration::metal::{CaseTimes, MoveReport, Overall, Pays, Relation, Treatment, TreatmentTimes};
use lookaside_tlb_migration::{view, MIGRATION_SCHEMA};

use drawn::{flat, page, text, words};

fn around(value: f64) -> Figure {
    Figure { value, low: value - 100.0, high: value + 150.0 }
}

fn told(way: Treatment, access: f64, overall: Option<f64>) -> TreatmentTimes {
    let restored = matches!(way, Treatment::Direct | Treatment::Indirect);
    let ns = overall.map(around);
    let verdict = |ns: Figure| match (ns.low > 0.0, ns.high < 0.0) {
        (true, _) => Pays::Pays,
        (_, true) => Pays::Costs,
        _ => Pays::Unclear,
    };
    TreatmentTimes {
        way,
        prefetches: if restored { 64 } else { 0 },
        restore_ns: restored.then(|| around(640.0)),
        access_ns: around(access),
        again_ns: 320.0,
        overall: ns.map(|ns| Overall { ns, verdict: verdict(ns) }),
        restores_ns: if restored { vec![640.0; 2] } else { Vec::new() },
        accesses_ns: vec![access; 2],
    }
}

/// Cases of 64 and 1536 pages: direct pays in all of chase and nowhere else, huge pages cost, of indirect nobody can
/// say anything.
fn report() -> MoveReport {
    let cell = |case: &MoveCase| {
        let direct = if case.pattern.name() == "chase" { 6400.0 } else { -12800.0 };
        CaseTimes {
            case: *case,
            translation_ns: Some(around(1920.0)),
            ways: vec![
                told(Treatment::Nothing, 19200.0, None),
                told(Treatment::Direct, 3200.0, Some(direct)),
                told(Treatment::Indirect, 3300.0, Some(10.0)),
                told(Treatment::Huge, 3400.0, Some(-3000.0)),
                told(Treatment::Returns, 3500.0, None),
            ],
        }
    };
    MoveReport {
        from_cpu: 3,
        to_cpu: 7,
        relation: Relation::Cache,
        rounds_wanted: 9,
        rounds: 2,
        seed: 5,
        thrash_bytes: 64 << 20,
        move_ns: 12_300.0,
        cells: MoveCase::all(&[64, 1536]).iter().map(cell).collect(),
        remarks: vec!["a <remark>\u{1b}".into()],
        halted: Some("interrupted".into()),
    }
}

#[test]
fn the_verdict_names_cases_and_page_counts() {
    let text = text(&view(&report()), 240);
    for said in [
        "from CPU 3 to CPU 7, which share a cache; 2 of 9 rounds in new orders (seed 5); the move by itself takes \
         12.3 µs",
        "Verdict on direct: pays significantly in 8 of 16 cases (chase, 4 KiB apart, caches kept: 2 sizes, the least \
         64 pages; chase, 4 KiB apart, caches thrashed: 2 sizes, the least 64 pages",
        "costs significantly in 8, neither in 0",
        "Verdict on indirect: pays significantly in none of 16 cases; costs significantly in 0, neither in 16",
        "Verdict on huge pages: pays significantly in none of 16 cases; costs significantly in 16",
        "· a <remark>",
        "Cut short: interrupted. Figures are of the rounds that were complete.",
    ] {
        assert!(flat(&text).contains(said), "{said:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

/// 64 pages: 19200 ns are 300 a page, 640 + 3200 are 10 + 50.
#[test]
fn rows_are_ns_a_page() {
    let wide = text(&view(&report()), 240);
    let row = wide.lines().find(|line| line.trim_start().starts_with("64 ")).expect("a row");
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(
        cells,
        [
            "64",
            "300",
            "54.7",
            "30.0",
            "-200 (-202 … -198)",
            "10.0 + 50.0",
            "+0.16 (-1.41 … 2.50)",
            "10.0 + 51.6",
            "-46.9 (-48.4 … -44.5)",
            "53.1"
        ]
    );
    assert_eq!(wide.lines().filter(|line| line.trim_start().starts_with("1,536 ")).count(), 8);
    // Every width holds the verdicts' figures.
    for width in [60, 100, 160] {
        assert!(text(&view(&report()), width).contains("Verdict on direct"), "{width}");
    }
    let text = text(&view(&report()), 100);
    assert!(text.contains("-200 (-202 … -198)") && text.contains("-46.9 (-48.4 … -44.5)"), "{text}");
}

#[test]
fn the_page_is_well_formed_and_has_a_chart_for_each_group() {
    let page = page(&view(&report()));
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
    assert_eq!(document.descendants().filter(|node| node.tag_name().name() == "figure").count(), 2 * 8);
    assert_eq!(document.descendants().filter(|node| node.tag_name().name() == "tr").count(), 1 + 16 * 5);
    let words = words(&page);
    for said in [
        "Verdict on direct: pays significantly in 8 of 16 cases",
        "Cut short: interrupted.",
        "a <remark>",
        "reads 64 MiB there",
        "-12800 (-12900 … -12650)",
    ] {
        assert!(words.contains(said), "{said:?} is not on the page");
    }
}

/// Nothing was measured: no chart, no table, no verdict, and no fault.
#[test]
fn without_a_round_there_is_nothing_to_say() {
    let report = MoveReport { cells: Vec::new(), rounds: 0, move_ns: f64::NAN, ..report() };
    let text = text(&view(&report), 100);
    assert!(text.contains("0 of 9 rounds") && !text.contains("Verdict") && !text.contains("ns a page"), "{text}");
    assert!(!page(&view(&report)).contains("<figure>"));
    assert!(json::document(MIGRATION_SCHEMA, &report).contains("\"move_ns\": null"));
}

#[test]
fn a_case_is_flat_in_json() {
    let document = json::document(MIGRATION_SCHEMA, &report());
    let value: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(value["schema"], "lookaside-migration/1");
    let cell = &value["cells"][15];
    assert_eq!((&cell["pattern"], &cell["stride_bytes"]), (&"chase".into(), &69632.into()));
    assert_eq!((&cell["caches"], &cell["pages"]), (&"thrashed".into(), &1536.into()));
    let direct = &cell["ways"][1];
    assert_eq!((&direct["way"], &direct["prefetches"]), (&"direct".into(), &64.into()));
    assert_eq!((&direct["overall"]["value"], &direct["overall"]["verdict"]), (&6400.0.into(), &"pays".into()));
    assert_eq!(direct["restores_ns"].as_array().map(Vec::len), Some(2));
    assert_eq!(cell["ways"][0]["overall"], serde_json::Value::Null);
}
