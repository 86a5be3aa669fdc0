//! Byte streams inside a chunk: stored as they are, as one repeated byte, as few bits, or through zstd,
//! whichever pays; and columns of numbers made of them.

use super::column::{Sign, Values};
use super::varint::{put, Bad, Cursor};

/// Ways to pack a plane. Part of the format: never renumber.
pub(crate) mod packed {
    /// As it is.
    pub(crate) const STORED: u8 = 0;
    /// One byte, as often as needed.
    pub(crate) const CONSTANT: u8 = 1;
    /// One zstd frame.
    pub(crate) const ZSTD: u8 = 2;
    /// One, two or four bits a byte.
    pub(crate) const BITS_1: u8 = 3;
    pub(crate) const BITS_2: u8 = 4;
    pub(crate) const BITS_4: u8 = 5;
}

/// A column's form up to here: so many planes. Above: pairs of bytes in one plane.
const MAX_WIDTH: u8 = 8;
pub(crate) const PAIRS: u8 = 9;

/// zstd has to save a sixteenth, or the stream is written without: what it saves below that costs more
/// time in decoding than it does in reading.
const WORTH_NUM: usize = 15;
const WORTH_DEN: usize = 16;

/// On traces of `sort`, `ls` and a compiler a sixth larger than at 1 and a tenth faster to read: literals are
/// stored as they are.
const LEVEL: i32 = -1;
/// Shortest repeat that zstd looks for. Loops of programs repeat at length; chance repeats in noise
/// are shorter, save next to nothing and cost the most time in decoding.
const MIN_MATCH: u32 = 7;

/// A value column keeps a byte only if more than one value in this many needs it; the rest are
/// exceptions. Each of these costs a reader as much time as some twenty other values: so up to 16 bits, which are read
/// in one pass, they have to be rare. Chosen by size and speed on traces of `ls`, `sort` and a compiler.
const EXCEPTION_SHARE: usize = 16;
const SHORT_EXCEPTION_SHARE: usize = 200;

/// What does not fit a byte of a column of small numbers stands behind it.
const ESCAPE: u64 = 0xff;

/// Packs streams; keeps zstd's working memory.
pub(crate) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    temp: Vec<u8>,
    plane: Vec<u8>,
    shorts: Vec<u16>,
    trial: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut zstd = zstd::bulk::Compressor::new(LEVEL)?;
        zstd.set_parameter(zstd::zstd_safe::CParameter::MinMatch(MIN_MATCH))?;
        Ok(Packer { zstd, temp: Vec::new(), plane: Vec::new(), shorts: Vec::new(), trial: Vec::new() })
    }

    /// A stream whose length the reader knows: how it is packed, and for zstd the packed length.
    pub(crate) fn plane(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(&first) = bytes.first() else { return };
        let all = bytes.iter().fold(0, |m, &b| m | b);
        if bytes.iter().all(|&b| b == first) {
            out.extend_from_slice(&[packed::CONSTANT, first]);
            return;
        }
        let bits = match all {
            0..=1 => 1,
            2..=3 => 2,
            4..=15 => 4,
            _ => 8,
        };
        let worth = (bytes.len() * bits).div_ceil(8) * WORTH_NUM / WORTH_DEN;
        self.temp.resize(zstd::zstd_safe::compress_bound(bytes.len()), 0);
        // A failure to compress (no memory for it) is no reason to lose data: it is written without.
        match self.zstd.compress_to_buffer(bytes, &mut self.temp[..]) {
            Ok(n) if n < worth => {
                out.push(packed::ZSTD);
                put(out, n as u64);
                out.extend_from_slice(&self.temp[..n]);
            }
            _ => match bits {
                1 => pack_bits::<1>(packed::BITS_1, bytes, out),
                2 => pack_bits::<2>(packed::BITS_2, bytes, out),
                4 => pack_bits::<4>(packed::BITS_4, bytes, out),
                _ => {
                    out.push(packed::STORED);
                    out.extend_from_slice(bytes);
                }
            },
        }
    }

    /// A stream with its length in front.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        put(out, bytes.len() as u64);
        self.plane(bytes, out);
    }

    /// A column of numbers most of which fit a byte: a plane of these, and a stream of what the others are more.
    pub(crate) fn smalls(&mut self, values: &[u64], out: &mut Vec<u8>) {
        let mut plane = std::mem::take(&mut self.plane);
        plane.clear();
        plane.extend(values.iter().map(|&v| v.min(ESCAPE) as u8));
        self.plane(&plane, out);
        plane.clear();
        values.iter().filter(|&&v| v >= ESCAPE).for_each(|&v| put(&mut plane, v - ESCAPE));
        self.bytes(&plane, out);
        self.plane = plane;
    }

    /// A column of numbers: their low bytes, and exceptions (position, what is missing) for the few that are longer.
    /// Signed ones are as many bytes long as two's complement needs.
    pub(crate) fn values(&mut self, values: &[u64], sign: Sign, out: &mut Vec<u8>) {
        let mut by_len = [0usize; 9];
        for &v in values {
            by_len[sign.bytes_of(v)] += 1;
        }
        let mut width = 8;
        let mut longer = 0;
        while width > 0 {
            let share = if width > 2 { EXCEPTION_SHARE } else { SHORT_EXCEPTION_SHARE };
            if (longer + by_len[width]) * share > values.len() {
                break;
            }
            longer += by_len[width];
            width -= 1;
        }
        let mut plane = std::mem::take(&mut self.plane);
        if width == 2 {
            let mut shorts = std::mem::take(&mut self.shorts);
            shorts.clear();
            shorts.extend(values.iter().map(|&v| v as u16));
            self.shorts(&shorts, &mut plane, out);
            self.shorts = shorts;
        } else {
            out.push(width as u8);
            for i in 0..width {
                plane.clear();
                plane.extend(values.iter().map(|v| (v >> (8 * i)) as u8));
                self.plane(&plane, out);
            }
        }
        plane.clear();
        if longer > 0 {
            let mut last = 0;
            for (i, &v) in values.iter().enumerate().filter(|(_, &v)| sign.bytes_of(v) > width) {
                put(&mut plane, (i - last) as u64);
                // Not zero, so the width is below 8.
                put(&mut plane, sign.pack(v.wrapping_sub(sign.extend(v, width)), width));
                last = i;
            }
        }
        self.bytes(&plane, out);
        self.plane = plane;
    }

    /// A column of 16-bit numbers, without exceptions.
    pub(crate) fn indices(&mut self, indices: &[u16], out: &mut Vec<u8>) {
        let mut plane = std::mem::take(&mut self.plane);
        if indices.iter().fold(0, |m, &i| m | i) > 0xff {
            self.shorts(indices, &mut plane, out);
        } else {
            out.push(1);
            plane.clear();
            plane.extend(indices.iter().map(|&i| i as u8));
            self.plane(&plane, out);
        }
        self.plane = plane;
    }

    /// 16-bit numbers as pairs of bytes, where zstd sees each repeat once; or, where there is little to
    /// see and that is shorter, as two planes.
    fn shorts(&mut self, shorts: &[u16], plane: &mut Vec<u8>, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(PAIRS);
        // Not cleared: what was there need not be zeroed to be overwritten.
        plane.resize(2 * shorts.len(), 0);
        plane.as_chunks_mut().0.iter_mut().zip(shorts).for_each(|(pair, v)| *pair = v.to_le_bytes());
        self.plane(plane, out);
        if out.len() - start <= shorts.len() {
            return;
        }
        let mut trial = std::mem::take(&mut self.trial);
        trial.clear();
        trial.push(2);
        for shift in [0, 8] {
            plane.clear();
            plane.extend(shorts.iter().map(|v| (v >> shift) as u8));
            self.plane(plane, &mut trial);
        }
        if trial.len() < out.len() - start {
            out.truncate(start);
            out.extend_from_slice(&trial);
        }
        self.trial = trial;
    }
}

/// The low `BITS` bits of each byte, first ones lowest.
fn pack_bits<const BITS: usize>(name: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(name);
    out.extend(bytes.chunks(8 / BITS).map(|c| c.iter().enumerate().fold(0, |m, (i, b)| m | b << (i * BITS))));
}

/// Undoes [`pack_bits`] for `out.len()` bytes.
fn unpack_bits<const BITS: usize>(packed: &[u8], out: &mut [u8]) {
    for (c, &p) in out.chunks_mut(8 / BITS).zip(packed) {
        for (i, b) in c.iter_mut().enumerate() {
            *b = p >> (i * BITS) & ((1 << BITS) - 1);
        }
    }
}

/// Unpacks streams; keeps zstd's working memory.
pub(crate) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    temp: Vec<u8>,
    planes: [Vec<u8>; 2],
}

impl Unpacker {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Unpacker { zstd: zstd::bulk::Decompressor::new()?, temp: Vec::new(), planes: Default::default() })
    }

    /// Reads a stream of `n` bytes.
    pub(crate) fn plane(&mut self, c: &mut Cursor, n: usize, out: &mut Vec<u8>) -> Result<(), Bad> {
        // Not cleared: what was there need not be zeroed to be overwritten.
        out.resize(n, 0);
        if n == 0 {
            return Ok(());
        }
        match c.byte()? {
            packed::STORED => out.copy_from_slice(c.bytes(n)?),
            packed::CONSTANT => out.fill(c.byte()?),
            packed::ZSTD => {
                let packed = c.bounded(n as u64)?;
                let packed = c.bytes(packed)?;
                match self.zstd.decompress_to_buffer(packed, &mut out[..]) {
                    Ok(got) if got == n => {}
                    _ => return Err("a column does not decompress to its length"),
                }
            }
            packed::BITS_1 => unpack_bits::<1>(c.bytes(n.div_ceil(8))?, out),
            packed::BITS_2 => unpack_bits::<2>(c.bytes(n.div_ceil(4))?, out),
            packed::BITS_4 => unpack_bits::<4>(c.bytes(n.div_ceil(2))?, out),
            _ => return Err("a column is packed in an unknown way"),
        }
        Ok(())
    }

    /// Reads a stream with its length in front, at most `max` bytes.
    pub(crate) fn bytes(&mut self, c: &mut Cursor, max: usize, out: &mut Vec<u8>) -> Result<(), Bad> {
        let n = c.bounded(max as u64)?;
        self.plane(c, n, out)
    }

    /// Reads a column of `n` numbers most of which fit a byte.
    pub(crate) fn smalls(&mut self, c: &mut Cursor, n: usize, out: &mut Vec<u64>) -> Result<(), Bad> {
        let mut temp = std::mem::take(&mut self.temp);
        self.plane(c, n, &mut temp)?;
        out.clear();
        out.extend(temp.iter().map(|&b| u64::from(b)));
        // A 64-bit number takes at most 10 bytes.
        self.bytes(c, n * 10, &mut temp)?;
        let mut more = Cursor::new(&temp);
        for v in out.iter_mut().filter(|v| **v == ESCAPE) {
            *v = v.wrapping_add(more.varint()?);
        }
        if !more.is_empty() {
            return Err("a column of small numbers has more long ones than it names");
        }
        self.temp = temp;
        Ok(())
    }

    /// Reads a column of `n` 16-bit numbers, all below `limit`.
    pub(crate) fn indices(&mut self, c: &mut Cursor, n: usize, limit: usize, out: &mut Vec<u16>) -> Result<(), Bad> {
        match c.byte()? {
            form @ (1 | 2 | PAIRS) => self.shorts(c, form, n, out)?,
            _ => return Err("an index column of unknown width"),
        }
        if out.iter().fold(0, |m, &i| m.max(i)) as usize >= limit && n > 0 {
            return Err("an index is outside its table");
        }
        Ok(())
    }

    /// Reads `n` numbers in a form of at most 16 bits.
    fn shorts(&mut self, c: &mut Cursor, form: u8, n: usize, out: &mut Vec<u16>) -> Result<(), Bad> {
        out.clear();
        let mut planes = std::mem::take(&mut self.planes);
        let [low, high] = &mut planes;
        match form {
            0 => out.resize(n, 0),
            1 => {
                self.plane(c, n, low)?;
                out.extend(low.iter().map(|&b| u16::from(b)));
            }
            2 => {
                self.plane(c, n, low)?;
                self.plane(c, n, high)?;
                out.extend(low.iter().zip(high.iter()).map(|(&l, &h)| u16::from_le_bytes([l, h])));
            }
            _ => {
                self.plane(c, 2 * n, low)?;
                out.extend(low.chunks_exact(2).map(|p| u16::from_le_bytes([p[0], p[1]])));
            }
        }
        self.planes = planes;
        Ok(())
    }

    /// Reads a column of `n` numbers.
    pub(crate) fn values(&mut self, c: &mut Cursor, n: usize, sign: Sign, out: &mut Values) -> Result<(), Bad> {
        out.sign = sign;
        match c.byte()? {
            form @ (0..=2 | PAIRS) => {
                out.width = usize::from(form.min(2));
                self.shorts(c, form, n, &mut out.shorts)?;
                if out.width == 1 {
                    out.shorts.iter_mut().for_each(|v| *v = sign.extend(u64::from(*v), 1) as u16);
                }
            }
            width @ 3..=MAX_WIDTH => {
                out.width = usize::from(width);
                for plane in &mut out.planes[..out.width] {
                    self.plane(c, n, plane)?;
                }
            }
            _ => return Err("a column of numbers of unknown width"),
        }
        let mut temp = std::mem::take(&mut self.temp);
        // An exception takes at most 3 bytes of position and 10 of value.
        self.bytes(c, n * 13, &mut temp)?;
        out.exceptions.clear();
        out.next_exception = 0;
        let mut e = Cursor::new(&temp);
        let mut at = 0;
        while !e.is_empty() {
            let step = e.bounded(n as u64)?;
            let more = e.varint()?;
            at += step;
            if at >= n || out.width == 8 || step == 0 && !out.exceptions.is_empty() {
                return Err("an exception is outside its column");
            }
            out.exceptions.push((at as u32, sign.unpack(more, out.width)));
        }
        self.temp = temp;
        Ok(())
    }
}
