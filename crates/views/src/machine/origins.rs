//! Where a description's values are from.

use std::collections::BTreeMap;

use lookaside_machine::{Machine, Origin, Origins};
use lookaside_report::{Fact, RichText};

/// Where a group's values are from, and which of them are from elsewhere: `measured; replacement assumed`.
pub(super) fn in_words(machine: &Machine, path: &str) -> String {
    let mut others: BTreeMap<Origin, Vec<&str>> = BTreeMap::new();
    for (key, origin) in machine.origins.exceptions(path) {
        others.entry(origin).or_default().push(key);
    }
    let others = others.iter().map(|(origin, keys)| format!("; {} {origin}", keys.join(", ")));
    std::iter::once(machine.origins.of(path).to_string()).chain(others).collect()
}

/// The same after a value, ` [measured]`; nothing where the description says nothing of it.
pub(super) fn in_brackets(machine: &Machine, path: &str) -> String {
    match machine.origins.is_empty() {
        true => String::new(),
        false => format!(" [{}]", in_words(machine, path)),
    }
}

/// The same as a remark.
pub(super) fn remark(machine: &Machine, path: &str) -> Option<String> {
    (!machine.origins.is_empty()).then(|| in_words(machine, path))
}

/// A line for each place that values are from, with their paths: `measured  memory, tlb.l1d`.
pub(crate) fn facts(origins: &Origins) -> Vec<Fact> {
    let mut paths: BTreeMap<Origin, Vec<&str>> = BTreeMap::new();
    for (path, origin) in origins.paths() {
        paths.entry(origin).or_default().push(path);
    }
    let fact = |(origin, paths): (Origin, Vec<&str>)| Fact {
        label: origin.to_string(),
        words: RichText::from(paths.join(", ")),
    };
    paths.into_iter().map(fact).collect()
}
