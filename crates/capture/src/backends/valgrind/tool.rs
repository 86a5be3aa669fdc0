//! Building our Valgrind tool, once a Valgrind version, into the user's cache.

use std::fs;
use std::io;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::build_cache::{self, in_path, BuildRecipe, CachedBuild};

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../valgrind/", $name)))
    };
}

/// The tool's source: the installed `lookaside` needs no source tree.
const SOURCES: [(&str, &str); 15] = [
    source!("lookaside.h"),
    source!("log.h"),
    source!("generate.h"),
    source!("requests.h"),
    source!("main.c"),
    source!("filter.c"),
    source!("window.c"),
    source!("wire.c"),
    source!("events.c"),
    source!("exec.c"),
    source!("instrument.c"),
    source!("flow.c"),
    source!("waits.c"),
    source!("sites.c"),
    source!("preload.c"),
];
/// As Valgrind itself is built: no libc beneath it.
const FLAGS: &str = "-O2 -std=gnu99 -fno-stack-protector -fno-strict-aliasing -fno-builtin -fomit-frame-pointer \
    -DVGA_amd64=1 -DVGO_linux=1 -DVGP_amd64_linux=1 -DVGPV_amd64_linux_vanilla=1";
/// Valgrind's own load address, out of the program's way.
const TOOL_FLAGS: &str = "-fno-pie -no-pie -static -nodefaultlibs -nostartfiles -u _start -Wl,--build-id=none \
    -Wl,-Ttext-segment=0x58000000 -Wl,--wrap=vgPlain_kill_self -Wl,--wrap=vgModuleLocal_read_debuginfo_dwarf3 \
    -Wl,--wrap=vgPlain_should_we_trace_this_child -Wl,--wrap=vgPlain_do_syscall \
    main.c filter.c window.c wire.c events.c exec.c instrument.c flow.c waits.c sites.c";
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
pub(super) struct ValgrindTool {
    pub(super) valgrind: PathBuf,
    /// For `VALGRIND_LIB`.
    pub(super) folder: PathBuf,
    /// What recorded processes run.
    pub(super) executable: PathBuf,
    /// Where it is no cache's, the tool lives as long as this.
    pub(super) temporary: Option<TempDir>,
    /// Why it was built for this time alone.
    pub(super) unkept: Option<String>,
}

/// An installed Valgrind.
pub(super) struct ValgrindInstall {
    valgrind: PathBuf,
    /// As `valgrind-3.19.0`.
    version: String,
    core_preload: PathBuf,
    /// Folder of the archives and of the headers, and the compiler; needed only where the tool isn't built yet.
    build: Result<(PathBuf, PathBuf, PathBuf), String>,
}

/// Looks for Valgrind and what builds a tool for it; else says what is missing and how to install it.
pub(super) fn find() -> Result<ValgrindInstall, String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("our Valgrind tool is for x86-64 only".into());
    }
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
    let core_preload = holder(&FOLDERS, CORE_PRELOAD)
        .ok_or_else(|| format!("valgrind's {CORE_PRELOAD} is missing: apt-get install --reinstall valgrind"))?;
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
    let install = ValgrindInstall { core_preload: core_preload.join(CORE_PRELOAD), valgrind, version, build: build() };
    match &install.build {
        Err(reason) if !build_cache::is_built(&install) => Err(reason.clone()),
        _ => Ok(install),
    }
}

impl ValgrindInstall {
    /// The built tool, built now if need be.
    pub(super) fn build(&self) -> Result<ValgrindTool, String> {
        let CachedBuild { folder, temporary, unkept } = self.for_all_users(build_cache::build(self)?)?;
        Ok(ValgrindTool {
            valgrind: self.valgrind.clone(),
            executable: folder.join(EXECUTABLE),
            folder,
            temporary,
            unkept,
        })
    }
}

impl ValgrindInstall {
    /// The build, where each process of the program may read it: one that root starts may go on as another user, who
    /// can't look into root's cache. Where nothing may be executed in the folder of temporary files, it stays in the
    /// cache, and is root's alone.
    fn for_all_users(&self, build: CachedBuild) -> Result<CachedBuild, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(build);
        }
        let failed = |error: io::Error| format!("no folder for the tool that all users may read: {error}");
        let readable = fs::Permissions::from_mode(0o755);
        let temporary = tempfile::Builder::new().prefix("lookaside-tool-").tempdir().map_err(failed)?;
        let system = rustix::fs::statvfs(temporary.path()).map_err(|error| failed(error.into()))?;
        if system.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
            return Ok(build);
        }
        fs::set_permissions(temporary.path(), readable.clone()).map_err(failed)?;
        for name in [EXECUTABLE, PRELOAD] {
            let copy = temporary.path().join(name);
            fs::copy(build.folder.join(name), &copy).map_err(failed)?;
            fs::set_permissions(copy, readable.clone()).map_err(failed)?;
        }
        symlink(&self.core_preload, temporary.path().join(CORE_PRELOAD)).map_err(failed)?;
        let folder = temporary.path().canonicalize().map_err(failed)?;
        Ok(CachedBuild { folder, temporary: Some(temporary), unkept: build.unkept })
    }
}

impl BuildRecipe for ValgrindInstall {
    fn name(&self) -> &str {
        "valgrind"
    }

    fn key(&self) -> String {
        let texts = SOURCES.iter().flat_map(|(name, text)| [*name, *text]).chain([FLAGS, TOOL_FLAGS, PRELOAD_FLAGS]);
        format!("{}-{}", self.version, lookaside_host::cache_name(texts))
    }

    fn is_complete(&self, folder: &Path) -> bool {
        // The link is made last.
        [EXECUTABLE, PRELOAD, CORE_PRELOAD].iter().all(|name| folder.join(name).is_file())
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
            command.args(FLAGS.split_whitespace()).arg("-I").arg(headers);
            command.args(["-o", output]).args(flags.split_whitespace()).args(archives).arg("-lgcc");
            build_cache::compile(&mut command, folder, &format!("the tool does not build for {}", self.version))
        };
        run(TOOL_FLAGS, EXECUTABLE, &archives)?;
        run(PRELOAD_FLAGS, PRELOAD, &[])?;
        symlink(&self.core_preload, folder.join(CORE_PRELOAD)).map_err(failed(CORE_PRELOAD))
    }
}

fn holder(folders: &[&str], file: &str) -> Option<PathBuf> {
    folders.iter().map(PathBuf::from).find(|folder| folder.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(version: &str) -> ValgrindInstall {
        let missing = || PathBuf::from("/nonexistent");
        let build = Err("no compiler".into());
        ValgrindInstall { valgrind: missing(), version: version.into(), core_preload: missing(), build }
    }

    /// Not a test by itself.
    #[test]
    fn looks_for_valgrind_for_another_test() {
        if std::env::var_os("LOOKASIDE_TEST_FIND").is_some() {
            println!("found: {:?}", find().map(|install| install.version));
        }
    }

    /// What is found where the programs in `folder` are all that there are.
    fn found_in(folder: &Path) -> String {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "backends::valgrind::tool::tests::looks_for_valgrind_for_another_test", "--nocapture"])
            .env("LOOKASIDE_TEST_FIND", "1")
            .env("PATH", folder)
            .env("XDG_CACHE_HOME", folder)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find_map(|line| Some(line.split_once("found: ")?.1.to_owned())).expect("a line")
    }

    fn write(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_built_needs_no_compiler() {
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let not_installed = "Err(\"valgrind is not installed: apt-get install valgrind gcc\")";
        assert_eq!(found_in(folder), not_installed);
        let says = |text: &str| {
            write(&folder.join("valgrind"), &format!("#!/bin/sh\n{text}\n"), 0o755);
            found_in(folder)
        };
        for nothing in ["", "echo 'valgrind 3; rm -r'", "echo ../valgrind-3.19.0/x"] {
            let line = says(nothing);
            assert!(line.contains("valgrind --version says nothing: apt-get install --reinstall"), "{line}");
        }

        let installed = |folders: &[&str], file| holder(folders, file).is_some();
        if !installed(&FOLDERS, CORE_PRELOAD) || !installed(&FOLDERS, ARCHIVES[0]) {
            return eprintln!("LEFT OUT: valgrind is not installed");
        }
        let version = "valgrind-3.99.0_a+B";
        let line = says(&format!("echo {version}"));
        assert!(line.starts_with("Err(") && (line.contains("C compiler") || line.contains("headers")), "{line}");
        // As an earlier run left it.
        let kept = folder.join("lookaside/valgrind").join(install(version).key());
        fs::create_dir_all(&kept).unwrap();
        for made in kept.ancestors().take_while(|made| *made != folder) {
            fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
        }
        for name in [EXECUTABLE, PRELOAD, CORE_PRELOAD] {
            write(&kept.join(name), "", 0o600);
        }
        assert_eq!(found_in(folder), format!("Ok({version:?})"));
    }

    #[test]
    fn a_tool_is_complete_with_its_last_file_and_named_by_the_version() {
        let (one, other) = (install("valgrind-3.19.0"), install("valgrind-3.20.0"));
        assert_eq!(one.name(), "valgrind");
        assert_eq!(one.key().len(), "valgrind-3.19.0-".len() + 16);
        assert!(one.key().starts_with("valgrind-3.19.0-") && one.key() != other.key());
        let folder = tempfile::tempdir().unwrap();
        for name in [EXECUTABLE, PRELOAD, CORE_PRELOAD] {
            assert!(!one.is_complete(folder.path()));
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert!(one.is_complete(folder.path()));
        assert_eq!(one.compile(folder.path()), Err("no compiler".into()));
    }

    #[test]
    fn the_first_folder_that_has_a_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["none", "one", "two"].map(|name| folder.path().join(name).to_string_lossy().into_owned());
        let folders = folders.each_ref().map(String::as_str);
        assert_eq!(holder(&folders, "file"), None);
        for name in &folders[1..] {
            fs::create_dir(name).unwrap();
            fs::write(Path::new(name).join("file"), "").unwrap();
        }
        assert_eq!(holder(&folders, "file"), Some(folders[1].into()));
    }
}
