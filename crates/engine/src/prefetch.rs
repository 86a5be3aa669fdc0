//! Software prefetch.

/// Brings an element nearer to the processor, where there is an instruction for that.
#[inline(always)]
pub(crate) fn prefetch<T>(of: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = of.get(at) {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: SSE is part of x86-64, and a prefetch of a valid reference's address changes no state of the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (of, at);
}
