//! The machines that come with Lookaside.

use lookaside_machine::{Machine, Serves, Tlb};
use lookaside_report::{Cell, Column, Document, Section, Table};
use serde::Serialize;

/// All presets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MachineList {
    /// The machines in full.
    pub machines: Vec<Machine>,
}

/// A line each: its name, its data TLBs by level (entries × ways), what it is.
pub fn view(machines: &[Machine]) -> Document {
    let columns = [Column::left("machine"), Column::left("data TLBs"), Column::left("description").wrap()];
    let mut table = Table::new(columns);
    for machine in machines {
        table.row([Cell::from(&machine.name), data_tlbs(machine).into(), Cell::from(&machine.description)]);
    }
    let mut document = Document { titled: false, ..Document::new("Machine presets", "") };
    document.section(Section::unheaded("Presets").with(table));
    document
}

/// `64 full + 2048×16`: the arrays that hold a load's smallest pages, level by level.
fn data_tlbs(machine: &Machine) -> String {
    let base = machine.page_table.format.page_sizes()[0];
    let holds = |tlb: &&Tlb| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&base);
    let mut arrays: Vec<&Tlb> = machine.tlbs.iter().filter(holds).collect();
    arrays.sort_by_key(|tlb| tlb.level);
    let words = arrays.iter().map(|tlb| match tlb.sets() {
        1 => format!("{} full", tlb.entries),
        _ => format!("{}×{}", tlb.entries, tlb.ways),
    });
    words.collect::<Vec<_>>().join(" + ")
}
