//! Sample screens of the book are what the commands print: those that the machine at hand has no part in, to the
//! letter.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::book_pages::pages;
use crate::common::lookaside;

/// Commands that print the same on every machine, from files that are there.
const SAME_EVERYWHERE: [&str; 9] = [
    "lookaside machine list",
    "lookaside machine show",
    "lookaside machine check",
    "lookaside color plan",
    "lookaside lock plan",
    "lookaside hugepages plan",
    "lookaside simulate",
    "lookaside trace",
    "lookaside lab workload list",
];

/// A command of a page, and the lines that the page shows of its output.
struct Screen {
    command: String,
    lines: Vec<String>,
}

/// The screens of a page, in order.
fn screens(page: &str) -> Vec<Screen> {
    let mut found: Vec<Screen> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let mut begun = false;
        for line in block.lines().take_while(|line| !line.starts_with("```")) {
            match (line.strip_prefix("$ "), found.last_mut().filter(|_| begun)) {
                (Some(command), _) => found.push(Screen { command: command.into(), lines: Vec::new() }),
                (None, Some(last)) if last.lines.is_empty() && last.command.ends_with('\\') => {
                    last.command.pop();
                    last.command.push_str(line.trim());
                }
                (None, Some(last)) => last.lines.push(line.into()),
                (None, None) => {}
            }
            begun = true;
        }
    }
    found
}

/// Whether `printed` has the lines in that order; `…` stands for any number of lines that are left out.
fn shows(printed: &str, lines: &[String]) -> bool {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let parts = lines.split(|line| line.trim() == "…");
    let mut at = 0;
    parts.filter(|part| !part.is_empty()).all(|part| {
        let part: Vec<&str> = part.iter().map(|line| line.trim_end()).collect();
        let found = printed[at..].windows(part.len()).position(|window| window == part);
        at += found.unwrap_or(0) + part.len();
        found.is_some()
    })
}

/// Runs a page's commands one after the other in a folder of their own, and gives what differs.
fn differences(path: &Path) -> (usize, Vec<String>) {
    let page = std::fs::read_to_string(path).expect("text");
    let screens = screens(&page);
    // A workload without --record is timed, and may run for hours.
    let is_recorded = |command: &str| command.starts_with("lookaside lab workload") && command.contains("--record");
    let is_same = |screen: &Screen| {
        SAME_EVERYWHERE.iter().any(|begin| screen.command.starts_with(begin)) || is_recorded(&screen.command)
    };
    if !screens.iter().any(|screen| is_same(screen) && !screen.lines.is_empty()) {
        return (0, Vec::new());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = lookaside();
    let beside = Path::new(own.get_program()).parent().expect("a folder").display().to_string();
    let search = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    // Files that the page shows: ```toml blocks after a line that ends in `NAME.toml`:
    for part in page.split("```toml\n").skip(1) {
        let before = &page[..part.as_ptr() as usize - page.as_ptr() as usize];
        let named = before.trim_end_matches("```toml\n").trim_end().rsplit('`').nth(1).unwrap_or_default();
        if named.ends_with(".toml") && !named.contains('/') {
            let text = part.split("```").next().unwrap_or_default();
            std::fs::write(folder.path().join(named), text).expect("written");
        }
    }
    let (mut compared, mut wrong) = (0, Vec::new());
    for screen in screens.iter().filter(|screen| is_same(screen)) {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &screen.command])
            .stdin(Stdio::null())
            .current_dir(folder.path())
            .env("PATH", &search)
            .env("NO_COLOR", "1");
        let output = shell.env("LOOKASIDE_MACHINE", "skylake").output().expect("a shell");
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if !screen.lines.is_empty() {
            compared += 1;
            if !shows(&printed, &screen.lines) {
                wrong.push(format!("{}: $ {}\nprints\n{printed}", path.display(), screen.command));
            }
        }
    }
    (compared, wrong)
}

#[test]
fn screens_are_what_the_commands_print() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in pages() {
        let (of_page, differ) = differences(&path);
        compared += of_page;
        wrong.extend(differ);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 15, "{compared} screens only");
}
