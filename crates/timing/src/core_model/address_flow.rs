//! Where the addresses of accesses come from.

/// How many registers there are, the one that holds nothing included.
pub(super) const REGISTERS: usize = 16;

/// A place that values of loads go to and addresses come from: a name for the flow, not one of the processor's
/// registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRegister(u8);

impl FlowRegister {
    /// Holds nothing: what comes from it is at hand.
    pub const NONE: Self = Self(0);

    /// One of 15, numbered from 1.
    ///
    /// # Panics
    /// There is no such number. In a `const` that is an error of the compiler.
    pub const fn new(number: u8) -> Self {
        assert!(number > 0 && (number as usize) < REGISTERS, "registers have the numbers 1 to 15");
        Self(number)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What an access's address is computed from, and where its value goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressFlow {
    /// The address is computed from the value that came into this register last, and can't be used before.
    pub from: FlowRegister,
    /// What is loaded goes into this register. Of a store: what comes from the register waits until its line is there.
    pub into: FlowRegister,
}

impl AddressFlow {
    /// The address is at hand, and no address comes from the value.
    pub const FREE: Self = Self { from: FlowRegister::NONE, into: FlowRegister::NONE };
    /// Each access waits for the one before: where nothing is known of the flow, the longest that it can take.
    pub const CHAINED: Self = Self { from: FlowRegister::new(1), into: FlowRegister::new(1) };
}
