//! What a switch takes: the report's parts and counts, what is refused, and that no participant outlives the command.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{assert_bad_input, flat, json, lab, run, stderr, stdout, valid_json};

/// A tenth of a second: the least of everything, in so many rounds.
const LEAST: [&str; 10] =
    ["experiment", "switch", "--quick", "--participants", "3", "--kib", "0", "--children", "2", "--pages"];

/// Processes of this group that have not ended.
fn of_group(group: u32) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let is_of_group = |path: &PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        // After the name: state, parent, group.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(&group.to_string())
    };
    processes.filter(is_of_group).collect()
}

/// Waits until something is so; else the test fails.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command in a group of its own.
fn grouped(arguments: &[&str]) -> Command {
    let mut command = lab();
    command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The exit code of a whole measurement.
fn code(report: &Value) -> Option<i32> {
    Some(if report["disturbed"].is_null() { 0 } else { 1 })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn assert_figure(figure: &Value) {
    let [low, value, high] = ["low", "value", "high"].map(|name| number(&figure[name]));
    assert!(low <= value && value <= high, "{figure}");
}

#[test]
fn every_ring_is_in_all_reports_and_no_process_is_left() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text path").to_string();
    let (json, html) = (path("switch.json"), path("switch.html"));
    let child = grouped(&["experiment", "switch", "--quick", &format!("--json={json}"), "--html", &html])
        .spawn()
        .expect("started");
    let group = child.id();
    let output = child.wait_with_output().expect("ended");
    assert_eq!(of_group(group), Vec::<PathBuf>::new());

    let report = valid_json(&std::fs::read_to_string(&json).expect("read"));
    assert_eq!(output.status.code(), code(&report), "{}", stderr(&output));
    assert_eq!(
        (&report["schema"], &report["rounds"], &report["early"]),
        (&"lookaside-switch/1".into(), &5.into(), &Value::Null)
    );
    let kinds: u64 = if report["huge_share"].is_null() { 1 } else { 2 };
    let list = |name: &str| report[name].as_array().unwrap_or_else(|| panic!("{name}")).clone();
    // lat_ctx: two rings, 0 KiB in base pages and 16 in each kind; extreme: one ring, two sizes, own and the same
    // memory.
    let rings = 2 * (1 + kinds) + 4 * kinds;
    // Compartments, where there are keys, have base pages only.
    let of_compartments = if report["no_compartments"].is_null() { 2 * 2 + 4 } else { 0 };
    assert_eq!(list("points").len() as u64, 2 * rings + of_compartments);
    // Beside other load a ring may not tell what a switch takes, and is then held against nothing.
    let all_told = list("points").iter().all(|point| number(&point["switch_ns"]["low"]) > 0.0);
    let contrasts = list("contrasts").len() as u64;
    assert!(if all_told { contrasts == rings } else { contrasts < rings || of_compartments > 0 }, "{contrasts}");
    for point in list("points") {
        ["step_ns", "alone_ns", "switch_ns"].into_iter().for_each(|name| assert_figure(&point[name]));
        assert_eq!(point["rounds"].as_array().map(Vec::len), Some(5));
        let round = &point["rounds"][0];
        assert!(number(&round["step_ns"]) > 0.0 && number(&round["alone_ns"]) > 0.0, "{point}");
        assert_eq!(point["who"] == "compartments", !point["keys"].is_null(), "{point}");
        // Each hands the CPU to the next, or the count would be 1,000 below.
        assert!(number(&point["extra_switches_per_kilo_step"]) > -500.0, "{point}");
    }
    for contrast in list("contrasts") {
        // Of several medians the value may lie outside: the interval is of percentiles.
        let figure = &contrast["over_threads_ns"];
        assert!(number(&figure["low"]) <= number(&figure["high"]), "{contrast}");
        let grown = contrast["benchmark"] == "extreme" && contrast["size"] == 64;
        assert!(contrast["of_pages_ns"].is_null() != grown || !all_told, "{contrast}");
    }

    let text = flat(&stdout(&output));
    assert_eq!(text.contains("Verdict: can't tell"), !report["disturbed"].is_null(), "{text}");
    assert!(contrasts == 0 || text.contains("lat_ctx: ") || text.contains("extreme: "), "{text}");
    for said in
        ["5 rounds", "protection keys", "mitigations ", "switches beside those that hand over the token", "Verdict: "]
    {
        assert!(text.contains(said), "{said:?} is not in\n{text}");
    }
    let page = std::fs::read_to_string(&html).expect("read");
    assert!(
        page.contains("<h1>What a switch takes</h1>") && page.contains("ns a switch") && page.ends_with("</html>\n")
    );
}

#[test]
fn json_to_standard_output_is_in_place_of_the_text() {
    let output = run(&[&LEAST[..], &["1", "--rounds", "1", "--seed", "7", "--json"]].concat());
    let report = json(&output);
    assert_eq!(output.status.code(), code(&report), "{}", stderr(&output));
    assert_eq!(
        (&report["seed"], &report["rounds"], &report["points"][0]["participants"]),
        (&7.into(), &1.into(), &3.into())
    );
    assert!(report["contrasts"]
        .as_array()
        .is_some_and(|all| all.iter().all(|contrast| contrast["significant"] == false)));
}

#[test]
fn what_cannot_be_is_one_line() {
    let on = |more: &[&str]| run(&[&["experiment", "switch", "--quick"][..], more].concat());
    assert_bad_input(&on(&["--participants", "1"]), &["participants 1", "at least 2"]);
    assert_bad_input(&on(&["--participants", "0"]), &["participants 0", "at least 2"]);
    assert_bad_input(&on(&["--children", "2,1"]), &["children 1", "at least 2"]);
    assert_bad_input(&on(&["--pages", "0,4"]), &["pages 0", "at least 1"]);
    assert_bad_input(&on(&["--pages", "99999999999"]), &["pages 99999999999"]);
    assert_bad_input(&on(&["--participants", "9999999999"]), &["9999999999 participants", "ask for fewer"]);
    assert_bad_input(&on(&["--kib", "99999999999999"]), &["MiB", "free", "ask for fewer"]);
    assert_bad_input(&on(&["--cpu", "100000"]), &["CPU 100000", "may run on"]);
    assert_bad_input(&on(&["--html", "/no/such/folder/x.html"]), &["/no/such/folder/x.html"]);
    assert_bad_input(&on(&["--json=/no/such/folder/x.json"]), &["/no/such/folder/x.json"]);
    for usage in [["--kib", "some"], ["--kib", ""], ["--rounds", "0"], ["--pages", "-1"]] {
        assert_eq!(on(&usage).status.code(), Some(2), "{usage:?}");
    }
    let mut few_files = grouped(&["experiment", "switch", "--quick", "--participants", "200"]);
    let limit = || {
        let few = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
        // SAFETY: a system call between fork and exec.
        match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: as above.
    unsafe { few_files.pre_exec(limit) };
    assert_bad_input(&few_files.output().expect("started"), &["200 participants", "open files", "ulimit -n"]);
}

#[test]
fn an_interrupt_keeps_complete_rounds_and_ends_all_processes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let html = folder.path().join("switch.html");
    let more = ["1,64", "--rounds", "10000", "--json", "--html", html.to_str().expect("text path")];
    let child = grouped(&[&LEAST[..], &more].concat()).spawn().expect("started");
    let group = child.id();
    until("no participants", || of_group(group).len() > 3);
    // A round is some fifty milliseconds.
    std::thread::sleep(Duration::from_secs(1));
    signal("-INT", group);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(of_group(group), Vec::<PathBuf>::new());
    let report = json(&output);
    let rounds = report["rounds"].as_u64().expect("a number");
    assert!(rounds < 10_000 && report["early"] == "interrupted", "{rounds} {}", report["early"]);
    let all = report["points"].as_array().expect("points").iter();
    assert!(all.clone().all(|point| point["rounds"].as_array().map(|list| list.len() as u64) == Some(rounds)));
    assert_eq!(all.count() > 0, rounds > 0);
    assert!(std::fs::read_to_string(Path::new(&html)).expect("read").contains("Cut short: interrupted."));
}

#[test]
fn time_that_is_over_keeps_complete_rounds() {
    let output = run(&[&LEAST[..], &["1,64", "--rounds", "10000", "--time", "2", "--json"]].concat());
    let report = json(&output);
    assert_eq!(output.status.code(), code(&report), "{}", stderr(&output));
    let rounds = report["rounds"].as_u64().expect("a number");
    assert!(
        0 < rounds && rounds < 10_000 && report["early"] == serde_json::json!({ "time": 2 }),
        "{rounds} {}",
        report["early"]
    );
    // A round of so many participants takes longer than that.
    let many = [
        "experiment",
        "switch",
        "--time",
        "1",
        "--rounds",
        "1",
        "--participants",
        "2,60",
        "--kib",
        "0,16,64,256",
        "--pages",
        "1,64,512",
    ];
    let output = run(&many);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("Cut short: 1 s were over"), "{}", stdout(&output));
}

/// Nobody can tell the participants then; the kernel does.
#[test]
fn participants_end_when_the_command_is_killed() {
    let mut child = grouped(&[&LEAST[..], &["1,64", "--rounds", "10000"]].concat()).spawn().expect("started");
    let group = child.id();
    until("no participants", || of_group(group).len() > 3);
    signal("-KILL", group);
    child.wait().expect("ended");
    until("participants are left", || of_group(group).is_empty());
}

/// To the command alone.
fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().expect("kill");
    assert!(status.success());
}
