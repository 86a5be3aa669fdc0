//! Programs in assembler, which are never run: symbols, bounds and debug information that no compiler makes.

use super::*;

/// A program that consists of this alone.
fn assemble(folder: &Path, name: &str, source: &str, flags: &[&str]) -> String {
    let alone = ["-x", "assembler", "-nostdlib", "-static", "-no-pie", "-Wa,--keep-locals"];
    build_from(folder, name, "gcc", source, &[&alone, flags].concat())
}

#[test]
fn only_code_has_names() {
    let source = r#"
        .text
        .globl _start
_start: .skip 16
"$d":   .skip 16
.Lmark: .skip 16
        .type table, @object
table:  .skip 16
        .size table, 16
        .data
label:  .skip 16
        .type stub, @function
stub:   .skip 16
        .size stub, 16
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = assemble(folder.path(), "symbols", source, &[]);
    let mut symbols = Symbols::new();
    map_at(&mut symbols, &path, 0);
    let (start, data) = (address_of(&path, "_start"), address_of(&path, "label"));
    let name = |addr| symbols.resolve(1, addr).function;
    // A label without a size reaches over marks and data, as far as its section does.
    let names = [start, start + 16, start + 32, start + 48, start + 63, data, data + 16].map(name);
    let start = Some("_start".to_string());
    assert_eq!(names, [start.clone(), start.clone(), start.clone(), start.clone(), start, None, Some("stub".into())]);
}

#[test]
fn bounds_and_bytes_of_functions_lie_within_their_segment() {
    // `early` begins before the segment and ends behind it. `limit` has the most code that a function can have, by its
    // size.
    let source = r#"
        .text
        .globl _start
        .type early, @function
        .set early, _start - 0x100000
        .size early, 0x200000
_start: .skip 16, 1
        .type whole, @function
whole:  .skip 16, 2
        .size whole, 16
        .type limit, @function
limit:  .skip 16, 3
        .size limit, 0x1000000
        .type beyond, @function
beyond: .skip 16, 4
        .size beyond, 0x1000001
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = assemble(folder.path(), "bounds", source, &["-Wl,-Ttext-segment=0x40000000", "-Wl,--build-id=none"]);
    let bytes = std::fs::read(&path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let start = address_of(&path, "_start");
    let code = elf.segments().find(|segment| segment.address() + segment.size() > start).expect("code");
    let (first, size) = code.file_range();
    assert_eq!((code.address(), size), (start, 64), "nothing but the code is there");

    let mut module = MappedModule::new(&path);
    let mut bounds = |offset: u64| module.function_bounds(first + offset, Path::new("/"));
    let within = |from: u64, to: u64| Some(first + from..first + to);
    assert_eq!([bounds(0), bounds(3), bounds(15)], [(); 3].map(|()| within(0, 64)));
    assert_eq!([bounds(16), bounds(20), bounds(31)], [(); 3].map(|()| within(16, 32)));
    assert_eq!(bounds(36), within(32, 64));
    assert_eq!([bounds(52), bounds(64)], [None, None]);

    let whole = first as usize + 16..first as usize + 32;
    assert_eq!(module.read(first + 16..first + 32), bytes[whole]);
    assert_eq!(module.read(first + 16..first + 32), [2; 16]);
    let len = bytes.len() as u64;
    assert_eq!(module.read(len - 5..len + 100), bytes[bytes.len() - 5..]);
    assert!(module.read(len..len + 1).is_empty());

    // Names are by the file's own addresses, of its segments alone.
    let mut offset = |offset: u64| module.names(first + offset, Path::new("/"))[0].offset;
    assert_eq!([offset(0), offset(63), offset(64)], [start, start + 63, first + 64]);
}

#[test]
fn a_segment_goes_to_the_end_of_numbers_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let path = assemble(folder.path(), "program", ".globl _start\n_start: .skip 16\n", &[]);
    let mut bytes = std::fs::read(&path).unwrap();
    for header in 0..usize::from(bytes[56]) {
        let at = 64 + 56 * header;
        bytes[at + 8..at + 16].copy_from_slice(&(u64::MAX - 0xfff).to_le_bytes()); // p_offset
        bytes[at + 32..at + 40].fill(0xff); // p_filesz
    }
    std::fs::write(&path, bytes).unwrap();
    let mut module = MappedModule::new(&path);
    assert_eq!(module.names(0x1008, Path::new("/"))[0].offset, 0x1008);
    assert_eq!(module.function_bounds(0x1008, Path::new("/")), None);
}

/// Debug information whose function has its name in a shared file, and no line for the second half of its code.
const SHARED_NAME: &str = r#"
        .text
        .globl _start
        .type plain_symbol, @function
_start:
plain_symbol:
        nop
second: nop
stop:
        .size plain_symbol, stop - plain_symbol
        .section .gnu_debugaltlink, "", @progbits
        .asciz "shared"
        .quad 0x0807060504030201
        .section .debug_abbrev, "", @progbits
        .uleb128 1, 0x11 /* compile unit, with children: low_pc, high_pc, stmt_list */
        .byte 1
        .uleb128 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0
        .uleb128 2, 0x2e /* subprogram, without: name in the shared file, low_pc, high_pc */
        .byte 0
        .uleb128 0x03, 0x1f21, 0x11, 0x01, 0x12, 0x07, 0, 0
        .byte 0
        .section .debug_info, "", @progbits
        .long end - begin
begin:  .short 4
        .long 0
        .byte 8
        .uleb128 1
        .quad plain_symbol, stop - plain_symbol
        .long 0
        .uleb128 2
        .long 4
        .quad plain_symbol, stop - plain_symbol
        .byte 0
end:
        .section .debug_line, "", @progbits
        .long lines_end - lines
lines:  .short 3
        .long program - header
header: .byte 1, 1, 0, 1, 10, /* arguments of the opcodes: */ 0, 1, 1, 1, 1, 0, 0, 0, 1, /* folders: */ 0
        .asciz "made.c"
        .byte 0, 0, 0, 0
program: /* Each place, and how far its line is from the one before, which begins as 1. */
        .byte 0, 9, 2
        .quad plain_symbol
        .byte 3, 6, 1
        .byte 0, 9, 2
        .quad second
        .byte 3
        .sleb128 -7
        .byte 1
        .byte 0, 9, 2
        .quad stop
        .byte 0, 1, 1
lines_end:
"#;

#[test]
fn names_come_from_the_shared_file_that_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let path = assemble(folder.path(), "program", SHARED_NAME, &["-Wl,--build-id=none"]);
    let shared =
        ".globl _start\n_start: .skip 16\n.section .debug_str, \"\", @progbits\n.asciz \"one\", \"shared_name\"\n";
    let [code, second] = ["plain_symbol", "second"].map(|label| address_of(&path, label));
    for (id, name) in [("0x0102030405060708", "shared_name"), ("0x0102030405060709", "plain_symbol")] {
        assemble(folder.path(), "shared", shared, &[&format!("-Wl,--build-id={id}")]);
        let mut symbols = Symbols::new();
        map_at(&mut symbols, &path, 0);
        let first = symbols.resolve(1, code);
        assert_eq!((first.function.as_deref(), first.line), (Some(name), Some(7)));
        assert_eq!(first.to_string(), format!("{name} (made.c:7)"));
        // Line 0: the code is of no line.
        let last = symbols.resolve(1, second);
        assert_eq!((last.function.as_deref(), last.line), (Some(name), None));
        assert_eq!(last.to_string(), format!("{name} (program+{second:#x})"));
    }
}
