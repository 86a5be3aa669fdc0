//! One process's map from addresses to modules, kept up to date by the events of a trace.

use std::collections::BTreeMap;
use std::ops::Range;

/// A module's file mapped at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModuleMapping {
    /// Number of the module.
    pub module: usize,
    /// Offset in the module's file of the first mapped byte.
    pub file_offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct ModuleRange {
    /// First byte after it.
    end: u64,
    mapping: ModuleMapping,
}

/// Ranges that do not overlap, by first byte. What is no longer mapped stays, so that addresses seen before can still
/// be named, until another file is mapped there.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessMap {
    ranges: BTreeMap<u64, ModuleRange>,
    /// Code in no file, by first byte: the address after the last.
    anonymous_code: BTreeMap<u64, u64>,
}

impl ProcessMap {
    /// Maps `len` bytes of a file at `addr`.
    pub fn map(&mut self, addr: u64, len: u64, mapping: ModuleMapping) {
        let end = addr.saturating_add(len);
        if end <= addr {
            return;
        }
        self.cut_out(addr, end);
        self.ranges.insert(addr, ModuleRange { end, mapping });
    }

    /// Maps `len` bytes of code that is in no file at `addr`.
    pub fn map_anonymous_code(&mut self, addr: u64, len: u64) {
        let end = addr.saturating_add(len);
        if addr < end {
            self.anonymous_code.insert(addr, end);
        }
    }

    /// The module of code in no file that fills a hole in a module's mapping, with the offset in the file that was there:
    /// code that was copied to huge pages. Where the hole ends, the mapping goes on.
    pub fn find_moved(&self, ip: u64) -> Option<ModuleMapping> {
        let (_, &first_end) = self.anonymous_code.range(..=ip).next_back().filter(|&(_, &end)| ip < end)?;
        let mut end = first_end;
        while let Some(&next) = self.anonymous_code.get(&end) {
            end = next;
        }
        let rest = self.ranges.get(&end)?.mapping;
        let file_offset = rest.file_offset.checked_sub(end - ip)?;
        Some(ModuleMapping { file_offset, ..rest })
    }

    /// Moves what is mapped at `old_addr`; a longer new range goes on in the same file.
    pub fn remap(&mut self, old_addr: u64, new_addr: u64, new_len: u64) {
        if let Some((start, mapping)) = self.find(old_addr) {
            let file_offset = mapping.file_offset.wrapping_add(old_addr - start);
            self.map(new_addr, new_len, ModuleMapping { file_offset, ..mapping });
        }
    }

    /// The mapping that holds `ip`, with its first byte.
    pub fn find(&self, ip: u64) -> Option<(u64, ModuleMapping)> {
        let (&start, range) = self.ranges.range(..=ip).next_back()?;
        (ip < range.end).then_some((start, range.mapping))
    }

    /// All mappings, in the order of addresses.
    pub fn mappings(&self) -> Vec<(Range<u64>, ModuleMapping)> {
        self.ranges.iter().map(|(&start, range)| (start..range.end, range.mapping)).collect()
    }

    /// Takes out all of `start..end`, cutting ranges at its borders.
    fn cut_out(&mut self, start: u64, end: u64) {
        for border in [start, end] {
            if let Some((first, mapping)) = self.find(border).filter(|&(first, _)| first < border) {
                let left = self.ranges[&first];
                let file_offset = mapping.file_offset.wrapping_add(border - first);
                self.ranges.insert(border, ModuleRange { mapping: ModuleMapping { file_offset, ..mapping }, ..left });
                self.ranges.insert(first, ModuleRange { end: border, ..left });
            }
        }
        let starts: Vec<u64> = self.ranges.range(start..end).map(|(&start, _)| start).collect();
        for start in starts {
            self.ranges.remove(&start);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map with one entry for each byte.
        #[test]
        fn agrees_with_a_byte_map(ops in prop::collection::vec((0u64..60, 1u64..20, 0usize..4, 0u64..100), 1..30)) {
            let mut map = ProcessMap::default();
            let mut naive: Vec<Option<(usize, u64)>> = vec![None; 100];
            for (addr, len, module, file_offset) in ops {
                map.map(addr, len, ModuleMapping { module, file_offset });
                for i in 0..len {
                    naive[(addr + i) as usize] = Some((module, file_offset + i));
                }
            }
            for ip in 0..100 {
                let found = map.find(ip).map(|(start, m)| (m.module, m.file_offset + (ip - start)));
                prop_assert_eq!(found, naive[ip as usize]);
            }
        }
    }

    #[test]
    fn a_moved_mapping_keeps_its_file_offset() {
        let mut map = ProcessMap::default();
        map.map(0x1000, 0x3000, ModuleMapping { module: 7, file_offset: 0x100 });
        map.remap(0x2000, 0x9000, 0x2000);
        assert_eq!(map.find(0x9010), Some((0x9000, ModuleMapping { module: 7, file_offset: 0x1100 })));
        // Where it was it is still known.
        assert_eq!(map.find(0x2010), Some((0x1000, ModuleMapping { module: 7, file_offset: 0x100 })));
        assert_eq!(map.find(0xb000), None);
        map.remap(0x4000, 0xb000, 0x1000);
        assert_eq!(map.find(0xb000), None, "nothing was there");
    }

    #[test]
    fn code_in_no_file_is_a_files_where_it_fills_a_hole_in_it() {
        let mut map = ProcessMap::default();
        let module = |file_offset| ModuleMapping { module: 3, file_offset };
        map.map(0x1000, 0x1000, module(0x7000));
        map.map_anonymous_code(0x2000, 0x2000);
        map.map_anonymous_code(0x4000, 0x1000);
        map.map(0x5000, 0x1000, module(0xb000));
        let found = [0x2000, 0x3fff, 0x4008].map(|ip| map.find_moved(ip).map(|found| found.file_offset));
        assert_eq!(found, [Some(0x8000), Some(0x9fff), Some(0xa008)]);
        assert_eq!([0x1fff, 0x5000, 0x9000].map(|ip| map.find_moved(ip)), [None; 3]);
        // Before a file's first byte there is none of it; nor where no file follows.
        map.map_anonymous_code(0x10000, 0x1000);
        map.map(0x11000, 0x1000, module(0));
        map.map_anonymous_code(0x20000, 0x1000);
        assert_eq!([0x10800, 0x20800].map(|ip| map.find_moved(ip)), [None; 2]);
    }

    #[test]
    fn lengths_past_the_end_of_memory_are_cut() {
        let mut map = ProcessMap::default();
        map.map(u64::MAX - 10, 1000, ModuleMapping { module: 1, file_offset: 0 });
        map.map(5, 0, ModuleMapping { module: 2, file_offset: 0 });
        assert!(map.find(u64::MAX - 5).is_some());
        assert_eq!(map.find(5), None);
    }
}
