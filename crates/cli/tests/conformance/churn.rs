//! A program that maps, unmaps, moves, protects and forks, beside each baker and with huge pages made of its memory:
//! each word is what it wrote, and beside a baker no page has a frame that it did not touch.
//!
//! `tools/churn` sets `CHURN_OPERATIONS`: so many under each way, in rounds in turns with the program by itself, and
//! prints how long `munmap` took; `CHURN_WAY`: under those ways alone whose names begin so. Without it a few are tried,
//! and no time is looked at.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use crate::program::build;
use crate::programs;
use crate::ways::{own_command, Start};

/// Rounds of a measurement: each is the program by itself and under the way.
const ROUNDS: u32 = 10;
/// What the program prints of its munmaps.
const SHARES: [&str; 3] = ["p50", "p99", "p99.9"];

/// How a way runs the program.
struct Churn {
    name: &'static str,
    /// Words before the program.
    words: &'static [&'static str],
    /// Or a command beside it, which is given its number.
    beside: &'static [&'static str],
    as_nobody: bool,
    /// What the program looks at: `strict`, also that no page has come that it did not touch.
    look: &'static str,
    /// As many times as many operations in a measurement: a choice of huge pages takes some seconds.
    longer: u64,
}

const BAKED: Churn = Churn { name: "", words: &[], beside: &[], as_nobody: false, look: "strict", longer: 1 };
const HUGE: Churn = Churn { look: "loose", words: &["hugepages", "run", "--budget=16"], longer: 5, ..BAKED };

const WAYS: [Churn; 8] = [
    Churn { name: "bake run --settings prefetch", words: &["bake", "run", "--stats", "--settings=prefetch"], ..BAKED },
    Churn { name: "bake run --settings scan", words: &["bake", "run", "--stats", "--settings=scan"], ..BAKED },
    Churn { name: "bake run --settings mincore", words: &["bake", "run", "--stats", "--settings=mincore"], ..BAKED },
    Churn { name: "bake run --settings auto", words: &["bake", "run", "--stats", "--settings=auto"], ..BAKED },
    Churn { name: "bake pid", beside: &["bake", "pid"], ..BAKED },
    Churn {
        name: "hugepages apply",
        beside: &["hugepages", "apply", "--seconds=1", "--budget=16", "--pid"],
        longer: 2,
        ..HUGE
    },
    Churn { name: "hugepages run, from outside", ..HUGE },
    Churn { name: "hugepages run, from inside", as_nobody: true, ..HUGE },
];

/// Nanoseconds at [`SHARES`], and what our command said.
struct Run {
    munmap: Vec<f64>,
    said: String,
}

impl Churn {
    /// Starts the program with all operations of a run.
    fn start(&self, watched: bool, operations: u64, threads: u32) -> Child {
        let own = if self.as_nobody { programs().command_for_all() } else { own_command() };
        let words = match watched && self.beside.is_empty() {
            true => [&[own.to_str().expect("UTF-8")], self.words].concat(),
            false => Vec::new(),
        };
        let start = Start {
            words: words.into_iter().map(String::from).collect(),
            as_nobody: self.as_nobody,
            is_compiled: false,
            is_large: false,
        };
        let arguments = [operations.to_string(), threads.to_string(), self.look.into()];
        let mut command = programs().start(&start, program(), &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
    }

    fn beside(&self, child: &Child) -> Child {
        let mut command = Command::new(own_command());
        command.args(self.beside).arg(child.id().to_string()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
    }

    /// A run, in which nothing may be wrong.
    fn run(&self, watched: bool, operations: u64, threads: u32) -> Run {
        let child = self.start(watched, operations, threads);
        let beside = (watched && !self.beside.is_empty()).then(|| self.beside(&child));
        let output = child.wait_with_output().expect("it ends");
        let said = match beside {
            Some(beside) => text(&beside.wait_with_output().expect("it ends with the program")),
            None => String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.starts_with("right\n"), "{}: {output:?}\n{said}", self.name);
        let nanos = |share: &&str| {
            let (_, rest) = printed.split_once(&format!("{share} ")).expect("a share");
            rest.split(' ').next().and_then(|number| number.parse().ok()).expect("nanoseconds")
        };
        Run { munmap: SHARES.iter().map(nanos).collect(), said }
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The program, built once.
fn program() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let file = programs().folder.path().join("churn");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/churn.c");
        build(&source, &file, &[]);
        file
    })
}

/// In turns with the program by itself; prints the ratios of the rounds.
fn measure(way: &Churn, operations: u64, threads: u32) {
    let mut ratios = vec![Vec::new(); SHARES.len()];
    let mut alone_nanos = vec![Vec::new(); SHARES.len()];
    for round in 0..ROUNDS {
        let run = |watched: bool| way.run(watched, way.longer * operations / u64::from(ROUNDS), threads);
        let (alone, watched) = match round % 2 {
            0 => (run(false), run(true)),
            _ => {
                let watched = run(true);
                (run(false), watched)
            }
        };
        for at in 0..SHARES.len() {
            ratios[at].push(watched.munmap[at] / alone.munmap[at]);
            alone_nanos[at].push(alone.munmap[at]);
        }
        if round == 0 {
            let last = watched.said.trim().lines().last().unwrap_or_default();
            println!("churn: {}, threads {threads}: first round: {last}", way.name);
        }
    }
    for (at, share) in SHARES.iter().enumerate() {
        let (ratios, alone) = (&mut ratios[at], &mut alone_nanos[at]);
        ratios.sort_by(f64::total_cmp);
        alone.sort_by(f64::total_cmp);
        let (median, last) = (ratios.len() / 2, ratios.len() - 1);
        println!(
            "churn: {}, threads {threads}: munmap {share}: {:.1} µs by itself, × {:.2} ({:.2} to {:.2})",
            way.name,
            alone[median] / 1e3,
            ratios[median],
            ratios[0],
            ratios[last],
        );
    }
}

#[test]
fn churn_grows_no_page_and_loses_no_word() {
    let wanted = std::env::var("CHURN_OPERATIONS").ok().map(|n| n.parse::<u64>().expect("CHURN_OPERATIONS: a number"));
    let named = std::env::var("CHURN_WAY").unwrap_or_default();
    let ways: Vec<&Churn> = WAYS.iter().filter(|way| way.name.starts_with(&named)).collect();
    let all = WAYS.map(|way| way.name).join("; ");
    assert!(!ways.is_empty(), "no way's name begins with `{named}`: {all}");
    for way in ways {
        if way.as_nobody && !rustix::process::geteuid().is_root() {
            println!("LEFT OUT: {}: only root can become a user without rights", way.name);
            continue;
        }
        match wanted {
            Some(operations) => [1, 2].iter().for_each(|&threads| measure(way, operations, threads)),
            None => drop(way.run(true, 4_000, 2)),
        }
    }
}
