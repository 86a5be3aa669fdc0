//! The kind of program that a command names, known before it is started, so that an error is one clear line.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::CaptureError;

/// A program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// The ELF file that runs: the program itself, or the interpreter of a script.
    pub elf: PathBuf,
    /// The program is a script: `elf` runs it.
    pub is_script: bool,
    /// What its code is for.
    pub isa: ProgramIsa,
    /// No dynamic linker: nothing can be preloaded.
    pub is_static: bool,
    /// It runs with rights of its own (setuid or setgid).
    pub privileged: bool,
    /// It was built to record itself ([`recording_compiler`](crate::recording_compiler)).
    pub records_itself: bool,
}

/// Instruction set of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramIsa {
    /// That of this machine.
    Native,
    /// Another: QEMU's name of it (`arm`, `i386`, …).
    Foreign(&'static str),
    /// Another that no recorder knows: its ELF machine number.
    Unknown(u16),
}

/// Depth of scripts whose interpreter is a script (the kernel's limit is 4).
const MAX_SCRIPTS: usize = 4;

/// Finds the program of a command as `execvp` would.
///
/// # Errors
/// There is none, or it can't be executed or read, with the exit code of the shell's custom (127, 126).
pub fn inspect_program(command: &[OsString]) -> Result<ProgramFile, CaptureError> {
    let Some(name) = command.first() else {
        return Err(error(OsStr::new(""), "no program given", 127));
    };
    let path = find(name)?;
    let program = inspect_file(name, &path, MAX_SCRIPTS)?;
    Ok(ProgramFile { is_script: program.elf != path, ..program })
}

fn error(program: &OsStr, reason: impl Into<String>, code: i32) -> CaptureError {
    CaptureError::Program { program: program.to_string_lossy().into_owned(), reason: reason.into(), code }
}

fn find(name: &OsStr) -> Result<PathBuf, CaptureError> {
    let not_found = || error(name, "no such program", 127);
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_bytes().contains(&b'/') {
        return match executable(Path::new(name)) {
            FileAccess::Executable => Ok(name.into()),
            FileAccess::Refused(reason) => Err(error(name, reason, 126)),
            FileAccess::Missing => Err(not_found()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut refused = None;
    for folder in std::env::split_paths(&path) {
        let candidate = folder.join(name);
        match executable(&candidate) {
            FileAccess::Executable => return Ok(candidate),
            FileAccess::Refused(reason) => refused = Some(format!("{}: {reason}", candidate.display())),
            FileAccess::Missing => {}
        }
    }
    Err(refused.map_or_else(not_found, |reason| error(name, reason, 126)))
}

/// Whether a file can be executed.
enum FileAccess {
    Executable,
    Refused(&'static str),
    Missing,
}

fn executable(path: &Path) -> FileAccess {
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => FileAccess::Refused("is a directory"),
        Ok(_) if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err() => {
            FileAccess::Refused("is not executable (chmod +x?)")
        }
        Ok(_) => FileAccess::Executable,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => FileAccess::Refused("permission denied"),
        Err(_) => FileAccess::Missing,
    }
}

fn inspect_file(name: &OsStr, path: &Path, scripts_left: usize) -> Result<ProgramFile, CaptureError> {
    let cannot_read = |error: std::io::Error| {
        self::error(name, format!("{}: {error} (a recorder has to read the program)", path.display()), 126)
    };
    let file = File::open(path).map_err(cannot_read)?;
    let mode = file.metadata().map_err(cannot_read)?.mode();
    let mut head = Vec::new();
    (&file).take(512).read_to_end(&mut head).map_err(cannot_read)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let interpreter = line.split(|byte| b" \t".contains(byte)).find(|word| !word.is_empty()).unwrap_or_default();
        let interpreter = PathBuf::from(OsString::from_vec(interpreter.to_vec()));
        return match (executable(&interpreter), scripts_left) {
            (FileAccess::Executable, 1..) => inspect_file(name, &interpreter, scripts_left - 1),
            (FileAccess::Executable, 0) => Err(error(name, "scripts that run scripts, too deep", 126)),
            _ => Err(error(name, format!("its interpreter {} can't be run", interpreter.display()), 126)),
        };
    }
    let privileged = mode & 0o6000 != 0;
    parse_elf(&file, &head)
        .map(|(isa, is_static, records_itself)| ProgramFile {
            elf: path.into(),
            is_script: false,
            isa,
            is_static,
            privileged,
            records_itself,
        })
        .ok_or_else(|| error(name, format!("{} is neither an ELF program nor a script with `#!`", path.display()), 126))
}

/// Instruction set, whether there is no interpreter segment, and whether it records itself.
fn parse_elf(file: &File, head: &[u8]) -> Option<(ProgramIsa, bool, bool)> {
    if head.len() < 52 || !head.starts_with(b"\x7fELF") {
        return None;
    }
    let (wide, little) = (head[4] == 2, head[5] == 1);
    let number = |bytes: &[u8]| -> u64 {
        let fold = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
        if little {
            bytes.iter().rev().fold(0, fold)
        } else {
            bytes.iter().fold(0, fold)
        }
    };
    let machine = number(&head[18..20]) as u16;
    let native_machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let isa = match (machine, wide, little) {
        (m, true, true) if m == native_machine => ProgramIsa::Native,
        (62, true, true) => ProgramIsa::Foreign("x86_64"),
        (3, false, true) => ProgramIsa::Foreign("i386"),
        (40, false, true) => ProgramIsa::Foreign("arm"),
        (40, false, false) => ProgramIsa::Foreign("armeb"),
        (183, true, true) => ProgramIsa::Foreign("aarch64"),
        (183, true, false) => ProgramIsa::Foreign("aarch64_be"),
        (243, true, true) => ProgramIsa::Foreign("riscv64"),
        (243, false, true) => ProgramIsa::Foreign("riscv32"),
        (8, false, false) => ProgramIsa::Foreign("mips"),
        (8, false, true) => ProgramIsa::Foreign("mipsel"),
        (8, true, true) => ProgramIsa::Foreign("mips64el"),
        (20, false, false) => ProgramIsa::Foreign("ppc"),
        (21, true, true) => ProgramIsa::Foreign("ppc64le"),
        (22, true, false) => ProgramIsa::Foreign("s390x"),
        _ => ProgramIsa::Unknown(machine),
    };
    let (offset, entry, count) = if wide {
        (number(head.get(32..40)?), number(head.get(54..56)?), number(head.get(56..58)?))
    } else {
        (number(&head[28..32]), number(&head[42..44]), number(&head[44..46]))
    };
    let (mut is_static, mut records_itself) = (true, false);
    for i in 0..count {
        let mut kind = [0; 4];
        let at = offset.wrapping_add(i * entry);
        // A header that lies beyond the file is the kernel's to refuse.
        if file.read_exact_at(&mut kind, at).is_err() {
            break;
        }
        const PT_INTERP: u64 = 3;
        const PT_NOTE: u64 = 4;
        is_static &= number(&kind) != PT_INTERP;
        if number(&kind) == PT_NOTE && isa == ProgramIsa::Native {
            records_itself |= has_recorders_note(file, at).unwrap_or(false);
        }
    }
    Some((isa, is_static, records_itself))
}

/// Whether the notes of a program header, of a native program, name our recorder (`compiled/threads.c`), in the version
/// that we read.
fn has_recorders_note(file: &File, header: u64) -> std::io::Result<bool> {
    let mut fields = [[0; 8]; 4];
    file.read_exact_at(fields.as_flattened_mut(), header + 8)?;
    let [offset, _, _, bytes] = fields.map(u64::from_le_bytes);
    // Notes of more than a page are not ours.
    let mut notes = vec![0; bytes.min(4096) as usize];
    file.read_exact_at(&mut notes, offset)?;
    let ours = b"\x0a\0\0\0\x04\0\0\0\x01\0\0\0Lookaside\0\0\0\x01\0\0\0";
    Ok(notes.windows(ours.len()).step_by(4).any(|note| note == ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(command: &str) -> i32 {
        refusal(command).0
    }

    /// Exit code and reason.
    fn refusal(command: &str) -> (i32, String) {
        match inspect_program(&[command.into()]) {
            Err(CaptureError::Program { code, reason, program }) if program == command => (code, reason),
            other => panic!("{other:?}"),
        }
    }

    /// A file that can be executed.
    fn write(path: &Path, content: impl AsRef<[u8]>) -> String {
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_string()
    }

    #[test]
    fn refuses_what_cannot_run() {
        let refused = |code, reason: &str| (code, reason.to_string());
        assert_eq!(refusal("no-such-program-anywhere"), refused(127, "no such program"));
        assert_eq!(refusal("/no/such/program"), refused(127, "no such program"));
        assert_eq!(refusal("/"), refused(126, "is a directory"));
        assert_eq!(refusal("/etc/passwd"), refused(126, "is not executable (chmod +x?)"));
        assert_eq!(refusal(""), refused(127, "no such program"));
        assert!(inspect_program(&[]).is_err());
    }

    #[test]
    fn a_folder_that_may_not_be_entered_is_no_missing_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = write(&folder.path().join("program"), "#!/bin/sh\n");
        let mode = |mode| std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(mode));
        mode(0o000).unwrap();
        let asked = std::thread::spawn(move || {
            // Root may enter every folder, until it asks for files as somebody else.
            // SAFETY: a number only; it concerns this thread alone.
            unsafe { libc::setfsuid(65_534) };
            refusal(&program)
        });
        let refused = asked.join();
        mode(0o700).unwrap();
        assert_eq!(refused.unwrap(), (126, "permission denied".to_string()));
    }

    #[test]
    fn scripts_run_scripts_as_deep_as_the_kernel_follows() {
        let folder = tempfile::tempdir().unwrap();
        let (mut interpreter, mut paths) = ("/bin/sh".to_string(), vec![]);
        for depth in 1..=5 {
            interpreter = write(&folder.path().join(format!("script{depth}")), format!("#!\t{interpreter}\n"));
            paths.push(interpreter.clone());
        }
        let program = inspect_program(&[(&paths[3]).into()]).unwrap();
        assert_eq!((program.elf.as_path(), program.is_script), (Path::new("/bin/sh"), true));
        let too_deep = (126, "scripts that run scripts, too deep".to_string());
        assert_eq!(refusal(&paths[4]), too_deep);
        // One that is its own interpreter.
        write(Path::new(&paths[0]), format!("#!{}\n", paths[0]));
        assert_eq!(refusal(&paths[0]), too_deep);
    }

    /// An ELF header of so many bits without a program header.
    fn header(machine: u16, wide: bool, little: bool) -> Vec<u8> {
        let mut elf = vec![0u8; if wide { 64 } else { 52 }];
        elf[..4].copy_from_slice(b"\x7fELF");
        (elf[4], elf[5]) = (1 + u8::from(wide), if little { 1 } else { 2 });
        elf[18..20].copy_from_slice(&if little { machine.to_le_bytes() } else { machine.to_be_bytes() });
        elf
    }

    #[test]
    fn instruction_sets_have_qemus_names() {
        use ProgramIsa::{Foreign, Native, Unknown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let (x86, arm) = match cfg!(target_arch = "x86_64") {
            true => (Native, Foreign("aarch64")),
            false => (Foreign("x86_64"), Native),
        };
        for (machine, wide, little, isa) in [
            (62, true, true, x86),
            (183, true, true, arm),
            (3, false, true, Foreign("i386")),
            (40, false, true, Foreign("arm")),
            (40, false, false, Foreign("armeb")),
            (183, true, false, Foreign("aarch64_be")),
            (243, true, true, Foreign("riscv64")),
            (243, false, true, Foreign("riscv32")),
            (8, false, false, Foreign("mips")),
            (8, false, true, Foreign("mipsel")),
            (8, true, true, Foreign("mips64el")),
            (20, false, false, Foreign("ppc")),
            (21, true, true, Foreign("ppc64le")),
            (22, true, false, Foreign("s390x")),
            // x32 has x86-64's number; the others' bytes are read in their own order.
            (62, false, true, Unknown(62)),
            (0x1234, true, true, Unknown(0x1234)),
            (0x1234, false, false, Unknown(0x1234)),
        ] {
            let program = inspect_program(&[write(&path, header(machine, wide, little)).into()]).unwrap();
            assert_eq!((program.isa, program.is_static), (isa, true), "{machine} {wide} {little}");
            assert_eq!((program.is_script, program.privileged), (false, false));
        }
    }

    #[test]
    fn an_interpreter_is_found_among_all_program_headers_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let is_static = |elf: &[u8]| inspect_program(&[write(&path, elf).into()]).unwrap().is_static;
        for (wide, little) in [(true, true), (true, false), (false, true), (false, false)] {
            let put = |elf: &mut [u8], at: std::ops::Range<usize>, number: u64| {
                elf[at.clone()].copy_from_slice(&number.to_be_bytes()[8 - at.len()..]);
                if little {
                    elf[at].reverse();
                }
            };
            // Three headers of 64 bytes each, behind what is read at first.
            let mut elf = header(40, wide, little);
            elf.resize(600 + 3 * 64, 0);
            let (place, size, count) = if wide { (32..40, 54..56, 56..58) } else { (28..32, 42..44, 44..46) };
            put(&mut elf, place, 600);
            put(&mut elf, size, 64);
            put(&mut elf, count, 3);
            let kinds = [600, 664, 728].map(|at| at..at + 4);
            const PT_LOAD: u64 = 1;
            const PT_INTERP: u64 = 3;
            kinds.iter().for_each(|kind| put(&mut elf, kind.clone(), PT_LOAD));
            assert!(is_static(&elf), "{wide} {little}");
            for kind in kinds {
                put(&mut elf, kind.clone(), PT_INTERP);
                assert!(!is_static(&elf), "{wide} {little} {kind:?}");
                put(&mut elf, kind, PT_LOAD);
            }
        }
    }

    #[test]
    fn what_only_begins_like_a_program_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let whole = header(40, false, true);
        let long_text = [b'x'; 600];
        for content in [&b""[..], b"\x7fELF", &whole[..51], b"\x7fELf", &long_text, &header(62, true, true)[..57]] {
            let program = write(&path, content);
            let reason = format!("{program} is neither an ELF program nor a script with `#!`");
            assert_eq!(refusal(&program), (126, reason), "{} bytes", content.len());
        }
        write(&path, whole);
        assert_eq!(inspect_program(&[path.into()]).unwrap().isa, ProgramIsa::Foreign("arm"));
    }

    #[test]
    fn knows_programs_and_scripts() {
        let shell = inspect_program(&["sh".into()]).unwrap();
        assert_eq!((shell.isa, shell.is_static, shell.privileged), (ProgramIsa::Native, false, false));
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\nexit 3\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let program = inspect_program(&[script.clone().into()]).unwrap();
        assert_eq!((program.elf.as_path(), program.is_script, shell.is_script), (Path::new("/bin/sh"), true, false));
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        assert_eq!(code(&script.to_string_lossy()), 126);
        std::fs::write(&script, "neither\n").unwrap();
        assert_eq!(code(&script.to_string_lossy()), 126);
    }

    #[test]
    fn reads_foreign_headers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm");
        let mut elf = vec![0u8; 84];
        elf[..6].copy_from_slice(b"\x7fELF\x01\x01");
        elf[18] = 40; // e_machine
        elf[28] = 52; // e_phoff
        (elf[42], elf[44]) = (32, 1); // e_phentsize, e_phnum
        elf[52] = 1; // PT_LOAD
        std::fs::write(&path, &elf).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let program = inspect_program(&[path.clone().into()]).unwrap();
        assert_eq!((program.isa, program.is_static), (ProgramIsa::Foreign("arm"), true));
        elf[52] = 3; // PT_INTERP
        std::fs::write(&path, &elf).unwrap();
        assert!(!inspect_program(&[path.into()]).unwrap().is_static);
    }
}
