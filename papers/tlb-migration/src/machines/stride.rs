//! The stride prefetcher of the Cortex-A7.

/// Watches one source of accesses: "the Cortex-A7 is able to detect fixed stride memory access patterns of three or
/// more accesses and prefetches them in the background" (section 4.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stride {
    last: u32,
    stride: u32,
    /// Accesses so far that lie as far apart.
    run: u32,
}

impl Stride {
    /// An access: which address to prefetch. How many ahead is not published: one.
    pub(super) fn access(&mut self, addr: u32) -> Option<u32> {
        let stride = addr.wrapping_sub(self.last);
        // Two accesses have a stride, whatever it is.
        self.run = if self.run >= 2 && stride == self.stride { self.run + 1 } else { 2.min(self.run + 1) };
        (self.last, self.stride) = (addr, stride);
        (self.run >= 3 && stride != 0).then(|| addr.wrapping_add(stride))
    }
}
