//! A thread's moves to another CPU: what is refused, and that every case is told of.

use crate::common::{assert_bad_input, flat, json, lab, run, stderr, stdout, valid_json};

const QUICK: [&str; 3] = ["experiment", "migrate", "--quick"];

/// Whether this process may run on two CPUs. Says so when it may not.
fn have_two_cpus() -> bool {
    let output = run(&[&QUICK[..], &["--pages", "1", "--rounds", "1"]].concat());
    if output.status.code() == Some(2) && stderr(&output).contains("needs two CPUs") {
        eprintln!("LEFT OUT: a move needs two CPUs");
        return false;
    }
    true
}

/// On one CPU whatever else is asked for comes second.
#[test]
fn what_cannot_run_is_one_line() {
    if !have_two_cpus() {
        return;
    }
    let refused = |more: &[&str]| run(&[&QUICK[..], more].concat());
    assert_bad_input(&refused(&["--from", "100000"]), &["CPU 100000"]);
    assert_bad_input(&refused(&["--to", "18446744073709551615"]), &["CPU 18446744073709551615"]);
    assert_bad_input(&refused(&["--pages", "1,99999999999"]), &["99999999999 pages need", "ask for fewer --pages"]);
    assert_bad_input(&refused(&["--pages", "18446744073709551615"]), &["ask for fewer --pages"]);
    assert_bad_input(&refused(&["--html", "/no/such/folder/x.html"]), &["/no/such/folder"]);
    assert_bad_input(&refused(&["--json=/"]), &["is a folder"]);
    for more in [["--pages", "0"], ["--pages", ""], ["--rounds", "0"], ["--pages", "few"]] {
        assert_eq!(refused(&more).status.code(), Some(2), "{more:?}");
    }
}

/// The first CPU that this process may run on.
fn first_cpu() -> usize {
    let mut set: libc::cpu_set_t = unsafe_zeroed();
    // SAFETY: the set is ours and as long as we say.
    let failed = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(failed, 0);
    // SAFETY: numbers below the set's length.
    let has = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    (0..8 * size_of::<libc::cpu_set_t>()).find(has).expect("a CPU")
}

fn unsafe_zeroed() -> libc::cpu_set_t {
    // SAFETY: a `cpu_set_t` is a plain array of words; all zero is the empty set.
    unsafe { std::mem::zeroed() }
}

#[test]
fn a_thread_that_has_nowhere_to_go_is_told_so() {
    use std::os::unix::process::CommandExt;

    let cpu = first_cpu();
    let alone = move || {
        let mut only = unsafe_zeroed();
        // SAFETY: a number that the system gave; the set is ours and as long as we say.
        let failed = unsafe {
            libc::CPU_SET(cpu, &mut only);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &only)
        };
        if failed == 0 {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    let on_one = move |more: &[&str]| {
        let mut command = lab();
        command.args(QUICK).args(more);
        // SAFETY: a system call, which may be done between fork and exec.
        unsafe { command.pre_exec(alone) };
        command.output().expect("the command can be started")
    };
    assert_bad_input(&on_one(&[]), &["needs two CPUs", "taskset"]);
    let other = (cpu + 1).to_string();
    // There or not, it is not allowed.
    assert_bad_input(&on_one(&["--to", &other]), &[&format!("CPU {other}")]);
    if have_two_cpus() {
        let cpu = cpu.to_string();
        let output = run(&[&QUICK[..], &["--from", &cpu, "--to", &cpu]].concat());
        assert_bad_input(&output, &["--from and --to are both CPU"]);
    }
}

#[test]
fn every_case_is_told_of_in_every_way() {
    if !have_two_cpus() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text path").to_string();
    let (html, json) = (path("migrate.html"), path("migrate.json"));
    let output = run(&[&QUICK[..], &["--pages", "9,1", "--html", &html, &format!("--json={json}")]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for said in [
        "a thread moves from CPU ",
        "5 rounds",
        "sweep, 4 KiB apart, caches kept",
        "chase, 68 KiB apart, caches thrashed",
        "Verdict on direct",
    ] {
        assert!(flat(&text).contains(said), "{said:?} is not in\n{text}");
    }
    let report = valid_json(&std::fs::read_to_string(&json).expect("written"));
    assert_eq!((&report["schema"], &report["rounds"]), (&"lookaside-migration/1".into(), &5.into()));
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2 * 2 * 2 * 2);
    for (i, cell) in cells.iter().enumerate() {
        let pages = [1, 9][i % 2];
        assert_eq!(cell["pages"], pages);
        let ways = cell["ways"].as_array().expect("ways");
        let names: Vec<&str> = ways.iter().filter_map(|way| way["way"].as_str()).collect();
        assert!(names.starts_with(&["nothing", "direct", "indirect"]), "{names:?}");
        // Of 9 pages 4 KiB apart, the ninth is the first of another line; 68 KiB apart each has its own.
        let lines = if pages == 1 {
            1
        } else if cell["stride_bytes"] == 4096 {
            2
        } else {
            9
        };
        for way in ways {
            let expected = match way["way"].as_str() {
                Some("direct") => pages,
                Some("indirect") => lines,
                _ => 0,
            };
            assert_eq!(way["prefetches"], expected, "{way}");
            assert_eq!(way["accesses_ns"].as_array().map(Vec::len), Some(5));
            assert!(way["accesses_ns"].as_array().is_some_and(|all| all.iter().all(|ns| ns.as_f64() >= Some(0.0))));
            assert_eq!(way["restores_ns"].as_array().map(Vec::len), Some(if expected > 0 { 5 } else { 0 }));
            let is_remedy = !matches!(way["way"].as_str(), Some("nothing" | "returns"));
            assert_eq!(way["overall"].is_object(), is_remedy, "{way}");
        }
    }
    let page = std::fs::read_to_string(&html).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Every case"));
}

#[test]
fn json_on_standard_output_is_all_there_is() {
    if !have_two_cpus() {
        return;
    }
    let output = run(&[&QUICK[..], &["--pages", "1", "--rounds", "2", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["rounds"], 2);
    let remarks = report["remarks"].as_array().expect("remarks");
    assert!(remarks.iter().any(|remark| remark.as_str().is_some_and(|words| words.contains("fewer than 5 rounds"))));
}
