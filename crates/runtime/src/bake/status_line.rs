//! The line of JSON that a helper publishes: in its status file while it runs, and in the statistics at the end.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::counters::HelperCounters;
use super::settings::BakeBackend;

/// Name of a helper within the program that it bakes: of its thread, and of its status file.
pub const HELPER: &std::ffi::CStr = c"pt-baker";
/// The status file is written anew so often.
pub const STATUS_NANOS: u64 = 200_000_000;

/// A line in a buffer of its own; one that does not fit is none.
#[derive(Debug)]
pub struct StatusLine {
    bytes: [u8; 1024],
    length: usize,
}

impl StatusLine {
    /// With its line break.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for StatusLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.bytes.get_mut(self.length).ok_or(fmt::Error)? = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// The line of a process: its number, what was asked for as text and the backend of that.
pub fn status_line(
    pid: i32,
    bake: &str,
    asked: BakeBackend,
    counters: &HelperCounters,
    now_nanos: u64,
) -> Option<StatusLine> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (state, backend) = (counters.state().name().to_str().unwrap_or_default(), counters.backend(asked));
    let mut line = StatusLine { bytes: [0; 1024], length: 0 };
    writeln!(
        line,
        "{{\"pid\":{pid},\"bake\":\"{bake}\",\"backend\":\"{backend}\",\"state\":\"{state}\",\"errno\":{},\"elapsed_nanos\":{},\
         \"busy_nanos\":{},\"cpu_nanos\":{},\"rounds\":{},\"touches\":{},\"after_pause_picos\":{},\"right_after_picos\":{},\
         \"pause_nanos\":{},\"looks\":{},\"longest_look_nanos\":{},\"ranges\":{},\"small_bytes\":{},\"most_small_bytes\":{}}}",
        counters.errno.load(Ordering::Relaxed),
        counters.elapsed_nanos(now_nanos),
        read(&counters.busy_nanos),
        read(&counters.cpu_nanos),
        read(&counters.rounds),
        read(&counters.touches),
        read(&counters.after_pause_picos),
        read(&counters.right_after_picos),
        read(&counters.pause_nanos),
        read(&counters.looks),
        read(&counters.longest_look_nanos),
        read(&counters.ranges),
        read(&counters.small_bytes),
        read(&counters.most_small_bytes),
    )
    .ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::super::counters::HelperState;
    use super::super::settings::Hint;
    use super::*;

    #[test]
    fn the_line_is_json_and_says_what_was_counted() {
        let counters = HelperCounters::default();
        counters.reset(0);
        let most = |counter: &AtomicU64| counter.store(u64::MAX, Ordering::Relaxed);
        [&counters.rounds, &counters.touches, &counters.looks, &counters.busy_nanos, &counters.cpu_nanos]
            .into_iter()
            .for_each(most);
        [&counters.after_pause_picos, &counters.right_after_picos, &counters.pause_nanos, &counters.ranges]
            .into_iter()
            .for_each(most);
        [&counters.longest_look_nanos, &counters.small_bytes, &counters.most_small_bytes].into_iter().for_each(most);
        counters.errno.store(i32::MIN, Ordering::Relaxed);
        counters.set_state(HelperState::TooLarge);
        let baker =
            "prefetch:t1,stride=262144,nops=1048576,sleep=60000000000ns,cpu=4294967295,share=0.12345678901234567";
        let backend: BakeBackend = BakeBackend::Prefetch(Hint::T1);
        let line = status_line(i32::MAX, baker, backend, &counters, u64::MAX).expect("it fits");
        assert_eq!(line.bytes().last(), Some(&b'\n'));
        let read: serde_json::Value = serde_json::from_slice(line.bytes()).expect("JSON");
        assert_eq!(read["touches"], u64::MAX);
        assert_eq!(read["state"], "off-too-large");
        assert_eq!((&read["bake"], &read["backend"]), (&baker.into(), &"prefetch:t1".into()));
        counters.by_module.store(true, Ordering::Relaxed);
        assert_eq!(counters.backend(backend), BakeBackend::Module);
    }
}
