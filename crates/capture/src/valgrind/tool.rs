//! Building our Valgrind tool, once a Valgrind version, into the user's cache.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../valgrind/", $name)))
    };
}

/// The tool's source: the installed `lookaside` needs no source tree.
const SOURCES: [(&str, &str); 7] = [
    source!("lookaside.h"),
    source!("requests.h"),
    source!("main.c"),
    source!("wire.c"),
    source!("events.c"),
    source!("instrument.c"),
    source!("preload.c"),
];
/// As Valgrind itself is built: no libc beneath it.
const FLAGS: &str = "-O2 -std=gnu99 -fno-stack-protector -fno-strict-aliasing -fno-builtin -fomit-frame-pointer \
    -DVGA_amd64=1 -DVGO_linux=1 -DVGP_amd64_linux=1 -DVGPV_amd64_linux_vanilla=1";
/// Valgrind's own load address, out of the program's way.
const TOOL_FLAGS: &str = "-fno-pie -no-pie -static -nodefaultlibs -nostartfiles -u _start -Wl,--build-id=none \
    -Wl,-Ttext-segment=0x58000000 -Wl,--wrap=vgPlain_kill_self main.c wire.c events.c instrument.c";
const PRELOAD_FLAGS: &str = "-fPIC -shared -nodefaultlibs -nostartfiles -Wl,-z,interpose,-z,initfirst preload.c";
const EXECUTABLE: &str = "lookaside-amd64-linux";
const PRELOAD: &str = "vgpreload_lookaside-amd64-linux.so";
const CORE_PRELOAD: &str = "vgpreload_core-amd64-linux.so";
const ARCHIVES: [&str; 3] = ["libcoregrind-amd64-linux.a", "libvex-amd64-linux.a", "libgcc-sup-amd64-linux.a"];

/// Where distributions put Valgrind's archives and its preloaded libraries.
const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/valgrind",
    "/usr/libexec/valgrind",
    "/usr/lib/valgrind",
    "/usr/lib64/valgrind",
    "/usr/local/libexec/valgrind",
    "/usr/local/lib/valgrind",
];
const INCLUDES: [&str; 2] = ["/usr/include/valgrind", "/usr/local/include/valgrind"];

/// A tool that can be run.
pub(super) struct Tool {
    pub(super) valgrind: PathBuf,
    /// For `VALGRIND_LIB`.
    pub(super) folder: PathBuf,
    /// What recorded processes run.
    pub(super) executable: PathBuf,
    /// Where no cache can be written, the tool lives as long as this.
    pub(super) temporary: Option<TempDir>,
}

/// What is installed.
pub(super) struct Found {
    valgrind: PathBuf,
    /// As `valgrind-3.19.0`.
    version: String,
    core_preload: PathBuf,
    /// Folder of the archives and of the headers, and the compiler; needed only where the tool isn't built yet.
    build: Result<(PathBuf, PathBuf, PathBuf), String>,
}

/// Looks for Valgrind and what builds a tool for it; else says what is missing and how to install it.
pub(super) fn find() -> Result<Found, String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("our Valgrind tool is for x86-64 only".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let valgrind = in_path("valgrind").ok_or("valgrind is not installed: apt-get install valgrind gcc")?;
    let version = Command::new(&valgrind)
        .arg("--command-line-only=yes")
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
        })
        .ok_or_else(|| {
            format!("{} --version says nothing: apt-get install --reinstall valgrind", valgrind.display())
        })?;
    let core_preload = holder(&FOLDERS, CORE_PRELOAD).ok_or_else(|| {
        format!("{CORE_PRELOAD} of valgrind is not where it is looked for: apt-get install --reinstall valgrind")
    })?;
    let build = || {
        let archives =
            holder(&FOLDERS, ARCHIVES[0]).ok_or("valgrind's archives are missing: apt-get install valgrind")?;
        let headers =
            holder(&INCLUDES, "pub_tool_basics.h").ok_or("valgrind's headers are missing: apt-get install valgrind")?;
        let gcc = in_path("gcc")
            .or_else(|| in_path("cc"))
            .ok_or("no C compiler to build the Valgrind tool: apt-get install gcc")?;
        Ok((archives, headers, gcc))
    };
    let found = Found { core_preload: core_preload.join(CORE_PRELOAD), valgrind, version, build: build() };
    match &found.build {
        Err(reason) if !found.cached().is_some_and(|folder| is_complete(&folder)) => Err(reason.clone()),
        _ => Ok(found),
    }
}

impl Found {
    /// The built tool, built now if need be.
    pub(super) fn build(&self) -> Result<Tool, String> {
        let tool = |folder: &Path, temporary| -> Result<Tool, String> {
            // As /proc/PID/exe will show it.
            let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
            let executable = folder.join(EXECUTABLE);
            Ok(Tool { valgrind: self.valgrind.clone(), executable, folder, temporary })
        };
        let cached = self.cached();
        if let Some(folder) = cached.as_ref().filter(|folder| is_complete(folder)) {
            return tool(folder, None);
        }
        let in_cache = cached.as_ref().and_then(|folder| {
            let parent = folder.parent()?;
            fs::create_dir_all(parent).ok()?;
            tempfile::Builder::new().prefix(".build-").tempdir_in(parent).ok()
        });
        let Some((target, fresh)) = cached.zip(in_cache) else {
            let temporary = tempfile::Builder::new()
                .prefix("lookaside-valgrind-")
                .tempdir()
                .map_err(|error| format!("no folder to build the Valgrind tool in: {error}"))?;
            self.compile(temporary.path())?;
            let folder = temporary.path().to_path_buf();
            return tool(&folder, Some(temporary));
        };
        self.compile(fresh.path())?;
        // Whoever builds the same at the same time gets there first or second; the second's is dropped.
        match fs::rename(fresh.path(), &target) {
            Ok(()) => {
                let _ = fresh.keep();
            }
            Err(_) if is_complete(&target) => {}
            Err(error) => return Err(format!("{}: {error}", target.display())),
        }
        tool(&target, None)
    }

    /// Where the tool is kept; `None` without a home.
    fn cached(&self) -> Option<PathBuf> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(cache.join("lookaside/valgrind").join(format!("{}-{:016x}", self.version, source_hash())))
    }

    fn compile(&self, folder: &Path) -> Result<(), String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let (archives, headers, gcc) = self.build.as_ref().map_err(String::clone)?;
        for (name, text) in SOURCES {
            fs::write(folder.join(name), text).map_err(failed(name))?;
        }
        let archives = ARCHIVES.map(|name| archives.join(name).into_os_string());
        let run = |flags: &str, output: &str, archives: &[std::ffi::OsString]| {
            let mut command = Command::new(gcc);
            command.current_dir(folder).args(FLAGS.split_whitespace()).arg("-I").arg(headers);
            command.args(["-o", output]).args(flags.split_whitespace()).args(archives).arg("-lgcc");
            let output = command.output().map_err(failed("running gcc"))?;
            if output.status.success() {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text
                .lines()
                .find(|line| line.contains("error:") || line.contains("undefined"))
                .or(text.lines().next())
                .unwrap_or("no message");
            Err(format!("the tool does not build for {}: {line}", self.version))
        };
        run(TOOL_FLAGS, EXECUTABLE, &archives)?;
        run(PRELOAD_FLAGS, PRELOAD, &[])?;
        symlink(&self.core_preload, folder.join(CORE_PRELOAD)).map_err(failed(CORE_PRELOAD))
    }
}

fn holder(folders: &[&str], file: &str) -> Option<PathBuf> {
    folders.iter().map(PathBuf::from).find(|folder| folder.join(file).is_file())
}

fn is_complete(folder: &Path) -> bool {
    // The link is made last.
    [EXECUTABLE, PRELOAD, CORE_PRELOAD].iter().all(|name| folder.join(name).is_file())
}

/// FNV-1a over all that goes into the tool.
fn source_hash() -> u64 {
    let texts = SOURCES.iter().flat_map(|(name, text)| [*name, *text]).chain([FLAGS, TOOL_FLAGS, PRELOAD_FLAGS]);
    texts
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
