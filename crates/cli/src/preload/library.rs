//! The libraries that are preloaded into unmodified programs: where they are, and whether they can be loaded.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lookaside_capture::{inspect_program, ProgramIsa};

use lookaside_cli::exit::Failure;

/// A library that is preloaded.
pub struct PreloadLibrary {
    file: &'static str,
    /// Variable that names another file.
    variable: &'static str,
}

/// The baker, and the thread that makes huge pages.
pub const BAKER: PreloadLibrary = PreloadLibrary { file: "liblookaside_preload.so", variable: "LOOKASIDE_PRELOAD" };
/// malloc inside a TLB partition.
pub const MALLOC: PreloadLibrary = PreloadLibrary { file: "liblookaside_malloc.so", variable: "LOOKASIDE_MALLOC" };

/// A library's file: where its variable says, where cargo builds it, beside the command, or in the `lib` folder next to
/// the command's.
pub fn find(library: &PreloadLibrary) -> Result<PathBuf, Failure> {
    let file = located(library)?;
    // The loader knows no way to write these.
    if file.as_os_str().as_bytes().iter().any(|byte| b" :\n".contains(byte)) {
        let text = format!("{}: a path with a blank or a colon can't be preloaded; move the library", file.display());
        return Err(Failure::bad(text));
    }
    Ok(file)
}

fn located(library: &PreloadLibrary) -> Result<PathBuf, Failure> {
    let PreloadLibrary { file, variable } = library;
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
pub const BAKE_INSTEAD: &str = "start it, then (as root, where it is setuid): lookaside bake pid PID";
/// The same, to give them a heap in a partition.
pub const COLOR_INSTEAD: &str = "link it dynamically, or have it call the coloured heap itself (tlb_malloc.h)";
/// The same, to make huge pages in them.
pub const HUGEPAGES_INSTEAD: &str =
    "from outside, huge pages of its memory need root or CAP_SYS_NICE (sudo setcap cap_sys_nice,cap_sys_ptrace+ep on the lookaside command)";

/// The same, to put code on huge pages.
pub const CODE_INSTEAD: &str =
    "run a copy of it in a tmpfs with huge pages (mount -t tmpfs -o huge=always tmpfs FOLDER), or link it dynamically";

/// Finds out whether a library can be preloaded into this command's program; else what to do instead is said.
pub fn check_loadable(command: &[OsString], instead: &str) -> Result<(), Failure> {
    let program = inspect_program(command)?;
    let refused = if program.isa != ProgramIsa::Native {
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
