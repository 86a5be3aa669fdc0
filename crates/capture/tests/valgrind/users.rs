//! Programs whose processes go on as another user, and what Valgrind has to say.

use std::ffi::OsString;

use lookaside_capture::ChildEnd;
use lookaside_trace::Event;

use crate::programs::{command, compile, record, request, Recorded};

/// Of Debian, and of most systems.
const NOBODY: &str = "65534";

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("LEFT OUT: only root's programs can go on as another user");
    }
    root
}

fn executions(recorded: &Recorded) -> usize {
    recorded.events.iter().filter(|(.., event)| matches!(event, Event::Exec { .. })).count()
}

/// The program that is executed last can neither read root's folders nor open its files.
#[test]
fn what_another_user_executes_is_recorded() {
    if !is_root() {
        return;
    }
    let as_nobody = |more: &[&str]| -> Vec<OsString> {
        let reuid = format!("--reuid={NOBODY}");
        let words = [&["setpriv", &reuid, "--clear-groups"], more, &["sh", "-c", "sh -c 'exit 7'; exit $?"]].concat();
        words.iter().map(OsString::from).collect()
    };
    // With its environment, and with an empty one.
    for words in [as_nobody(&[]), as_nobody(&["env", "-i"])] {
        let what = format!("{words:?}");
        let recorded = record(&request(words));
        assert_eq!((recorded.end, &recorded.damage[..]), (ChildEnd::Code(7), &[][..]), "{what}");
        assert!(executions(&recorded) >= 2, "{what}: {}", executions(&recorded));
    }
}

/// Many processes at once, as deep as shells nest.
#[test]
fn processes_of_another_user_fork_and_execute_to_any_depth() {
    if !is_root() {
        return;
    }
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int depth = atoi(argv[1]), status = 0;
    char next[16];
    if (getuid() == 0 && setuid(65534)) return 1;
    if (depth == 0) return 9;
    snprintf(next, sizeof next, "%d", depth - 1);
    if (fork() == 0) {
        execl(argv[0], argv[0], next, (char *)0);
        _exit(2);
    }
    wait(&status);
    return WEXITSTATUS(status);
}
"#;
    let (folder, program) = compile(source, &["-O1"]);
    // The program itself has to be where that user can read it.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).unwrap();
    let recorded = record(&request(command(&program, &["12"])));
    assert_eq!((recorded.end, &recorded.damage[..]), (ChildEnd::Code(9), &[][..]));
    let processes = recorded.events.iter().filter(|(.., event)| matches!(event, Event::ProcessExit { .. })).count();
    assert_eq!(processes, 13);
}

#[test]
fn what_valgrind_says_is_a_damage_and_no_output_of_the_program() {
    let source = r#"
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    fork();
    syscall(999);
    wait(0);
    return 0;
}
"#;
    let (_folder, program) = compile(source, &["-O1"]);
    let recorded = record(&request(command(&program, &[])));
    assert_eq!(recorded.end, ChildEnd::Code(0));
    let said: Vec<&str> = recorded.damage.iter().map(|damage| damage.reason.as_str()).collect();
    assert_eq!(said, ["WARNING: unhandled amd64-linux syscall: 999"]);
}
