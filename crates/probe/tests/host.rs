//! The machine that runs the tests: it gets back what the probe takes of it. No time is asserted.

use std::cell::Cell;

use lookaside_probe::{probe, Halt, HostMachine, MetalError, ProbeOptions};

/// CPUs that the calling thread may run on.
fn cpus() -> Vec<usize> {
    // SAFETY: a `cpu_set_t` is a plain array of words; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours and as long as we say.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) }, 0);
    // SAFETY: each number is within the set.
    (0..8 * size_of::<libc::cpu_set_t>()).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// KiB of a line of `/proc/self/status`.
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a file");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim_start_matches(':').split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn cpus_and_addresses_are_given_back_when_it_is_stopped() {
    let (before, addresses) = (cpus(), kib("VmSize"));
    let mut host = match HostMachine::new(64 << 20) {
        Ok(host) => host,
        Err(MetalError::Unsupported(reason)) => {
            eprintln!("LEFT OUT: {reason}");
            assert_eq!(cpus(), before);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(cpus(), [host.cpu()]);
    assert!(kib("VmSize") > addresses + (32 << 10), "it has no room for pages");
    // In the middle of something.
    let asked = Cell::new(0);
    let halt = || {
        asked.set(asked.get() + 1);
        (asked.get() > 200).then_some(Halt::Interrupted)
    };
    let report = probe(&mut host, &ProbeOptions::default(), &halt, &mut |_| ());
    assert!(report.halted.is_some());
    drop(host);
    assert_eq!(cpus(), before);
    // Allocators keep some of what they had.
    assert!(kib("VmSize") < addresses + (128 << 10), "{} KiB of addresses are left", kib("VmSize") - addresses);
}
