//! What a replacement policy is.

/// What all sets of an array remember of their ways.
pub(crate) trait SetPolicy {
    /// A hit in this way.
    fn touch(&mut self, set: usize, way: u32);

    /// The way that a fill uses, touched; `invalid` finds the lowest-numbered invalid way, if any.
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32;

    /// This way is invalid now; `is_valid` tells of the others.
    fn invalidated(&mut self, _set: usize, _way: u32, _is_valid: impl Fn(u32) -> bool) {}

    /// Puts a valid way behind `depth` others of its set in the order of use, or behind all `valid` ones that there are,
    /// if it stands before that. Where there is no such list nothing happens.
    fn set_back(&mut self, _set: usize, _way: u32, _depth: u32, _valid: u32) {}

    /// Brings a set's state nearer to the processor.
    fn prefetch(&self, _set: usize) {}
}
