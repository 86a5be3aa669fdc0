//! The ways of watching and helping.

use std::path::{Path, PathBuf};

use crate::command::command;
use crate::program::Programs;

/// A way.
pub struct Way {
    pub name: &'static str,
    /// Words before the program; `TRACE` and `PARTITIONS` are files.
    words: &'static [&'static str],
    /// As a user without rights.
    pub as_nobody: bool,
    /// The program is built to record itself.
    pub is_compiled: bool,
    /// The program is built with whole windows of 2 MiB of code.
    is_large: bool,
    /// What has to be installed.
    needs: Option<&'static str>,
}

/// How to start a program: these words, and the program after them.
pub struct Start {
    pub words: Vec<String>,
    pub as_nobody: bool,
    pub is_compiled: bool,
    pub is_large: bool,
}

const PARTITIONS: &str =
    "machine = \"xeon-e5-2650\"\npage_size = \"4K\"\n[[level]]\nname = \"l1d-4k\"\nsets = 16\nways = 4\n\
    [[partition]]\nname = \"half\"\nshares = [{ level = \"l1d-4k\", sets = [0, 1, 2, 3, 4, 5, 6, 7] }]\n";

const fn way(name: &'static str, words: &'static [&'static str]) -> Way {
    Way { name, words, as_nobody: false, is_compiled: false, is_large: false, needs: None }
}

impl Way {
    pub const ALL: [Self; 11] = [
        Self { needs: Some("valgrind"), ..way("valgrind", &["record", "--backend", "valgrind", "-o", "TRACE", "--"]) },
        Self { needs: Some("qemu-x86_64"), ..way("qemu", &["record", "--backend", "qemu", "-o", "TRACE", "--"]) },
        way("sample", &["record", "--backend", "sample", "-o", "TRACE", "--"]),
        way("intervals", &["record", "--every", "10ms", "--for", "1M", "-o", "TRACE", "--"]),
        Self {
            is_compiled: true,
            ..way("compiled", &["record", "--backend", "compiled", "--granularity", "byte", "-o", "TRACE", "--"])
        },
        way("bake-prefetch", &["bake", "run", "--settings=prefetch", "--"]),
        way("bake-auto", &["bake", "run", "--settings=auto", "--"]),
        way("hugepages-outside", &["hugepages", "run", "--budget=4", "--"]),
        Self { as_nobody: true, ..way("hugepages-inside", &["hugepages", "run", "--budget=4", "--"]) },
        Self { is_large: true, ..way("hugepages-code", &["hugepages", "run", "--text", "--no-perf-map", "--"]) },
        way("color", &["color", "run", "--partition=PARTITIONS:half", "--"]),
    ];

    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|way| way.name == name).expect("a way")
    }

    /// The program by itself, as the same user.
    pub fn alone(&self) -> Start {
        Start { words: Vec::new(), as_nobody: self.as_nobody, is_compiled: false, is_large: self.is_large }
    }

    /// The command of this way.
    ///
    /// # Errors
    /// What it needs and is not there.
    pub fn begin(&self, programs: &Programs) -> Result<Start, String> {
        if let Some(needed) = self.needs.filter(|needed| !in_path(needed)) {
            return Err(format!("{needed} is not installed"));
        }
        if self.as_nobody && !rustix::process::geteuid().is_root() {
            return Err("only root can become a user without rights".into());
        }
        let partitions = programs.folder.path().join("partitions.toml");
        std::fs::write(&partitions, PARTITIONS).expect("written");
        let own = if self.as_nobody { programs.command_for_all() } else { own_command() };
        let words = self.words.iter().map(|word| {
            word.replace("PARTITIONS", &partitions.to_string_lossy())
                .replace("TRACE", &programs.folder.path().join(format!("{}.lkt", self.name)).to_string_lossy())
        });
        let start = Start {
            words: [own.to_string_lossy().into_owned()].into_iter().chain(words).collect(),
            as_nobody: self.as_nobody,
            is_compiled: self.is_compiled,
            is_large: self.is_large,
        };
        if self.is_compiled {
            return Ok(start);
        }
        // As by `true`: a kernel may lack what the way needs.
        let tried = programs.start(&start, Path::new("true"), &[]).output().expect("it starts");
        match tried.status.success() {
            true => Ok(start),
            false => Err(String::from_utf8_lossy(&tried.stderr).trim().to_string()),
        }
    }
}

pub fn own_command() -> PathBuf {
    command("lookaside").get_program().into()
}

fn in_path(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|all| std::env::split_paths(&all).any(|folder| folder.join(name).exists()))
}
