//! One mapped file: its segments, symbols, source lines, function bounds and code.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};
use lookaside_host::{parse_smaps, Process};
use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use super::block_reader::BlockReader;
use super::code_name::CodeName;
use super::debug_file::{self, DebugLines};
use super::table::SymbolTable;

/// No function has more code than this; a bound on what a damaged file can make us read.
const MAX_CODE_BYTES: u64 = 16 << 20;

#[derive(Clone, Copy, Debug)]
struct LoadSegment {
    addr: u64,
    file_offset: u64,
    file_size: u64,
}

/// The parts of a readable ELF file that names and bounds come from, each made on first use: a sampler that runs beside
/// a service asks for bounds alone, and reading all debug information of libc takes tenths of a second.
#[derive(Default)]
struct ElfContents {
    segments: Vec<LoadSegment>,
    symbols: OnceCell<SymbolTable>,
    lines: OnceCell<Option<DebugLines>>,
    /// Function bounds from the unwind tables, sorted.
    unwind: OnceCell<Vec<Range<u64>>>,
}

/// Where what is made on first use is read from.
#[derive(Clone, Copy)]
struct ElfFiles<'a> {
    path: &'a str,
    file: Option<&'a File>,
    debug_root: &'a Path,
}

/// A mapped file, opened when it is first mapped with execute permission, parsed on first lookup.
pub(crate) struct MappedModule {
    path: String,
    file: Option<File>,
    /// Outer `None` = not parsed yet; inner `None` = no readable ELF.
    contents: Option<Option<ElfContents>>,
}

impl MappedModule {
    pub fn new(path: &str) -> Self {
        MappedModule { path: path.to_owned(), file: None, contents: None }
    }

    /// Its file's path, as it was mapped.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Opens the file, if that has not been done.
    pub fn open(&mut self) {
        if self.file.is_none() && self.contents.is_none() {
            self.file = open_regular(&self.path);
        }
    }

    /// Names of all functions at an offset in the file, innermost first; at least one.
    pub fn names(&mut self, file_offset: u64, debug_root: &Path) -> Vec<CodeName> {
        let module = self.path.clone();
        let Some((files, contents, (_, addr))) = self.parsed_at(file_offset, debug_root) else {
            return vec![CodeName { module, offset: file_offset, ..CodeName::default() }];
        };
        let plain = CodeName { module, offset: addr, ..CodeName::default() };
        let mut names = contents.frames(files, addr, &plain);
        if names.is_empty() {
            names.push(plain);
        }
        if let Some(outermost) = names.last_mut().filter(|name| name.function.is_none()) {
            outermost.function = contents.symbols(files).find(addr).map(|(name, _)| demangled(name));
        }
        names
    }

    /// Where in the file the functions of this name begin: the symbol's name, or what that says in its language, with or
    /// without what it takes.
    pub fn functions_named(&mut self, name: &str, debug_root: &Path) -> Vec<u64> {
        let Some((files, contents)) = self.parsed(debug_root) else { return Vec::new() };
        let is_it = |symbol: &str| {
            let plain = symbol.split_once('@').map_or(symbol, |(plain, _)| plain);
            plain == name || symbol.contains(last_word(name)) && is_called(&demangled(plain), name)
        };
        let named = contents.symbols(files).functions().filter(|(symbol, _)| is_it(symbol));
        let mut offsets: Vec<u64> = named.filter_map(|(_, addr)| contents.file_offset(addr)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// The functions that begin within these bytes of the file: their own bytes, and their names.
    pub fn functions_between(&mut self, bytes: Range<u64>, debug_root: &Path) -> Vec<(Range<u64>, String)> {
        let Some((files, contents)) = self.parsed(debug_root) else { return Vec::new() };
        let placed = contents.symbols(files).ranges().filter_map(|(name, range)| {
            let start = contents.file_offset(range.start).filter(|start| bytes.contains(start))?;
            Some((start..start + (range.end - range.start), demangled(name)))
        });
        placed.collect()
    }

    /// The bounds of the function at an offset in the file, as offsets in the file.
    pub fn function_bounds(&mut self, file_offset: u64, debug_root: &Path) -> Option<Range<u64>> {
        let (files, contents, (segment, addr)) = self.parsed_at(file_offset, debug_root)?;
        let unwind = contents.unwind.get_or_init(|| files.with_elf(|elf| unwind_ranges(elf)).unwrap_or_default());
        let at = unwind.partition_point(|range| range.start <= addr);
        let unwound = unwind[..at].last().filter(|range| addr < range.end).cloned();
        // The unwind tables first: they bound every compiled function, local ones in stripped files too.
        let range = unwound.or_else(|| contents.symbols(files).find(addr).map(|(_, range)| range))?;
        // Within the bytes before and after that the file has for the segment.
        let before = (addr - range.start).min(file_offset - segment.file_offset);
        let after = (range.end - addr).min(segment.file_offset.saturating_add(segment.file_size) - file_offset);
        (range.end - range.start <= MAX_CODE_BYTES).then(|| file_offset - before..file_offset + after)
    }

    /// The bytes of the file in `range`; fewer where the file ends.
    pub fn read(&self, range: Range<u64>) -> Vec<u8> {
        let len = range.end.saturating_sub(range.start).min(MAX_CODE_BYTES) as usize;
        if let Some(vdso) = vdso(&self.path) {
            return vdso.into_iter().skip(range.start as usize).take(len).collect();
        }
        let mut bytes = vec![0; len];
        let mut done = 0;
        if let Some(file) = &self.file {
            while let Ok(n @ 1..) = file.read_at(&mut bytes[done..], range.start + done as u64) {
                done += n;
            }
        }
        bytes.truncate(done);
        bytes
    }

    /// The file's contents, with the segment and the address of an offset in it.
    fn parsed_at<'a>(
        &'a mut self,
        file_offset: u64,
        debug_root: &'a Path,
    ) -> Option<(ElfFiles<'a>, &'a ElfContents, (LoadSegment, u64))> {
        let (files, contents) = self.parsed(debug_root)?;
        Some((files, contents, contents.locate(file_offset)?))
    }

    fn parsed<'a>(&'a mut self, debug_root: &'a Path) -> Option<(ElfFiles<'a>, &'a ElfContents)> {
        if self.contents.is_none() {
            self.open();
        }
        let files = ElfFiles { path: &self.path, file: self.file.as_ref(), debug_root };
        let contents = self.contents.get_or_insert_with(|| files.with_elf(|elf| ElfContents::new(elf))).as_ref()?;
        Some((files, contents))
    }
}

impl ElfContents {
    fn new<'data>(elf: &impl Object<'data>) -> Self {
        let segments = elf.segments().map(|segment| {
            let (file_offset, file_size) = segment.file_range();
            LoadSegment { addr: segment.address(), file_offset, file_size }
        });
        ElfContents { segments: segments.collect(), ..ElfContents::default() }
    }

    /// The functions that the file and its separate debug file name.
    fn symbols(&self, files: ElfFiles<'_>) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            let mut symbols = SymbolTable::default();
            files.with_elf(|elf| {
                symbols.add(elf);
                debug_file::add_symbols(elf, Path::new(files.path), files.debug_root, &mut symbols);
            });
            symbols.sort();
            symbols
        })
    }

    /// The segment of an offset in the file, and its address as the file's own tables have it.
    fn locate(&self, file_offset: u64) -> Option<(LoadSegment, u64)> {
        self.segments.iter().find_map(|segment| {
            let within = file_offset.checked_sub(segment.file_offset).filter(|&within| within < segment.file_size)?;
            Some((*segment, segment.addr.wrapping_add(within)))
        })
    }

    /// The offset in the file of an address, as the file's own tables have that.
    fn file_offset(&self, addr: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let within = addr.checked_sub(segment.addr).filter(|&within| within < segment.file_size)?;
            Some(segment.file_offset + within)
        })
    }

    /// Functions and lines that the debug information gives, innermost first.
    fn frames(&self, files: ElfFiles<'_>, addr: u64, plain: &CodeName) -> Vec<CodeName> {
        let mut names = Vec::new();
        let load = |elf: &Elf<'_, '_>| debug_file::lines(elf, Path::new(files.path), files.debug_root);
        let Some(lines) = self.lines.get_or_init(|| files.with_elf(load).flatten()) else { return names };
        // Split debug information (.dwo) is not followed: such code has its symbol only.
        let Ok(mut frames) = lines.find_frames(addr).skip_all_loads() else { return names };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|f| f.demangle().ok().map(Cow::into_owned));
            let location = frame.location.as_ref();
            names.push(CodeName {
                function,
                file: location.and_then(|l| l.file).map(str::to_owned),
                line: location.and_then(|l| l.line),
                ..plain.clone()
            });
        }
        names
    }
}

fn demangled(name: &str) -> String {
    // `name@@VERSION` in some tables.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
}

/// Whether a function's name, as its language writes it, is this one, but for what stands in parentheses behind it.
fn is_called(demangled: &str, name: &str) -> bool {
    demangled == name || demangled.strip_prefix(name).is_some_and(|rest| rest.starts_with('('))
}

/// The last part of a name such as `space::function`, which a mangled symbol has too.
fn last_word(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

/// Only regular files: opening a device or a pipe can block or act.
fn open_regular(path: &str) -> Option<File> {
    let regular = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    regular.then(|| File::open(path).ok()).flatten()
}

/// The vDSO's bytes: the same for all processes of one system, so our own will do.
fn vdso(path: &str) -> Option<Vec<u8>> {
    if path != "[vdso]" {
        return None;
    }
    let own = Process::own();
    let vdso = parse_smaps(&own.maps_text().ok()?).into_iter().find(|vma| vma.name == "[vdso]")?;
    let mut bytes = vec![0; usize::try_from(vdso.end - vdso.start).ok()?];
    own.open("mem").ok()?.read_exact_at(&mut bytes, vdso.start).ok()?;
    Some(bytes)
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}
type Elf<'cache, 'data> = object::File<'cache, &'cache ReadCache<Box<dyn ReadSeek + 'data>>>;

impl ElfFiles<'_> {
    /// Runs `f` on the parsed file; `None` where it is not readable.
    fn with_elf<T>(self, f: impl FnOnce(&Elf<'_, '_>) -> T) -> Option<T> {
        let data: Box<dyn ReadSeek + '_> = match (vdso(self.path), self.file) {
            (Some(bytes), _) => Box::new(Cursor::new(bytes)),
            (None, Some(file)) => Box::new(BlockReader::new(file)),
            (None, None) => return None,
        };
        let cache = ReadCache::new(data);
        let elf = object::File::parse(&cache).ok()?;
        Some(f(&elf))
    }
}

/// Bounds of all functions in `.eh_frame`.
fn unwind_ranges<'data>(elf: &impl Object<'data>) -> Vec<Range<u64>> {
    let Some(section) = elf.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(data) = section.uncompressed_data() else { return Vec::new() };
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut eh_frame = EhFrame::from(EndianSlice::new(&data, endian));
    eh_frame.set_address_size(if elf.is_64() { 8 } else { 4 });
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = elf.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    if let Some(got) = elf.section_by_name(".got") {
        bases = bases.set_got(got.address());
    }
    let mut cies = HashMap::new();
    let mut ranges = Vec::new();
    let mut entries = eh_frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| match cies.get(&offset) {
            Some(cie) => Ok(Clone::clone(cie)),
            None => section.cie_from_offset(bases, offset).inspect(|cie| {
                cies.insert(offset, cie.clone());
            }),
        });
        if let Ok(fde) = fde {
            let start = fde.initial_address();
            ranges.push(start..start.saturating_add(fde.len()));
        }
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sampler beside a service asks for takes none of the work that names do.
    #[test]
    fn the_bounds_of_a_compiled_function_need_no_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, program) = (folder.path().join("small.c"), folder.path().join("small"));
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("written");
        let built = std::process::Command::new("gcc").args(["-g", "-O1", "-o"]).args([&program, &source]).status();
        assert!(built.expect("gcc").success());
        let mut module = MappedModule::new(program.to_str().expect("UTF-8"));
        let root = Path::new("/no/debug/files");
        let in_code = (0..1 << 14).find(|&offset| module.function_bounds(offset, root).is_some());
        let is_loaded = |module: &MappedModule| {
            let contents = module.contents.as_ref().and_then(Option::as_ref).expect("an ELF file");
            [contents.lines.get().is_some(), contents.unwind.get().is_some()]
        };
        assert_eq!(is_loaded(&module), [false, true]);
        assert!(!module.names(in_code.expect("code"), root).is_empty());
        assert_eq!(is_loaded(&module), [true, true]);
    }
}
