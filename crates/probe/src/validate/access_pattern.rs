//! The fixed set of access patterns: each is a list of words, for the machine and for the engine alike.

use lookaside_engine::SetupError;
use lookaside_machine::{Machine, PageSize};
use lookaside_stats::SplitMix64;
use lookaside_trace::Block;
use lookaside_workloads::{Gups, Pattern as Workload, PointerChase, Strided, ZipfPages, PAGE_BYTES};
use serde::Serialize;

use crate::metal::AccessOrder;
use crate::validate::model::{model, ModelledCycles, WORD};
use crate::validate::scaled_costs::CostScale;

/// Bytes of a data-cache line; 64 on every x86-64 and nearly every AArch64 core. Only spreads accesses.
const LINE: u64 = 64;
/// Draws of a Zipf pattern in a round.
const ZIPF_DRAWS: u64 = 1 << 18;
/// Zipf's exponent; 0.99 is YCSB's.
const ZIPF_EXPONENT: f64 = 0.99;
/// Updates of a GUPS pattern in a round: as many lines as would fill 64 MiB, more than most last-level caches.
const UPDATES: u64 = 1 << 20;

/// Random reads of a round: as many lines as fill 32 MiB, more than programs get of most last-level caches.
const READS: u64 = 1 << 19;
/// MiB that random reads go over. The probe's `[timing]` has others (4, 64, 512), and these lie between them.
const READ_MIB: [u64; 3] = [16, 128, 256];

/// The second stream begins so far into its half, a prime number of lines: lines a power of two apart, or nearly, meet
/// in the same banks of DRAM, which the model has none of.
const STREAM_LEAD: u64 = 19777 * LINE;

/// What kind of pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PatternFamily {
    /// One word in each of so many pages, in one random cycle.
    Chase,
    /// One word in each of a few pages a constant distance apart, in a random order.
    Stride,
    /// One word a line, ascending.
    Sequential,
    /// One word in pages drawn by Zipf's law with exponent 0.99.
    Zipf,
    /// Two ascending walks through two halves, a line each in turn.
    Streams,
    /// Random reads, each written back (RandomAccess of HPCC).
    Gups,
    /// Lines drawn at random.
    Random,
}

impl PatternFamily {
    /// All, in the order of the report.
    pub const ALL: [Self; 7] =
        [Self::Chase, Self::Stride, Self::Sequential, Self::Zipf, Self::Streams, Self::Gups, Self::Random];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chase => "random chase",
            Self::Stride => "stride",
            Self::Sequential => "sequential",
            Self::Zipf => "zipf 0.99",
            Self::Streams => "two streams",
            Self::Gups => "gups",
            Self::Random => "random reads",
        }
    }
}

/// An access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AccessPattern {
    /// Its kind.
    pub family: PatternFamily,
    /// Size of the pages that hold its memory.
    pub page_size: PageSize,
    /// Pages from the first to the last.
    pub span_pages: u64,
    /// Pages from one to the next that it uses; 1 but for strides.
    pub stride_pages: u64,
    /// Whether its accesses wait for each other; all but some random reads do.
    pub order: AccessOrder,
    /// A thread on another CPU reads memory sequentially meanwhile.
    pub beside_stream: bool,
}

impl AccessPattern {
    /// Pages that it touches (at most, where it draws them), each backed by memory.
    pub fn pages(&self) -> u64 {
        self.span_pages.div_ceil(self.stride_pages)
    }

    /// Bytes that back it: small pages are parts of 2 MiB, each of which is backed as a whole.
    pub fn bytes(&self) -> u64 {
        let unit = PageSize::M2.bytes();
        let stride = self.stride_pages * self.page_size.bytes();
        match stride > unit {
            true => self.pages() * unit,
            false => (self.pages() * stride).next_multiple_of(unit),
        }
    }

    /// Bytes of the pages that it touches.
    fn touched_bytes(&self) -> u64 {
        self.pages() * self.page_size.bytes()
    }

    /// Whether each word read is written back.
    pub fn updates(&self) -> bool {
        self.family == PatternFamily::Gups
    }

    /// What is told apart within the family: pages, stride, bytes.
    fn size_words(&self) -> String {
        let count =
            |n: u64| if n >= 1 << 10 && n.is_multiple_of(1 << 10) { format!("{} K", n >> 10) } else { n.to_string() };
        match self.family {
            PatternFamily::Chase | PatternFamily::Zipf => format!("{} pages", count(self.pages())),
            PatternFamily::Stride => format!("{} pages, {} apart", self.pages(), count(self.stride_pages)),
            PatternFamily::Sequential | PatternFamily::Streams | PatternFamily::Gups | PatternFamily::Random => {
                match self.touched_bytes() >> 20 {
                    mib if mib >= 1 << 10 => format!("{} GiB", mib >> 10),
                    0 => format!("{} KiB", self.touched_bytes() >> 10),
                    mib => format!("{mib} MiB"),
                }
            }
        }
    }

    /// Name for people: family, size, page size.
    pub fn name(&self) -> String {
        let order = if self.order == AccessOrder::Independent { ", independent" } else { "" };
        let beside = if self.beside_stream { ", beside a stream" } else { "" };
        format!("{}, {}, {}{order}{beside}", self.family.name(), self.size_words(), self.page_size)
    }

    /// What the description's `[timing]` makes of the model's cycles; `None` where each access waits and nothing
    /// streams, which is what the model counts.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn scale(&self, machine: &Machine) -> Result<Option<CostScale>, String> {
        if (self.order, self.beside_stream) == (AccessOrder::Dependent, false) {
            return Ok(None);
        }
        let timing = machine.timing.as_ref().ok_or("the description has no [timing]")?;
        CostScale::of(timing, self.touched_bytes(), self.order, self.beside_stream).map(Some)
    }

    /// What the model says of it on a machine; `None` where that has no pages of this size, or its cycles no scale.
    pub(crate) fn model(
        &self,
        machine: &Machine,
        frame_run_pages: u64,
        seed: u64,
    ) -> Result<Option<ModelledCycles>, SetupError> {
        let words = self.words(seed);
        let of_size = |size| model(machine, size, &words, self.updates(), frame_run_pages, seed);
        let (Some(modelled), Ok(scale)) = (of_size(self.page_size)?, self.scale(machine)) else { return Ok(None) };
        let Some(scale) = scale else { return Ok(Some(modelled)) };
        let huge = if self.page_size == PageSize::M2 { None } else { of_size(PageSize::M2)? };
        Ok(Some(scale.apply(modelled, huge, self.order)))
    }

    /// The words of one round, numbered from an aligned base. The same seed gives the same list.
    pub fn words(&self, seed: u64) -> Vec<u32> {
        let shift = self.page_size.shift();
        let seed = seed ^ self.span_pages.rotate_left(32) ^ u64::from(shift);
        // Each page is used at one line: the sum of its number's digits to the base of lines a page. So all sets of a
        // virtually indexed cache get the same share, and with neighbouring frames those of a physically indexed one
        // too, of any power of two of sets and pages. In a huge page a 4 KiB part is drawn.
        let in_page = |number: u64, turn: u64| {
            const LINES: u64 = PAGE_BYTES / LINE;
            let part = SplitMix64::new(seed ^ number).next_u64() % (self.page_size.bytes() / PAGE_BYTES).max(1);
            let line = (turn + turn / LINES + turn / (LINES * LINES)) % LINES;
            (number << shift) + part * PAGE_BYTES + line * LINE
        };
        let chase = |stride: u64| {
            let pages = offsets(PointerChase::new(self.pages(), seed), self.pages());
            pages.into_iter().map(|at| in_page(at / PAGE_BYTES * stride, at / PAGE_BYTES)).collect::<Vec<u64>>()
        };
        let bytes: Vec<u64> = match self.family {
            PatternFamily::Chase => chase(1),
            PatternFamily::Stride => chase(self.stride_pages),
            PatternFamily::Zipf => {
                let draws = offsets(ZipfPages::new(self.pages(), ZIPF_EXPONENT, seed), ZIPF_DRAWS);
                draws.into_iter().map(|at| in_page(at / PAGE_BYTES, at / PAGE_BYTES)).collect()
            }
            PatternFamily::Sequential => offsets(Strided::new(self.touched_bytes(), LINE), self.touched_bytes() / LINE),
            PatternFamily::Streams => {
                let half = self.touched_bytes() / 2;
                let stream = offsets(Strided::new(half, LINE), half / LINE);
                stream.into_iter().flat_map(|at| [at, half + (at + STREAM_LEAD) % half]).collect()
            }
            PatternFamily::Gups => {
                offsets(Gups::new(self.touched_bytes(), seed), 2 * UPDATES).into_iter().step_by(2).collect()
            }
            PatternFamily::Random => {
                let mut rng = SplitMix64::new(seed);
                (0..READS).map(|_| rng.below(self.touched_bytes() / LINE) * LINE).collect()
            }
        };
        bytes.into_iter().map(|at| (at / WORD) as u32).collect()
    }
}

/// The first accesses of a stream, from its memory's first byte.
fn offsets(mut steps: impl Workload, count: u64) -> Vec<u64> {
    let mut block = Block::default();
    while (block.len() as u64) < count {
        steps.step(0, &mut block);
    }
    block.addr.truncate(count as usize);
    block.addr
}

/// The fixed set. `quick` leaves out what lies between the corners.
pub fn patterns(quick: bool) -> Vec<AccessPattern> {
    let mut all = Vec::new();
    let mut add = |family, page_size: PageSize, pages: u64, stride_pages: u64| {
        let span_pages = pages * stride_pages;
        let (order, beside_stream) = (AccessOrder::Dependent, false);
        all.push(AccessPattern { family, page_size, span_pages, stride_pages, order, beside_stream });
    };
    for (size, largest) in [(PageSize::K4, 18), (PageSize::M2, 13)] {
        for log2 in (4..=largest).step_by(if quick { 2 } else { 1 }) {
            add(PatternFamily::Chase, size, 1 << log2, 1);
        }
    }
    let strides = if quick { vec![1, 256, 1 << 16] } else { vec![1, 4, 16, 64, 256, 1 << 10, 1 << 13, 1 << 16] };
    for stride in strides {
        for pages in [2, 8, 16, 40] {
            add(PatternFamily::Stride, PageSize::K4, pages, stride);
        }
    }
    let mib = |n: u64, size: PageSize| (n << 20) / size.bytes();
    let sizes = [PageSize::K4, PageSize::M2];
    for size in sizes {
        for n in [2, 16, 256] {
            add(PatternFamily::Sequential, size, mib(n, size), 1);
        }
    }
    for log2 in [10, 14, 18] {
        add(PatternFamily::Zipf, PageSize::K4, 1 << log2, 1);
    }
    for log2 in [6, 11] {
        add(PatternFamily::Zipf, PageSize::M2, 1 << log2, 1);
    }
    for size in sizes {
        for n in [4, 32, 256] {
            add(PatternFamily::Streams, size, mib(n, size), 1);
        }
    }
    for size in sizes {
        for log2 in (6..=13).step_by(if quick { 3 } else { 1 }) {
            add(PatternFamily::Gups, size, mib(1 << log2, size), 1);
        }
    }
    for beside_stream in [false, true] {
        for page_size in sizes {
            for n in READ_MIB.into_iter().step_by(if quick { 2 } else { 1 }) {
                let (family, span_pages, stride_pages) = (PatternFamily::Random, mib(n, page_size), 1);
                all.extend([AccessOrder::Dependent, AccessOrder::Independent].map(|order| AccessPattern {
                    family,
                    page_size,
                    span_pages,
                    stride_pages,
                    order,
                    beside_stream,
                }));
            }
        }
    }
    all.sort_by_key(|p| p.page_size); // stable: one size after the other, since their memory is had in turn
    all
}
