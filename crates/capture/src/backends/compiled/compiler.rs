//! Compilers told to call our recorder: the arguments that are added to a command.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::recorder::{CompiledRecorder, LINKER, OBJECT};
use crate::build_cache::{self, CachedBuild};
use crate::error::CaptureError;

/// A compiler's command, to be run and waited for.
#[derive(Debug)]
pub struct RecordingCompiler {
    /// The command, with what makes its programs record themselves.
    pub command: Command,
    /// What is to be known of its result, and of a recorder that could not be kept.
    pub notes: Vec<String>,
    /// The recorder lies there where it is in no cache.
    _folder: Option<TempDir>,
}

/// The families of compilers, by what they call at an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompilerFamily {
    Gcc,
    Clang,
    Rustc,
    Cargo,
}

/// gcc's own call-outs for data races. They tell each load and store that is left after optimising. The program shall not
/// be told by a macro, nor the user that fences are left out of a check for races that nobody makes.
const GCC: [&str; 4] =
    ["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0", "-U__SANITIZE_THREAD__", "-Wno-tsan"];
/// LLVM's call-outs for coverage, of which those for loads and stores alone; without `func` clang makes none.
const CLANG: [&str; 1] = ["-fsanitize-coverage=func,trace-loads,trace-stores"];
const RUSTC: [&str; 4] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=1",
    "-Cllvm-args=-sanitizer-coverage-trace-loads",
    "-Cllvm-args=-sanitizer-coverage-trace-stores",
];

/// Libraries that were built so, too, find the recorder in the program.
const EXPORTS: [&str; 2] = ["-Wl,--export-dynamic-symbol=__tsan_*", "-Wl,--export-dynamic-symbol=__sanitizer_cov_*"];

/// Makes a compiler's command one whose programs record themselves under [`start`](crate::start): of gcc, g++, clang,
/// clang++, rustc and cargo. Programs that nobody records run as before, and somewhat slower.
///
/// ```no_run
/// let words = ["gcc", "-O2", "-o", "join", "join.c"].map(Into::into);
/// let mut compiler = lookaside_capture::recording_compiler(&words)?;
/// assert!(compiler.command.status()?.success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The compiler is none that we know, or the recorder can't be built.
pub fn recording_compiler(command: &[OsString]) -> Result<RecordingCompiler, CaptureError> {
    let refused = |reason: String| CaptureError::Backend { backend: "compiled", reason };
    let (name, arguments) = command.split_first().ok_or_else(|| refused("no compiler given".into()))?;
    let family = family(name).ok_or_else(|| {
        let name = name.to_string_lossy();
        refused(format!("{name} is no compiler that it knows: gcc, g++, clang, clang++, rustc or cargo"))
    })?;
    if let Some(fixed) = arguments.iter().find(|argument| *argument == "-static" || *argument == "-static-pie") {
        let fixed = fixed.to_string_lossy();
        return Err(refused(format!("{fixed}: a program that records itself is linked dynamically; leave it out")));
    }
    let CachedBuild { folder, temporary, unkept } = build_cache::build(&CompiledRecorder).map_err(refused)?;
    let mut compiler = Command::new(name);
    let mut notes: Vec<String> = unkept.into_iter().collect();
    match family {
        CompilerFamily::Gcc | CompilerFamily::Clang => {
            compiler.args(arguments).args(c_arguments(family, arguments, &folder));
        }
        CompilerFamily::Rustc => {
            compiler.args(arguments).args(rust_arguments(&folder).map_err(refused)?);
        }
        CompilerFamily::Cargo => {
            let flags = rust_arguments(&folder).map_err(refused)?;
            let own = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok();
            let own = own.or_else(|| std::env::var("RUSTFLAGS").ok().map(|flags| flags.replace(' ', "\x1f")));
            let flags = own.into_iter().filter(|flags| !flags.is_empty()).chain(flags).collect::<Vec<_>>();
            compiler.args(arguments).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
            // With a target, build scripts and procedural macros stay as they are.
            if std::env::var_os("CARGO_BUILD_TARGET").is_none() && !has_target(arguments) {
                let host = host_triple().map_err(refused)?;
                notes.push(format!("the programs are in target/{host}"));
                compiler.env("CARGO_BUILD_TARGET", host);
            }
        }
    }
    Ok(RecordingCompiler { command: compiler, notes, _folder: temporary })
}

/// By the name of the command: a cross compiler's prefix and a version may be in it.
fn family(name: &OsStr) -> Option<CompilerFamily> {
    let name = Path::new(name).file_name()?.to_str()?;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    Some(match name.rsplit('-').next()? {
        "clang" | "clang++" => CompilerFamily::Clang,
        "gcc" | "g++" | "cc" | "c++" => CompilerFamily::Gcc,
        "rustc" => CompilerFamily::Rustc,
        "cargo" => CompilerFamily::Cargo,
        _ => return None,
    })
}

/// What is added to the arguments of a C compiler.
fn c_arguments(family: CompilerFamily, arguments: &[OsString], folder: &Path) -> Vec<OsString> {
    let is = |asked: &str| arguments.iter().any(|argument| argument == asked);
    // It is asked about itself.
    if arguments.iter().all(|argument| argument.as_encoded_bytes().starts_with(b"-")) {
        return Vec::new();
    }
    let mut added: Vec<OsString> = match family {
        CompilerFamily::Clang => CLANG.map(Into::into).into(),
        _ => GCC.map(Into::into).into(),
    };
    if ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r"].iter().any(|only| is(only)) {
        return added;
    }
    if family == CompilerFamily::Gcc {
        added.extend(["-B", "-L"].map(|option| join(option, folder)));
    }
    if !is("-shared") {
        added.extend(EXPORTS.map(Into::into));
        added.push(folder.join(OBJECT).into());
        added.extend(["-pthread".into(), "-ldl".into()]);
    }
    added
}

/// What is added to those of `rustc`, whose linker is then a script: it alone knows what is a program.
fn rust_arguments(folder: &Path) -> Result<Vec<String>, String> {
    let script = folder.join(LINKER);
    let script = script.to_str().ok_or("the folder of the recorder has a name that is no text")?;
    Ok(RUSTC.into_iter().map(String::from).chain([format!("-Clinker={script}")]).collect())
}

fn join(option: &str, path: &Path) -> OsString {
    let mut joined = OsString::from(option);
    joined.push(path);
    joined
}

fn has_target(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument.as_encoded_bytes().starts_with(b"--target"))
}

/// This machine's, as `rustc` calls it.
fn host_triple() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc -vV names no host".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_names() {
        use CompilerFamily::{Cargo, Clang, Gcc, Rustc};
        for (name, its) in [
            ("gcc", Some(Gcc)),
            ("/usr/bin/g++-12", Some(Gcc)),
            ("x86_64-linux-gnu-gcc-12", Some(Gcc)),
            ("cc", Some(Gcc)),
            ("c++", Some(Gcc)),
            ("clang-19", Some(Clang)),
            ("clang++", Some(Clang)),
            ("rustc", Some(Rustc)),
            ("cargo", Some(Cargo)),
            ("tcc", None),
            ("make", None),
            ("", None),
            ("12", None),
        ] {
            assert_eq!(family(OsStr::new(name)), its, "{name}");
        }
    }

    #[test]
    fn only_what_links_a_program_gets_the_recorder() {
        let added = |words: &str| -> Vec<String> {
            let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
            let added = c_arguments(CompilerFamily::Gcc, &words, Path::new("/cache"));
            added.into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        assert!(added("--version").is_empty() && added("").is_empty() && added("-dumpmachine").is_empty());
        for words in ["-c a.c", "-S a.c", "-E a.c", "-M a.c", "-r a.o", "-fsyntax-only a.c"] {
            assert_eq!(added(words), GCC, "{words}");
        }
        let has = |words: &str| added(words).contains(&"/cache/recorder.o".to_string());
        assert!(has("a.c") && has("-o a a.o") && !has("-shared -o a.so a.o"));
        assert!(added("-shared -o a.so a.o").contains(&"-L/cache".to_string()), "gcc's own runtime is kept out");
    }
}
