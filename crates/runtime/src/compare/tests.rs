use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use super::pressure::Pressure;
use super::*;
use crate::hugepages::{AddressSampler, PlanFinder, PlannedRegion};

pub(super) fn plan(variants: &str, script: &str) -> ComparisonPlan {
    ComparisonPlan {
        command: ["sh", "-c", script].map(OsString::from).to_vec(),
        variants: Variant::list(variants).expect(variants),
        runs: 3,
        warmups: 1,
        metric: Metric::Wall,
        pressure: Pressure::None,
        seed: 1,
        inside: None,
        look: None,
        plans: BTreeMap::new(),
    }
}

fn run(plan: &ComparisonPlan) -> Comparison {
    let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &|_| {} };
    compare(plan, &hooks).expect("a comparison")
}

/// A metric that reads the line as a number, if it is one.
fn plain_number() -> Metric {
    Metric::Output { name: "number".into(), read: Box::new(|line| Ok(line.parse().ok())) }
}

#[test]
fn every_variant_runs_once_a_round_in_its_seeds_order() {
    let order = |seed| {
        let said = RefCell::new(Vec::new());
        let note = |what: &str| said.borrow_mut().push(what.to_string());
        let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &note };
        let plan = ComparisonPlan { seed, ..plan("base,nothp,asis", ":") };
        let found = compare(&plan, &hooks).expect("a comparison");
        assert_eq!((found.rounds, found.early, found.notes), (3, None, Vec::new()));
        for variant in &found.variants {
            assert_eq!(variant.runs.iter().map(|run| run.round).collect::<Vec<_>>(), [1, 2, 3]);
            assert!(variant.runs.iter().all(|run| run.wall_seconds > 0.0 && run.max_resident_bytes > 0));
        }
        said.into_inner()
    };
    let once = order(1);
    assert_eq!(once.len(), 12);
    assert!(once[..3].iter().all(|what| what.starts_with("warm-up, ")), "{once:?}");
    assert_eq!(once, order(1));
    assert!((2..20).any(|seed| order(seed) != once));
}

#[test]
fn huge_pages_are_switched_for_the_program() {
    // 1 = switched off (proc_pid_status(5), THP_enabled is its opposite).
    let script =
        r#"while read -r name value; do [ "$name" = THP_enabled: ] && echo "$value"; done < /proc/self/status; true"#;
    let found = run(&ComparisonPlan { metric: plain_number(), ..plan("base,thp,nothp,asis", script) });
    let value = |name: &str| {
        let variant = found.variants.iter().find(|variant| variant.name == name).expect(name);
        variant.runs.iter().map(|run| run.value).collect::<Vec<_>>()
    };
    assert_eq!(found.early, None);
    assert_eq!((value("base"), value("nothp")), (vec![0.0; 3], vec![0.0; 3]));
    assert_eq!(value("thp"), [1.0; 3]);
    let ours = std::fs::read_to_string("/proc/self/status").expect("our status");
    let ours = ours.lines().find_map(|line| line.strip_prefix("THP_enabled:")).expect("a line").trim();
    assert_eq!(value("asis"), vec![ours.parse::<f64>().expect("a number"); 3]);
    // Zeros have no ratio.
    assert_eq!(found.variants[1].ratio, None);
}

#[test]
fn other_times_of_the_same_runs_have_ratios_too() {
    let found = run(&ComparisonPlan { runs: 5, ..plan("base,nothp", ":") });
    let variant = &found.variants[1];
    // Of the time that was compared it is the variant's own ratio, to the bit.
    assert_eq!(found.time_ratio(variant, |run| run.wall_seconds), variant.ratio);
    let twice = |run: &VariantRun| if run.position == 1 { 2.0 } else { 1.0 };
    let first = |of: &VariantOutcome| of.runs.iter().filter(|run| run.position == 1).count();
    let wanted = if first(&found.variants[0]) > first(variant) { 2.0 } else { 0.5 };
    assert_eq!(found.time_ratio(variant, twice).expect("a ratio").value, wanted);
    assert_eq!(found.time_ratio(variant, |_| 0.0), None);
    assert_eq!(found.time_ratio(&found.variants[0], |run| run.wall_seconds).expect("a ratio").value, 1.0);
}

#[test]
fn malloc_is_told_to_ask_for_huge_pages() {
    let script = r#"case "$GLIBC_TUNABLES" in *glibc.malloc.hugetlb=1) echo 2;; *) echo 1;; esac"#;
    let found = run(&ComparisonPlan { metric: plain_number(), runs: 5, ..plan("thp", script) });
    let thp = found.variants[1].ratio.expect("a ratio");
    assert_eq!((thp.value, thp.low, thp.high, thp.significant), (2.0, 2.0, 2.0, true));
}

#[test]
fn the_last_number_counts_even_without_line_feed_and_with_the_pipe_kept_open() {
    // The sleeper holds the pipe; what is asked for is on standard error, and more than a pipe holds before it.
    let script = r#"sleep 20 & i=0; while [ $i -lt 3000 ]; do echo "a line of the output, long enough"; i=$((i+1)); done
        echo 5; echo 6 >&2; printf 7; kill $!"#;
    let found = run(&ComparisonPlan { metric: plain_number(), runs: 1, ..plan("base", script) });
    assert_eq!(found.early, None);
    assert_eq!(found.variants[0].median, Some(7.0));
}

#[test]
fn a_program_that_fails_ends_it_with_its_status() {
    let words = |script: &str| match run(&plan("nothp", script)).early {
        Some(EarlyEnd::Failed { what, run, .. }) => {
            assert_eq!(run, "warm-up");
            what
        }
        other => panic!("{other:?}"),
    };
    assert!(words("exit 7").contains("exit code 7"));
    assert!(words("kill -9 $$").contains("signal 9"));
    let quiet = run(&ComparisonPlan { metric: plain_number(), ..plan("nothp", "echo none") });
    assert!(quiet.early.expect("cut short").to_string().contains("number"));
}

#[test]
fn a_program_that_cannot_start_is_told_apart() {
    let start = |program: &str| {
        let plan = ComparisonPlan { command: vec![program.into()], ..plan("base", "") };
        let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &|_| {} };
        match compare(&plan, &hooks) {
            Err(CompareError::Start { code, .. }) => code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(start("/nonexistent/program"), 127);
    assert_eq!(start("/proc/self/status"), 126);
}

#[test]
fn halted_in_a_round_gives_the_rounds_before() {
    let runs = Cell::new(0);
    let hooks = ComparisonHooks {
        halt: &|| runs.get() > 6,
        started: &|_| runs.set(runs.get() + 1),
        ended: &|| {},
        progress: &|_| {},
    };
    // One warm-up round, two rounds, and the first run of the third, which is the seventh that is started.
    let plan = ComparisonPlan { runs: 9, ..plan("nothp", ":") };
    let found = compare(&plan, &hooks).expect("a comparison");
    assert_eq!(found.early, Some(EarlyEnd::Interrupted));
    assert_eq!((found.rounds, found.rounds_wanted), (2, 9));
    assert!(found.variants.iter().all(|variant| variant.median.is_some() && variant.unfinished.is_none()));
}

#[test]
fn a_round_that_is_not_finished_does_not_count() {
    let runs = Cell::new(0);
    // One warm-up round, two rounds, the first run of the third, and it is halted in the eighth that is begun.
    let hooks = ComparisonHooks {
        halt: &|| runs.get() == 8,
        started: &|_| {},
        ended: &|| {},
        progress: &|_| runs.set(runs.get() + 1),
    };
    let found = compare(&ComparisonPlan { runs: 9, ..plan("nothp", ":") }, &hooks).expect("a comparison");
    assert_eq!((found.rounds, found.early), (2, Some(EarlyEnd::Interrupted)));
    assert!(found.variants.iter().all(|variant| variant.runs.len() == 2));
    let unfinished: Vec<_> = found.variants.iter().filter_map(|variant| variant.unfinished.as_ref()).collect();
    assert_eq!(unfinished.iter().map(|run| run.round).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_program_is_baked_from_outside() {
    let scan = "bake:scan,sleep=1ms,cpu=0";
    // 16 MiB touched in small pages, held for a second look.
    let script = r#"exec perl -e 'my $x = "a" x (16 << 20); select(undef, undef, undef, 0.8)'"#;
    let plan = ComparisonPlan { runs: 1, warmups: 0, ..plan(scan, script) };
    let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &|_| {} };
    match compare(&plan, &hooks) {
        Ok(found) => {
            assert_eq!(found.early, None);
            let helped = found.variants[1].runs[0].helped.expect("helped");
            assert!(helped.rounds > 0 && helped.touches > 0 && helped.most_bytes >= 16 << 20, "{helped:?}");
            assert_eq!(found.variants[0].runs[0].helped, None);
        }
        // A kernel without the call, or CPU 0 not ours.
        Err(e) => assert!(e.to_string().contains("bake:scan") && !e.to_string().contains('\n'), "{e}"),
    }
}

#[test]
fn what_a_preloaded_library_tells_is_taken_and_silence_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    // The program itself writes the report here, in every second run only; no such library is there to be loaded.
    let script = r#"n="$0"; [ -z "$LOOKASIDE_BAKE_STATS" ] && exit
        if [ -e "$n" ]; then rm "$n"; else : > "$n"; echo "$LOOKASIDE_BAKE" >> "$LOOKASIDE_BAKE_STATS"; fi"#;
    let mut plan = ComparisonPlan { warmups: 0, runs: 4, ..plan("bake:auto,share=0.5", script) };
    plan.command.push(folder.path().join("turn").into());
    plan.inside = Some(PreloadedBaker {
        file: folder.path().join("none.so"),
        report: folder.path().join("report"),
        read: |text| (!text.is_empty()).then(|| HelperTotals { touches: text.len() as u64, ..HelperTotals::default() }),
        read_code: |_| None,
        code_plans: Default::default(),
    });
    let found = run(&plan);
    assert_eq!(found.early, None);
    let told: Vec<_> = found.variants[1].runs.iter().map(|run| run.helped.map(|helped| helped.touches)).collect();
    let line = Some("auto,share=0.5\n".len() as u64);
    assert_eq!(told, [line, None, line, None]);
    assert!(found.variants[0].runs.iter().all(|run| run.helped.is_none()));
    assert!(found.notes.iter().any(|note| note.contains("sent no report")), "{:?}", found.notes);
}

#[test]
fn pressure_runs_beside_and_ends() {
    let plan = ComparisonPlan { pressure: Pressure::Cache(1), runs: 1, warmups: 0, ..plan("base", "sleep 0.05") };
    let hooks = ComparisonHooks { halt: &|| false, started: &|_| {}, ended: &|| {}, progress: &|_| {} };
    match compare(&plan, &hooks) {
        Ok(found) => {
            assert_eq!((found.early, found.pressure.as_str()), (None, "cache:1"));
            let left = lookaside_host::all_processes().expect("processes").into_iter();
            let left = left.filter_map(|pid| lookaside_host::Process::of(pid).stat().ok());
            let ours = std::process::id();
            assert_eq!(left.filter(|stat| stat.parent() == ours && stat.comm.contains("stress-ng")).count(), 0);
        }
        Err(e) => assert!(e.to_string().contains("apt-get install -y stress-ng"), "{e}"),
    }
}

/// Sees nothing, and says why.
struct Blind;

impl AddressSampler for Blind {
    fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        Err("no sampling here".into())
    }
}

/// A plan that no program is like.
struct OfAnother;

impl PlanFinder for OfAnother {
    fn find(&self, _: &str) -> Vec<PlannedRegion> {
        vec![PlannedRegion { region: "[heap]".into(), windows: Err("larger than planned".into()) }]
    }
}

/// Both are given small pages but for what is asked for: huge pages are not off (`THP_enabled`).
#[test]
fn who_makes_huge_pages_beside_a_run_tells_of_it() {
    if hugepages::collapse_side() != Ok(hugepages::CollapseSide::Outside) {
        return eprintln!("LEFT OUT: huge pages are not made from outside here");
    }
    let script = r#"while read -r name value; do [ "$name" = THP_enabled: ] && echo "$value"; done < /proc/self/status
        sleep 0.2"#;
    let plan = ComparisonPlan {
        metric: plain_number(),
        look: Some(Arc::new(Blind)),
        plans: BTreeMap::from([("a.toml".into(), Arc::new(OfAnother) as Arc<dyn PlanFinder>)]),
        runs: 2,
        ..plan("hugepages:auto:4,hugepages:a.toml", script)
    };
    let found = run(&plan);
    assert_eq!(found.early, None);
    let [base, chosen, planned] = &found.variants[..] else { panic!("{:?}", found.variants) };
    assert!(base.runs.iter().all(|run| run.hugepages.is_none() && run.planned.is_none() && run.value == 0.0));
    assert!(chosen.runs.iter().all(|run| run.planned.is_none() && run.value == 1.0), "{:?}", chosen.runs);
    assert!(chosen.runs.iter().all(|run| run.hugepages.as_ref().is_some_and(|made| made.budget == 4)));
    assert!(planned.runs.iter().all(|run| run.hugepages.is_none() && run.value == 1.0), "{:?}", planned.runs);
    let changed = |run: &VariantRun| run.planned.as_ref().is_some_and(|made| made.changed.contains_key("[heap]"));
    assert!(planned.runs.iter().any(changed), "{:?}", planned.runs);
    let note = "hugepages:a.toml: not as planned: [heap]: larger than planned";
    assert!(found.notes.iter().any(|said| said == note), "{:?}", found.notes);
}

#[test]
fn what_is_not_given_is_asked_for() {
    let refused = |plan: ComparisonPlan| check(&plan).expect_err("something is missing").to_string();
    assert_eq!(refused(ComparisonPlan { runs: 0, ..plan("base", ":") }), "nothing is to be run");
    assert_eq!(refused(ComparisonPlan { variants: Vec::new(), ..plan("base", ":") }), "nothing is to be run");
    assert!(refused(plan("bake:auto", ":")).ends_with("variant bake:auto: needs the preload library"));
    match hugepages::collapse_side() {
        Ok(_) => {
            assert_eq!(refused(plan("hugepages:auto:4", ":")), "variant hugepages:auto:4: needs a sampler");
            assert_eq!(refused(plan("hugepages:a.toml", ":")), "variant hugepages:a.toml: needs the plan");
        }
        Err(why) => {
            assert_eq!(refused(plan("hugepages:auto:4", ":")), format!("variant hugepages:auto:4: {why}"));
            assert_eq!(refused(plan("hugepages:a.toml", ":")), format!("variant hugepages:a.toml: {why}"));
        }
    }
    let library = |file: &str| PreloadedBaker {
        file: file.into(),
        report: "/nowhere".into(),
        read: |_| None,
        read_code: |_| None,
        code_plans: Default::default(),
    };
    let whole =
        ComparisonPlan { inside: Some(library("/lib.so")), ..plan("base,nothp,asis,bake:auto,bake:mincore", ":") };
    assert_eq!(check(&whole), Ok(()));
}

#[test]
fn what_is_missing_is_said_before_anything_runs() {
    let started = Cell::new(false);
    let hooks = ComparisonHooks { halt: &|| false, started: &|_| started.set(true), ended: &|| {}, progress: &|_| {} };
    let error = compare(&plan("bake:auto", ":"), &hooks).expect_err("no library").to_string();
    assert!(error.contains("bake:auto") && error.contains("library"), "{error}");
    let error = compare(&plan("bake:scan,cpu=99999", ":"), &hooks).expect_err("no such CPU").to_string();
    assert!(error.contains("bake:scan,cpu=99999"), "{error}");
    assert!(!started.get());
}
