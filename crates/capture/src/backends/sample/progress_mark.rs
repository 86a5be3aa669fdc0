//! A place in a running program's code to which it comes so often that the debug registers can count it all the time,
//! and so rarely that counting costs it next to nothing: how far the program is, without a PMU and without its help.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use lookaside_host::perf::{PerfCounter, DISABLED};
use lookaside_host::Process;
use lookaside_trace::{parse_maps, Block, Region};

use super::decode::DecodedCode;
use super::memory;
use crate::error::CaptureError;
use crate::request::{RecordRequest, RecordTarget};
use crate::symbols::Symbols;

/// A place that is passed so often in a second of CPU time is best: an exception takes 1 to 10 µs, so that counting takes
/// half a percent of the time at most, and a phase of some seconds has a thousand of them.
const BEST_PER_SECOND: f64 = 500.0;
/// More often, counting takes some percent.
const MOST_PER_SECOND: f64 = 4_000.0;
/// What a user asks for may cost that much, too.
const MOST_CALLS_PER_SECOND: f64 = 10_000.0;
/// More rarely, a phase of some seconds has so few that their number is known to some percent only.
const LEAST_PER_SECOND: f64 = 8.0;
/// A place that is as good as this is taken at once.
const GOOD_PER_SECOND: std::ops::RangeInclusive<f64> = 150.0..=1_500.0;
/// Debug registers of x86-64.
const REGISTERS: usize = 4;
/// A place is tried until it was passed so often: the exceptions of one that is passed all the time take less than a
/// millisecond.
const TRY_TIMES: u16 = 100;
/// … or for so much CPU time of the thread: all places first for a time in which a good one comes some times, then those
/// that did not come for one in which the rarest that is of use comes three times.
const FIRST_TRY: Duration = Duration::from_millis(30);
const SECOND_TRY: Duration = Duration::from_millis(400);
/// A thread that waits is waited for so many times as long.
const PATIENCE: u32 = 4;
/// How long a function that a user names is tried.
const FUNCTION_TRY: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(2);
/// Code on either side of a sampled place in which places are looked for.
const AROUND_BYTES: u64 = 8 << 10;
/// Samples a second while it is found out where the program is.
const SAMPLE_HZ: u32 = 1000;

/// A place in the code of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressMark {
    /// The instruction's address.
    pub address: u64,
    /// `function+0x1f`, as far as it is known.
    pub name: String,
    /// How often the busiest thread passed it in a second of its CPU time, when it was tried.
    pub per_cpu_second: f64,
}

/// Looks for a mark in the code around which the process is seen: for a part of `time` it is sampled, for the rest places
/// are tried, four at a time. Nothing of the process is changed or stopped. `None`: no place that was tried is passed at
/// a rate that can be counted.
///
/// # Errors
/// In a line: it can't be sampled, or the kernel gives no hardware breakpoints.
pub fn find_progress_mark(
    pid: u32,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<ProgressMark>, CaptureError> {
    let end = Instant::now() + time;
    let seen = SampledCode::of(pid, time / 4, stop)?;
    let Some(thread) = seen.busiest_thread() else { return Ok(None) };
    let mut best: Option<(u64, f64)> = None;
    let (mut candidates, mut not_passed) = (seen.candidates(pid), Vec::new());
    for long in [FIRST_TRY, SECOND_TRY] {
        for tried in candidates.chunks(REGISTERS) {
            let is_good = best.is_some_and(|(_, rate)| GOOD_PER_SECOND.contains(&rate));
            if is_good || stop() || Instant::now() >= end {
                break;
            }
            for (address, rate) in rates(thread, tried, long)? {
                let is_better = best.is_none_or(|(_, best)| off_best(rate) < off_best(best));
                if (LEAST_PER_SECOND..=MOST_PER_SECOND).contains(&rate) && is_better {
                    best = Some((address, rate));
                }
                not_passed.extend((rate == 0.0).then_some(address));
            }
        }
        if best.is_some() {
            break;
        }
        candidates = std::mem::take(&mut not_passed);
    }
    Ok(best.map(|(address, per_cpu_second)| ProgressMark { address, name: name_of(pid, address), per_cpu_second }))
}

/// The mark that is the first instruction of a function, by its name in the symbol tables of the program and its
/// libraries, tried for a moment.
///
/// # Errors
/// In a line: no function has that name, or several have; it is called too often to be counted all the time; no hardware
/// breakpoints.
pub fn mark_of_function(pid: u32, function: &str, stop: &dyn Fn() -> bool) -> Result<ProgressMark, CaptureError> {
    let refused = |reason: String| CaptureError::Backend { backend: "sample", reason };
    let mut symbols = Symbols::of_process(pid).map_err(|e| refused(e.to_string()))?;
    let address = match symbols.functions_named(pid, function)[..] {
        [address] => address,
        [] => return Err(refused(format!("no symbol names a function {function} (is it inlined, or stripped?)"))),
        _ => return Err(refused(format!("several functions are named {function}: give the symbol of one"))),
    };
    let seen = SampledCode::of(pid, PATIENCE * FUNCTION_TRY, stop)?;
    let threads = seen.threads.keys().copied();
    let tried: Vec<_> = threads.map(|thread| rates(thread, &[address], FUNCTION_TRY)).collect::<Result<_, _>>()?;
    let per_cpu_second = tried.into_iter().flatten().map(|(_, rate)| rate).fold(0.0, f64::max);
    match per_cpu_second <= MOST_CALLS_PER_SECOND {
        true => Ok(ProgressMark { address, name: function.into(), per_cpu_second }),
        false => Err(refused(format!(
            "{function} is called {per_cpu_second:.0} times a second of CPU time, and to count each would cost the \
             program some percent: name one that is called {MOST_CALLS_PER_SECOND} times or less"
        ))),
    }
}

/// How far a rate is from the best one.
fn off_best(rate: f64) -> f64 {
    (rate / BEST_PER_SECOND).ln().abs()
}

/// Where a process was seen.
#[derive(Debug, Default)]
struct SampledCode {
    /// Samples by instruction.
    instructions: BTreeMap<u64, u32>,
    /// Samples by thread.
    threads: BTreeMap<u32, u32>,
}

impl SampledCode {
    fn of(pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Self, CaptureError> {
        let mut recording = super::start(&RecordRequest::sampling(RecordTarget::Pid(pid), SAMPLE_HZ))?;
        let mut source = recording.source;
        let reader = std::thread::spawn(move || {
            let (mut seen, mut block) = (Self::default(), Block::default());
            while source.next_block(&mut block).unwrap_or(false) {
                if block.process == pid {
                    seen.add(&block);
                }
            }
            seen
        });
        let end = Instant::now() + time;
        while Instant::now() < end && !stop() && !reader.is_finished() {
            std::thread::sleep(LOOK);
        }
        recording.control.stop();
        recording.notes.clear();
        Ok(reader.join().unwrap_or_default())
    }

    fn add(&mut self, block: &Block) {
        for &ip in block.ip.iter().filter(|&&ip| ip != 0) {
            *self.instructions.entry(ip).or_default() += 1;
        }
        *self.threads.entry(block.thread).or_default() += block.ip.len() as u32;
    }

    fn busiest_thread(&self) -> Option<u32> {
        self.threads.iter().max_by_key(|(_, samples)| **samples).map(|(&thread, _)| thread)
    }

    /// Places where a straight run of instructions begins, around those that were sampled: the nearest of each in turns,
    /// those of the most samples first.
    fn candidates(&self, pid: u32) -> Vec<u64> {
        let regions = code_regions(pid);
        let mut hot: Vec<(u64, u32)> = self.instructions.iter().map(|(&ip, &samples)| (ip, samples)).collect();
        hot.sort_by_key(|&(ip, samples)| (std::cmp::Reverse(samples), ip));
        let mut decoded: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut lists = Vec::new();
        for (ip, _) in hot {
            // Places that lie close have the same code around them.
            let stretch = ip / AROUND_BYTES;
            let leaders =
                decoded.entry(stretch).or_insert_with(|| leaders_around(pid, &regions, ip).unwrap_or_default());
            let mut near = leaders.clone();
            near.sort_by_key(|leader| leader.abs_diff(ip));
            lists.push(near);
        }
        in_turns(&lists)
    }
}

/// The first of each list, then the second of each, none twice.
fn in_turns(lists: &[Vec<u64>]) -> Vec<u64> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut taken = BTreeSet::new();
    let all = (0..longest).flat_map(|at| lists.iter().filter_map(move |list| list.get(at).copied()));
    all.filter(|&place| taken.insert(place)).collect()
}

/// Mapped code of a process.
fn code_regions(pid: u32) -> Vec<Region> {
    let text = Process::of(pid).maps_text().unwrap_or_default();
    parse_maps(&text).into_iter().filter(|region| region.prot & 4 != 0).collect()
}

/// Where straight runs of instructions begin in the code around `ip`.
fn leaders_around(pid: u32, regions: &[Region], ip: u64) -> Option<Vec<u64>> {
    let region = regions.iter().find(|region| (region.start..region.start + region.bytes()).contains(&ip))?;
    let start = ip.saturating_sub(AROUND_BYTES).max(region.start);
    let end = ip.saturating_add(AROUND_BYTES).min(region.start + region.bytes());
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    let read = memory::read(pid, start, &mut bytes);
    bytes.truncate(read);
    // Decoded from a place that need not be the beginning of an instruction, it falls into step soon. A place that is
    // none is never passed.
    Some(DecodedCode::function(&bytes, start).leaders())
}

/// How often a thread passes each of these places in a second of its CPU time, by so much of it. Places that can't be
/// watched are left out.
fn rates(thread: u32, places: &[u64], long: Duration) -> Result<Vec<(u64, f64)>, CaptureError> {
    let mut watched = Vec::new();
    for &place in places {
        let counter = match PerfCounter::of_instruction(place, thread, DISABLED) {
            Ok(counter) => counter,
            // Others use the registers too: those that are left are enough.
            Err(_) if !watched.is_empty() => continue,
            Err(e) => return Err(refused(&e)),
        };
        if counter.count_up_to(TRY_TIMES).is_ok() {
            watched.push((place, counter));
        }
    }
    let until = Instant::now() + PATIENCE * long;
    loop {
        std::thread::sleep(LOOK);
        let counts: Vec<_> =
            watched.iter_mut().filter_map(|(place, counter)| Some((*place, counter.read().ok()?))).collect();
        let is_over = |count: &lookaside_host::perf::PerfCount| {
            count.value >= u64::from(TRY_TIMES) || count.running_ns >= long.as_nanos() as u64
        };
        if Instant::now() >= until || counts.iter().all(|(_, count)| is_over(count)) {
            let rate =
                |count: lookaside_host::perf::PerfCount| count.value as f64 * 1e9 / count.running_ns.max(1) as f64;
            return Ok(counts.into_iter().map(|(place, count)| (place, rate(count))).collect());
        }
    }
}

fn refused(error: &std::io::Error) -> CaptureError {
    let reason = format!("the kernel gives no hardware breakpoint ({error})");
    CaptureError::Backend { backend: "sample", reason }
}

/// The name of the code there.
fn name_of(pid: u32, address: u64) -> String {
    Symbols::of_process(pid).unwrap_or_default().resolve(pid, address).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn places_are_tried_in_turns_and_once() {
        assert_eq!(in_turns(&[vec![1, 2, 3], vec![4, 2], vec![]]), [1, 4, 2, 3]);
        assert!(off_best(500.0) < off_best(400.0) && off_best(400.0) < off_best(5000.0));
    }

    /// A loop of some milliseconds within a loop without end: the outer one is found, and how often it comes is known.
    #[test]
    fn an_outer_loop_is_found_and_its_rate_is_right() {
        let (ended, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, count) = (Arc::clone(&ended), Arc::clone(&rounds));
        let worker = std::thread::spawn(move || {
            let mut sum = 0u64;
            while !stop.load(Ordering::Relaxed) {
                for i in 0..1_000_000u64 {
                    sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
            sum
        });
        let found = find_progress_mark(std::process::id(), Duration::from_secs(8), &|| false);
        ended.store(true, Ordering::Relaxed);
        worker.join().expect("it ends");
        match found {
            Ok(mark) => {
                let mark = mark.expect("the outer loop");
                assert!((LEAST_PER_SECOND..=MOST_PER_SECOND).contains(&mark.per_cpu_second), "{mark:?}");
                assert!(!mark.name.is_empty() && mark.address != 0);
            }
            Err(e) => {
                let said = e.to_string();
                assert!(said.contains("breakpoint") || said.contains("perf_event_open"), "{said}");
            }
        }
        assert!(rounds.load(Ordering::Relaxed) > 0);
    }
}
