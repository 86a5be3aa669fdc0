//! The tables, and lookups through them against going through all names.

use lookaside_workloads::kernel::Unseen;
use lookaside_workloads::Pages;

use super::*;

/// As `readelf` says it of Debian's files, and no table runs into the next one.
#[test]
fn tables_are_as_large_as_the_files() {
    let bytes = |tables: &ObjectTables| {
        let hashed = tables.symbol_count - tables.first_hashed;
        4 * (HASH_HEADER_WORDS + tables.filter_words + tables.buckets + hashed)
    };
    assert_eq!(TABLES.each_ref().map(bytes)[1..], [0x20e8, 0x4fd8, 0x15c]);
    for tables in &TABLES {
        let places = [tables.hash, tables.symbols, tables.names, tables.versions, tables.relocations];
        assert!(places.is_sorted());
        assert!(tables.hash + bytes(tables) <= tables.symbols);
        assert!(tables.symbols + 16 * tables.symbol_count <= tables.names);
        assert!(tables.names + tables.name_bytes <= tables.versions);
        assert!(tables.versions + 2 * tables.symbol_count <= tables.relocations);
    }
}

/// Every symbol that is exported is found by its name, through the tables; the first file that has the name wins.
#[test]
fn symbols_are_found_as_by_going_through_all() {
    let mut process = ArmProcess::new("a", Pages::Base);
    let (loader, _) = Loader::new(&mut process).expect("memory");
    let naively = |name: &[u8]| {
        let mut found = loader.all.iter().flat_map(|file| {
            let symbols = file.tables.first_hashed..file.tables.symbol_count;
            symbols.filter(|&symbol| file.name_of(symbol) == name).map(|symbol| symbol as u32 + 1)
        });
        found.next()
    };
    let find = |name: &[u8]| {
        let hash = hash(&name[..name.len() - 1]);
        loader.all.iter().find_map(|file| file.defines(name, hash, &mut Unseen))
    };
    for file in &loader.all[1..] {
        for symbol in (file.tables.first_hashed..file.tables.symbol_count).step_by(17) {
            let name = file.name_of(symbol);
            assert!(name.len() >= 4 && name.ends_with(&[0]), "{name:?}");
            assert!(find(name).is_some() && find(name) == naively(name), "{name:?}");
        }
    }
    for name in [&b"zz_no_such_name\0"[..], b"\0", b"q\0"] {
        assert_eq!(find(name), None, "{name:?}");
    }
}

#[test]
fn all_places_are_filled() {
    let mut process = ArmProcess::new("a", Pages::Base);
    let (mut loader, mut calls) = Loader::new(&mut process).expect("memory");
    while loader.step(&mut calls, &mut Unseen) {}
    assert!(calls.slots.iter().all(|&place| place > 0));
    assert!(loader.slots.iter().all(|slots| slots.iter().all(|&place| place > 0)));
    let relative = &loader.all[2].relative;
    assert!(relative.len() == 1205 && relative.iter().all(|&place| place == LIBC.at(0) as u32));
}
