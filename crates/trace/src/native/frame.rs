//! The frame around each part of a file: 40 bytes that can be found and checked by themselves.

use super::varint::Bad;

/// First bytes of every frame. The same idea as PNG's: a byte with the top bit set and both line
/// ends show up transfers that are not 8-bit clean.
pub(crate) const MAGIC: [u8; 8] = *b"\x89LKT\r\n\x1a\n";
/// Bytes of a frame before its payload.
pub(crate) const HEADER_LEN: usize = 40;
/// Version of the format that is written.
pub(crate) const VERSION: u8 = 3;
/// The oldest that is read: what it may hold, a newer one may hold too.
const OLDEST_VERSION: u8 = 2;
/// Largest payload; a longer one is damage. 64 Ki accesses with all columns incompressible take 2 MiB, events are
/// cut at 8 MiB.
pub(crate) const MAX_PAYLOAD: usize = 64 << 20;
/// Last bytes of a finished file: offset of the index frame, its CRC-32, this word.
pub(crate) const TRAILER_MAGIC: [u8; 4] = *b"LKTE";
/// Bytes of the trailer.
pub(crate) const TRAILER_LEN: usize = 16;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// `TraceInfo` as JSON.
    Info = 1,
    /// Accesses and events.
    Data = 2,
    /// Where the data frames are; the last frame.
    Index = 3,
}

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Number of the frame in the file, from 0: shows frames that are missing.
    pub(crate) seq: u32,
    pub(crate) payload_len: u32,
    pub(crate) payload_crc: u32,
    /// Recorded accesses in all data frames before.
    pub(crate) first_access: u64,
    /// Recorded accesses in this frame.
    pub(crate) accesses: u32,
}

impl FrameHeader {
    /// The header's bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut b = [0; HEADER_LEN];
        b[..8].copy_from_slice(&MAGIC);
        b[8] = self.kind as u8;
        b[9] = VERSION;
        b[12..16].copy_from_slice(&self.seq.to_le_bytes());
        b[16..20].copy_from_slice(&self.payload_len.to_le_bytes());
        b[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        b[24..32].copy_from_slice(&self.first_access.to_le_bytes());
        b[32..36].copy_from_slice(&self.accesses.to_le_bytes());
        let crc = crc32fast::hash(&b[..36]);
        b[36..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Reads a header from the front of `b`.
    pub(crate) fn parse(b: &[u8]) -> Result<FrameHeader, Bad> {
        if b.len() < HEADER_LEN {
            return Err("cut off in a frame's header");
        }
        if b[..8] != MAGIC {
            return Err("no frame begins here");
        }
        if u32_at(b, 36) != crc32fast::hash(&b[..36]) {
            return Err("checksum of a frame's header differs");
        }
        if !(OLDEST_VERSION..=VERSION).contains(&b[9]) {
            return Err("written in another version of the format than 2 and 3; record it again");
        }
        let kind = match b[8] {
            1 => FrameKind::Info,
            2 => FrameKind::Data,
            3 => FrameKind::Index,
            _ => return Err("a frame of unknown kind"),
        };
        let header = FrameHeader {
            kind,
            seq: u32_at(b, 12),
            payload_len: u32_at(b, 16),
            payload_crc: u32_at(b, 20),
            first_access: u64_at(b, 24),
            accesses: u32_at(b, 32),
        };
        if header.payload_len as usize > MAX_PAYLOAD {
            return Err("a frame is longer than the format allows");
        }
        Ok(header)
    }

    /// Bytes of the whole frame.
    pub(crate) fn frame_len(&self) -> usize {
        HEADER_LEN + self.payload_len as usize
    }
}

/// The trailer's bytes.
pub(crate) fn trailer(index_offset: u64) -> [u8; TRAILER_LEN] {
    let mut b = [0; TRAILER_LEN];
    b[..8].copy_from_slice(&index_offset.to_le_bytes());
    let crc = crc32fast::hash(&b[..8]);
    b[8..12].copy_from_slice(&crc.to_le_bytes());
    b[12..].copy_from_slice(&TRAILER_MAGIC);
    b
}

/// Offset of the index frame, where `b` is an intact trailer.
pub(crate) fn parse_trailer(b: &[u8]) -> Option<u64> {
    let intact = b.len() == TRAILER_LEN && b[12..] == TRAILER_MAGIC && u32_at(b, 8) == crc32fast::hash(&b[..8]);
    intact.then(|| u64_at(b, 0))
}

/// Little-endian word at `i`; the caller knows that it is there.
pub(crate) fn u32_at(b: &[u8], i: usize) -> u32 {
    let mut w = [0; 4];
    w.copy_from_slice(&b[i..i + 4]);
    u32::from_le_bytes(w)
}

/// Little-endian double word at `i`; the caller knows that it is there.
pub(crate) fn u64_at(b: &[u8], i: usize) -> u64 {
    let mut w = [0; 8];
    w.copy_from_slice(&b[i..i + 8]);
    u64::from_le_bytes(w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_stands_as_the_format_says() {
        let fields = FrameHeader {
            kind: FrameKind::Data,
            seq: 0x0403_0201,
            payload_len: 0x0203_0405,
            payload_crc: 0x1413_1211,
            first_access: 0x2827_2625_2423_2221,
            accesses: 0x3433_3231,
        };
        let header = fields.encode();
        assert_eq!(header[..12], *b"\x89LKT\r\n\x1a\n\x02\x03\0\0");
        assert_eq!(header[12..24], [1, 2, 3, 4, 5, 4, 3, 2, 0x11, 0x12, 0x13, 0x14]);
        assert_eq!(header[24..36], *b"\x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34");
        assert_eq!(FrameHeader::parse(&header), Ok(fields));
        assert_eq!(FrameHeader::parse(&header[..39]), Err("cut off in a frame's header"));
    }

    #[test]
    fn versions_2_and_3_are_read() {
        let fields =
            FrameHeader { kind: FrameKind::Data, seq: 0, payload_len: 0, payload_crc: 0, first_access: 0, accesses: 0 };
        let of_version = |version| {
            let mut header = fields.encode();
            header[9] = version;
            let crc = crc32fast::hash(&header[..36]);
            header[36..].copy_from_slice(&crc.to_le_bytes());
            FrameHeader::parse(&header)
        };
        assert_eq!([2, 3].map(of_version), [Ok(fields); 2]);
        for version in [0, 1, 4, 255] {
            assert!(of_version(version).is_err_and(|why| why.contains("than 2 and 3")));
        }
    }

    #[test]
    fn a_payload_has_at_most_64_mib() {
        let fields = |payload_len| FrameHeader {
            kind: FrameKind::Info,
            seq: 0,
            payload_len,
            payload_crc: 0,
            first_access: 0,
            accesses: 0,
        };
        let most = fields(64 << 20);
        assert_eq!(FrameHeader::parse(&most.encode()), Ok(most));
        let more = FrameHeader::parse(&fields((64 << 20) + 1).encode());
        assert_eq!(more, Err("a frame is longer than the format allows"));
    }
}
