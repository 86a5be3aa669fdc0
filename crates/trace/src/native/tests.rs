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
use super::varint::{put, Bad, Cursor};
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
    // The widest of the bits decides, whatever they add up to.
    assert_eq!(plane(&[1, 1, 0]), packed::BITS_1);
    assert_eq!(plane(&[3, 3, 0]), packed::BITS_2);
    assert_eq!(plane(&[9, 9, 1, 0]), packed::BITS_4);
    assert_eq!(plane(&[16, 16, 1, 0]), packed::STORED);
}

#[test]
fn zstd_is_taken_where_repeats_save_a_sixteenth() {
    // Noise whose end is its beginning once more.
    let repeated = |end: usize| {
        let mut bytes: Vec<u8> = noise(10_000 - end, 8).iter().map(|&v| v as u8).collect();
        bytes.extend_from_within(..end);
        plane(&bytes)
    };
    assert_eq!((repeated(500), repeated(800)), (packed::STORED, packed::ZSTD));
    // Codes for literals would save three bits of eight, and cost time to read.
    assert_eq!(plane(&noise(9_997, 5).iter().map(|&v| v as u8).collect::<Vec<u8>>()), packed::STORED);
}

#[test]
fn planes_and_columns_are_written_as_the_format_says() {
    let mut packer = Packer::new().unwrap();
    let mut written = |write: &dyn Fn(&mut Packer, &mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut packer, &mut out);
        out
    };
    let bits = 1 | 2 << 2 | 3 << 4;
    assert_eq!(written(&|p, out| p.plane(&[1, 2, 3, 0, 1], out)), [packed::BITS_2, bits, 1]);
    assert_eq!(written(&|p, out| p.bytes(&[7; 5], out)), [5, packed::CONSTANT, 7]);
    assert_eq!(written(&|p, out| p.bytes(&[], out)), [0]);
    // 255 and above have a byte of 255, and stand behind it with what is more.
    let smalls = [packed::STORED, 255, 254, 255, 3, packed::STORED, 0, 0x81, 1];
    assert_eq!(written(&|p, out| p.smalls(&[255, 254, 255 + 129], out)), smalls);
    // Two of 400 numbers are longer than a byte: 7 places on, then 93, with what lacks of each.
    let mut values = [5u64; 400];
    (values[7], values[100]) = (0x1205, 0x3405);
    let unsigned = [1, packed::CONSTANT, 5, 4, packed::STORED, 7, 0x12, 93, 0x34];
    assert_eq!(written(&|p, out| p.values(&values, Sign::Unsigned, out)), unsigned);
    values[100] = 5u64.wrapping_sub(0x300);
    let signed = [1, packed::CONSTANT, 5, 4, packed::STORED, 7, 0x24, 93, 5];
    assert_eq!(written(&|p, out| p.values(&values, Sign::Signed, out)), signed);
    assert_eq!(written(&|p, out| p.indices(&[0, 255], out)), [1, packed::STORED, 0, 255]);
    assert_eq!(written(&|p, out| p.indices(&[256, 256, 1], out)), [PAIRS, packed::BITS_1, 0b1_1010]);
}

#[test]
fn planes_and_columns_that_nobody_writes_are_refused() {
    let mut unpacker = Unpacker::new().unwrap();
    let mut packed = Vec::new();
    Packer::new().unwrap().plane(&[1, 2, 3].repeat(1000), &mut packed);
    assert_eq!(packed[0], packed::ZSTD);
    for (n, expected) in [(3000, Ok(())), (3001, Err("a column does not decompress to its length"))] {
        assert_eq!(unpacker.plane(&mut Cursor::new(&packed), n, &mut Vec::new()), expected);
    }

    let mut values = |planes: &[u8], exceptions: &[u8]| -> Result<Vec<u64>, Bad> {
        let mut bytes = planes.to_vec();
        put(&mut bytes, exceptions.len() as u64);
        bytes.push(packed::STORED);
        bytes.extend_from_slice(exceptions);
        let (mut values, mut out) = (Values::new(), Vec::new());
        unpacker.values(&mut Cursor::new(&bytes), 2, Sign::Unsigned, &mut values)?;
        values.copy(0, 2, &mut out);
        Ok(out)
    };
    let longest = [&[0xff; 9][..], &[1]].concat();
    let both = [&[0][..], &longest, &[1], &longest].concat();
    assert_eq!(values(&[0], &both), Ok(vec![u64::MAX; 2]));
    assert_eq!(values(&[0], &[1, 5]), Ok(vec![0, 5]));
    let eight = [&[8][..], &[packed::CONSTANT, 7].repeat(8)].concat();
    for (planes, exceptions) in
        [(&[0][..], &[2, 5][..]), (&[0], &[1, 5, 1, 5]), (&[0], &[0, 5, 0, 5]), (&eight, &[1, 5])]
    {
        assert_eq!(values(planes, exceptions), Err("an exception is outside its column"), "{exceptions:?}");
    }
    assert_eq!(values(&[10], &[]), Err("a column of numbers of unknown width"));

    let mut indices = |bytes: &[u8], n, limit| unpacker.indices(&mut Cursor::new(bytes), n, limit, &mut Vec::new());
    assert_eq!(indices(&[1, packed::CONSTANT, 3], 4, 4), Ok(()));
    assert_eq!(indices(&[1, packed::CONSTANT, 3], 4, 3), Err("an index is outside its table"));
    assert_eq!(indices(&[1], 0, 0), Ok(()));
    assert_eq!(indices(&[0], 4, 4), Err("an index column of unknown width"));
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
    let shorts = back.shorts(0, values.len());
    assert_eq!(shorts.is_some(), matches!(out[0], 0..=2 | PAIRS));
    if let Some((low, exceptions)) = shorts {
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
    assert_eq!(column(&[], Sign::Signed), 0);
    // Pairs are kept where they halve the column, though planes are shorter; and where planes are longer. What was
    // written before is no part of that.
    for values in [(0..n as u64).map(|i| 256 + i % 100).collect(), noise(n, 16)] {
        let mut out = vec![0; 4 * n];
        Packer::new().unwrap().values(&values, Sign::Unsigned, &mut out);
        assert_eq!(out[4 * n], PAIRS);
    }
}

/// One in 16 may be longer than the others; one in 200 where that leaves no more than 16 bits.
#[test]
fn a_few_long_numbers_stand_beside_a_column_of_any_width() {
    let n = 3200;
    for (sign, width) in [Sign::Unsigned, Sign::Signed].into_iter().flat_map(|sign| (0..8usize).map(move |w| (sign, w)))
    {
        let (most, next) = if width < 2 { (16, 2) } else { (200, 8) };
        for (long, expected) in [(most, width), (most + 1, next)] {
            let mut values = if width == 0 { vec![0; n] } else { noise(n, 8 * width as u32 - 1) };
            // The top bit of what stays in the column is set in some.
            for (i, v) in values.iter_mut().step_by(n / long).take(long).enumerate() {
                *v = (i as u64 + 1) << 56 | (i as u64 % 2) << (8 * width).saturating_sub(1);
            }
            if sign == Sign::Signed {
                values.iter_mut().step_by(3).for_each(|v| *v = v.wrapping_neg());
            }
            let form = column(&values, sign);
            let form = if form == PAIRS { 2 } else { usize::from(form) };
            assert_eq!(form, expected, "{sign:?}, {long} beside {width} bytes");
        }
    }
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
    encoder.enter(b.process, b.thread, true);
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
    // Instructions that stay where they are, with loads anywhere in one array or near the last ones in two.
    let mut at = [1 << 50, 1 << 60];
    let mut between = |near: bool| {
        block(n, 2, |i, s| match i % 6 {
            place @ (0 | 3) if near => {
                at[place / 3] += s.below(200);
                (place as u64, at[place / 3], 0)
            }
            place @ (0 | 3) => (place as u64, 1 << 50 | s.below(1 << 20) << 12, 0),
            place => (place as u64, 0x40_1001 + place as u64 * 4, 0),
        })
    };
    assert_eq!([true, false].map(|near| way(&between(near)).mode), [mode::MOVING_ENTRY, mode::MOVING_BASE]);
    // Anywhere in a small range, and one stream by instructions at random.
    assert_eq!(way(&block(n, 0, |_, s| (0, 1 << 40 | s.next_u64() >> 48, 0))).mode, mode::BASE);
    assert_eq!(way(&block(n, 2, |i, s| (s.next_u64() % 50, i as u64 * 64, 0))).mode, mode::DELTA);
    // In one page, pages part nothing: of two ways that are as long the first is taken.
    let page = block(n, 2, |i, _| (i as u64 % 8, i as u64 % 8 * 512 + i as u64 / 8 * 8 % 512, 0));
    assert_eq!((way(&page).mode, way(&page).split), (mode::ENTRY, Split::Site));
    // Nothing but repeats, which are noise.
    assert!(!way(&block(1000, 4, |i, s| (0, i as u64, s.next_u64() as u32))).table_repeats);
}

/// Of pages anywhere in 2^16 beside instructions that stay, values have two bytes: their own low bits are left out, though
/// the instructions' addresses are odd.
#[test]
fn what_moves_is_written_in_units_of_its_own() {
    let n = 30_000;
    let pages = block(n, 2, |i, s| match i % 3 {
        0 => (0, 1 << 50 | s.below(1 << 16) << 12, 0),
        place => (place as u64, 0x40_1001 + place as u64 * 4, 0),
    });
    for mode in [mode::MOVING_BASE, mode::MOVING_ENTRY] {
        let mut encoder = ChunkEncoder::new().unwrap();
        encoder.stay(AccessEncoding { mode, split: Split::Site, table_repeats: false });
        encoder.enter(1, 2, true);
        encoder.accesses_of(&pages, 0, n);
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        // A distance between two has one bit more than either.
        let most = if mode == mode::MOVING_BASE { 2 } else { 3 } * n / 3;
        assert!(payload.len() < most + 200, "{mode}: {}", payload.len());
    }
}

#[test]
fn a_way_is_kept_for_sixteen_chunks() {
    let mut encoder = ChunkEncoder::new().unwrap();
    let strides = block(400, 2, |i, _| (i as u64 % 8, ((i as u64 % 8) << 33) + (i as u64 / 8) * 8, 0));
    let worse = AccessEncoding { mode: mode::DELTA, split: Split::Site, table_repeats: true };
    encoder.stay(worse);
    for _ in 1..16 {
        assert_eq!(chunk(&mut encoder, &strides), worse);
    }
    assert_eq!(chunk(&mut encoder, &strides).mode, mode::ENTRY);
}

#[test]
fn entries_of_a_split_are_used_four_times_each() {
    let mut encoder = ChunkEncoder::new().unwrap();
    let by_page = AccessEncoding { mode: mode::ENTRY, split: Split::Page, table_repeats: false };
    for (pages, taken) in [(25, true), (26, false)] {
        encoder.stay(by_page);
        let way = chunk(&mut encoder, &block(100, 0, |i, _| (0, (i as u64 % pages) << 12, 0)));
        assert_eq!(way == by_page, taken, "{pages} pages, {way:?}");
    }
}

/// A fetch's first address is told from its instruction's, less what lines leave out.
#[test]
fn fetches_of_lines_come_back() {
    let mut encoder = ChunkEncoder::new().unwrap();
    let ip = |i: usize| 0x40_1003 + i as u64 % 50 * 33;
    let lines = block(1000, 3, |i, _| (ip(i), ip(i) & !63, 0));
    assert!(lines.kind.iter().all(|&kind| kind == Kind::Fetch));
    encoder.stay(AccessEncoding { mode: mode::ENTRY, split: Split::Site, table_repeats: true });
    assert_eq!(chunk(&mut encoder, &lines).mode, mode::ENTRY);
}

#[test]
fn each_way_writes_anything() {
    let mut encoder = ChunkEncoder::new().unwrap();
    // The first chunk tries all ways.
    chunk(&mut encoder, &block(100, 0, |i, _| (0, i as u64, 0)));
    for mode in [mode::BASE, mode::DELTA, mode::ENTRY, mode::MOVING_ENTRY, mode::MOVING_BASE] {
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

/// What a table has room for, less each kind with each size: those of accesses without an instruction.
const SITES: usize = 65_536 - 3 * 256;

#[test]
fn a_chunk_closes_before_it_has_too_many_sites() {
    // Instruction addresses of 54 bits and of all.
    for high in [0, 0xffff_8000_0000_0000] {
        let mut encoder = ChunkEncoder::new().unwrap();
        let b = block(CHUNK_ACCESSES, 2, |i, _| (high | (i as u64 * 3), 64, 0));
        encoder.enter(1, 2, true);
        let taken = encoder.accesses_of(&b, 0, b.len());
        assert_eq!((taken, encoder.is_full()), (SITES, true));
        // What is taken again and again counts once.
        let mut encoder = ChunkEncoder::new().unwrap();
        let b = block(CHUNK_ACCESSES, 2, |i, _| (i as u64 % 5000, 64, 0));
        encoder.enter(1, 2, true);
        assert_eq!(encoder.accesses_of(&b, 0, b.len()), b.len());
    }
    // One instruction that does two things, or one of two sizes, is two.
    let mut kinds = block(CHUNK_ACCESSES, 3, |i, _| (i as u64 / 2 * 9, 64, 0));
    let mut sizes = kinds.clone();
    kinds.kind.iter_mut().step_by(2).for_each(|kind| *kind = Kind::Store);
    sizes.size.iter_mut().step_by(2).for_each(|size| *size = 8);
    for b in [kinds, sizes] {
        let mut encoder = ChunkEncoder::new().unwrap();
        encoder.enter(1, 2, true);
        assert_eq!(encoder.accesses_of(&b, 0, b.len()), SITES);
    }
}
