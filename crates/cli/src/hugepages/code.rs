//! Code on huge pages for `lookaside hugepages run --text`: what the preloaded library is told, and what it reports.

use std::path::PathBuf;
use std::process::Command;

use lookaside_runtime::hugepages::{check_code, CodeBudget, CODE_REPORT_VARIABLE, CODE_VARIABLE};
use lookaside_views::hugepages_code;
use tempfile::NamedTempFile;

use super::perf_map::PerfMaps;
use crate::preload::code_report::read_lines;
use lookaside_cli::exit::Failure;

/// What is asked for, before the program starts.
pub struct CodeRequest {
    budget: CodeBudget,
    report: NamedTempFile,
    perf_maps: bool,
}

impl CodeRequest {
    /// So many windows; with maps for profilers or without. What the kernel lacks is said.
    pub fn new(budget: CodeBudget, perf_maps: bool) -> Result<Self, Failure> {
        check_code().map_err(Failure::bad)?;
        let report =
            NamedTempFile::new().map_err(|e| Failure::bad(format_args!("--text: no temporary file (TMPDIR): {e}")))?;
        Ok(Self { budget, report, perf_maps })
    }

    /// Tells the library, in the environment of the program.
    pub fn tell(&self, command: &mut Command) {
        command.env(CODE_VARIABLE, self.budget.to_string()).env(CODE_REPORT_VARIABLE, self.path());
    }

    fn path(&self) -> PathBuf {
        self.report.path().to_path_buf()
    }

    /// Begins what goes on beside the program.
    pub fn begin(self) -> std::io::Result<CodeRun> {
        let maps = self.perf_maps.then(|| PerfMaps::start(self.path())).transpose()?;
        Ok(CodeRun { request: self, maps })
    }
}

/// What goes on beside the program.
pub struct CodeRun {
    request: CodeRequest,
    maps: Option<PerfMaps>,
}

impl CodeRun {
    /// Ends it; what was done, in lines.
    pub fn end(self) -> String {
        let maps = self.maps.map(PerfMaps::end).unwrap_or_default();
        let report = std::fs::read_to_string(self.request.report.path()).unwrap_or_default();
        let mut text = hugepages_code::summary(&read_lines(&report));
        for written in maps {
            text += &match written {
                Ok((path, functions)) => {
                    format!("lookaside:   map for profilers: {} ({functions} names)\n", path.display())
                }
                Err(why) => format!("lookaside:   no map for profilers: {why}\n"),
            };
        }
        text
    }
}
