//! The paper's question on today's hardware: what is it worth that processes share a library's TLB entries? On preset
//! `golden-cove`, in the engine, with no PCIDs, with Linux's six a CPU, and with as many as there are processes.

use std::collections::BTreeMap;

use lookaside_engine::{Detail, Engine, Setup};
use lookaside_harness::{in_parallel, Effort, ModelResult, Ours, PaperCurve, RowFinding};
use lookaside_machine::{preset, Machine, SwitchAction, Tag};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Event, Kind};
use lookaside_workloads::Zipf;

/// Where each process has its own memory, and its own mapping of the library.
const PRIVATE: u64 = 0x5500_0000_0000;
const LIBRARY: u64 = 0x7f00_0000_0000;
/// Where the library is that has one set of tables for all: where the engine has what is the kernel's, and global.
const SHARED: u64 = 0xffff_9000_0000_0000;
/// Pages of its own that a process uses.
const OWN_PAGES: u64 = 256;
/// YCSB's exponent: how unevenly pages are used.
const EXPONENT: f64 = 0.99;

/// What a switch leaves in the TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pcids {
    /// Global entries only.
    None,
    /// Entries of the six processes that took Linux's PCIDs last.
    Six,
    /// All.
    Any,
}

/// What processes share of a library's translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharing {
    /// Each has tables and entries of its own.
    Nothing,
    /// Page tables are shared, TLB entries are not.
    Tables,
    /// Entries too: they are global.
    Entries,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SharingCase {
    processes: u32,
    library_pages: u64,
    /// Accesses between two switches.
    quantum: usize,
    pcids: Pcids,
    sharing: Sharing,
}

/// Linux's PCIDs a CPU.
const LINUX_PCIDS: u32 = 6;

impl SharingCase {
    /// The case whose run is this one's, too: as many processes as there are PCIDs have one each.
    fn run_as(self) -> Self {
        let enough = self.pcids == Pcids::Any && self.processes <= LINUX_PCIDS;
        Self { pcids: if enough { Pcids::Six } else { self.pcids }, ..self }
    }

    fn way(&self) -> (Pcids, Sharing) {
        (self.pcids, self.sharing)
    }
}

/// What it cost, of each access.
#[derive(Clone, Copy, Debug)]
struct TranslationCost {
    translation_cycles: f64,
    modelled_cycles: f64,
}

/// All runs.
#[derive(Clone, Debug)]
pub(super) struct SharingCosts {
    costs: BTreeMap<SharingCase, TranslationCost>,
}

/// Runs all.
pub(super) fn run(effort: Effort) -> ModelResult<SharingCosts> {
    let (pages, quanta): (&[u64], &[usize]) = match effort {
        Effort::Usual => (&[64, 256, 1024, 4096], &[100, 1000, 10_000]),
        Effort::Quick => (&[64, 1024], &[100, 1000]),
    };
    let mut cases = Vec::new();
    for processes in [2, 16, 64] {
        for &library_pages in pages {
            for &quantum in quanta {
                for pcids in [Pcids::None, Pcids::Six, Pcids::Any] {
                    for sharing in [Sharing::Nothing, Sharing::Tables, Sharing::Entries] {
                        cases.push(SharingCase { processes, library_pages, quantum, pcids, sharing });
                    }
                }
            }
        }
    }
    let machine = preset("golden-cove")?;
    let runs: Vec<SharingCase> = cases.iter().copied().filter(|case| case.run_as() == *case).collect();
    let ran = in_parallel(&runs, |case| one(&machine, *case, effort));
    let ran: BTreeMap<SharingCase, TranslationCost> =
        runs.into_iter().zip(ran).map(|(case, cost)| Ok((case, cost?))).collect::<ModelResult<_>>()?;
    let costs = cases.into_iter().filter_map(|case| Some((case, *ran.get(&case.run_as())?))).collect();
    Ok(SharingCosts { costs })
}

/// All processes in turn on one hardware thread: all pages once, then at least four rounds (two if it is to be quick),
/// of which the last half counts.
fn one(machine: &Machine, case: SharingCase, effort: Effort) -> ModelResult<TranslationCost> {
    let (least, rounds) = if effort == Effort::Quick { (20_000, 1) } else { (400_000, 2) };
    let round = case.processes as usize * case.quantum;
    let half = (least / 2usize).div_ceil(round).max(rounds);
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..Setup::new(machine_for(machine, case)) })?;
    let mut random = SplitMix64::new(1);
    let (library, own) = (Zipf::new(case.library_pages, EXPONENT), Zipf::new(OWN_PAGES, EXPONENT));
    let base = if case.sharing == Sharing::Nothing { LIBRARY } else { SHARED };
    let turn = |process| {
        let mut block = Block { process, thread: process, ..Block::default() };
        block.push_event(Event::ContextSwitch { cpu: 0 });
        block
    };
    for process in 1..=case.processes {
        let mut block = turn(process);
        (1..=library.len()).for_each(|rank| block.push(Kind::Load, place(base, rank)));
        (1..=own.len()).for_each(|rank| block.push(Kind::Load, place(PRIVATE, rank)));
        engine.run(&block);
    }
    let mut before = None;
    for number in 0..2 * half {
        if number == half {
            before = Some(engine.outcome());
        }
        for process in 1..=case.processes {
            let mut block = turn(process);
            for _ in 0..case.quantum / 2 {
                block.push(Kind::Load, place(base, library.sample(&mut random)));
                block.push(Kind::Load, place(PRIVATE, own.sample(&mut random)));
            }
            engine.run(&block);
        }
    }
    let (before, after) = (before.unwrap_or_default(), engine.outcome());
    let accesses = (after.data.accesses - before.data.accesses) as f64;
    Ok(TranslationCost {
        translation_cycles: (after.translation_cycles() - before.translation_cycles()) / accesses,
        modelled_cycles: (after.modelled_cycles() - before.modelled_cycles()) / accesses,
    })
}

/// One line of the page of this rank, another in each: pages do not meet in one set of the caches.
fn place(base: u64, rank: u64) -> u64 {
    base + (rank - 1) * 4096 + (rank.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) * 64
}

fn machine_for(machine: &Machine, case: SharingCase) -> Machine {
    let mut machine = machine.clone();
    machine.context_switch.action = SwitchAction::Nothing;
    machine.context_switch.address_spaces = None;
    match case.pcids {
        Pcids::None => machine.context_switch.action = SwitchAction::FlushTlb,
        Pcids::Six => machine.context_switch.address_spaces = Some(LINUX_PCIDS),
        Pcids::Any => {}
    }
    if case.sharing == Sharing::Tables {
        // What lies there has one set of tables; without this tag each process has entries of its own for it.
        machine.tlbs.iter_mut().for_each(|tlb| tlb.tags.retain(|tag| *tag != Tag::Global));
    }
    machine
}

impl SharingCosts {
    /// Of the time in one way, the part that another way saves in translation, in percent, where it is largest: with
    /// what library and quantum.
    fn most_saved(&self, processes: u32, one: (Pcids, Sharing), other: (Pcids, Sharing)) -> (f64, u64, usize) {
        let mut most = (f64::NEG_INFINITY, 0, 0);
        for (case, before) in self.costs.iter().filter(|(case, _)| (case.processes, case.way()) == (processes, one)) {
            let Some(after) = self.costs.get(&SharingCase { pcids: other.0, sharing: other.1, ..*case }) else {
                continue;
            };
            let percent = 100.0 * (before.translation_cycles - after.translation_cycles) / before.modelled_cycles;
            if percent > most.0 {
                most = (percent, case.library_pages, case.quantum);
            }
        }
        most
    }
}

/// What the rows "today" rest on.
pub(super) fn assumption() -> String {
    format!(
        "today (golden-cove, in the engine): processes take turns on one hardware thread; every other access is to the library, the rest to {OWN_PAGES} pages of the process's own, both by \
         Zipf's law (exponent {EXPONENT}), a line of each page. A switch costs nothing by itself, and the kernel uses no entries. Shared entries are global ones. What is told is time spent in \
         translation; that the lines of a private library are each process's own in the model's caches touches that only by the tables' lines that they put out"
    )
}

/// Rows of our own.
pub(super) fn findings(today: &SharingCosts) -> Vec<(&'static str, RowFinding)> {
    let told = |(percent, pages, quantum): (f64, u64, usize), of: &str| RowFinding {
        ours: Ours::Value((percent * 10.0).round() / 10.0 + 0.0),
        note: format!("a library of {pages} pages, a switch each {quantum} accesses; of the modelled time {of}"),
    };
    let most = |processes, pcids, sharing| {
        told(today.most_saved(processes, (pcids, Sharing::Nothing), (pcids, sharing)), "with nothing shared")
    };
    let (six, any) = ((Pcids::Six, Sharing::Nothing), (Pcids::Any, Sharing::Nothing));
    vec![
        ("today-2", most(2, Pcids::Six, Sharing::Entries)),
        ("today-16", most(16, Pcids::Six, Sharing::Entries)),
        ("today-64", most(64, Pcids::Six, Sharing::Entries)),
        ("today-no-pcids", most(16, Pcids::None, Sharing::Entries)),
        ("today-any-pcids", most(16, Pcids::Any, Sharing::Entries)),
        ("today-tables", most(64, Pcids::Six, Sharing::Tables)),
        ("today-more-pcids", told(today.most_saved(64, six, any), "with six and nothing shared")),
    ]
}

/// Translation over the library's size, for switches that are often but not absurdly so.
pub(super) fn series(today: &SharingCosts) -> Vec<PaperCurve> {
    let mut all: BTreeMap<(u32, Pcids, Sharing), Vec<(f64, f64)>> = BTreeMap::new();
    for (case, cost) in today.costs.iter().filter(|(case, _)| case.quantum == 1000) {
        let curve = all.entry((case.processes, case.pcids, case.sharing)).or_default();
        curve.push((case.library_pages as f64, cost.translation_cycles));
    }
    let named = |(processes, pcids, sharing)| {
        let pcids = match pcids {
            Pcids::None => "no PCIDs",
            Pcids::Six => "six PCIDs",
            Pcids::Any => "any number of PCIDs",
        };
        let sharing = match sharing {
            Sharing::Nothing => "nothing shared",
            Sharing::Tables => "page tables shared",
            Sharing::Entries => "TLB entries shared",
        };
        format!("Today: {processes} processes, {pcids}, {sharing}")
    };
    all.into_iter()
        .map(|(of, points)| PaperCurve {
            name: named(of),
            x: "pages of the library".into(),
            y: "translation cycles an access".into(),
            points,
            intervals: Vec::new(),
            labels: Vec::new(),
        })
        .collect()
}
