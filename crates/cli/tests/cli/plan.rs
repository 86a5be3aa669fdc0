//! Plans: what they say, what they write, what they refuse.

use std::path::Path;

use crate::common::{assert_bad_input, json, lookaside, run, stderr, stdout};

const T1: &str = "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = 4\n";
const T2: &str =
    "[[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = 60\ncontiguous_pages = 5\n";

/// The pages that show a plan.
const BOOK: [&str; 2] = [
    include_str!("../../../../docs/reference/color.md"),
    include_str!("../../../../docs/tutorials/real-time-tasks.md"),
];

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text path").into()
}

#[test]
fn isolated_tasks_get_partitions() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = written(folder.path(), "tasks.toml", &format!("{T1}{T2}"));
    let file = folder.path().join("partitions.toml");
    let arguments = ["color", "plan", &tasks, "--machine", "xeon-e5-2650", "-o", file.to_str().expect("text path")];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("Isolated: "), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
    let partitions = lookaside_machine::Partitions::load(&file).expect("partitions");
    assert_eq!(partitions.partitions.len(), 2);
    assert!(partitions.levels.iter().all(|level| partitions.oversubscribed(level).is_empty()));
    let again = run(&arguments);
    assert_eq!((stdout(&again), std::fs::read_to_string(&file).ok()), (stdout(&output), Some(partitions.to_toml())));
}

#[test]
fn what_cannot_be_isolated_is_exit_code_1_and_planned_all_the_same() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = written(folder.path(), "tasks.toml", &format!("{}{T2}", T1.replace("pages = 4", "pages = 10")));
    let file = folder.path().join("partitions.toml");
    let place = file.to_str().expect("text path");
    let output = run(&["color", "plan", &tasks, "--machine", "xeon-e5-2650", "-o", place, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let plan = json(&output);
    assert_eq!(plan["verdict"]["is"], "impossible");
    let proof = &plan["verdict"]["certificates"][0];
    assert_eq!((&proof["short_of"], &proof["needed"], &proof["entries"]), (&"entries".into(), &70.into(), &64.into()));
    assert_eq!(plan["levels"][1]["isolated"], true);
    let partitions = lookaside_machine::Partitions::load(&file).expect("partitions");
    assert!(!partitions.oversubscribed(&partitions.levels[0]).is_empty());
}

#[test]
fn a_trace_stands_for_pages() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let lines: String = (0..30u64).map(|i| format!("R {:#x} 8\n", (i % 10) << 12)).collect();
    written(folder.path(), "job.txt", &lines);
    let traced = T1.replace("pages = 4", "trace = \"job.txt\"");
    let tasks = written(folder.path(), "tasks.toml", &traced);
    let output = run(&["color", "plan", &tasks, "--machine", "cortex-a7", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plan = json(&output);
    assert_eq!((&plan["tasks"][0]["pages"], &plan["tasks"][0]["accesses"]), (&10.into(), &30.into()));
}

#[test]
fn a_machine_that_was_not_asked_for_is_named_aloud() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = written(folder.path(), "tasks.toml", T1);
    let output = run(&["color", "plan", &tasks, "--no-probe"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("lookaside: machine "), "{}", stderr(&output));
    let named = run(&["color", "plan", &tasks]);
    assert_eq!(stderr(&named), "lookaside: machine skylake: LOOKASIDE_MACHINE names it\n");
    assert_eq!(run(&["color", "plan", &tasks, "--no-probe", "--machine", "zen4"]).status.code(), Some(2));
    let wrong = lookaside().args(["color", "plan", &tasks]).env("LOOKASIDE_MACHINE", "pentium").output().expect("runs");
    assert_bad_input(&wrong, &["pentium"]);
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = written(folder.path(), "tasks.toml", T1);
    let on = |tasks: &str, more: &[&str]| run(&[&["color", "plan", tasks, "--machine", "xeon-e5-2650"], more].concat());
    assert_bad_input(&on("/no/such.toml", &[]), &["/no/such.toml"]);
    assert_bad_input(&run(&["color", "plan", &tasks, "--machine", "pentium"]), &["pentium"]);
    assert_bad_input(&on(&tasks, &["-o", "/no/folder/x"]), &["/no/folder/x", "choose another place"]);
    assert_bad_input(&on(&tasks, &["--page-size", "64K"]), &["xeon-e5-2650", "64K"]);
    let late = written(folder.path(), "late.toml", &T1.replace("0.392ms", "3ms"));
    assert_bad_input(&on(&late, &[]), &["late.toml", "task[0].execution", "longer than the period"]);
    let huge = written(folder.path(), "huge.toml", &T1.replace("pages = 4", "pages = 99999"));
    assert_bad_input(&on(&huge, &[]), &["99999", "larger pages"]);
    let traced = written(folder.path(), "traced.toml", &T1.replace("pages = 4", "trace = \"gone.lkt\""));
    assert_bad_input(&on(&traced, &[]), &["T1", "gone.lkt"]);
    assert_eq!(on(&tasks, &["--page-size", "5K"]).status.code(), Some(2));
}

#[test]
fn the_book_shows_what_is_printed() {
    let book = BOOK.concat();
    let (_, rest) = book.split_once("```toml\n").expect("tasks in the book");
    let (tasks, _) = rest.split_once("```").expect("an end");
    let folder = tempfile::tempdir().expect("temporary folder");
    for (text, code) in [(tasks.to_string(), 0), (tasks.replace("pages = 28", "pages = 38"), 1)] {
        let tasks = written(folder.path(), "tasks.toml", &text);
        let output = run(&["color", "plan", &tasks, "--machine", "xeon-e5-2650"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(book.contains(&stdout(&output)), "the book shows another plan than\n{}", stdout(&output));
    }
}

#[test]
fn heaps_find_what_plans_promise() {
    use lookaside_machine::{preset, PageSize};
    use lookaside_runtime::color::{ColoredHeap, HeapOptions};
    use lookaside_techniques::color::{plan::plan, tasks::TaskSet};

    let book = BOOK.concat();
    let tasks = book.split("```").find_map(|part| part.strip_prefix("toml\n")).expect("tasks in the book");
    let set = TaskSet::parse(tasks, "docs/reference/color.md").expect("tasks");
    for name in ["xeon-e5-2650", "skylake", "ryzen-5900x"] {
        let found = plan(&set, &preset(name).expect("a preset"), PageSize::K4).expect("a plan");
        assert!(found.is_isolated());
        let heap = ColoredHeap::new(&HeapOptions::of(&found.partitions)).expect(name);
        let mut pages = heap.bookkeeping_vpns().to_vec();
        for (color, task) in (0..).zip(&set.tasks) {
            let own = heap.vpns(color);
            assert_eq!(Some(own.len() as u64), task.pages, "{name} {}", task.name);
            let run = own
                .windows(task.contiguous_pages as usize)
                .any(|run| run[run.len() - 1] - run[0] + 1 == run.len() as u64);
            assert!(run, "{name} {}: {own:?}", task.name);
            pages.extend(own);
        }
        for level in &found.partitions.levels {
            let mut counts = vec![0; level.sets as usize];
            pages.iter().for_each(|&vpn| counts[level.set_of(vpn) as usize] += 1);
            assert!(counts.iter().all(|&count| count <= level.ways), "{name} {}: {counts:?}", level.name);
        }
    }
}

/// A level of one set that the tasks ask for more than it holds keeps nobody apart; the others still do, and the heap's
/// own pages too.
#[test]
fn a_full_level_of_one_set_does_not_refuse_the_heap() {
    use lookaside_machine::{preset, Disturbance, PageSize};
    use lookaside_runtime::color::{ColoredHeap, HeapOptions};
    use lookaside_techniques::color::{plan::plan, tasks::TaskSet};

    let text = format!("{T1}{T2}").replace("pages = 60", "pages = 64");
    let set = TaskSet::parse(&text, "tasks.toml").expect("tasks");
    let mut machine = preset("ryzen-5900x").expect("a preset");
    for noisy in [false, true] {
        let levels = machine.color_levels(PageSize::K4);
        assert_eq!((levels[0].sets, levels[0].ways), (1, 64));
        let second = &levels[1];
        if noisy {
            // Then the plan names the heap's own partition.
            let mut evictions_per_context_switch = vec![0.0; second.sets as usize];
            evictions_per_context_switch[3] = 2.0;
            let tlb = second.name.clone();
            machine.disturbances.push(Disturbance { tlb, evictions_per_context_switch, ..Disturbance::default() });
        }
        let found = plan(&set, &machine, PageSize::K4).expect("a plan");
        assert!(!found.levels[0].isolated && found.levels[1].isolated, "noisy {noisy}");
        let heap = ColoredHeap::new(&HeapOptions::of(&found.partitions)).expect("a heap");
        let mut counts = vec![0; second.sets as usize];
        let own = heap.bookkeeping_vpns().to_vec();
        let pages = [heap.vpns(0), heap.vpns(1), own].concat();
        pages.iter().for_each(|&vpn| counts[second.set_of(vpn) as usize] += 1);
        assert!(counts.iter().all(|&count| count <= second.ways), "noisy {noisy}: {counts:?}");
    }
    // Full and no more: the heap's own pages have no place, and must not take one.
    let exactly = text.replace("pages = 64", "pages = 60");
    let set = TaskSet::parse(&exactly, "tasks.toml").expect("tasks");
    let found = plan(&set, &preset("ryzen-5900x").expect("a preset"), PageSize::K4).expect("a plan");
    assert!(found.is_isolated());
    assert!(ColoredHeap::new(&HeapOptions::of(&found.partitions)).is_err());
}
