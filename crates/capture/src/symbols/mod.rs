//! Names for code addresses: function, source line, module.
//!
//! [`Symbols`] follows the memory maps of all processes of a trace through their events and looks
//! addresses up in the mapped ELF files of any architecture: debug information first (the file's
//! own, or a separate debug file), then symbol tables, else `module+0xoffset`.

mod block_reader;
mod call_site;
mod code_name;
mod debug_file;
mod module;
mod process_map;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lookaside_timing::CodePlace;
use lookaside_trace::{parse_maps, Event, MapSource, Region};

pub use code_name::CodeName;
use module::MappedModule;
use process_map::{ModuleMapping, ProcessMap};

/// Where systems keep separate debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The memory maps of a trace's processes, and the names of what is mapped.
///
/// Files are opened when they are mapped (so that one deleted later can still be read) and parsed
/// when an address in them is first looked up. Nothing in a file, however damaged, is an error
/// here: what can't be read has no names.
pub struct Symbols {
    processes: HashMap<u32, ProcessMap>,
    modules: Vec<MappedModule>,
    module_of_path: HashMap<String, usize>,
    debug_root: PathBuf,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbols {
    /// No process known yet.
    pub fn new() -> Self {
        Self::with_debug_root(PathBuf::from(DEBUG_ROOT))
    }

    fn with_debug_root(debug_root: PathBuf) -> Self {
        Symbols { processes: HashMap::new(), modules: Vec::new(), module_of_path: HashMap::new(), debug_root }
    }

    /// Those of the files whose code a running process has mapped now.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked at.
    pub fn of_process(process: u32) -> Result<Self, lookaside_host::HostError> {
        let text = lookaside_host::Process::of(process).maps_text()?;
        let mut symbols = Self::new();
        let is_code = |region: &Region| region.prot & 4 != 0 && matches!(region.source, MapSource::File { .. });
        for region in parse_maps(&text).into_iter().filter(is_code) {
            let len = region.bytes();
            let event = Event::Map { addr: region.start, len, prot: region.prot, source: region.source, site: 0 };
            symbols.observe(process, &event);
        }
        Ok(symbols)
    }

    /// Takes note of an event of `process`: mappings of files, their moves and forks count, others are passed over.
    ///
    /// What is unmapped, or another program's since an exec, can still be looked up, as long as no other file is mapped
    /// there.
    pub fn observe(&mut self, process: u32, event: &Event) {
        match event {
            Event::Map { addr, len, prot, source: MapSource::File { path, offset }, .. } => {
                let executable = prot & 4 != 0;
                let mapping = ModuleMapping { module: self.module(path, executable), file_offset: *offset };
                self.processes.entry(process).or_default().map(*addr, *len, mapping);
            }
            Event::Map { addr, len, prot, source: MapSource::Anonymous, .. } if prot & 4 != 0 => {
                self.processes.entry(process).or_default().map_anonymous_code(*addr, *len);
            }
            Event::Remap { old_addr, new_addr, new_len, .. } => {
                self.processes.entry(process).or_default().remap(*old_addr, *new_addr, *new_len);
            }
            Event::Fork { parent, child } => {
                let copy = self.processes.get(parent).cloned().unwrap_or_default();
                self.processes.insert(*child, copy);
            }
            _ => {}
        }
    }

    /// The name of the code at `ip` in `process`. For a return address ask for the byte before it.
    pub fn resolve(&mut self, process: u32, ip: u64) -> CodeName {
        let mut frames = self.resolve_inlined(process, ip);
        let outermost = frames.pop().unwrap_or_default();
        match frames.into_iter().next() {
            Some(innermost) => CodeName { inlined_into: outermost.function, ..innermost },
            None => outermost,
        }
    }

    /// As [`Symbols::resolve`], all functions inlined at `ip`, innermost first; at least one.
    pub(crate) fn resolve_inlined(&mut self, process: u32, ip: u64) -> Vec<CodeName> {
        let Some((module, file_offset)) = self.locate(process, ip) else {
            return vec![CodeName { offset: ip, ..CodeName::default() }];
        };
        self.modules[module].names(file_offset, &self.debug_root)
    }

    /// Names a call site after the first of its frames (return addresses, innermost first) that is
    /// neither in the system's runtime libraries nor a wrapper of an allocator:
    /// `function (file:line)`, or `function (module+0x…)` without line information.
    /// If all are, the outermost names it; without frames the answer is `unknown`.
    pub fn name_site(&mut self, process: u32, frames: &[u64]) -> String {
        let mut last = None;
        for &frame in frames {
            for name in self.resolve_inlined(process, frame.saturating_sub(1)) {
                if !call_site::is_runtime_or_allocator(&name) {
                    return name.to_string();
                }
                last = Some(name);
            }
        }
        last.map_or_else(|| "unknown".to_owned(), |name| name.to_string())
    }

    /// Where the functions of this name begin in the memory of `process`: those of the first file that has any, in the
    /// order of addresses.
    pub(crate) fn functions_named(&mut self, process: u32, name: &str) -> Vec<u64> {
        let mappings = self.processes.get(&process).map(ProcessMap::mappings).unwrap_or_default();
        let mut modules: Vec<usize> = mappings.iter().map(|(_, mapping)| mapping.module).collect();
        modules.dedup();
        for module in modules {
            let offsets = self.modules[module].functions_named(name, &self.debug_root);
            let address = |offset: &u64| {
                let its = mappings.iter().filter(|(_, mapping)| mapping.module == module);
                its.filter_map(|(range, mapping)| {
                    let address = range.start + offset.checked_sub(mapping.file_offset)?;
                    range.contains(&address).then_some(address)
                })
                .next()
            };
            let addresses: Vec<u64> = offsets.iter().filter_map(address).collect();
            if !addresses.is_empty() {
                return addresses;
            }
        }
        Vec::new()
    }

    /// The instruction at `ip`, as it is called in every run of the program: by file and offset, both empty of code in
    /// no file.
    pub fn place(&self, process: u32, ip: u64) -> CodePlace {
        self.locate(process, ip).map_or_else(CodePlace::default, |(module, offset)| CodePlace {
            file: self.modules[module].path().to_owned(),
            offset,
        })
    }

    /// The module mapped at `ip` and the offset of that byte in its file.
    pub(crate) fn locate(&self, process: u32, ip: u64) -> Option<(usize, u64)> {
        let map = self.processes.get(&process)?;
        let found = map.find(ip).map(|(start, mapping)| (mapping.module, mapping.file_offset.wrapping_add(ip - start)));
        found.or_else(|| map.find_moved(ip).map(|mapping| (mapping.module, mapping.file_offset)))
    }

    /// The functions whose code begins in some bytes of a process's memory that hold one file's code, in their order:
    /// where they begin, their bytes, their names.
    pub fn functions_between(&mut self, process: u32, start: u64, end: u64) -> Vec<(u64, u64, String)> {
        let Some((module, offset)) = self.locate(process, start) else { return Vec::new() };
        let functions = self.modules[module].functions_between(offset..offset + (end - start), &self.debug_root);
        functions
            .into_iter()
            .map(|(range, name)| (start + (range.start - offset), range.end - range.start, name))
            .collect()
    }

    /// A module by the number that [`Symbols::locate`] gave, and where separate debug files are.
    pub(crate) fn module_at(&mut self, module: usize) -> (&mut MappedModule, &Path) {
        (&mut self.modules[module], &self.debug_root)
    }

    fn module(&mut self, path: &str, executable: bool) -> usize {
        let index = *self.module_of_path.entry(path.to_owned()).or_insert_with(|| {
            self.modules.push(MappedModule::new(path));
            self.modules.len() - 1
        });
        if executable {
            self.modules[index].open();
        }
        index
    }
}

#[cfg(test)]
mod tests;
