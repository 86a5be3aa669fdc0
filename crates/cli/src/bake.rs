//! The `bake` command: other processes, from outside.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lookaside_report::openmetrics;
use lookaside_runtime::bake::{Baked, Outside, Ranking, Settings, Wanted};

use crate::args::bake::Bake;
use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::output::{check_writable, print, print_json, spinner, style, write_file};
use crate::status::Status;

/// How often processes and their mappings are looked for anew.
const REFRESH: Duration = Duration::from_secs(1);
/// How soon an interruption is heeded.
const STEP: Duration = Duration::from_millis(50);
/// What OpenMetrics' text format is called over HTTP (its specification, section "Overall structure").
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bakes until the processes have ended, the time is over, or somebody interrupts. Exit code 1 where a process could not be baked;
/// 128 + the signal where it was interrupted.
pub fn run(args: &Bake) -> Result<u8, Failure> {
    let settings: Settings = args.settings.parse().map_err(Failure::bad)?;
    if let Some(path) = &args.metrics {
        check_writable(path)?;
    }
    let interrupt = Interrupt::install()?;
    let wanted = Wanted {
        pids: args.pid.clone(),
        comms: args.comm.clone(),
        groups: args.cgroup.clone(),
        system: args.system,
        ..Wanted::default()
    };
    // Others may still come.
    let waits = args.system || !args.comm.is_empty() || !args.cgroup.is_empty();
    let mut outside = Outside::start(&settings, wanted).map_err(Failure::bad)?;
    let ranking = outside.ranking();
    let told = Told::open(args, ranking.clone())?;
    told.tell(&outside.report())?;
    let end = args.time.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let bar = spinner("baking");
    let mut next = Instant::now() + REFRESH;
    while !interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(STEP);
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + REFRESH;
        let there = outside.refresh().map_err(Failure::bad)?;
        if there == 0 && !waits {
            break;
        }
        let report = outside.report();
        told.tell(&report)?;
        let rounds: u64 = report.iter().map(|baked| baked.stats.rounds).sum();
        bar.set_message(format!("{there} processes, {rounds} rounds"));
    }
    bar.finish_and_clear();
    let report = outside.stop();
    told.tell(&report)?;
    if args.json {
        print_json(&report)?;
    } else {
        print(&lookaside_report::baked::render(&report, &style(None)))?;
        print(&ranking.as_ref().map(lookaside_report::baked::ranked).unwrap_or_default())?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.iter().any(|baked| baked.refused.is_some()) { NOT_CLEAN } else { 0 })
}

/// Where others learn what is done.
struct Told<'a> {
    status: Option<Status>,
    metrics: Option<&'a std::path::Path>,
    served: Option<Arc<Mutex<String>>>,
    ranking: Option<Ranking>,
}

impl<'a> Told<'a> {
    fn open(args: &'a Bake, ranking: Option<Ranking>) -> Result<Self, Failure> {
        let served = args.listen.as_deref().map(serve).transpose()?;
        Ok(Self { status: Status::open(), metrics: args.metrics.as_deref(), served, ranking })
    }

    fn tell(&self, report: &[Baked]) -> Result<(), Failure> {
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
