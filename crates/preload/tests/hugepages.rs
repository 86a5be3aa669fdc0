//! The thread that makes huge pages within real programs, ordered to as `lookaside hugepages run` does where it has
//! no right to make them from outside. The tests give up that right.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use lookaside_runtime::bake::family;
use lookaside_runtime::hugepages::{collapse_side, CollapseHandle, CollapseResult, CollapseSide, ProcessMemory};
use rustix::thread::{capabilities, set_capabilities, CapabilitySet};
use support::{compile, library, same_as_bare};

const WINDOW: u64 = 2 << 20;

/// Gives up the right to make huge pages of other processes' memory, in this thread. `false`, said aloud: none can be
/// made at all here.
fn give_up_right() -> bool {
    let mut sets = capabilities(None).expect("rights");
    sets.effective.remove(CapabilitySet::SYS_NICE);
    set_capabilities(None, sets).expect("fewer rights");
    match collapse_side() {
        Ok(way) => assert_eq!(way, CollapseSide::Inside, "the right is given up"),
        Err(e) => {
            eprintln!("LEFT OUT, huge pages are not tested on real programs here: {e}");
            return false;
        }
    }
    true
}

/// A command with the library in it.
fn ordered(command: &[&str]) -> Command {
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).env("LD_PRELOAD", library("preload")).env("LOOKASIDE_HUGEPAGES", "orders");
    program
}

/// Has 8 windows in small pages, and does to them what it is told.
const OBEDIENT: &str = r##"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
enum { WINDOW = 2 << 20, WINDOWS = 8 };
int main(int argc, char **argv) {
    char *at = mmap(0, (size_t)(WINDOWS + 1) * WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[64];
    if (at == MAP_FAILED) return 3;
    uint64_t *a = (uint64_t *)(((uintptr_t)at + WINDOW - 1) & ~(uintptr_t)(WINDOW - 1));
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (size_t i = 0; i < (size_t)WINDOWS * WINDOW / 8; i++) a[i] = i * 0x9e3779b97f4a7c15ull;
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    printf("%lu\n", (unsigned long)a);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        unsigned n = atoi(strchr(line, ' ') + 1);
        char *window = (char *)a + (size_t)n * WINDOW;
        uint64_t answer = 0;
        int fixed = MAP_FIXED | MAP_ANONYMOUS;
        switch (*line) {
        case 's': for (size_t i = 0; i < WINDOW / 8; i++) answer = (answer << 5 | answer >> 59) ^ ((uint64_t *)window)[i]; break;
        case 'u': answer = munmap(window, WINDOW); break;
        case 'h': answer = mprotect(window + WINDOW / 2, WINDOW / 2, PROT_READ); break;
        case 'r': answer = madvise(window, WINDOW, MADV_NOHUGEPAGE); break;
        case 'S': mmap(window, WINDOW, PROT_READ | PROT_WRITE, fixed | MAP_SHARED, -1, 0); memset(window, 1, WINDOW); break;
        case 'F': mmap(window, WINDOW, PROT_READ, MAP_FIXED | MAP_PRIVATE, open(argv[0], O_RDONLY), 0); break;
        case 'f': answer = fork(); if (answer == 0) { pause(); _exit(0); } break;
        case 'c': for (int fd = 3; fd < 4096; fd++) answer += close(fd) == 0; break;
        case 'x': answer = setresuid(65534, 65534, 65534); break;
        case 'e': execv(argv[0], argv); return 4;
        }
        printf("%lu\n", (unsigned long)answer);
        fflush(stdout);
    }
    return 0;
}
"##;

/// It, as its parent has it. It ends with it.
struct Obedient {
    child: Child,
    told: ChildStdin,
    said: BufReader<ChildStdout>,
    /// Where its windows begin.
    at: u64,
}

impl Obedient {
    fn start(program: &str) -> Self {
        let mut command = ordered(&[program]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (told, said) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut obedient = Self { child, told, said: BufReader::new(said), at: 0 };
        obedient.at = obedient.answer();
        obedient
    }

    fn tell(&mut self, what: &str, window: u64) -> u64 {
        writeln!(self.told, "{what} {window}").expect("it listens");
        self.answer()
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it answers");
        line.trim().parse().expect("a number")
    }

    fn window(&self, n: u64) -> u64 {
        self.at + n * WINDOW
    }
}

impl Drop for Obedient {
    fn drop(&mut self) {
        for pid in family(self.child.id()) {
            // SAFETY: a signal to the child, which has not been waited for, and to those that it started.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }
}

/// Bytes of a process in huge pages.
fn huge_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn obedient() -> Option<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "obedient", OBEDIENT).filter(|_| give_up_right())?;
    Some((folder, program))
}

#[test]
fn windows_become_huge_and_keep_what_they_hold() {
    let Some((_folder, program)) = obedient() else { return };
    let mut child = Obedient::start(&program);
    let pid = child.child.id();
    let before: Vec<u64> = (0..8).map(|n| child.tell("sum", n)).collect();
    let handle = CollapseHandle::open(pid).expect("its thread");
    assert_eq!((handle.way(), huge_bytes(pid)), (CollapseSide::Inside, 0));
    for (made, n) in [(1, 3), (2, 0), (3, 7), (3, 3)] {
        let tried = handle.collapse(child.window(n));
        assert!(tried.is_collapsed() && tried.nanos() > 0, "{tried:?}");
        assert_eq!(huge_bytes(pid), made * WINDOW);
    }
    let memory = ProcessMemory::of(pid).expect("its memory");
    let huge: Vec<u64> = memory.windows.iter().filter(|window| window.is_huge()).map(|window| window.start).collect();
    assert_eq!(huge, [0, 3, 7].map(|n| child.window(n)));
    assert_eq!((0..8).map(|n| child.tell("sum", n)).collect::<Vec<u64>>(), before);
    // The thread has no file of the program's, and the program none of the thread's.
    child.tell("close", 0); // what the tests themselves were started with
    assert_eq!(child.tell("close", 0), 0);
    assert!(handle.collapse(child.window(5)).is_collapsed());
    // Whoever takes the answers takes them alone.
    let second = CollapseHandle::open(pid).expect_err("it is taken").to_string();
    assert!(second.contains("another lookaside command"), "{second}");
    drop(handle);
    assert!(CollapseHandle::open(pid).expect("its thread").collapse(child.window(6)).is_collapsed());
}

#[test]
fn what_is_no_window_now_is_left_alone_and_not_counted() {
    let Some((_folder, program)) = obedient() else { return };
    let mut child = Obedient::start(&program);
    let pid = child.child.id();
    let handle = CollapseHandle::open(pid).expect("its thread");
    for (n, what) in ["unmap", "half", "refuse", "Shared", "File"].into_iter().enumerate() {
        child.tell(what, n as u64);
    }
    let refused = |start: u64, part: &str| match handle.collapse(start) {
        CollapseResult::Refused { errno: libc::EINVAL, why, .. } => assert!(why.contains(part), "{start:#x}: {why}"),
        other => panic!("{start:#x}: {other:?}"),
    };
    for (n, part) in [
        (0, "not mapped any more, or only in parts"),
        (1, "or only in parts"),
        (2, "NOHUGEPAGE"),
        (3, "of another kind"),
        (4, "of another kind"),
    ] {
        refused(child.window(n), part);
    }
    for start in [child.window(6) + 4096, child.window(8), 0, 1, 1 << 63, u64::MAX - WINDOW + 1, u64::MAX] {
        refused(start, "");
    }
    assert_eq!(huge_bytes(pid), 0);
    assert!(handle.collapse(child.window(6)).is_collapsed());
}

#[test]
fn a_forked_child_and_what_an_exec_runs_take_their_own_orders() {
    let Some((_folder, program)) = obedient() else { return };
    let mut child = Obedient::start(&program);
    let pid = child.child.id();
    let handle = CollapseHandle::open(pid).expect("its thread");
    assert!(handle.collapse(child.window(0)).is_collapsed());
    let forked = u32::try_from(child.tell("fork", 0)).expect("a process");
    let of_forked = CollapseHandle::open(forked).expect("its own thread");
    let (ours, its) = (huge_bytes(pid), huge_bytes(forked));
    assert!(of_forked.collapse(child.window(2)).is_collapsed());
    assert_eq!((huge_bytes(pid), huge_bytes(forked)), (ours, its + WINDOW));
    assert!(handle.collapse(child.window(4)).is_collapsed());
    assert_eq!((huge_bytes(pid), huge_bytes(forked)), (ours + WINDOW, its + WINDOW));
    // The exec answers with where the new program's windows are.
    child.at = child.tell("exec", 0);
    match handle.collapse(child.window(1)) {
        CollapseResult::Refused { errno: 0, why, .. } => assert!(why.contains("another program"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(huge_bytes(pid), 0);
    drop(handle);
    assert!(CollapseHandle::open(pid).expect("the new program's thread").collapse(child.window(1)).is_collapsed());
}

#[test]
fn a_program_that_becomes_another_users_takes_no_orders_any_more() {
    let Some((_folder, program)) = obedient() else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("LEFT OUT: only root can become another user");
    }
    let mut child = Obedient::start(&program);
    let handle = CollapseHandle::open(child.child.id()).expect("its thread");
    assert_eq!(child.tell("x", 0), 0);
    match handle.collapse(child.window(1)) {
        CollapseResult::Refused { errno: libc::ESRCH, why, .. } => assert!(why.contains("another user's"), "{why}"),
        other => panic!("{other:?}"),
    }
    let error = CollapseHandle::open(child.child.id()).expect_err("no thread").to_string();
    assert!(error.contains("CAP_SYS_NICE") && error.contains("hugepages run"), "{error}");
}

/// Runs a command, and makes huge pages of all that it and those that it starts have, again and again until it ends;
/// how many were made.
fn all_huge(command: &[&str]) -> (Output, u64) {
    let mut program = ordered(command);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = child.id();
    let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all).expect("its output")
        })
    };
    let (out, err) = (read(Box::new(out)), read(Box::new(err)));
    let mut handles: BTreeMap<u32, CollapseHandle> = BTreeMap::new();
    let mut made = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        for pid in family(pid) {
            if !handles.get(&pid).is_some_and(CollapseHandle::is_same) {
                handles.remove(&pid);
                // One that has just begun, or is about to end, has no thread.
                handles.extend(CollapseHandle::open(pid).ok().map(|handle| (pid, handle)));
            }
            let Some(handle) = handles.get(&pid) else { continue };
            let windows = ProcessMemory::of(pid).map(|memory| memory.windows).unwrap_or_default();
            let small = windows.iter().filter(|window| !window.is_huge());
            made += small.take(16).filter(|window| handle.collapse(window.start).is_collapsed()).count() as u64;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let (stdout, stderr) = (out.join().expect("a thread"), err.join().expect("a thread"));
    (Output { status, stdout, stderr }, made)
}

#[test]
fn programs_put_out_what_they_do_without() {
    if !give_up_right() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = std::cell::Cell::new(0);
    same_as_bare(folder.path(), 300_000, &["orders"], |_, command| {
        let (output, count) = all_huge(command);
        made.set(made.get() + count);
        output
    });
    assert!(made.get() > 0, "no window of any program was made huge");
}

/// Threads that fill, check, protect, move and free memory, while children are forked that check theirs.
const CHURN: &str = r##"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYTES = 6 << 20, ROUNDS = 60 };
static void check(const unsigned char *at, size_t from, size_t to, unsigned char value) {
    for (size_t i = from; i < to; i += 509) if (at[i] != value) { dprintf(1, "wrong\n"); _exit(1); }
}
static void *churn(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    for (int k = 0; k < ROUNDS; k++) {
        unsigned char value = rand_r(&state), *at = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(at, value, BYTES);
        usleep(rand_r(&state) % 8000);
        mprotect(at + BYTES / 3 / 4096 * 4096, 1 << 20, PROT_READ);
        check(at, 0, BYTES, value);
        if (k % 4 == 0) {
            pid_t child = fork();
            if (child == 0) { usleep(rand_r(&state) % 60000); check(at, 0, BYTES, value); _exit(0); }
            int status;
            if (waitpid(child, &status, 0) != child || status) { dprintf(1, "a child\n"); _exit(1); }
        }
        unsigned char *moved = mremap(at, BYTES / 4, BYTES / 2, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) _exit(2);
        check(moved, 0, BYTES / 4, value);
        munmap(moved, BYTES / 2);
        munmap(at + BYTES / 4, BYTES / 4 * 3);
        char *heap = malloc(3 << 20);
        memset(heap, value, 3 << 20);
        usleep(rand_r(&state) % 2000);
        check((unsigned char *)heap, 0, 3 << 20, value);
        free(heap);
    }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(threads + i, 0, churn, (void *)(i + 1));
    for (size_t i = 0; i < 3; i++) pthread_join(threads[i], 0);
    puts("right");
    return 0;
}
"##;

#[test]
fn a_program_that_churns_finds_what_it_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "churn", CHURN).filter(|_| give_up_right()) else { return };
    let (output, made) = all_huge(&[&program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n", "{output:?}");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(made > 0, "no window was made huge");
}

#[test]
fn a_mistake_in_the_variable_is_said_and_the_program_runs() {
    let output = ordered(&["echo", "here"]).env("LOOKASIDE_HUGEPAGES", "auto:4").output().expect("echo is everywhere");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.stdout.as_slice(), said.lines().count()), (b"here\n".as_slice(), 1), "{said}");
    assert!(said.starts_with("lookaside: LOOKASIDE_HUGEPAGES: `auto:4`"), "{said}");
}
