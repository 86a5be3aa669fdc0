//! Whether a whole trace can be read.

use lookaside_report::{num, Cell, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_trace::Damage;
use serde::Serialize;

/// What can't be read of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TraceCheck {
    /// The parts that can't be read; none: the trace is sound.
    pub damage: Vec<Damage>,
}

/// The parts of the trace at `path` that can't be read; none: it is sound.
pub fn view(path: &str, damage: &[Damage]) -> Document {
    let mut document = Document { titled: false, ..Document::new("Trace checked", path) };
    if damage.is_empty() {
        document.answer(RichText::from(format!("{path}: ")).paint(Paint::Good, "sound"));
        return document;
    }
    let bytes = damage.iter().map(|part| part.len).fold(0, u64::saturating_add);
    let words = format!("{} damaged, {} left out", num::counted(damage.len(), "part"), num::bytes(bytes));
    document.answer(RichText::from(format!("{path}: ")).paint(Paint::Warn, words));
    // On a terminal, standard error has them.
    document.section(Section::new("Damaged parts").with(parts(damage)).only(Medium::Page));
    document
}

fn parts(damage: &[Damage]) -> Table {
    let mut table = Table::new([Column::right("first byte"), Column::right("bytes"), Column::left("what is wrong")]);
    for part in damage {
        table.row([Cell::count(part.offset), Cell::count(part.len), Cell::from(&part.reason)]);
    }
    table
}
