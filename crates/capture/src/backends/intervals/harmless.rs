//! System calls that a snapshot may make: nobody outside of it can tell.

use std::ops::Range;

use libc::user_regs_struct;

use super::area::AREA_BYTES;
use super::snapshot_process::SnapshotProcess;
use super::translator::Translator;

/// Advice to give memory back, or on huge pages: what changes nothing that is shared.
const ADVICE: [i32; 4] = [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_HUGEPAGE, libc::MADV_NOHUGEPAGE];
const WAKE: u64 = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;

/// What a harmless call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harmless {
    /// It changes the memory map.
    Maps,
    Nothing,
}

/// Whether the call that is about to be made is harmless.
pub(super) fn harmless(
    registers: &user_regs_struct,
    process: &SnapshotProcess,
    translator: &Translator,
) -> Option<Harmless> {
    let range = registers.rdi..registers.rdi.saturating_add(registers.rsi);
    let base = translator.base();
    let is_ours = |range: &Range<u64>| range.start < base + u64::from(AREA_BYTES) && base < range.end;
    let is_free = |range: &Range<u64>| !is_ours(range) && !translator.has_code_in(range.clone());
    let flags = registers.r10 as i32;
    let (flag, fixed) = (|flag| flags & flag != 0, libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE);
    match registers.rax as i64 {
        libc::SYS_brk => Some(Harmless::Maps),
        libc::SYS_mmap if flag(libc::MAP_ANONYMOUS) && flag(libc::MAP_PRIVATE) && (!flag(fixed) || is_free(&range)) => {
            Some(Harmless::Maps)
        }
        libc::SYS_munmap if is_free(&range) => Some(Harmless::Maps),
        libc::SYS_mremap if is_free(&range) && flags & libc::MREMAP_FIXED == 0 => Some(Harmless::Maps),
        libc::SYS_mprotect if is_free(&range) && process.is_free(&range) => Some(Harmless::Maps),
        libc::SYS_madvise if is_free(&range) && ADVICE.contains(&(registers.rdx as i32)) => Some(Harmless::Nothing),
        libc::SYS_futex if registers.rsi == WAKE => Some(Harmless::Nothing),
        libc::SYS_clock_gettime
        | libc::SYS_gettimeofday
        | libc::SYS_time
        | libc::SYS_sched_yield
        | libc::SYS_getrandom
        | libc::SYS_getcpu => Some(Harmless::Nothing),
        _ => None,
    }
}

/// A call that changes the memory map: its result alone is not enough.
pub(super) fn changes_maps(number: i64) -> bool {
    [libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise]
        .contains(&number)
}
