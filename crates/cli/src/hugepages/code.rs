//! Code on huge pages for `lookaside hugepages run --text`: what the preloaded library is told, and what it reports.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_runtime::hugepages::{
    check_code, code_weights_line, harmless_filters, CodeBudget, CODE_FILTERS_VARIABLE, CODE_REPORT_VARIABLE,
    CODE_VARIABLE, CODE_WEIGHTS_VARIABLE,
};
use lookaside_techniques::hugepages::code_plan::CodePlan;
use lookaside_views::hugepages_code;
use tempfile::NamedTempFile;

use super::perf_map::PerfMaps;
use crate::preload::code_report::read_lines;
use lookaside_cli::exit::Failure;

/// What is asked for, before the program starts.
pub struct CodeRequest {
    budget: CodeBudget,
    /// A plan's weights.
    weights: Option<NamedTempFile>,
    report: NamedTempFile,
    perf_maps: bool,
}

impl CodeRequest {
    /// So many windows; with maps for profilers or without. What the kernel lacks is said.
    pub fn new(budget: CodeBudget, perf_maps: bool) -> Result<Self, Failure> {
        check_code().map_err(Failure::bad)?;
        let report =
            NamedTempFile::new().map_err(|e| Failure::bad(format_args!("--text: no temporary file (TMPDIR): {e}")))?;
        Ok(Self { budget, weights: None, report, perf_maps })
    }

    /// What a plan names, or as many windows of it as the budget says.
    pub fn of_plan(plan: &Path, budget: Option<CodeBudget>, perf_maps: bool) -> Result<Self, Failure> {
        let (planned, weights) = load_weights(plan)?;
        let request = Self::new(budget.unwrap_or(planned), perf_maps)?;
        Ok(Self { weights: Some(weights), ..request })
    }

    /// Tells the library, in the environment of the program.
    pub fn tell(&self, command: &mut Command) {
        command.env(CODE_VARIABLE, self.budget.to_string()).env(CODE_REPORT_VARIABLE, self.path());
        if let Some(filters) = harmless_filters() {
            command.env(CODE_FILTERS_VARIABLE, filters.to_string());
        }
        match &self.weights {
            Some(weights) => command.env(CODE_WEIGHTS_VARIABLE, weights.path()),
            None => command.env_remove(CODE_WEIGHTS_VARIABLE),
        };
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

/// A plan of code: how many windows a process has in it at most, and a file with its weights for the library.
pub fn load_weights(plan: &Path) -> Result<(CodeBudget, NamedTempFile), Failure> {
    let name = plan.display();
    let plan = CodePlan::load(plan).map_err(Failure::bad)?;
    if plan.most_in_a_process() == 0 {
        return Err(Failure::bad(format_args!("{name}: names no window")));
    }
    let weights = plan.weights();
    let lines = weights.iter().map(|(path, offset, bytes, weight)| code_weights_line(*weight, *offset, *bytes, path));
    let text: String = lines.collect();
    let file = NamedTempFile::new().and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
    let file = file.map_err(|e| Failure::bad(format_args!("{name}: no temporary file (TMPDIR): {e}")))?;
    Ok((CodeBudget::AtMost(plan.most_in_a_process()), file))
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
