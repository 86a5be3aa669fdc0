//! What a comparison says of runs that nobody made.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::watch::HelperTotals;
use super::*;
use crate::hugepages::{CodeTotals, CollapseSide};

const MIB: u64 = 1 << 20;

fn run(round: u32, value: f64) -> VariantRun {
    VariantRun {
        round,
        position: 1,
        value,
        wall_seconds: value,
        user_seconds: 0.0,
        sys_seconds: 0.0,
        max_resident_bytes: 0,
        energy_joules: None,
        helped: None,
        hugepages: None,
        planned: None,
        code: None,
    }
}

fn touches(touches: u64) -> VariantRun {
    VariantRun { helped: Some(HelperTotals { touches, ..HelperTotals::default() }), ..run(1, 1.0) }
}

fn plan(variants: &str) -> ComparisonPlan {
    let command = vec!["program".into(), "argument".into()];
    ComparisonPlan { command, runs: 2, ..super::super::tests::plan(variants, "") }
}

/// Runs of a plan that nobody made.
fn with_runs<T>(plan: &ComparisonPlan, meter: Option<Meter>, look: impl FnOnce(InterleavedRuns<'_>) -> T) -> T {
    let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &|_| {} };
    look(InterleavedRuns::new(plan, &hooks, (meter, Some("no counter".into())), None))
}

/// Notes of a comparison in which the second variant's runs were these.
fn notes(variants: &str, runs: Vec<VariantRun>, pages: Option<PageUse>, rounds: usize) -> Vec<String> {
    with_runs(&plan(variants), None, |mut all| {
        (all.taken[1].runs, all.taken[1].pages) = (runs, pages);
        all.judge_circumstances(rounds, 64);
        all.notes.retain(|note| !note.contains("the system gives huge pages to all"));
        all.notes
    })
}

#[test]
fn a_helper_that_never_touched_anything_is_noted_once_it_ran() {
    for (variants, said) in [
        ("base,bake:scan", "bake:scan: nothing was baked in any run: no mapping had 4 MiB in small pages"),
        ("base,bake:auto", "bake:auto: nothing was baked in any run"),
    ] {
        let of = |runs: Vec<VariantRun>, rounds| notes(variants, runs, None, rounds);
        let noted = of(vec![touches(0), touches(0)], 2);
        assert!(noted.len() == 1 && noted[0].starts_with(said), "{noted:?}");
        let none = [of(vec![touches(0), touches(1)], 2), of(vec![touches(0), run(1, 1.0)], 2), of(Vec::new(), 0)];
        assert_eq!(none, [(); 3].map(|()| Vec::<String>::new()), "{variants}");
    }
}

#[test]
fn huge_pages_that_were_never_seen_are_noted() {
    let of = |pages| notes("base,thp", vec![run(1, 1.0)], pages, 1);
    let with = |huge_bytes| Some(PageUse { resident_bytes: MIB, huge_bytes });
    let noted = of(with(0));
    assert!(noted.len() == 1 && noted[0].starts_with("thp: no huge page was seen in the warm-up runs"), "{noted:?}");
    assert_eq!([of(with(2 * MIB)), of(None), notes("base,nothp", Vec::new(), with(0), 1)].concat(), [""; 0]);
}

#[test]
fn what_the_chosen_huge_pages_came_to_is_said_of_the_middle_run_and_each_refusal_once() {
    let chosen = |collapsed, covered, mib: u64, longest_call_nanos, way, refused: &str| VariantRun {
        hugepages: Some(PromotionSummary {
            way,
            collapsed,
            covered,
            bloat_bytes: mib * MIB,
            longest_call_nanos,
            refused: BTreeMap::from([(refused.to_string(), 2)]),
            notes: vec!["a note".into()],
            ..PromotionSummary::default()
        }),
        ..run(1, 1.0)
    };
    let outside = Some(CollapseSide::Outside);
    let runs = vec![
        chosen(8, Some(0.9), 6, 2_500_000, outside, "busy"),
        chosen(1, Some(0.25), 1, 700_000, outside, "no block is free"),
        chosen(3, Some(0.5), 4, 1_000_000, None, "busy"),
    ];
    let words = [
        "hugepages:auto:8: 3 windows of 2 MiB made huge in a run (median), with 50 % of the last samples in huge \
         pages, 4 MiB more in memory; the longest call took 2.5 ms; made from outside",
        "hugepages:auto:8: a note",
        "hugepages:auto:8: busy",
        "hugepages:auto:8: no block is free",
    ];
    assert_eq!(notes("base,hugepages:auto:8", runs, None, 3), words);
    let unseen = notes("base,hugepages:auto:8", vec![chosen(0, None, 0, 0, None, "busy")], None, 1);
    let said = "hugepages:auto:8: 0 windows of 2 MiB made huge in a run (median), 0 MiB more in memory; \
                the longest call took 0.0 ms";
    assert_eq!(unseen[0], said);
    assert_eq!(notes("base,hugepages:auto:8", vec![run(1, 1.0)], None, 1), [""; 0], "nothing is known of any run");
}

#[test]
fn what_a_plans_huge_pages_came_to_is_said_of_the_middle_run_and_how_the_program_differed() {
    let planned = |collapsed, found, mib: u64, longest_call_nanos, changed: &str| VariantRun {
        planned: Some(AppliedPlan {
            way: Some(CollapseSide::Inside),
            found,
            collapsed,
            bloat_bytes: mib * MIB,
            longest_call_nanos,
            refused: BTreeMap::from([("busy".to_string(), 1)]),
            changed: BTreeMap::from([("[heap]".to_string(), changed.to_string())]),
            ..AppliedPlan::default()
        }),
        ..run(1, 1.0)
    };
    let runs = vec![
        planned(8, 9, 6, 700_000, "smaller"),
        planned(1, 4, 1, 12_340_000, "larger"),
        planned(3, 5, 2, 1_000_000, "smaller"),
    ];
    let words = [
        "hugepages:a.toml: 3 of 5 windows found of the plan made huge in a run (medians), 2 MiB more in memory; \
         the longest call took 12.3 ms; made from inside (no permission from outside)",
        "hugepages:a.toml: busy",
        "hugepages:a.toml: not as planned: [heap]: larger",
        "hugepages:a.toml: not as planned: [heap]: smaller",
    ];
    assert_eq!(notes("base,hugepages:a.toml", runs, None, 3), words);
    assert_eq!(notes("base,hugepages:a.toml", vec![run(1, 1.0)], None, 1), [""; 0]);
}

#[test]
fn a_note_is_kept_once() {
    with_runs(&plan("base"), None, |mut all| {
        ["one", "two", "one"].into_iter().for_each(|note| all.note(note.into()));
        assert_eq!(all.notes, ["one", "two"]);
    });
}

/// Package 0 of a made-up system.
fn package(folder: &Path) -> impl Fn(&str) {
    let zone = folder.join("intel-rapl:0");
    std::fs::create_dir(&zone).expect("a folder");
    let write = move |file: &str, text: &str| std::fs::write(zone.join(file), text).expect("a file");
    write("name", "package-0");
    write("max_energy_range_uj", "1000000000");
    write("energy_uj", "5000000");
    move |microjoules| write("energy_uj", microjoules)
}

#[test]
fn energy_is_of_the_time_since_the_last_look_and_a_counter_that_fails_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let counts = package(folder.path());
    with_runs(&plan("base"), Some(Meter::open(folder.path()).expect("a meter")), |mut all| {
        counts("12500000");
        assert_eq!((all.energy(), all.energy()), (Some(7.5), Some(0.0)));
        counts("no number");
        assert_eq!(all.energy(), None);
        counts("20000000");
        assert_eq!(all.energy(), None, "given up");
        assert!(all.no_energy.as_ref().is_some_and(|why| why.contains("energy_uj")), "{:?}", all.no_energy);
    });
    assert_eq!(
        with_runs(&plan("base"), None, |mut all| (all.energy(), all.no_energy)).1.as_deref(),
        Some("no counter")
    );
}

/// Two whole rounds; of a third the second variant has none yet.
#[test]
fn a_comparison_has_the_middle_and_the_ends_of_whole_rounds() {
    let spent = |round, value, joules| VariantRun { energy_joules: Some(joules), ..run(round, value) };
    let found = with_runs(&plan("base,nothp"), None, |mut all| {
        all.taken[0].runs = vec![spent(1, 4.0, 10.0), spent(2, 4.0, 30.0), spent(3, 99.0, 99.0)];
        all.taken[1].runs = vec![spent(1, 1.0, 5.0), spent(2, 3.0, 5.0)];
        all.comparison(Some(EarlyEnd::Interrupted))
    });
    let ends = |of: &VariantOutcome| (of.least, of.median, of.most, of.energy_joules, of.runs.len());
    assert_eq!(ends(&found.variants[0]), (Some(4.0), Some(4.0), Some(4.0), Some(20.0), 2));
    assert_eq!(ends(&found.variants[1]), (Some(1.0), Some(2.0), Some(3.0), Some(5.0), 2));
    let unfinished = found.variants.iter().map(|of| of.unfinished.as_ref().map(|run| run.round));
    assert_eq!(unfinished.collect::<Vec<_>>(), [Some(3), None]);
    let ratio = |of: Option<lookaside_stats::Ratio>| of.map(|ratio| ratio.value);
    assert_eq!((ratio(found.variants[1].ratio), ratio(found.variants[1].energy_ratio)), (Some(2.0), Some(4.0)));
    assert_eq!((found.variants[0].ratio, found.variants[0].energy_ratio), (None, None));
    assert_eq!((found.rounds, found.rounds_wanted, found.warmups, found.seed), (2, 2, 1, 1));
    assert_eq!((found.command.join(" ").as_str(), found.metric.as_str()), ("program argument", "wall time"));
    assert_eq!((found.is_time, found.pressure.as_str()), (true, "none"));
    assert_eq!((found.no_energy.as_deref(), found.early), (Some("no counter"), Some(EarlyEnd::Interrupted)));
}

#[test]
fn how_a_program_ended_is_said_in_words() {
    let of = |status| status_words(ExitStatus::from_raw(status));
    assert_eq!(of(7 << 8), "the program failed with exit code 7; run it alone to see why");
    assert_eq!(of(11), "the program was killed by signal 11");
    assert_eq!(of(0x137f), "the program failed", "stopped");
}

#[test]
fn who_shares_cpus_is_said_where_there_are_too_few() {
    let said = |stressors, helped, cpus| crowding(stressors, helped, cpus).unwrap_or_default();
    assert!(said(2, false, 2).starts_with("2 stressors and the program share 2 CPUs"));
    assert!(said(1, true, 2).starts_with("1 stressor, the program and a helper share 2 CPUs"));
    for (stressors, helped, cpus) in [(0, true, 1), (1, false, 2), (1, true, 3), (3, true, 12)] {
        assert_eq!(crowding(stressors, helped, cpus), None);
    }
}

#[test]
fn what_became_of_code_is_said_of_the_middle_run_and_each_obstacle_once() {
    let code = |by_copy, by_file, windows, nanos, obstacle: &str| VariantRun {
        code: Some(CodeTotals {
            windows,
            by_file,
            by_copy,
            nanos,
            obstacles: BTreeMap::from([(obstacle.to_string(), 1)]),
            ..CodeTotals::default()
        }),
        ..run(1, 1.0)
    };
    let runs = vec![
        code(8, 0, 8, 9_000_000, "busy"),
        code(4, 1, 8, 1_000_000, "it had other threads before main"),
        code(6, 1, 8, 3_000_000, "busy"),
    ];
    let words = [
        "text:8: 7 of 8 whole windows of 2 MiB of code put on huge pages in a run (medians), 1 of them in the file's own \
         pages; it took 3.0 ms",
        "text:8: busy",
        "text:8: it had other threads before main",
    ];
    assert_eq!(notes("base,text:8", runs, None, 3), words);
    let none = |runs| notes("base,text", runs, None, 1)[0].clone();
    assert!(none(vec![code(0, 0, 0, 5, "busy")]).starts_with("text: no code was put on huge pages: no mapping"));
    assert!(none(vec![run(1, 1.0)]).starts_with("text: no process reported"));
    assert_eq!(notes("base,text", Vec::new(), None, 0), [""; 0]);
}
