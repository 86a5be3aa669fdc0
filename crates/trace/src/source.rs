//! Where blocks come from.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Block;

/// How fine the addresses of a trace are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Granularity {
    /// Every access with its full address.
    #[default]
    Byte,
    /// Addresses rounded down to 64 bytes; repeats of a line may be left out.
    Line,
    /// Repeats of a 4 KiB page may be left out: data caches are then fed only by the first line
    /// touched in each visit to a page, or, behind a window ([`TraceInfo::filter_window`]), by all lines, once.
    Page,
}

/// What a trace says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TraceInfo {
    /// How fine the addresses are.
    pub granularity: Granularity,
    /// Recorder, as `valgrind`, `qemu`, `lackey-import`; empty = not known.
    pub recorder: String,
    /// The command that was recorded; empty = not known.
    pub command: Vec<String>,
    /// log2 of the classes of pages (`vpn & (2^k - 1)`) that the filter tells apart. Without a window: within each the
    /// recorder left out repeats of the last page, which is exact for TLBs whose set number determines the class; 0 =
    /// only direct repeats.
    pub filter_log2_classes: u32,
    /// Pages used last, by each of the filter's tables, within which the recorder left out all repeats. 0 = no such
    /// window. Each recorded access brings a page in; [`crate::WindowChange::Leave`] says when it leaves. All leave before
    /// another thread of the process goes on, and before events. Where that saves too little, a block may have every visit
    /// to a page ([`Block::is_windowed`]). Exact for base pages where each first-level TLB array
    /// is the only one for its accesses and coalesces nothing, and is
    ///
    /// - fully associative, LRU, and of at least so many entries; or, where there are several classes,
    /// - of sets each within one class, and of at least [`Self::filter_class_pages`] ways under LRU, of
    ///   2^(`filter_class_pages` - 1) under tree-PLRU: so many others must be used before a page can go.
    #[serde(default)]
    pub filter_window: u32,
    /// Pages of one class in a window at most. Only with a window.
    #[serde(default)]
    pub filter_class_pages: u32,
    /// Loads and stores were filtered apart (exact for machines with a TLB for each).
    pub filter_stores_apart: bool,
    /// Instruction fetches are in the stream.
    pub has_fetches: bool,
    /// Instruction addresses are in the stream.
    pub has_ip: bool,
    /// 0: the stream is every access. Otherwise each access is one *sample* that stands for this
    /// many nanoseconds of the thread's time; address 0 = the sample's address could not be found.
    pub sample_period_ns: u64,
}

/// Windows of the pages used last, within which a recorder leaves out all repeats; all 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterWindow {
    /// See [`TraceInfo::filter_window`].
    pub pages: u32,
    /// See [`TraceInfo::filter_log2_classes`].
    pub log2_classes: u32,
    /// See [`TraceInfo::filter_class_pages`]; not 0 where there is a window.
    pub class_pages: u32,
}

impl TraceInfo {
    /// The recorder's window, if it had one.
    pub fn window(&self) -> Option<FilterWindow> {
        (self.filter_window > 0).then_some(FilterWindow {
            pages: self.filter_window,
            log2_classes: self.filter_log2_classes,
            class_pages: self.filter_class_pages,
        })
    }
}

/// A part of a trace that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Damage {
    /// First byte of the damaged part in the file.
    pub offset: u64,
    /// Bytes left out.
    pub len: u64,
    /// What is wrong.
    pub reason: String,
}

/// A stream of blocks.
pub trait Source {
    /// What the trace says of itself.
    fn info(&self) -> &TraceInfo;

    /// Refills `block` with what comes next; `false` at the end (the block is then empty).
    ///
    /// # Errors
    /// Where the input can't be read at all any more. Damage that costs only a part is kept for [`Source::damage`].
    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError>;

    /// Steps over what comes next without reading it, where that can be done: at most so many accesses, no events but of
    /// windows ([`Block::window_events`]), and no thread that is new. How many accesses; 0 where it can't be done.
    fn skip(&mut self, most: u64) -> u64 {
        let _ = most;
        0
    }

    /// Parts left out so far.
    fn damage(&self) -> &[Damage] {
        &[]
    }
}

/// Why a trace can't be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The system said no.
    #[error("{what}: {source}")]
    Io {
        /// File or stream.
        what: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// The input is not what it should be.
    #[error("{what}: {place}: {reason}")]
    Format {
        /// File or stream.
        what: String,
        /// Byte offset or line.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_at_least_one_page() {
        let window = |filter_window| {
            TraceInfo { filter_window, filter_log2_classes: 4, filter_class_pages: 2, ..TraceInfo::default() }.window()
        };
        assert_eq!(window(0), None);
        assert_eq!(window(1), Some(FilterWindow { pages: 1, log2_classes: 4, class_pages: 2 }));
    }
}
