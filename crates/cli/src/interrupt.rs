//! Ctrl-C and its kin: the program is asked to end, and what was seen so far is reported.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lookaside_capture::ProgramControl;
use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::exit::Failure;

/// How long a program may take to end by the signal before it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a signal has to do at the moment.
#[derive(Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
    times: Arc<AtomicU32>,
    child: Arc<Mutex<Option<Child>>>,
}

/// The program, and whether it is ours to end (attached ones are let go).
#[derive(Clone)]
struct Child {
    control: Arc<dyn ProgramControl>,
    ours: bool,
}

impl Interrupt {
    /// Takes SIGINT, SIGTERM and SIGHUP from now on, but for those that are ignored (`nohup`). Once a process.
    pub fn install() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let ignored = ignored();
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals =
            SignalsInfo::<WithOrigin>::new(wanted).map_err(|e| Failure::bad(format_args!("signal handler: {e}")))?;
        let on_signal = interrupt.clone();
        std::thread::spawn(move || {
            for origin in signals.forever() {
                on_signal.signalled(&origin);
            }
        });
        Ok(interrupt)
    }

    /// From now on a signal ends this program.
    pub fn watch(&self, control: Arc<dyn ProgramControl>, ours: bool) {
        let child = Child { control, ours };
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child.clone());
        if self.asked() {
            child.control.stop(); // came before the program was known
        }
    }

    /// The program has ended: a signal now only sets the flag.
    pub fn unwatch(&self) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The flag itself, for loops.
    pub fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Exit code by the first signal, 128 + n; 0 if none came.
    pub fn code(&self) -> u8 {
        match self.signal.load(Ordering::Relaxed) {
            0 => 0,
            signal => (128 + (signal & 0x7f)) as u8,
        }
    }

    fn signalled(&self, origin: &Origin) {
        let times = self.times.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.signal.compare_exchange(0, origin.signal, Ordering::Relaxed, Ordering::Relaxed);
        self.asked.store(true, Ordering::Relaxed);
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(child) = child else {
            if times >= 3 {
                std::process::exit(i32::from(self.code())); // impatient, and nothing left to save
            }
            return;
        };
        let pid = i32::try_from(child.control.pid()).ok().and_then(Pid::from_raw);
        let (Some(pid), true, 1) = (pid, child.ours, times) else {
            child.control.stop();
            return;
        };
        // A terminal sends its signals to all in its foreground, the program too.
        if origin.cause != Cause::Kernel {
            let signal = match origin.signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => Signal::INT,
            };
            let _ = kill_process(pid, signal); // gone already: nothing to end
        }
        let watched = Arc::clone(&self.child);
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if let Some(child) = watched.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                child.control.stop();
            }
        });
    }
}

/// The signals that this process was told to ignore: bit n - 1 is signal n.
fn ignored() -> u64 {
    let status = lookaside_host::Process::own().status().unwrap_or_default();
    status.value("SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}
