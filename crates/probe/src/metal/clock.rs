//! The timer, core cycles in a tick, and the timed loops of loads.

use std::time::{Duration, Instant};

#[cfg(target_arch = "x86_64")]
use lookaside_host::CpuInfo;

use crate::metal::{AccessOrder, MetalError};

/// Steps walked before each sample, at least one round: fills what the chain can fill. One foreign page costs a full
/// LRU set a round of misses, and a sample ends with a few of them.
pub(super) const WARM_STEPS: u64 = 1024;
/// How long the timer is compared with the system's clock and with a chain of additions.
const COMPARE: Duration = Duration::from_millis(20);
/// Additions a comparison.
const ADDS: u64 = 200_000;

/// Whether the timer can be used; what is to be said about it.
pub(crate) fn check() -> Result<Option<String>, MetalError> {
    #[cfg(target_arch = "x86_64")]
    let remark = {
        readable()?;
        // "Invariant TSC" (Intel SDM, volume 3, 19.17.1; AMD APM, volume 3, appendix E.4).
        let power = raw_cpuid::CpuId::new().get_advanced_power_mgmt_info();
        let invariant = power.is_some_and(|power| power.has_invariant_tsc());
        promise(&CpuInfo::here(), invariant)
    };
    #[cfg(not(target_arch = "x86_64"))]
    let remark = None; // the architecture promises a constant rate
    let (a, b) = (now(), {
        std::thread::sleep(Duration::from_millis(2));
        now()
    });
    if b <= a {
        return Err(MetalError::Unsupported("its timer does not advance".into()));
    }
    Ok(remark)
}

/// What is said of a counter that nobody promises to tick evenly. What misses is told by chains that are compared right after
/// one another, so that geometry does not suffer; times in cycles may.
#[cfg(target_arch = "x86_64")]
fn promise(cpu: &CpuInfo, invariant: bool) -> Option<String> {
    let constant = cpu.has_flag("constant_tsc") == Some(true);
    (!constant && !invariant).then(|| {
        "the time stamp counter is not said to tick evenly (no constant_tsc, CPUID 0x80000007): cycles may be off"
            .into()
    })
}

/// A process may have been forbidden to read the counter (`PR_SET_TSC`): reading it anyway would kill it.
#[cfg(target_arch = "x86_64")]
fn readable() -> Result<(), MetalError> {
    // (`lfence`, the only other instruction relied on, is part of x86-64.)
    if !raw_cpuid::CpuId::new().get_feature_info().is_some_and(|features| features.has_tsc()) {
        return Err(MetalError::Unsupported("it has no time stamp counter".into()));
    }
    #[cfg(target_os = "linux")]
    {
        let mut state: libc::c_int = 0;
        // SAFETY: writes an int of ours; an error leaves it alone.
        unsafe { libc::prctl(libc::PR_GET_TSC, &mut state) };
        if state == libc::PR_TSC_SIGSEGV {
            return Err(MetalError::Unsupported(
                "reading the time stamp counter is forbidden (prctl PR_SET_TSC)".into(),
            ));
        }
    }
    Ok(())
}

/// Ticks of the timer in a second, against the system's clock.
pub(crate) fn ticks_per_second() -> f64 {
    let (start, ticks) = (Instant::now(), now());
    while start.elapsed() < COMPARE {}
    now().saturating_sub(ticks) as f64 / start.elapsed().as_secs_f64()
}

/// Core cycles in a tick: a dependent addition takes one cycle on every core here. The fastest of several runs is one
/// that nobody interrupted.
pub(crate) fn cycles_per_tick() -> f64 {
    let start = Instant::now();
    let mut least = u64::MAX;
    while start.elapsed() < COMPARE {
        least = least.min(adds(ADDS));
    }
    ADDS as f64 / least.max(1) as f64
}

/// The timer.
#[cfg(target_arch = "x86_64")]
pub(crate) fn now() -> u64 {
    // SAFETY: reads the time stamp counter, which `check` does once before; every x86-64 has one.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Waits for all loads before it; none after it begins earlier.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fence() {
    // SAFETY: part of SSE2, which every x86-64 has.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// The timer, read after all loads before and before all after.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fenced_now() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: SSE2, which every x86-64 has; `check` looks at the counter once before.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Steps to `base + (unit << SHIFT) + zero` for `count` units (at least 1), where `zero` becomes what was read.
///
/// # Safety
/// `units` has `count` numbers, `base + (unit << SHIFT)` is mapped and reads as zero for each; `zero` is zero.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn walk_run<const SHIFT: u32>(base: u64, units: *const u32, count: u64, zero: &mut u64) {
    // SAFETY: the caller's units and what they point to are all that is read.
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {t:e}, [{i}]",
            "add {i}, 4",
            "shl {t}, {shift}",
            "add {t}, {b}",
            "mov {z}, [{t} + {z}]",
            "dec {n}",
            "jnz 2b",
            t = out(reg) _, i = inout(reg) units => _, b = in(reg) base, z = inout(reg) *zero, n = inout(reg) count.max(1) => _,
            shift = const SHIFT,
            options(nostack, readonly)
        );
    }
}

/// Reads the words `base + 8 * word + zero` for `count` words (at least 1), where `zero` becomes what was read, by one addition a
/// word; with `update` each is written back. Independent ones are read at `base + 8 * word`, and never written.
///
/// # Safety
/// `words` has `count` numbers, `base + 8 * word` is mapped, aligned and zero for each, and writable for `update`; `zero` is zero.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn access_run(
    base: u64,
    words: *const u32,
    count: u64,
    (order, update): (AccessOrder, bool),
    zero: &mut u64,
) {
    macro_rules! run {
        ($($access:literal),*) => {
            std::arch::asm!(
                "2:",
                "mov {t:e}, [{i}]",
                "add {i}, 4",
                $($access,)*
                "dec {n}",
                "jnz 2b",
                t = out(reg) _, i = inout(reg) words => _, b = in(reg) base, z = inout(reg) *zero, n = inout(reg) count.max(1) => _,
                options(nostack)
            )
        };
    }
    // SAFETY: the caller's words and what they point to are all that is accessed.
    unsafe {
        match (order, update) {
            (AccessOrder::Dependent, false) => run!("lea {t}, [{b} + 8 * {t}]", "add {t}, {z}", "mov {z}, [{t}]"),
            (AccessOrder::Dependent, true) => {
                run!("lea {t}, [{b} + 8 * {t}]", "add {t}, {z}", "mov {z}, [{t}]", "mov [{t}], {z}");
            }
            (AccessOrder::Independent, _) => run!("mov {z}, [{b} + 8 * {t}]"),
        }
    }
}

/// Goes on by `steps` links (at least 1) of a chain, each read by an atomic addition of zero: a load and a store, and none begins before the
/// one before it is done.
///
/// # Safety
/// `at` is the address of a link of a circular chain in mapped memory that may be written and that nobody else uses.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn update_run(at: &mut u64, steps: u64) {
    // SAFETY: the caller's chain is all that is read, and each link is written back as it was.
    unsafe {
        std::arch::asm!(
            "2:",
            "xor {t:e}, {t:e}",
            "lock xadd [{p}], {t}",
            "mov {p}, {t}",
            "dec {n}",
            "jnz 2b",
            p = inout(reg) *at, t = out(reg) _, n = inout(reg) steps.max(1) => _,
            options(nostack)
        );
    }
}

/// Ticks that this many dependent additions (a multiple of 8) take, of registers: cores since Golden Cove add small
/// constants while they rename, several of a chain in a cycle (Intel optimization manual, "Golden Cove
/// microarchitecture"; seen on an Emerald Rapids: 5.6 in a tick of its timer).
#[cfg(target_arch = "x86_64")]
pub(crate) fn adds(count: u64) -> u64 {
    let start = now();
    // SAFETY: counts in registers.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {x}, {y}", "add {x}, {y}", "add {x}, {y}", "add {x}, {y}",
            "add {x}, {y}", "add {x}, {y}", "add {x}, {y}", "add {x}, {y}",
            "sub {n}, 8",
            "jnz 2b",
            x = inout(reg) 0u64 => _, y = in(reg) 1u64, n = inout(reg) count => _,
            options(nomem, nostack)
        );
    }
    now().saturating_sub(start)
}

/// Ticks that this many additions (a multiple of 12) take, of registers as in [`adds`], six of which need nothing of each other.
#[cfg(target_arch = "x86_64")]
pub(crate) fn adds_abreast(count: u64) -> u64 {
    let start = now();
    // SAFETY: counts in registers.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {a}, {y}", "add {b}, {y}", "add {c}, {y}", "add {d}, {y}", "add {e}, {y}", "add {f}, {y}",
            "add {a}, {y}", "add {b}, {y}", "add {c}, {y}", "add {d}, {y}", "add {e}, {y}", "add {f}, {y}",
            "sub {n}, 12",
            "ja 2b",
            a = inout(reg) 0u64 => _, b = inout(reg) 0u64 => _, c = inout(reg) 0u64 => _, d = inout(reg) 0u64 => _,
            e = inout(reg) 0u64 => _, f = inout(reg) 0u64 => _, y = in(reg) 1u64, n = inout(reg) count => _,
            options(nomem, nostack)
        );
    }
    now().saturating_sub(start)
}

/// Walks `before` links (at least 1) of a chain, then times `timed` more (at least 1); gives the ticks. Touches no memory but the chain's.
///
/// # Safety
/// `at` is the address of a link of a circular chain in mapped memory.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn walk(at: &mut u64, before: u64, timed: u64) -> u64 {
    let ticks: u64;
    // SAFETY: the caller's chain is all that is read. `lfence` waits for the loads before it (Intel SDM; on AMD since
    // Linux makes it serialise), so that the time between is theirs.
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {p}, [{p}]",
            "dec {a}",
            "jnz 2b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "mov {s}, rax",
            "3:",
            "mov {p}, [{p}]",
            "dec {b}",
            "jnz 3b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "sub rax, {s}",
            p = inout(reg) *at, a = inout(reg) before.max(1) => _, b = inout(reg) timed.max(1) => _, s = out(reg) _,
            out("rax") ticks, out("rdx") _,
            options(nostack, readonly)
        );
    }
    ticks
}

/// The timer.
#[cfg(target_arch = "aarch64")]
pub(crate) fn now() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read the virtual counter.
    unsafe { std::arch::asm!("isb", "mrs {t}, cntvct_el0", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// Waits for all loads before it; none after it begins earlier.
#[cfg(target_arch = "aarch64")]
pub(crate) fn fence() {
    // SAFETY: a barrier changes nothing (ARM ARM DDI 0487, B2.3).
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack)) };
}

/// The timer, read after all loads before and before all after.
#[cfg(target_arch = "aarch64")]
pub(crate) fn fenced_now() -> u64 {
    let ticks: u64;
    // SAFETY: barriers, and the virtual counter that Linux lets programs read.
    unsafe { std::arch::asm!("dsb ish", "isb", "mrs {t}, cntvct_el0", "isb", t = out(reg) ticks, options(nostack)) };
    ticks
}

/// Steps to `base + (unit << SHIFT) + zero` for `count` units (at least 1), where `zero` becomes what was read.
///
/// # Safety
/// `units` has `count` numbers, `base + (unit << SHIFT)` is mapped and reads as zero for each; `zero` is zero.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn walk_run<const SHIFT: u32>(base: u64, units: *const u32, count: u64, zero: &mut u64) {
    // SAFETY: the caller's units and what they point to are all that is read.
    unsafe {
        std::arch::asm!(
            "2:",
            "ldr {t:w}, [{i}], #4",
            "add {t}, {b}, {t}, lsl #{shift}",
            "ldr {z}, [{t}, {z}]",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            t = out(reg) _, i = inout(reg) units => _, b = in(reg) base, z = inout(reg) *zero, n = inout(reg) count.max(1) => _,
            shift = const SHIFT,
            options(nostack, readonly)
        );
    }
}

/// Reads the words `base + 8 * word + zero` for `count` words (at least 1), where `zero` becomes what was read, by one addition a
/// word; with `update` each is written back. Independent ones are read at `base + 8 * word`, and never written.
///
/// # Safety
/// `words` has `count` numbers, `base + 8 * word` is mapped, aligned and zero for each, and writable for `update`; `zero` is zero.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn access_run(
    base: u64,
    words: *const u32,
    count: u64,
    (order, update): (AccessOrder, bool),
    zero: &mut u64,
) {
    macro_rules! run {
        ($($access:literal),*) => {
            std::arch::asm!(
                "2:",
                "ldr {t:w}, [{i}], #4",
                $($access,)*
                "subs {n}, {n}, 1",
                "b.ne 2b",
                t = out(reg) _, i = inout(reg) words => _, b = in(reg) base, z = inout(reg) *zero, n = inout(reg) count.max(1) => _,
                options(nostack)
            )
        };
    }
    // SAFETY: the caller's words and what they point to are all that is accessed.
    unsafe {
        match (order, update) {
            (AccessOrder::Dependent, false) => {
                run!("add {t}, {b}, {t}, lsl #3", "add {t}, {t}, {z}", "ldr {z}, [{t}]");
            }
            (AccessOrder::Dependent, true) => {
                run!("add {t}, {b}, {t}, lsl #3", "add {t}, {t}, {z}", "ldr {z}, [{t}]", "str {z}, [{t}]");
            }
            (AccessOrder::Independent, _) => run!("ldr {z}, [{b}, {t}, lsl #3]"),
        }
    }
}

/// Ticks that this many dependent additions (a multiple of 8) take, of registers: cores since Golden Cove add small
/// constants while they rename, several of a chain in a cycle (Intel optimization manual, "Golden Cove
/// microarchitecture"; seen on an Emerald Rapids: 5.6 in a tick of its timer).
#[cfg(target_arch = "aarch64")]
pub(crate) fn adds(count: u64) -> u64 {
    let start = now();
    // SAFETY: counts in registers.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}",
            "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}", "add {x}, {x}, {y}",
            "subs {n}, {n}, 8",
            "b.ne 2b",
            x = inout(reg) 0u64 => _, y = in(reg) 1u64, n = inout(reg) count => _,
            options(nomem, nostack)
        );
    }
    now().saturating_sub(start)
}

/// Ticks that this many additions (a multiple of 12) take, of registers as in [`adds`], six of which need nothing of each other.
#[cfg(target_arch = "aarch64")]
pub(crate) fn adds_abreast(count: u64) -> u64 {
    let start = now();
    // SAFETY: counts in registers.
    unsafe {
        std::arch::asm!(
            "2:",
            "add {a}, {a}, {y}", "add {b}, {b}, {y}", "add {c}, {c}, {y}", "add {d}, {d}, {y}", "add {e}, {e}, {y}", "add {f}, {f}, {y}",
            "add {a}, {a}, {y}", "add {b}, {b}, {y}", "add {c}, {c}, {y}", "add {d}, {d}, {y}", "add {e}, {e}, {y}", "add {f}, {f}, {y}",
            "subs {n}, {n}, 12",
            "b.hi 2b",
            a = inout(reg) 0u64 => _, b = inout(reg) 0u64 => _, c = inout(reg) 0u64 => _, d = inout(reg) 0u64 => _,
            e = inout(reg) 0u64 => _, f = inout(reg) 0u64 => _, y = in(reg) 1u64, n = inout(reg) count => _,
            options(nomem, nostack)
        );
    }
    now().saturating_sub(start)
}

/// Goes on by `steps` links (at least 1) of a chain, each read and written back as it was, exclusively: a load and a store.
///
/// # Safety
/// `at` is the address of a link of a circular chain in mapped memory that may be written and that nobody else uses.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn update_run(at: &mut u64, steps: u64) {
    // SAFETY: the caller's chain is all that is read, and each link is written back as it was.
    unsafe {
        std::arch::asm!(
            "2:",
            "ldaxr {t}, [{p}]",
            "stlxr {failed:w}, {t}, [{p}]",
            "cbnz {failed:w}, 2b",
            "mov {p}, {t}",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            p = inout(reg) *at, t = out(reg) _, failed = out(reg) _, n = inout(reg) steps.max(1) => _,
            options(nostack)
        );
    }
}

/// Walks `before` links (at least 1) of a chain, then times `timed` more (at least 1); gives the ticks. Touches no memory but the chain's.
///
/// # Safety
/// `at` is the address of a link of a circular chain in mapped memory.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn walk(at: &mut u64, before: u64, timed: u64) -> u64 {
    let (start, end): (u64, u64);
    // SAFETY: the caller's chain is all that is read. `dsb` waits for the loads, `isb` keeps the counter from being
    // read early (ARM ARM DDI 0487, D11.1.2).
    unsafe {
        std::arch::asm!(
            "2:",
            "ldr {p}, [{p}]",
            "subs {a}, {a}, 1",
            "b.ne 2b",
            "dsb ish",
            "isb",
            "mrs {s}, cntvct_el0",
            "isb",
            "3:",
            "ldr {p}, [{p}]",
            "subs {b}, {b}, 1",
            "b.ne 3b",
            "dsb ish",
            "isb",
            "mrs {e}, cntvct_el0",
            p = inout(reg) *at, a = inout(reg) before.max(1) => _, b = inout(reg) timed.max(1) => _,
            s = out(reg) start, e = out(reg) end,
            options(nostack, readonly)
        );
    }
    end.saturating_sub(start)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_counter_without_a_promise_is_remarked_on() {
        let promise = |cpuinfo: &str, invariant| promise(&CpuInfo::of_text(cpuinfo.into()), invariant);
        assert_eq!(promise("flags : fpu tsc constant_tsc nopl", false), None);
        assert_eq!(promise("flags : fpu tsc", true), None);
        assert!(promise("flags : fpu tsc nonconstant_tsc", false).is_some());
        assert!(promise("", false).is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_may_not_read_it_is_told_and_lives() {
        let set = |state: libc::c_int| {
            // SAFETY: of this thread only; sets a flag.
            unsafe { libc::prctl(libc::PR_SET_TSC, state) }
        };
        let thread = std::thread::spawn(move || {
            if set(libc::PR_TSC_SIGSEGV) != 0 {
                return None; // this system has no such thing
            }
            let checked = check();
            set(libc::PR_TSC_ENABLE);
            Some(checked)
        });
        if let Some(checked) = thread.join().expect("it lives") {
            assert!(checked.is_err_and(|error| error.to_string().contains("PR_SET_TSC")));
        }
    }
}
