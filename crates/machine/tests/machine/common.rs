//! The machine that tests damage.

use lookaside_machine::{parse, Machine};

/// A machine with one of everything.
pub const GOOD: &str = r#"
name = "m"
clock_mhz = 1000.0
[topology]
sockets = 1
cores_per_socket = 2
threads_per_core = 2
[page_table]
format = "x86-64-4level"
[walker]
base_cycles = 1.0
first_cache_level = 1
[[tlb]]
name = "l1"
level = 1
serves = ["load", "store"]
page_sizes = ["4K", "2M"]
entries = 64
ways = 4
index = "linear"
replacement = "lru"
tags = ["asid"]
hit_cycles = 0.0
[[tlb]]
name = "stlb"
level = 2
serves = ["load", "store", "fetch"]
page_sizes = ["4K"]
entries = 2048
ways = 8
index = "linear"
replacement = "tree-plru"
tags = ["asid", "global"]
lockable_entries = 4
coalesce_pages = 4
hit_cycles = 7.0
[[walk_cache]]
name = "pde"
table_level = 2
entries = 16
ways = "full"
replacement = "lru"
hit_cycles = 1.0
[[cache]]
name = "l1d"
level = 1
serves = ["load", "store"]
size = "32K"
ways = 8
line_bytes = 64
hit_cycles = 4.0
[memory]
cycles = 200.0
[context_switch]
action = "nothing"
cycles = 10.0
"#;

/// It, read.
pub fn good() -> Machine {
    parse(GOOD, "m.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// The good machine with `from` (its first occurrence after `section`, a text in it) replaced by `to`.
pub fn edited(section: &str, from: &str, to: &str) -> String {
    let at = GOOD.find(section).unwrap_or_else(|| panic!("no {section}"));
    let (head, tail) = GOOD.split_at(at);
    assert!(tail.contains(from), "no {from} after {section}");
    format!("{head}{}", tail.replacen(from, to, 1))
}

/// What is printed for the edited machine.
pub fn error(section: &str, from: &str, to: &str) -> String {
    match parse(&edited(section, from, to), "m.toml") {
        Ok(_) => format!("accepted with {to}"),
        Err(e) => e.to_string(),
    }
}
