//! Experiments on this machine: what they refuse, and that every job is told of.

use crate::common::{assert_bad_input, flat, json, run, stderr, stdout};

const TASKS: &str = "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.2ms\"\npages = 4\n\
                     [[task]]\nname = \"T2\"\nperiod = \"8ms\"\nexecution = \"1ms\"\npages = 4\n";

#[test]
fn what_cannot_run_is_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let written = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("text path").to_string()
    };
    let tasks = written("tasks.toml", TASKS);
    let traced = written("traced.toml", &TASKS.replacen("pages = 4", "trace = \"job.lkt\"", 1));
    let on = |file: &str, more: &[&str]| {
        run(&[&["experiment", "tasks", file, "--machine", "xeon-e5-2650"][..], more].concat())
    };
    assert_bad_input(&on("no/such.toml", &[]), &["no/such.toml"]);
    assert_bad_input(&on(&traced, &[]), &["task T1", "a recording does not run"]);
    for (from, to, said) in [
        ("pages = 4", "pages = 4\nprogram = \"bubblesort\"", &["task T1", "no such workload; there are adpcm, "][..]),
        ("pages = 4", "pages = 2\nprogram = \"fft\"", &["task T1", "8192 bytes: this workload has 12K to 1M"]),
        ("pages = 4", "pages = 4\nprogram = 7", &["program.toml: line "]),
        ("pages = 4", "pages = 4\nprogramme = \"fft\"", &["program.toml: line ", "programme"]),
        ("pages = 4", "pages = 6\nprogram = \"fir\"\ndata_pages = 5", &["task[0].data_pages", "6 pages divided by"]),
        ("pages = 4", "trace = \"a.lkt\"\nprogram = \"fir\"", &["task[0].program", "beside a trace"]),
    ] {
        assert_bad_input(&on(&written("program.toml", &TASKS.replacen(from, to, 1)), &[]), said);
    }
    assert_bad_input(&on(&tasks, &["--level", "l9"]), &["no TLB l9", "l1d-4k, stlb"]);
    assert_bad_input(&on(&tasks, &["--cpu", "100000"]), &["CPU 100000"]);
    assert_bad_input(&on(&tasks, &["--hyperperiods", "1000000"]), &["1000000 hyperperiods", "ask for fewer"]);
    assert_bad_input(&run(&["experiment", "tasks", &tasks, "--machine", "no-such"]), &["no-such"]);
    assert_eq!(on(&tasks, &["--hyperperiods", "1"]).status.code(), Some(2));
    assert_eq!(on(&tasks, &["--pages", "elsewhere"]).status.code(), Some(2));
}

/// Whatever is counted: a program does the same work wherever its data lie, and each job touches pages.
#[test]
fn programs_run_as_tasks() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = folder.path().join("tasks.toml");
    let text = TASKS.replacen("pages = 4", "pages = 10\nprogram = \"fft\"", 1).replacen(
        "pages = 4\n",
        "pages = 12\nprogram = \"insertion-sort\"\ndata_pages = 3\n",
        1,
    );
    std::fs::write(&tasks, text).expect("written");
    let tasks = tasks.to_str().expect("text path");
    let arguments = ["experiment", "tasks", tasks, "--machine", "xeon-e5-2650", "--pages", "malloc,planned,same-sets"];
    let output = run(&[&arguments[..], &["--hyperperiods", "4", "--json"]].concat());
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &["cannot be told apart here"]);
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let report = json(&output);
    for (task, name, pages) in [(0, "fft", 10), (1, "insertion-sort", 12)] {
        let first = &report["runs"][0]["tasks"][task]["program"];
        assert_eq!(first["name"], name);
        assert!(first["elements_a_job"].as_u64() > Some(0) && first["operations"].as_u64() > Some(0), "{first}");
        for run in 0..3 {
            let task = &report["runs"][run]["tasks"][task];
            assert_eq!((&task["program"], &task["pages"]), (first, &pages.into()), "run {run}");
            let touched = |job: &serde_json::Value| job["touched_pages"].as_u64().expect("pages");
            assert!(task["jobs"].as_array().expect("jobs").iter().all(|job| touched(job) >= 1));
        }
    }
    let output = run(&[&arguments[..], &["--hyperperiods", "4"]].concat());
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &["cannot be told apart here"]);
    }
    assert!(stdout(&output).contains("by the plan, T1: fft, "), "{}", stdout(&output));
}

/// This machine is none that the description is of: that the two kinds of passes are alike is an answer, too.
#[test]
fn every_job_is_told_of() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = folder.path().join("tasks.toml");
    std::fs::write(&tasks, TASKS).expect("written");
    let tasks = tasks.to_str().expect("text path");
    let arguments = ["experiment", "tasks", tasks, "--machine", "xeon-e5-2650", "--pages", "malloc,planned"];
    let output = run(&[&arguments[..], &["--hyperperiods", "4", "--json"]].concat());
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &["cannot be told apart here"]);
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let report = json(&output);
    assert!(stdout(&output).starts_with("{\n  \"schema\": \"lookaside-tasks/1\",\n"));
    assert_eq!((&report["level"], &report["hyperperiods"]), (&"l1d-4k".into(), &4.into()));
    for (run, pages) in [(0, "malloc"), (1, "planned")] {
        assert_eq!(report["runs"][run]["placement"], pages);
        for (task, jobs) in [(0, 16), (1, 4)] {
            let task = &report["runs"][run]["tasks"][task];
            assert_eq!((task["jobs"].as_array().map(Vec::len), &task["pages"]), (Some(jobs), &4.into()));
            let told = task["summaries"].as_array().expect("summaries").iter();
            assert_eq!(told.filter_map(|kind| kind["jobs"].as_u64()).sum::<u64>(), jobs as u64 - 1);
        }
    }
    // The same as a table: all tasks in all places, and no line too long for it.
    let output = run(&[&arguments[..], &["--hyperperiods", "4"]].concat());
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &["cannot be told apart here"]);
    }
    let text = flat(&stdout(&output));
    let first = "misses of l1d-4k by timing; CPU ";
    for said in [first, "as modelled", "malloc ", "by the plan ", "T1", "T2", "a miss takes "] {
        assert!(text.contains(said), "{said:?} is not in\n{text}");
    }
}

/// Of the last level nothing is timed: passes whose translations were put out are counted to the page, whatever machine
/// this is.
#[test]
fn misses_of_the_last_level_are_counted_by_walks() {
    if std::fs::write("/proc/self/clear_refs", "2").is_err() {
        eprintln!("LEFT OUT: this system counts no referenced bits");
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let tasks = folder.path().join("tasks.toml");
    std::fs::write(&tasks, TASKS).expect("written");
    let tasks = tasks.to_str().expect("text path");
    let arguments =
        ["experiment", "tasks", tasks, "--machine", "xeon-e5-2650", "--level", "stlb", "--pages", "planned"];
    let output = run(&[&arguments[..], &["--hyperperiods", "4", "--json"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!((&report["level"], &report["counted_by"]), (&"stlb".into(), &"walks".into()));
    for task in report["runs"][0]["tasks"].as_array().expect("tasks") {
        let known = &task["known"];
        let [passes, right] = [0, 1].map(|at| known["missed"][at].as_u64().expect("passes"));
        assert!(passes > 0 && 10 * right >= 9 * passes, "{known}");
        for job in task["jobs"].as_array().expect("jobs") {
            // It may lose its pages whenever another task or another program runs within, or an interrupt's handler or
            // the host, which only the witness's pages tell of. Where priorities are nice values, a job of T1's that
            // had begun before may end within, and count as it does.
            let number = |what: &str| job[what].as_u64().expect("a number");
            let parts = 2 + number("preemptions") + number("others").max(number("outside"));
            assert!(job["unseen_pages"] == 0 && number("misses") <= 4 * parts, "{job}");
        }
    }
    let output = run(&[&arguments[..], &["--hyperperiods", "4"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let text = flat(&stdout(&output));
    for said in ["misses of stlb by walks; CPU ", "with all translations put out "] {
        assert!(text.contains(said), "{said:?} is not in\n{text}");
    }
}
