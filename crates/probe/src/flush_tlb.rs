//! Empties the TLBs of a CPU, as far as this process's translations go.

use lookaside_host::Mapping;

use crate::metal::MetalError;

const PAGES: usize = 1024;
const PAGE_BYTES: usize = 4096;

/// Puts all translations of this process out of the TLBs of the CPU at hand: where so many pages are unmapped at once,
/// Linux flushes all of them (more than 33 pages on x86: Documentation/arch/x86/tlb.rst; 512 on Arm64: `MAX_DVM_OPS` in
/// its tlbflush.h).
///
/// # Errors
/// There is no memory for these pages.
pub fn flush_tlb() -> Result<(), MetalError> {
    let memory = Mapping::new(PAGES * PAGE_BYTES)
        .map_err(|error| MetalError::Cannot(format!("no memory for {PAGES} pages: {error}")))?;
    // Huge pages would be few. A kernel without them refuses, and has none.
    let _ = memory.advise_huge(false);
    for page in 0..PAGES {
        // SAFETY: a byte of the mapping, which nobody else knows.
        unsafe { memory.start().add(page * PAGE_BYTES).write_volatile(1) };
    }
    Ok(())
}
