//! Machine descriptions that were checked.

use lookaside_report::{Cell, Column, Document, DocumentBlock, Medium, Paint, RichText, Section, Table};
use serde::Serialize;

/// All files that were checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MachineCheck {
    /// The files, in the order asked for.
    pub files: Vec<CheckedMachine>,
}

/// A description file, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CheckedMachine {
    /// The file's path.
    pub file: String,
    /// The machine's name; `null` where the file is no sound description.
    pub machine: Option<String>,
    /// What is wrong, with the place in the file; `null` where it is sound.
    pub error: Option<String>,
}

/// A line a file.
pub fn view(files: &[CheckedMachine]) -> Document {
    let mut table = Table::new([Column::left("file").cut(40), Column::left("machine"), Column::left("")]);
    for checked in files {
        let verdict = match &checked.error {
            None => Cell::painted(Paint::Good, "sound"),
            Some(_) => Cell::painted(Paint::Warn, "not sound"),
        };
        table.row([Cell::from(&checked.file), Cell::optional(checked.machine.as_ref(), Cell::from), verdict]);
    }
    let mut document = Document { titled: false, ..Document::new("Machine descriptions checked", "") };
    document.section(Section::unheaded("Files").with(table));
    // On a terminal, standard error has them.
    let errors = files.iter().filter_map(|checked| checked.error.as_ref()).map(RichText::from).collect();
    document.section(Section::new("Errors").with(DocumentBlock::List(errors)).only(Medium::Page));
    document
}
