//! A symbol table sorted by address.

use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// How many symbols before an address are tried for one that reaches it: nested and zero-sized
/// labels lie between a function's start and the address in hand-written assembly.
const LOOK_BACK: usize = 16;

#[derive(Clone, Copy, Debug)]
struct FunctionSymbol {
    addr: u64,
    /// 0 = not known.
    size: u64,
    /// End of the section that it is in.
    section_end: u64,
    /// Where in `names`.
    name: (u32, u32),
}

/// The functions that a file's `.symtab` and `.dynsym` name.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    symbols: Vec<FunctionSymbol>,
    names: String,
}

impl SymbolTable {
    /// Adds the functions of `file`.
    pub fn add<'data>(&mut self, file: &impl Object<'data>) {
        let arm = file.architecture() == Architecture::Arm;
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Some(section) = symbol.section_index().and_then(|index| file.section_by_index(index).ok()) else {
                continue;
            };
            let Ok(name) = symbol.name() else { continue };
            // `$a`, `$t`, `$d`, `$x` mark ranges of instruction sets on ARM and RISC-V.
            let mark = name.is_empty() || name.starts_with('$') || name.starts_with(".L");
            let function = match symbol.kind() {
                SymbolKind::Text => true,
                SymbolKind::Unknown | SymbolKind::Label => section.kind() == SectionKind::Text,
                _ => false,
            };
            let start = self.names.len();
            let (Ok(from), Ok(len)) = (u32::try_from(start), u32::try_from(name.len())) else {
                break;
            };
            if mark || !function {
                continue;
            }
            self.names.push_str(name);
            // Bit 0 says Thumb.
            let addr = if arm { symbol.address() & !1 } else { symbol.address() };
            let section_end = section.address().saturating_add(section.size());
            self.symbols.push(FunctionSymbol { addr, size: symbol.size(), section_end, name: (from, len) });
        }
    }

    /// To be called after the last `add`.
    pub fn sort(&mut self) {
        // Of several names for one address the last is taken: one with a size before one without,
        // and the first by name, so that the answer does not hang on the file's order.
        let names = &self.names;
        self.symbols.sort_by(|a, b| {
            (a.addr, a.size != 0).cmp(&(b.addr, b.size != 0)).then_with(|| text(names, b).cmp(text(names, a)))
        });
    }

    /// All functions: names as in the table, and addresses, in their order.
    pub fn functions(&self) -> impl Iterator<Item = (&str, u64)> {
        self.symbols.iter().map(|symbol| (text(&self.names, symbol), symbol.addr))
    }

    /// All functions that have bytes, one for each address: names as in the table, and ranges, in their order.
    pub fn ranges(&self) -> impl Iterator<Item = (&str, std::ops::Range<u64>)> {
        let last_of_its_address = |&(at, symbol): &(usize, &FunctionSymbol)| {
            self.symbols.get(at + 1).is_none_or(|next| next.addr != symbol.addr)
        };
        let last = self.symbols.iter().enumerate().filter(last_of_its_address);
        last.filter_map(|(_, symbol)| self.find(symbol.addr).filter(|(_, range)| range.start == symbol.addr))
    }

    /// The function that holds `addr`: its name as in the table, and its range.
    pub fn find(&self, addr: u64) -> Option<(&str, std::ops::Range<u64>)> {
        let next = self.symbols.partition_point(|symbol| symbol.addr <= addr);
        let before = &self.symbols[next.saturating_sub(LOOK_BACK)..next];
        let sized = before.iter().rev().find(|symbol| addr - symbol.addr < symbol.size);
        // A label without a size reaches to the next symbol, unless it is only a mark within a function.
        let bare = || {
            before.last().filter(|last| {
                let inside = before.iter().any(|symbol| last.addr - symbol.addr < symbol.size);
                last.size == 0 && addr < last.section_end && !inside
            })
        };
        let symbol = sized.or_else(bare)?;
        let end = match symbol.size {
            0 => self.symbols.get(next).map_or(symbol.section_end, |next| next.addr.min(symbol.section_end)),
            size => symbol.addr.saturating_add(size),
        };
        Some((text(&self.names, symbol), symbol.addr..end))
    }
}

fn text<'a>(names: &'a str, symbol: &FunctionSymbol) -> &'a str {
    let (from, len) = (symbol.name.0 as usize, symbol.name.1 as usize);
    &names[from..from + len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, &str)]) -> SymbolTable {
        let mut table = SymbolTable::default();
        for &(addr, size, name) in symbols {
            let from = table.names.len() as u32;
            table.names.push_str(name);
            table.symbols.push(FunctionSymbol { addr, size, section_end: 0x2000, name: (from, name.len() as u32) });
        }
        table.sort();
        table
    }

    #[test]
    fn finds_the_function_around_an_address() {
        let table = table(&[
            (0x1000, 0x100, "outer"),
            (0x1010, 0, "label"),
            (0x1200, 0, "bare"),
            (0x1300, 0, "next"),
            (0x1400, 8, "alias_b"),
            (0x1400, 8, "alias_a"),
        ]);
        let name = |addr| table.find(addr).map(|(name, _)| name);
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x1000), Some("outer"));
        assert_eq!(name(0x1020), Some("outer"));
        assert_eq!(name(0x1100), None);
        assert_eq!(name(0x12ff), Some("bare"));
        assert_eq!(table.find(0x12ff).map(|(_, range)| range), Some(0x1200..0x1300));
        assert_eq!(name(0x1404), Some("alias_a"));
        assert_eq!(name(0x1408), None);
    }
    #[test]
    fn of_all_names_of_an_address_the_answer_is_the_same_whatever_their_order() {
        // More labels than are looked back over.
        let labels: Vec<String> = (0..20).map(|i| format!("a{i:02}")).collect();
        let mut symbols = vec![(0x1400, 8, "alias_a"), (0x1400, 8, "alias_b"), (0x1000, 0x10, "function")];
        symbols.extend(labels.iter().map(|label| (0x1000, 0, label.as_str())));
        for _ in 0..2 {
            let table = table(&symbols);
            assert_eq!(table.find(0x100f), Some(("function", 0x1000..0x1010)));
            assert_eq!(table.find(0x1404), Some(("alias_a", 0x1400..0x1408)));
            symbols.reverse();
        }
    }

    #[test]
    fn all_functions_are_listed_once_with_their_bytes() {
        let table = table(&[
            (0x1000, 0x100, "outer"),
            (0x1010, 0, "label"),
            (0x1200, 0, "bare"),
            (0x1400, 8, "alias_b"),
            (0x1400, 8, "alias_a"),
        ]);
        let all: Vec<_> = table.ranges().collect();
        assert_eq!(all, [("outer", 0x1000..0x1100), ("bare", 0x1200..0x1400), ("alias_a", 0x1400..0x1408)]);
    }

    #[test]
    fn a_label_reaches_to_the_end_of_its_section() {
        let table = table(&[(0x1ff0, 0, "last")]);
        assert_eq!(table.find(0x1fff), Some(("last", 0x1ff0..0x2000)));
        assert_eq!(table.find(0x2000), None);
    }
}
