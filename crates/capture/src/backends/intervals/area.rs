//! What the recorder puts into a snapshot's memory, by its place there: words that translated code keeps, where the
//! target of an indirect jump is, the code itself, and what it has logged.

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// Where the log's next word goes.
pub(super) const CURSOR: u32 = 0;
/// Registers of the program's that translated code borrows.
pub(super) const SAVED: [u32; 3] = [8, 16, 24];
/// Where an indirect jump goes.
pub(super) const TARGET: u32 = 32;

/// Low bits of a hash that choose where a target is looked for first, and places behind the last for what is found
/// there already.
pub(super) const HASH_PLACES: usize = 1 << 16;
pub(super) const MORE_PLACES: usize = 1 << 12;
const TABLE_BYTES: u32 = ((HASH_PLACES + MORE_PLACES) * 8) as u32;
/// Addresses of the program's code, negated; 0 = none.
pub(super) const KEYS: u32 = PAGE as u32;
/// Where each one's translation is.
pub(super) const PLACES: u32 = KEYS + TABLE_BYTES;

/// Translated code.
pub(super) const CODE: u32 = PLACES + TABLE_BYTES;
/// A large program runs some 100,000 blocks, of some 100 bytes each.
pub(super) const CODE_BYTES: u32 = 16 << 20;

/// The log: words, from here to the end and over it by at most one block's.
pub(super) const LOG: u32 = CODE + CODE_BYTES;
/// Small, so that it stays in the core's caches.
pub(super) const LOG_BYTES: u32 = 1 << 20;
/// More than any block logs.
pub(super) const LOG_MORE: u32 = 1 << 16;
/// The same memory again, but for what lies over the end: each block writes its first word here, and so is stopped
/// before it begins where the log is full.
pub(super) const MIRROR: u32 = LOG + LOG_BYTES + LOG_MORE;
/// From the log to its mirror.
pub(super) const TO_MIRROR: u32 = MIRROR - LOG;

/// Bytes of the file behind it.
pub(super) const FILE_BYTES: u32 = MIRROR;
/// Bytes of the whole, with the part behind the mirror that can't be accessed.
pub(super) const AREA_BYTES: u32 = MIRROR + LOG_BYTES + LOG_MORE;
