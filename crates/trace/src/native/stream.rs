//! Byte streams inside a chunk: stored as they are, as one repeated byte, or through zstd,
//! whichever pays; and columns of numbers as byte planes with exceptions.

use super::varint::{put, Bad, Cursor};

const STORED: u8 = 0;
const CONSTANT: u8 = 1;
const ZSTD: u8 = 2;

/// zstd has to save a sixteenth, or the stream is stored: what it saves below that costs more
/// time in decoding than it does in reading.
const WORTH_NUM: usize = 15;
const WORTH_DEN: usize = 16;

/// zstd's default level.
const LEVEL: i32 = 3;
/// Shortest repeat that zstd looks for. Loops of programs repeat at length; chance repeats in noise
/// are shorter, save next to nothing and cost the most time in decoding.
const MIN_MATCH: u32 = 6;

/// A value column keeps a plane only if more than one value in this many needs it; the rest are
/// exceptions. Chosen by size on traces of `ls` and `sort`.
const EXCEPTION_SHARE: usize = 12;

/// Packs streams; keeps zstd's working memory.
pub(crate) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    temp: Vec<u8>,
    plane: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut zstd = zstd::bulk::Compressor::new(LEVEL)?;
        zstd.set_parameter(zstd::zstd_safe::CParameter::MinMatch(MIN_MATCH))?;
        Ok(Packer { zstd, temp: Vec::new(), plane: Vec::new() })
    }

    /// A stream whose length the reader knows: codec, and for zstd the packed length.
    pub(crate) fn plane(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(&first) = bytes.first() else { return };
        if bytes.iter().all(|&b| b == first) {
            out.extend_from_slice(&[CONSTANT, first]);
            return;
        }
        let worth = bytes.len() * WORTH_NUM / WORTH_DEN;
        self.temp.resize(zstd::zstd_safe::compress_bound(bytes.len()), 0);
        // A failure to compress (no memory for it) is no reason to lose data: it is stored.
        match self.zstd.compress_to_buffer(bytes, &mut self.temp[..]) {
            Ok(n) if n < worth => {
                out.push(ZSTD);
                put(out, n as u64);
                out.extend_from_slice(&self.temp[..n]);
            }
            _ => {
                out.push(STORED);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// A stream with its length in front.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        put(out, bytes.len() as u64);
        self.plane(bytes, out);
    }

    /// A column of numbers: planes of their low bytes, and exceptions (position, high part) for
    /// the few that are longer.
    pub(crate) fn values(&mut self, values: &[u64], out: &mut Vec<u8>) {
        let mut by_len = [0usize; 9];
        for &v in values {
            by_len[8 - v.leading_zeros() as usize / 8] += 1;
        }
        let mut width = 8;
        let mut longer = 0;
        while width > 0 && (longer + by_len[width]) * EXCEPTION_SHARE <= values.len() {
            longer += by_len[width];
            width -= 1;
        }
        out.push(width as u8);
        let mut plane = std::mem::take(&mut self.plane);
        for i in 0..width {
            plane.clear();
            plane.extend(values.iter().map(|v| (v >> (8 * i)) as u8));
            self.plane(&plane, out);
        }
        plane.clear();
        if longer > 0 {
            let mut last = 0;
            for (i, &v) in values.iter().enumerate().filter(|(_, &v)| v >> (8 * width) != 0) {
                put(&mut plane, (i - last) as u64);
                put(&mut plane, v >> (8 * width));
                last = i;
            }
        }
        self.bytes(&plane, out);
        self.plane = plane;
    }

    /// A column of 16-bit numbers, without exceptions.
    pub(crate) fn indices(&mut self, indices: &[u16], out: &mut Vec<u8>) {
        let wide = indices.iter().any(|&i| i > 0xff);
        out.push(1 + u8::from(wide));
        let mut plane = std::mem::take(&mut self.plane);
        for shift in if wide { &[0, 8][..] } else { &[0][..] } {
            plane.clear();
            plane.extend(indices.iter().map(|i| (i >> shift) as u8));
            self.plane(&plane, out);
        }
        self.plane = plane;
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
        if n == 0 {
            out.clear();
            return Ok(());
        }
        match c.byte()? {
            STORED => {
                out.clear();
                out.extend_from_slice(c.bytes(n)?);
            }
            CONSTANT => {
                out.clear();
                out.resize(n, c.byte()?);
            }
            ZSTD => {
                let packed = c.bounded(n as u64)?;
                let packed = c.bytes(packed)?;
                // Not cleared: what was there need not be zeroed to be overwritten.
                out.resize(n, 0);
                match self.zstd.decompress_to_buffer(packed, &mut out[..]) {
                    Ok(got) if got == n => {}
                    _ => return Err("a column does not decompress to its length"),
                }
            }
            _ => return Err("a column is packed in an unknown way"),
        }
        Ok(())
    }

    /// Reads a stream with its length in front, at most `max` bytes.
    pub(crate) fn bytes(&mut self, c: &mut Cursor, max: usize, out: &mut Vec<u8>) -> Result<(), Bad> {
        let n = c.bounded(max as u64)?;
        self.plane(c, n, out)
    }

    /// Reads a column of `n` 16-bit numbers, all below `limit`.
    pub(crate) fn indices(&mut self, c: &mut Cursor, n: usize, limit: usize, out: &mut Vec<u16>) -> Result<(), Bad> {
        out.clear();
        let mut planes = std::mem::take(&mut self.planes);
        let [low, high] = &mut planes;
        match c.byte()? {
            1 => {
                self.plane(c, n, low)?;
                out.extend(low.iter().map(|&b| u16::from(b)));
            }
            2 => {
                self.plane(c, n, low)?;
                self.plane(c, n, high)?;
                out.extend(low.iter().zip(high.iter()).map(|(&l, &h)| u16::from(l) | u16::from(h) << 8));
            }
            _ => return Err("an index column of unknown width"),
        }
        self.planes = planes;
        if out.iter().fold(0, |m, &i| m.max(i)) as usize >= limit && n > 0 {
            return Err("an index is outside its table");
        }
        Ok(())
    }

    /// Reads a column of `n` numbers.
    pub(crate) fn values(&mut self, c: &mut Cursor, n: usize, out: &mut Values) -> Result<(), Bad> {
        out.width = match c.byte()? {
            w @ 0..=8 => w as usize,
            _ => return Err("a column of numbers of unknown width"),
        };
        for plane in &mut out.planes[..out.width] {
            self.plane(c, n, plane)?;
        }
        let mut temp = std::mem::take(&mut self.temp);
        // An exception takes at most 3 bytes of position and 10 of value.
        self.bytes(c, n * 13, &mut temp)?;
        out.exceptions.clear();
        out.next_exception = 0;
        let mut e = Cursor::new(&temp);
        let mut at = 0;
        while !e.is_empty() {
            at += e.bounded(n as u64)?;
            let high = e.varint()?;
            if at >= n || out.width == 8 {
                return Err("an exception is outside its column");
            }
            out.exceptions.push((at as u32, high << (8 * out.width)));
        }
        self.temp = temp;
        Ok(())
    }
}

/// An unpacked column of numbers, still in planes.
#[derive(Default)]
pub(crate) struct Values {
    width: usize,
    planes: [Vec<u8>; 8],
    exceptions: Vec<(u32, u64)>,
    next_exception: usize,
}

impl Values {
    /// Replaces `out` by the numbers from `start` to `end`. Ranges are asked for in ascending order.
    pub(crate) fn copy(&mut self, start: usize, end: usize, out: &mut Vec<u64>) {
        out.clear();
        let p = |i: usize| &self.planes[i][start..end];
        match self.width {
            0 => out.resize(end - start, 0),
            1 => out.extend(p(0).iter().map(|&a| u64::from(a))),
            2 => out.extend(p(0).iter().zip(p(1)).map(|(&a, &b)| u64::from(a) | u64::from(b) << 8)),
            3 => out.extend(
                p(0).iter()
                    .zip(p(1))
                    .zip(p(2))
                    .map(|((&a, &b), &c)| u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16),
            ),
            width => {
                out.extend(p(0).iter().map(|&a| u64::from(a)));
                for i in 1..width {
                    for (v, &b) in out.iter_mut().zip(p(i)) {
                        *v |= u64::from(b) << (8 * i);
                    }
                }
            }
        }
        while let Some(&(at, high)) = self.exceptions.get(self.next_exception) {
            if at as usize >= end {
                break;
            }
            out[at as usize - start] |= high;
            self.next_exception += 1;
        }
    }
}
