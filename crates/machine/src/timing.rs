//! What reads, page faults and streams take in nanoseconds, as `lookaside machine probe` measures them: the figures
//! that a core's overlap, the memory's bandwidth and the kernel's zeroing show in, and that counts and latencies do not
//! say.

use serde::{Deserialize, Serialize};

use crate::format::PageSize;

/// The table `[timing]`. All of it is measured, none of it comes from a preset; each list is empty where nothing was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Reads at random, smallest footprint first; of each footprint without and then beside a stream on another CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub random_reads: Vec<RandomReads>,
    /// Reads in a row from memory, without and beside a stream on another CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequential_reads: Vec<SequentialReads>,
    /// First touches of anonymous memory, by the size of the pages that the kernel gives, smallest first. A size that
    /// it does not offer is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page_faults: Vec<PageFaultCost>,
}

/// Reads of lines chosen at random, all over a footprint, a word of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RandomReads {
    /// Bytes that the lines are chosen from; in TOML a string with a unit: `"64M"`.
    #[serde(with = "crate::units::bytes")]
    #[cfg_attr(feature = "schemas", schemars(schema_with = "crate::json_schema::bytes"))]
    pub footprint: u64,
    /// Another CPU read memory in a row meanwhile, as fast as it could.
    #[serde(default, skip_serializing_if = "is_no")]
    pub beside_stream: bool,
    /// In pages of 4 KiB, whose frames lie side by side.
    pub small_pages: ReadCosts,
    /// In pages of 2 MiB; absent where the system gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<ReadCosts>,
    /// Dependent ÷ independent nanoseconds in 2 MiB pages: how many misses a core has under way at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapping_misses: Option<Quartiles>,
    /// Of what 4 KiB pages take longer than pages of 2 MiB, dependent ÷ independent: how many walks a core has under
    /// way at a time, or hides behind misses. Absent where independent reads do not take longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapping_walks: Option<Quartiles>,
}

/// What a read takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadCosts {
    /// Nanoseconds a read whose address needs what the one before it read.
    pub dependent_ns_per_read: Quartiles,
    /// Nanoseconds a read where no address needs another read: as many are under way as the core manages.
    pub independent_ns_per_read: Quartiles,
}

/// Reads of all lines of memory in ascending order, a word of each, in pages of 2 MiB where the system has some.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SequentialReads {
    /// Another CPU read memory in a row meanwhile, as fast as it could.
    #[serde(default, skip_serializing_if = "is_no")]
    pub beside_stream: bool,
    /// Bytes a second that one CPU reads.
    pub bytes_per_second: Quartiles,
}

/// What the first touch of a page takes, zeroing and all, of memory that was given back just before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageFaultCost {
    /// Size of the page that the kernel gives.
    pub page_size: PageSize,
    /// Nanoseconds a fault.
    pub ns_per_fault: Quartiles,
}

/// Lower quartile, median and upper quartile over rounds in which all figures took turns; written as a list of the
/// three.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct Quartiles {
    /// A quarter of the rounds gave less.
    pub lower: f64,
    /// Half of the rounds gave less.
    pub median: f64,
    /// A quarter of the rounds gave more.
    pub upper: f64,
}

impl From<[f64; 3]> for Quartiles {
    fn from([lower, median, upper]: [f64; 3]) -> Self {
        Self { lower, median, upper }
    }
}

impl From<Quartiles> for [f64; 3] {
    fn from(Quartiles { lower, median, upper }: Quartiles) -> Self {
        [lower, median, upper]
    }
}

fn is_no(is: &bool) -> bool {
    !*is
}
