//! ptrace: each request that a plain run makes, once.

use std::io;

use libc::{c_int, c_long, c_ulong, pid_t};

/// The signal of a stop at a system call; a trap of the program's own is a plain SIGTRAP.
pub(super) const CALL_STOP: c_int = libc::SIGTRAP | 0x80; // PTRACE_O_TRACESYSGOOD

/// Something happened to a thread of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadChange {
    /// It ended, by itself.
    Code(i32),
    /// It was killed.
    Killed(i32),
    /// It stopped: signal, and the event if it is one of ptrace's own.
    Stopped(c_int, c_int),
}

/// In the child, before it executes the program: we trace it, and its addresses are fixed where asked. Calls only what
/// may be called between fork and exec.
pub(super) fn trace_me(fixed: bool) -> io::Result<()> {
    if fixed {
        // A sandbox may refuse: seen after the exec, in /proc/PID/personality.
        // SAFETY: numbers only; 0xffffffff asks for the present one (personality(2)).
        unsafe {
            let now = libc::personality(0xffff_ffff);
            libc::personality((now | libc::ADDR_NO_RANDOMIZE) as c_ulong);
        }
    }
    request(libc::PTRACE_TRACEME, 0, 0)
}

/// Events that we want to see of a process that has just executed its program.
pub(super) fn set_options(pid: pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACECLONE;
    request(libc::PTRACE_SETOPTIONS, pid, options as c_long)
}

/// Lets a stopped thread go on to its next system call, with a signal or 0.
pub(super) fn go_on(pid: pid_t, signal: c_int) -> io::Result<()> {
    match request(libc::PTRACE_SYSCALL, pid, c_long::from(signal)) {
        // Killed meanwhile: its end is the next thing that we hear of it.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

fn request(what: libc::c_uint, pid: pid_t, data: c_long) -> io::Result<()> {
    // SAFETY: these requests take numbers only.
    match unsafe { libc::ptrace(what, pid, 0 as c_long, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The next change of any thread that this thread traces. Others' children are left to them.
pub(super) fn next_change() -> io::Result<(pid_t, ThreadChange)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is ours to be written.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid == -1 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        return Ok((pid, change(status)));
    }
}

fn change(status: c_int) -> ThreadChange {
    if libc::WIFEXITED(status) {
        ThreadChange::Code(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        ThreadChange::Killed(libc::WTERMSIG(status))
    } else {
        ThreadChange::Stopped(libc::WSTOPSIG(status), status >> 16)
    }
}

/// A thread's system call: its beginning with number, arguments and where from; or its end with its result.
#[derive(Clone, Copy, Debug)]
pub(super) enum SyscallStop {
    Begins {
        number: u64,
        args: [u64; 6],
        ip: u64,
    },
    /// `None` = it failed.
    Ends {
        result: Option<u64>,
    },
}

/// The system call at which a thread has stopped; `None` where the kernel doesn't say.
pub(super) fn call(pid: pid_t) -> Option<SyscallStop> {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let room = std::mem::size_of_val(&info);
    // SAFETY: the kernel writes at most `room` bytes into `info`.
    let written = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, room, info.as_mut_ptr()) };
    if written <= 0 {
        return None;
    }
    // SAFETY: all zeros is a value of it, and the kernel has written one on top.
    let info = unsafe { info.assume_init() };
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says that this is what the union has.
            let entry = unsafe { info.u.entry };
            Some(SyscallStop::Begins { number: entry.nr, args: entry.args, ip: info.instruction_pointer })
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            let exit = unsafe { info.u.exit };
            Some(SyscallStop::Ends { result: (exit.is_error == 0).then_some(exit.sval as u64) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_traced_program_goes_on_from_call_to_call() {
        let mut program = Command::new("sh");
        program.args(["-c", "cd /no/such/folder; exit 3"]).stderr(Stdio::null());
        // SAFETY: between fork and exec only ptrace is called, which is async-signal-safe.
        unsafe {
            program.pre_exec(|| trace_me(false));
        }
        let pid = program.spawn().expect("a shell").id() as pid_t;
        assert_eq!(next_change().expect("its begin"), (pid, ThreadChange::Stopped(libc::SIGTRAP, 0)));
        set_options(pid).expect("it is stopped");
        let no_signal = go_on(pid, 12_345).expect_err("there is no such signal");
        assert_eq!(no_signal.raw_os_error(), Some(libc::EIO));
        // Each call's number and first argument, and its result.
        let mut calls: Vec<(i64, u64, Option<u64>)> = Vec::new();
        let end = loop {
            go_on(pid, 0).expect("it is stopped");
            match next_change().expect("a change").1 {
                ThreadChange::Stopped(CALL_STOP, 0) => match call(pid).expect("the kernel says which") {
                    SyscallStop::Begins { number, args, ip } => {
                        assert!(ip > 0);
                        calls.push((number as i64, args[0], None));
                    }
                    SyscallStop::Ends { result } => {
                        // The first is that of the exec, which began before.
                        if let Some(call) = calls.last_mut() {
                            call.2 = result;
                        }
                    }
                },
                ThreadChange::Stopped(_, libc::PTRACE_EVENT_EXIT) => {}
                other => break other,
            }
        };
        assert_eq!(end, ThreadChange::Code(3));
        let of = |number: i64| calls.iter().filter(move |call| call.0 == number);
        assert!(of(libc::SYS_mmap).count() > 0 && of(libc::SYS_mmap).all(|call| call.2.is_some_and(|at| at > 0)));
        assert!(of(libc::SYS_chdir).count() > 0 && of(libc::SYS_chdir).all(|call| call.1 > 0 && call.2.is_none()));
        assert_eq!(calls.last(), Some(&(libc::SYS_exit_group, 3, None)));
        // Who is gone needs nothing more, and nobody else is waited for.
        go_on(pid, 0).expect("no error");
        assert_eq!(next_change().expect_err("none is left").raw_os_error(), Some(libc::ECHILD));
    }
}
