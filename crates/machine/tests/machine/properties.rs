//! Random machines survive being written and read; damaged text gives one line, never a panic.

use lookaside_machine::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::random::{index, machine};

/// One change to a text: at a place (a fraction of its length), cut some characters and put in a piece.
fn damage() -> impl Strategy<Value = (f64, usize, String)> {
    let pieces = [
        "",
        "\n",
        "=",
        "[",
        "]]",
        "\"",
        "-1",
        "0",
        "1e400",
        "nan",
        "4294967296",
        "18446744073709551616",
        "true",
        "{}",
        "\"full\"",
        "\"host\"",
        "[1, 1]",
        "\u{0}",
        "é",
        "[[tlb]]\n",
        "entries = 1\n",
        "1979-05-27",
        "# ",
        "\\u0000",
    ];
    (0.0..1.0, 0usize..12, prop_oneof![select(pieces.map(String::from).to_vec()), ".{0,6}"])
}

fn damaged(text: &str, changes: &[(f64, usize, String)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (place, cut, piece) in changes {
        let at = (place * chars.len() as f64) as usize;
        let end = (at + cut).min(chars.len());
        chars.splice(at..end, piece.chars());
    }
    chars.into_iter().collect()
}

proptest! {
    #[test]
    fn random_machines_round_trip(machine in machine()) {
        let text = to_toml(&machine);
        let again = parse(&text, "again.toml");
        prop_assert_eq!(again.as_ref(), Ok(&machine), "{}", text);
        prop_assert_eq!(machine.with_overrides(&[]), Ok(machine.clone()));
        // Results carry their machine as JSON.
        let json = serde_json::to_string(&machine).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Machine>(&json).unwrap(), &machine);
    }

    #[test]
    fn damaged_text_gives_one_line_or_a_sound_machine(
        machine in machine(),
        own in select(presets().to_vec()),
        use_preset in any::<bool>(),
        changes in vec(damage(), 1..4),
    ) {
        let text = if use_preset { own.toml.to_string() } else { to_toml(&machine) };
        match parse(&damaged(&text, &changes), "damaged.toml") {
            Err(e) => {
                let line = e.to_string();
                prop_assert!(line.starts_with("damaged.toml: ") && line.len() < 5000, "{}", line);
                prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
            }
            Ok(machine) => {
                let again = parse(&to_toml(&machine), "again.toml");
                prop_assert_eq!(again.as_ref(), Ok(&machine));
                // No page falls outside the sets, whatever the masks.
                for tlb in &machine.tlbs {
                    let sets = tlb.sets();
                    prop_assert!((0..1u64 << 12).all(|page| tlb.index.set_of(page, sets) < sets));
                }
            }
        }
    }

    #[test]
    fn any_setting_gives_one_line_or_a_sound_machine(
        own in select(presets().to_vec()),
        key in select(vec!["tlb.l1d.ways", "tlb.stlb.index", "cache.l2.size", "memory.cycles", "walker.first_cache_level",
            "walk_cache.pde.table_level", "page_table.host", "context_switch.action", "name", "tlb", "topology.sockets"]),
        value in prop_oneof![".{0,8}", any::<i32>().prop_map(|n| n.to_string()), select(vec!["full", "[1]", "\"4K\"", "{}"]).prop_map(String::from)],
    ) {
        let machine = preset(own.name).unwrap();
        match machine.with_overrides(&[format!("{key}={value}")]) {
            Err(e) => prop_assert!(!e.to_string().chars().any(char::is_control), "{:?}", e),
            Ok(changed) => prop_assert_eq!(parse(&to_toml(&changed), "again.toml"), Ok(changed)),
        }
    }

    #[test]
    fn independent_masks_reach_every_set_equally(bits in 1u32..8, noise in any::<u64>()) {
        let index = index(1 << bits, 12, false, noise);
        let mut uses = std::collections::BTreeMap::new();
        for page in 0..1u64 << 12 {
            *uses.entry(index.set_of(page, 1 << bits)).or_insert(0u32) += 1;
        }
        prop_assert_eq!(uses.len(), 1 << bits);
        prop_assert!(uses.values().all(|n| *n == 1 << (12 - bits)));
    }
}
