//! The library in real programs: their output is theirs, and no page more has a frame.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{compile, library, same_as_bare};

const BACKENDS: [&str; 4] = ["auto", "prefetch:t0,stride=1", "scan", "mincore"];

/// A command with the library in it, and where its statistics go.
fn baking(bake: &str, stats: &Path, command: &[&str]) -> Command {
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).env("LD_PRELOAD", library("preload")).env("LOOKASIDE_BAKE", bake);
    program.env("LOOKASIDE_BAKE_STATS", stats);
    program
}

fn baked(bake: &str, stats: &Path, command: &[&str]) -> Output {
    baking(bake, stats, command).output().expect("the program can be started")
}

fn lines(stats: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(stats).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// What a CPU less than two, or a forbidden call, would make of it.
fn can_bake() -> bool {
    let can = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !can {
        eprintln!("LEFT OUT: one CPU only, nothing is baked here");
    }
    can
}

#[test]
fn programs_put_out_what_they_do_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let stats = folder.path().join("stats");
    same_as_bare(folder.path(), 300_000, &BACKENDS, |bake, command| baked(bake, &stats, command));
    let lines = lines(&stats);
    assert!(lines.len() >= 6, "each process that exits says so");
    // Where the kernel has no PAGEMAP_SCAN, the helper says that it was refused and ends.
    let refused = lines.iter().filter(|line| line["errno"] != 0 && line["bake"] != "scan");
    assert_eq!(refused.count(), 0, "{lines:?}");
}

/// A server with 200,000 keys that forks to save them, restarts from what it saved, and answers.
const REDIS: &str = r#"
socket=$1/socket
redis-server --port 0 --unixsocket "$socket" --dir "$1" --save '' --enable-debug-command yes >"$1/log" 2>&1 &
tries=0
while ! redis-cli -s "$socket" ping >/dev/null 2>&1 && [ $((tries += 1)) -lt 400 ]; do sleep 0.05; done
redis-cli -s "$socket" <<'END'
debug populate 200000 key 100
bgsave
eval "local sum = 0 for i = 0, 199999 do sum = sum + redis.call('strlen', 'key:' .. i) end return sum" 0
debug reload
dbsize
eval "local sum = 0 for i = 0, 199999 do sum = sum + redis.call('strlen', 'key:' .. i) end return sum" 0
flushall
dbsize
shutdown nosave
END
wait
"#;

#[test]
fn redis_answers_as_without() {
    if Command::new("redis-server").arg("--version").output().is_err() {
        return eprintln!("LEFT OUT: redis-server is not installed (apt-get install redis-server)");
    }
    let output = |bake: Option<&str>| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_string_lossy().into_owned();
        let command = ["sh", "-c", REDIS, "sh", &path];
        let stats = folder.path().join("stats");
        match bake {
            Some(bake) => baked(bake, &stats, &command),
            None => Command::new(command[0]).args(&command[1..]).output().expect("a shell"),
        }
    };
    let bare = output(None);
    let text = String::from_utf8_lossy(&bare.stdout);
    assert_eq!(text, "OK\nBackground saving started\n20000000\nOK\n200000\n20000000\nOK\n0\n", "{bare:?}");
    for bake in BACKENDS {
        assert_eq!(output(Some(bake)), bare, "{bake}");
    }
}

/// Seconds that the program that churns runs under each backend; `LOOKASIDE_CHURN_SECONDS` sets more, for a test of
/// minutes by hand.
const CHURN_SECONDS: u32 = 2;

/// Maps, unmaps, protects, forks and executes in several threads; each looks that no more pages have frames than it
/// touched.
const CHURN: &str = r##"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { PAGE = 4096, STEADY = 16384 };
static unsigned char *steady;
static double seconds(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static double end;
static void check(int ok, const char *what) { if (!ok) { dprintf(1, "wrong: %s\n", what); _exit(1); } }
static size_t resident(unsigned char *at, size_t pages) {
    unsigned char *v = malloc(pages); size_t n = 0;
    check(mincore(at, pages * PAGE, v) == 0, "mincore");
    for (size_t i = 0; i < pages; i++) n += v[i] & 1;
    free(v); return n;
}
static void *churn(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    sigset_t all; sigfillset(&all);
    while (seconds() < end) {
        size_t pages = 1024 + rand_r(&state) % 4096, step = 1 + rand_r(&state) % 3, touched = 0;
        unsigned char *at = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(at != MAP_FAILED, "mmap");
        madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < pages; i += step) { at[i * PAGE] = (unsigned char)i; touched++; }
        mprotect(at, pages / 2 * PAGE, PROT_NONE);
        pthread_sigmask(rand_r(&state) & 1 ? SIG_BLOCK : SIG_UNBLOCK, &all, 0);
        if (rand_r(&state) % 4 == 0) usleep(30000);
        check(resident(at, pages) == touched, "a page has a frame that was not touched");
        mprotect(at, pages * PAGE, PROT_READ);
        for (size_t i = 0; i < pages; i += step) check(at[i * PAGE] == (unsigned char)i, "contents");
        at = mremap(at, pages * PAGE, pages * 2 * PAGE, MREMAP_MAYMOVE);
        check(at != MAP_FAILED && resident(at, pages * 2) == touched, "mremap");
        munmap(at, pages * 2 * PAGE);
    }
    return 0;
}
static void *spawn(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    while (seconds() < end) {
        int kind = rand_r(&state) % 4, status;
        pid_t child = fork();
        if (child == 0) {
            if (kind == 0) { execl("/bin/true", "true", (char *)0); _exit(9); }
            if (kind == 1) exit(0);
            usleep(kind == 2 ? 30000 : 100);
            check(resident(steady, STEADY) == STEADY / 2, "the child's pages");
            _exit(0);
        }
        check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child");
    }
    return 0;
}
int main(int argc, char **argv) {
    end = seconds() + atoi(argv[argc - 1]);
    steady = mmap(0, STEADY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(steady, STEADY * PAGE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < STEADY; i += 2) steady[i * PAGE] = (unsigned char)(i / 2);
    pthread_t threads[5];
    for (size_t i = 0; i < 5; i++) pthread_create(threads + i, 0, i < 3 ? churn : spawn, (void *)(i + 1));
    for (size_t i = 0; i < 5; i++) pthread_join(threads[i], 0);
    unsigned sum = 0;
    printf("%zu pages\n", resident(steady, STEADY));
    for (size_t i = 0; i < STEADY; i++) sum = sum * 31 + steady[i * PAGE];
    printf("%u\n", sum);
    return 0;
}
"##;

#[test]
fn a_program_that_churns_gets_not_a_page_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "churn", CHURN) else { return };
    let bare = Command::new(&program).arg(CHURN_SECONDS.to_string()).output().expect("the program can be started");
    assert!(bare.status.success(), "{bare:?}");
    let seconds = std::env::var("LOOKASIDE_CHURN_SECONDS").unwrap_or_else(|_| CHURN_SECONDS.to_string());
    for bake in BACKENDS {
        let stats = folder.path().join("stats");
        assert_eq!(baked(bake, &stats, &[&program, &seconds]), bare, "{bake}");
        let lines = lines(&stats);
        std::fs::remove_file(&stats).expect("statistics");
        // The program itself ends last. It baked, unless the machine has no CPU or no call for it; `auto` leaves it a
        // CPU that it needs.
        let last = lines.last().expect("a line");
        let baked = bake == "auto" || last["touches"].as_u64() > Some(0);
        assert!(!can_bake() || baked || last["errno"] != 0, "{bake}: {last}");
    }
}

/// A giant of which next to nothing is touched, and ten thousand regions.
const PLACES: &str = r##"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned char v[1 << 20];
int main(void) {
    const size_t giant = 1ull << 40, page = 4096;
    char *at = mmap(0, giant, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) { puts("no giant"); return 3; }
    madvise(at, giant, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < 2048; i++) at[giant / 2 + i * page] = 1;
    char *many = mmap(0, 10000 * 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(many, 10000 * 5 * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < 10000; i++) {
        mprotect(many + i * 5 * page, page, PROT_NONE);
        for (size_t j = 1; j < 4; j++) many[(i * 5 + j) * page] = 1;
    }
    for (volatile unsigned long long i = 0; i < 600000000ull; i++) {}
    size_t in_giant = 0, in_many = 0;
    mincore(at + giant / 2 - (sizeof v / 2) * page, sizeof v * page, v);
    for (size_t i = 0; i < sizeof v; i++) in_giant += v[i] & 1;
    mincore(many, 10000 * 5 * page, v);
    for (size_t i = 0; i < 50000; i++) in_many += v[i] & 1;
    printf("%zu %zu\n", in_giant, in_many);
    return 0;
}
"##;

#[test]
fn giants_and_ten_thousand_regions_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "places", PLACES) else { return };
    let stats = folder.path().join("stats");
    let output = baked("prefetch", &stats, &[&program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2048 30000\n");
    let line = lines(&stats).pop().expect("a line");
    if can_bake() && line["errno"] == 0 {
        assert!(line["touches"].as_u64() > Some(0), "{line}");
        assert!(line["most_small_bytes"].as_u64() < Some(1 << 30), "{line}");
    }
}

/// Closes and counts its files, forbids calls, ends its first thread, leaves from another: by the argument.
const ODD: &str = r##"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYTES = 32 << 20 };
static void say(const char *what) { if (write(1, what, strlen(what)) < 0) _exit(7); }
static void *work(void *how) {
    usleep(300000);
    say("worked\n");
    if (*(char *)how == 'x') _exit(5);
    if (*(char *)how == 'r') syscall(SYS_exit, 0);
    return 0;
}
int main(int argc, char **argv) {
    char *data = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *how = argv[argc - 1];
    memset(data, 1, BYTES);
    pthread_t thread;
    switch (*how) {
    case 'f': /* all files are its own: once all are closed numbers begin at 3, and what it opens stays as it is */
        for (int fd = 3; fd < 1024; fd++) close(fd);
        for (int round = 0; round < 300; round++) {
            for (int fd = 3; fd < 64; fd++) if (close(fd) == 0) { say("a file too many\n"); return 1; }
            int fd = open("/dev/zero", O_RDONLY); char c = 1;
            if (fd != 3 || read(fd, &c, 1) != 1 || c != 0) { say("not its file\n"); return 1; }
            usleep(1000);
            if (close(fd) != 0) { say("closed by another\n"); return 1; }
        }
        return 0;
    case 's': { /* a filter for all threads: ioctl, pread, read of others' files are refused */
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        };
        struct sock_fprog program = {sizeof code / sizeof *code, code};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        long done = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
        say(done == 0 ? "filtered\n" : "no filter\n");
        usleep(500000);
        exit(0);
    }
    case 'o': { /* what it may map is a mebibyte more, and half of one for the helper, which takes no more */
        struct rlimit limit = {0, 0};
        usleep(100000);
        FILE *statm = fopen("/proc/self/statm", "r"); unsigned long pages;
        if (!statm || fscanf(statm, "%lu", &pages) != 1) return 1;
        fclose(statm);
        limit.rlim_cur = limit.rlim_max = (pages + 256 + 128) * 4096;
        setrlimit(RLIMIT_AS, &limit);
        for (int i = 0; i < 300; i++) {
            char *at = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (at == MAP_FAILED) { say("less memory\n"); return 1; }
            munmap(at, 1 << 20);
            usleep(1000);
        }
        return 0;
    }
    case 'e': /* errno is the thread's own */
        for (int i = 0; i < 300; i++) { errno = 123; usleep(1000); if (errno != 123) { say("errno changed\n"); return 1; } }
        return 0;
    case 'x': case 'r': case 'p': /* from a thread: _exit; the threads leave one by one, unknown to the C library; or known */
        pthread_create(&thread, 0, work, how);
        if (*how == 'x') for (;;) pause();
        if (*how == 'r') syscall(SYS_exit, 0);
        pthread_exit(0);
    case 'c': /* the only thread ends by itself, late or at once */
        if (how[1] == 'l') usleep(200000);
        syscall(SYS_exit, 7);
    case 't': /* the strict filter allows nothing else */
        usleep(50000);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        syscall(SYS_exit, 7);
    case 'u': /* becomes another user for good: only root can */
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) say("not allowed\n");
        usleep(500000);
        return 0;
    }
    return 9;
}
"##;

#[test]
fn odd_programs_are_as_they_are_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "odd", ODD) else { return };
    // Where another user may not write, there are no statistics of it.
    let stats = folder.path().join("stats");
    for how in ["files", "seccomp", "only so much", "errno", "x", "raw", "pthread", "user", "cl", "c", "t"] {
        let bare = Command::new(&program).arg(how).output().expect("the program can be started");
        let without = match how {
            "x" => 5,
            "cl" | "c" | "t" => 7,
            _ => 0,
        };
        assert_eq!(bare.status.code(), Some(without), "{how}: {bare:?}");
        for bake in ["auto", "prefetch", "scan", "mincore"] {
            assert_eq!(baked(bake, &stats, &[&program, how]), bare, "{how}: {bake}");
        }
        // The thread that makes huge pages alone, and both.
        for bake in ["", "prefetch"] {
            let mut command = baking(bake, &stats, &[&program, how]);
            let output = command.env("LOOKASIDE_HUGEPAGES", "orders").output().expect("the program can be started");
            assert_eq!(output, bare, "{how}: {bake} and orders");
        }
    }
}

#[test]
fn what_cannot_be_is_said_and_the_program_runs() {
    let stats = Path::new("/nonexistent/stats");
    for (bake, why) in [("load", "fault pages in"), ("warm", "no such backend"), ("auto,share=0", "above 0")] {
        let output = baked(bake, stats, &["echo", "here"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.stdout.as_slice(), said.lines().count()), (b"here\n".as_slice(), 1), "{said}");
        assert!(said.starts_with("lookaside: LOOKASIDE_BAKE: ") && said.contains(why), "{said}");
    }
    let output = baked("", stats, &["echo", "here"]);
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (b"here\n".as_slice(), b"".as_slice()));
}
