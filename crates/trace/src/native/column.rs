//! Numbers of a column, signed or not, and a column that was unpacked.

use std::ops::Range;

use super::varint::{unzigzag, zigzag};

/// Whether a column's numbers are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Unsigned,
    /// `i64`, in two's complement.
    Signed,
}

impl Sign {
    /// Bytes that `v` needs.
    pub(super) fn bytes_of(self, v: u64) -> usize {
        match self {
            Sign::Unsigned => 8 - v.leading_zeros() as usize / 8,
            Sign::Signed if v == 0 => 0,
            Sign::Signed => 8 - (v ^ (v as i64 >> 63) as u64).leading_zeros().saturating_sub(1) as usize / 8,
        }
    }

    /// The number that the low `width` bytes of `v` are.
    pub(super) fn extend(self, v: u64, width: usize) -> u64 {
        let unused = 64 - 8 * width as u32;
        let left = v.checked_shl(unused).unwrap_or(0);
        match self {
            Sign::Unsigned => left.checked_shr(unused).unwrap_or(0),
            Sign::Signed => (left as i64).checked_shr(unused).unwrap_or(0) as u64,
        }
    }

    /// `v` in units of 2^`shift`, of which it is a multiple.
    pub(super) fn shifted(self, v: u64, shift: u32) -> u64 {
        match self {
            Sign::Unsigned => v >> shift,
            Sign::Signed => (v as i64 >> shift) as u64,
        }
    }

    /// A multiple of 2^(8 `width`), without the zeros. `width` is below 8.
    pub(super) fn pack(self, more: u64, width: usize) -> u64 {
        match self {
            Sign::Unsigned => more >> (8 * width),
            Sign::Signed => zigzag(more as i64 >> (8 * width)),
        }
    }

    /// Undoes [`Sign::pack`].
    pub(super) fn unpack(self, packed: u64, width: usize) -> u64 {
        let more = if self == Sign::Signed { unzigzag(packed) as u64 } else { packed };
        more << (8 * width)
    }
}

/// A number's position in its column, and what is to be added to its low bytes.
pub(crate) type Exception = (u32, u64);

/// An unpacked column of numbers.
pub(crate) struct Values {
    pub(super) sign: Sign,
    /// Low bytes that each has.
    pub(super) width: usize,
    /// Up to 16 bits, sign extended.
    pub(super) shorts: Vec<u16>,
    /// From 17 bits on.
    pub(super) planes: [Vec<u8>; 8],
    pub(super) exceptions: Vec<Exception>,
    pub(super) next_exception: usize,
}

impl Values {
    pub(crate) fn new() -> Self {
        Values {
            sign: Sign::Unsigned,
            width: 0,
            shorts: Vec::new(),
            planes: Default::default(),
            exceptions: Vec::new(),
            next_exception: 0,
        }
    }

    /// The low parts of the numbers from `start` to `end` where these have at most 16 bits, and the exceptions,
    /// ascending. Ranges are asked for in ascending order.
    pub(crate) fn shorts(&mut self, start: usize, end: usize) -> Option<(&[u16], &[Exception])> {
        if self.width > 2 {
            return None;
        }
        let exceptions = self.exceptions_before(end);
        Some((&self.shorts[start..end], &self.exceptions[exceptions]))
    }

    /// Numbers of the exceptions before `end` that did not come yet.
    fn exceptions_before(&mut self, end: usize) -> Range<usize> {
        let first = self.next_exception;
        let n = self.exceptions[first..].partition_point(|&(at, _)| (at as usize) < end);
        self.next_exception = first + n;
        first..self.next_exception
    }

    /// Replaces `out` by the numbers from `start` to `end`. Ranges are asked for in ascending order.
    pub(crate) fn copy(&mut self, start: usize, end: usize, out: &mut Vec<u64>) {
        out.clear();
        let p = |i: usize| &self.planes[i][start..end];
        match (self.width, self.sign) {
            (0..=2, Sign::Unsigned) => out.extend(self.shorts[start..end].iter().map(|&v| u64::from(v))),
            (0..=2, Sign::Signed) => out.extend(self.shorts[start..end].iter().map(|&v| v as i16 as u64)),
            (3, _) => out.extend(
                p(0).iter()
                    .zip(p(1))
                    .zip(p(2))
                    .map(|((&a, &b), &c)| u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16),
            ),
            (width, _) => {
                out.extend(p(0).iter().map(|&a| u64::from(a)));
                for i in 1..width {
                    for (v, &b) in out.iter_mut().zip(p(i)) {
                        *v |= u64::from(b) << (8 * i);
                    }
                }
            }
        }
        if self.width > 2 && self.sign == Sign::Signed {
            let unused = 64 - 8 * self.width;
            out.iter_mut().for_each(|v| *v = ((*v << unused) as i64 >> unused) as u64);
        }
        let exceptions = self.exceptions_before(end);
        for &(at, more) in &self.exceptions[exceptions] {
            let v = &mut out[at as usize - start];
            *v = v.wrapping_add(more);
        }
    }
}
