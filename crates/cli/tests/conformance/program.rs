//! The programs: built at their first run, run in folders of their own.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::observed::{files, without_our_lines, Observed};
use crate::ways::{own_command, Start, Way};

/// Of Debian, and of most systems.
const NOBODY: u32 = 65534;
/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Processes that are left get so long to end: a daemon may still write.
const LEAVE_TIME: Duration = Duration::from_secs(10);
/// Variable that all processes of a run inherit.
const MARK: &str = "CONFORMANCE_RUN";

/// A program, and how it wants to be run.
pub struct Program {
    pub name: String,
    source: PathBuf,
    flags: Vec<String>,
    words: Vec<String>,
    built: Once,
    /// Built to record itself: whether it could be.
    compiled: OnceLock<bool>,
    /// Built with whole windows of code.
    large: Once,
    input: Option<String>,
    needs_root: bool,
}

/// All programs, and the folder that they lie in.
pub struct Programs {
    pub folder: TempDir,
    pub all: Vec<Program>,
}

impl Programs {
    /// Finds all.
    pub fn find() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/programs");
        let mut sources: Vec<PathBuf> = fs::read_dir(sources).expect("programs").flatten().map(|e| e.path()).collect();
        sources.retain(|path| path.extension().is_some_and(|end| end == "c" || end == "sh"));
        sources.sort();
        let all = sources.iter().map(|source| Program::of(source, folder.path())).collect();
        Self { folder, all }
    }

    /// A copy of the command and its libraries where any user may execute it.
    pub fn command_for_all(&self) -> PathBuf {
        let folder = self.folder.path().join("for-all");
        if !folder.exists() {
            fs::create_dir(&folder).expect("a folder");
            let own = own_command();
            let from = own.parent().expect("a folder");
            let libraries = ["liblookaside_preload.so", "liblookaside_malloc.so"];
            for name in libraries.map(PathBuf::from).iter().chain([&PathBuf::from("lookaside")]) {
                let found = [from.join(name), from.join("deps").join(name)].into_iter().find(|file| file.exists());
                fs::copy(found.unwrap_or_else(|| panic!("{} is not built", name.display())), folder.join(name))
                    .expect("copied");
            }
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("ours");
        }
        folder.join("lookaside")
    }

    /// A program in a way, in this process's folder.
    pub fn start(&self, start: &Start, program: &Path, arguments: &[String]) -> Command {
        command_of(start, &[&[program.to_string_lossy().into_owned()], arguments].concat())
    }
}

fn command_of(start: &Start, program: &[String]) -> Command {
    let words = [&start.words, program].concat();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("LOOKASIDE_MACHINE", "skylake").env("NO_COLOR", "1");
    if start.as_nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// The values of `// NAME: VALUE` lines (`# NAME: VALUE` in a shell script) at the head of a source.
fn directive<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let line = source
        .lines()
        .take(8)
        .find_map(|line| line.strip_prefix("// ").or(line.strip_prefix("# "))?.strip_prefix(name)?.strip_prefix(": "));
    line.map(str::trim)
}

/// Compiles a C program.
pub fn build(source: &Path, file: &Path, flags: &[String]) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-D_GNU_SOURCE", "-pthread"]).arg(source).arg("-o").arg(file).args(flags);
    let built = gcc.status().expect("gcc is needed: apt-get install gcc").success();
    assert!(built, "{} does not compile", source.display());
}

impl Program {
    fn of(source: &Path, folder: &Path) -> Self {
        let text = fs::read_to_string(source).expect("a source");
        let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
        let file = folder.join(&name);
        let mut words = vec![file.to_string_lossy().into_owned()];
        if source.extension().is_some_and(|end| end == "sh") {
            words.insert(0, "/bin/sh".into());
        }
        // One argument may be quoted: `a b "c d"`.
        let mut quoted = false;
        for part in directive(&text, "args").unwrap_or_default().split('"') {
            match quoted {
                true => words.push(part.into()),
                false => words.extend(part.split_whitespace().map(String::from)),
            }
            quoted = !quoted;
        }
        let input = directive(&text, "input").map(|line| format!("{line}\n"));
        let flags = directive(&text, "flags").unwrap_or_default().split_whitespace().map(String::from).collect();
        let needs_root = directive(&text, "needs") == Some("root");
        Self {
            name,
            source: source.into(),
            flags,
            words,
            built: Once::new(),
            compiled: OnceLock::new(),
            large: Once::new(),
            input,
            needs_root,
        }
    }

    fn build(&self) {
        let file = self.words.iter().find(|word| word.ends_with(&self.name)).expect("its file");
        if self.source.extension().is_some_and(|end| end == "sh") {
            fs::copy(&self.source, file).expect("copied");
            return;
        }
        build(&self.source, Path::new(file), &self.flags);
    }

    /// The words that run it as it is built to record itself; `None`: it can't be.
    fn compiled_words(&self) -> Option<Vec<String>> {
        let mut words = self.words.clone();
        let word = words.iter_mut().find(|word| word.ends_with(&self.name)).expect("its file");
        let file = Path::new(word.as_str());
        let folder = file.with_file_name("compiled");
        let compiled = folder.join(&self.name);
        let is_built = *self.compiled.get_or_init(|| {
            fs::create_dir_all(&folder).expect("a folder");
            let mut compiler = Command::new(own_command());
            compiler.args(["cc", "gcc", "-O1", "-w", "-D_GNU_SOURCE", "-pthread"]);
            compiler.arg(&self.source).arg("-o").arg(&compiled).args(&self.flags);
            self.source.extension().is_some_and(|end| end == "c")
                && compiler.stderr(Stdio::null()).status().expect("ours").success()
        });
        *word = compiled.to_string_lossy().into_owned();
        is_built.then_some(words)
    }

    /// The words that run it as it is built with so much code behind its own that both lie in whole windows of 2 MiB.
    fn large_words(&self) -> Vec<String> {
        let mut words = self.words.clone();
        if self.source.extension().is_some_and(|end| end == "sh") {
            return words;
        }
        let word = words.iter_mut().find(|word| word.ends_with(&self.name)).expect("its file");
        let folder = Path::new(word.as_str()).with_file_name("large");
        let large = folder.join(&self.name);
        self.large.call_once(|| {
            fs::create_dir_all(&folder).expect("a folder");
            let more = folder.join(format!("{}-more.s", self.name));
            fs::write(&more, ".text\n.skip 4 << 20\n.section .note.GNU-stack,\"\",@progbits\n").expect("written");
            let more = more.to_string_lossy().into_owned();
            build(&self.source, &large, &[&self.flags[..], &[more, "-Wl,-z,max-page-size=0x200000".into()]].concat());
        });
        *word = large.to_string_lossy().into_owned();
        words
    }

    /// Whether it can be run in a way, by this user.
    pub fn fits(&self, way: &Way) -> bool {
        if way.is_compiled && self.compiled_words().is_none() {
            return false;
        }
        !self.needs_root || rustix::process::geteuid().is_root() && !way.as_nobody
    }

    /// Runs it in an empty folder.
    pub fn observe(&self, start: &Start) -> Observed {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        self.built.call_once(|| self.build());
        let mark = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a folder");
        let said = tempfile::tempdir().expect("a folder");
        if start.as_nobody {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        let file = |name: &str| said.path().join(name);
        let compiled = start.is_compiled.then(|| self.compiled_words()).flatten();
        let built = compiled.or_else(|| start.is_large.then(|| self.large_words()));
        let mut command = command_of(start, built.as_ref().unwrap_or(&self.words));
        command.current_dir(folder.path()).env(MARK, &mark).process_group(0);
        command.stdout(File::create(file("out")).expect("a file")).stderr(File::create(file("err")).expect("a file"));
        match &self.input {
            Some(line) => {
                fs::write(file("in"), line).expect("written");
                command.stdin(File::open(file("in")).expect("a file"));
            }
            None => {
                command.stdin(Stdio::null());
            }
        }
        let mut child = command.spawn().expect("it can be started");
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                end(&mark);
                break child.wait().expect("a child");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let ended = Instant::now();
        while !marked(&mark).is_empty() && ended.elapsed() < LEAVE_TIME {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = marked(&mark).len();
        end(&mark);
        let (stderr, our_lines) = without_our_lines(&fs::read(file("err")).expect("a file"));
        Observed {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: fs::read(file("out")).expect("a file"),
            stderr,
            files: files(folder.path()),
            left,
            our_lines,
        }
    }
}

/// Processes of a run, but for those that have ended and were not waited for.
fn marked(mark: &str) -> Vec<i32> {
    let mark = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let of_run = processes.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    });
    of_run.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

fn end(mark: &str) {
    for process in marked(mark) {
        // SAFETY: a signal; one that has ended meanwhile is no error.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}
