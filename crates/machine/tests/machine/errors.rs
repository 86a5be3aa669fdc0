//! Every check has a machine that fails it, with the exact line that is printed.

use crate::common::{edited, error, good, GOOD};
use lookaside_machine::{parse, Origin};

const HOST: &str = "[page_table.host]\nformat = \"sv39\"\npage_size = \"2M\"\n[walker]";

#[test]
fn the_machine_that_the_others_are_made_from_is_good() {
    assert_eq!(good().tlbs[1].sets(), 256);
}

#[test]
fn text_that_is_no_toml_has_line_and_column() {
    assert_eq!(
        parse("name = \"m\"\nclock_mhz = = 3\n", "m.toml").unwrap_err().to_string(),
        "m.toml: line 2, column 13: invalid string, expected `\"`, `'`"
    );
    assert_eq!(
        parse("name = \"m\"\nname = \"n\"\n", "m.toml").unwrap_err().to_string(),
        "m.toml: line 2, column 1: duplicate key `name` in document root"
    );
    assert_eq!(parse("name = ", "m.toml").unwrap_err().to_string(), "m.toml: line 1, column 8: a value is missing");
}

#[test]
fn keys_and_types() {
    for (section, from, to, expected) in [
        ("\n", "clock_mhz = 1000.0", "", "clock_mhz: is missing"),
        ("\"l1\"", "ways = 4", "", "tlb[0].ways: is missing"),
        ("\"pde\"", "replacement = \"lru\"", "", "walk_cache[0].replacement: is missing"),
        ("[memory]", "cycles = 200.0", "", "memory.cycles: is missing"),
        ("[topology]", "sockets = 1", "sokets = 1", "topology.sokets: unknown key; known keys: sockets, cores_per_socket, threads_per_core"),
        ("\"stlb\"", "hit_cycles", "latency", "tlb[1].latency: unknown key; known keys: name, level, serves, page_sizes, entries, ways, index, replacement, tags, lockable_entries, coalesce_pages, directory_entries, hit_cycles, shared_by"),
        ("[memory]", "cycles", "ns", "memory.ns: unknown key; known keys: cycles or bytes_per_second"),
        ("\"l1\"", "entries = 64", "entries = \"64\"", "tlb[0].entries: expected a whole number, not negative, found string \"64\""),
        ("\"l1\"", "entries = 64", "entries = -1", "tlb[0].entries: expected a whole number, not negative, found integer -1"),
        ("\"l1\"", "entries = 64", "entries = 6.4", "tlb[0].entries: expected a whole number, not negative, found floating point 6.4"),
        ("\"l1\"", "ways = 4", "ways = \"all\"", "tlb[0].ways: expected a whole number or \"full\", found string \"all\""),
        ("\"l1\"", "ways = 4", "ways = -4", "tlb[0].ways: expected a whole number or \"full\", found integer -4"),
        ("\"l1\"", "serves = [\"load\", \"store\"]", "serves = \"load\"", "tlb[0].serves: expected a list, found string \"load\""),
        ("\"l1\"", "\"lru\"", "\"mru\"", "tlb[0].replacement: unknown variant \"mru\", expected one of \"lru\", \"tree-plru\", \"fifo\", \"random\", \"srrip\""),
        ("\"l1\"", "[\"4K\", \"2M\"]", "[\"4K\", \"2MB\"]", "tlb[0].page_sizes[1]: \"2MB\" is not a size; write a whole number with K, M, G or nothing, as \"32K\""),
        ("\"l1\"", "[\"4K\", \"2M\"]", "[\"4K\", \"3K\"]", "tlb[0].page_sizes[1]: page size \"3K\" is not a power of two"),
        ("\"l1\"", "[\"4K\", \"2M\"]", "[\"4K\", \"512\"]", "tlb[0].page_sizes[1]: page size \"512\" is out of range"),
        ("\"l1\"", "\"linear\"", "\"low\"", "tlb[0].index: expected \"linear\" or a list of masks, found string \"low\""),
        ("\"l1\"", "\"linear\"", "[\"1\"]", "tlb[0].index[0]: expected a mask: \"0x…\" in hexadecimal, or a whole number, found string \"1\""),
        ("\"l1\"", "\"linear\"", "[-1]", "tlb[0].index[0]: expected a mask: \"0x…\" in hexadecimal, or a whole number, found integer -1"),
        ("\"l1d\"", "size = \"32K\"", "size = 32768", "cache[0].size: expected a string, found integer 32768"),
        ("\"l1d\"", "size = \"32K\"", "size = \"99999999999G\"", "cache[0].size: \"99999999999G\" is more than 64 bits hold"),
    ] {
        assert_eq!(error(section, from, to), format!("m.toml: {expected}"));
    }
}

#[test]
fn machine_topology_and_page_table() {
    for (section, from, to, expected) in [
        ("\n", "\"m\"", "\"\"", "name: \"\" is no name: 1 to 64 letters, digits, - and _"),
        ("\n", "\"m\"", "\"a.b\"", "name: \"a.b\" is no name: 1 to 64 letters, digits, - and _"),
        ("\n", "1000.0", "0", "clock_mhz: must be more than 0"),
        ("\n", "1000.0", "-5", "clock_mhz: -5 is not possible; a number from 0 to 1e9"),
        ("\n", "1000.0", "nan", "clock_mhz: NaN is not possible; a number from 0 to 1e9"),
        ("[topology]", "sockets = 1", "sockets = 0", "topology.sockets: must be at least 1"),
        ("[topology]", "cores_per_socket = 2", "cores_per_socket = 0", "topology.cores_per_socket: must be at least 1"),
        ("[topology]", "threads_per_core = 2", "threads_per_core = 0", "topology.threads_per_core: must be at least 1"),
        (
            "[topology]",
            "sockets = 1",
            "sockets = 4000000000",
            "topology: more than 1024 hardware threads, the most that is modelled",
        ),
        (
            "[page_table]",
            "[walker]",
            "[page_table.host]\nformat = \"sv39\"\npage_size = \"64K\"\n[walker]",
            "page_table.host.page_size: 64K is no page of sv39 (4K, 2M, 1G)",
        ),
    ] {
        assert_eq!(error(section, from, to), format!("m.toml: {expected}"));
    }
}

#[test]
fn tlbs() {
    for (section, from, to, expected) in [
        ("\"stlb\"", "\"stlb\"", "\"l1\"", "tlb[1].name: \"l1\" is the name of another TLB, walk cache or cache too"),
        (
            "\"pde\"",
            "\"pde\"",
            "\"stlb\"",
            "walk_cache[0].name: \"stlb\" is the name of another TLB, walk cache or cache too",
        ),
        ("\"l1d\"", "\"l1d\"", "\"pde\"", "cache[0].name: \"pde\" is the name of another TLB, walk cache or cache too"),
        ("\"l1\"", "[\"load\", \"store\"]", "[]", "tlb[0].serves: is empty; name at least one of load, store, fetch"),
        ("\"l1\"", "[\"load\", \"store\"]", "[\"load\", \"load\"]", "tlb[0].serves[1]: is there twice"),
        ("\"l1\"", "[\"4K\", \"2M\"]", "[]", "tlb[0].page_sizes: is empty; an array without a page size holds nothing"),
        ("\"l1\"", "[\"4K\", \"2M\"]", "[\"4K\", \"4K\"]", "tlb[0].page_sizes[1]: is there twice"),
        (
            "\"l1\"",
            "[\"4K\", \"2M\"]",
            "[\"4K\", \"64K\"]",
            "tlb[0].page_sizes: 64K is no page of x86-64-4level (4K, 2M, 1G)",
        ),
        ("\"l1\"", "entries = 64", "entries = 0", "tlb[0].entries: 0 is not possible; from 1 to 1048576"),
        ("\"l1\"", "entries = 64", "entries = 1048577", "tlb[0].entries: 1048577 is not possible; from 1 to 1048576"),
        (
            "\"l1\"",
            "ways = 4",
            "ways = 4\ndirectory_entries = true",
            "tlb[0].directory_entries: a first level holds pages alone",
        ),
        ("\"l1\"", "ways = 4", "ways = 0", "tlb[0].ways: 0 is not possible; a number from 1, or \"full\""),
        ("\"l1\"", "ways = 4", "ways = 65", "tlb[0].ways: 65 is more than entries 64"),
        ("\"stlb\"", "ways = 8", "ways = 12", "tlb[1].ways: 12 does not divide entries 2048"),
        (
            "\"l1\"",
            "entries = 64",
            "entries = 48",
            "tlb[0].ways: entries 48 in 4 ways are 12 sets, which is no power of two",
        ),
        (
            "\"stlb\"",
            "entries = 2048\nways = 8",
            "entries = 17664\nways = 69",
            "tlb[1].replacement: tree-plru of 69 ways: more than 64 have to be a power of two",
        ),
        (
            "\"stlb\"",
            "coalesce_pages = 4",
            "coalesce_pages = 0",
            "tlb[1].coalesce_pages: 0 is not possible; a power of two from 1 to 64",
        ),
        (
            "\"stlb\"",
            "coalesce_pages = 4",
            "coalesce_pages = 3",
            "tlb[1].coalesce_pages: 3 is not possible; a power of two from 1 to 64",
        ),
        (
            "\"stlb\"",
            "coalesce_pages = 4",
            "coalesce_pages = 128",
            "tlb[1].coalesce_pages: 128 is not possible; a power of two from 1 to 64",
        ),
        (
            "\"stlb\"",
            "[\"4K\"]",
            "[\"2M\"]",
            "tlb[1].coalesce_pages: only 4K pages are coalesced, and page_sizes does not have them",
        ),
        ("\"l1\"", "\"linear\"", "[\"0x1\", \"0x2\", \"0x4\"]", "tlb[0].index: 3 masks for 16 sets, which need 4"),
        (
            "\"l1\"",
            "\"linear\"",
            "[1, 2, 4, 0]",
            "tlb[0].index[3]: 0x0 is 0 or the XOR of masks before it, so some sets could never be used",
        ),
        (
            "\"l1\"",
            "\"linear\"",
            "[1, 2, 4, 7]",
            "tlb[0].index[3]: 0x7 is 0 or the XOR of masks before it, so some sets could never be used",
        ),
        (
            "\"l1\"",
            "\"linear\"",
            "[6, 5, 3, 8]",
            "tlb[0].index[2]: 0x3 is 0 or the XOR of masks before it, so some sets could never be used",
        ),
        (
            "\"l1\"",
            "\"linear\"",
            "[1, 2, 4, \"0x1000000000\"]",
            "tlb[0].index[3]: 0x1000000000 has bits above the 36 of a page number (4K pages)",
        ),
        ("\"l1\"", "tags = [\"asid\"]", "tags = [\"asid\", \"asid\"]", "tlb[0].tags[1]: is there twice"),
        (
            "\"stlb\"",
            "lockable_entries = 4",
            "lockable_entries = 1025",
            "tlb[1].lockable_entries: 1025 is more than 1024, the most that is modelled",
        ),
        (
            "\"stlb\"",
            "hit_cycles = 7.0",
            "hit_cycles = inf",
            "tlb[1].hit_cycles: inf is not possible; a number from 0 to 1e9",
        ),
        (
            "\"l1\"",
            "hit_cycles = 0.0",
            "hit_cycles = -0.5",
            "tlb[0].hit_cycles: -0.5 is not possible; a number from 0 to 1e9",
        ),
        ("\"l1\"", "level = 1", "level = 0", "tlb[0].level: 0 is not possible; the first level is 1"),
        ("\"stlb\"", "level = 2", "level = 3", "tlb[1].level: there is a level 3 but no level 2"),
    ] {
        assert_eq!(error(section, from, to), format!("m.toml: {expected}"));
    }
}

#[test]
fn walk_caches_caches_walker_and_costs() {
    for (section, from, to, expected) in [
        (
            "\"pde\"",
            "table_level = 2",
            "table_level = 1",
            "walk_cache[0].table_level: 1 is not possible; x86-64-4level has 2 to 4",
        ),
        (
            "\"pde\"",
            "table_level = 2",
            "table_level = 5",
            "walk_cache[0].table_level: 5 is not possible; x86-64-4level has 2 to 4",
        ),
        (
            "\"pde\"",
            "table_level = 2",
            "table_level = 2\nstage = \"host\"",
            "walk_cache[0].stage: \"host\" needs [page_table.host]",
        ),
        ("\"pde\"", "ways = \"full\"", "ways = 3", "walk_cache[0].ways: 3 does not divide entries 16"),
        (
            "\"pde\"",
            "hit_cycles = 1.0",
            "hit_cycles = 2e9",
            "walk_cache[0].hit_cycles: 2000000000 is not possible; a number from 0 to 1e9",
        ),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 48",
            "cache[0].line_bytes: 48 is not possible; a power of two from 16 to 4096",
        ),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 8192",
            "cache[0].line_bytes: 8192 is not possible; a power of two from 16 to 4096",
        ),
        ("\"l1d\"", "size = \"32K\"", "size = \"0\"", "cache[0].size: 0 is no multiple of line_bytes 64"),
        ("\"l1d\"", "size = \"32K\"", "size = \"100\"", "cache[0].size: 100 is no multiple of line_bytes 64"),
        ("\"l1d\"", "size = \"32K\"", "size = \"2G\"", "cache[0].size: is more than 1G, the most that is modelled"),
        (
            "\"l1d\"",
            "size = \"32K\"",
            "size = \"48K\"",
            "cache[0].ways: lines 768 in 8 ways are 96 sets, which is no power of two",
        ),
        ("\"l1d\"", "ways = 8", "ways = 7", "cache[0].ways: 7 does not divide lines 512"),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 64\nindex = [\"0x1\"]",
            "cache[0].index: 1 masks for 64 sets, which need 6",
        ),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 64\nindex = [1, 2, 4, 8, 16, 3]",
            "cache[0].index[5]: 0x3 is 0 or the XOR of masks before it, so some sets could never be used",
        ),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 64\nindex = [1, 2, 4, 8, 16, \"0x10000000020\"]",
            "cache[0].index[5]: 0x10000000020 has bits above the 40 of a line number",
        ),
        (
            "\"l1d\"",
            "line_bytes = 64",
            "line_bytes = 64\nreplacement = \"srrip\"",
            "cache[0].replacement: srrip is for caches alone whose accesses all ask, and fill, another cache before: \
             traces leave out what hits the same line again at once, which makes a difference to it",
        ),
        ("\"l1\"", "\"lru\"", "\"srrip\"", "tlb[0].replacement: srrip is for data caches alone"),
        ("\"l1d\"", "level = 1", "level = 2", "cache[0].level: there is a level 2 but no level 1"),
        (
            "\"l1d\"",
            "serves = [\"load\", \"store\"]",
            "serves = []",
            "cache[0].serves: is empty; name at least one of load, store, fetch",
        ),
        (
            "\"l1d\"",
            "hit_cycles = 4.0",
            "hit_cycles = -4.0",
            "cache[0].hit_cycles: -4 is not possible; a number from 0 to 1e9",
        ),
        (
            "[walker]",
            "first_cache_level = 1",
            "first_cache_level = 0",
            "walker.first_cache_level: 0 is not possible; 1 to 2 (1 cache levels, one more = memory only)",
        ),
        (
            "[walker]",
            "first_cache_level = 1",
            "first_cache_level = 3",
            "walker.first_cache_level: 3 is not possible; 1 to 2 (1 cache levels, one more = memory only)",
        ),
        (
            "[walker]",
            "base_cycles = 1.0",
            "base_cycles = nan",
            "walker.base_cycles: NaN is not possible; a number from 0 to 1e9",
        ),
        (
            "[walker]",
            "base_cycles = 1.0",
            "memory_cycles = -1",
            "walker.memory_cycles: -1 is not possible; a number from 0 to 1e9",
        ),
        ("[memory]", "cycles = 200.0", "cycles = -1.0", "memory.cycles: -1 is not possible; a number from 0 to 1e9"),
        (
            "[memory]",
            "cycles = 200.0",
            "cycles = 200.0\nbytes_per_second = 0.0",
            "memory.bytes_per_second: 0 is not possible; a number from 1e6 to 1e15",
        ),
        (
            "[memory]",
            "cycles = 200.0",
            "cycles = 200.0\n[stream]\ncache_cycles = 4\nmemory_cycles = -1",
            "stream.memory_cycles: -1 is not possible; a number from 0 to 1e9",
        ),
        (
            "[context_switch]",
            "cycles = 10.0",
            "cycles = inf",
            "context_switch.cycles: inf is not possible; a number from 0 to 1e9",
        ),
        (
            "[context_switch]",
            "cycles = 10.0",
            "cycles = 10.0\naddress_spaces = 0",
            "context_switch.address_spaces: 0 is not possible; 1 to 4096",
        ),
        (
            "\"l1\"",
            "tags = [\"asid\"]",
            "tags = [\"vmid\"]",
            "context_switch.action: \"nothing\" needs every TLB tagged with asid, \"l1\" is not; tag it or flush",
        ),
    ] {
        assert_eq!(error(section, from, to), format!("m.toml: {expected}"));
    }
}

#[test]
fn nested_machines_have_the_host_s_pages_and_levels_too() {
    let nested = GOOD.replacen("[walker]", HOST, 1);
    let check = |from: &str, to: &str| parse(&nested.replacen(from, to, 1), "m.toml").map_err(|e| e.to_string());
    let host_level = |level| format!("table_level = {level}\nstage = \"host\"");
    assert!(check("table_level = 2", &host_level(1)).is_ok());
    assert!(check("table_level = 2", &host_level(3)).is_ok());
    assert_eq!(
        check("table_level = 2", &host_level(4)).unwrap_err(),
        "m.toml: walk_cache[0].table_level: 4 is not possible; sv39 has 1 to 3"
    );
    assert_eq!(
        check("[\"4K\", \"2M\"]", "[\"4K\", \"16M\"]").unwrap_err(),
        "m.toml: tlb[0].page_sizes: 16M is no page of x86-64-4level over sv39 (4K, 2M, 1G)"
    );
}

#[test]
fn loads_and_stores_need_a_tlb() {
    let without = |kind: &str| {
        let text = GOOD.replace("serves = [\"load\", \"store\"]", "serves = [\"fetch\"]");
        let text = text.replace("serves = [\"load\", \"store\", \"fetch\"]", &format!("serves = [\"{kind}\"]"));
        parse(&text, "m.toml").unwrap_err().to_string()
    };
    assert_eq!(without("store"), "m.toml: tlb: no TLB serves loads");
    assert_eq!(without("load"), "m.toml: tlb: no TLB serves stores");
}

#[test]
fn timing_and_origins() {
    let reads = |costs: &str| format!("[[timing.random_reads]]\nfootprint = \"4M\"\nsmall_pages = {{ {costs} }}");
    let good = "dependent_ns_per_read = [1, 2, 3], independent_ns_per_read = [1, 1, 1]";
    let faults = |ns: &str| format!("[[timing.page_faults]]\npage_size = \"4K\"\nns_per_fault = {ns}");
    let stream = |beside: &str| {
        format!("[[timing.sequential_reads]]\nbeside_stream = {beside}\nbytes_per_second = [1e9, 2e9, 3e9]")
    };
    for (table, expected) in [
        (
            reads("dependent_ns_per_read = [2, 1, 3], independent_ns_per_read = [1, 1, 1]"),
            "timing.random_reads[0].small_pages.dependent_ns_per_read: [2, 1, 3] are no quartiles: three numbers above 0, in \
             ascending order",
        ),
        (
            reads(&good.replace("[1, 1, 1]", "[0, 1, 1]")),
            "timing.random_reads[0].small_pages.independent_ns_per_read: [0, 1, 1] are no quartiles: three numbers above 0, in \
             ascending order",
        ),
        (format!("{}\n{}", reads(good), reads(good)), "timing.random_reads[1].footprint: is there twice"),
        (reads(good).replace("4M", "0"), "timing.random_reads[0].footprint: must be more than 0"),
        (format!("{}\n{}", faults("[1, 1, 1]"), faults("[1, 1, 1]")), "timing.page_faults[1].page_size: 4K is there twice"),
        (
            reads(&good.replace("[1, 1, 1]", "[1, 2, inf]")),
            "timing.random_reads[0].small_pages.independent_ns_per_read: [1, 2, inf] are no quartiles: three numbers above \
             0, in ascending order",
        ),
        (
            format!("{}\n{}", stream("true"), stream("true")),
            "timing.sequential_reads[1].beside_stream: is there twice",
        ),
        (
            "[timing]\nfaults = []".into(),
            "timing.faults: unknown key; known keys: random_reads, sequential_reads, page_faults",
        ),
        ("[origins]\ntlb = \"guessed\"".into(), "ORIGIN"),
    ] {
        let found = error("[memory]", "[memory]", &format!("{table}\n[memory]"));
        match expected {
            "ORIGIN" => assert!(found.starts_with("m.toml: origins.tlb: ") && found.contains("measured"), "{found}"),
            _ => assert_eq!(found, format!("m.toml: {expected}")),
        }
    }
    let faults = format!("{}\n{}", faults("[500.5, 600, 700]"), faults("[1, 1, 1]").replace("4K", "2M"));
    let streams = format!("{}\n{}", stream("false"), stream("true"));
    let table = format!("{}\nbeside_stream = true\n{faults}\n{streams}", reads(good));
    let machine =
        parse(&edited("[memory]", "[memory]", &format!("{table}\n[memory]")), "m.toml").expect("a table that can be");
    let written = lookaside_machine::to_toml(&machine);
    assert!(written.contains("beside_stream = true"), "{written}");
    let timing = machine.timing.expect("it is there");
    assert!(timing.random_reads[0].beside_stream && timing.page_faults[0].ns_per_fault.median == 600.0);
    assert_eq!((timing.page_faults.len(), timing.sequential_reads.len()), (2, 2), "each of another kind");
    let alone = edited("[memory]", "[memory]", &format!("{}\n[memory]", reads(good)));
    let written = lookaside_machine::to_toml(&parse(&alone, "m.toml").expect("a table that can be"));
    assert!(!written.contains("beside_stream"), "what is false is left out: {written}");
}

/// What `--set` changes is given, and what else the array has is from where it was.
#[test]
fn a_value_that_was_set_is_given() {
    let preset = lookaside_machine::preset("zen4").expect("a preset");
    let machine = preset.with_overrides(&["tlb.l2d.hit_cycles=9".into()]).expect("a possible machine");
    assert_eq!(machine.origins.of("tlb.l2d.hit_cycles"), Origin::Given);
    assert_eq!(machine.origins.of("tlb.l2d.entries"), Origin::Preset);
    assert!(!machine.origins.any_measured() && good().origins.is_empty());
    assert!(good().with_overrides(&["memory.cycles=9".into()]).expect("a possible machine").origins.is_empty());
}

#[test]
fn disturbances() {
    for (table, expected) in [
        ("tlb = \"l2\"", "disturbance[0].tlb: no TLB is named \"l2\""),
        ("tlb = \"l1\"\n[[disturbance]]\ntlb = \"l1\"", "disturbance[1].tlb: \"l1\" has a disturbance already"),
        (
            "tlb = \"l1\"\nevictions_per_second = [1, 2.5]",
            "disturbance[0].evictions_per_second: 2 figures; tlb \"l1\" has 16 sets",
        ),
        (
            "tlb = \"l1\"\nevictions_per_system_call = [0,0,0,-1,0,0,0,0,0,0,0,0,0,0,0,0]",
            "disturbance[0].evictions_per_system_call[3]: -1 is not possible; a number from 0 to 1e9",
        ),
        (
            "tlb = \"l1\"\nevictions_per_context_switch = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,nan]",
            "disturbance[0].evictions_per_context_switch[15]: NaN is not possible; a number from 0 to 1e9",
        ),
        ("evictions_per_second = []", "disturbance[0].tlb: is missing"),
        (
            "tlb = \"l1\"\nevictions = []",
            "disturbance[0].evictions: unknown key; known keys: tlb, evictions_per_second, evictions_per_system_call, \
             evictions_per_context_switch",
        ),
    ] {
        let found = error("[memory]", "[memory]", &format!("[[disturbance]]\n{table}\n[memory]"));
        assert_eq!(found, format!("m.toml: {expected}"));
    }
    let empty = edited("[memory]", "[memory]", "[[disturbance]]\ntlb = \"l1\"\n[memory]");
    let machine = parse(&empty, "m.toml").expect("nothing was measured, and it says so");
    assert!(machine.disturbances[0].evictions_per_second.is_empty());
}
