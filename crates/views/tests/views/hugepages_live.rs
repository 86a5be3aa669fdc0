use lookaside_runtime::hugepages::{
    AppliedPlan, CollapseResult, CollapseSide, FitWindow, HotWindow, ObservedBy, PromotionReport, PromotionSummary,
    SampleCounts, Unfit, WindowRow, WINDOW_BYTES,
};
use lookaside_views::hugepages_live::{planned, summary, view};

use crate::drawn::{page, text};

fn row(n: u64, weight: u64, tried: Option<CollapseResult>) -> WindowRow {
    let window = FitWindow {
        start: 0x7000_0000_0000 + n * WINDOW_BYTES,
        area: 0,
        small_pages: 384,
        huge_pages: 0,
        swapped_pages: 0,
    };
    let chosen = HotWindow { pid: 7, window, region: "[heap]".into(), weight, bloat_bytes: window.bloat_bytes() };
    let huge_at_end = tried.as_ref().map(CollapseResult::is_collapsed);
    WindowRow { chosen, tried, huge_at_end }
}

fn collapsed(nanos: u64) -> Option<CollapseResult> {
    Some(CollapseResult::Collapsed { nanos })
}

fn applied(rows: Vec<WindowRow>) -> PromotionReport {
    PromotionReport {
        pid: 7,
        comm: "join\u{1b}[31m".into(),
        by: ObservedBy::Sample,
        no_samples: None,
        seconds: 5.0,
        budget: 4,
        dry_run: false,
        way: CollapseSide::Outside,
        fell: Some(SampleCounts {
            samples: 1000,
            unknown: 100,
            small: 800,
            huge: 0,
            edges: 0,
            unfit: [(Unfit::File, 60), (Unfit::Locked, 40)].into(),
            unmapped: 0,
        }),
        longest_clearing_nanos: None,
        intervals: None,
        candidates: 256,
        candidates_weight: 800,
        huge_before: 3,
        weight: 1000,
        chosen_weight: rows.iter().map(|row| row.chosen.weight).sum(),
        held_out: Some(0.5),
        rows,
        stopped: false,
        undo: Some(3),
    }
}

/// One line, single blanks: lines are broken by the width.
fn flat(applied: &PromotionReport) -> String {
    let text = text(&view(applied), 100);
    assert!(!text.contains('\u{1b}'), "a program's name is no terminal command");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn windows_their_samples_and_outcomes_are_told() {
    let why = "no 2 MiB block of memory is free".to_string();
    let refused = Some(CollapseResult::Refused { nanos: 9_000_000, errno: 12, why });
    let gone = WindowRow { huge_at_end: Some(false), ..row(5, 50, collapsed(800_000)) };
    let applied = applied(vec![row(1, 400, collapsed(1_500_000)), row(3, 200, refused), gone]);
    let text = flat(&applied);
    for part in [
        "(7) Made 2 of 3 chosen windows huge (45.0 % of samples) from outside; 1 MiB more in memory.",
        "watched 5.0 s, 1,000 samples of data addresses",
        "samples 80.0 % in private anonymous memory in small pages, 6.0 % in files, 4.0 % in locked memory, 10.0 % \
         without an address",
        // Half of the 80 % that could be chosen.
        "chosen 3 of 256 windows (6 MiB), budget 4: 65.0 % of samples (cross-validated: 40.0 %); no other window \
         has samples",
        "0x700000200000 [heap] 400 40.0 % 512 1.50 huge",
        "refused (ENOMEM): no 2 MiB",
        "made huge, then split or freed",
        "The longest call took 9.00 ms",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let page = page(&view(&applied));
    for part in ["chosen 3 of 256 windows", "refused (ENOMEM): no 2 MiB", "3 huge pages: 65.0"] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
}

#[test]
fn what_was_only_tried_out_or_seen_nowhere_is_said_so() {
    let many = (0..25).map(|n| row(n, 10, None)).collect();
    let text = flat(&PromotionReport { dry_run: true, budget: 25, ..applied(many) });
    assert!(text.contains("not tried") && text.contains("5 more windows with --html or --json"), "{text}");
    assert!(
        text.contains("Dry run: nothing was changed. It would add up to 12.5 MiB") && !text.contains("no other window")
    );
    let idle =
        PromotionReport { fell: Some(SampleCounts::default()), weight: 0, held_out: None, ..applied(Vec::new()) };
    let text = flat(&idle);
    assert!(text.contains("the process used no CPU in user code") && text.contains("Nothing was done."), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn referenced_bits_are_told_as_what_they_are() {
    let by_bits = PromotionReport {
        by: ObservedBy::Referenced,
        no_samples: Some("perf_event_open is refused".into()),
        fell: None,
        intervals: Some(4),
        longest_clearing_nanos: Some(42_000_000),
        held_out: None,
        weight: 1 << 30,
        ..applied(vec![row(0, 1 << 20, collapsed(1_000_000))])
    };
    let text = flat(&by_bits);
    for part in [
        "watched 5.0 s, referenced bits in 4 intervals",
        "Clearing referenced bits took 42.0 ms at most; the program's page faults wait for it.",
        "windows of one mapping differ only by how much of them is in memory",
        "Not by samples: perf_event_open is refused",
        "0.1 % of referenced bytes",
        "1,024 0.1 %",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_run_is_summed_up_in_a_line_and_one_for_each_refusal() {
    let followed = PromotionSummary {
        budget: 64,
        by: Some(ObservedBy::Sample),
        way: Some(CollapseSide::Inside),
        choices: 3,
        weight: 5812,
        collapsed: 60,
        in_use: 58,
        bloat_bytes: 3 << 20,
        covered: Some(0.74),
        calls_nanos: 90_000_000,
        longest_call_nanos: 2_100_000,
        refused: [("fragmented".to_string(), 2)].into(),
        notes: vec!["process 9: switched off".into()],
    };
    let text = summary(&followed).replace('\u{a0}', " ");
    assert_eq!(
        text,
        "lookaside: huge pages: 60 made, 58 in use when last checked, budget 64; 3 choices by 5,812 samples, 74.0 % \
         of the last samples in huge pages; 3 MiB more in memory; longest call 2.10 ms; from inside (no permission \
         from outside)\n\
         lookaside:   2 refused: fragmented\n\
         lookaside:   process 9: switched off\n"
    );
    assert!(summary(&PromotionSummary::default()).contains("no process was sampled"));
}

#[test]
fn regions_that_are_not_as_planned_are_named() {
    let done = AppliedPlan {
        way: Some(CollapseSide::Outside),
        found: 5,
        collapsed: 3,
        huge_cycles: 3e6,
        huge_cycle_seconds: 1e6,
        bloat_bytes: 1 << 20,
        longest_call_nanos: 1_500_000,
        refused: [("fragmented".to_string(), 1)].into(),
        changed: [("table at 0x4000".to_string(), "the program has 0 regions".to_string())].into(),
        empty: 1,
    };
    assert_eq!(
        planned(&done).replace('\u{a0}', " "),
        "lookaside: huge pages: 3 of 5 windows found of the plan made; 1 MiB more in memory; longest call 1.50 ms; \
         from outside\n\
         lookaside:   not as planned: table at 0x4000: the program has 0 regions\n\
         lookaside:   1 refused: fragmented\n\
         lookaside:   1 had nothing in memory, or were still being filled\n"
    );
}
