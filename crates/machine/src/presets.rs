//! The machines that come with Lookaside, each a TOML file with the source of every figure.

use crate::{parse, Machine, MachineError, Origin};

/// A machine that comes with Lookaside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as `--machine` takes it.
    pub name: &'static str,
    /// Its file, comments and all: where each figure comes from.
    pub toml: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, toml: include_str!(concat!("../presets/", $name, ".toml")) }),*]
    };
}

const PRESETS: &[Preset] = presets![
    "sa1100",
    "cortex-a7",
    "gem5-armv7",
    "cortex-a9",
    "xeon-e5-2650",
    "skylake",
    "cascade-lake",
    "neoverse-n1",
    "ryzen-5900x",
    "ice-lake-sp",
    "neoverse-v1",
    "zen4",
    "golden-cove",
    "neoverse-v2",
    "zen5",
];

/// All presets, oldest machine first.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// The machine of a preset; all of its values say that they are from one.
///
/// # Errors
/// No preset has this name; the error lists those there are.
pub fn preset(name: &str) -> Result<Machine, MachineError> {
    let Some(found) = PRESETS.iter().find(|p| p.name == name) else {
        let known: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
        return Err(MachineError::new(name, "", &format!("is not a preset; presets: {}", known.join(", "))));
    };
    parse(found.toml, &format!("presets/{name}.toml")).map(|machine| machine.all_from(Origin::Preset))
}
