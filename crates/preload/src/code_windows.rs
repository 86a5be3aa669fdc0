//! Which windows of 2 MiB of code there are in `/proc/self/maps`, and which of them are taken.

use lookaside_runtime::hugepages::WINDOW_BYTES;

use crate::maps::{hex, mapping, Span};

/// Windows that are known of at most: 2 GiB of code.
pub(crate) const MOST_WINDOWS: usize = 1024;

/// A window of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct CodeWindow {
    pub(crate) start: u64,
    /// What its code weighs by the plan; without one, the bytes of its mapping.
    pub(crate) weight: u64,
    /// First byte of its mapping.
    pub(crate) mapping: u64,
    /// It lies in the file as it does in a huge page of the file's cache.
    pub(crate) fits: bool,
}

/// A mapping of code from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedCode<'a> {
    pub(crate) span: Span,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    pub(crate) path: &'a [u8],
}

/// The mapping of a line, if it is of code of a file that nobody shares and nobody may write.
pub(crate) fn code(line: &[u8]) -> Option<MappedCode<'_>> {
    let found = mapping(line)?;
    let path = path(line)?;
    let devices: [&[u8]; 4] = [b"/dev/", b"/memfd:", b"/SYSV", b"/anon_hugepage"];
    let is_file = path.first() == Some(&b'/') && !devices.iter().any(|device| path.starts_with(device));
    let offset = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(2).and_then(hex)?;
    (found.rights == b"r-xp" && is_file).then_some(MappedCode { span: found.span, offset, path })
}

/// The name of a line, blanks and all: what stands behind the fifth word.
fn path(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..5 {
        let begin = rest.iter().position(|&byte| byte != b' ')?;
        let word = rest.get(begin..)?;
        let end = word.iter().position(|&byte| byte == b' ')?;
        rest = word.get(end..)?;
    }
    rest.get(rest.iter().position(|&byte| byte != b' ')?..)
}

impl MappedCode<'_> {
    /// Its whole windows: the first, and the byte after the last.
    pub(crate) fn whole(&self) -> Option<Span> {
        let start = self.span.start.checked_next_multiple_of(WINDOW_BYTES)?;
        let end = self.span.end & !(WINDOW_BYTES.wrapping_sub(1));
        (start < end).then_some(Span { start, end })
    }

    /// The window that begins there, without a plan.
    pub(crate) fn window(&self, start: u64) -> CodeWindow {
        CodeWindow {
            start,
            weight: self.span.end.wrapping_sub(self.span.start),
            mapping: self.span.start,
            fits: self.span.start.wrapping_sub(self.offset).is_multiple_of(WINDOW_BYTES),
        }
    }

    /// What code that weighs `weight` in `bytes` of a file from `offset` on weighs in a window of this mapping: by the
    /// share of it that lies in there.
    pub(crate) fn part(&self, start: u64, planned: &PlannedCode<'_>) -> u64 {
        if planned.path != self.path || planned.bytes == 0 {
            return 0;
        }
        let from = start.wrapping_sub(self.span.start).wrapping_add(self.offset);
        let (to, end) = (from.saturating_add(WINDOW_BYTES), planned.offset.saturating_add(planned.bytes));
        let shared = to.min(end).saturating_sub(from.max(planned.offset));
        let part = u128::from(planned.weight) * u128::from(shared) / u128::from(planned.bytes);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// A line of a plan's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedCode<'a> {
    weight: u64,
    offset: u64,
    bytes: u64,
    path: &'a [u8],
}

/// A line of a plan's weights ([`lookaside_runtime::hugepages::code_weights_line`]).
pub(crate) fn planned(line: &[u8]) -> Option<PlannedCode<'_>> {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    let mut number = || words.next().and_then(hex);
    let (weight, offset, bytes) = (number()?, number()?, number()?);
    Some(PlannedCode { weight, offset, bytes, path: words.next()? })
}

/// Takes the windows that weigh most, those that weigh nothing left out; they are the first then, in the order of
/// addresses. Gives how many.
pub(crate) fn choose(windows: &mut [CodeWindow], budget: usize) -> usize {
    windows.sort_unstable_by_key(|window| (std::cmp::Reverse(window.weight), window.start));
    let some = windows.iter().take_while(|window| window.weight > 0).count();
    let taken = some.min(budget);
    windows.get_mut(..taken).unwrap_or_default().sort_unstable_by_key(|window| window.start);
    taken
}

/// How many of the windows from the first on follow one another in one mapping, up to `most`.
pub(crate) fn run(windows: &[CodeWindow], most: usize) -> usize {
    let Some(first) = windows.first() else { return 0 };
    let follows = |(at, window): &(usize, &CodeWindow)| {
        let start = (*at as u64).checked_mul(WINDOW_BYTES).and_then(|bytes| bytes.checked_add(first.start));
        window.mapping == first.mapping && Some(window.start) == start
    };
    windows.iter().enumerate().take(most).take_while(follows).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn code_is_what_is_mapped_from_a_file_to_be_executed() {
        let line = "00631000-019f5000 r-xp 00231000 fe:01 1234                       /usr/lib/my gcc/cc1 (deleted)";
        let found = code(line.as_bytes()).expect("code");
        let span = Span { start: 0x63_1000, end: 0x19f_5000 };
        assert_eq!(found, MappedCode { span, offset: 0x23_1000, path: b"/usr/lib/my gcc/cc1 (deleted)" });
        assert_eq!(found.whole(), Some(Span { start: 0x80_0000, end: 0x180_0000 }));
        assert!(found.window(0x80_0000).fits, "address and offset differ by whole windows");
        for other in [
            "00631000-019f5000 r--p 00231000 fe:01 1234 /usr/bin/x",
            "00631000-019f5000 rwxp 00231000 fe:01 1234 /usr/bin/x",
            "00631000-019f5000 r-xs 00231000 fe:01 1234 /usr/bin/x",
            "00631000-019f5000 --xp 00231000 fe:01 1234 /usr/bin/x",
            "7ffd00000000-7ffd00400000 r-xp 00000000 00:00 0 [vdso]",
            "00631000-019f5000 r-xp 00000000 00:00 0 ",
            "00631000-019f5000 r-xp 00000000 00:01 7 /memfd:jit (deleted)",
            "00631000-019f5000 r-xp 00000000 00:05 7 /dev/zero",
            "",
        ] {
            assert_eq!(code(other.as_bytes()), None, "{other}");
        }
    }

    fn mapped(start: u64, end: u64, offset: u64) -> MappedCode<'static> {
        MappedCode { span: Span { start, end }, offset, path: b"/bin/x" }
    }

    #[test]
    fn windows_lie_whole_in_their_mapping() {
        assert_eq!(mapped(MIB, 5 * MIB, 0).whole(), Some(Span { start: 2 * MIB, end: 4 * MIB }));
        assert_eq!(mapped(MIB, 4 * MIB - 4096, 0).whole(), None);
        assert_eq!(mapped(2 * MIB, 4 * MIB, 0).whole(), Some(Span { start: 2 * MIB, end: 4 * MIB }));
        assert_eq!(mapped(u64::MAX - MIB, u64::MAX, 0).whole(), None);
        assert!(!mapped(2 * MIB, 4 * MIB, 0x1000).window(2 * MIB).fits);
    }

    #[test]
    fn a_plans_weight_goes_to_windows_by_what_lies_in_them() {
        let code = mapped(MIB, 9 * MIB, 16 * MIB);
        let line = format!("64 {:x} {:x} /bin/x", 18 * MIB, 2 * MIB);
        let hot = planned(line.as_bytes()).expect("a line");
        // It lies at 3 to 5 MiB of the addresses.
        assert_eq!([2, 4, 6].map(|at| code.part(at * MIB, &hot)), [50, 50, 0]);
        let elsewhere = MappedCode { path: b"/bin/y", ..code };
        assert_eq!(elsewhere.part(2 * MIB, &hot), 0);
        for bad in ["", "1 2 3", "x 2 3 /bin/x", "1 2 /bin/x"] {
            assert_eq!(planned(bad.as_bytes()), None, "{bad}");
        }
        let huge = PlannedCode { weight: u64::MAX, offset: 0, bytes: u64::MAX, path: b"/bin/x" };
        assert!(code.part(2 * MIB, &huge) > 0);
    }

    #[test]
    fn the_heaviest_are_taken_and_come_in_order_of_addresses() {
        let window = |start: u64, weight| CodeWindow { start: start * MIB, weight, mapping: 0, fits: false };
        let mut all = [window(2, 5), window(4, 0), window(6, 9), window(8, 7), window(10, 5)];
        assert_eq!(choose(&mut all, 3), 3);
        assert_eq!(all.map(|window| window.start / MIB)[..3], [2, 6, 8]);
        assert_eq!(choose(&mut all, usize::MAX), 4, "one weighs nothing");
        let chosen = &all[..4];
        assert_eq!([run(chosen, 9), run(&chosen[1..], 9), run(&chosen[1..], 2), run(&[], 9)], [1, 3, 2, 0]);
        let other = [window(2, 1), CodeWindow { mapping: 1, ..window(4, 1) }];
        assert_eq!(run(&other, 9), 1, "another mapping");
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_code_or_none(line in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let whole = code(&line).and_then(|code| code.whole());
            proptest::prop_assert!(whole.is_none_or(|span| span.start < span.end));
            let _ = planned(&line);
        }
    }
}
