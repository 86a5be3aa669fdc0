//! Version 4's stream: version 3's entries of 55 bits, packed by bytes.

use std::fmt::Write;

use super::entry::Entry;
use super::error::InterfaceError;
use super::layout::{join, split};

/// Bytes of an entry: 55 bits and one that stays zero.
pub const PACKED_BYTES: usize = 7;
/// Bytes of Data Register 0 and 1.
const PAIR_BYTES: usize = 8;

/// Both data registers, 0 first.
pub type Pair = [u32; 2];

/// Pairs of registers that the entries fill, without the zeroed pair at the end.
pub fn packed_pairs(entries: usize) -> usize {
    (entries * PACKED_BYTES).div_ceil(PAIR_BYTES)
}

/// The entries as a stream of register pairs, with the zeroed pair that ends it.
///
/// Entries follow one another without gap, low byte first, and fill Data Register 0 before 1, low byte first. (The
/// paper does not say; it is how ARM stores them.) The last pair is filled up with zeros.
///
/// # Errors
/// An entry has no code in version 3; or there is a pair of zeros amid the stream, which takes a section of domain 0
/// (no access).
pub fn pack(entries: &[Entry]) -> Result<Vec<Pair>, InterfaceError> {
    let mut bytes = Vec::with_capacity(packed_pairs(entries.len()) * PAIR_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.encode_v3()?.to_le_bytes()[..PACKED_BYTES]);
    }
    let mut pairs: Vec<Pair> = bytes.chunks(PAIR_BYTES).map(pair_of_bytes).collect();
    if let Some(zero) = pairs.iter().position(|pair| *pair == [0, 0]) {
        let entry = (zero * PAIR_BYTES + PAIR_BYTES - 1) / PACKED_BYTES;
        return Err(InterfaceError::ZeroPair { entry: entry.min(entries.len() - 1) });
    }
    pairs.push([0, 0]);
    Ok(pairs)
}

/// The entries of a stream for an ASID. The pair of zeros that ends it, and what is behind, is not looked at.
///
/// # Errors
/// Bytes are no entry, or there is something behind the last.
pub fn unpack(pairs: &[Pair], asid: u8) -> Result<Vec<Entry>, InterfaceError> {
    let data = pairs.iter().take_while(|pair| **pair != [0, 0]);
    let bytes: Vec<u8> = data.flat_map(|pair| (join(*pair) as u64).to_le_bytes()).collect();
    let mut entries = Vec::with_capacity(bytes.len() / PACKED_BYTES);
    let mut rest = bytes.chunks_exact(PACKED_BYTES);
    for chunk in &mut rest {
        let mut word = [0; PAIR_BYTES];
        word[..PACKED_BYTES].copy_from_slice(chunk);
        // Seven entries and eight fill as many pairs: no entry is all zero, so zeros are no eighth.
        match Entry::decode_v3(u64::from_le_bytes(word), asid)? {
            Some(entry) => entries.push(entry),
            None => break,
        }
    }
    let end = entries.len() * PACKED_BYTES;
    match bytes[end..].iter().position(|byte| *byte != 0) {
        Some(at) => Err(InterfaceError::Padding { byte: end + at }),
        None => Ok(entries),
    }
}

/// Which entry's byte lies where, as boxes, for as many entries as fill whole pairs. `e.b`: byte b of entry e.
pub fn packed_diagram() -> String {
    let byte = |at: usize| format!("{}.{}", at / PACKED_BYTES, at % PACKED_BYTES);
    let mut out = String::new();
    for pair in 0..PACKED_BYTES {
        let register = |half: usize| {
            let first = pair * PAIR_BYTES + half * PAIR_BYTES / 2;
            (first..first + PAIR_BYTES / 2).rev().map(byte).collect::<Vec<_>>().join(" | ")
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "pair {pair}  Data 0 | {} |  Data 1 | {} |", register(0), register(1));
    }
    out
}

/// Up to eight bytes, low first.
fn pair_of_bytes(bytes: &[u8]) -> Pair {
    split(bytes.iter().rev().fold(0, |word: u128, byte| word << 8 | u128::from(*byte)))
}
