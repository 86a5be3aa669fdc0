//! Every way of packing comes back, and every one is chosen where it should be.

use lookaside_stats::SplitMix64;
use proptest::collection::vec;
use proptest::prelude::*;

use super::column::{Sign, Values};
use super::columns::mode;
use super::decode::ChunkDecoder;
use super::encode::{AccessEncoding, ChunkEncoder};
use super::limits::CHUNK_ACCESSES;
use super::stream::{packed, Packer, Unpacker, PAIRS};
use super::table::{Meta, Split};
use super::varint::Cursor;
use crate::{Block, Kind};

fn noise(n: usize, bits: u32) -> Vec<u64> {
    let mut rng = SplitMix64::new(u64::from(bits) + 1);
    (0..n).map(|_| rng.next_u64() >> (64 - bits)).collect()
}

/// Packs and unpacks a plane; returns how it was packed.
fn plane(bytes: &[u8]) -> u8 {
    let (mut out, mut back) = (Vec::new(), Vec::new());
    Packer::new().unwrap().plane(bytes, &mut out);
    let mut c = Cursor::new(&out);
    Unpacker::new().unwrap().plane(&mut c, bytes.len(), &mut back).unwrap();
    assert!(c.is_empty() && back == bytes);
    out[0]
}

#[test]
fn each_packing_of_a_plane_is_chosen() {
    // Not a multiple of eight: the last byte of bits is not full.
    let bytes = |bits| noise(9_997, bits).iter().map(|&v| v as u8).collect::<Vec<u8>>();
    assert_eq!(plane(&bytes(8)), packed::STORED);
    assert_eq!(plane(&bytes(1)), packed::BITS_1);
    assert_eq!(plane(&bytes(2)), packed::BITS_2);
    assert_eq!(plane(&bytes(4)), packed::BITS_4);
    assert_eq!(plane(&[7; 9_997]), packed::CONSTANT);
    assert_eq!(plane(&(0..9_997).map(|i| (i % 100) as u8).collect::<Vec<u8>>()), packed::ZSTD);
}

/// Packs and unpacks a column, whole and in two ranges; returns its form.
fn column(values: &[u64], sign: Sign) -> u8 {
    let mut out = Vec::new();
    Packer::new().unwrap().values(values, sign, &mut out);
    let mut unpacker = Unpacker::new().unwrap();
    let half = values.len() / 2;
    for ranges in [&[0, values.len()][..], &[0, half, values.len()]] {
        let (mut c, mut back, mut part, mut all) = (Cursor::new(&out), Values::new(), vec![], vec![]);
        unpacker.values(&mut c, values.len(), sign, &mut back).unwrap();
        assert!(c.is_empty());
        for r in ranges.windows(2) {
            back.copy(r[0], r[1], &mut part);
            all.extend_from_slice(&part);
        }
        assert_eq!(all, values);
    }
    // The other way to read: low parts and what they lack.
    let mut back = Values::new();
    unpacker.values(&mut Cursor::new(&out), values.len(), sign, &mut back).unwrap();
    if let Some((low, exceptions)) = back.shorts(0, values.len()) {
        let extend = |v: u16| if sign == Sign::Signed { v as i16 as u64 } else { u64::from(v) };
        let mut all: Vec<u64> = low.iter().map(|&v| extend(v)).collect();
        exceptions.iter().for_each(|&(at, more)| all[at as usize] = all[at as usize].wrapping_add(more));
        assert_eq!(all, values);
    }
    out[0]
}

#[test]
fn each_form_of_a_column_is_chosen() {
    let n = 10_000;
    for sign in [Sign::Unsigned, Sign::Signed] {
        assert_eq!(column(&vec![0; n], sign), 0);
        assert_eq!(column(&noise(n, 7), sign), 1);
        // Noise below a byte of few values, where planes are shorter; then repeats, where pairs are.
        assert_eq!(column(&noise(n, 11), sign), 2);
        assert_eq!(column(&noise(50, 15).repeat(n / 50), sign), PAIRS);
        for width in 3..=8 {
            assert_eq!(column(&noise(n, 8 * width - 1), sign), width as u8);
        }
        let mut rare = noise(n, 15).iter().map(|v| v % 100).collect::<Vec<_>>();
        for at in [0, 17, n / 2, n - 1] {
            rare[at] = u64::MAX >> 1;
        }
        assert_eq!(column(&rare, sign), 1);
    }
    assert_eq!(column(&[u64::MAX; 100], Sign::Signed), 1);
    assert_eq!(column(&[u64::MAX; 100], Sign::Unsigned), 8);
}

proptest! {
    #[test]
    fn columns_come_back(raw in vec((any::<u64>(), 0u32..64), 0..400), most in 0u32..64) {
        let unsigned: Vec<u64> = raw.iter().map(|&(v, s)| v >> s.max(most)).collect();
        let signed: Vec<u64> = raw.iter().map(|&(v, s)| (v as i64 >> s.max(most)) as u64).collect();
        column(&unsigned, Sign::Unsigned);
        column(&signed, Sign::Signed);
        column(&signed, Sign::Unsigned);
    }

    #[test]
    fn small_numbers_come_back(raw in vec((any::<u64>(), 0u32..64), 0..400)) {
        let values: Vec<u64> = raw.iter().map(|&(v, s)| v >> s).collect();
        let (mut out, mut back) = (Vec::new(), Vec::new());
        Packer::new().unwrap().smalls(&values, &mut out);
        let mut c = Cursor::new(&out);
        Unpacker::new().unwrap().smalls(&mut c, values.len(), &mut back).unwrap();
        prop_assert!(c.is_empty());
        prop_assert_eq!(back, values);
    }

    #[test]
    fn four_entries_at_once_are_as_one_by_one(raw in any::<[(u8, u8, u32); 4]>()) {
        let kind = |k: u8| [Kind::Load, Kind::Store, Kind::Fetch][usize::from(k % 3)];
        let columns = Meta::columns(raw.map(|(k, size, repeat)| Meta::new(kind(k), size, repeat)));
        prop_assert_eq!(columns, (raw.map(|r| kind(r.0)), raw.map(|r| r.1), raw.map(|r| r.2)));
    }
}

/// Accesses with the columns that `flags` names: 1 size, 2 instruction, 4 repeats.
fn block(n: usize, flags: u8, mut access: impl FnMut(usize, &mut SplitMix64) -> (u64, u64, u32)) -> Block {
    let mut rng = SplitMix64::new(5);
    let mut b = Block { process: 1, thread: 2, ..Block::default() };
    for i in 0..n {
        let (ip, addr, repeat) = access(i, &mut rng);
        b.push([Kind::Load, Kind::Store, Kind::Fetch][(ip % 3) as usize], addr);
        if flags & 1 != 0 {
            b.size.push((ip % 9) as u8);
        }
        if flags & 2 != 0 {
            b.ip.push(ip);
        }
        if flags & 4 != 0 {
            b.repeat.push(repeat);
        }
    }
    b
}

/// Packs `b` as one chunk, unpacks it, compares; returns the way it was written.
fn chunk(encoder: &mut ChunkEncoder, b: &Block) -> AccessEncoding {
    encoder.enter(b.process, b.thread);
    assert_eq!(encoder.accesses_of(b, 0, b.len()), b.len());
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    let mut decoder = ChunkDecoder::new().unwrap();
    decoder.load(&payload, b.len() as u32).unwrap();
    let (mut back, mut part) = (Block { process: b.process, thread: b.thread, ..Block::default() }, Block::default());
    while decoder.next_block(&mut part) {
        back.addr.extend_from_slice(&part.addr);
        back.kind.extend_from_slice(&part.kind);
        back.size.extend_from_slice(&part.size);
        back.ip.extend_from_slice(&part.ip);
        back.repeat.extend_from_slice(&part.repeat);
    }
    assert!(back == *b);
    encoder.way()
}

#[test]
fn each_way_of_writing_is_chosen() {
    let n = 40_000;
    let way = |b: &Block| chunk(&mut ChunkEncoder::new().unwrap(), b);
    // Loops over a few instructions, each with its own stride.
    let strides = block(n, 7, |i, _| (i as u64 % 8, ((i as u64 % 8) << 33) + (i as u64 / 8) * 8, i as u32 % 8));
    assert_eq!(way(&strides), AccessEncoding { mode: mode::ENTRY, split: Split::Site, table_repeats: true });
    // The same, the repeats noise.
    let noisy = block(n, 7, |i, s| (i as u64 % 8, ((i as u64 % 8) << 33) + (i as u64 / 8) * 8, s.next_u64() as u32));
    assert_eq!(way(&noisy), AccessEncoding { mode: mode::ENTRY, split: Split::Site, table_repeats: false });
    // One instruction with a stream in each of many far pages, taken in turn at random.
    let mut at = [0u64; 64];
    let pages = block(n, 2, |_, s| {
        let page = s.next_u64() as usize % 64;
        at[page] = (at[page] + 8) % 4096;
        (3, (page as u64 * page as u64) << 40 | at[page], 0)
    });
    assert_eq!(way(&pages).split, Split::Page);
    // A few addresses at random, many of them in one page.
    let far: Vec<u64> = noise(200, 12).iter().enumerate().map(|(i, v)| (i as u64 % 20) << 40 | v).collect();
    let few = block(n, 2, |_, s| (3, far[s.next_u64() as usize % far.len()], 0));
    assert_eq!(way(&few).split, Split::Address);
    // Anywhere in a small range, and one stream by instructions at random.
    assert_eq!(way(&block(n, 0, |_, s| (0, 1 << 40 | s.next_u64() >> 48, 0))).mode, mode::BASE);
    assert_eq!(way(&block(n, 2, |i, s| (s.next_u64() % 50, i as u64 * 64, 0))).mode, mode::DELTA);
}

#[test]
fn each_way_writes_anything() {
    let mut encoder = ChunkEncoder::new().unwrap();
    // The first chunk tries all ways.
    chunk(&mut encoder, &block(100, 0, |i, _| (0, i as u64, 0)));
    for mode in [mode::BASE, mode::DELTA, mode::ENTRY] {
        for split in [Split::Site, Split::Page, Split::Address] {
            for table_repeats in [false, true] {
                for flags in 0..8 {
                    for n in [1, 3, 40_001] {
                        // Wild but not too many entries; now and then far off.
                        let b = block(n, flags, |_, s| {
                            let far = if s.next_u64().is_multiple_of(90) { (s.next_u64() % 40) << 50 } else { 0 };
                            (s.next_u64() % 30 * 7, far | (s.next_u64() % 50 * 2048), s.next_u64() as u32 % 3)
                        });
                        let way = AccessEncoding { mode, split, table_repeats };
                        encoder.stay(way);
                        chunk(&mut encoder, &b);
                    }
                }
            }
        }
    }
}

#[test]
fn a_chunk_closes_before_it_has_too_many_sites() {
    // Instruction addresses of 54 bits and of all.
    for high in [0, 0xffff_8000_0000_0000] {
        let mut encoder = ChunkEncoder::new().unwrap();
        let b = block(CHUNK_ACCESSES, 2, |i, _| (high | (i as u64 * 3), 64, 0));
        encoder.enter(1, 2);
        let taken = encoder.accesses_of(&b, 0, b.len());
        assert!(taken > CHUNK_ACCESSES / 4 && taken < 1 << 16 && encoder.is_full());
        // What is taken again and again counts once.
        let mut encoder = ChunkEncoder::new().unwrap();
        let b = block(CHUNK_ACCESSES, 2, |i, _| (i as u64 % 5000, 64, 0));
        encoder.enter(1, 2);
        assert_eq!(encoder.accesses_of(&b, 0, b.len()), b.len());
    }
}
