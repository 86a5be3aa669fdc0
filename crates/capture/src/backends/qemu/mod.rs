//! Exact recording of programs for other instruction sets: our plugin (`qemu/` in the source tree) in QEMU's user mode.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_trace::Granularity;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::Endianness;

use crate::build_cache::{self, in_path, BuildRecipe, CachedBuild};
use crate::error::CaptureError;
use crate::launch::{self, LaunchedProgram, RecorderPipe};
use crate::program::{ProgramFile, ProgramIsa};
use crate::recording::Recording;
use crate::request::{RecordRequest, RecorderBackend};
use crate::wire::{self, WireReader};

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../qemu/", $name)))
    };
}

/// The plugin's source: the installed `lookaside` needs no source tree.
const SOURCES: [(&str, &str); 6] = [
    source!("qemu_api.h"),
    source!("recorder.h"),
    source!("plugin.c"),
    source!("wire.c"),
    source!("calls.c"),
    source!("maps.c"),
];
const FLAGS: &str = "-shared -fPIC -O2 -std=gnu11 -fvisibility=hidden -pthread plugin.c wire.c calls.c maps.c";
const PLUGIN: &str = "lookaside-qemu.so";

/// QEMU's major versions with the plugin interface that the plugin is written for (7.2 is tested): since 9 it is
/// another one.
const MAJORS: std::ops::RangeInclusive<u32> = 6..=8;

/// Instruction sets whose system calls the plugin knows, with the folders that distributions put their libraries in.
const LIBRARIES: [(&str, &[&str]); 7] = [
    ("x86_64", &["x86_64-linux-gnu"]),
    ("i386", &["i686-linux-gnu"]),
    ("arm", &["arm-linux-gnueabihf", "arm-linux-gnueabi"]),
    ("armeb", &[]),
    ("aarch64", &["aarch64-linux-gnu"]),
    ("riscv64", &["riscv64-linux-gnu"]),
    ("riscv32", &[]),
];

/// Instruction sets of 32 bits among them, whose programs have a part of the process's addresses for themselves. ARM is
/// tested.
const NARROW: [&str; 4] = ["arm", "armeb", "i386", "riscv32"];

/// Starts the program under QEMU.
pub(crate) fn start(request: &RecordRequest) -> Result<Recording, CaptureError> {
    let refused = |reason: String| CaptureError::Backend { backend: "qemu", reason };
    let (command, program) = launch::check(request, "qemu")?;
    let name = command[0].to_string_lossy();
    let isa = match program.isa {
        ProgramIsa::Native => std::env::consts::ARCH,
        ProgramIsa::Foreign(isa) => isa,
        ProgramIsa::Unknown(machine) => return Err(refused(format!("{name} is a program for ELF machine {machine}"))),
    };
    if program.is_script {
        return Err(refused(format!(
            "{name} is a script, which QEMU can't run; record `{} {name} …`",
            program.elf.display()
        )));
    }
    if program.privileged {
        return Err(refused(format!("{name} is setuid or setgid, which QEMU runs without its rights")));
    }
    let qemu = find(isa).map_err(refused)?;
    let libraries = libraries(&program, isa).map_err(refused)?;
    let CachedBuild { folder, temporary, unkept } = build_cache::build(&QemuPlugin).map_err(refused)?;
    let pipe = RecorderPipe::new()?;
    let plugin = folder.join(PLUGIN);
    let recorder = recorder(request, command, &program.elf, &qemu, &plugin, libraries, &pipe)?;
    let (reader, child) = pipe.spawn(recorder, &[])?;

    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let source = WireReader::new(File::from(reader), wire::info(request, "qemu", words), request.filter_unified);
    let mut notes = vec![
        "the kernel's accesses in system calls are not recorded; programs that this one executes run unrecorded".into(),
        "heap allocations can't be told apart".into(),
    ];
    notes.extend(unkept);
    if !LIBRARIES.iter().any(|(known, _)| *known == isa) {
        notes.push(format!("the plugin does not know {isa}'s system calls: mappings and forks are not seen"));
    }
    if !preloadable(&plugin) {
        notes.push(format!(
            "a blank or colon in {}: a program killed by a signal loses its last accesses",
            plugin.display()
        ));
    }
    let control = LaunchedProgram::new(child, source.processes(), vec![qemu], temporary.into_iter().collect());
    Ok(Recording { source: Box::new(source), control: Box::new(control), backend: RecorderBackend::Qemu, notes })
}

/// The command that runs a program under QEMU without the plugin; QEMU says in `log` where the program lies.
pub(crate) fn plain_qemu_command(
    command: &[OsString],
    program: &ProgramFile,
    isa: &'static str,
    log: &Path,
) -> Result<Vec<OsString>, String> {
    if !NARROW.contains(&isa) {
        return Err(format!(
            "is for {isa}: its memory can't be told from QEMU's own, so no plain run of it can be looked at on this machine"
        ));
    }
    if program.is_script {
        return Err(format!("is a script for {isa}, which QEMU can't run; name `{} SCRIPT`", program.elf.display()));
    }
    let mut words: Vec<OsString> = vec![find(isa)?.into(), "-d".into(), "page".into(), "-D".into(), log.into()];
    let path = std::path::absolute(&program.elf).map_err(|error| format!("{}: {error}", program.elf.display()))?;
    words.extend(guest_words(command, &path, libraries(program, isa)?));
    Ok(words)
}

/// QEMU's arguments that name the program, and the program's own.
fn guest_words(command: &[OsString], program: &Path, libraries: Option<PathBuf>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["-0".into(), command[0].clone()];
    if let Some(folder) = libraries {
        words.extend(["-L".into(), folder.into()]);
    }
    words.push(program.into());
    words.extend_from_slice(&command[1..]);
    words
}

/// QEMU for an instruction set, as `/proc/PID/exe` shows it; else what installs it.
fn find(isa: &str) -> Result<PathBuf, String> {
    let name = format!("qemu-{isa}");
    let qemu = in_path(&name).ok_or_else(|| format!("{name} is not installed: apt-get install qemu-user gcc"))?;
    let major = Command::new(&qemu)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_once("version ")?.1.split('.').next()?.parse::<u32>().ok()
        })
        .ok_or_else(|| format!("{name} --version says no version: apt-get install --reinstall qemu-user"))?;
    if !MAJORS.contains(&major) {
        let (first, last) = (MAJORS.start(), MAJORS.end());
        return Err(format!("{name} is version {major}; the plugin is for versions {first} to {last}"));
    }
    qemu.canonicalize().map_err(|error| format!("{}: {error}", qemu.display()))
}

/// Folder below which a dynamic program's linker and libraries are; `None` = `/`, or none needed, or the user has said
/// it.
fn libraries(program: &ProgramFile, isa: &str) -> Result<Option<PathBuf>, String> {
    if program.is_static || std::env::var_os("QEMU_LD_PREFIX").is_some() {
        return Ok(None);
    }
    let data = fs::read(&program.elf).map_err(|error| format!("{}: {error}", program.elf.display()))?;
    let interpreter =
        interpreter::<FileHeader64<Endianness>>(&data).or_else(|| interpreter::<FileHeader32<Endianness>>(&data));
    let Some(interpreter) = interpreter else { return Ok(None) };
    if interpreter.exists() && program.isa == ProgramIsa::Native {
        return Ok(None);
    }
    let folders = LIBRARIES.iter().find(|(known, _)| *known == isa).map_or(&[][..], |(_, folders)| *folders);
    let below = |folder: &PathBuf| folder.join(interpreter.strip_prefix("/").unwrap_or(&interpreter)).exists();
    match folders.iter().map(|name| Path::new("/usr").join(name)).find(below) {
        Some(folder) => Ok(Some(folder)),
        None if interpreter.exists() => Ok(None),
        None => Err(format!(
            "the program's linker {} is not here; set QEMU_LD_PREFIX to the folder that has its libraries, or link it statically",
            interpreter.display()
        )),
    }
}

fn interpreter<H: FileHeader<Endian = Endianness>>(data: &[u8]) -> Option<PathBuf> {
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, data).ok()?;
    let path = headers.iter().find_map(|header| header.interpreter(endian, data).ok().flatten())?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn recorder(
    request: &RecordRequest,
    command: &[OsString],
    program: &Path,
    qemu: &Path,
    plugin: &Path,
    libraries: Option<PathBuf>,
    pipe: &RecorderPipe,
) -> Result<Command, CaptureError> {
    let unit = match request.granularity {
        Granularity::Byte => "byte",
        Granularity::Line => "line",
        Granularity::Page => "page",
    };
    // QEMU's options are lists with commas; a doubled one stands for itself.
    let mut options = OsString::from(plugin.to_string_lossy().replace(',', ",,"));
    options.push(format!(
        ",pipe={},unit={unit},classes={},apart={},unified={},fetches={}",
        pipe.writer.as_raw_fd(),
        request.filter_log2_classes,
        u8::from(request.filter_stores_apart),
        u8::from(request.filter_unified),
        u8::from(request.fetches),
    ));
    // QEMU runs no search of its own, and a guest program may ask where it is.
    let program = std::path::absolute(program)
        .map_err(|source| CaptureError::Io { what: program.display().to_string(), source })?;
    let mut recorder = Command::new(qemu);
    recorder.arg("-plugin").arg(options);
    // Preloaded as well, so that it hears of a program's end by a signal; the program itself doesn't see that.
    match std::env::var_os("LD_PRELOAD") {
        Some(own) => {
            let mut set = OsString::from("LD_PRELOAD=");
            set.push(own);
            recorder.arg("-E").arg(set)
        }
        None => recorder.args(["-U", "LD_PRELOAD"]),
    };
    if preloadable(plugin) {
        recorder.env("LD_PRELOAD", plugin);
    }
    recorder.args(guest_words(command, &program, libraries));
    // SAFETY: between fork and exec only personality(2) is called, which is async-signal-safe. Without it (a container
    // may forbid it) QEMU's own mappings lie elsewhere in each run, and the program's may.
    unsafe {
        recorder.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    Ok(recorder)
}

/// The loader takes no path with its own separators in it.
fn preloadable(plugin: &Path) -> bool {
    !plugin.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte))
}

/// The plugin as something to build.
struct QemuPlugin;

impl BuildRecipe for QemuPlugin {
    fn name(&self) -> &str {
        "qemu"
    }

    fn key(&self) -> String {
        let texts = SOURCES.iter().flat_map(|(name, text)| [*name, *text]).chain([FLAGS]);
        lookaside_host::cache_name(texts)
    }

    fn is_complete(&self, folder: &Path) -> bool {
        folder.join(PLUGIN).is_file()
    }

    fn compile(&self, folder: &Path) -> Result<(), String> {
        let gcc =
            in_path("gcc").or_else(|| in_path("cc")).ok_or("no C compiler to build the plugin: apt-get install gcc")?;
        for (name, text) in SOURCES {
            fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let mut command = Command::new(gcc);
        command.args(["-o", PLUGIN]).args(FLAGS.split_whitespace());
        build_cache::compile(&mut command, folder, "the plugin does not build")
    }
}

#[cfg(test)]
mod tests;
