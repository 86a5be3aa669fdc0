//! Plain runs where a sandbox forbids something, or has set something.

use lookaside_capture::plain_run::{Aslr, PlainRun, PlainRunMaps};
use lookaside_capture::CaptureError;

use crate::programs::{command, compile};

/// Has the calling thread, and what it starts, refused a system call; false where that is not to be had.
fn refuse(call: libc::c_long) -> bool {
    let word = |code: libc::c_uint, k: libc::c_uint| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        // The call's number.
        word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { jf: 1, ..word(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32) },
        word(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        word(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let (one, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the filter lives through the calls, which concern this thread alone.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, none, none, none) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

/// A run from a thread of this personality that is refused a call.
fn run(
    personality: libc::c_int,
    refused: Option<libc::c_long>,
    aslr: Aslr,
) -> Option<Result<PlainRunMaps, CaptureError>> {
    let (_folder, program) = compile("int main(void) { return 0; }", &[]);
    let start = move || {
        // SAFETY: a number only; it concerns this thread alone.
        unsafe { libc::personality(personality as libc::c_ulong) };
        if refused.is_some_and(|call| !refuse(call)) {
            eprintln!("NOT TESTED: no call can be refused here");
            return None;
        }
        Some(PlainRun::start(&command(&program, &[]), aslr, |_| {}).and_then(|run| run.wait()))
    };
    std::thread::spawn(start).join().unwrap()
}

#[test]
fn that_a_sandbox_forbids_ptrace_is_said() {
    if let Some(run) = run(0, Some(libc::SYS_ptrace), Aslr::System) {
        let said = run.unwrap_err().to_string();
        assert!(said.contains("the system forbids ptrace here (a container: --cap-add SYS_PTRACE)"), "{said}");
    }
}

#[test]
fn that_addresses_are_not_fixed_is_said_where_they_should_be() {
    let notes = |personality, refused, aslr| run(personality, refused, aslr).map(|maps| maps.unwrap().notes);
    let random = "the sandbox refuses personality(ADDR_NO_RANDOMIZE): addresses are other ones in each run".to_string();
    if let Some(notes) = notes(0, Some(libc::SYS_personality), Aslr::Off) {
        assert_eq!(notes, [random]);
    }
    assert_eq!(notes(0, None, Aslr::System), Some(vec![]));
    // They stay fixed where they were.
    for personality in [0, libc::ADDR_NO_RANDOMIZE] {
        assert_eq!(notes(personality, None, Aslr::Off), Some(vec![]));
    }
}
