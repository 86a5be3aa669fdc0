//! LEB128 numbers and zigzag, on byte vectors and byte slices.

/// Why a piece of a chunk can't be decoded; becomes the reason of a [`crate::Damage`].
pub(crate) type Bad = &'static str;

/// Appends `v`, seven bits a byte, low bits first.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Maps small negative numbers to small positive ones.
#[inline]
pub(crate) fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

/// Undoes [`zigzag`].
#[inline]
pub(crate) fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

/// Reads from the front of a slice; every read is checked.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Bad> {
        let (&first, rest) = self.rest.split_first().ok_or("a column ends too early")?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Bad> {
        if n > self.rest.len() {
            return Err("a column ends too early");
        }
        let (head, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(head)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Bad> {
        match self.rest {
            [b, rest @ ..] if *b < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*b))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Bad> {
        if let Some((&word, _)) = self.rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(word);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                // All bits up to the first byte without a top bit; then the sevens are pushed together, two by two.
                let v = word & (ends ^ (ends - 1));
                let v = v & 0x007f_007f_007f_007f | (v & 0x7f00_7f00_7f00_7f00) >> 1;
                let v = v & 0x0000_3fff_0000_3fff | (v & 0x3fff_0000_3fff_0000) >> 2;
                let v = v & 0x0fff_ffff | (v & 0x0fff_ffff_0000_0000) >> 4;
                self.rest = &self.rest[ends.trailing_zeros() as usize / 8 + 1..];
                return Ok(v);
            }
        }
        self.varint_by_bytes()
    }

    /// Near the end, and for numbers of more than 56 bits.
    fn varint_by_bytes(&mut self) -> Result<u64, Bad> {
        let mut v = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            if shift == 63 && b > 1 {
                return Err("a number is longer than 64 bits");
            }
            v |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(v);
            }
        }
        Err("a number is longer than 64 bits")
    }

    /// A number that has to be at most `max`.
    pub(crate) fn bounded(&mut self, max: u64) -> Result<usize, Bad> {
        match self.varint()? {
            v if v <= max => Ok(v as usize),
            _ => Err("a count is larger than the chunk allows"),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Bad> {
        u32::try_from(self.varint()?).map_err(|_| "a number is longer than 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for v in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, v);
            let mut c = Cursor::new(&out);
            assert_eq!(c.varint(), Ok(v));
            assert!(c.is_empty());
            assert_eq!(zigzag(unzigzag(v)), v);
        }
        // Of each length, with and without bytes behind: both ways of reading.
        for bits in 0..64 {
            for v in [1u64 << bits, u64::MAX >> bits, 0x0123_4567_89ab_cdef >> bits] {
                let mut out = Vec::new();
                put(&mut out, v);
                assert_eq!(Cursor::new(&out).varint(), Ok(v));
                out.extend_from_slice(&[0xff; 9]);
                let mut c = Cursor::new(&out);
                assert_eq!((c.varint(), c.rest), (Ok(v), &[0xff; 9][..]));
            }
        }
        assert_eq!(zigzag(-1), 1);
        assert_eq!(zigzag(1), 2);
    }

    #[test]
    fn overlong_and_cut_numbers_are_refused() {
        assert!(Cursor::new(&[0xff; 10]).varint().is_err());
        assert!(Cursor::new(&[0x80, 0x80]).varint().is_err());
        // The tenth byte has room for one bit.
        for (last, expected) in [(1, Ok(u64::MAX)), (2, Err("a number is longer than 64 bits"))] {
            assert_eq!(Cursor::new(&[&[0xff; 9][..], &[last]].concat()).varint(), expected);
        }
        assert!(Cursor::new(&[5]).bounded(4).is_err());
        assert_eq!(Cursor::new(&[5]).bounded(5), Ok(5));
    }
}
