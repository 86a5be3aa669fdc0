//! What a data cache needs of those before it.

use lookaside_machine::{parse, preset, IndexFn, Ways};

use crate::common::GOOD;

/// Behind a first cache that loads and stores fill there may be one of SRRIP, but for what that does not fill on.
#[test]
fn srrip_stands_behind_a_cache_that_fills() {
    let both = |first: &str, serves: &str| {
        let second = format!(
            "[[cache]]\nname = \"l2c\"\nlevel = 2\nserves = {serves}\nsize = \"256K\"\nways = 4\nhit_cycles = 12.0\n\
             replacement = \"srrip\"\nindex = \"linear\"\n"
        );
        let text = format!("{}\n{second}", GOOD.replace("line_bytes = 64", &format!("line_bytes = 64\n{first}")));
        parse(&text, "m.toml").map(|machine| machine.caches.len()).map_err(|error| error.to_string())
    };
    assert_eq!(both("", "[\"load\", \"store\"]"), Ok(2));
    assert_eq!(both("write_allocate = false", "[\"load\"]"), Ok(2));
    for (first, serves) in
        [("write_allocate = false", "[\"load\", \"store\"]"), ("", "[\"load\", \"store\", \"fetch\"]")]
    {
        let error = both(first, serves).expect_err("an access comes to it first");
        assert!(error.starts_with("m.toml: cache[1].replacement: srrip"), "{error}");
    }
}

/// What is said of a cache of victims with `keys`, behind the one of `before`.
fn fed(before: &str, keys: &str) -> Result<usize, String> {
    let second =
        "[[cache]]\nname = \"l2c\"\nlevel = 2\nsize = \"256K\"\nways = 4\nhit_cycles = 12.0\nfilled_by = \"victims\"";
    let parsed = parse(&format!("{before}\n{second}\n{keys}\n"), "m.toml");
    parsed.map(|machine| machine.caches.len()).map_err(|error| error.to_string())
}

#[test]
fn victims_come_from_one_cache_before() {
    let both = "serves = [\"load\", \"store\"]";
    assert_eq!(fed(GOOD, both), Ok(2));
    let passed = GOOD.replace("line_bytes = 64", "line_bytes = 64\nwrite_allocate = false");
    let walks_begin_there = GOOD.replace("first_cache_level = 1", "first_cache_level = 2");
    let others = "some accesses or walks ask another cache, or none, before it, and others l1d";
    for (before, keys, reason) in [
        (GOOD, "serves = [\"fetch\"]", "no cache is asked before it"),
        (GOOD, "serves = [\"load\"]", "it has to serve all that l1d before it serves"),
        (GOOD, "serves = [\"load\", \"store\", \"fetch\"]", others),
        (&walks_begin_there, both, others),
        (&passed, both, "l1d before it has to be filled by all that it is asked for in vain"),
        (GOOD, &format!("{both}\nwrite_allocate = false"), "it has no write_allocate of its own"),
        (GOOD, &format!("{both}\nline_bytes = 128"), "lines of 128 bytes, but l1d before it throws out 64"),
    ] {
        assert_eq!(fed(before, keys), Err(format!("m.toml: cache[1].filled_by: victims: {reason}")));
    }
}

#[test]
fn victims_that_do_not_fit_any_more_become_misses() {
    let mut machine = preset("zen4").expect("a preset");
    assert!(machine.drop_unfed_victims().is_empty());
    machine.walker.first_cache_level = 3;
    assert!(machine.check().is_err());
    assert_eq!(machine.drop_unfed_victims(), ["l3"]);
    machine.check().expect("a possible machine");
}

#[test]
fn an_index_of_another_number_of_sets_becomes_linear() {
    let mut machine = preset("xeon-e5-2650").expect("a preset");
    let last = machine.caches.last_mut().expect("a cache");
    let hash = last.index.clone();
    last.set_shape(16 << 20, Ways::Count(16));
    assert_eq!(last.index, hash, "as many sets");
    last.set_shape(10 << 20, Ways::Count(20));
    assert_eq!(last.index, IndexFn::Linear);
    machine.check().expect("a possible machine");
}
