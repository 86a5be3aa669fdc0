//! The C interfaces: programs are compiled against the headers and the library, and run.

mod bake;
mod color;
#[cfg(target_arch = "x86_64")]
mod domains;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a static library needs of the system's (`rustc --print native-static-libs`).
const NATIVE: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Where cargo puts a library: beside the tests, or one folder up.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path of this program");
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.exists()).unwrap_or_else(|| panic!("no {name} beside the tests: see the crate's types"))
}

/// What a program is linked with: the shared library, or the static one.
fn both_ways() -> [Vec<OsString>; 2] {
    let shared = library("liblookaside_runtime.so");
    let path = format!("-Wl,-rpath,{}", shared.parent().expect("a folder").display());
    let library = library("liblookaside_runtime.a");
    [
        vec![shared.into_os_string(), path.into()],
        std::iter::once(library.into_os_string()).chain(NATIVE.iter().map(OsString::from)).collect(),
    ]
}

/// What a program is written in.
#[derive(Clone, Copy)]
enum Language {
    C,
    Cxx,
}

/// Builds a program with what it is linked with, and runs it in a folder of its own; `None`, said aloud, without a
/// compiler.
fn output_of(source: &str, language: Language, linked: &[OsString]) -> Option<Output> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (compiler, standard, name) = match language {
        Language::C => ("gcc", "-std=c99", "program.c"),
        Language::Cxx => ("g++", "-std=c++17", "program.cpp"),
    };
    let (file, program) = (folder.path().join(name), folder.path().join("program"));
    std::fs::write(&file, source).expect("a source file");
    let built = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-D_GNU_SOURCE", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(&file)
        .args(linked)
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the program does not compile, or does not link with {linked:?}"),
        Err(e) => {
            eprintln!("LEFT OUT: {compiler} is not installed (apt-get install {compiler}): {e}");
            return None;
        }
    }
    Some(Command::new(&program).current_dir(folder.path()).output().expect("the program can be started"))
}
