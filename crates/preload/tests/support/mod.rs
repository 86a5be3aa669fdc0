//! What the tests of preloaded libraries have in common: these, and those of `crates/malloc`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo puts `liblookaside_NAME.so`: beside the tests, or one folder up.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path of this program");
    let mut files = test.ancestors().skip(1).take(2).map(|folder| folder.join(format!("liblookaside_{name}.so")));
    files.find(|file| file.exists()).expect("no library beside the tests: see the crate's types")
}

/// Builds a C program; `None`, said aloud, without a compiler.
pub fn compile(folder: &Path, name: &str, source: &str) -> Option<String> {
    compile_with(folder, name, source, &[])
}

/// The same, with more flags.
pub fn compile_with(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<String> {
    let (c, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&c, source).expect("a source file");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-D_GNU_SOURCE", "-pthread", "-o"]).arg(&program).arg(&c).args(flags);
    match gcc.status() {
        Ok(status) => {
            assert!(status.success(), "{name}.c does not compile");
            Some(program.to_string_lossy().into_owned())
        }
        Err(_) => {
            eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc)");
            None
        }
    }
}

/// Real programs over some numbers of items; each puts out the same, with each setting, as it does without the library.
pub fn same_as_bare(folder: &Path, items: u32, settings: &[&str], run: impl Fn(&str, &[&str]) -> Output) {
    let (numbers, source) = (folder.join("numbers"), folder.join("x.c"));
    let text: String = (0..items).map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(&numbers, text).expect("a file");
    std::fs::write(&source, "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n").expect("a file");
    let (numbers, source) = (numbers.to_string_lossy().into_owned(), source.to_string_lossy().into_owned());
    let python = format!(
        "import subprocess, threading\nd = {{i: str(i) for i in range({items})}}\n\
         t = threading.Thread(target=lambda: print(len(d)))\nt.start(); t.join()\n\
         print(sum(map(len, d.values())), subprocess.run(['echo', 'x'], capture_output=True).stdout)"
    );
    let sql = format!(
        "create table t(a int, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < {}) \
         insert into t select i, hex(i * 7) from n; create index x on t(b); select count(*), sum(a), max(b) from t;",
        items / 3
    );
    let programs: [&[&str]; 6] = [
        &["sort", "-n", "--parallel=2", "-S", "64M", &numbers],
        &["gcc", "-O2", "-S", "-o", "-", &source],
        &["python3", "-c", &python],
        &["sqlite3", ":memory:", &sql],
        &["git", "--no-pager", "diff", "--no-index", "--stat", &source, &numbers],
        &["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (echo $i; true) | cat; done; exec sh -c 'echo done; exit 9'"],
    ];
    for command in programs {
        let Ok(bare) = Command::new(command[0]).args(&command[1..]).output() else {
            eprintln!("LEFT OUT: {} is not installed", command[0]);
            continue;
        };
        for setting in settings {
            assert_eq!(run(setting, command), bare, "{setting}: {command:?}");
        }
    }
}
