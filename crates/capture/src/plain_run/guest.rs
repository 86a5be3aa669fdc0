//! A program in QEMU's user mode: where its addresses lie in QEMU's process, and what the process's system calls mean
//! for its map.
//!
//! A 32-bit program has 4 GiB of the process for itself, kept free by a mapping without permission. QEMU says where
//! they begin when it has loaded the program (`-d page`, linux-user/main.c), with the program's first stack pointer and
//! its first break.

use std::io;
use std::path::Path;

use lookaside_trace::{Event, MapSource, Region};
use tempfile::NamedTempFile;

/// Bytes of the pages that the kernel maps.
const PAGE_BYTES: u64 = 4096;
/// Bytes that a 32-bit program can address.
const GUEST_BYTES: u64 = 1 << 32;
/// `PROT_READ` and `PROT_WRITE`: what QEMU gives a heap.
const READ_WRITE: u8 = 3;

/// What QEMU says of a program that it has loaded; addresses but the first are the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuestLayout {
    /// Where the program's address 0 is in the process.
    pub(super) base: u64,
    /// First byte of its heap.
    pub(super) heap_start: u64,
    /// Stack pointer at its first instruction.
    pub(super) entry_stack: u64,
}

/// A program that QEMU runs.
#[derive(Debug)]
pub(crate) struct QemuGuest {
    /// What QEMU writes.
    log: NamedTempFile,
    layout: Option<GuestLayout>,
    /// First byte behind the heap.
    heap_end: u64,
    /// It executed another program, which is not QEMU's.
    gone: bool,
}

impl QemuGuest {
    /// A program that QEMU has not loaded yet.
    ///
    /// # Errors
    /// The file for QEMU's words can't be made.
    pub(crate) fn new() -> io::Result<QemuGuest> {
        Ok(QemuGuest { log: NamedTempFile::new()?, layout: None, heap_end: 0, gone: false })
    }

    /// The file that QEMU is to write its log into (`-D`), with `-d page`.
    pub(crate) fn log(&self) -> &Path {
        self.log.path()
    }

    /// Where it lies; `None` = it is not loaded yet, or has executed another program.
    pub(super) fn layout(&self) -> Option<GuestLayout> {
        self.layout
    }

    /// Reads QEMU's log; true the first time that it says where the program is loaded.
    pub(super) fn appears(&mut self) -> bool {
        if self.layout.is_some() || self.gone {
            return false;
        }
        self.layout = std::fs::read_to_string(self.log.path()).ok().and_then(|text| parse(&text));
        self.heap_end = self.layout.map_or(0, |layout| layout.heap_start);
        self.layout.is_some()
    }

    /// It executes another program: the process is QEMU no longer.
    pub(super) fn leave(&mut self) {
        (self.layout, self.gone) = (None, true);
    }

    /// Why its memory could not be looked at at its end.
    pub(super) fn unseen(&self) -> &'static str {
        match self.gone {
            true => "the program executed another one, which runs without QEMU: where its memory lies is not known",
            false => "QEMU ended before it had loaded the program, or does not say where that lies",
        }
    }

    /// Its regions among those of the process, by its own addresses. What has no permission is left out: QEMU keeps
    /// room so.
    pub(super) fn listing(&self, process: &[Region]) -> Vec<Region> {
        let Some(layout) = self.layout else { return Vec::new() };
        let end = layout.base.saturating_add(GUEST_BYTES);
        let own = process.iter().filter(|region| region.prot != 0 && layout.base <= region.start && region.start < end);
        let shifted = own.map(|region| {
            let (start, end) = (region.start - layout.base, region.end.min(end) - layout.base);
            let stack = (start..end).contains(&layout.entry_stack);
            let source = if stack { MapSource::Stack } else { region.source.clone() };
            Region { start, end, source, ..region.clone() }
        });
        shifted.collect()
    }

    /// What a change of the process's map is for the program; `None` = QEMU's own. `known`: the program's map has
    /// something at an address.
    pub(super) fn event(&mut self, event: Event, known: impl Fn(u64) -> bool) -> Option<Event> {
        let layout = self.layout?;
        // QEMU tells its whole map after each change: what has been read is thrown away.
        let _ = self.log.as_file().set_len(0);
        let own = |addr: u64| addr.checked_sub(layout.base).filter(|addr| *addr < GUEST_BYTES);
        match event {
            Event::Map { addr, len, prot, source, site } => {
                let addr = own(addr)?;
                let anonymous = source == MapSource::Anonymous;
                if anonymous && prot == 0 {
                    // How QEMU unmaps.
                    return Some(Event::Unmap { addr, len });
                }
                if anonymous && prot == READ_WRITE && addr == self.heap_end.next_multiple_of(PAGE_BYTES) {
                    self.heap_end = addr + len;
                    return Some(Event::Brk { start: layout.heap_start, end: self.heap_end });
                }
                Some(Event::Map { addr, len, prot, source, site })
            }
            Event::Unmap { addr, len } => Some(Event::Unmap { addr: own(addr)?, len }),
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                Some(Event::Remap { old_addr: own(old_addr)?, old_len, new_addr: own(new_addr)?, new_len })
            }
            Event::Protect { addr, len, prot } => {
                let addr = own(addr)?;
                // Room that the program kept without permission looks like QEMU's; now it is memory.
                let source = MapSource::Anonymous;
                match known(addr) || prot == 0 {
                    true => Some(Event::Protect { addr, len, prot }),
                    false => Some(Event::Map { addr, len, prot, source, site: 0 }),
                }
            }
            _ => None,
        }
    }
}

/// Reads QEMU's log; `None` as long as it has not said all.
fn parse(text: &str) -> Option<GuestLayout> {
    // A line without its end may go on.
    let lines = || text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let number = |name: &str| {
        lines().find_map(|line| {
            let (first, rest) = line.split_once(' ')?;
            let digits = rest.trim().strip_prefix("0x")?;
            (first == name).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        })
    };
    Some(GuestLayout {
        base: number("guest_base")?,
        // QEMU begins the heap on a page of its own (do_brk, linux-user/syscall.c).
        heap_start: number("brk")?.next_multiple_of(PAGE_BYTES),
        entry_stack: number("start_stack")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QEMU 7.2 on a static program, its memory left out.
    const LOG: &str = "guest_base  0x7ffef7800000\n\
        page layout changed following binary load\n\
        start    end      size     prot\n\
        00010000-0007b000 0006b000 r-x\n\
        end_code    0x0007a5d8\n\
        start_code  0x00010000\n\
        start_data  0x0008b8d8\n\
        end_data    0x0008e6a8\n\
        start_stack 0x407ffd60\n\
        brk         0x00091d44\n\
        entry       0x00010391\n";
    const BASE: u64 = 0x7ffe_f780_0000;

    fn guest() -> QemuGuest {
        let mut guest = QemuGuest::new().unwrap();
        std::fs::write(guest.log(), LOG).unwrap();
        assert!(guest.appears() && !guest.appears());
        guest
    }

    #[test]
    fn a_program_appears_when_all_is_said() {
        let layout = GuestLayout { base: BASE, heap_start: 0x92000, entry_stack: 0x407f_fd60 };
        assert_eq!(parse(LOG), Some(layout));
        let said = LOG.find("entry").unwrap();
        for end in 0..LOG.len() {
            assert_eq!(parse(&LOG[..end]).is_some(), end >= said, "{end}");
        }
        let mut guest = QemuGuest::new().unwrap();
        assert!(
            !guest.appears() && guest.listing(&[Region::new(BASE, BASE + 4096, 3, MapSource::Anonymous)]).is_empty()
        );
        guest = self::guest();
        assert_eq!(guest.layout(), Some(layout));
        guest.leave();
        assert!(!guest.appears() && guest.layout().is_none() && guest.unseen().contains("executed another"));
    }

    #[test]
    fn its_regions_are_those_in_its_room() {
        let region = |start: u64, end: u64, prot| Region::new(start, end, prot, MapSource::Anonymous);
        let host = [
            region(0x1000, 0x2000, 3),
            region(BASE, BASE + 0x1_0000, 0),
            region(BASE + 0x1_0000, BASE + 0x2_0000, 1),
            region(BASE + 0x4000_0000, BASE + 0x4080_0000, 3),
            region(BASE + 0xffff_0000, BASE + 0x1_0001_0000, 1),
            region(BASE + GUEST_BYTES, BASE + GUEST_BYTES + 0x1000, 1),
            region(BASE + 0x1_0001_0000, BASE + 0x1_0002_0000, 3),
        ];
        let seen: Vec<_> =
            guest().listing(&host).into_iter().map(|r| (r.start, r.end, r.source == MapSource::Stack)).collect();
        let wanted = [(0x1_0000, 0x2_0000, false), (0x4000_0000, 0x4080_0000, true), (0xffff_0000, 1 << 32, false)];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn calls_are_what_they_mean_to_the_program() {
        let mut guest = guest();
        let map = |addr: u64, len, prot| Event::Map { addr, len, prot, source: MapSource::Anonymous, site: 0 };
        let mut event = |event, known: bool| guest.event(event, |_| known);
        // The heap grows piece by piece.
        let brk = |end| Some(Event::Brk { start: 0x92000, end });
        assert_eq!(event(map(BASE + 0x92000, 0x2000, 3), false), brk(0x94000));
        assert_eq!(event(map(BASE + 0x94000, 0x21000, 3), false), brk(0xb5000));
        assert_eq!(event(map(BASE + 0x4100_0000, 0x3000, 3), false), Some(map(0x4100_0000, 0x3000, 3)));
        let unmap = Some(Event::Unmap { addr: 0x4100_0000, len: 0x3000 });
        assert_eq!(event(map(BASE + 0x4100_0000, 0x3000, 0), true), unmap);
        assert_eq!(event(Event::Unmap { addr: BASE + 0x4100_0000, len: 0x3000 }, true), unmap);
        // A file's pages without permission, and where the heap would go on, are the file's.
        let file = |addr: u64, prot| {
            let source = MapSource::File { path: "/a".into(), offset: 0 };
            Event::Map { addr, len: 0x1000, prot, source, site: 0 }
        };
        for (addr, prot) in [(0x4200_0000, 0), (0xb5000, 3)] {
            assert_eq!(event(file(BASE + addr, prot), false), Some(file(addr, prot)));
        }
        let remap = |base| Event::Remap { old_addr: base + 0x5000, old_len: 1, new_addr: base + 0x9000, new_len: 2 };
        assert_eq!(event(remap(BASE), true), Some(remap(0)));
        let protect = |addr, prot| Event::Protect { addr, len: 0x1000, prot };
        assert_eq!(event(protect(BASE + 0x8_b000, 1), true), Some(protect(0x8_b000, 1)));
        assert_eq!(event(protect(BASE + 0x5000_0000, 3), false), Some(map(0x5000_0000, 0x1000, 3)));
        assert_eq!(event(protect(BASE + 0x5000_0000, 0), false), Some(protect(0x5000_0000, 0)));
        // QEMU's own.
        for addr in [0x7000, BASE - 0x1000, BASE + GUEST_BYTES] {
            assert_eq!(event(map(addr, 0x1000, 3), false), None);
        }
    }
}
