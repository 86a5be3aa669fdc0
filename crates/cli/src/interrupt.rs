//! Ctrl-C: the program is asked to end, and what was seen so far is reported.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lookaside_capture::Control;
use rustix::process::{kill_process, Pid, Signal};

use crate::exit::Failure;

/// How long a program may take to end by its own SIGINT before it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a Ctrl-C has to do at the moment.
#[derive(Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    times: Arc<AtomicU32>,
    child: Arc<Mutex<Option<Child>>>,
}

/// The program, and whether it is ours to end (attached ones are let go).
#[derive(Clone)]
struct Child {
    control: Arc<dyn Control>,
    ours: bool,
}

impl Interrupt {
    /// Installs the handler for SIGINT, SIGTERM and SIGHUP. Once a process.
    pub fn install() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let on_signal = interrupt.clone();
        ctrlc::set_handler(move || on_signal.signalled())
            .map_err(|e| Failure::bad(format_args!("signal handler: {e}")))?;
        Ok(interrupt)
    }

    /// From now on a Ctrl-C ends this program.
    pub fn watch(&self, control: Arc<dyn Control>, ours: bool) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(Child { control, ours });
        if self.asked() {
            self.signalled(); // came before the program was known
        }
    }

    /// The program has ended: a Ctrl-C now only sets the flag.
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

    fn signalled(&self) {
        self.asked.store(true, Ordering::Relaxed);
        let times = self.times.fetch_add(1, Ordering::Relaxed) + 1;
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(child) = child else {
            if times >= 3 {
                std::process::exit(130); // impatient, and nothing left to save
            }
            return;
        };
        let pid = i32::try_from(child.control.pid()).ok().and_then(Pid::from_raw);
        let (Some(pid), true, 1) = (pid, child.ours, times) else {
            child.control.stop();
            return;
        };
        // On a terminal it has had one already; one more does no harm.
        let _ = kill_process(pid, Signal::INT);
        let watched = Arc::clone(&self.child);
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if let Some(child) = watched.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                child.control.stop();
            }
        });
    }
}
