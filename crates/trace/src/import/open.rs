//! Opening a trace whatever its format.

use std::io::Read;
use std::str::FromStr;

use super::champsim::{self, ChampSim};
use super::csv::{self, Csv};
use super::drmemtrace::{self, DrMemTrace};
use super::importer::Importer;
use super::input::Input;
use super::lackey::Lackey;
use super::lines::{LineFeeder, LineParser};
use super::parser::Parser;
use super::perf::{self, PerfScript};
use super::text::Text;
use crate::native::MAGIC;
use crate::{NativeReader, Source, TraceError};

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lookaside's own (`.lkt`).
    Native,
    /// Text of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// ChampSim's 64-byte instructions.
    ChampSim,
    /// DynamoRIO's final drmemtrace.
    DrMemTrace,
    /// `R 0x7ffc1000 8`.
    Text,
    /// Comma-separated with a header row.
    Csv,
    /// `perf script` of samples with addresses.
    Perf,
}

impl Format {
    /// All of them, in the order in which they are listed to people.
    pub const ALL: [Format; 7] =
        [Format::Native, Format::Lackey, Format::ChampSim, Format::DrMemTrace, Format::Text, Format::Csv, Format::Perf];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Native => "native",
            Format::Lackey => "lackey",
            Format::ChampSim => "champsim",
            Format::DrMemTrace => "drmemtrace",
            Format::Text => "text",
            Format::Csv => "csv",
            Format::Perf => "perf",
        }
    }
}

fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

impl FromStr for Format {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let found = Format::ALL.into_iter().find(|f| f.name() == s);
        found.ok_or_else(|| format!("no trace format is named `{s}`; there are {}", names()))
    }
}

/// Opens the trace at `path` (`-`: standard input), finding out its packing (gz, xz, zstd, lz4, zip) and format by
/// itself.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.txt").display().to_string();
/// use lookaside_trace::{open, Block};
/// std::fs::write(&path, "R 0x7ffc1000 8\nW 0x5000 4\n")?;
/// let mut trace = open(&path)?;
/// let mut block = Block::default();
/// assert!(trace.next_block(&mut block)?);
/// assert_eq!(block.addr, [0x7ffc_1000, 0x5000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where it can't be read, its format isn't known, or (almost) nothing in it is of its format.
pub fn open(path: &str) -> Result<Box<dyn Source + Send>, TraceError> {
    open_input(Input::open(path)?, None, path)
}

/// As [`open`], in this format.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_as(path: &str, format: Format) -> Result<Box<dyn Source + Send>, TraceError> {
    open_input(Input::open(path)?, Some(format), path)
}

/// As [`open`] or, with a format, as that format, from anything that can be read; `what` names it in errors.
///
/// # Errors
/// As [`open`].
pub fn open_reader(
    r: Box<dyn Read + Send>,
    format: Option<Format>,
    what: &str,
) -> Result<Box<dyn Source + Send>, TraceError> {
    open_input(Input::new(r, None, what)?, format, what)
}

fn open_input(input: Input, format: Option<Format>, path: &str) -> Result<Box<dyn Source + Send>, TraceError> {
    let format = match format.or_else(|| detect(input.head(), path)) {
        Some(format) => format,
        None => {
            let (place, reason) = match input.head() {
                [] => ("byte 0".into(), "is empty".into()),
                _ => ("byte 0".into(), format!("of no known trace format ({}); name it if it is one of them", names())),
            };
            return Err(TraceError::Format { what: input.what, place, reason });
        }
    };
    fn boxed(input: Input, parser: impl Parser + 'static) -> Result<Box<dyn Source + Send>, TraceError> {
        Ok(Box::new(Importer::new(input, parser)?))
    }
    match format {
        Format::Native => {
            let what = input.what.clone();
            Ok(Box::new(NativeReader::new(input.into_reader(), &what)?))
        }
        Format::Lackey => boxed(input, LineFeeder::new(Lackey::default())),
        Format::ChampSim => boxed(input, ChampSim::default()),
        Format::DrMemTrace => boxed(input, DrMemTrace::default()),
        Format::Text => boxed(input, LineFeeder::new(Text::default())),
        Format::Csv => boxed(input, LineFeeder::new(Csv::default())),
        Format::Perf => boxed(input, LineFeeder::new(PerfScript::default())),
    }
}

/// Lines that detection looks at.
const LINES: usize = 64;

/// The format of what begins with `head`; its name breaks ties only.
fn detect(head: &[u8], path: &str) -> Option<Format> {
    // A damaged first header leaves the second magic to be found.
    if head.windows(MAGIC.len()).take(4096).any(|w| w == MAGIC) || path.ends_with(".lkt") && !head.is_empty() {
        return Some(Format::Native);
    }
    if drmemtrace::looks_like(head) {
        return Some(Format::DrMemTrace);
    }
    if head.contains(&0) {
        return champsim::looks_like(head).then_some(Format::ChampSim);
    }
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end).filter(|l| !l.is_empty());
    let lines: Vec<&[u8]> = lines.by_ref().take(LINES).collect();
    if lines.iter().find(|l| !l.starts_with(b"#")).is_some_and(|l| csv::is_header(l)) {
        return Some(Format::Csv);
    }
    let scores = [
        (good_lines(Lackey::default(), &lines), Format::Lackey),
        (good_lines(Text::default(), &lines), Format::Text),
        (lines.iter().filter(|l| perf::is_sample(l)).count(), Format::Perf),
    ];
    // At equal scores the first stands.
    let best = scores.into_iter().rev().max_by_key(|(score, _)| *score)?;
    match best {
        (0, _) if lines.first().is_some_and(|l| l.starts_with(b"==")) => Some(Format::Lackey),
        (0, _) => None,
        (_, format) => Some(format),
    }
}

fn good_lines(mut parser: impl LineParser, lines: &[&[u8]]) -> usize {
    let mut items = std::collections::VecDeque::new();
    lines.iter().filter(|l| parser.line(l, &mut items) == Ok(true)).count()
}
