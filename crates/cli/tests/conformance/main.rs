//! Programs can't tell that they are watched or helped: each of `programs/` gives the same output, exit code or signal
//! and files, and leaves no process, under every way as by itself. What differs is in the table of
//! docs/reference/what-a-program-notices.md, and nothing else may; what is in the table and does not differ any more
//! has to leave it. A way may refuse a program, before it runs, with a line of its own.
//!
//! `tools/conformance` runs all of it and adds up. Without `CONFORMANCE=all` each way has a share of the programs,
//! another one than the other ways.

mod churn;
#[path = "../cli/command.rs"]
#[allow(dead_code)]
mod command;
mod listed;
mod observed;
mod program;
mod ways;

use std::sync::OnceLock;

use listed::Listed;
use program::{Program, Programs};
use ways::{Start, Way};

/// Of so many programs each way tries one, unless all are wanted.
const SHARE: usize = 12;

fn programs() -> &'static Programs {
    static ALL: OnceLock<Programs> = OnceLock::new();
    ALL.get_or_init(Programs::find)
}

/// The programs that a way tries. Those that differ are tried with all alone: some wait until they are ended.
fn share(way: &Way, listed: &Listed) -> Vec<&'static Program> {
    let all = std::env::var_os("CONFORMANCE").is_some_and(|what| what == "all");
    let turn = Way::ALL.iter().position(|other| other.name == way.name).expect("a way");
    let differs = |at: usize| listed.of_program(&programs().all[at].name).is_some();
    let has_turn = |at: usize| all || at % SHARE == turn % SHARE && !differs(at);
    programs().all.iter().enumerate().filter(|(at, _)| has_turn(*at)).map(|(_, program)| program).collect()
}

/// How a program differs in two more runs: what does not come again is the machine's, which may hold any run up.
fn again(program: &Program, way: &Way, command: &Start) -> Option<String> {
    let mut runs = (0..2).map(|_| program.observe(&way.alone()).difference(&program.observe(command)));
    runs.try_fold(String::new(), |_, difference| difference)
}

fn nothing_differs(name: &str) {
    let way = Way::named(name);
    let command = match way.begin(programs()) {
        Ok(command) => command,
        Err(missing) => return eprintln!("LEFT OUT: {name}: {missing}"),
    };
    let listed = Listed::of(name);
    let tried: Vec<&Program> = share(&way, &listed).into_iter().filter(|program| program.fits(&way)).collect();
    let mut wrong = Vec::new();
    let (mut known, mut refused) = (0, 0);
    for program in &tried {
        let watched = program.observe(&command);
        if watched.is_refused() {
            refused += 1;
            continue;
        }
        let alone = program.observe(&way.alone());
        let difference = alone.difference(&watched).and_then(|_| again(program, &way, &command));
        match (difference, listed.of_program(&program.name)) {
            (Some(_), Some(_)) => known += 1,
            (None, Some(true)) => wrong.push(format!(
                "{}: listed in docs/reference/what-a-program-notices.md, and does not differ",
                program.name
            )),
            (Some(difference), None) => wrong.push(format!("{}: {difference}", program.name)),
            (None, Some(false) | None) => {}
        }
    }
    // For tools/conformance.
    println!(
        "conformance: {name}: {} programs, {known} listed, {} differences, {refused} refused",
        tried.len() - refused,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

#[test]
fn under_valgrind() {
    nothing_differs("valgrind");
}

#[test]
fn under_qemu() {
    nothing_differs("qemu");
}

#[test]
fn under_samples() {
    nothing_differs("sample");
}

#[test]
fn in_intervals() {
    nothing_differs("intervals");
}

#[test]
fn recording_themselves() {
    nothing_differs("compiled");
}

#[test]
fn baked_by_prefetches() {
    nothing_differs("bake-prefetch");
}

#[test]
fn baked_by_auto() {
    nothing_differs("bake-auto");
}

#[test]
fn made_huge_from_outside() {
    nothing_differs("hugepages-outside");
}

#[test]
fn made_huge_from_inside() {
    nothing_differs("hugepages-inside");
}

#[test]
fn with_code_on_huge_pages() {
    nothing_differs("hugepages-code");
}

#[test]
fn coloured() {
    nothing_differs("color");
}

#[test]
fn there_are_sixty_and_all_that_is_listed() {
    let names: Vec<&str> = programs().all.iter().map(|program| program.name.as_str()).collect();
    assert!(names.len() >= 60, "{}", names.len());
    Listed::check(&names);
}
