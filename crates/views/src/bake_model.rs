//! A trace in the model, with a baker's helper beside it and without.

use std::cmp::Reverse;

use lookaside_engine::Side;
use lookaside_report::{num, Cell, Column, Document, Paint, Section, Table};
use lookaside_techniques::bake::{BakePair, BakeResult, BakeTargets};
use serde::Serialize;

/// Regions that the text lists, the largest; JSON has all.
const LISTED: usize = 8;

/// A trace's runs without a helper and with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BakeModel {
    /// The runs on each machine, in the order asked for.
    pub machines: Vec<Modelled>,
}

/// One machine's two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Modelled {
    /// Name of the machine.
    pub machine: String,
    /// The helper's settings, as on the command line.
    pub bake: String,
    /// The process that is baked.
    pub process: u32,
    /// Processes in the trace.
    pub processes: usize,
    /// Threads in the trace.
    pub threads: usize,
    /// What is baked of it.
    pub regions: Vec<ModelledRegion>,
    /// Without a helper.
    pub base: ModelledRun,
    /// With it.
    pub baked: ModelledRun,
    /// What the helper did.
    pub helper: Helper,
}

/// A range that is baked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelledRegion {
    /// Its mapping's name.
    pub name: String,
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What the program's accesses came to. The helper's are not in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelledRun {
    /// Loads, stores, and fetches where the trace has them.
    pub accesses: u64,
    /// One an access, and all waits, none of them overlapping.
    pub modelled_cycles: f64,
    /// Of these, TLB hits beyond the first level, and walks.
    pub translation_cycles: f64,
    /// Walks.
    pub walks: u64,
    /// Page-table references of the walks.
    pub walk_references: u64,
    /// By what served them: each cache, then `memory`.
    pub walk_references_by_server: Vec<(String, u64)>,
    /// Lines of data (and instructions) that memory served.
    pub data_lines_from_memory: u64,
}

/// What the helper did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Helper {
    /// Touches.
    pub touches: u64,
    /// Rounds over all regions that it ended.
    pub rounds: u64,
    /// Walks that its own touches took.
    pub walks: u64,
    /// Lines that memory served it: entries, and data by the user level.
    pub lines_from_memory: u64,
}

impl ModelledRun {
    fn of(baked: &BakeResult) -> Self {
        let sides = [&baked.program.data, &baked.program.fetch];
        let sum = |of: &dyn Fn(&Side) -> u64| sides.iter().map(|side| of(side)).sum();
        let servers = sides[0].walk_references_by_server.iter().map(|(name, _)| {
            let of = |side: &Side| side.walk_references_by_server.iter().find(|of| of.0 == *name).map_or(0, |of| of.1);
            (name.clone(), sum(&of))
        });
        Self {
            accesses: sum(&|side| side.accesses),
            modelled_cycles: baked.program_cycles,
            translation_cycles: baked.program.translation_cycles(),
            walks: sum(&|side| side.cost.walks),
            walk_references: sum(&|side| side.cost.walk_references),
            walk_references_by_server: servers.collect(),
            data_lines_from_memory: baked.program.caches.last().map_or(0, |last| last.data_lookups - last.data_hits),
        }
    }

    fn served_by_memory(&self) -> u64 {
        self.walk_references_by_server.last().map_or(0, |(_, count)| *count)
    }
}

impl Modelled {
    /// From a model's runs with these settings.
    pub fn new(machine: &str, bake: &str, found: &BakeTargets, pair: &BakePair) -> Self {
        let regions = found.regions.iter().map(|region| {
            let (start, bytes) = (region.range.start, region.range.end - region.range.start);
            ModelledRegion { name: region.name.clone(), start, bytes }
        });
        let helper = pair.baked.helper.as_ref().map(|helped| {
            let own = &helped.outcome.data.cost;
            let lines = helped.outcome.caches.last().map_or(0, |last| last.data_lookups - last.data_hits);
            Helper {
                touches: helped.touches,
                rounds: helped.rounds,
                walks: own.walks,
                lines_from_memory: own.walk_references_memory + lines,
            }
        });
        Self {
            machine: machine.into(),
            bake: bake.into(),
            process: found.process,
            processes: found.processes,
            threads: found.threads,
            regions: regions.collect(),
            base: ModelledRun::of(&pair.base),
            baked: ModelledRun::of(&pair.baked),
            helper: helper.unwrap_or(Helper { touches: 0, rounds: 0, walks: 0, lines_from_memory: 0 }),
        }
    }
}

/// What was baked, and the two runs of each machine side by side.
pub fn view(all: &[Modelled]) -> Document {
    let machines: Vec<&str> = all.iter().map(|one| one.machine.as_str()).collect();
    let mut document = Document { titled: false, ..Document::new("Simulated baking", machines.join(", ")) };
    if let Some(one) = all.first() {
        let bytes: u64 = one.regions.iter().map(|region| region.bytes).sum();
        let whose = match one.processes {
            0 | 1 => format!("process {}", one.process),
            processes => format!("process {}, which has the most of {processes} processes", one.process),
        };
        document.answer(format!("Baked by {}: {} of {whose}.", one.bake, num::bytes(bytes)));
        document.section(Section::unheaded("What is baked").with(regions(one)));
    }
    for one in all {
        document.section(Section::unheaded(&one.machine).with(compared(one)));
    }
    document
}

fn regions(one: &Modelled) -> Table {
    let columns = [Column::right("size"), Column::left("region").cut(44), Column::right("at")];
    let mut table = Table::new(columns).shown(LISTED, LISTED).of("region", "regions");
    let mut regions: Vec<&ModelledRegion> = one.regions.iter().collect();
    regions.sort_by_key(|region| (Reverse(region.bytes), region.start));
    for region in regions {
        let start = Cell::number(region.start as f64, format!("{:#x}", region.start));
        table.row([Cell::bytes(region.bytes), Cell::from(&region.name), start]);
    }
    table
}

fn compared(one: &Modelled) -> Table {
    let columns = [Column::left(&one.machine).cut(28), Column::right("unbaked"), Column::right("baked")];
    let mut table = Table::new(columns.into_iter().chain([Column::right("change")]));
    let [base, baked] = [&one.base, &one.baked];
    let mut row = |name: &str, [before, after]: [f64; 2], write: &dyn Fn(f64) -> String| {
        // A part of nothing that grew has no change in percent.
        let change = num::percent(num::share(after - before, before));
        let change = if after > before { format!("+{change}") } else { change };
        table.row([name, &write(before), &write(after), &change].map(Cell::from));
    };
    let count = |n: f64| num::grouped(n as u64);
    row("accesses", [base, baked].map(|run| run.accesses as f64), &count);
    row("modelled cycles", [base, baked].map(|run| run.modelled_cycles), &num::short);
    row("  of translation", [base, baked].map(|run| run.translation_cycles), &num::short);
    row("walks", [base, baked].map(|run| run.walks as f64), &count);
    row("walk references", [base, baked].map(|run| run.walk_references as f64), &count);
    for (server, (_, before)) in base.walk_references_by_server.iter().enumerate() {
        let (name, after) = &baked.walk_references_by_server[server];
        if before + after > 0 {
            row(&format!("  served by {name}"), [*before, *after].map(|n| n as f64), &count);
        }
    }
    let shares = [base, baked].map(|run| num::share(run.served_by_memory() as f64, run.walk_references as f64));
    row("  share from memory", shares, &num::percent);
    row("data lines from memory", [base, baked].map(|run| run.data_lines_from_memory as f64), &count);
    let Helper { touches, rounds, walks, lines_from_memory } = &one.helper;
    let [touches, rounds, walks, lines] = [touches, rounds, walks, lines_from_memory].map(|n| num::grouped(*n));
    table.below(
        Paint::Dim,
        format!("the helper: {touches} touches, {rounds} rounds, {walks} walks of its own, {lines} lines from memory"),
    );
    table
}
