//! Notices, without stopping the program, that it calls a function: the processor's debug registers count.

use std::io;

use lookaside_host::perf::{PerfCounter, DISABLED, INHERIT};
use lookaside_host::Process;

use crate::symbols::Symbols;

/// A function of a process, whose calls can be counted.
#[derive(Debug)]
pub(super) struct CallMarker {
    pub(super) function: String,
    /// Of each thread that the process had, with those that it starts.
    counters: Vec<PerfCounter>,
}

impl CallMarker {
    /// Nothing is counted yet.
    ///
    /// # Errors
    /// No symbol names the function, or several that differ; or the kernel lets nobody count: in one line.
    pub(super) fn new(process: u32, function: &str) -> Result<Self, String> {
        let mut symbols = Symbols::of_process(process).map_err(|error| error.to_string())?;
        let address = match symbols.functions_named(process, function)[..] {
            [] => {
                let where_ = "of the program or of a library that it is linked with";
                return Err(format!("no symbol {where_} names a function {function} (is it inlined, or stripped?)"));
            }
            [address] => address,
            [_, _, ..] => {
                return Err(format!("several functions are named {function}: give the symbol of one, as nm prints it"))
            }
        };
        let threads = Process::of(process).threads().map_err(|error| error.to_string())?;
        let open = |thread| PerfCounter::of_instruction(address, thread, DISABLED | INHERIT);
        let counters = threads.into_iter().map(open).collect::<io::Result<Vec<_>>>();
        let counters = counters.map_err(|error| refusal(&error))?;
        Ok(Self { function: function.into(), counters })
    }

    /// Calls count from now on, each of which takes an exception.
    pub(super) fn begin(&self) {
        // One of a thread that has ended counts no more, whatever is done.
        self.counters.iter().for_each(|counter| drop(counter.enable()));
    }

    /// It has been called since.
    pub(super) fn is_called(&mut self) -> bool {
        self.counters.iter_mut().any(|counter| counter.read().is_ok_and(|count| count.value > 0))
    }
}

/// What it means that no event is to be had.
pub(super) fn refusal(error: &io::Error) -> String {
    use lookaside_host::perf::Refusal;
    match lookaside_host::perf::refusal(error) {
        Refusal::Forbidden | Refusal::NoPerfEvents | Refusal::TooManyFiles => {
            crate::backends::sample::perf_refusal(error, false)
        }
        _ => format!("the kernel gives no hardware breakpoint for it ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn marked() {
        std::hint::black_box(());
    }

    /// Of this process, in a thread that begins later.
    #[test]
    fn the_first_call_is_noticed_by_the_name_that_the_source_has() {
        let own = std::process::id();
        let mut marker = match CallMarker::new(own, &format!("{}::marked", module_path!())) {
            Ok(marker) => marker,
            Err(why) if why.contains("perf_event_open") || why.contains("breakpoint") => {
                return eprintln!("LEFT OUT: {why}");
            }
            Err(why) => panic!("{why}"),
        };
        marked();
        assert!(!marker.is_called(), "it had not begun");
        marker.begin();
        assert!(!marker.is_called());
        std::thread::spawn(marked).join().expect("its end");
        assert!(marker.is_called());
        let nobody = CallMarker::new(own, "no_such_function").expect_err("nobody's name");
        assert!(nobody.starts_with("no symbol of the program") && !nobody.contains('\n'), "{nobody}");
    }
}
