//! Where a program's code lies: mappings of files that are executed, and the whole windows in them.

use std::collections::BTreeMap;

use lookaside_trace::{Block, Event, MapSource};

use super::{Window, WINDOW_BYTES};

/// A mapping of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// The file.
    pub path: String,
    /// Where in the file it begins.
    pub offset: u64,
}

impl CodeMapping {
    /// Whether a window lies in it as a whole.
    pub fn holds(&self, window: Window) -> bool {
        self.start <= window.addr && window.addr.checked_add(WINDOW_BYTES).is_some_and(|end| end <= self.end)
    }

    /// Where in the file an address lies.
    pub fn file_offset(&self, addr: u64) -> u64 {
        addr.wrapping_sub(self.start).wrapping_add(self.offset)
    }
}

/// All mappings of code of a trace's processes. What is unmapped stays known until something else is mapped there.
#[derive(Clone, Debug, Default)]
pub struct CodeMappings {
    processes: BTreeMap<u32, BTreeMap<u64, CodeMapping>>,
}

impl CodeMappings {
    /// Takes note of a block's events.
    pub fn run(&mut self, block: &Block) {
        for (_, event) in &block.events {
            self.event(block.process, event);
        }
    }

    fn event(&mut self, process: u32, event: &Event) {
        match event {
            Event::Map { addr, len, prot, source, .. } => {
                let all = self.processes.entry(process).or_default();
                let end = addr.saturating_add(*len);
                cut_out(all, *addr, end);
                if let (MapSource::File { path, offset }, true) = (source, prot & 4 != 0 && path_is_files(source)) {
                    all.insert(*addr, CodeMapping { start: *addr, end, path: path.clone(), offset: *offset });
                }
            }
            Event::Fork { parent, child } => {
                let copy = self.processes.get(parent).cloned().unwrap_or_default();
                self.processes.insert(*child, copy);
            }
            _ => {}
        }
    }

    /// The mapping of code that holds an address.
    pub fn find(&self, process: u32, addr: u64) -> Option<&CodeMapping> {
        let (_, mapping) = self.processes.get(&process)?.range(..=addr).next_back()?;
        (addr < mapping.end).then_some(mapping)
    }
}

/// What is in a file of a name, and no named memory or the kernel's own.
fn path_is_files(source: &MapSource) -> bool {
    matches!(source, MapSource::File { path, .. } if path.starts_with('/'))
}

/// Takes out all of a range, cutting mappings at its borders.
fn cut_out(all: &mut BTreeMap<u64, CodeMapping>, start: u64, end: u64) {
    let overlapping: Vec<CodeMapping> = all
        .range(..end)
        .rev()
        .take_while(|(_, mapping)| start < mapping.end)
        .map(|(_, mapping)| mapping.clone())
        .collect();
    for mapping in overlapping {
        all.remove(&mapping.start);
        if mapping.start < start {
            all.insert(mapping.start, CodeMapping { end: start, ..mapping.clone() });
        }
        if end < mapping.end {
            let offset = mapping.file_offset(end);
            all.insert(end, CodeMapping { start: end, offset, ..mapping });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    fn map(addr: u64, len: u64, prot: u8, path: &str, offset: u64) -> Event {
        let source = match path {
            "" => MapSource::Anonymous,
            path => MapSource::File { path: path.into(), offset },
        };
        Event::Map { addr, len, prot, source, site: 0 }
    }

    #[test]
    fn code_is_what_is_mapped_from_a_file_to_be_executed() {
        let mut code = CodeMappings::default();
        for event in [
            map(2 * M, 8 * M, 1, "/lib/x", 0),
            map(3 * M, 6 * M, 5, "/lib/x", M),
            map(20 * M, 4 * M, 5, "[vdso]", 0),
            map(30 * M, 4 * M, 7, "", 0),
        ] {
            code.event(1, &event);
        }
        code.event(1, &Event::Fork { parent: 1, child: 2 });
        let found = code.find(2, 4 * M).expect("code");
        assert_eq!((found.file_offset(4 * M), found.path.as_str()), (2 * M, "/lib/x"));
        let window = |addr| Window { process: 1, addr };
        assert_eq!([2, 4, 6, 8].map(|mib| found.holds(window(mib * M))), [false, true, true, false]);
        assert_eq!([2, 9, 21, 31].map(|mib| code.find(1, mib * M)), [None; 4]);
        // Something else in the middle of it.
        code.event(1, &map(5 * M, M, 3, "", 0));
        let parts =
            [4 * M, 5 * M, 6 * M].map(|at| code.find(1, at).map(|found| (found.start, found.end, found.offset)));
        assert_eq!(parts, [Some((3 * M, 5 * M, M)), None, Some((6 * M, 9 * M, 4 * M))]);
    }
}
