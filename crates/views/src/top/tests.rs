use lookaside_runtime::bake::{BakeStats, HelperStatus, Surveyed};

use super::*;

fn process(pid: u32) -> Surveyed {
    Surveyed {
        pid,
        comm: "db".into(),
        cpus: 1.5,
        resident_bytes: 1 << 30,
        huge_bytes: 256 << 20,
        table_bytes: 3 << 19,
        helpers: Vec::new(),
        started_ticks: 0,
    }
}

fn row(process: Surveyed) -> TopRow {
    TopRow { process, control_group: None, translation: None, small_pages: Vec::new(), baked: None }
}

fn share(share: f64, low: f64, high: f64) -> TranslationShare {
    TranslationShare {
        share,
        low,
        high,
        samples: 800,
        resolved: 790,
        jumping_share: 0.9,
        pages: 65_536,
        translation_share_of_jump: 0.16,
    }
}

fn all(processes: Vec<TopRow>) -> TopProcesses {
    TopProcesses { processes, control_groups: Vec::new(), machine: None, notes: Vec::new() }
}

#[test]
fn who_bakes_and_how_is_told() {
    let alone = row(process(7));
    let stats = BakeStats {
        rounds: 500,
        touches: 1000,
        busy_nanos: 5000,
        elapsed_nanos: 2_000_000_000,
        ..BakeStats::default()
    };
    let baked = ProcessReport {
        pid: 7,
        comm: "db".into(),
        running: true,
        let_go: false,
        mappings: 1,
        small_bytes: 0,
        stats,
        refused: None,
        within: None,
        rank: None,
    };
    let told = BTreeMap::from([(7, baked)]);
    assert_eq!(
        cells(&alone, &told),
        ["db (7)", "1.50", "–", "1,024", "25 %", "–", "1.5", "–", "–", "–", "–"].map(String::from)
    );
    let helped = row(Surveyed { helpers: vec![(9, 0.25)], ..process(7) });
    assert_eq!(cells(&helped, &told)[7..], ["250", "5.00", "25 %", "9"].map(String::from));
    let itself = row(Surveyed { helpers: vec![(7, 0.25)], ..process(7) });
    assert_eq!(cells(&itself, &BTreeMap::new())[7..], ["–", "–", "25 %", "itself"].map(String::from));
    assert_eq!([columns(std::slice::from_ref(&alone)), columns(&[alone, helped])], [7, 11]);
    let within = HelperStatus {
        bake: "auto".into(),
        backend: "module".into(),
        state: "warm".into(),
        pause_nanos: 0,
        after_pause_nanos: None,
        right_after_nanos: None,
    };
    // Whatever a program says of itself, it is shown.
    let stats = BakeStats { rounds: u64::MAX, touches: 1, busy_nanos: u64::MAX, elapsed_nanos: 1, ..stats };
    let told = BTreeMap::from([(7, ProcessReport { stats, within: Some(within), ..told[&7].clone() })]);
    assert_eq!(cells(&itself, &told)[10], "itself, warm");
}

#[test]
fn the_share_of_translation_has_its_interval_and_the_reason_of_most_stands_for_all() {
    let small = |reason, bytes| SmallBytes { reason, bytes };
    let one = TopRow {
        translation: Some(share(0.142, 0.118, 0.163)),
        small_pages: vec![small(SmallReason::File, 1 << 20), small(SmallReason::NotAsked, 700 << 20)],
        ..row(process(7))
    };
    assert_eq!(cells(&one, &BTreeMap::new())[2..6], ["14 % (12–16)", "1,024", "25 %", "policy"].map(String::from));
}

#[test]
fn what_is_known_to_translate_most_comes_first() {
    let translating = |pid, cpus: f64, of: f64| TopRow {
        translation: Some(share(of, 0.0, 1.0)),
        ..row(Surveyed { cpus, ..process(pid) })
    };
    let large = row(Surveyed { resident_bytes: 1 << 40, ..process(3) });
    let mut rows = vec![row(process(4)), large, translating(2, 0.1, 0.5), translating(1, 1.0, 0.1)];
    sort(&mut rows);
    assert_eq!(rows.iter().map(|row| row.process.pid).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn groups_are_sums_and_their_share_is_of_those_that_were_sampled() {
    let of = |pid, group: &str, cpus, translation| TopRow {
        control_group: Some(group.into()),
        translation,
        small_pages: vec![SmallBytes { reason: SmallReason::Shared, bytes: 5 }],
        ..row(Surveyed { cpus, ..process(pid) })
    };
    let rows = [
        of(1, "/a", 1.0, Some(share(0.2, 0.2, 0.2))),
        of(2, "/a", 3.0, Some(share(0.1, 0.06, 0.14))),
        of(3, "/a", 2.0, None),
        of(4, "/b", 9.0, None),
    ];
    let groups = control_groups(&rows);
    let [a, b] = &groups[..] else { panic!("two groups") };
    assert_eq!((a.control_group.as_str(), a.processes, a.cpus, a.sampled_cpus), ("/a", 3, 6.0, 4.0));
    assert_eq!((b.control_group.as_str(), b.translation), ("/b", None));
    let of_a = a.translation.expect("two of them");
    // (1 · 0.2 + 3 · 0.1) / 4; off by 3 · 0.04 / 4.
    let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 1e-9, "{value} for {wanted}");
    near(of_a.share, 0.125);
    near(of_a.low, 0.095);
    near(of_a.high, 0.155);
    assert_eq!(a.small_pages, [SmallBytes { reason: SmallReason::Shared, bytes: 15 }]);
    let document = view(&TopProcesses { control_groups: groups, ..all(rows.to_vec()) }, &BTreeMap::new());
    let text = lookaside_report::terminal::render(&document, &lookaside_report::Style::default());
    assert!(text.contains("control group") && text.contains("12 % (10–16)"), "{text}");
}
