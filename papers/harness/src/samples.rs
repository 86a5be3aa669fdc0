//! Recorded programs that run beside others: what `tools/record-background` makes, kept so that no experiment needs the
//! programs.

use std::io::Cursor;

use lookaside_trace::{NativeReader, TraceError};

/// A recorded program: one process of one thread, on ARM, at page granularity and with its instruction fetches.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The program's name.
    pub name: &'static str,
    /// What it does, and which part of that is recorded.
    pub what: &'static str,
    bytes: &'static [u8],
}

impl Sample {
    /// Its accesses.
    ///
    /// # Errors
    /// The sample is damaged, which its test would say.
    pub fn open(&self) -> Result<NativeReader<Cursor<&'static [u8]>>, TraceError> {
        NativeReader::new(Cursor::new(self.bytes), self.name)
    }
}

/// The load beside the real-time tasks of the lockdown paper (Song, Park, Kim 2022, Table 1): Debian 12's programs in
/// place of MiBench's, and a typesetter that is packaged in place of lout.
pub const BACKGROUND: [Sample; 3] = [
    Sample {
        name: "cjpeg",
        what: "a picture of 192 x 144 pixels compressed (libjpeg-turbo), from start to end",
        bytes: include_bytes!("../samples/cjpeg.lkt"),
    },
    Sample {
        name: "djpeg",
        what: "the same picture decompressed (libjpeg-turbo), from start to end",
        bytes: include_bytes!("../samples/djpeg.lkt"),
    },
    Sample {
        name: "troff",
        what: "text set (groff): a tenth of all accesses, from seven tenths on",
        bytes: include_bytes!("../samples/troff.lkt"),
    },
];
