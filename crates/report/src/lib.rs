//! One report, three renderers: terminal text, an HTML page, JSON.
//!
//! A [`Document`] is plain data: a title, an answer in a sentence or two, facts, notes, and sections of tables and
//! charts. What a result means is said once, by the view that builds its document; [`terminal::render`] and
//! [`html::render`] draw any document, [`json::document`] writes the result itself. This crate knows no result: it
//! depends on no other room.
//!
//! ```
//! use lookaside_report::{html, terminal, Cell, Column, Document, Section, Style, Table};
//!
//! let mut table = Table::new([Column::left("object").cut(44), Column::right("walks")]);
//! table.row(["build_table (join.c:88)".into(), Cell::count(1_234_567)]);
//! let mut document = Document::new("Translation cost", "./join big.csv");
//! document.answer("Translation costs 27.9 % of the modelled cycles.");
//! document.section(Section::new("Objects").with(table));
//!
//! let text = terminal::render(&document, &Style::default());
//! assert!(text.starts_with("Translation cost: ./join big.csv\nTranslation costs 27.9 %"));
//! assert!(text.contains("build_table (join.c:88)  1,234,567"));
//! assert!(html::render(&document).starts_with("<!DOCTYPE html>"));
//! ```

pub mod chart;
pub mod document;
pub mod html;
pub mod json;
#[cfg(feature = "schemas")]
pub mod json_schema;
mod line;
pub mod num;
mod rich_text;
mod table;
pub mod terminal;
pub mod text;

pub use chart::Chart;
pub use document::{Card, CardItem, Document, DocumentBlock, Fact, Medium, Part, Section};
pub use line::{render as render_lines, Line, Paint, Style};
pub use rich_text::RichText;
pub use table::{Bar, Cell, Column, Table};
