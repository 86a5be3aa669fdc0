//! What the policy asks of the processor and of the kernel, and what it counts.

use super::error::NoKeys;

/// Protection keys, memory, and the calling thread's register. Errors are error numbers.
pub trait Keys {
    /// One key more, 1 to 15: no page carries it, no thread may use what would.
    ///
    /// # Errors
    /// Why there is none.
    fn alloc(&mut self) -> Result<u8, NoKeys>;

    /// Maps zeroed pages that nobody may use. Gives their first address.
    ///
    /// # Errors
    /// As of mmap(2).
    fn map(&mut self, bytes: usize) -> Result<usize, i32>;

    /// Gives a compartment's pages back, all or none.
    ///
    /// # Errors
    /// As of munmap(2).
    fn unmap(&mut self, start: usize, bytes: usize) -> Result<(), i32>;

    /// Pages carry this key, and may be read and written by who has the right; `None`: no key of ours, and nobody may.
    /// For all threads, when it returns.
    ///
    /// # Errors
    /// As of pkey_mprotect(2). Some pages may have changed then.
    fn protect(&mut self, start: usize, bytes: usize, key: Option<u8>) -> Result<(), i32>;

    /// Sets the calling thread's rights: in the bits of `mask`, those of `rights`; two a key, as [`denied`] and
    /// [`granted`] have them.
    fn set_rights(&mut self, mask: u32, rights: u32);
}

/// Both bits of a key in PKRU.
pub(super) fn both(key: u8) -> u32 {
    0b11 << (2 * key)
}

/// A key's bits in PKRU where all access is denied: AD, bit 2k (Intel SDM, volume 3, section 5.6.2).
pub fn denied(key: u8) -> u32 {
    0b01 << (2 * key)
}

/// The same where it may be read, and written unless WD, bit 2k + 1, is set.
pub fn granted(key: u8, writable: bool) -> u32 {
    if writable {
        0
    } else {
        0b10 << (2 * key)
    }
}

/// What happened so far in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// Compartments that there are.
    pub compartments: u64,
    /// Keys that this process got for them.
    pub keys: u64,
    /// Enters and leaves: a write of PKRU each.
    pub switches: u64,
    /// Keys taken from a compartment that goes on.
    pub recycled: u64,
    /// Rounds in which keys were taken, from one compartment or many.
    pub flushes: u64,
    /// Calls of pkey_mprotect, those that failed included.
    pub protect_calls: u64,
    /// Faults told of, on memory whose key the thread had no right to.
    pub key_faults: u64,
    /// Faults told of, on memory that had no key just then.
    pub closed_faults: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PKRU has two bits a key, from bit 0 on: no access, and no write.
    #[test]
    fn each_key_has_its_two_bits() {
        assert_eq!([0, 1, 2, 15].map(denied), [0b1, 0b100, 0b1_0000, 1 << 30]);
        assert_eq!([0, 1, 2, 15].map(|key| granted(key, false)), [0b10, 0b1000, 0b10_0000, 1 << 31]);
        assert_eq!([0, 1, 2, 15].map(|key| granted(key, true)), [0; 4]);
        assert_eq!([0, 1, 2, 15].map(both), [0b11, 0b1100, 0b11_0000, 3 << 30]);
    }
}
