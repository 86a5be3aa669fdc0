//! The six programs of section 5.2, and the machine, shrunk by one factor.

use std::ops::Range;

use lookaside_engine::{FrameLayout, OsModel, PagePolicy, Setup};
use lookaside_harness::{Effort, ModelResult};
use lookaside_machine::{
    preset, HostTable, Machine, PageSize, Replacement, SharedBy, Stage, TableFormat, WalkCache, Ways,
};
use lookaside_techniques::bake::Stressor;
use lookaside_timing::AddressFlow;
use lookaside_trace::{Block, Source, TraceError};
use lookaside_workloads::{workload, FlowBlock, Gups, PatternStream, WorkloadSpec, WorkloadStream, BASE};

/// One program as the paper runs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperProgram {
    pub(super) name: &'static str,
    /// Table 5.2.
    gigabytes: f64,
    /// Instructions for each access, the access included. Counted by callgrind in the optimised build's native run of 4
    /// MiB (`valgrind --tool=callgrind lookaside lab workload NAME --size 4M --rounds N`): those of six rounds less
    /// those of two, over as much of the accesses that `--record` writes.
    pub(super) instructions_per_access: f64,
    /// Accesses before those that are run, at 1/16: what comes first is not like the rest.
    skipped: u64,
    /// Accesses that are run, at 1/16.
    run: u64,
}

/// In the order of Table 5.2, but for GUPS, which uses no memory.
pub(super) const PROGRAMS: [PaperProgram; 6] = [
    // The parents are forgotten first, and the first levels of the search are small.
    PaperProgram { name: "graph500", gigabytes: 9.1, instructions_per_access: 8.0, skipped: 20_000_000, run: 500_000 },
    PaperProgram { name: "liblinear", gigabytes: 5.5, instructions_per_access: 5.8, skipped: 0, run: 2_000_000 },
    PaperProgram { name: "canneal", gigabytes: 20.6, instructions_per_access: 16.5, skipped: 0, run: 500_000 },
    PaperProgram { name: "hashjoin", gigabytes: 16.5, instructions_per_access: 10.3, skipped: 0, run: 500_000 },
    PaperProgram { name: "gups", gigabytes: 32.0, instructions_per_access: 4.5, skipped: 0, run: 500_000 },
    PaperProgram { name: "bc", gigabytes: 14.0, instructions_per_access: 10.6, skipped: 20_000_000, run: 500_000 },
];

/// Of the paper's machine: "DDR4 4000MHz" (Table 5.1), on the two channels of 8 bytes that the preset says.
pub(super) const MEMORY_GB_S: f64 = 2.0 * 8.0 * 4.0;

/// A program's accesses, and what is baked of its memory.
pub(super) struct RecordedProgram {
    pub(super) blocks: Vec<Block>,
    /// Of each block, where the addresses of its accesses come from; none where all are at hand.
    pub(super) flows: Vec<Vec<AddressFlow>>,
    pub(super) accesses: u64,
    pub(super) baked: Range<u64>,
    /// log2 of the bytes of all its memory, rounded up.
    pub(super) log2_bytes: u32,
}

/// Gives a program's next accesses; `false` = there are none.
type NextPart = Box<dyn FnMut(&mut FlowBlock) -> Result<bool, TraceError>>;

/// By how much programs and machine are smaller than the paper's.
pub(super) fn divisor(effort: Effort) -> u64 {
    match effort {
        Effort::Usual => 16,
        Effort::Quick => 512,
    }
}

/// Builds a program and records the accesses that are run.
pub(super) fn record(program: &PaperProgram, effort: Effort) -> ModelResult<RecordedProgram> {
    let divisor = divisor(effort);
    // Table 5.2 does not say which gigabytes; the list-based Graph500 of scale 24 fits the binary ones.
    let bytes = (program.gigabytes * (1u64 << 30) as f64) as u64 / divisor;
    let [skipped, run] = [program.skipped, program.run].map(|accesses| accesses * 16 / divisor);
    let (mut next_part, baked): (NextPart, _) = if program.name == "gups" {
        let mut stream = PatternStream::new(Gups::new(bytes, 1), run);
        (Box::new(move |part| stream.next_block(&mut part.block)), BASE..BASE + bytes)
    } else {
        let workload = workload(program.name, &WorkloadSpec { rounds: 64, ..WorkloadSpec::new(bytes) })?;
        let main = workload.regions().iter().find(|region| region.main).ok_or("a workload has lost its main array")?;
        let baked = main.stream_start..main.stream_start + main.bytes;
        let mut stream = WorkloadStream::new(workload);
        (Box::new(move |part| Ok(stream.next_flow_block(part))), baked)
    };
    let (mut blocks, mut flows, mut seen, mut accesses) = (Vec::new(), Vec::new(), 0, 0);
    let mut part = FlowBlock::default();
    while accesses < run && next_part(&mut part)? {
        seen += part.block.len() as u64;
        // The first tells what is mapped.
        if seen > skipped || blocks.is_empty() {
            accesses += part.block.len() as u64;
            blocks.push(std::mem::take(&mut part.block));
            flows.push(std::mem::take(&mut part.flows));
        }
    }
    if accesses < run {
        return Err(format!("{}: ends after {accesses} accesses, {run} are to be run", program.name).into());
    }
    Ok(RecordedProgram { blocks, flows, accesses, baked, log2_bytes: bytes.next_power_of_two().trailing_zeros() })
}

/// The system that a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProgramSystem {
    /// Base pages.
    Native,
    /// In a virtual machine whose memory the host backs with base pages; what the guest gives the program is scattered.
    Nested,
    /// The same, where what the guest gives is contiguous: eight entries of the host a line are used, too.
    NestedRuns,
    /// Transparent huge pages everywhere.
    Huge,
    /// Base pages, beside one `cache` stressor of stress-ng (section 5.1).
    Cache,
    /// Beside two `stream` stressors.
    Streams,
    /// [`ProgramSystem::Nested`], with two `stream` stressors in the same virtual machine.
    NestedStreams,
    /// The same, where what the guest gives is contiguous.
    NestedRunsStreams,
}

impl ProgramSystem {
    /// In a virtual machine.
    fn is_nested(self) -> bool {
        matches!(self, Self::Nested | Self::NestedRuns | Self::NestedStreams | Self::NestedRunsStreams)
    }
}

/// What runs beside program and helper, on cores of the same last-level cache.
pub(super) fn stressors(system: ProgramSystem, effort: Effort) -> Vec<Stressor> {
    let last_level = (32 << 20) / divisor(effort);
    match system {
        ProgramSystem::Native | ProgramSystem::Nested | ProgramSystem::NestedRuns | ProgramSystem::Huge => Vec::new(),
        // Random reads all over a buffer of its size.
        ProgramSystem::Cache => vec![Stressor::Random { bytes: last_level }],
        // Arrays beyond its size, from end to end.
        ProgramSystem::Streams | ProgramSystem::NestedStreams | ProgramSystem::NestedRunsStreams => {
            vec![Stressor::Walk { bytes: 4 * last_level }; 2]
        }
    }
}

/// What a program of so many bytes runs on.
pub(super) fn setup(system: ProgramSystem, effort: Effort, log2_bytes: u32) -> ModelResult<Setup> {
    let divisor = divisor(effort);
    let mut machine = preset("ryzen-5900x")?.with_overrides(&[
        format!("cache.l3.size={}K", (32 << 10) / divisor),
        format!("cache.l2.size={}K", 512 / divisor),
        // A set is the least.
        format!("tlb.l2d.entries={}", (2048 / divisor).max(16)),
        format!("walk_cache.pde.entries={}", (64 / divisor).max(1)),
        format!("memory.bytes_per_second={MEMORY_GB_S}e9"),
        // Scattered frames: nothing is coalesced.
        "tlb.l2d.coalesce_pages=1".into(),
    ])?;
    if system.is_nested() {
        nest(&mut machine, log2_bytes);
    }
    let pages = if system == ProgramSystem::Huge { PagePolicy::Thp } else { PagePolicy::Base };
    let frames = match system {
        ProgramSystem::NestedRuns | ProgramSystem::NestedRunsStreams => FrameLayout::Contiguous,
        _ => FrameLayout::Random,
    };
    Ok(Setup { os: OsModel { frames, pages, huge_page: None }, ..Setup::new(machine) })
}

/// Puts the machine's programs into a guest.
fn nest(machine: &mut Machine, log2_bytes: u32) {
    // As much memory again as the program has; a description holds at least the largest page of 1 GiB.
    let memory_bits = Some((log2_bytes + 1).max(30));
    machine.page_table.host = Some(HostTable { format: TableFormat::X86_64L4, page_size: PageSize::K4, memory_bits });
    let guest = machine.walk_caches.clone();
    for cache in guest {
        machine.walk_caches.push(WalkCache { name: format!("host-{}", cache.name), stage: Stage::Host, ..cache });
    }
    machine.walk_caches.push(WalkCache {
        name: "nested-tlb".into(),
        table_level: 1,
        entries: 16,
        ways: Ways::Count(16),
        replacement: Replacement::Lru,
        hit_cycles: 0.0,
        stage: Stage::Host,
        shared_by: SharedBy::Core,
    });
}
