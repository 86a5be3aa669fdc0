//! Every preset is a possible machine, and survives being written and read.

use lookaside_machine::{parse, preset, presets, to_toml};

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
    assert!(error.starts_with("ryzen: is no preset; there are "), "{error}");
    assert!(error.contains("ryzen-5900x"), "{error}");
}
