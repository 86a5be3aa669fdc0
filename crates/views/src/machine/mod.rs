//! What a machine is: its TLBs, walk caches and data caches as tables, its costs, and where its figures come from.

pub mod check;
pub mod presets;

mod arrays;
mod costs;
pub(crate) mod origins;
pub(crate) mod timing;
mod toml_words;

use lookaside_machine::Machine;
use lookaside_report::{Document, DocumentBlock, Fact, RichText, Section};

/// The machine in full.
pub fn view(machine: &Machine) -> Document {
    let mut document = Document::new(&machine.name, &machine.description);
    document.facts = costs::facts(machine);
    document.section(tables(machine, Section::unheaded("TLBs and caches")));
    for (title, lines) in remarks(machine) {
        document.section(Section::new(title).with(list(lines)));
    }
    document
}

/// The machine in full, in a report on something else.
pub fn section(machine: &Machine) -> Section {
    let mut section = Section::new(format!("The machine: {}", machine.name));
    let described = Fact { label: "description".into(), words: RichText::from(&machine.description) };
    let described = (!machine.description.is_empty()).then_some(described);
    section.push(described.into_iter().chain(costs::facts(machine)).collect::<Vec<Fact>>());
    let mut section = tables(machine, section);
    for (title, lines) in remarks(machine) {
        if !lines.is_empty() {
            section.push(DocumentBlock::Heading(title.into()));
            section.push(list(lines));
        }
    }
    section
}

fn tables(machine: &Machine, section: Section) -> Section {
    let section = section.with(arrays::tlbs(machine)).with(arrays::walk_caches(machine)).with(arrays::caches(machine));
    machine.timing.iter().flat_map(timing::tables).fold(section, Section::with)
}

fn remarks(machine: &Machine) -> [(&'static str, &[String]); 2] {
    [("Not determined", &machine.not_determined), ("Sources of the figures", &machine.sources)]
}

fn list(lines: &[String]) -> DocumentBlock {
    DocumentBlock::List(lines.iter().map(RichText::from).collect())
}
