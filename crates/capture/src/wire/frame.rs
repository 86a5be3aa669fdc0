//! The frames of the pipe: their header and kinds.

/// First two bytes of each frame, `LA` big-endian.
pub(super) const MAGIC: u16 = 0x4C41;
/// Bytes of a frame's header.
pub(super) const HEADER: usize = 16;
/// Most bytes of a frame: `PIPE_BUF` on Linux.
pub(super) const FRAME: usize = 4096;
/// Frame kind: access records.
pub(super) const ACCESSES: u16 = 1;
/// Frame kind: one event as JSON.
pub(super) const EVENT: u16 = 2;
/// Frame kind: the process has ended.
pub(super) const END: u16 = 3;
/// Frame kind: a slot of the shared memory holds access records.
pub(super) const SLOT: u16 = 4;

/// The header of a frame.
pub(super) struct WireFrameHeader {
    magic: u16,
    pub(super) kind: u16,
    /// Bytes of the payload.
    pub(super) payload: usize,
    pub(super) process: u32,
    pub(super) thread: u32,
}

impl WireFrameHeader {
    pub(super) fn parse(bytes: &[u8]) -> WireFrameHeader {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        WireFrameHeader { magic: half(0), kind: half(2), payload: word(4) as usize, process: word(8), thread: word(12) }
    }

    /// Why no frame can begin like this.
    pub(super) fn fault(&self) -> Option<String> {
        if self.magic != MAGIC {
            Some(format!("no frame begins here (0x{:04x} in place of 0x{MAGIC:04x})", self.magic))
        } else if self.payload > FRAME - HEADER {
            Some(format!("a frame of {} bytes, the most is {}", self.payload, FRAME - HEADER))
        } else {
            match (self.kind, self.payload) {
                (ACCESSES, n) if n % 16 == 0 => None,
                (EVENT, _) | (END, 0) | (SLOT, 8) => None,
                (kind, n) => Some(format!("a frame of kind {kind} with {n} bytes")),
            }
        }
    }
}

/// Number and bytes of the slot that a payload of kind [`SLOT`] names.
pub(super) fn slot_of(payload: &[u8]) -> (usize, usize) {
    let word =
        |at: usize| payload.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word));
    (word(0) as usize, word(4) as usize)
}
