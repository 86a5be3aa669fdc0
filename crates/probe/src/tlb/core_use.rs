//! Whether another hardware thread is taken to use the core too.

/// Whose the core is taken to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreUse {
    /// Ours: pages that miss are too many.
    #[default]
    Own,
    /// Somebody else's too, who takes entries: pages that fit miss as well, for a while.
    Shared,
}
