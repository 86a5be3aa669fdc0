//! The loops of a single shot in assembly: they touch no memory but what they are given.

use crate::metal::single_shot::PrefetchHint;

/// Loads `count` (at least 1) links of a chain, each at the address that the one before it holds.
///
/// # Safety
/// `at` is the address of the first of so many links in mapped memory.
#[inline(always)]
pub(crate) unsafe fn load_chain(at: u64, count: u64) {
    // SAFETY: the caller's chain is all that is read.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {p}, [{p}]",
            "dec {n}",
            "jnz 2b",
            p = inout(reg) at => _, n = inout(reg) count => _,
            options(nostack, readonly)
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "ldr {p}, [{p}]",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            p = inout(reg) at => _, n = inout(reg) count => _,
            options(nostack, readonly)
        );
    }
}

/// Stores a zero to each of `count` (at least 1) addresses of a list, and waits until all are done.
///
/// # Safety
/// The list is readable, each of its addresses a word that may be written and that nobody else uses.
#[inline(always)]
pub(crate) unsafe fn store_each(list: u64, count: u64) {
    // SAFETY: the caller's.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {p}, [{l}]",
            "mov [{p}], {zero}",
            "add {l}, 8",
            "dec {n}",
            "jnz 2b",
            "mfence",
            l = inout(reg) list => _, n = inout(reg) count => _, p = out(reg) _, zero = in(reg) 0u64,
            options(nostack)
        );
    }
    // SAFETY: the caller's.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "ldr {p}, [{l}], 8",
            "str xzr, [{p}]",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            "dsb ish",
            l = inout(reg) list => _, n = inout(reg) count => _, p = out(reg) _,
            options(nostack)
        );
    }
}

/// A loop of one prefetch instruction over a list.
macro_rules! prefetch_loop {
    ($instruction:literal, $list:expr, $count:expr) => {{
        // SAFETY: the caller's list is all that is read; a prefetch never faults, whatever the address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "2:",
                "mov {p}, [{l}]",
                concat!($instruction, " [{p}]"),
                "add {l}, 8",
                "dec {n}",
                "jnz 2b",
                l = inout(reg) $list => _, n = inout(reg) $count => _, p = out(reg) _,
                options(nostack, readonly)
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                "2:",
                "ldr {p}, [{l}], 8",
                concat!("prfm ", $instruction, ", [{p}]"),
                "subs {n}, {n}, 1",
                "b.ne 2b",
                l = inout(reg) $list => _, n = inout(reg) $count => _, p = out(reg) _,
                options(nostack, readonly)
            );
        }
    }};
}

/// Prefetches each of `count` (at least 1) addresses of a list. The processor may still be at it afterwards.
///
/// # Safety
/// The list is readable; its addresses can be anything.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn prefetch_each(hint: PrefetchHint, list: u64, count: u64) {
    match hint {
        PrefetchHint::T0 => prefetch_loop!("prefetcht0", list, count),
        PrefetchHint::T1 => prefetch_loop!("prefetcht1", list, count),
        PrefetchHint::T2 => prefetch_loop!("prefetcht2", list, count),
        PrefetchHint::Nta => prefetch_loop!("prefetchnta", list, count),
        PrefetchHint::W => prefetch_loop!("prefetchw", list, count),
    }
}

/// Prefetches each of `count` (at least 1) addresses of a list. The processor may still be at it afterwards.
///
/// # Safety
/// The list is readable; its addresses can be anything.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn prefetch_each(hint: PrefetchHint, list: u64, count: u64) {
    match hint {
        PrefetchHint::T0 => prefetch_loop!("pldl1keep", list, count),
        PrefetchHint::T1 => prefetch_loop!("pldl2keep", list, count),
        PrefetchHint::T2 => prefetch_loop!("pldl3keep", list, count),
        PrefetchHint::Nta => prefetch_loop!("pldl1strm", list, count),
        PrefetchHint::W => prefetch_loop!("pstl1keep", list, count),
    }
}

/// Ticks that `count` (at least 1) loads of a chain take. It begins after `delay` dependent additions, so that the
/// timer's grain, where it is coarser than what is looked for, averages out over shots of different delays.
///
/// # Safety
/// As for [`load_chain`].
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn time_chain(at: u64, count: u64, delay: u64) -> u64 {
    let ticks: u64;
    // SAFETY: the caller's chain is all that is read. Fences as in `clock::walk`; `mfence` also waits for stores.
    unsafe {
        std::arch::asm!(
            "mfence",
            "lfence",
            "2:",
            "dec {d}",
            "jns 2b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "mov {s}, rax",
            "3:",
            "mov {p}, [{p}]",
            "dec {n}",
            "jnz 3b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "sub rax, {s}",
            p = inout(reg) at => _, n = inout(reg) count => _, d = inout(reg) delay => _, s = out(reg) _,
            out("rax") ticks, out("rdx") _,
            options(nostack, readonly)
        );
    }
    ticks
}

/// Ticks that `count` (at least 1) loads of a chain take. It begins after `delay` dependent additions, so that the
/// timer's grain, where it is coarser than what is looked for, averages out over shots of different delays.
///
/// # Safety
/// As for [`load_chain`].
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn time_chain(at: u64, count: u64, delay: u64) -> u64 {
    let (start, end): (u64, u64);
    // SAFETY: the caller's chain is all that is read. Barriers as in `clock::walk`.
    unsafe {
        std::arch::asm!(
            "dsb ish",
            "isb",
            "2:",
            "subs {d}, {d}, 1",
            "b.pl 2b",
            "isb",
            "mrs {s}, cntvct_el0",
            "isb",
            "3:",
            "ldr {p}, [{p}]",
            "subs {n}, {n}, 1",
            "b.ne 3b",
            "dsb ish",
            "isb",
            "mrs {e}, cntvct_el0",
            p = inout(reg) at => _, n = inout(reg) count => _, d = inout(reg) delay => _,
            s = out(reg) start, e = out(reg) end,
            options(nostack, readonly)
        );
    }
    end.saturating_sub(start)
}

/// An address of a list, and the ticks that a window of loads beginning with it took.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(crate) struct TimedAddress {
    /// Where a byte is loaded.
    pub address: u64,
    /// Ticks of the window, in its first entry.
    pub ticks: u64,
}

/// Flips to another line of the same page, whatever the page's size.
pub(crate) const OTHER_LINE: u64 = 0x800;

/// Loads a byte at each address, each load after the one before it, at another line of the page where `flip` says so.
///
/// # Safety
/// All addresses, flipped, are readable.
#[inline(always)]
pub(crate) unsafe fn load_each(list: &[TimedAddress], flip: u64) {
    if list.is_empty() {
        return;
    }
    // The value loaded becomes 0, is added to the next address, and so orders the loads.
    // SAFETY: the caller's addresses, and the list, are all that is read.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {p}, [{l}]",
            "xor {p}, {f}",
            "movzx {z:e}, byte ptr [{p} + {z}]",
            "and {z:e}, 0",
            "add {l}, 16",
            "dec {n}",
            "jnz 2b",
            l = inout(reg) list.as_ptr() => _, n = inout(reg) list.len() => _, p = out(reg) _, z = inout(reg) 0u64 => _,
            f = in(reg) flip,
            options(nostack, readonly)
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "2:",
            "ldr {p}, [{l}], 16",
            "eor {p}, {p}, {f}",
            "ldrb {z:w}, [{p}, {z}]",
            "and {z}, {z}, xzr",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            l = inout(reg) list.as_ptr() => _, n = inout(reg) list.len() => _, p = out(reg) _, z = inout(reg) 0u64 => _,
            f = in(reg) flip,
            options(nostack, readonly)
        );
    }
}

/// Ticks that a byte load from each address takes, each after the one before it. It begins after `delay` dependent
/// decrements, as [`time_chain`] does.
///
/// # Safety
/// The list is not empty, and all its addresses are readable.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn time_each(list: &[TimedAddress], delay: u64) -> u64 {
    let ticks: u64;
    // SAFETY: the caller's addresses, and the list, are all that is read. The first line of the list is loaded before
    // the time begins.
    unsafe {
        std::arch::asm!(
            "mov {p}, [{l}]",
            "mfence",
            "lfence",
            "2:",
            "dec {d}",
            "jns 2b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "mov {s}, rax",
            "3:",
            "mov {p}, [{l}]",
            "movzx {z:e}, byte ptr [{p} + {z}]",
            "and {z:e}, 0",
            "add {l}, 16",
            "dec {n}",
            "jnz 3b",
            "lfence",
            "rdtsc",
            "lfence",
            "shl rdx, 32",
            "or rax, rdx",
            "sub rax, {s}",
            l = inout(reg) list.as_ptr() => _, n = inout(reg) list.len() => _, p = out(reg) _, z = inout(reg) 0u64 => _,
            d = inout(reg) delay => _, s = out(reg) _, out("rax") ticks, out("rdx") _,
            options(nostack, readonly)
        );
    }
    ticks
}

/// Ticks that a byte load from each address takes, each after the one before it. It begins after `delay` dependent
/// decrements, as [`time_chain`] does.
///
/// # Safety
/// The list is not empty, and all its addresses are readable.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn time_each(list: &[TimedAddress], delay: u64) -> u64 {
    let (start, end): (u64, u64);
    // SAFETY: the caller's addresses, and the list, are all that is read.
    unsafe {
        std::arch::asm!(
            "ldr {p}, [{l}]",
            "dsb ish",
            "isb",
            "2:",
            "subs {d}, {d}, 1",
            "b.pl 2b",
            "isb",
            "mrs {s}, cntvct_el0",
            "isb",
            "3:",
            "ldr {p}, [{l}], 16",
            "ldrb {z:w}, [{p}, {z}]",
            "and {z}, {z}, xzr",
            "subs {n}, {n}, 1",
            "b.ne 3b",
            "dsb ish",
            "isb",
            "mrs {e}, cntvct_el0",
            l = inout(reg) list.as_ptr() => _, n = inout(reg) list.len() => _, p = out(reg) _, z = inout(reg) 0u64 => _,
            d = inout(reg) delay => _, s = out(reg) start, e = out(reg) end,
            options(nostack, readonly)
        );
    }
    end.saturating_sub(start)
}
