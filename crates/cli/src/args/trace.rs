//! The arguments of `trace`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use lookaside_trace::Format;

#[derive(Subcommand)]
pub enum TraceCommand {
    /// What is in a trace
    Info {
        /// Trace
        trace: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// A trace as text
    Cat {
        /// Trace
        trace: PathBuf,
    },
    /// The first accesses and events of a trace, as text
    Head {
        /// Trace
        trace: PathBuf,
        /// Lines
        #[arg(short, default_value_t = 20)]
        n: u64,
    },
    /// Write a trace in another format
    Convert {
        /// Trace to read
        from: PathBuf,
        /// Trace to write
        to: PathBuf,
        /// Format to write [default: by the ending: .lkt native, .champsim, .txt]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
    },
    /// Read all of a trace and say which bytes are damaged
    Check {
        /// Trace
        trace: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Native
    Lkt,
    /// ChampSim's 64-byte records
    Champsim,
    /// Text
    Text,
}

impl From<ExportFormat> for Format {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Lkt => Self::Native,
            ExportFormat::Champsim => Self::ChampSim,
            ExportFormat::Text => Self::Text,
        }
    }
}
