//! The recorder as an object to link into programs, built at its first use.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::build_cache::{self, in_path, BuildRecipe};

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../compiled/", $name)))
    };
}

/// Its source: the installed `lookaside` needs no source tree.
const SOURCES: [(&str, &str); 9] = [
    source!("recorder.h"),
    source!("access.c"),
    source!("entry.c"),
    source!("exec.c"),
    source!("heap.c"),
    source!("maps.c"),
    source!("text.c"),
    source!("threads.c"),
    source!("wire.c"),
];

/// Of executables only, whose own threads' memory is reached by constant offsets.
const FLAGS: [&str; 6] = ["-O2", "-std=gnu11", "-fPIE", "-fno-lto", "-r", "-nostdlib"];

/// The object.
pub(super) const OBJECT: &str = "recorder.o";
/// What gcc links for `-fsanitize=thread`, in place of which nothing is linked: found in this folder first.
const NOTHING: [&str; 2] = ["libtsan.a", "libtsan_preinit.o"];

/// Rust's linker: the C compiler, which gets the recorder where it links a program.
pub(super) const LINKER: &str = "linker.sh";
const LINKER_SCRIPT: &str = r#"#!/bin/sh
# Links Rust programs that record themselves, and all else as it is.
for argument; do
    case $argument in -shared) exec cc "$@" ;; esac
done
exec cc "$@" "$(dirname "$0")/recorder.o" -Wl,--export-dynamic-symbol='__sanitizer_cov_*' -pthread -ldl
"#;

/// The recorder as something to build.
pub(super) struct CompiledRecorder;

impl BuildRecipe for CompiledRecorder {
    fn name(&self) -> &str {
        "compiled"
    }

    fn key(&self) -> String {
        let texts = SOURCES.iter().flat_map(|(name, text)| [*name, *text]);
        lookaside_host::cache_name(texts.chain(FLAGS).chain(NOTHING).chain([LINKER_SCRIPT]))
    }

    fn is_complete(&self, folder: &Path) -> bool {
        NOTHING.iter().chain([&OBJECT, &LINKER]).all(|name| folder.join(name).is_file())
    }

    fn compile(&self, folder: &Path) -> Result<(), String> {
        let gcc = in_path("gcc").or_else(|| in_path("cc"));
        let gcc = gcc.ok_or("no C compiler to build the recorder: apt-get install gcc libc6-dev")?;
        let written =
            |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).map_err(|error| format!("{name}: {error}"));
        for (name, text) in SOURCES {
            written(name, text.as_bytes())?;
        }
        written(NOTHING[0], b"!<arch>\n")?;
        written("nothing.c", b"")?;
        written(LINKER, LINKER_SCRIPT.as_bytes())?;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join(LINKER), executable).map_err(|error| format!("{LINKER}: {error}"))?;
        let mut nothing = Command::new(&gcc);
        nothing.args(["-c", "nothing.c", "-o", NOTHING[1]]);
        build_cache::compile(&mut nothing, folder, "an empty file does not compile")?;
        let mut recorder = Command::new(&gcc);
        let units = SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"));
        recorder.args(FLAGS).args(units).args(["-o", OBJECT]);
        build_cache::compile(&mut recorder, folder, "the recorder does not build")
    }
}
