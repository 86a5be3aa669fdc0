//! `--set tlb.NAME.key=value`: a machine with some of its figures changed.

use crate::load::from_table;
use crate::{to_toml, Machine, MachineError, Origin};

/// Tables that hold named arrays, and the words for them.
const ARRAYS: [&str; 3] = ["tlb", "walk_cache", "cache"];

impl Machine {
    /// This machine with settings applied, all of them before it is checked again.
    ///
    /// A setting is `KEY=VALUE`: `tlb.NAME.KEY=…`, `walk_cache.NAME.KEY=…`, `cache.NAME.KEY=…`, or a key outside
    /// these lists by its path (`memory.cycles=200`, `walker.first_cache_level=2`, `clock_mhz=3000`). The value is
    /// written as in the file; a text needs no quotes, and a list of masks or words may leave them out too.
    ///
    /// # Errors
    /// One line that names the setting: no such array (the known names are listed), no such key (the known keys are
    /// listed), a wrong value, or a machine that is impossible with it.
    pub fn with_overrides(&self, settings: &[String]) -> Result<Machine, MachineError> {
        let mut table: toml::Table = toml::from_str(&to_toml(self))
            .map_err(|e| MachineError::new(&self.name, "", &format!("cannot be written as TOML: {}", e.message())))?;
        for setting in settings {
            apply(&mut table, setting).map_err(|reason| MachineError::new(&format!("--set {setting}"), "", &reason))?;
        }
        let file = match settings {
            [] => self.name.clone(),
            _ => format!("{} --set {}", self.name, settings.join(" --set ")),
        };
        let mut machine = from_table(table, &file).map_err(|e| explain(e, self, settings))?;
        // Of a machine that says where its values are from, these are no longer from there.
        for (path, _) in
            settings.iter().filter_map(|setting| setting.split_once('=')).filter(|_| !self.origins.is_empty())
        {
            machine.origins.set(path.trim(), Origin::Given);
        }
        Ok(machine)
    }
}

/// Puts one setting into the tree.
fn apply(root: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (path, value) =
        setting.split_once('=').ok_or("is no setting; write KEY=VALUE, as tlb.stlb.ways=12 or memory.cycles=200")?;
    let value = read_value(value.trim());
    let keys: Vec<&str> = path.trim().split('.').collect();
    if let [list, rest @ ..] = keys.as_slice() {
        if ARRAYS.contains(list) {
            let [name, key] = rest else { return Err(format!("write {list}.NAME.KEY=VALUE")) };
            named(root, list, name)?.insert((*key).to_string(), value);
            return Ok(());
        }
    }
    let (key, parents) = keys.split_last().ok_or("names no key")?;
    if keys.iter().any(|key| key.is_empty()) {
        return Err("has an empty key".into());
    }
    let mut table = root;
    for parent in parents {
        let next = table.entry(*parent).or_insert_with(|| toml::Table::new().into());
        table = next.as_table_mut().ok_or_else(|| format!("{parent} has no keys inside"))?;
    }
    table.insert((*key).to_string(), value);
    Ok(())
}

/// The array of a list that has this name.
fn named<'a>(root: &'a mut toml::Table, list: &str, name: &str) -> Result<&'a mut toml::Table, String> {
    let arrays = root.get_mut(list).and_then(toml::Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    let known: Vec<String> = arrays.iter().filter_map(|a| a.get("name")?.as_str()).map(str::to_string).collect();
    arrays
        .iter_mut()
        .filter_map(toml::Value::as_table_mut)
        .find(|a| a.get("name").and_then(toml::Value::as_str) == Some(name))
        .ok_or_else(|| match known.as_slice() {
            [] => format!("this machine has no {list}"),
            _ => format!("no {list} is called {name:?}; known: {}", known.join(", ")),
        })
}

/// A TOML value; a bare word is a string, and `[a, b]` a list of such.
fn read_value(text: &str) -> toml::Value {
    let as_toml = |text: &str| toml::from_str::<toml::Table>(&format!("v = {text}")).ok()?.remove("v");
    if let Some(value) = as_toml(text) {
        return value;
    }
    match text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(inside) => inside.split(',').map(|item| read_value(item.trim())).collect::<Vec<_>>().into(),
        None => text.into(),
    }
}

/// Says which other key has to go along, where one of several that depend on each other was set.
fn explain(error: MachineError, machine: &Machine, settings: &[String]) -> MachineError {
    let mut parts = error.at.split(['[', ']']);
    let (list, number, key) = match (parts.next(), parts.next().and_then(|n| n.parse::<usize>().ok()), parts.next()) {
        (Some(list), Some(number), Some(key)) => (list, number, key),
        _ => return error,
    };
    let (name, size_key) = match list {
        "tlb" => (machine.tlbs.get(number).map(|t| &t.name), "entries"),
        "walk_cache" => (machine.walk_caches.get(number).map(|w| &w.name), "entries"),
        "cache" => (machine.caches.get(number).map(|c| &c.name), "size"),
        _ => return error,
    };
    let Some(name) = name else { return error };
    let was_set = |key: &str| {
        let path = format!("{list}.{name}.{key}");
        settings.iter().any(|s| s.split('=').next().map(str::trim) == Some(path.as_str()))
    };
    let hint = match (key, was_set("ways"), was_set(size_key)) {
        (".ways", true, false) => format!("only ways was set: set {list}.{name}.{size_key} as well"),
        (".ways", false, true) => format!("only {size_key} was set: set {list}.{name}.ways as well"),
        (".index", ways, size) if ways != size && !was_set("index") => {
            format!("set entries and ways together to keep the number of sets, or set {list}.{name}.index as well")
        }
        _ => return error,
    };
    MachineError { reason: format!("{}; {hint}", error.reason), ..error }
}
