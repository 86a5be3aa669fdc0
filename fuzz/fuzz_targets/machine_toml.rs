//! Any text: `parse` gives a machine or one clear line, and what it accepts survives a round trip and a setting.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookaside_machine::{parse, to_toml};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text, "fuzz.toml") {
        Err(error) => assert!(!error.to_string().contains('\n')),
        Ok(machine) => {
            assert_eq!(parse(&to_toml(&machine), "again.toml").as_ref(), Ok(&machine));
            // Any line of the text that looks like a setting may be one.
            let setting = text.lines().find(|line| line.contains('.') && line.contains('=')).unwrap_or("memory.cycles=1");
            if let Err(error) = machine.with_overrides(&[setting.to_string()]) {
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
});
