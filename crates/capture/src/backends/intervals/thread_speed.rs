//! How many instructions a thread executes in a nanosecond of its CPU time. Where no PMU counts them, a landmark does:
//! the debug registers count how often the thread comes to it, and an interval says how many instructions lie between.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use lookaside_host::perf::{PerfCounter, DISABLED};

use super::landmark::Landmark;
use crate::request::IntervalLength;

/// A landmark is counted so often at most, and for so much CPU time of the thread: one that is best takes less than 20 ms.
const TIMES: u16 = 32;
const CPU_NS: u64 = 60_000_000;
/// The thread may wait, or have few CPUs for many.
const PATIENCE: Duration = Duration::from_secs(1);
/// Fewer tell nothing.
const LEAST_TIMES: u64 = 4;
const LOOK: Duration = Duration::from_micros(500);
/// What a program is taken to execute in a nanosecond until it is known.
const FIRST_SPEED: f64 = 1.0;
/// An interval of so many instructions most often has a landmark. The first ones have as many, until the speed is known.
const TO_FIND_ONE: u64 = 5_000_000;
const FIRST_ONES: u64 = 3;

/// How many instructions the next interval shall have.
#[derive(Debug)]
pub(super) struct LengthChooser {
    wanted: IntervalLength,
    /// Of an exception at a landmark, which is no time of the program's.
    exception_ns: f64,
    /// Instructions a nanosecond, by process and thread, and that of the last that was measured.
    speeds: HashMap<(u32, u32), f64>,
    last: Option<f64>,
    measured: u64,
    intervals: u64,
}

impl LengthChooser {
    /// # Errors
    /// The length is a time, and the kernel lets nobody count landmarks.
    pub(super) fn new(wanted: IntervalLength) -> io::Result<Self> {
        let exception_ns = match wanted {
            IntervalLength::Instructions(_) => 0.0,
            IntervalLength::CpuTime(_) => exception_ns()?,
        };
        Ok(Self { wanted, exception_ns, speeds: HashMap::new(), last: None, measured: 0, intervals: 0 })
    }

    /// Of an interval of this thread.
    pub(super) fn instructions(&self, thread: (u32, u32)) -> u64 {
        match self.wanted {
            IntervalLength::Instructions(instructions) => instructions,
            IntervalLength::CpuTime(time) => {
                let speed = self.speeds.get(&thread).copied().or(self.last);
                let least = if speed.is_none() && self.intervals < FIRST_ONES { TO_FIND_ONE } else { 1 };
                ((time.as_nanos() as f64 * speed.unwrap_or(FIRST_SPEED)) as u64).max(least)
            }
        }
    }

    /// Landmarks are of use.
    pub(super) fn wants_landmarks(&self) -> bool {
        matches!(self.wanted, IntervalLength::CpuTime(_))
    }

    /// Measures the speed of a thread by the landmark of its last interval, if that had one.
    pub(super) fn measure(&mut self, thread: (u32, u32), landmark: Option<&Landmark>) {
        self.intervals += 1;
        if let Some(speed) = landmark.and_then(|landmark| speed(thread.1, landmark, self.exception_ns)) {
            self.speeds.insert(thread, speed);
            self.last = Some(speed);
            self.measured += 1;
        }
    }

    /// For the reader of the result.
    pub(super) fn remark(&self) -> Option<String> {
        let IntervalLength::CpuTime(time) = self.wanted else { return None };
        let time = format!("{:.2} ms of an interval", time.as_secs_f64() * 1e3);
        Some(match self.last {
            Some(speed) => format!(
                "{time} were taken as {:.2} M instructions in the end: the program's speed was measured {} times",
                time_instructions(self.wanted, speed) / 1e6,
                self.measured
            ),
            None => format!(
                "{time} were taken as {:.2} M instructions: the program's speed could not be measured",
                time_instructions(self.wanted, FIRST_SPEED) / 1e6
            ),
        })
    }
}

fn time_instructions(wanted: IntervalLength, speed: f64) -> f64 {
    match wanted {
        IntervalLength::Instructions(instructions) => instructions as f64,
        IntervalLength::CpuTime(time) => time.as_nanos() as f64 * speed,
    }
}

/// Instructions a nanosecond; `None`: the thread does not come to the landmark any more, or it is gone.
fn speed(thread: u32, landmark: &Landmark, exception_ns: f64) -> Option<f64> {
    let mut counter = PerfCounter::of_instruction(landmark.address, thread, DISABLED).ok()?;
    counter.count_up_to(TIMES).ok()?;
    let until = Instant::now() + PATIENCE;
    let count = loop {
        std::thread::sleep(LOOK);
        let count = counter.read().ok()?;
        if count.value >= u64::from(TIMES) || count.running_ns >= CPU_NS || Instant::now() > until {
            break count;
        }
    };
    // Where the count stopped by itself, the time ended at a landmark. It began anywhere.
    let distances = if count.value >= u64::from(TIMES) { count.value as f64 - 0.5 } else { count.value as f64 };
    let own_ns = count.running_ns as f64 - count.value as f64 * exception_ns;
    (count.value >= LEAST_TIMES && own_ns > 0.0).then(|| distances * landmark.distance / own_ns)
}

/// What an exception at a landmark takes of a thread's CPU time, by this one's.
fn exception_ns() -> io::Result<f64> {
    let address = landmark_of_ours as fn() as usize as u64;
    let mut counter = PerfCounter::of_instruction(address, 0, DISABLED)?;
    counter.count_up_to(TIMES)?;
    (0..TIMES).for_each(|_| landmark_of_ours());
    let count = counter.read()?;
    Ok(count.running_ns as f64 / count.value.max(1) as f64)
}

#[inline(never)]
fn landmark_of_ours() {
    std::hint::black_box(());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_many_instructions_as_a_thread_was_seen_to_execute() {
        let wanted = IntervalLength::CpuTime(Duration::from_millis(10));
        let mut chooser =
            LengthChooser { wanted, exception_ns: 0.0, speeds: HashMap::new(), last: None, measured: 0, intervals: 0 };
        assert_eq!(chooser.instructions((1, 1)), 10_000_000);
        chooser.wanted = IntervalLength::CpuTime(Duration::from_millis(1));
        assert_eq!(chooser.instructions((1, 1)), TO_FIND_ONE);
        (0..FIRST_ONES).for_each(|_| chooser.measure((1, 1), None));
        assert_eq!(chooser.instructions((1, 1)), 1_000_000);
        chooser.wanted = wanted;
        assert!(chooser.remark().is_some_and(|remark| remark.ends_with("could not be measured")));
        chooser.speeds.insert((1, 1), 2.5);
        (chooser.last, chooser.measured) = (Some(3.0), 2);
        assert_eq!((chooser.instructions((1, 1)), chooser.instructions((1, 2))), (25_000_000, 30_000_000));
        assert!(chooser.remark().is_some_and(|remark| remark.contains("30.00 M instructions")));
        let fixed = LengthChooser::new(IntervalLength::Instructions(7)).expect("nothing to measure");
        assert_eq!((fixed.instructions((1, 1)), fixed.remark()), (7, None));
        assert!(!fixed.wants_landmarks() && chooser.wants_landmarks());
    }

    /// Between two landmarks of this loop lie some hundred thousand additions: a core does between one in eight
    /// nanoseconds and eight in one.
    #[test]
    fn a_thread_that_comes_to_a_landmark_has_a_speed() {
        let Ok(exception_ns) = exception_ns() else { return eprintln!("LEFT OUT: no hardware breakpoints here") };
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (told, number) = std::sync::mpsc::channel();
        let stopped = std::sync::Arc::clone(&stop);
        let worker = std::thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("somebody hears it");
            let mut sum = 0u64;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                landmark_of_ours();
                (0..200_000u64).for_each(|i| sum = std::hint::black_box(sum + i));
            }
        });
        let thread = number.recv().expect("its number");
        let at = |address| Landmark { address, distance: 200_000.0 };
        let address = landmark_of_ours as fn() as usize as u64;
        let (speed, none) =
            (speed(thread, &at(address), exception_ns), speed(thread, &at(exception_ns_address()), 0.0));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        worker.join().expect("its end");
        assert!(speed.is_some_and(|speed| (0.125..8.0).contains(&speed)), "{speed:?}");
        assert_eq!(none, None);
    }

    fn exception_ns_address() -> u64 {
        exception_ns as fn() -> io::Result<f64> as usize as u64
    }
}
