//! Reads at random over footprints, dependent and independent, in small and in huge pages, with and without a stream on
//! another CPU; and reads in a row.

use lookaside_machine::{PageSize, RandomReads, ReadCosts, SequentialReads};

use crate::bench::Halt;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::{AccessOrder, WordSequence};
use crate::report::timing::AbsentCost;
use crate::stream::{start_stream, stream_cpu};
use crate::timing::rounds::{differences, quartiles, ratio};

/// Footprints, as far as there is memory for the largest twice, once in each page size: in a last-level cache, a few
/// times one, and so large that the entries of its page tables (1 MiB for 4 KiB pages) are more than a second-level
/// cache holds.
const FOOTPRINTS: [u64; 3] = [4 << 20, 64 << 20, 512 << 20];
/// Bytes of a line and of a word.
const LINE: u64 = 64;
const WORD: u64 = 8;
/// Reads of a sample: some milliseconds of dependent ones from memory.
const READS: usize = 1 << 15;
/// Reads before a sample, of other lines of the footprint: 32 MiB of lines, so that caches hold what they hold of such
/// reads and nothing of the sample before.
const BEFORE: usize = 1 << 19;
/// Bytes that are read in a row.
const ROW_BYTES: u64 = 64 << 20;

/// Figures of a footprint, one a round.
pub(super) struct FootprintCells {
    footprint: u64,
    beside_stream: bool,
    /// Of small and of huge pages.
    sizes: [SizeCells; 2],
}

struct SizeCells {
    size: PageSize,
    dependent_ns: Vec<f64>,
    independent_ns: Vec<f64>,
    refused: Option<String>,
}

/// All figures of reads.
pub(super) struct ReadCells {
    random: Vec<FootprintCells>,
    /// Bytes a second, without and beside the stream.
    in_a_row: Vec<(bool, Vec<f64>)>,
    stream_cpu: Option<usize>,
    /// Why there is none.
    no_stream: String,
    largest: u64,
    ns_per_tick: f64,
}

impl ReadCells {
    /// Nothing measured yet. A stream goes on a CPU that is no thread of the core measured, if there is one.
    pub(super) fn new(bench: &mut LatencyBench<'_>, ns_per_tick: f64) -> Self {
        let room = bench.metal().sequence_bytes() / 2;
        let stream_cpu = stream_cpu(bench.metal());
        let kinds = || [false, true].into_iter().filter(move |&beside| !beside || stream_cpu.is_some());
        let cells = |(footprint, beside_stream)| FootprintCells {
            footprint,
            beside_stream,
            sizes: [PageSize::K4, PageSize::M2].map(|size| SizeCells {
                size,
                dependent_ns: Vec::new(),
                independent_ns: Vec::new(),
                refused: None,
            }),
        };
        let footprints = FOOTPRINTS.into_iter().filter(|&footprint| footprint <= room);
        let largest = footprints.clone().max().unwrap_or(0);
        let random = footprints.flat_map(|footprint| kinds().map(move |beside| (footprint, beside))).map(cells);
        let in_a_row = kinds().filter(|_| largest > 0).map(|beside| (beside, Vec::new())).collect();
        let no_stream = "there is no other CPU to put it on".into();
        Self { random: random.collect(), in_a_row, stream_cpu, no_stream, largest, ns_per_tick }
    }

    /// One figure of each.
    pub(super) fn round(&mut self, bench: &mut LatencyBench<'_>, number: usize) -> Result<(), Halt> {
        let (ns_per_tick, largest) = (self.ns_per_tick, self.largest);
        for beside in [false, true] {
            if beside {
                let Some(cpu) = self.stream_cpu else { continue };
                if let Err(error) = start_stream(bench.metal(), cpu) {
                    self.no_stream = error.to_string();
                    self.stream_cpu = None;
                    continue;
                }
            }
            for cells in self.random.iter_mut().filter(|cells| cells.beside_stream == beside) {
                for size in &mut cells.sizes {
                    size.sample(bench, cells.footprint, ns_per_tick, number)?;
                }
            }
            for (_, rates) in self.in_a_row.iter_mut().filter(|row| row.0 == beside) {
                let huge = self.random.iter().all(|cells| cells.sizes[1].refused.is_none());
                let size = if huge { PageSize::M2 } else { PageSize::K4 };
                rates.push(bytes_per_second(bench, size, largest, ns_per_tick)?);
            }
        }
        if self.stream_cpu.is_some() {
            bench.metal().neighbour(None)?;
        }
        Ok(())
    }

    /// The CPU that streams.
    pub(super) fn stream_cpu(&self) -> Option<usize> {
        self.stream_cpu
    }

    /// The rows, and what has none.
    pub(super) fn rows(&self, absent: &mut Vec<AbsentCost>) -> (Vec<RandomReads>, Vec<SequentialReads>) {
        let mut lack = |what: &str, why: &str| {
            absent.push(AbsentCost { what: what.into(), why: why.into() });
        };
        if self.largest < FOOTPRINTS[FOOTPRINTS.len() - 1] {
            let most = self.largest >> 20;
            lack("random reads of larger footprints", &format!("no memory for more than {most} MiB, twice"));
        }
        if self.stream_cpu.is_none() {
            lack("reads beside a stream", &self.no_stream);
        }
        let mut rows = Vec::new();
        for cells in &self.random {
            let [small, huge] = &cells.sizes;
            let Some(small_pages) = small.costs() else {
                if let Some(why) = &small.refused {
                    lack(&cells.name(), why);
                }
                continue;
            };
            if let Some(why) = &huge.refused {
                lack(&format!("{} in 2M pages", cells.name()), why);
            }
            let dependent = differences(&small.dependent_ns, &huge.dependent_ns);
            let independent = differences(&small.independent_ns, &huge.independent_ns);
            let overlapping_walks = ratio(&dependent, &independent);
            if overlapping_walks.is_none() && huge.costs().is_some() {
                lack(&format!("walks that overlap in {}", cells.name()), &not_longer(&dependent, &independent));
            }
            rows.push(RandomReads {
                footprint: cells.footprint,
                beside_stream: cells.beside_stream,
                small_pages,
                huge_pages: huge.costs(),
                overlapping_misses: ratio(&huge.dependent_ns, &huge.independent_ns),
                overlapping_walks,
            });
        }
        let in_a_row = self.in_a_row.iter().filter_map(|(beside_stream, rates)| {
            Some(SequentialReads { beside_stream: *beside_stream, bytes_per_second: quartiles(rates)? })
        });
        (rows, in_a_row.collect())
    }
}

impl FootprintCells {
    fn name(&self) -> String {
        let beside = if self.beside_stream { ", beside a stream" } else { "" };
        format!("random reads of {} MiB{beside}", self.footprint >> 20)
    }
}

/// Why there is no ratio of what 4 KiB pages add.
fn not_longer(dependent: &[f64], independent: &[f64]) -> String {
    let range = |ns: &[f64]| {
        let [low, high] = lookaside_stats::quantiles(ns.iter().copied(), [0.25, 0.75]).unwrap_or_default();
        format!("{low:.1} to {high:.1} ns")
    };
    format!(
        "4K pages add {} to a dependent read and {} to an independent one, not significantly above zero",
        range(dependent),
        range(independent)
    )
}

impl SizeCells {
    /// A dependent and an independent sample, the one first in even rounds, the other in odd ones.
    fn sample(
        &mut self,
        bench: &mut LatencyBench<'_>,
        footprint: u64,
        ns_per_tick: f64,
        number: usize,
    ) -> Result<(), Halt> {
        if self.refused.is_some() {
            return Ok(());
        }
        let before = random_words(bench, footprint, BEFORE);
        let orders = [AccessOrder::Dependent, AccessOrder::Independent];
        for (turn, order) in [orders[number % 2], orders[1 - number % 2]].into_iter().enumerate() {
            bench.check()?;
            let words = random_words(bench, footprint, READS);
            // After the first, caches are as such reads leave them.
            let before = if turn == 0 { &before[..] } else { &before[..1] };
            let sequence = WordSequence { order, before, ..WordSequence::dependent(self.size, &words) };
            match bench.metal().replay(&sequence, 1, 1) {
                Ok(ticks) => {
                    let ns = ticks.first().copied().unwrap_or_default() * ns_per_tick / READS as f64;
                    match order {
                        AccessOrder::Dependent => self.dependent_ns.push(ns),
                        AccessOrder::Independent => self.independent_ns.push(ns),
                    }
                }
                Err(error) => {
                    self.refused = Some(error.to_string());
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn costs(&self) -> Option<ReadCosts> {
        let (dependent, independent) = (quartiles(&self.dependent_ns)?, quartiles(&self.independent_ns)?);
        Some(ReadCosts { dependent_ns_per_read: dependent, independent_ns_per_read: independent })
    }
}

/// So many words at random, each the first of its line.
fn random_words(bench: &mut LatencyBench<'_>, footprint: u64, count: usize) -> Vec<u32> {
    (0..count).map(|_| (bench.rng.below(footprint / LINE) * (LINE / WORD)) as u32).collect()
}

/// Bytes a second of reads in a row, somewhere in the footprint.
fn bytes_per_second(
    bench: &mut LatencyBench<'_>,
    size: PageSize,
    footprint: u64,
    ns_per_tick: f64,
) -> Result<f64, Halt> {
    bench.check()?;
    let lines = ROW_BYTES.min(footprint) / LINE;
    let first = bench.rng.below(footprint / LINE - lines + 1);
    let words: Vec<u32> = (first..first + lines).map(|line| (line * (LINE / WORD)) as u32).collect();
    let sequence =
        WordSequence { order: AccessOrder::Independent, before: &words[..1], ..WordSequence::dependent(size, &words) };
    let ticks = bench.metal().replay(&sequence, 1, 1)?.first().copied().unwrap_or_default();
    Ok((lines * LINE) as f64 * 1e9 / (ticks * ns_per_tick).max(1.0))
}
