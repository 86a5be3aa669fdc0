//! Memory pressure beside the program: the paper's three levels (section 5.1), made by `stress-ng`.

use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
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
        Self::start_program(Path::new("stress-ng"), pressure, halt)
    }

    /// The same with a `stress-ng` that is called so.
    fn start_program(
        program: &Path,
        pressure: Pressure,
        halt: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, CompareError> {
        let (kind, count) = match pressure {
            Pressure::None => return Ok(None),
            Pressure::Cache(count) => ("--cache", count),
            Pressure::Stream(count) => ("--stream", count),
        };
        let mut command = Command::new(program);
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
    use std::cell::Cell;
    use std::path::PathBuf;

    use lookaside_host::Process;

    use super::*;

    /// A script in place of `stress-ng`, in a folder of its own, where it leaves what it is told with. Another program
    /// writes it: one that this test program is writing cannot be started.
    struct MadeUp(tempfile::TempDir);

    impl MadeUp {
        fn new(script: &str) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let wrote = Command::new("sh")
                .args([
                    "-c",
                    "printf '#!/bin/sh\\ncd \"%s\" || exit\\n%s\\n' \"$0\" \"$1\" > \"$0/it\" && chmod +x \"$0/it\"",
                ])
                .arg(folder.path())
                .arg(script)
                .status();
            assert!(wrote.expect("sh is everywhere").success());
            Self(folder)
        }

        fn program(&self) -> PathBuf {
            self.0.path().join("it")
        }

        fn has(&self, file: &str) -> bool {
            self.0.path().join(file).exists()
        }

        /// It is started, and has left a file.
        fn start(&self, pressure: Pressure, file: &str) -> Stress {
            let started = Stress::start_program(&self.program(), pressure, &|| self.has(file));
            let stress = started.expect("it starts").expect("it presses");
            until(file, || self.has(file));
            stress
        }
    }

    /// Until it is so; a minute is not enough for a machine that never lets others run.
    fn until(what: &str, mut so: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !so() {
            assert!(Instant::now() < end, "not within a minute: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn refused(program: &Path, pressure: Pressure) -> String {
        match Stress::start_program(program, pressure, &|| false) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{} started", program.display()),
        }
    }

    #[test]
    fn it_is_told_what_to_press_and_for_how_long() {
        for (pressure, kind) in [(Pressure::Cache(3), "--cache 3"), (Pressure::Stream(2), "--stream 2")] {
            let made_up = MadeUp::new("echo \"$@\" > told.new; mv told.new told; exec sleep 60");
            drop(made_up.start(pressure, "told"));
            let told = std::fs::read_to_string(made_up.0.path().join("told")).expect("what it was told");
            let rest = format!("--timeout 0 --quiet --temp-path {}", std::env::temp_dir().display());
            assert_eq!(told.trim_end(), format!("{kind} {rest}"));
        }
        let none =
            Stress::start_program(Path::new("/nonexistent"), Pressure::None, &|| panic!("nothing is waited for"));
        assert!(none.expect("nothing is started").is_none());
        assert_eq!([Pressure::None, Pressure::Cache(3), Pressure::Stream(2)].map(Pressure::stressors), [0, 3, 2]);
    }

    #[test]
    fn what_cannot_press_is_said_with_its_own_words() {
        assert_eq!(
            refused(Path::new("/nonexistent/stress-ng"), Pressure::Stream(2)),
            "pressure stream:2: stress-ng is not installed; as root: apt-get install -y stress-ng"
        );
        let folder = refused(Path::new("/"), Pressure::Cache(1));
        assert!(folder.starts_with("pressure cache:1: stress-ng cannot be started: "), "{folder}");
        // It ends at once; nothing more than its first line is shown.
        let quits = MadeUp::new("echo 'no such option' >&2; echo 'and more' >&2; exit 3");
        assert_eq!(
            refused(&quits.program(), Pressure::Cache(1)),
            "pressure cache:1: stress-ng ended (exit status: 3) no such option"
        );
        let is_silent = MadeUp::new("exit 0");
        assert_eq!(
            refused(&is_silent.program(), Pressure::Cache(1)),
            "pressure cache:1: stress-ng ended (exit status: 0)"
        );
    }

    #[test]
    fn without_stress_ng_nothing_presses_and_that_is_said() {
        match Stress::start(Pressure::Cache(1), &|| true) {
            Ok(started) => assert!(started.is_some_and(|mut stress| stress.ended().is_none()), "it is not started"),
            Err(error) => assert!(error.to_string().contains("apt-get install -y stress-ng"), "{error}"),
        }
        assert!(Stress::start(Pressure::None, &|| true).is_ok_and(|started| started.is_none()));
    }

    /// A halt is asked for each time that it is looked whether it still runs, and heeded at once.
    #[test]
    fn it_gets_time_to_settle_unless_it_is_halted() {
        let made_up = MadeUp::new("exec sleep 60");
        let asked = Cell::new(0);
        let halt = || asked.replace(asked.get() + 1) == 3;
        let began = Instant::now();
        let started = Stress::start_program(&made_up.program(), Pressure::Cache(1), &halt);
        assert!(started.expect("it starts").is_some_and(|mut stress| stress.ended().is_none()));
        // On a machine that let nobody run for two seconds it was not asked as often.
        assert!(asked.get() == 4 || began.elapsed() >= SETTLE, "{}", asked.get());
        asked.set(100);
        let began = Instant::now();
        let started = Stress::start_program(&made_up.program(), Pressure::Cache(1), &halt);
        assert!(started.is_ok_and(|started| started.is_some()) && began.elapsed() >= SETTLE);
        assert!(asked.get() > 100);
    }

    #[test]
    fn it_is_told_to_end_and_waited_for() {
        let made_up = MadeUp::new("trap 'sleep 0.1; : > ended; exit' TERM; : > ready; while :; do sleep 0.01; done");
        let stress = made_up.start(Pressure::Cache(1), "ready");
        let pid = stress.0.id();
        assert_eq!(stress.pid().map(|pid| pid.as_raw_nonzero().get()), i32::try_from(pid).ok());
        drop(stress);
        assert!(made_up.has("ended"), "it was not let end by itself");
        assert!(Process::of(pid).stat().is_err(), "nobody has waited for it");
    }

    /// With it goes what it started.
    #[test]
    fn what_does_not_end_is_killed_with_all_that_it_started() {
        let made_up = MadeUp::new("trap '' TERM; sleep 600 & echo $! > pid.new; mv pid.new pid; wait; wait; sleep 600");
        let stress = made_up.start(Pressure::Cache(1), "pid");
        let its = std::fs::read_to_string(made_up.0.path().join("pid")).expect("a number");
        let its = Process::of(its.trim().parse().expect("a number"));
        let pid = stress.0.id();
        let began = Instant::now();
        drop(stress);
        assert!(began.elapsed() >= PATIENCE, "it had less time to end than it should");
        assert!(Process::of(pid).stat().is_err(), "nobody has waited for it");
        until("what it started has ended", || its.stat().map_or(true, |stat| stat.has_ended()));
    }

    #[test]
    fn what_has_ended_says_how_and_is_left_alone() {
        let made_up = MadeUp::new(": > ready; while [ ! -e go ]; do sleep 0.01; done; kill -9 $$");
        let mut stress = made_up.start(Pressure::Cache(1), "ready");
        assert_eq!(stress.ended(), None);
        std::fs::write(made_up.0.path().join("go"), "").expect("a file");
        let mut said = None;
        until("it has ended", || {
            said = stress.ended();
            said.is_some()
        });
        assert_eq!(said.as_deref(), Some("stress-ng ended (signal: 9 (SIGKILL))"));
    }

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
