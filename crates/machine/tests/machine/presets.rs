//! Every preset is a possible machine, and survives being written and read.

use lookaside_machine::{parse, preset, presets, to_toml, Tag};

#[test]
fn every_preset_round_trips() {
    for p in presets() {
        let machine = preset(p.name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(machine.name, p.name);
        let text = to_toml(&machine);
        assert_eq!(parse(&text, "again.toml").unwrap_or_else(|e| panic!("{e}\n{text}")), machine);
    }
}

#[test]
fn every_preset_says_where_it_is_from() {
    for p in presets() {
        let machine = preset(p.name).unwrap();
        assert!(!machine.description.is_empty(), "{}", p.name);
        assert!(!machine.sources.is_empty(), "{}", p.name);
    }
}

#[test]
fn an_unknown_preset_lists_the_known_ones() {
    let error = preset("ryzen").unwrap_err().to_string();
    assert!(error.starts_with("ryzen: is not a preset; presets: "), "{error}");
    assert!(error.contains("ryzen-5900x"), "{error}");
}

/// Entries, ways and sets of a TLB.
fn shape(machine: &str, tlb: &str) -> (u32, u32, u32) {
    let machine = preset(machine).unwrap();
    let t = machine.tlbs.iter().find(|t| t.name == tlb).unwrap_or_else(|| panic!("no {tlb} in {}", machine.name));
    (t.entries, t.ways.count(t.entries), t.sets())
}

#[test]
fn figures_of_the_papers() {
    // PT-Baker, Table 5.1 and section 4.4.4.
    assert_eq!(shape("ryzen-5900x", "l1d"), (64, 64, 1));
    assert_eq!(shape("ryzen-5900x", "l2d"), (2048, 16, 128));
    let zen3 = preset("ryzen-5900x").unwrap();
    assert!(zen3.tlbs[1].coalesce_pages > 1 && zen3.tlbs[1].tags.contains(&Tag::HwThread));
    let sizes: Vec<_> = zen3.caches.iter().map(|c| (c.size >> 10, c.ways.count(c.lines()))).collect();
    assert_eq!(sizes, [(32, 8), (32, 8), (512, 8), (32 << 10, 16)]);
    // Migration, sections 2.2 and 3.2 (seven index bits), and section 5.2 for gem5.
    assert_eq!(shape("cortex-a7", "micro-d"), (10, 10, 1));
    assert_eq!(shape("cortex-a7", "main"), (256, 2, 128));
    assert_eq!(shape("gem5-armv7", "dtlb"), (64, 64, 1));
    // Lockdown, Figure 1.
    assert_eq!(shape("cortex-a9", "micro-d"), (32, 32, 1));
    assert_eq!(shape("cortex-a9", "main"), (128, 2, 64));
    assert_eq!(preset("cortex-a9").unwrap().tlbs[2].lockable_entries, 4);
    // Colouring, chapter 5 and section 6.0.7.
    assert_eq!(shape("xeon-e5-2650", "l1d-4k"), (64, 4, 16));
    assert_eq!(shape("xeon-e5-2650", "stlb"), (512, 4, 128));
    // Fast address-space switching, sections 2 and 4: 45 cycles a walk of two references.
    assert_eq!(shape("sa1100", "dtlb"), (32, 32, 1));
    let sa1100 = preset("sa1100").unwrap();
    assert_eq!(sa1100.walk_memory_cycles() * 2.0 + sa1100.walker.base_cycles, 45.0);
    assert_eq!(sa1100.memory.cycles, 70.0);
    assert_eq!(sa1100.caches.iter().map(|cache| cache.write_allocate).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn the_book_s_example_is_a_machine() {
    let book = include_str!("../../../../docs/reference/machine-description.md");
    let start = book.find("```toml\n").unwrap() + "```toml\n".len();
    let end = start + book[start..].find("```").unwrap();
    let machine = parse(&book[start..end], "docs/reference/machine-description.md").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(machine.tlbs[1].sets(), 128);
    // The presets' table names them all.
    let table = include_str!("../../../../docs/reference/presets.md");
    for p in presets() {
        assert!(table.contains(&format!("| `{}` |", p.name)), "{}", p.name);
    }
    let error = preset("skylake").unwrap().with_overrides(&["tlb.stlb.ways=16".into()]).unwrap_err();
    assert!(book.contains(&error.to_string()), "{error}");
}
