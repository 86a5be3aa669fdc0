//! Memory pressure beside the program: the paper's three levels (section 5.1), made by `stress-ng`.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, kill_process_group, Pid, Signal};

use super::error::CompareError;

/// Most stressors of a kind.
const MOST: u32 = 1024;
/// How long `stress-ng` runs before the first program: it allocates first, 4 times the last cache for a stream.
const SETTLE: Duration = Duration::from_secs(2);
/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// What runs beside the program. The paper's levels are one `cache` stressor, two and three `stream` stressors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// Nothing.
    None,
    /// So many of stress-ng's `cache` stressors: random reads and writes that thrash the last cache.
    Cache(u32),
    /// So many of its `stream` stressors: copies, scales, adds of arrays larger than the last cache.
    Stream(u32),
}

impl FromStr for Pressure {
    type Err = CompareError;

    fn from_str(text: &str) -> Result<Self, CompareError> {
        let bad = || {
            let line = format!("{text}: no such pressure; there are none, cache:N and stream:N with N from 1 to {MOST} (the paper's levels are cache:1, stream:2, stream:3)");
            CompareError::Bad(line)
        };
        if text == "none" {
            return Ok(Self::None);
        }
        let (kind, count) = text.split_once(':').ok_or_else(bad)?;
        let count: u32 = count.parse().map_err(|_| bad())?;
        match kind {
            "cache" if (1..=MOST).contains(&count) => Ok(Self::Cache(count)),
            "stream" if (1..=MOST).contains(&count) => Ok(Self::Stream(count)),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Cache(count) => write!(out, "cache:{count}"),
            Self::Stream(count) => write!(out, "stream:{count}"),
        }
    }
}

impl Pressure {
    /// How many threads it keeps busy.
    pub fn stressors(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Cache(count) | Self::Stream(count) => count,
        }
    }
}

/// A running `stress-ng`; dropping it ends it.
pub(super) struct Stress(Child);

impl Stress {
    /// Starts it and waits until it presses, or for `halt`; `None` without pressure.
    pub(super) fn start(pressure: Pressure, halt: &dyn Fn() -> bool) -> Result<Option<Self>, CompareError> {
        let (kind, count) = match pressure {
            Pressure::None => return Ok(None),
            Pressure::Cache(count) => ("--cache", count),
            Pressure::Stream(count) => ("--stream", count),
        };
        let mut command = Command::new("stress-ng");
        command.args([kind, &count.to_string(), "--timeout", "0", "--quiet", "--temp-path"]).arg(std::env::temp_dir());
        // A group of its own: a terminal's Ctrl-C ends the program first, and this with the comparison.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        // SAFETY: a system call between fork and exec. If this process is killed, it goes too.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => CompareError::Bad(format!(
                "pressure {pressure}: stress-ng is not installed; as root: apt-get install -y stress-ng"
            )),
            _ => CompareError::Bad(format!("pressure {pressure}: stress-ng cannot be started: {e}")),
        })?;
        let mut stress = Self(child);
        let settled = Instant::now() + SETTLE;
        while Instant::now() < settled && !halt() {
            if let Some(line) = stress.ended() {
                return Err(CompareError::Bad(format!("pressure {pressure}: {line}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(stress))
    }

    /// What it said at its end, if it has ended.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.0.try_wait().ok()??;
        let mut said = Vec::new();
        if let Some(errors) = self.0.stderr.take() {
            // More than a line is not shown; a stressor that lives on would keep the pipe open.
            let _ = rustix::io::ioctl_fionbio(&errors, true);
            let _ = errors.take(1 << 12).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        Some(format!("stress-ng ended ({status}) {}", said.lines().next().unwrap_or_default()).trim_end().to_string())
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        let Some(pid) = self.pid() else { return };
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        let _ = kill_process(pid, Signal::TERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_they_are_written() {
        for text in ["none", "cache:1", "stream:2", "stream:3", "cache:1024"] {
            assert_eq!(text.parse::<Pressure>().expect(text).to_string(), text);
        }
        for text in ["", "cache", "cache:", "cache:0", "stream:1025", "stream:-1", "vm:1", "cache:1:2"] {
            let error = text.parse::<Pressure>().expect_err(text).to_string();
            assert!(error.contains("stream:3") && !error.contains('\n'), "{error}");
        }
    }
}
