mod hand_made;

use std::path::Path;
use std::process::Command;

use lookaside_trace::{Event, MapSource};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use proptest::prelude::*;

use super::*;

const SOURCE: &str = "#include <stdlib.h>\n\
    static long __attribute__((always_inline)) inline inner(long *p) { return *p + 1; }\n\
    void *xmalloc(unsigned long n) { return malloc(n); }\n\
    long __attribute__((noinline)) outer(long *p) {\n\
    \x20 return inner(p);\n\
    }\n\
    int main(void) { return (int)outer(xmalloc(8)); }\n";

/// A program built from `SOURCE`.
fn build(folder: &Path, name: &str, flags: &[&str]) -> String {
    build_from(folder, name, "gcc", SOURCE, flags)
}

fn build_from(folder: &Path, name: &str, compiler: &str, source: &str, flags: &[&str]) -> String {
    let source_path = folder.join(if compiler == "g++" { format!("{name}.cc") } else { format!("{name}.c") });
    std::fs::write(&source_path, source).unwrap();
    let program = folder.join(name);
    let status = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(&source_path).status();
    assert!(status.unwrap().success());
    program.to_str().unwrap().to_owned()
}

/// Maps the program's segments at `base` as the loader would, for process 1.
fn map_at(symbols: &mut Symbols, path: &str, base: u64) {
    map_as(symbols, path, base, 5);
}

fn map_as(symbols: &mut Symbols, path: &str, base: u64, prot: u8) {
    let bytes = std::fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    for segment in elf.segments() {
        let (offset, _) = segment.file_range();
        let skew = segment.address() % 4096;
        let source = MapSource::File { path: path.to_owned(), offset: offset - skew };
        let (addr, len) = (base + segment.address() - skew, segment.size() + skew);
        symbols.observe(1, &Event::Map { addr, len, prot, source, site: 0 });
    }
}

fn address_of(path: &str, function: &str) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let found = elf.symbols().find(|symbol| symbol.name() == Ok(function));
    found.unwrap_or_else(|| panic!("{function} in {path}")).address()
}

#[test]
fn lines_inlined_functions_and_sites_of_pie_and_fixed_programs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, flag, base) in [("pie", "-pie", 0x5555_5555_4000), ("fixed", "-no-pie", 0)] {
        let path = build(folder.path(), name, &["-O2", "-g", "-fno-optimize-sibling-calls", "-fPIE", flag]);
        let mut symbols = Symbols::new();
        map_at(&mut symbols, &path, base);
        let outer = address_of(&path, "outer");
        let resolved = symbols.resolve(1, base + outer);
        assert_eq!(resolved.module, path);
        assert_eq!(resolved.offset, outer);
        let frames: Vec<_> = (0..8).map(|i| symbols.resolve(1, base + outer + i)).collect();
        let inlined = frames.iter().find(|name| name.function.as_deref() == Some("inner")).expect("inlined frame");
        assert_eq!(inlined.inlined_into.as_deref(), Some("outer"));
        assert_eq!((inlined.line, inlined.to_string().as_str()), (Some(2), format!("inner ({name}.c:2)").as_str()));

        // A stack from malloc's caller: xmalloc is passed over, main is the answer.
        let xmalloc = base + address_of(&path, "xmalloc") + 5;
        let main = base + address_of(&path, "main") + 5;
        assert_eq!(symbols.name_site(1, &[xmalloc, main]), format!("main ({name}.c:7)"));
        assert!(symbols.name_site(1, &[xmalloc]).starts_with("xmalloc ("));
        assert_eq!(symbols.name_site(1, &[]), "unknown");
    }
}

#[test]
fn symbol_tables_serve_where_debug_information_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "plain", &["-O2"]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0x10000);
    let outer = address_of(&path, "outer");
    let name = symbols.resolve(1, 0x10000 + outer);
    assert_eq!((name.function.as_deref(), name.line), (Some("outer"), None));
    assert_eq!(name.to_string(), format!("outer (plain+{outer:#x})"));
    // Stripped: the place only.
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0x10000);
    assert_eq!(symbols.resolve(1, 0x10000 + outer).to_string(), format!("plain+{outer:#x}"));
    assert_eq!(symbols.resolve(2, 0x10000 + outer).to_string(), format!("{:#x}", 0x10000 + outer));
}

#[test]
fn separate_debug_files_by_link_and_by_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &str, args: &[&str]| {
        assert!(Command::new(program).current_dir(folder.path()).args(args).status().unwrap().success());
    };
    for (name, flag) in [("linked", "-Wl,--build-id=none"), ("identified", "-Wl,--build-id=0x0123456789abcdef")] {
        let path = build(folder.path(), name, &["-O2", "-g", flag]);
        let outer = address_of(&path, "outer");
        let debug = if name == "linked" {
            "linked.debug"
        } else {
            std::fs::create_dir_all(folder.path().join(".build-id/01")).unwrap();
            ".build-id/01/23456789abcdef.debug"
        };
        run("objcopy", &["--only-keep-debug", name, debug]);
        run("strip", &[name]);
        if name == "linked" {
            run("objcopy", &["--add-gnu-debuglink=linked.debug", name]);
        }
        let resolve = || {
            let mut symbols = Symbols::with_debug_root(folder.path().to_owned());
            map_at(&mut symbols, &path, 0);
            symbols.resolve(1, outer + 3)
        };
        assert_eq!(resolve().inlined_into.or(resolve().function).as_deref(), Some("outer"), "{name}");
        assert!(resolve().line.is_some(), "{name}");
        // A file that does not belong to it is not believed.
        if name == "linked" {
            let other = build(folder.path(), "other", &["-O0", "-g", "-Wl,--build-id=none"]);
            std::fs::copy(other, folder.path().join(debug)).unwrap();
            assert_eq!(resolve().function, None);
        }
    }
}

#[test]
fn hand_written_code_has_the_name_of_its_function() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        "asm(\".text; .globl hand; .type hand,@function; hand: nop; within: nop; nop; ret; .size hand,.-hand\");\n\
                  #include <stdlib.h>\nint main(void) { return atoi(\"0\"); }\n";
    let path = build_from(folder.path(), "hand", "gcc", source, &["-O2"]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    let hand = address_of(&path, "hand");
    for ip in hand..hand + 4 {
        assert_eq!(symbols.resolve(1, ip).function.as_deref(), Some("hand"), "{ip:#x}");
    }
    // The linker's stubs have no symbols: the one before them, `_init` without a size, ends with its section.
    let bytes = std::fs::read(&path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let stubs = elf.section_by_name(".plt").or_else(|| elf.section_by_name(".plt.got")).expect("stubs");
    assert_eq!(symbols.resolve(1, stubs.address()).function, None);
}

#[test]
fn thumb_functions_are_not_named_by_the_marks_within_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = build_from(folder.path(), "thumb", "arm-linux-gnueabihf-gcc", SOURCE, &["-O2", "-mthumb", "-static"]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    for function in ["outer", "main"] {
        // Bit 0 says Thumb.
        let start = address_of(&path, function) & !1;
        assert_eq!(symbols.resolve(1, start).function.as_deref(), Some(function));
        assert_eq!(symbols.resolve(1, start + 2).function.as_deref(), Some(function));
    }
}

#[test]
fn a_debug_file_that_does_not_belong_costs_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "program", &["-O2", "-Wl,--build-id=none"]);
    let debug = build(folder.path(), "program.debug", &["-O0", "-g", "-Wl,--build-id=none"]);
    let link = format!("--add-gnu-debuglink={debug}");
    assert!(Command::new("objcopy").args([&link, &path]).status().unwrap().success());
    // Other bytes than those that the link has the checksum of.
    std::fs::copy(&path, &debug).unwrap();
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    let name = symbols.resolve(1, address_of(&path, "outer"));
    assert_eq!((name.function.as_deref(), name.line), (Some("outer"), None));
}

#[test]
fn cpp_names_are_demangled_and_containers_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <vector>\nstruct T { std::vector<long> make(int n); };\n\
                  __attribute__((noinline,noipa)) std::vector<long> T::make(int n) {\n\
                  return std::vector<long>(n); }\nint main(int n, char **) { T t; return t.make(n).size(); }\n";
    let path = build_from(folder.path(), "cpp", "g++", source, &["-O2", "-g"]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    let make = address_of(&path, "_ZN1T4makeEi");
    assert!(symbols.resolve_inlined(1, make).last().unwrap().function.as_deref().unwrap().starts_with("T::make"));
    // The call of operator new lies in an inlined allocator of the container's; the site is T::make.
    let call =
        (0..200).map(|i| make + i).find(|&ip| symbols.resolve_inlined(1, ip).len() > 2).expect("inlined allocator");
    assert!(symbols.name_site(1, &[call + 1]).starts_with("T::make"), "{}", symbols.name_site(1, &[call + 1]));
}

#[test]
fn the_vdso_of_this_process_has_names() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vdso");
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let mut symbols = Symbols::new();
    let source = MapSource::File { path: "[vdso]".into(), offset: 0 };
    symbols.observe(1, &Event::Map { addr: start, len: 0x2000, prot: 5, source, site: 0 });
    let named =
        (0..0x2000).any(|i| symbols.resolve(1, start + i).function.is_some_and(|f| f.contains("clock_gettime")));
    assert!(named);
}

#[test]
fn forks_execs_and_unmaps() {
    let mut symbols = Symbols::new();
    let map = |path: &str| Event::Map {
        addr: 0x1000,
        len: 0x1000,
        prot: 5,
        source: MapSource::File { path: path.into(), offset: 0 },
        site: 0,
    };
    symbols.observe(1, &map("/nonexistent/a"));
    symbols.observe(1, &Event::Fork { parent: 1, child: 2 });
    symbols.observe(2, &Event::Exec { path: "/nonexistent/b".into() });
    assert_eq!(symbols.resolve(2, 0x1010).to_string(), "a+0x10");
    symbols.observe(2, &map("/nonexistent/b"));
    assert_eq!(symbols.resolve(2, 0x1010).to_string(), "b+0x10");
    assert_eq!(symbols.resolve(1, 0x1010).to_string(), "a+0x10");
    // Still named after the unmap, until something else lies there.
    symbols.observe(1, &Event::Unmap { addr: 0x1000, len: 0x1000 });
    assert_eq!(symbols.resolve(1, 0x1010).to_string(), "a+0x10");
}

#[test]
fn what_is_no_elf_file_has_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no ELF file").unwrap();
    for path in [text.to_str().unwrap(), "/dev/zero", "/proc/self/mem", "/nonexistent (deleted)", "[vsyscall]", ""] {
        let mut symbols = Symbols::new();
        let source = MapSource::File { path: path.into(), offset: 0x40 };
        symbols.observe(1, &Event::Map { addr: 0x1000, len: 0x1000, prot: 5, source, site: 0 });
        let name = symbols.resolve(1, 0x1008);
        assert_eq!((name.function, name.module.as_str(), name.offset), (None, path, 0x48));
    }
}

#[test]
fn a_deleted_file_that_was_mapped_before_still_has_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "gone", &["-O2"]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    let outer = address_of(&path, "outer");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(symbols.resolve(1, outer).function.as_deref(), Some("outer"));
}

#[test]
fn a_file_is_held_open_for_its_code_alone() {
    let folder = tempfile::tempdir().unwrap();
    for (prot, name) in [(4, Some("outer")), (3, None)] {
        let path = build(folder.path(), "program", &["-O2"]);
        let mut symbols = Symbols::new();
        map_as(&mut symbols, &path, 0, prot);
        let outer = address_of(&path, "outer");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(symbols.resolve(1, outer).function.as_deref(), name, "{prot}");
    }
}

#[test]
fn a_place_is_a_file_and_an_offset_in_it() {
    let place = |file: &str, offset| CodePlace { file: file.into(), offset };
    let mut symbols = Symbols::new();
    for (addr, path) in [(0x1000, "/nonexistent/a"), (0x2000, "/nonexistent/b"), (0x8000, "/nonexistent/a")] {
        let source = MapSource::File { path: path.into(), offset: 0x200 };
        symbols.observe(1, &Event::Map { addr, len: 0x1000, prot: 5, source, site: 0 });
    }
    symbols.observe(1, &Event::Remap { old_addr: 0x1000, old_len: 0x2000, new_addr: 0x5000, new_len: 0x1000 });
    for (ip, file, offset) in [
        (0x1010, "/nonexistent/a", 0x210),
        (0x2fff, "/nonexistent/b", 0x11ff),
        (0x5010, "/nonexistent/a", 0x210),
        (0x8000, "/nonexistent/a", 0x200),
    ] {
        assert_eq!(symbols.place(1, ip), place(file, offset), "{ip:#x}");
    }
    for nothing in [0xfff, 0x3000, 0x6000] {
        assert_eq!(symbols.place(1, nothing), CodePlace::default());
    }
    assert_eq!(symbols.place(2, 0x1010), CodePlace::default());
}

#[test]
fn unwind_tables_bound_functions_without_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), "stripped", &["-O2", "-falign-functions=64"]);
    let bytes = std::fs::read(&path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap();
    let segment = elf.segments().find(|segment| segment.address() + segment.size() > symbol.address()).unwrap();
    let start = segment.file_range().0 + symbol.address() - segment.address();
    let end = start + symbol.size();
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    let mut module = MappedModule::new(&path);
    for offset in [start, start + 1, end - 1] {
        assert_eq!(module.function_bounds(offset, Path::new("/")), Some(start..end));
    }
    // What fills the room between functions is none's.
    assert_eq!(module.function_bounds(end, Path::new("/")), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Damaged programs: any answer, no panic, no hang.
    #[test]
    fn damaged_files_never_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), cut in prop::option::of(any::<prop::sample::Index>()), header in any::<bool>()) {
        static PROGRAM: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let program = PROGRAM.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::read(build(folder.path(), "sound", &["-O2", "-g", "-gz=zlib"])).unwrap()
        });
        let mut bytes = program.clone();
        for (index, value) in damage {
            let at = index.index(if header { 0x400 } else { bytes.len() });
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let mut symbols = Symbols::new();
        let source = MapSource::File { path: file.path().to_str().unwrap().into(), offset: 0 };
        symbols.observe(1, &Event::Map { addr: 0, len: 0x8000, prot: 5, source, site: 0 });
        for ip in (0..0x8000).step_by(61) {
            let name = symbols.resolve(1, ip);
            prop_assert!(!name.module.is_empty());
            let (module, offset) = symbols.locate(1, ip).unwrap();
            let (module, debug_root) = symbols.module_at(module);
            if let Some(range) = module.function_bounds(offset, debug_root) {
                prop_assert!(range.start <= offset && offset < range.end);
                module.read(range);
            }
        }
    }
}
