//! Reads `/proc/PID/maps`, a piece at a time: into spans of addresses that are worth a look, or one mapping after
//! another.

use crate::sys::{self, Errno};

/// Room for a piece: the longest path, each byte written as `\ooo`, and more fit.
pub(crate) const TEXT_BYTES: usize = 20 << 10;

/// Gives `each` the lines of a file from its begin on, without their ends. Of a line that does not fit in `text`, the
/// begin.
pub(crate) fn each_line(file: i32, text: &mut [u8], mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    sys::rewind(file)?;
    let (mut lines, mut filled) = (LineSplitter::default(), 0usize);
    loop {
        let more = sys::read(file, text.get_mut(filled..).unwrap_or_default())?;
        if more == 0 {
            return Ok(());
        }
        filled = filled.saturating_add(more).min(text.len());
        let taken = lines.take(text.get(..filled).unwrap_or_default(), filled == text.len(), &mut each);
        if taken <= filled {
            text.copy_within(taken..filled, 0);
            filled = filled.wrapping_sub(taken);
        }
    }
}

/// Parts a text that comes in pieces.
#[derive(Debug, Default)]
struct LineSplitter {
    /// The rest of this line has to be left out: its begin did not fit.
    cut: bool,
}

impl LineSplitter {
    /// Gives `each` the whole lines of `text`, and says how many bytes were taken. `full`: no more text fits, so that a
    /// line without an end is given as far as it goes.
    fn take(&mut self, text: &[u8], full: bool, each: &mut impl FnMut(&[u8])) -> usize {
        let mut taken = 0usize;
        while let Some(rest) = text.get(taken..) {
            let Some(length) = rest.iter().position(|&byte| byte == b'\n') else { break };
            if !std::mem::replace(&mut self.cut, false) {
                each(rest.get(..length).unwrap_or_default());
            }
            taken = taken.saturating_add(length).saturating_add(1);
        }
        if taken > 0 || !full {
            return taken;
        }
        // A name longer than any path: the line's begin says all.
        if !std::mem::replace(&mut self.cut, true) {
            each(text);
        }
        text.len()
    }
}

/// Addresses: the first byte, and the byte after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Mappings that follow one another closely make one span.
#[derive(Debug)]
pub(crate) struct Spans {
    open: Option<Span>,
    /// Largest gap in bytes that a span goes across.
    gap_bytes: u64,
}

impl Spans {
    /// None yet.
    pub(crate) const fn new(gap_bytes: u64) -> Self {
        Self { open: None, gap_bytes }
    }

    /// Takes a line; gives `each` the span that ends with it, if one does.
    pub(crate) fn line(&mut self, line: &[u8], each: &mut impl FnMut(Span)) {
        let Some(next) = worth(line) else { return };
        if let Some(open) = &mut self.open {
            if next.start >= open.end && next.start.wrapping_sub(open.end) <= self.gap_bytes {
                open.end = next.end;
                return;
            }
            each(*open);
        }
        self.open = Some(next);
    }

    /// No more text.
    pub(crate) fn finish(&mut self, each: &mut impl FnMut(Span)) {
        if let Some(span) = self.open.take() {
            each(span);
        }
    }
}

/// The mapping of a line, unless it has no memory of the program's: what can't be read, devices, what the kernel puts
/// there.
fn worth(line: &[u8]) -> Option<Span> {
    let MapsLine { span, rights, name } = mapping(line)?;
    let device = name.starts_with(b"/dev/") && !name.starts_with(b"/dev/shm/") && !name.starts_with(b"/dev/zero");
    (rights.first() == Some(&b'r') && !device && !name.starts_with(b"[v")).then_some(span)
}

/// The mapping of a line, if it is of private anonymous memory that any page of may become part of a huge one.
pub(crate) fn anonymous(line: &[u8]) -> Option<Span> {
    let MapsLine { span, rights, name } = mapping(line)?;
    // Names that a program gives itself are `anon:NAME` (PR_SET_VMA_ANON_NAME).
    let its = name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:");
    (rights.get(3) == Some(&b'p') && its).then_some(span)
}

/// A line, in its parts.
pub(crate) struct MapsLine<'a> {
    pub(crate) span: Span,
    pub(crate) rights: &'a [u8],
    /// As far as the first blank.
    name: &'a [u8],
}

/// The mapping of a line.
pub(crate) fn mapping(line: &[u8]) -> Option<MapsLine<'_>> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let range = words.next()?;
    let rights = words.next()?;
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let span = Span { start: hex(range.get(..dash)?)?, end: hex(range.get(dash.checked_add(1)?..)?)? };
    let name = words.nth(3).unwrap_or_default();
    (span.start < span.end).then_some(MapsLine { span, rights, name })
}

/// A number as `maps` has it.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &digit| {
        let value = (digit as char).to_digit(16)?;
        Some(number << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c0000000-55d0c0400000 r--p 00000000 08:01 131 /usr/bin/x
55d0c0400000-55d0c0800000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000100000 ---p 00000000 00:00 0
7f0000110000-7f0000200000 rw-p 00000000 00:00 0
7f1000000000-7f1000200000 rw-s 00000000 00:06 5 /dev/dri/card0
7f1000200000-7f1000400000 rw-s 00000000 00:06 5 /dev/shm/mine (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
";

    fn spans(text: &[u8], piece: usize, gap_bytes: u64) -> Vec<(u64, u64)> {
        let (mut lines, mut spans) = (LineSplitter::default(), Spans::new(gap_bytes));
        let (mut found, mut buffer) = (Vec::new(), Vec::new());
        let mut each = |span: Span| found.push((span.start, span.end));
        for byte in text.chunks(piece) {
            buffer.extend_from_slice(byte);
            let taken = lines.take(&buffer, buffer.len() >= 4096, &mut |line| spans.line(line, &mut each));
            buffer.drain(..taken);
        }
        spans.finish(&mut each);
        found
    }

    #[test]
    fn neighbours_make_a_span_and_what_is_not_the_programs_memory_is_left_out() {
        let expected = [
            (0x55d0_c000_0000, 0x55d0_c080_0000),
            (0x7f00_0011_0000, 0x7f00_0020_0000),
            (0x7f10_0020_0000, 0x7f10_0040_0000),
        ];
        for piece in [1, 7, 80, 4000] {
            assert_eq!(spans(TEXT.as_bytes(), piece, 0), expected);
        }
        let near = "1000-2000 rw-p 0 0 0\n4000-5000 rw-p 0 0 0\n8000-9000 rw-p 0 0 0\n";
        assert_eq!(spans(near.as_bytes(), 10, 0x2000), [(0x1000, 0x5000), (0x8000, 0x9000)]);
    }

    #[test]
    fn anonymous_memory_is_told_from_all_else() {
        let mapping = |rest: &str| anonymous(format!("200000-400000 {rest}").as_bytes());
        let whole = Some(Span { start: 0x20_0000, end: 0x40_0000 });
        for rest in
            ["rw-p 0 00:00 0", "---p 0 00:00 0 ", "rw-p 0 00:00 0   [heap]", "rw-p 0 00:00 0 [anon:mine and more]"]
        {
            assert_eq!(mapping(rest), whole, "{rest}");
        }
        for rest in [
            "rw-s 0 00:00 0",
            "rw-p 0 00:00 0 [stack]",
            "rw-s 0 00:01 7 /dev/zero (deleted)",
            "rw-s 0 00:01 7 [anon_shmem:x]",
            "r--p 0 08:01 131 /usr/bin/x",
            "rw-p 0 00:01 9 /memfd:x (deleted)",
            "r-xp 0 00:00 0 [vdso]",
            "rw",
            "",
        ] {
            assert_eq!(mapping(rest), None, "{rest}");
        }
    }

    #[test]
    fn a_line_that_does_not_fit_counts_once() {
        let long = format!("1000-2000 rw-p 0 0 0 /{}\n9000-a000 rw-p 0 0 0\n", "x".repeat(20_000));
        assert_eq!(spans(long.as_bytes(), 512, 0), [(0x1000, 0x2000), (0x9000, 0xa000)]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_spans_with_bytes(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), piece in 1usize..50) {
            proptest::prop_assert!(spans(&text, piece, 4096).iter().all(|(start, end)| start < end));
        }
    }
}
