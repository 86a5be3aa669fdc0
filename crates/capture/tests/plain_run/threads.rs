//! Plain runs of programs with threads.

use std::path::Path;
use std::process::Command;

use lookaside_capture::plain_run::{Aslr, PlainRun, StopPoint};
use lookaside_capture::ChildEnd;
use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};

use crate::programs::{command, compile};
use crate::run;

#[test]
fn threads_and_forks_end_as_they_do_alone() {
    let source = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *out) { for (int i = 0; i < 50; i++) free(malloc(300000)); *(int *)out = 1; return 0; }
static void *last(void *first) {
    pthread_join(*(pthread_t *)first, 0);
    mmap((void *)0x600000000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    exit(9);
}
int main(void) {
    static pthread_t threads[4], self; static int done[4]; int status;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, &done[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    if (!fork()) _exit(7);
    wait(&status);
    if (WEXITSTATUS(status) != 7 || done[0] + done[1] + done[2] + done[3] != 4) return 1;
    self = pthread_self();
    pthread_create(&threads[0], 0, last, &self);
    pthread_exit(0);
}
"#;
    let maps = run(source, &["-O1", "-pthread"]);
    assert_eq!(maps.end, ChildEnd::Code(9));
    assert!(maps.exit.len() > maps.loaded.len());
    // What the last thread does when the first is gone is seen too.
    assert!(maps.exit.iter().any(|region| region.start == 0x6000_0000_0000));
}

fn is_left(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Threads that wait, while the first one ends the program.
const WAITING: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *work(void *arg) { for (;;) pause(); return arg; }
int main(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, 0, work, 0);
    END
}
"#;

#[test]
fn a_program_has_ended_when_its_last_thread_has() {
    for (end, wanted) in [("return 5;", ChildEnd::Code(5)), ("raise(SIGSEGV);", ChildEnd::Signal(libc::SIGSEGV))] {
        let (_folder, program) = compile(&WAITING.replace("END", end), &["-O1", "-pthread"]);
        let run = PlainRun::start(&command(&program, &[]), Aslr::Off, |_| {}).unwrap();
        let pid = run.pid();
        let maps = run.wait().unwrap();
        assert_eq!((maps.end, maps.exit.is_empty(), maps.notes), (wanted, false, vec![]));
        assert!(!is_left(pid));
        // What looks at it panics, while all of them are about to end.
        let looks = |at: &lookaside_capture::plain_run::StoppedProgram<'_>| assert_ne!(at.point, StopPoint::Exit);
        let run = PlainRun::start(&command(&program, &[]), Aslr::Off, looks).unwrap();
        let pid = run.pid();
        assert!(run.wait().unwrap_err().to_string().contains("panicked"));
        assert!(!is_left(pid));
    }
}

/// Says by its exit code whether another thread was stopped (8) while the first one waited.
const STOPS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>
static int ends[2], own;
static void *nothing(void *arg) { return arg; }
static void *work(void *arg) {
    pthread_t thread;
    usleep(100000);
    if (own) raise(SIGSTOP);
    for (int i = 0; i < 3; i++) { pthread_create(&thread, 0, nothing, 0); pthread_join(thread, 0); }
    return write(ends[1], "", 1) == 1 ? arg : 0;
}
int main(int argc, char **argv) {
    struct epoll_event event = {.events = EPOLLIN};
    pthread_t thread;
    int queue = epoll_create1(0);
    own = argc > 1;
    if (pipe(ends) || epoll_ctl(queue, EPOLL_CTL_ADD, ends[0], &event)) return 1;
    pthread_create(&thread, 0, work, 0);
    int got = epoll_wait(queue, &event, 1, 20000), why = errno;
    pthread_join(thread, 0);
    return got == 1 ? 7 : got == -1 && why == EINTR ? 8 : 9;
}
"#;

#[test]
fn a_stop_of_the_programs_own_is_passed_on_and_one_of_tracing_is_not() {
    let (_folder, program) = compile(STOPS, &["-O1", "-pthread"]);
    for (arguments, code) in [(&[][..], 7), (&["own"][..], 8)] {
        let run = PlainRun::start(&command(&program, arguments), Aslr::Off, |_| {}).unwrap();
        assert_eq!(run.wait().unwrap().end, ChildEnd::Code(code), "{arguments:?}");
    }
}

#[test]
fn our_other_children_are_left_to_us() {
    let mut other = Command::new("true").spawn().unwrap();
    let pid = Pid::from_raw(other.id() as i32).unwrap();
    // It has ended, and is still to be waited for.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    assert_eq!(run("int main(void) { return 3; }", &[]).end, ChildEnd::Code(3));
    assert!(other.wait().unwrap().success());
}
