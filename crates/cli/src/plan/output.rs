//! What becomes of a plan: a file, a report, the exit code.

use std::path::Path;

use lookaside_report::Document;
use lookaside_techniques::plan::Plan;
use lookaside_views::json::{self, JsonResult};

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::output::{check_writable, style, write_file, OutputArgs};

/// Where a plan goes.
pub struct PlanOutput<'a> {
    /// The plan file.
    pub file: Option<&'a Path>,
    /// The report.
    pub report: &'a OutputArgs,
}

impl PlanOutput<'_> {
    /// Finds out whether the files can be written, before a program runs for hours.
    pub fn check(&self) -> Result<(), Failure> {
        self.file.map_or(Ok(()), check_writable)?;
        self.report.check()
    }

    /// Writes the file and the report; the exit code.
    pub fn write<P: Plan + JsonResult>(&self, plan: &P, view: fn(&P) -> Document) -> Result<u8, Failure> {
        if let Some(path) = self.file {
            write_file(path, &plan.to_toml())?;
        }
        self.report.write(&view(plan), &json::render(plan), &style(None))?;
        Ok(if plan.is_complete() { 0 } else { NOT_CLEAN })
    }
}
