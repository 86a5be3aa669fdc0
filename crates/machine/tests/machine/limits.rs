//! How much of anything there can be: as much is taken, one more is not.

use lookaside_machine::parse;

use crate::common::{edited, error, good, GOOD};

/// The longest name, the most lockable entries and the largest indexes, and one more of each.
#[test]
fn what_is_just_possible_is_taken_and_one_more_is_not() {
    let taken = |section: &str, from: &str, to: &str| parse(&edited(section, from, to), "m.toml").map(|_| ());
    let name = |bytes: usize| format!("\"{}\"", "n".repeat(bytes));
    assert_eq!(taken("\n", "\"m\"", &name(64)), Ok(()));
    let said = format!("m.toml: name: {} is no name: 1 to 64 letters, digits, - and _", name(65));
    assert_eq!(error("\n", "\"m\"", &name(65)), said);
    assert_eq!(taken("\"stlb\"", "lockable_entries = 4", "lockable_entries = 1024"), Ok(()));
    assert_eq!(taken("\"stlb\"", "coalesce_pages = 4", "coalesce_pages = 64"), Ok(()));
    // A third level has two below it.
    let levels = |level: u32| {
        let third = format!(
            "[[cache]]\nname = \"c{level}\"\nlevel = {level}\nserves = [\"load\"]\nsize = \"1M\"\nways = 8\n\
             hit_cycles = 9"
        );
        let second = third.replace(&format!("level = {level}"), "level = 2").replace(&format!("c{level}"), "second");
        error("[memory]", "[memory]", &format!("{second}\n{third}\n[memory]"))
    };
    assert!(levels(3).starts_with("accepted"), "{}", levels(3));
    assert_eq!(levels(4), "m.toml: cache[2].level: there is a level 4 but no level 3");
}

#[test]
fn a_linear_index_needs_bits_to_take() {
    let text = edited("\"stlb\"", "entries = 2048\nways = 8", "entries = 1048576\nways = 1").replace("\"l1\"", "\"a\"");
    assert!(parse(&text, "m.toml").is_ok());
    // 32 - 12 - 2 bits of block number are 18; 2^20 sets would need 20.
    let text = text.replace("x86-64-4level", "armv7-lpae").replace("tree-plru", "lru");
    assert_eq!(
        parse(&text, "m.toml").unwrap_err().to_string(),
        "m.toml: tlb[1].index: 1048576 sets need 20 bits; a page number has 18"
    );
    assert!(parse(&text.replace("1048576", "262144"), "m.toml").is_ok(), "18 bits");
}

#[test]
fn nobody_gets_more_than_can_be_modelled() {
    let more = |count: u32| {
        let one = |i| {
            format!("[[walk_cache]]\nname = \"w{i}\"\ntable_level = 2\nentries = 1\nways = 1\nreplacement = \"lru\"\n")
        };
        let all: String = (0..count).map(one).collect();
        parse(&format!("{GOOD}{all}"), "m.toml").map(|machine| machine.walk_caches.len()).map_err(|e| e.to_string())
    };
    assert_eq!(more(63), Ok(64), "with the one that it has");
    assert_eq!(more(65).unwrap_err(), "m.toml: walk_cache: 66 of them are more than 64, the most that are modelled");
    let text = edited("[topology]", "cores_per_socket = 2", "cores_per_socket = 512").replace("\"32K\"", "\"1G\"");
    assert_eq!(
        parse(&text, "m.toml").unwrap_err().to_string(),
        "m.toml: topology: all TLBs and caches together have 8591024128 entries and lines; at most 67108864 are modelled"
    );
    let longest = format!("{GOOD}#{}", "x".repeat((1 << 20) - GOOD.len() - 1));
    assert_eq!((longest.len(), parse(&longest, "m.toml")), (1 << 20, Ok(good())));
    assert_eq!(
        parse(&format!("{longest}x"), "m.toml").unwrap_err().to_string(),
        "m.toml: is longer than 1 MiB, which no file of this kind is"
    );
}

/// Four cores of 2^24 entries and lines each: 2,112 of TLBs, 16 of the walk cache, and what is left of the data cache.
#[test]
fn entries_and_lines_are_counted_in_each_instance() {
    let cores = edited("[topology]", "cores_per_socket = 2", "cores_per_socket = 4");
    let text = cores.replace("\"32K\"\nways = 8", &format!("\"{}\"\nways = 1048443", ((1 << 24) - 2128) * 64));
    let said = |text: &str| parse(text, "m.toml").map(|_| ()).map_err(|e| e.to_string());
    let total = |entries: u64| {
        Err(format!(
            "m.toml: topology: all TLBs and caches together have {entries} entries and lines; at most 67108864 are modelled"
        ))
    };
    assert_eq!(said(&text), Ok(()));
    assert_eq!(said(&text.replace("entries = 16\n", "entries = 17\n")), total((1 << 26) + 4));
    // What each of three hardware threads of a core has is there twelve times, what each socket has once or five times.
    let shared = |by: &str| text.replace("hit_cycles = 4.0", &format!("hit_cycles = 4.0\nshared_by = \"{by}\""));
    let lines = (1 << 24) - 2128;
    let three = shared("thread").replace("threads_per_core = 2", "threads_per_core = 3");
    assert_eq!(said(&three), total(4 * 2128 + 12 * lines));
    assert_eq!(said(&shared("socket")), Ok(()));
    let sockets = shared("socket").replace("sockets = 1", "sockets = 5");
    assert_eq!(said(&sockets), total(5 * (4 * 2128 + lines)));
}
