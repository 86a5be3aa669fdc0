//! Touches by the program's own addresses: strided loads or prefetches, with NOPs between (Algorithm 2).
//!
//! Written in assembly: the compiler must neither drop loads whose values nobody needs nor move or merge them.

use super::settings::{BakeBackend, Hint};

/// Touches `count` addresses (at least 1) from `start` on, `stride` bytes apart, each followed by so many NOPs.
///
/// # Safety
/// For [`BakeBackend::Load`] each of the addresses is mapped and readable all the while. Prefetches never fault.
pub(crate) unsafe fn sweep(backend: BakeBackend, start: u64, stride: u64, count: u64, nops: u32) {
    match backend {
        // SAFETY: the caller's.
        BakeBackend::Load => unsafe { loads(start, stride, count.max(1), nops.into()) },
        BakeBackend::Prefetch(Hint::T0) => prefetches_t0(start, stride, count.max(1), nops.into()),
        BakeBackend::Prefetch(Hint::T1) => prefetches_t1(start, stride, count.max(1), nops.into()),
        BakeBackend::Prefetch(Hint::T2) => prefetches_t2(start, stride, count.max(1), nops.into()),
        BakeBackend::Module | BakeBackend::Scan | BakeBackend::Mincore => {}
    }
}

/// The loop: a touch, its NOPs, the next address.
macro_rules! strided {
    ($touch_x86:literal, $touch_arm:literal, $at:ident, $stride:ident, $count:ident, $nops:ident) => {{
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "2:",
            $touch_x86,
            "mov {k}, {nops}",
            "test {k}, {k}",
            "jz 4f",
            "3:",
            "nop",
            "dec {k}",
            "jnz 3b",
            "4:",
            "add {at}, {stride}",
            "dec {n}",
            "jnz 2b",
            at = inout(reg) $at => _, stride = in(reg) $stride, n = inout(reg) $count => _, nops = in(reg) $nops,
            k = out(reg) _, t = out(reg) _,
            options(nostack, readonly)
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "2:",
            $touch_arm,
            "mov {k}, {nops}",
            "cbz {k}, 4f",
            "3:",
            "nop",
            "subs {k}, {k}, 1",
            "b.ne 3b",
            "4:",
            "add {at}, {at}, {stride}",
            "subs {n}, {n}, 1",
            "b.ne 2b",
            at = inout(reg) $at => _, stride = in(reg) $stride, n = inout(reg) $count => _, nops = in(reg) $nops,
            k = out(reg) _, t = out(reg) _,
            options(nostack, readonly)
        );
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = ($at, $stride, $count, $nops);
    }};
}

/// # Safety
/// Each address is mapped and readable.
#[inline(never)]
unsafe fn loads(at: u64, stride: u64, count: u64, nops: u64) {
    // SAFETY: the caller's addresses are all that is read.
    unsafe { strided!("movzx {t:e}, byte ptr [{at}]", "ldrb {t:w}, [{at}]", at, stride, count, nops) };
}

/// A function of its own for each hint, so that each can be looked at in the machine code.
macro_rules! prefetches {
    ($name:ident, $x86:literal, $arm:literal) => {
        #[inline(never)]
        fn $name(at: u64, stride: u64, count: u64, nops: u64) {
            // SAFETY: prefetches never fault, and change nothing that a program can see.
            unsafe { strided!($x86, $arm, at, stride, count, nops) };
        }
    };
}

prefetches!(prefetches_t0, "prefetcht0 byte ptr [{at}]\nxor {t:e}, {t:e}", "prfm pldl1keep, [{at}]\nmov {t}, xzr");
prefetches!(prefetches_t1, "prefetcht1 byte ptr [{at}]\nxor {t:e}, {t:e}", "prfm pldl2keep, [{at}]\nmov {t}, xzr");
prefetches!(prefetches_t2, "prefetcht2 byte ptr [{at}]\nxor {t:e}, {t:e}", "prfm pldl3keep, [{at}]\nmov {t}, xzr");

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

    use super::*;

    /// Instructions of a function up to its return.
    fn body(function: usize) -> Vec<Instruction> {
        // SAFETY: code of this program; it is longer than what is decoded up to the function's return.
        let code = unsafe { std::slice::from_raw_parts(function as *const u8, 160) };
        let mut decoder = Decoder::with_ip(64, code, function as u64, DecoderOptions::NONE);
        let mut all = Vec::new();
        while decoder.can_decode() {
            let next = decoder.decode();
            all.push(next);
            if next.flow_control() == FlowControl::Return {
                break;
            }
        }
        all
    }

    /// The machine code has the touch once, inside a loop that goes back before it.
    #[test]
    fn the_touch_is_in_the_loop_of_the_machine_code() {
        let touches = |wanted: Mnemonic| move |i: &Instruction| i.mnemonic() == wanted;
        for (function, touch) in [
            (loads as *const () as usize, Mnemonic::Movzx),
            (prefetches_t0 as *const () as usize, Mnemonic::Prefetcht0),
            (prefetches_t1 as *const () as usize, Mnemonic::Prefetcht1),
            (prefetches_t2 as *const () as usize, Mnemonic::Prefetcht2),
        ] {
            let code = body(function);
            let places: Vec<&Instruction> = code.iter().filter(|i| touches(touch)(i)).collect();
            assert_eq!(places.len(), 1, "{touch:?}");
            let at = places[0].ip();
            let around = |i: &&Instruction| {
                i.flow_control() == FlowControl::ConditionalBranch && i.ip() > at && i.near_branch_target() <= at
            };
            assert_eq!(code.iter().filter(around).count(), 1, "{touch:?} is in no loop");
            assert_eq!(code.iter().filter(|i| i.mnemonic() == Mnemonic::Nop && i.len() == 1).count(), 1);
        }
    }

    /// Pages that were never touched get a frame by a load each, so that the system counts the touches.
    #[test]
    fn loads_touch_each_page_once_and_prefetches_none() {
        const PAGES: u64 = 64;
        let faults = || {
            // SAFETY: plain numbers, all zero, filled in by the call.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the structure is ours.
            unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
            usage.ru_minflt
        };
        let area = |bytes: usize| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping wherever the system likes.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            // SAFETY: advice about it: one fault a page.
            unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
            at as u64
        };
        let at = area((8 * PAGES * 4096) as usize);
        let before = faults();
        // SAFETY: prefetches need no mapping.
        unsafe { sweep(BakeBackend::Prefetch(Hint::T0), at, 8 * 4096, PAGES, 3) };
        assert_eq!(faults(), before);
        // SAFETY: all of it is mapped.
        unsafe { sweep(BakeBackend::Load, at, 8 * 4096, PAGES, 3) };
        assert_eq!(faults() - before, PAGES as i64);
        // Nothing is mapped at these addresses.
        // SAFETY: prefetches need no mapping.
        unsafe { sweep(BakeBackend::Prefetch(Hint::T2), 0, 4096, 100, 0) };
    }
}
