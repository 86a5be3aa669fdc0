//! The libraries that are preloaded into unmodified programs: where they are, whether they can be, and what the baker's tells.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lookaside_capture::{inspect, Isa};
use serde::Deserialize;

use crate::exit::Failure;

/// A library that is preloaded.
pub struct Library {
    file: &'static str,
    /// Variable that names another file.
    variable: &'static str,
}

/// The baker, and the thread that makes huge pages.
pub const BAKER: Library = Library { file: "liblookaside_preload.so", variable: "LOOKASIDE_PRELOAD" };
/// malloc inside a TLB partition.
pub const MALLOC: Library = Library { file: "liblookaside_malloc.so", variable: "LOOKASIDE_MALLOC" };

/// What the library tells of a process that exits, a line of JSON each.
#[derive(Deserialize)]
pub struct Told {
    /// How it touched; `auto` chose it.
    pub backend: String,
    /// What it did at the end.
    pub state: String,
    /// Error number of the call that the system refused; 0 = none.
    pub errno: i32,
    /// Nanoseconds of the process.
    pub elapsed_nanos: u64,
    /// Nanoseconds of CPU of the helper.
    pub cpu_nanos: u64,
    /// Rounds through all ranges.
    pub rounds: u64,
    /// Touches.
    pub touches: u64,
    /// Most bytes in small pages that were baked at a time.
    pub most_small_bytes: u64,
}

/// All processes that told. A line that was cut, by a process that was killed, is none.
pub fn told(lines: &str) -> Vec<Told> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A library's file: where its variable says, where cargo builds it, beside the command, or in the `lib` folder next to the command's.
pub fn library(library: &Library) -> Result<PathBuf, Failure> {
    let file = find(library)?;
    // The loader knows no way to write these.
    if file.as_os_str().as_bytes().iter().any(|byte| b" :\n".contains(byte)) {
        let text = format!("{}: a path with a blank or a colon can't be preloaded; move the library", file.display());
        return Err(Failure::bad(text));
    }
    Ok(file)
}

fn find(library: &Library) -> Result<PathBuf, Failure> {
    let Library { file, variable } = library;
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        return match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(e) => Err(Failure::bad(format_args!("{variable}={}: {e}", path.display()))),
        };
    }
    let command = std::env::current_exe()?;
    let folder = command.parent().unwrap_or(Path::new("/"));
    let places = [folder.join("deps"), folder.to_path_buf(), folder.join("../lib/lookaside"), folder.join("../lib")];
    let found = places.iter().map(|place| place.join(file)).find_map(|file| file.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::bad(format_args!(
            "{file} is not in {}, nor in the lib folder next to it; name it by {variable}=PATH",
            folder.display()
        ))
    })
}

/// What to do with programs that nothing can be loaded into, to bake them.
pub const BAKE_INSTEAD: &str = "start it, then (as root, where it is setuid): lookaside bake --pid PID";
/// The same, to make huge pages in them.
pub const HUGEPAGES_INSTEAD: &str =
    "from outside, huge pages of its memory need root or CAP_SYS_NICE (sudo setcap cap_sys_nice,cap_sys_ptrace+ep on the lookaside command)";

/// Finds out whether a library can be preloaded into this command's program; else what to do instead is said.
pub fn check_loadable(command: &[OsString], instead: &str) -> Result<(), Failure> {
    let program = inspect(command)?;
    let refused = if program.isa != Isa::Native {
        "is for another instruction set: the library can't be loaded into it"
    } else if program.is_static {
        "is linked statically: nothing can be loaded into it"
    } else if program.privileged {
        "is setuid or setgid: nothing may be loaded into it"
    } else {
        return Ok(());
    };
    let name = command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    Err(Failure::bad(format_args!("{name}: {} {refused}; {instead}", program.elf.display())))
}
