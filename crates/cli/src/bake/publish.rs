//! What `lookaside bake` publishes while it runs: its status file, and metrics in a file and over HTTP.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use lookaside_runtime::bake::{ProcessReport, Ranking};
use lookaside_views::openmetrics;

use crate::args::bake::BakeArgs;
use crate::bake_status::command_files::CommandStatusFile;
use lookaside_cli::exit::Failure;
use lookaside_cli::output::write_file;

/// What OpenMetrics' text format is called over HTTP (its specification, section "Overall structure").
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where others read what is done: the status file, the metrics file, and over HTTP.
pub struct Publisher<'a> {
    status: Option<CommandStatusFile>,
    metrics: Option<&'a Path>,
    served: Option<Arc<Mutex<String>>>,
    ranking: Option<Ranking>,
}

impl<'a> Publisher<'a> {
    /// Begins to listen, if that is asked for.
    pub fn open(args: &'a BakeArgs, ranking: Option<Ranking>) -> Result<Self, Failure> {
        let served = args.listen.as_deref().map(serve).transpose()?;
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
            served.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&text);
        }
        self.metrics.map_or(Ok(()), |path| write_file(path, &text))
    }
}

/// Answers each request with the text as it is then; says where on standard error.
fn serve(address: &str) -> Result<Arc<Mutex<String>>, Failure> {
    let server = tiny_http::Server::http(address)
        .map_err(|e| Failure::bad(format_args!("--listen {address}: {e}; name an address and a free port")))?;
    // Port 0 lets the system choose one.
    eprintln!("lookaside: metrics: http://{}/", server.server_addr());
    let text = Arc::new(Mutex::new(String::new()));
    let shared = Arc::clone(&text);
    std::thread::spawn(move || {
        for request in server.incoming_requests() {
            let now = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut response = tiny_http::Response::from_string(now);
            if let Ok(kind) = tiny_http::Header::from_bytes("Content-Type", CONTENT_TYPE) {
                response.add_header(kind);
            }
            // A reader that has gone away is no error.
            let _ = request.respond(response);
        }
    });
    Ok(text)
}
