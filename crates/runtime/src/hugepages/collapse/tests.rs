//! What is refused and why, and who makes huge pages.

use lookaside_host::Mapping;

use super::*;
use crate::rights::without_rights;

impl CollapseHandle {
    /// A hold on this process whose calls are all refused: from outside as of no process, from inside as by a thread that
    /// does not answer.
    pub(in crate::hugepages) fn refused(side: CollapseSide) -> Self {
        let maker = match side {
            CollapseSide::Outside => outside(),
            CollapseSide::Inside => Collapser::Inside(RemoteCollapser::to_nobody()),
        };
        handle(maker, std::process::id())
    }
}

/// A hold on this process, or one that looks like it and was another's.
fn handle(maker: Collapser, of: u32) -> CollapseHandle {
    CollapseHandle { pid: std::process::id(), maker, identity: Identity::of(of).expect("it runs") }
}

fn outside() -> Collapser {
    Collapser::Outside(std::fs::File::open("/dev/null").expect("a file").into())
}

#[test]
fn why_a_window_was_refused_is_said_by_the_number_and_by_what_can_be_looked_up() {
    let ours = std::process::id();
    if switched_off(ours) {
        return eprintln!("LEFT OUT: huge pages are switched off for this process");
    }
    let memory = Mapping::new(2 * WINDOW_BYTES as usize).expect("memory");
    // No address of a program.
    let (mapped, gone) = (memory.address(), 1 << 60);
    let makers = [handle(outside(), ours), handle(Collapser::Inside(RemoteCollapser::to_nobody()), ours)];
    assert_eq!(makers.each_ref().map(CollapseHandle::way), [CollapseSide::Outside, CollapseSide::Inside]);
    // From outside, and from inside.
    for (errno, start, words) in [
        (libc::ESRCH, mapped, ["the process has ended", "the thread in the program that makes huge pages has ended"]),
        (libc::ETIMEDOUT, mapped, ["Connection timed out (os error 110)", "did not answer for 10 s"]),
        (libc::EPERM, mapped, ["needs root or CAP_SYS_NICE", "the program forbids the call (seccomp)"]),
        (libc::EACCES, mapped, ["another user's; needs root", "the program forbids the call (seccomp)"]),
        (libc::EINVAL, mapped, ["the kernel refused it (MADV_NOHUGEPAGE set"; 2]),
        (libc::EINVAL, gone, ["that memory is not mapped any more, or only in parts"; 2]),
        (libc::ENOMEM, mapped, ["no 2 MiB block of memory is free"; 2]),
        (libc::ENOMEM, gone, ["that memory is not mapped any more, or only in parts"; 2]),
        (libc::EFAULT, mapped, ["Bad address (os error 14)"; 2]),
        (libc::EFAULT, gone, ["that memory is not mapped any more, or only in parts"; 2]),
        (libc::EBUSY, gone, ["the control group of the process has reached its limit"; 2]),
        (libc::EAGAIN, mapped, ["the kernel is using some of its pages"; 2]),
        (libc::EXDEV, gone, ["Invalid cross-device link (os error 18)"; 2]),
    ] {
        for (handle, words) in makers.iter().zip(words) {
            let why = handle.why(errno, start);
            assert!(why.starts_with(words) || why.contains(words), "{errno} at {start:#x}: {why}");
        }
    }
}

#[test]
fn who_runs_another_program_now_is_left_alone() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
    let was = handle(outside(), child.id());
    let ended = "the process has ended, or runs another program now";
    assert!(!was.is_same() && handle(outside(), std::process::id()).is_same());
    assert_eq!(was.why(libc::ENOMEM, 0), ended);
    assert_eq!(was.collapse(0), CollapseResult::Refused { nanos: 0, errno: 0, why: ended.into() });
    assert_eq!((was.pid(), was.comm()), (std::process::id(), was.identity.comm.as_str()));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn what_is_refused_whatever_the_range_is_said_with_what_it_takes() {
    let parts = [
        (libc::ENOSYS, "this kernel or sandbox has no process_madvise (Linux 5.10"),
        (libc::EINVAL, "this kernel makes no huge pages of other processes' memory: needs MADV_COLLAPSE (Linux 6.1"),
        (libc::EPERM, "needs root or CAP_SYS_NICE (sudo setcap"),
        (libc::EACCES, "another user's; needs root, or CAP_SYS_PTRACE and CAP_SYS_NICE"),
        (libc::ESRCH, "it has ended"),
        (libc::ENOENT, "is a thread of a process, not a process"),
        (libc::EIO, "process_madvise is refused"),
    ];
    for (errno, part) in parts {
        assert!(refusal(errno).starts_with(part), "{errno}: {}", refusal(errno));
    }
    // The program may be let do it itself where it is for lack of a right, or of the call.
    let is_let = parts.map(|(errno, _)| is_no_right(errno));
    assert_eq!(is_let, [true, false, true, true, false, false, false]);
}

#[test]
fn nobody_is_held_by_a_number_that_is_none_or_a_threads() {
    assert_eq!([0, u32::MAX, 4_194_305].map(|pid| hold(pid).map(|_| ())), [Err(libc::ESRCH); 3]);
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let (tid, tids) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tid.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("somebody listens");
        told.recv()
    });
    let held = hold(tids.recv().expect("a number")).map(|_| ());
    drop(tell);
    let _ = thread.join();
    assert_eq!(held, Err(libc::ENOENT));
}

#[test]
fn a_result_says_how_long_the_call_took() {
    let refused = CollapseResult::Refused { nanos: 7, errno: libc::EBUSY, why: "busy".into() };
    assert_eq!((refused.nanos(), refused.is_collapsed()), (7, false));
    let made = CollapseResult::Collapsed { nanos: 9 };
    assert_eq!((made.nanos(), made.is_collapsed()), (9, true));
    assert_ne!(CollapseSide::Inside.words(), CollapseSide::Outside.words());
}

/// Who has the right to do it from outside, and who is left to do it from inside, by what the system says of the thread.
#[test]
fn who_may_make_huge_pages_of_others_memory_does_it_from_outside() {
    if switched_off(std::process::id()) {
        return eprintln!("LEFT OUT: huge pages are switched off for this process");
    }
    let status = Process::own().status().expect("its own");
    let rights = u64::from_str_radix(status.value("CapEff").expect("its rights"), 16).expect("a number");
    let is_systems = std::fs::read_link("/proc/self/ns/user").is_ok_and(|name| name.as_os_str() == "user:[4026531837]");
    // CAP_SYS_NICE (Linux, include/uapi/linux/capability.h).
    let may = rights >> 23 & 1 == 1 && is_systems;
    match hold(std::process::id()).map(|_| ()) {
        Ok(()) => {
            assert_eq!(check_right(), if may { Ok(()) } else { Err(libc::EPERM) });
            assert!(!may || collapse_side() == Ok(CollapseSide::Outside), "{:?}", collapse_side());
        }
        Err(errno) => assert_eq!(check_right(), Err(errno)),
    }
    // SAFETY: of no bytes; the advice alone is checked.
    let can = unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_COLLAPSE) } == 0;
    assert_eq!(is_possible_inside(), can && cfg!(target_arch = "x86_64"));
    let (right, side) = without_rights(|| (check_right(), collapse_side()));
    match right {
        Err(libc::EPERM | libc::EACCES | libc::ENOSYS) if is_possible_inside() => {
            assert_eq!(side, Ok(CollapseSide::Inside));
        }
        Err(errno) => assert_eq!(side, Err(HugePageError::Bad(refusal(errno).into()))),
        Ok(()) => panic!("it may not"),
    }
}
