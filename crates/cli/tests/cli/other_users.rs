//! What other users of the machine can read of ours, or put in its place.

use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::common::{assert_bad_input, lookaside, run, stderr, stdout};

/// A small trace.
fn trace(folder: &Path) -> String {
    let file = folder.join("gups.lkt").to_str().expect("text path").to_string();
    let output = run(&["lab", "workload", "gups", "--size", "1M", "--record", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    file
}

#[test]
fn reports_have_the_rights_that_the_mask_leaves_or_that_they_had() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let mode = |file: &Path| file.metadata().expect("written").permissions().mode() & 0o777;
    for (mask, left) in [("077", 0o600), ("022", 0o644), ("027", 0o640)] {
        let (json, page) = (folder.path().join(format!("{mask}.json")), folder.path().join(format!("{mask}.html")));
        let script = "umask $1; exec \"$2\" simulate \"$3\" --machine skylake --json=\"$4\" --html \"$5\"";
        let program = lookaside().get_program().to_owned();
        let again = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, "sh", mask]).arg(&program).arg(&trace).args([&json, &page]);
            let output = shell.env_remove("LOOKASIDE_MACHINE").output().expect("a shell");
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        };
        again();
        assert_eq!((mode(&json), mode(&page)), (left, left), "{mask}");
        std::fs::set_permissions(&json, std::fs::Permissions::from_mode(0o604)).expect("ours");
        again();
        assert_eq!((mode(&json), mode(&page)), (0o604, left), "{mask}");
    }
}

/// As with a `sudo` that keeps the variable.
#[test]
fn root_keeps_nothing_in_another_users_home_and_runs_nothing_from_there() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("LEFT OUT: only root can give a folder away");
        return;
    }
    let home = tempfile::tempdir().expect("temporary folder");
    chown(home.path(), Some(65534), None).expect("root may");
    let at_home = |arguments: &[&str]| {
        let mut command = lookaside();
        command.args(arguments).env("HOME", home.path()).env_remove("XDG_CACHE_HOME").env_remove("LOOKASIDE_MACHINE");
        command.output().expect("the command can be started")
    };
    let shown = at_home(&["machine", "show", "this"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    assert!(stderr(&shown).contains("other users may write there"), "{}", stderr(&shown));
    assert!(!stdout(&shown).starts_with("this"), "the nearest preset by its name: {}", stdout(&shown));
    let trace = home.path().join("../lookaside-of-root.lkt");
    let recorded = at_home(&["record", "-o", trace.to_str().expect("text path"), "--", "true"]);
    // Without Valgrind it says so.
    assert!([Some(0), Some(2)].contains(&recorded.status.code()), "{}", stderr(&recorded));
    let _ = std::fs::remove_file(trace);
    assert_eq!(std::fs::read_dir(home.path()).expect("there").count(), 0);
}

/// The home of many users of services, who have none.
#[test]
fn nothing_is_made_in_a_home_that_is_not_there() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let home = folder.path().join("home");
    let without = |arguments: &[&str]| {
        let mut command = lookaside();
        command.args(arguments).env("HOME", &home).env_remove("XDG_CACHE_HOME").env_remove("LOOKASIDE_MACHINE");
        command.output().expect("the command can be started")
    };
    let shown = without(&["machine", "show", "this"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    assert!(stderr(&shown).contains("no place to keep it"), "{}", stderr(&shown));
    let trace = folder.path().join("t.lkt");
    let recorded = without(&["record", "-o", trace.to_str().expect("text path"), "--", "true"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    assert!(!home.exists());
}

#[test]
fn outputs_follow_no_link_in_a_folder_of_all() {
    let own = tempfile::tempdir().expect("temporary folder");
    let trace = trace(own.path());
    let open = tempfile::tempdir().expect("temporary folder");
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o1777)).expect("ours");
    let (precious, link) = (own.path().join("precious"), open.path().join("link"));
    std::fs::write(&precious, "precious").expect("ours");
    std::os::unix::fs::symlink(&precious, &link).expect("ours");
    let (link, json) = (link.to_str().expect("text path"), format!("--json={}", link.display()));
    for arguments in [
        &["record", "-o", link, "--", "true"][..],
        &["trace", "convert", &trace, "-o", link, "--format", "lkt"],
        &["simulate", &trace, "--machine", "skylake", &json],
        &["simulate", &trace, "--machine", "skylake", "--html", link],
        &["machine", "probe", "-o", link],
    ] {
        assert_bad_input(&run(arguments), &["is a link", link]);
        assert_eq!(std::fs::read_to_string(&precious).expect("there"), "precious", "{arguments:?}");
    }
}

/// Somebody calls a program, a file or an argument so that it would clear the screen.
#[test]
fn what_programs_are_called_is_made_harmless() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let named = folder.path().join("\u{1b}[2Jsleep");
    std::fs::copy("/bin/sleep", &named).expect("copied");
    let mut child = Command::new(&named).arg("60").spawn().expect("it starts");
    let (pid, metrics) = (child.id().to_string(), folder.path().join("metrics"));
    let metrics = metrics.to_str().expect("text path");
    let trace = trace(folder.path());
    let text = folder.path().join("named.txt");
    let info = concat!(
        r#"T {"granularity":"byte","recorder":"\u001b[2J","command":["\u001b[2Jx"],"filter_log2_classes":0,"#,
        r#""filter_stores_apart":false,"has_fetches":false,"has_ip":false,"sample_period_ns":0}"#
    );
    std::fs::write(&text, format!("{info}\nR 0x1000 8\n")).expect("written");
    let (named, text) = (named.to_str().expect("text path"), text.to_str().expect("text path"));
    for arguments in [
        &["top", "--once", "--interval", "1"][..],
        &["bake", "pid", &pid, "--time", "1", "--metrics", metrics],
        &["bake", "run", "--stats", "--", named, "0"],
        &["bake", "run", "\u{1b}[2Jnone"],
        &["record", "-o", &trace, "--", "\u{1b}[2Jnone"],
        &["trace", "info", "\u{1b}[2Jnone.lkt"],
        &["trace", "info", text],
        &["simulate", text, "--machine", "\u{1b}[2Jnone"],
    ] {
        let output = run(arguments);
        let shown = [output.stdout, output.stderr].concat();
        assert!(!shown.contains(&0x1b), "{arguments:?}: {:?}", String::from_utf8_lossy(&shown));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    // Where the kernel can't bake others there are none.
    let metrics = std::fs::read(metrics).unwrap_or_default();
    assert!(!metrics.contains(&0x1b));
}

/// Each claim of SECURITY.md names a test that there is.
#[test]
fn the_claims_have_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("SECURITY.md")).expect("there");
    let mut found = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 2) {
        let Some((_, tests)) = row.rsplit_once(" | ") else { continue };
        for of_file in tests.trim_end_matches(" |").split("; ").filter(|part| part.contains(".rs`")) {
            let mut names = of_file.split('`').filter(|part| !part.contains([' ', ':', ',']) && !part.is_empty());
            let source = std::fs::read_to_string(root.join(names.next().expect("a file"))).expect(of_file);
            for name in names {
                assert!(source.contains(&format!("fn {name}(")), "{name}: {of_file}");
                found += 1;
            }
        }
    }
    assert!(found > 15, "{found}");
}
