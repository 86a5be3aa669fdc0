//! Events that count TLB misses of data loads, and what each has to count.

use serde::Serialize;

/// What an event is said to count, for loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CountedMisses {
    /// Misses of the first level, wherever they are served.
    FirstMisses,
    /// Misses of the first level that hit the second.
    SecondHits,
    /// Misses of both: walks.
    Walks,
}

/// An event of a kind of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PmuEvent {
    /// The vendor's name.
    pub name: &'static str,
    /// `config` of `perf_event_open`, as in `perf stat -e rCODE`: event, and unit mask from bit 8 on (AMD's event from
    /// bit 32 on is 0 here).
    pub code: u64,
    /// What it should count.
    pub counts: CountedMisses,
    /// Where the code is from.
    pub source: &'static str,
}

const fn event(name: &'static str, code: u64, counts: CountedMisses, source: &'static str) -> PmuEvent {
    PmuEvent { name, code, counts, source }
}

const GOLDEN_COVE: &str =
    "Intel perfmon events, Alder Lake, Sapphire and Granite Rapids (Linux pmu-events, virtual-memory.json): 0x12";
const SKYLAKE: &str = "Intel perfmon events, Haswell to Ice Lake (Linux pmu-events, virtual-memory.json): 0x08";
const ZEN: &str = "AMD PPR of families 17h to 1Ah, PMCx045 LsL1DTlbMiss (Linux pmu-events, amdzen1 to amdzen5)";
const ARM: &str = "Arm Architecture Reference Manual (DDI 0487), PMUv3 common event numbers";

/// Events of the processors that this program is built for. Of those for other models one is refused, or fails its
/// proof.
pub const EVENTS: &[PmuEvent] = if cfg!(target_arch = "aarch64") { ARM_EVENTS } else { X86_EVENTS };

const X86_EVENTS: &[PmuEvent] = &[
    event("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x0e12, CountedMisses::Walks, GOLDEN_COVE),
    event("DTLB_LOAD_MISSES.STLB_HIT", 0x2012, CountedMisses::SecondHits, GOLDEN_COVE),
    event("DTLB_LOAD_MISSES.WALK_COMPLETED", 0x0e08, CountedMisses::Walks, SKYLAKE),
    event("DTLB_LOAD_MISSES.STLB_HIT", 0x2008, CountedMisses::SecondHits, SKYLAKE),
    event("ls_l1_d_tlb_miss.all", 0xff45, CountedMisses::FirstMisses, ZEN),
    event("ls_l1_d_tlb_miss.all_l2_miss", 0xf045, CountedMisses::Walks, ZEN),
    event("ls_l1_d_tlb_miss.all_l2_hit", 0x0f45, CountedMisses::SecondHits, ZEN),
];

const ARM_EVENTS: &[PmuEvent] = &[
    event("L1D_TLB_REFILL", 0x05, CountedMisses::FirstMisses, ARM),
    event("L2D_TLB_REFILL", 0x2d, CountedMisses::Walks, ARM),
    event("DTLB_WALK", 0x34, CountedMisses::Walks, ARM),
];
