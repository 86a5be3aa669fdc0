//! Raw evidence: every measurement written down, so that others can infer from it anew.
//!
//! JSON lines, one an object with a `kind`; `docs/probe.md` describes them. What is left out, because the bound is
//! reached, is counted.

use std::io::{self, Write};

use lookaside_machine::PageSize;
use serde::Serialize;

use crate::metal::{Act, Chain, Metal, MetalError, Shot};

/// Version of the format.
const FORMAT: u32 = 1;
/// Bytes of lines, before compression, up to which page numbers are written: they make nearly all of it.
pub const PAGES_UP_TO_BYTES: u64 = 192 << 20;
/// Bytes of lines, before compression, up to which measurements are written.
pub const SAMPLES_UP_TO_BYTES: u64 = 256 << 20;

/// A machine that writes down what is asked of it and what it answers. A failed write does not stop the measuring:
/// [`Recorder::finish`] gives the error.
pub struct Recorder<'m, W> {
    metal: &'m mut dyn Metal,
    out: W,
    /// Bounds of pages and of samples, and bytes written.
    bounds: (u64, u64),
    bytes: u64,
    chain: Vec<u64>,
    end: End,
    failed: Option<io::Error>,
}

/// Counts at the end of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct End {
    /// Measurements.
    pub measurements: u64,
    /// Chains and shots whose page numbers were left out.
    pub pages_left_out: u64,
    /// Measurements that were left out.
    pub measurements_left_out: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Line<'a> {
    Start { format: u32, seed: u64, cycles_per_tick: f64, sizes: Vec<Size> },
    Note { text: &'a str },
    Chase { page_size: PageSize, count: usize, pages: Pages<'a>, rounds: u32, ticks_a_round: &'a [f64] },
    Shot { page_size: PageSize, before: Option<&'a [Act<'a>]>, timed: Pages<'a>, ticks: &'a [f64] },
    Failed { why: String },
    End(End),
}

#[derive(Serialize)]
struct Size {
    page_size: PageSize,
    page_bits: u32,
    max_pages: usize,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Pages<'a> {
    List(&'a [u64]),
    /// Why there is no list.
    Word(&'static str),
}

impl<'m, W: Write> Recorder<'m, W> {
    /// Records what is asked of this machine, for experiments of this seed.
    pub fn new(metal: &'m mut dyn Metal, out: W, seed: u64) -> Self {
        Self::bounded(metal, out, seed, (PAGES_UP_TO_BYTES, SAMPLES_UP_TO_BYTES))
    }

    /// The same with other bounds, of page numbers and of measurements: bytes of lines.
    pub fn bounded(metal: &'m mut dyn Metal, out: W, seed: u64, bounds: (u64, u64)) -> Self {
        let sizes = [PageSize::K4, PageSize::M2, PageSize::G1].map(|page_size| Size {
            page_size,
            page_bits: metal.page_bits(page_size),
            max_pages: metal.max_pages(page_size),
        });
        let cycles_per_tick = metal.cycles_per_tick();
        let mut recorder = Self { metal, out, bounds, bytes: 0, chain: Vec::new(), end: End::default(), failed: None };
        recorder.line(&Line::Start { format: FORMAT, seed, cycles_per_tick, sizes: sizes.into() });
        recorder
    }

    /// Writes the end; gives the writer back, and what was left out.
    ///
    /// # Errors
    /// Any write failed.
    pub fn finish(mut self) -> io::Result<(W, End)> {
        self.line(&Line::End(self.end));
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.out, self.end)),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
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

    /// Whether a measurement is to be written, and whether with its pages; both are counted if not.
    fn room(&mut self) -> Option<bool> {
        self.end.measurements += 1;
        if self.bytes > self.bounds.1 {
            self.end.measurements_left_out += 1;
            return None;
        }
        Some(self.bytes <= self.bounds.0)
    }

    fn note_failure<T>(&mut self, result: &Result<T, MetalError>) {
        if let Err(error) = result {
            self.line(&Line::Failed { why: error.to_string() });
        }
    }
}

impl<W: Write> Metal for Recorder<'_, W> {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.metal.page_bits(size)
    }

    fn max_pages(&self, size: PageSize) -> usize {
        self.metal.max_pages(size)
    }

    fn cycles_per_tick(&self) -> f64 {
        self.metal.cycles_per_tick()
    }

    fn note(&mut self, text: &str) {
        self.line(&Line::Note { text });
        self.metal.note(text);
    }

    fn chase(&mut self, chain: &Chain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.chase(chain, rounds, samples);
        self.note_failure(&result);
        let ticks = result?;
        let Some(with_pages) = self.room() else { return Ok(ticks) };
        let pages = match (self.chain == chain.pages, with_pages) {
            (true, _) => Pages::Word("same"),
            (false, true) => Pages::List(chain.pages),
            (false, false) => Pages::Word("left out"),
        };
        self.end.pages_left_out += u64::from(matches!(pages, Pages::Word("left out")));
        let count = chain.pages.len();
        self.line(&Line::Chase { page_size: chain.size, count, pages, rounds, ticks_a_round: &ticks });
        self.chain.clear();
        self.chain.extend(chain.pages);
        Ok(ticks)
    }

    fn shot(&mut self, shot: &Shot<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        let result = self.metal.shot(shot, samples);
        self.note_failure(&result);
        let ticks = result?;
        let Some(with_pages) = self.room() else { return Ok(ticks) };
        let (before, timed) = if with_pages {
            (Some(shot.before), Pages::List(shot.timed))
        } else {
            self.end.pages_left_out += 1;
            (None, Pages::Word("left out"))
        };
        self.line(&Line::Shot { page_size: shot.size, before, timed, ticks: &ticks });
        Ok(ticks)
    }
}
