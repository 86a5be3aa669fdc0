//! The arguments of `trace`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_trace::Format;

#[derive(Subcommand)]
pub enum TraceCommand {
    /// Summarize a trace
    Info {
        /// Trace
        trace: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a trace as text
    Cat {
        /// Trace
        trace: PathBuf,
    },
    /// Print the first accesses and events of a trace
    Head {
        /// Trace
        trace: PathBuf,
        /// Number of lines
        #[arg(short, default_value_t = 20)]
        n: u64,
    },
    /// Convert a trace to another format. Exit code 1 if the format has no room for all of it
    Convert {
        /// Trace to read
        from: PathBuf,
        /// Trace to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// Output format [default: by file extension: .lkt, .champsim, .txt]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
    },
    /// Read a whole trace and report damaged bytes
    Check {
        /// Trace
        trace: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Lookaside's own format
    Lkt,
    /// ChampSim's 64-byte records; the trace must hold every access (`record --granularity byte`)
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
