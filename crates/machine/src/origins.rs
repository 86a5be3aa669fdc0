//! Where a description's values are from: measured, said by CPUID, a preset's, assumed, or given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a value is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// By the probe, on the machine that is described.
    Measured,
    /// The CPU's own statement. In a virtual machine it is what the hypervisor lets through.
    Cpuid,
    /// A preset's.
    Preset,
    /// No source at all: it stands in for what nobody measured.
    Assumed,
    /// By whoever wrote the file, or by `--set`.
    #[default]
    Given,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Cpuid => "CPUID",
            Self::Preset => "preset",
            Self::Assumed => "assumed",
            Self::Given => "given",
        })
    }
}

/// The table `[origins]`: by the path of a value, as `--set` takes it (`tlb.l2d.replacement`), or of all that is within
/// (`tlb.l2d`). A path that is not there is [`Origin::Given`]; one that names nothing says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Where the value at this path is from: by the longest path that holds it.
    pub fn of(&self, path: &str) -> Origin {
        let dots = path.rmatch_indices('.').map(|(dot, _)| &path[..dot]);
        std::iter::once(path).chain(dots).find_map(|path| self.0.get(path).copied()).unwrap_or_default()
    }

    /// Says it of a path and all that is within: what was said of that before is forgotten.
    pub fn set(&mut self, path: &str, origin: Origin) {
        self.0
            .retain(|other, _| other.strip_prefix(path).is_none_or(|rest| !rest.is_empty() && !rest.starts_with('.')));
        self.0.insert(path.into(), origin);
    }

    /// What within a path is from elsewhere than the path itself: the rest of its path, and where from.
    pub fn exceptions<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, Origin)> + 'a {
        let of_path = self.of(path);
        let within = self
            .0
            .iter()
            .filter_map(move |(other, &origin)| Some((other.strip_prefix(path)?.strip_prefix('.')?, origin)));
        within.filter(move |(_, origin)| *origin != of_path)
    }

    /// All paths, and where from.
    pub fn paths(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.0.iter().map(|(path, &origin)| (path.as_str(), origin))
    }

    /// Whether nothing is said of anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anything was measured.
    pub fn any_measured(&self) -> bool {
        self.0.values().any(|&origin| origin == Origin::Measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_says_it() {
        let mut origins = Origins::default();
        assert_eq!(origins.of("tlb.l1d"), Origin::Given);
        origins.set("tlb.l1d", Origin::Measured);
        origins.set("tlb.l1d.replacement", Origin::Assumed);
        origins.set("tlb.l1d-other-sizes", Origin::Preset);
        assert_eq!(origins.of("tlb.l1d.entries"), Origin::Measured);
        assert_eq!(origins.of("tlb.l1d.replacement"), Origin::Assumed);
        assert_eq!(origins.of("tlb.l1"), Origin::Given);
        assert_eq!(origins.exceptions("tlb.l1d").collect::<Vec<_>>(), [("replacement", Origin::Assumed)]);
        assert!(origins.any_measured());
        // What is said of a whole holds for its parts.
        origins.set("tlb.l1d", Origin::Preset);
        assert_eq!(origins.of("tlb.l1d.replacement"), Origin::Preset);
        assert_eq!(origins.of("tlb.l1d-other-sizes"), Origin::Preset);
        assert!(!origins.any_measured());
        let all: Vec<_> = origins.paths().collect();
        assert_eq!(all, [("tlb.l1d", Origin::Preset), ("tlb.l1d-other-sizes", Origin::Preset)]);
    }

    #[test]
    fn an_origin_is_a_word() {
        let all = [Origin::Measured, Origin::Cpuid, Origin::Preset, Origin::Assumed, Origin::Given];
        assert_eq!(all.map(|origin| origin.to_string()), ["measured", "CPUID", "preset", "assumed", "given"]);
    }
}
