//! Baking other processes: this test's own program, and mistakes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use lookaside_runtime::bake::{BakedRegion, Baker, Settings};

use crate::common::{assert_bad_input, json, lookaside, run, stderr, stdout};

#[test]
fn bakes_a_process_from_outside() {
    let pid = std::process::id().to_string();
    let output = run(&["bake", "pid", &pid, "--time", "1", "--json"]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &["Linux 6.7"]);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let ours = &report["processes"][0];
    assert_eq!(ours["pid"].to_string(), pid);
    assert_eq!((&ours["running"], &ours["refused"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(ours["stats"]["failed_calls"], 0);
    let text = stdout(&run(&["bake", "system", "--comm", "no-such-program", "--time", "0"]));
    assert_eq!(text, "No process was found.\n");
}

/// A busy program with 320 MiB in small pages, which is ended when it is dropped.
struct Busy(Child);

impl Busy {
    fn new() -> Self {
        let arguments = ["lab", "workload", "gups", "--size", "320M", "--rounds", "1000000", "--pages", "base"];
        let child = lookaside().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("the command can be started"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Body and kind of what an address answers.
fn get(address: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer of text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    (body.to_string(), kind.to_string())
}

/// It finds whom to bake by itself, bakes it, and tells so by a file, over HTTP and at the end.
#[test]
fn bakes_the_system_and_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lookaside.prom");
    let busy = Busy::new();
    let pid = busy.0.id();
    let mut baker = lookaside();
    baker.args(["bake", "system", "--time", "120", "--json", "--listen", "127.0.0.1:0", "--metrics"]).arg(&file);
    let mut baker = baker.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    let mut said = String::new();
    BufReader::new(baker.stderr.as_mut().expect("piped")).read_line(&mut said).expect("a line");
    if said.contains("Linux 6.7") {
        let code = baker.wait().expect("it ends").code();
        return assert_eq!(code, Some(2), "{said}");
    }
    let address = said.trim_end().strip_prefix("lookaside: metrics: http://").and_then(|at| at.strip_suffix('/'));
    let address = address.unwrap_or_else(|| panic!("{said}"));

    // Baked is who is worth it as soon as it is seen to be: its memory comes page by page, and a busy machine is slow.
    let rounds = |text: &str| {
        let ours =
            |line: &&str| line.starts_with("lookaside_bake_rounds_total{") && line.contains(&format!("\"{pid}\""));
        text.lines().find(ours).and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    let mut answer = get(address);
    while rounds(&answer.0) < Some(1) && baker.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(100));
        answer = get(address);
    }
    assert!(rounds(&answer.0) >= Some(1), "never baked: {answer:?}");
    assert!(answer.1.starts_with("application/openmetrics-text; version=1.0.0"), "{answer:?}");
    assert!(answer.0.ends_with("# EOF\n"), "{answer:?}");
    assert!(answer.0.contains("\nlookaside_bake_ranking_info{by=\""), "{answer:?}");
    let written = std::fs::read_to_string(&file).expect("written");
    assert!(written.contains("\nlookaside_bake_processes ") && written.ends_with("# EOF\n"), "{written}");

    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(baker.id() as libc::pid_t, libc::SIGINT) };
    let output = baker.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(128 + libc::SIGINT), "{}", stderr(&output));
    let report = json(&output);
    let ours =
        report["processes"].as_array().expect("a list").iter().find(|row| row["pid"] == pid).expect("the busy program");
    assert_eq!(ours["refused"], serde_json::Value::Null);
    assert!(ours["stats"]["rounds"].as_u64() >= Some(1), "{ours}");
    // By walk cycles where a PMU counts them, else by bytes, and why.
    let (rank, counts) = (&ours["rank"], ours["rank"]["event"].is_string());
    assert_eq!(rank["by"], if counts { "walk-cycles" } else { "table-bytes" });
    assert_eq!(rank["no_pmu"].is_string(), !counts, "{rank}");
}

#[test]
fn top_has_this_program() {
    let output = run(&["top", "--json", "--interval", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let ours = report["processes"].as_array().expect("a list").iter().find(|row| row["pid"] == std::process::id());
    let ours = ours.expect("this program");
    assert!(ours["resident_bytes"].as_u64() > Some(0) && ours["table_bytes"].as_u64() > Some(0), "{ours}");
    let table = stdout(&run(&["top", "--once", "--interval", "1"]));
    assert!(table.starts_with("process ") && table.contains(&format!("({})", std::process::id())), "{table}");
    assert_eq!(run(&["top", "--interval", "0"]).status.code(), Some(2));
}

/// This test's own program has a baker for a while. A machine that is held up is slow to bake: it looks until it sees
/// what it waits for.
#[test]
fn top_has_a_baker_that_a_program_starts_until_it_stops() {
    let data = vec![1u8; 32 << 20];
    let settings: Settings = "prefetch:t2,sleep=1ms".parse().expect("settings");
    let row = || {
        let output = run(&["top", "--once", "--json", "--interval", "1"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report = json(&output);
        let rows = report["processes"].as_array().expect("a list");
        rows.iter().find(|row| row["pid"] == std::process::id()).expect("this program").clone()
    };
    let rounds = |row: &serde_json::Value| row["baked"]["stats"]["rounds"].as_u64();
    let baker = Baker::start(&settings, &[BakedRegion::of(&data)]).expect("a baker");
    let first = (0..60).map(|_| row()).find(|row| rounds(row) > Some(0)).expect("what it tells");
    let later = (0..60).map(|_| row()).find(|row| rounds(row) > rounds(&first)).expect("more rounds");
    let (baked, within) = (&later["baked"], &later["baked"]["within"]);
    assert_eq!(within["backend"], "prefetch:t2");
    assert!(within["state"] == "baking" || within["state"] == "crowded", "{within}");
    assert_eq!((&within["bake"], &within["pause_nanos"]), (&"prefetch:t2,sleep=1000000ns".into(), &1_000_000.into()));
    assert!(baked["mappings"] == 1 && baked["small_bytes"].as_u64() >= Some(32 << 20), "{later}");
    // Another test may have it baked from outside meanwhile.
    let itself = |row: &serde_json::Value| {
        row["helpers"].as_array().expect("a list").iter().any(|helper| helper[0] == std::process::id())
    };
    assert!(itself(&later), "{later}");
    baker.stop();
    let after = row();
    assert!(!itself(&after) && after["baked"]["within"].is_null(), "{after}");
}

#[test]
fn bad_arguments() {
    assert_bad_input(&run(&["bake", "system", "--listen", "nowhere"]), &["--listen nowhere", "free port"]);
    assert_bad_input(&run(&["bake", "system", "--metrics", "/nonexistent/x"]), &["/nonexistent/x"]);
    assert_eq!(run(&["bake", "pid"]).status.code(), Some(2));
    assert_bad_input(&run(&["bake", "pid", "4194305"]), &["4194305", "there is none"]);
    assert_bad_input(&run(&["bake", "pid", "1", "--settings", "prefetch"]), &["own memory", "scan"]);
    assert_bad_input(&run(&["bake", "pid", "1", "--settings", "scan,share=2"]), &["share=2", "at most 1"]);
    assert_bad_input(&run(&["bake", "system", "--cgroup", "/nonexistent"]), &["/nonexistent", "control group"]);
}

/// Where it is loaded is a virtual machine's business (`tools/check-kernel`).
#[test]
fn without_the_kernel_module_one_line_says_how_to_get_it() {
    if std::path::Path::new("/dev/lookaside").exists() {
        return eprintln!("LEFT OUT: the kernel module is loaded");
    }
    let pid = std::process::id().to_string();
    let hint = ["/dev/lookaside", "build and load it", "make -C kernel load"];
    assert_bad_input(&run(&["bake", "pid", &pid, "--settings", "module,stride=16"]), &hint);
    assert_bad_input(&run(&["bake", "run", "--settings=module", "--", "true"]), &hint);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "16M", "--bake", "module,nops=1"]), &hint);
    assert_bad_input(&run(&["compare", "--variants", "bake:module", "--", "true"]), &hint);
    assert_bad_input(&run(&["bake", "pid", &pid, "--settings", "module,nops=65537"]), &["nops=65537", "65536"]);
}
