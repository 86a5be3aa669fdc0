//! Baking other processes: this test's own program, and mistakes.

use crate::common::{assert_bad_input, run, stderr, stdout};

#[test]
fn bakes_a_process_from_outside() {
    let pid = std::process::id().to_string();
    let output = run(&["bake", "--pid", &pid, "--time", "1", "--json"]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &["Linux 6.7"]);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report[0]["pid"].to_string(), pid);
    assert_eq!((&report[0]["running"], &report[0]["refused"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(report[0]["stats"]["failed_calls"], 0);
    let text = stdout(&run(&["bake", "--comm", "no-such-program", "--time", "0"]));
    assert_eq!(text, "no process was there\n");
}

/// What a whole system's baker chooses depends on who else is there; that it tells is the same everywhere.
#[test]
fn bakes_the_system_and_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = folder.path().join("lookaside.prom");
    let output = run(&[
        "bake",
        "--system",
        "--time",
        "1",
        "--metrics",
        &metrics.display().to_string(),
        "--listen",
        "127.0.0.1:0",
    ]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &["Linux 6.7"]);
        return;
    }
    // Another user's process may be worth it, and refused.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let text = std::fs::read_to_string(metrics).expect("written");
    assert!(text.contains("\nlookaside_bake_processes ") && text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn top_has_this_program() {
    let output = run(&["top", "--json", "--interval", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let ours = report.as_array().expect("a list").iter().find(|row| row["pid"] == std::process::id());
    let ours = ours.expect("this program");
    assert!(ours["resident_bytes"].as_u64() > Some(0) && ours["table_bytes"].as_u64() > Some(0), "{ours}");
    let table = stdout(&run(&["top", "--once", "--interval", "1"]));
    assert!(table.starts_with("process ") && table.contains(&format!("({})", std::process::id())), "{table}");
    assert_eq!(run(&["top", "--interval", "0"]).status.code(), Some(2));
}

#[test]
fn bad_arguments() {
    assert_bad_input(&run(&["bake", "--system", "--listen", "nowhere"]), &["--listen nowhere", "free port"]);
    assert_bad_input(&run(&["bake", "--system", "--metrics", "/nonexistent/x"]), &["/nonexistent/x"]);
    assert_bad_input(&run(&["bake"]), &["no process"]);
    assert_bad_input(&run(&["bake", "--pid", "4194305"]), &["4194305", "there is none"]);
    assert_bad_input(&run(&["bake", "--pid", "1", "--settings", "prefetch"]), &["own memory", "scan"]);
    assert_bad_input(&run(&["bake", "--pid", "1", "--settings", "scan,share=2"]), &["share=2", "at most 1"]);
    assert_bad_input(&run(&["bake", "--cgroup", "/nonexistent"]), &["/nonexistent", "control group"]);
}

/// Where it is loaded is a virtual machine's business (`tools/check-kernel`).
#[test]
fn without_the_kernel_module_one_line_says_how_to_get_it() {
    if std::path::Path::new("/dev/lookaside").exists() {
        return eprintln!("LEFT OUT: the kernel module is loaded");
    }
    let pid = std::process::id().to_string();
    let hint = ["/dev/lookaside", "build and load it", "make -C kernel load"];
    assert_bad_input(&run(&["bake", "--pid", &pid, "--settings", "module,stride=16"]), &hint);
    assert_bad_input(&run(&["run", "--bake=module", "--", "true"]), &hint);
    assert_bad_input(&run(&["workload", "gups", "--size", "16M", "--bake", "module,nops=1"]), &hint);
    assert_bad_input(&run(&["compare", "--variants", "bake:module", "--", "true"]), &hint);
    assert_bad_input(&run(&["bake", "--pid", &pid, "--settings", "module,nops=65537"]), &["nops=65537", "65536"]);
}
