//! What `lookaside bake` publishes while it runs: its status file, and metrics in a file and over HTTP.

use std::path::Path;

use lookaside_runtime::bake::{ProcessReport, Ranking};
use lookaside_views::openmetrics;

use crate::args::bake::BakeOutsideArgs;
use crate::bake_status::command_files::CommandStatusFile;
use lookaside_cli::exit::Failure;
use lookaside_cli::output::write_file;
use lookaside_cli::say::say;

use super::metrics_server::MetricsServer;

/// Where others read what is done: the status file, the metrics file, and over HTTP.
pub struct Publisher<'a> {
    status: Option<CommandStatusFile>,
    metrics: Option<&'a Path>,
    served: Option<MetricsServer>,
    ranking: Option<Ranking>,
}

impl<'a> Publisher<'a> {
    /// Begins to listen, if that is asked for.
    pub fn open(args: &'a BakeOutsideArgs, ranking: Option<Ranking>) -> Result<Self, Failure> {
        let served = args.listen.as_deref().map(MetricsServer::start).transpose()?;
        if let Some(served) = &served {
            say(format_args!("metrics: http://{}/", served.address()));
        }
        Ok(Self { status: CommandStatusFile::open(), metrics: args.metrics.as_deref(), served, ranking })
    }

    /// Writes the report of now to each of them, in place of the one before.
    pub fn publish(&self, report: &[ProcessReport]) -> Result<(), Failure> {
        if let Some(status) = &self.status {
            status.write(report)?;
        }
        if self.metrics.is_none() && self.served.is_none() {
            return Ok(());
        }
        let text = openmetrics::render(report, self.ranking.as_ref());
        if let Some(served) = &self.served {
            served.publish(text.clone())?;
        }
        self.metrics.map_or(Ok(()), |path| write_file(path, &text))
    }
}
