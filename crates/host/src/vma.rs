//! A process's virtual memory areas, as `/proc/PID/smaps` lists them (Documentation/filesystems/proc.rst).

use std::ops::Range;

/// A virtual memory area: its addresses, rights and name, and what of it is in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vma {
    /// First address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// `rwxp` as the kernel writes it: read, write, execute, private or shared.
    pub rights: String,
    /// The file, or what the kernel calls it: `[heap]`, `[stack]`, `[anon:NAME]`; empty: anonymous memory.
    pub name: String,
    /// Bytes of a page by which the kernel maps it (`KernelPageSize`).
    pub page_bytes: u64,
    /// Bytes in memory (`Rss`).
    pub resident_bytes: u64,
    /// Bytes whose pages have the referenced bit set (`Referenced`).
    pub referenced_bytes: u64,
    /// Bytes of anonymous memory in transparent huge pages (`AnonHugePages`).
    pub anonymous_huge_bytes: u64,
    /// Bytes of shared memory that huge pages map (`ShmemPmdMapped`).
    pub shared_huge_bytes: u64,
    /// Bytes of files that huge pages map (`FilePmdMapped`).
    pub file_huge_bytes: u64,
    /// The kernel's flags, two letters each with a blank between (`VmFlags`).
    pub flags: String,
}

impl Vma {
    /// Bytes that huge pages map, whatever memory it is.
    pub fn huge_bytes(&self) -> u64 {
        self.anonymous_huge_bytes + self.shared_huge_bytes + self.file_huge_bytes
    }

    /// Its name for people: that of anonymous memory is `[anonymous]`.
    pub fn shown_name(&self) -> &str {
        if self.name.is_empty() {
            "[anonymous]"
        } else {
            &self.name
        }
    }

    /// Whether it has one of these flags, by the kernel's two letters.
    pub fn has_flag(&self, any: &[&str]) -> bool {
        self.flags.split_ascii_whitespace().any(|flag| any.contains(&flag))
    }

    /// Whether what is written to it stays the process's own.
    pub fn is_private(&self) -> bool {
        self.rights.as_bytes().get(3) == Some(&b'p')
    }

    /// Whether it is a file's.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Whether an address lies in these.
    pub fn overlaps(&self, addresses: &Range<u64>) -> bool {
        self.start < addresses.end && addresses.start < self.end
    }
}

/// Reads the text of `maps`, `smaps` or `smaps_rollup`. Lines that it does not know are left out.
pub fn parse_smaps(text: &str) -> Vec<Vma> {
    let mut vmas: Vec<Vma> = Vec::new();
    for line in text.lines() {
        // Two dozen fields follow each area: their names begin with a capital, an address never does.
        if line.starts_with(|first: char| first.is_ascii_uppercase()) {
            vmas.last_mut().into_iter().for_each(|vma| field(vma, line));
        } else {
            vmas.extend(head(line));
        }
    }
    vmas
}

/// `55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0    [heap]`.
fn head(line: &str) -> Option<Vma> {
    let mut rest = line;
    let mut word = || {
        let (word, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = tail;
        word
    };
    let (start, end) = word().split_once('-')?;
    let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).ok());
    let rights = word().to_string();
    let _offset_device_inode = [word(), word(), word()];
    let name = rest.trim_start().to_string();
    let (start, end) = (start?, end?);
    (start < end).then_some(Vma { start, end, rights, name, ..Vma::default() })
}

fn field(vma: &mut Vma, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    let bytes = || {
        let kib = value.trim().strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok());
        kib.and_then(|kib| kib.checked_mul(1024)).unwrap_or(0)
    };
    match name {
        "KernelPageSize" => vma.page_bytes = bytes(),
        "Rss" => vma.resident_bytes = bytes(),
        "Referenced" => vma.referenced_bytes = bytes(),
        "AnonHugePages" => vma.anonymous_huge_bytes = bytes(),
        "ShmemPmdMapped" => vma.shared_huge_bytes = bytes(),
        "FilePmdMapped" => vma.file_huge_bytes = bytes(),
        "VmFlags" => vma.flags = value.trim().to_string(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n\
                        Size:                132 kB\nKernelPageSize:        4 kB\nRss:   128 kB\nReferenced:          124 kB\n\
                        AnonHugePages:      2048 kB\nShmemPmdMapped: 1 kB\nFilePmdMapped: 2 kB\nVmFlags: rd wr mr mw me ac hg\n\
                        7f0000000000-7f0000003000 r--s 00001000 fe:00 1234       /lib/a b: Rss\n\
                        Rss:            8 kB\n\
                        7f0000003000-7f0000004000 ---p 00000000 00:00 0\n";

    #[test]
    fn areas_are_read() {
        let [heap, file, guard] = &parse_smaps(TEXT)[..] else { panic!("three areas") };
        assert_eq!((heap.start, heap.end, heap.name.as_str()), (0x55d0_c8a0_0000, 0x55d0_c8a2_1000, "[heap]"));
        assert_eq!((heap.page_bytes, heap.resident_bytes, heap.referenced_bytes), (4096, 128 << 10, 124 << 10));
        assert_eq!((heap.anonymous_huge_bytes, heap.huge_bytes()), (2 << 20, (2 << 20) + 3072));
        assert!(heap.has_flag(&["xx", "hg"]) && !heap.has_flag(&["h", "nh"]) && heap.is_private() && !heap.is_file());
        assert_eq!((file.name.as_str(), file.resident_bytes, file.flags.as_str()), ("/lib/a b: Rss", 8192, ""));
        assert!(file.is_file() && !file.is_private());
        assert_eq!((guard.name.as_str(), guard.rights.as_str(), guard.resident_bytes), ("", "---p", 0));
        assert_eq!((guard.shown_name(), heap.shown_name()), ("[anonymous]", "[heap]"));
        assert!(file.overlaps(&(0x7f00_0000_2000..0x7f00_0000_9000)) && !file.overlaps(&(guard.start..guard.end)));
    }

    #[test]
    fn what_is_no_area_is_left_out() {
        for text in ["", "Rss: 4 kB\n", "3000-1000 rw-p 0 0 0\n", "x-y rw-p\n", "\n\n", "1000-1000 r"] {
            assert_eq!(parse_smaps(text), [], "{text:?}");
        }
        let [vma] =
            &parse_smaps("1000-2000\nRss: much kB\nReferenced: 18446744073709551615 kB\nAnonHugePages: 7\n")[..]
        else {
            panic!("one area")
        };
        assert_eq!((vma.resident_bytes, vma.referenced_bytes, vma.anonymous_huge_bytes), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(lines in proptest::collection::vec(
            prop_oneof!["[0-9a-f]{1,17}-[0-9a-f]{1,17}( \\PC*)?", "(Rss|Referenced|VmFlags): *[0-9]{1,21} ?(kB)?", "\\PC*"], 0..9,
        )) {
            for vma in parse_smaps(&lines.join("\n")) {
                prop_assert!(vma.start < vma.end);
            }
        }
    }
}
