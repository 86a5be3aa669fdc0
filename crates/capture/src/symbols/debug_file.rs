//! Debug information: a file's own, or that of the separate file which its build id or
//! `.gnu_debuglink` names, with the shared part that `dwz` splits off.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection, ReadCache};

use super::block_reader::BlockReader;
use super::table::SymbolTable;

type Reader = EndianArcSlice<RunTimeEndian>;
pub(super) type DebugLines = addr2line::Context<Reader>;

/// The debug information of `file`, which was read from `path`.
pub(super) fn lines<'data>(file: &impl Object<'data>, path: &Path, debug_root: &Path) -> Option<DebugLines> {
    if has_lines(file) {
        return own_lines(file, path, debug_root);
    }
    with_separate(file, path, debug_root, |debug, path| own_lines(debug, path, debug_root)).flatten()
}

/// Adds the functions that the separate debug file of `file` names, if it has one.
pub(super) fn add_symbols<'data>(file: &impl Object<'data>, path: &Path, debug_root: &Path, symbols: &mut SymbolTable) {
    if !has_lines(file) {
        with_separate(file, path, debug_root, |debug, _| symbols.add(debug));
    }
}

fn has_lines<'data>(file: &impl Object<'data>) -> bool {
    [".debug_info", ".zdebug_info"].into_iter().any(|name| file.section_by_name(name).is_some())
}

type SeparateFile<'cache, 'file> = object::File<'cache, &'cache ReadCache<BlockReader<'file>>>;

/// Runs `f` on the separate debug file and its path.
fn with_separate<'data, T>(
    file: &impl Object<'data>,
    path: &Path,
    debug_root: &Path,
    f: impl FnOnce(&SeparateFile<'_, '_>, &Path) -> T,
) -> Option<T> {
    for candidate in candidates(file, path, debug_root) {
        let Ok(opened) = File::open(&candidate) else { continue };
        let cache = ReadCache::new(BlockReader::new(&opened));
        let Ok(debug) = object::File::parse(&cache) else { continue };
        if belongs(file, &debug, &candidate) {
            return Some(f(&debug, &candidate));
        }
    }
    None
}

/// Where a separate debug file may be, the surest first.
fn candidates<'data>(file: &impl Object<'data>, path: &Path, debug_root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(Some(id)) = file.build_id() {
        found.extend(by_build_id(id, debug_root));
    }
    if let (Ok(Some((name, _))), Some(folder)) = (file.gnu_debuglink(), path.parent()) {
        let name = OsStr::from_bytes(name);
        found.push(folder.join(name));
        found.push(folder.join(".debug").join(name));
        found.push(debug_root.join(folder.strip_prefix("/").unwrap_or(folder)).join(name));
    }
    found.retain(|candidate| candidate != path);
    found
}

fn by_build_id(id: &[u8], debug_root: &Path) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(debug_root.join(".build-id").join(format!("{first:02x}")).join(rest + ".debug"))
}

/// Both have the same build id; without build ids, the checksum in the link is the debug file's.
fn belongs<'a, 'b>(file: &impl Object<'a>, debug: &impl Object<'b>, debug_path: &Path) -> bool {
    match (file.build_id(), debug.build_id()) {
        (Ok(Some(ours)), Ok(Some(theirs))) => ours == theirs,
        _ => match (file.gnu_debuglink(), std::fs::read(debug_path)) {
            (Ok(Some((_, checksum))), Ok(bytes)) => crc32fast::hash(&bytes) == checksum,
            _ => false,
        },
    }
}

fn own_lines<'data>(file: &impl Object<'data>, path: &Path, debug_root: &Path) -> Option<DebugLines> {
    let mut dwarf = sections(file)?;
    if let Ok(Some((name, id))) = file.gnu_debugaltlink() {
        // Relative to the folder that the debug file is really in.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let linked = real.parent().map(|folder| folder.join(OsStr::from_bytes(name)));
        for candidate in linked.into_iter().chain(by_build_id(id, debug_root)) {
            let Ok(opened) = File::open(&candidate) else { continue };
            let cache = ReadCache::new(BlockReader::new(&opened));
            let Ok(shared) = object::File::parse(&cache) else { continue };
            if shared.build_id().ok().flatten() == Some(id) {
                if let Some(shared) = sections(&shared) {
                    dwarf.set_sup(shared);
                    break;
                }
            }
        }
    }
    DebugLines::from_dwarf(dwarf).ok()
}

fn sections<'data>(file: &impl Object<'data>) -> Option<Dwarf<Reader>> {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    Dwarf::load(|id: SectionId| -> Result<Reader, object::Error> {
        let data = match file.section_by_name(id.name()) {
            Some(section) => section.uncompressed_data()?,
            None => Default::default(),
        };
        Ok(Reader::new(Arc::from(data.as_ref()), endian))
    })
    .ok()
}
