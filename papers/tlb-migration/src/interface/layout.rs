//! A layout: which field lies in which bits. Packing, unpacking and diagrams follow from its table.

use std::fmt::Write;

use super::error::InterfaceError;

/// Bits of a register.
const REGISTER_BITS: u32 = 32;

/// A row of a layout's table.
#[derive(Clone, Copy, Debug)]
pub struct Field<F> {
    /// Which.
    pub field: F,
    /// Its highest bit, counted through all registers.
    pub high: u32,
    /// Its lowest.
    pub low: u32,
    /// Its name in the source.
    pub name: &'static str,
    /// What it says.
    pub what: &'static str,
}

impl<F> Field<F> {
    /// A row: `[high:low]`, name, meaning. At most 31 bits.
    pub(super) const fn new(field: F, high: u32, low: u32, name: &'static str, what: &'static str) -> Self {
        Self { field, high, low, name, what }
    }

    /// Bits.
    pub fn width(&self) -> u32 {
        self.high - self.low + 1
    }

    /// The largest number that fits.
    fn most(&self) -> u32 {
        (1 << self.width()) - 1
    }
}

/// Fields in the bits of one or more registers.
#[derive(Debug)]
pub struct RegisterLayout<F: 'static> {
    /// For errors and headings.
    pub name: &'static str,
    /// Where the table is from.
    pub source: &'static str,
    /// Names of the registers, lowest bits first.
    pub registers: &'static [&'static str],
    /// The table: ascending, without overlaps.
    pub fields: &'static [Field<F>],
}

impl<F: Copy + PartialEq> RegisterLayout<F> {
    /// Bits from the lowest to the highest field's.
    pub fn bits(&self) -> u32 {
        self.fields.last().map_or(0, |last| last.high + 1)
    }

    /// The field's row, if the layout has it.
    pub fn row(&self, field: F) -> Option<&Field<F>> {
        self.fields.iter().find(|row| row.field == field)
    }

    /// Puts numbers into their bits.
    ///
    /// # Errors
    /// [`InterfaceError::TooWide`]: a number does not fit.
    pub fn pack(&self, number: impl Fn(F) -> u32) -> Result<u128, InterfaceError> {
        self.fields.iter().try_fold(0, |word, row| {
            let value = number(row.field);
            if value > row.most() {
                return Err(InterfaceError::TooWide { layout: self.name, field: row.name, value, bits: row.width() });
            }
            Ok(word | u128::from(value) << row.low)
        })
    }

    /// A field's number; 0 if the layout has no such field.
    pub fn number(&self, word: u128, field: F) -> u32 {
        self.row(field).map_or(0, |row| (word >> row.low) as u32 & row.most())
    }

    /// Holds that the bits of no field are zero.
    ///
    /// # Errors
    /// [`InterfaceError::Reserved`]: they are not.
    pub fn check_unused(&self, word: u128) -> Result<(), InterfaceError> {
        let used = self.fields.iter().fold(0, |used, row| used | u128::from(row.most()) << row.low);
        match word & !used {
            0 => Ok(()),
            bits => Err(InterfaceError::Reserved { layout: self.name, bits }),
        }
    }

    /// The registers as boxes, highest bit left, for a fixed-width font. A part of a field says which of its bits.
    pub fn diagram(&self) -> String {
        let margin = self.registers.iter().map(|name| name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for (register, name) in self.registers.iter().enumerate() {
            let (mut bits, mut names) = (format!("{name:margin$} |"), format!("{:margin$} |", ""));
            for (range, label) in self.cells(register as u32 * REGISTER_BITS) {
                let width = range.len().max(label.len());
                // Writing to a String cannot fail.
                let _ = write!(bits, " {range:width$} |");
                let _ = write!(names, " {label:width$} |");
            }
            let _ = writeln!(out, "{bits}\n{names}");
        }
        out
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let mut out = String::from("| bits | field | |\n|---|---|---|\n");
        for row in self.fields {
            let _ = writeln!(out, "| {} | `{}` | {} |", range(row.high, row.low), row.name, row.what);
        }
        out
    }

    /// Bits and labels of a register's boxes, highest first.
    fn cells(&self, first: u32) -> Vec<(String, String)> {
        let last = first + REGISTER_BITS - 1;
        let cell = |high: u32, low: u32, label| (range(high - first, low - first), label);
        let (mut cells, mut next) = (Vec::new(), first);
        for row in self.fields {
            let (high, low) = (row.high.min(last), row.low.max(first));
            if low > high {
                continue;
            }
            if low > next {
                cells.push(cell(low - 1, next, "-".to_string()));
            }
            let label = if (high, low) == (row.high, row.low) {
                row.name.to_string()
            } else {
                format!("{}[{}]", row.name, range(high - row.low, low - row.low))
            };
            cells.push(cell(high, low, label));
            next = high + 1;
        }
        if next <= last {
            cells.push(cell(last, next, "-".to_string()));
        }
        cells.reverse();
        cells
    }
}

/// `high:low`, or one bit.
fn range(high: u32, low: u32) -> String {
    if high == low {
        high.to_string()
    } else {
        format!("{high}:{low}")
    }
}

/// A word as registers, lowest bits first. Bits beyond them are dropped.
pub fn split<const N: usize>(word: u128) -> [u32; N] {
    std::array::from_fn(|register| (word >> (register as u32 * REGISTER_BITS)) as u32)
}

/// Registers, lowest bits first, as a word.
pub fn join<const N: usize>(registers: [u32; N]) -> u128 {
    registers.iter().rev().fold(0, |word, register| word << REGISTER_BITS | u128::from(*register))
}
