//! Writes every measurement down as JSON lines, so that others can infer from it anew.
//!
//! JSON lines, one an object with a `kind`; `docs/reference/probe-evidence.md` describes them. What is left out,
//! because the bound is reached, is counted.

use std::io::{self, Write};
use std::time::Duration;

use lookaside_machine::PageSize;
use serde::Serialize;
use serde_json::Value;

use crate::metal::single_shot::{Act, PairedTicks, Shot, TimedRound};
use crate::metal::{
    AccessOrder, ChainAccess, LineChain, MemoryArea, Metal, MetalError, NeighbourWalk, OtherCpu, PageChain,
    TimedFaults, WordSequence,
};
use crate::pmu::events::PmuEvent;

/// Version of the format.
const FORMAT: u32 = 1;
/// Bytes of lines, before compression, up to which page numbers are written: they make nearly all of it.
pub(crate) const PAGES_UP_TO_BYTES: u64 = 192 << 20;
/// Offsets of a chain of lines that are written at most; larger ones are a footprint's lines in an order by the seed.
const MOST_OFFSETS: usize = 1 << 12;
/// Bytes of lines, before compression, up to which measurements are written.
pub(crate) const SAMPLES_UP_TO_BYTES: u64 = 256 << 20;

/// Stands for page numbers that are not written.
const LEFT_OUT: &str = "left out";

/// A machine that writes down what is asked of it and what it answers. A failed write does not stop the measuring:
/// [`EvidenceRecorder::finish`] gives the error.
pub struct EvidenceRecorder<'m, W> {
    metal: &'m mut dyn Metal,
    out: W,
    /// Bounds of pages and of samples, and bytes written.
    bounds: (u64, u64),
    bytes: u64,
    chain: Vec<u64>,
    end: EvidenceTotals,
    failed: Option<io::Error>,
}

/// Counts at the end of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EvidenceTotals {
    /// Measurements.
    pub measurements: u64,
    /// Chains and shots whose page numbers were left out.
    pub pages_left_out: u64,
    /// Measurements that were left out.
    pub measurements_left_out: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum EvidenceLine<'a> {
    Start {
        format: u32,
        seed: u64,
        cycles_per_tick: f64,
        ticks_per_second: Option<f64>,
        sizes: Vec<PageSizeLimits>,
    },
    Note {
        text: &'a str,
    },
    Walks {
        page_size: PageSize,
        count: usize,
        pages: PageList<'a>,
        steps: usize,
        walks: &'a [f64],
    },
    Chase {
        page_size: PageSize,
        touch: ChainAccess,
        count: usize,
        pages: PageList<'a>,
        rounds: u32,
        ticks_a_round: &'a [f64],
    },
    Shot {
        page_size: PageSize,
        before: Option<&'a [Act<'a>]>,
        timed: PageList<'a>,
        ticks: &'a [f64],
    },
    Windows {
        page_size: PageSize,
        before: Option<&'a [Act<'a>]>,
        timed: PageList<'a>,
        loads: usize,
        ticks: &'a [PairedTicks],
    },
    Rounds {
        prime: usize,
        timed: usize,
        ticks: &'a [PairedTicks],
    },
    Count {
        page_size: PageSize,
        pages: usize,
        rounds: u32,
        event: &'a str,
        count: u64,
    },
    Replay {
        page_size: PageSize,
        words: usize,
        order: AccessOrder,
        update: bool,
        before: usize,
        rounds: u32,
        ticks_a_round: &'a [f64],
    },
    Faults {
        page_size: PageSize,
        bytes: u64,
        timed: TimedFaults,
    },
    Steps {
        area: MemoryArea,
        count: usize,
        offsets: PageList<'a>,
        timed: u64,
        cycles_a_step: &'a [f64],
    },
    Said {
        what: &'a str,
        said: Value,
    },
    Failed {
        why: String,
    },
    End(EvidenceTotals),
}

impl EvidenceLine<'_> {
    fn lacks_pages(&self) -> bool {
        match self {
            Self::Chase { pages, .. } | Self::Walks { pages, .. } => pages.is_left_out(),
            Self::Shot { timed, .. } | Self::Windows { timed, .. } => timed.is_left_out(),
            _ => false,
        }
    }
}

#[derive(Serialize)]
struct PageSizeLimits {
    page_size: PageSize,
    page_bits: u32,
    max_pages: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PageList<'a> {
    List(&'a [u64]),
    /// Why there is no list.
    Word(&'static str),
}

impl<'a> PageList<'a> {
    fn new(list: &'a [u64], with_pages: bool) -> Self {
        if with_pages {
            Self::List(list)
        } else {
            Self::Word(LEFT_OUT)
        }
    }

    fn is_left_out(&self) -> bool {
        matches!(self, Self::Word(LEFT_OUT))
    }
}

impl<'m, W: Write> EvidenceRecorder<'m, W> {
    /// Records what is asked of this machine, for experiments of this seed.
    pub fn new(metal: &'m mut dyn Metal, out: W, seed: u64) -> Self {
        Self::bounded(metal, out, seed, (PAGES_UP_TO_BYTES, SAMPLES_UP_TO_BYTES))
    }

    /// The same with other bounds, of page numbers and of measurements: bytes of lines.
    pub fn bounded(metal: &'m mut dyn Metal, out: W, seed: u64, bounds: (u64, u64)) -> Self {
        let sizes = [PageSize::K4, PageSize::M2, PageSize::G1].map(|page_size| PageSizeLimits {
            page_size,
            page_bits: metal.page_bits(page_size),
            max_pages: metal.max_pages(page_size),
            lacks: metal.lacks(page_size),
        });
        let (cycles_per_tick, ticks_per_second) = (metal.cycles_per_tick(), metal.ticks_per_second());
        let mut recorder =
            Self { metal, out, bounds, bytes: 0, chain: Vec::new(), end: EvidenceTotals::default(), failed: None };
        recorder.line(&EvidenceLine::Start {
            format: FORMAT,
            seed,
            cycles_per_tick,
            ticks_per_second,
            sizes: sizes.into(),
        });
        recorder
    }

    /// Writes the end; gives the writer back, and what was left out.
    ///
    /// # Errors
    /// Any write failed.
    pub fn finish(mut self) -> io::Result<(W, EvidenceTotals)> {
        self.line(&EvidenceLine::End(self.end));
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.out, self.end)),
        }
    }

    fn line(&mut self, line: &EvidenceLine<'_>) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            self.bytes += text.len() as u64;
            self.out.write_all(&text)
        });
        self.failed = written.err();
    }

    /// Writes why there is no measurement, if there is none.
    fn measured<T>(&mut self, result: Result<T, MetalError>) -> Result<T, MetalError> {
        result.inspect_err(|error| self.line(&EvidenceLine::Failed { why: error.to_string() }))
    }

    /// Writes what the machine said to a question that is no measurement of times.
    fn said<T: Serialize>(&mut self, what: &str, said: T) -> T {
        match serde_json::to_value(&said) {
            Ok(said) => self.line(&EvidenceLine::Said { what, said }),
            Err(error) => self.failed = self.failed.take().or(Some(error.into())),
        }
        said
    }

    /// Writes a measurement, `line(whether with its page numbers)`.
    fn record<'a>(&mut self, line: impl FnOnce(bool) -> EvidenceLine<'a>) {
        self.end.measurements += 1;
        if self.bytes > self.bounds.1 {
            self.end.measurements_left_out += 1;
            return;
        }
        let line = line(self.bytes <= self.bounds.0);
        self.end.pages_left_out += u64::from(line.lacks_pages());
        self.line(&line);
    }
}

impl<W: Write> Metal for EvidenceRecorder<'_, W> {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.metal.page_bits(size)
    }

    fn max_pages(&self, size: PageSize) -> usize {
        self.metal.max_pages(size)
    }

    fn lacks(&self, size: PageSize) -> Option<String> {
        self.metal.lacks(size)
    }

    fn cycles_per_tick(&self) -> f64 {
        self.metal.cycles_per_tick()
    }

    fn cpu(&self) -> Option<usize> {
        self.metal.cpu()
    }

    fn remarks(&self) -> Vec<String> {
        self.metal.remarks()
    }

    fn emulator(&self) -> Option<String> {
        self.metal.emulator()
    }

    fn rest(&mut self, time: Duration) {
        self.metal.rest(time);
    }

    fn note(&mut self, text: &str) {
        self.line(&EvidenceLine::Note { text });
        self.metal.note(text);
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.chase(chain, rounds, samples);
        let ticks = self.measured(result)?;
        let same = self.chain == chain.pages;
        self.record(|with_pages| {
            let pages = if same { PageList::Word("same") } else { PageList::new(chain.pages, with_pages) };
            let count = chain.pages.len();
            EvidenceLine::Chase {
                page_size: chain.size,
                touch: chain.touch,
                count,
                pages,
                rounds,
                ticks_a_round: &ticks,
            }
        });
        if !same {
            self.chain.clear();
            self.chain.extend(chain.pages);
        }
        Ok(ticks)
    }

    fn counts_walks(&mut self) -> bool {
        self.metal.counts_walks()
    }

    fn walks(&mut self, chain: &PageChain<'_>, steps: usize, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.walks(chain, steps, samples);
        let walks = self.measured(result)?;
        self.record(|with_pages| {
            let (count, pages) = (chain.pages.len(), PageList::new(chain.pages, with_pages));
            EvidenceLine::Walks { page_size: chain.size, count, pages, steps, walks: &walks }
        });
        self.chain.clear();
        Ok(walks)
    }

    fn shot(&mut self, shot: &Shot<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.shot(shot, samples);
        let ticks = self.measured(result)?;
        self.record(|with_pages| {
            let (before, timed) = (with_pages.then_some(shot.before), PageList::new(shot.timed, with_pages));
            EvidenceLine::Shot { page_size: shot.size, before, timed, ticks: &ticks }
        });
        Ok(ticks)
    }

    fn windows(&mut self, shot: &Shot<'_>, loads: usize, samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
        let result = self.metal.windows(shot, loads, samples);
        let ticks = self.measured(result)?;
        self.record(|with_pages| {
            let (before, timed) = (with_pages.then_some(shot.before), PageList::new(shot.timed, with_pages));
            EvidenceLine::Windows { page_size: shot.size, before, timed, loads, ticks: &ticks }
        });
        Ok(ticks)
    }

    fn count(&mut self, chain: &PageChain<'_>, rounds: u32, event: &PmuEvent) -> Result<u64, MetalError> {
        let result = self.metal.count(chain, rounds, event);
        let count = self.measured(result)?;
        let pages = chain.pages.len();
        self.record(|_| EvidenceLine::Count { page_size: chain.size, pages, rounds, event: event.name, count });
        Ok(count)
    }

    fn frame_run_pages(&mut self, size: PageSize) -> Result<u64, MetalError> {
        self.metal.frame_run_pages(size)
    }

    fn replay(&mut self, sequence: &WordSequence<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.replay(sequence, rounds, samples);
        let ticks = self.measured(result)?;
        let (page_size, words) = (sequence.size, sequence.words.len());
        self.record(|_| EvidenceLine::Replay {
            page_size,
            words,
            order: sequence.order,
            update: sequence.update,
            before: sequence.before.len(),
            rounds,
            ticks_a_round: &ticks,
        });
        Ok(ticks)
    }

    fn sequence_bytes(&self) -> u64 {
        self.metal.sequence_bytes()
    }

    fn fault_sizes(&self) -> Vec<PageSize> {
        self.metal.fault_sizes()
    }

    fn time_faults(&mut self, page_size: PageSize, bytes: u64) -> Result<TimedFaults, MetalError> {
        let result = self.metal.time_faults(page_size, bytes);
        let timed = self.measured(result)?;
        self.record(|_| EvidenceLine::Faults { page_size, bytes, timed });
        Ok(timed)
    }

    fn cycles_per_tick_now(&mut self) -> f64 {
        self.metal.cycles_per_tick_now()
    }

    fn page_faults(&mut self) -> Option<u64> {
        let faults = self.metal.page_faults();
        self.said("page-faults", faults)
    }

    fn cpus(&mut self) -> Vec<OtherCpu> {
        let cpus = self.metal.cpus();
        self.said("cpus", cpus)
    }

    fn neighbour(&mut self, walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        let result = self.metal.neighbour(walk);
        self.measured(result)?;
        self.said("neighbour", ());
        Ok(())
    }

    fn neighbour_loads(&mut self) -> u64 {
        let loads = self.metal.neighbour_loads();
        self.said("neighbour-loads", loads)
    }

    fn address(&mut self, size: PageSize, page: u64) -> Result<u64, MetalError> {
        self.metal.address(size, page)
    }

    unsafe fn rounds(&mut self, round: &mut TimedRound<'_>, rounds: usize) -> Result<Vec<PairedTicks>, MetalError> {
        // SAFETY: the caller vouches for the addresses, which go on as they are.
        let result = unsafe { self.metal.rounds(round, rounds) };
        let ticks = self.measured(result)?;
        let (prime, timed) = (round.prime.len(), round.timed.len());
        self.record(|_| EvidenceLine::Rounds { prime, timed, ticks: &ticks });
        Ok(ticks)
    }

    fn ticks_per_second(&self) -> Option<f64> {
        self.metal.ticks_per_second()
    }

    fn is_guest(&self) -> Option<bool> {
        self.metal.is_guest()
    }

    fn area_bytes(&mut self, area: MemoryArea) -> u64 {
        self.metal.area_bytes(area)
    }

    fn steps(&mut self, steps: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.steps(steps, samples);
        let cycles = self.measured(result)?;
        self.record(|with_pages| {
            let count = steps.offsets.len();
            let offsets = PageList::new(steps.offsets, with_pages && count <= MOST_OFFSETS);
            EvidenceLine::Steps { area: steps.area, count, offsets, timed: steps.timed, cycles_a_step: &cycles }
        });
        Ok(cycles)
    }
}

#[cfg(test)]
mod tests {
    /// A method with a default that is not handed on would fail only where evidence is kept.
    #[test]
    fn every_method_is_handed_on() {
        let (machine, recorder) = (include_str!("metal/mod.rs"), include_str!("evidence.rs"));
        let body = machine.split("pub trait Metal {").nth(1).expect("the trait");
        let body = body.split("\n}\n").next().expect("its end");
        let names: Vec<&str> = body.split("fn ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
        assert!(names.len() >= 4, "{names:?}");
        for name in names {
            assert!(recorder.contains(&format!("self.metal.{name}(")), "Recorder does not hand on {name}");
        }
    }
}
