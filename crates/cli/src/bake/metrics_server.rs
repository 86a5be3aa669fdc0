//! Metrics over HTTP, for whoever can reach the port: other users, too, who may send what they like. One thread, a
//! bounded number of connections, each with a bounded time and a bounded head.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use lookaside_cli::exit::Failure;

/// What OpenMetrics' text format is called over HTTP (its specification, section "Overall structure").
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Connections at a time: some collectors, and room. A new one ends the oldest: a collector, who asks at once, is
/// answered long before so many others come.
const MOST_CONNECTIONS: usize = 64;
/// From the connection to the last byte of the answer; collectors wait ten seconds by default.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of a request's head, the least that the library takes; a collector's has some hundred.
const MOST_HEAD: usize = 8192;
/// After an error in taking a connection: where files are short, the next try would fail as well.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers each request with the text as it is then.
pub struct MetricsServer {
    text: Arc<Mutex<Bytes>>,
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl MetricsServer {
    /// Begins to listen; port 0 lets the system choose one.
    pub fn start(address: &str) -> Result<Self, Failure> {
        let failed =
            |e: std::io::Error| Failure::bad(format_args!("--listen {address}: {e}; name an address and a free port"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let text = Arc::new(Mutex::new(Bytes::new()));
        let shared = Arc::clone(&text);
        let work = move || runtime.block_on(serve(listener, shared));
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(work).map_err(failed)?;
        Ok(Self { text, address: bound, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with this text from now on.
    ///
    /// # Errors
    /// Nobody answers any more.
    pub fn publish(&self, text: String) -> Result<(), Failure> {
        if self.thread.is_finished() {
            return Err(Failure::bad(format_args!("metrics are no longer served at {}", self.address)));
        }
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Bytes::from(text);
        Ok(())
    }
}

/// Until the process ends, or the listener can't be watched.
async fn serve(listener: TcpListener, text: Arc<Mutex<Bytes>>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= MOST_CONNECTIONS {
            if let Some(oldest) = connections.pop_front() {
                oldest.abort();
            }
        }
        connections.push_back(tokio::spawn(answer(stream, Arc::clone(&text))).abort_handle());
    }
}

async fn answer(stream: TcpStream, text: Arc<Mutex<Bytes>>) {
    let service = service_fn(|_: Request<hyper::body::Incoming>| {
        let now = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut response = Response::new(Full::new(now));
        response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(OPENMETRICS));
        async { Ok::<_, Infallible>(response) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.keep_alive(false).max_buf_size(MOST_HEAD).timer(hyper_util::rt::TokioTimer::new());
    // A reader that has gone away, or is too slow, is no error.
    let _ = tokio::time::timeout(LONGEST, http.serve_connection(TokioIo::new(stream), service)).await;
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn server() -> MetricsServer {
        let server = MetricsServer::start("127.0.0.1:0").unwrap();
        server.publish("a 1\n# EOF\n".into()).unwrap();
        server
    }

    fn connect(server: &MetricsServer) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn get(server: &MetricsServer) -> String {
        let mut stream = connect(server);
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_text_of_now_is_the_answer() {
        let server = server();
        let answer = get(&server);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na 1\n# EOF\n"), "{answer}");
        assert!(answer.contains(&format!("content-type: {OPENMETRICS}")), "{answer}");
        server.publish("b 2\n".into()).unwrap();
        assert!(get(&server).ends_with("\r\n\r\nb 2\n"));
    }

    #[test]
    fn idle_connections_hold_nobody_up_and_are_ended() {
        let server = server();
        let mut idle: Vec<_> = (0..500).map(|_| connect(&server)).collect();
        assert!(get(&server).ends_with("# EOF\n"));
        // More than so many are ended at once, the oldest first: nothing is read from them.
        assert_eq!(idle[0].read(&mut [0; 8]).unwrap(), 0);
        let open = idle.iter().filter(|stream| {
            stream.set_nonblocking(true).unwrap();
            let mut stream: &std::net::TcpStream = stream;
            stream.read(&mut [0; 8]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
        });
        assert!(open.count() <= MOST_CONNECTIONS);
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let server = server();
        let mut endless = connect(&server);
        let _ = endless.write_all(b"GET / HTTP/1.1\r\nX: ");
        let mut sent = 0usize;
        while endless.write_all(&[b'x'; 4096]).is_ok() && sent < 256 << 20 {
            sent += 4096;
        }
        // What the system's own buffers hold, and no more.
        assert!(sent < 64 << 20, "{sent}");
        assert!(get(&server).ends_with("# EOF\n"));
        for nonsense in [&b"\0\0\0\0\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n"] {
            let mut stream = connect(&server);
            let _ = stream.write_all(nonsense);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        assert!(get(&server).ends_with("# EOF\n"));
    }

    #[test]
    fn a_thread_that_has_ended_is_said_and_ends_the_daemon() {
        let (text, address) = (Arc::default(), ([127, 0, 0, 1], 9).into());
        let server = MetricsServer { text, address, thread: std::thread::spawn(|| ()) };
        while !server.thread.is_finished() {
            std::thread::yield_now();
        }
        let failure = server.publish("a 1\n".into()).unwrap_err();
        assert_eq!((failure.code, failure.line.as_str()), (2, "metrics are no longer served at 127.0.0.1:9"));
    }

    #[test]
    fn no_address_is_said() {
        let error = |address| MetricsServer::start(address).err().map(|e| e.line).unwrap_or_default();
        assert!(error("nowhere").contains("--listen nowhere: ") && error("nowhere").contains("free port"));
    }
}
