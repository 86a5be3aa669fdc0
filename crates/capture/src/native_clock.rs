//! One run of a program by itself: its CPU time, its page faults, and where its user time went, by the clock sampler.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use lookaside_timing::{CodePlace, NativeClock, SampledPlace, ThreadsAtATime};
use lookaside_trace::Block;

use crate::backends::{prepare_child, start_sampling, ChildSetup};
use crate::{CaptureError, ChildEnd, ProgramControl, RecordRequest, RecordTarget, Recording, Symbols};

/// Samples a second of each thread's CPU time: well below the 2 % that the native run may be slower. 1,000 cost 1.6 %
/// on one machine, and 2.0 % on another (docs/results/sampling.md).
const SAMPLE_HZ: u32 = 400;

/// Samples of a tenth of a second of CPU time: many turns of a thread, each a few milliseconds in Linux.
const STRETCH_SAMPLES: u64 = SAMPLE_HZ as u64 / 10;

/// What a native run gave.
#[derive(Clone, Debug)]
pub struct NativeRun {
    /// Its times, and where its user time went.
    pub clock: NativeClock,
    /// How it ended.
    pub end: ChildEnd,
    /// Why there are no samples; `None` = there are, or could have been.
    pub unsampled: Option<String>,
}

/// Runs the program with small pages; it reads `input` (nothing, if `None`) and its output is thrown away. `started` is
/// given what stops it. Where the clock can't be sampled it is timed all the same.
///
/// # Errors
/// The program can't be started or waited for.
pub fn native_run(
    command: &[OsString],
    input: Option<File>,
    started: &mut dyn FnMut(Arc<dyn ProgramControl>),
) -> Result<NativeRun, CaptureError> {
    let again = input.as_ref().map(File::try_clone).transpose();
    let again = again.map_err(|source| CaptureError::Io { what: "the program's input".into(), source })?;
    let before = Usage::of_children();
    let began = Instant::now();
    let (end, seen, unsampled) = match sampled(command, input, started) {
        Ok((end, seen)) => (end, seen, None),
        Err(CaptureError::Backend { reason, .. }) => (unsampled_run(command, again)?, Samples::default(), Some(reason)),
        Err(e) => return Err(e),
    };
    let wall_seconds = began.elapsed().as_secs_f64();
    let used = Usage::of_children().since(&before);
    let samples = seen.places.values().sum();
    let mut places: Vec<SampledPlace> =
        seen.places.into_iter().map(|(place, samples)| SampledPlace { place, samples }).collect();
    places.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.place.cmp(&b.place)));
    let clock = NativeClock {
        user_seconds: used.user_seconds,
        system_seconds: used.system_seconds,
        wall_seconds,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        switches: used.switches,
        threads_at_a_time: seen.threads.mean(),
        samples,
        period_ns: 1_000_000_000 / u64::from(SAMPLE_HZ),
        places,
    };
    Ok(NativeRun { clock, end, unsampled })
}

/// What the samples say.
#[derive(Default)]
struct Samples {
    /// Samples by instruction.
    places: BTreeMap<CodePlace, u64>,
    threads: ThreadsAtATime,
}

fn sampled(
    command: &[OsString],
    input: Option<File>,
    started: &mut dyn FnMut(Arc<dyn ProgramControl>),
) -> Result<(ChildEnd, Samples), CaptureError> {
    let request = RecordRequest::sampling(RecordTarget::Command(command.to_vec()), SAMPLE_HZ);
    let Recording { mut source, control, .. } = start_sampling(&request, ChildSetup::Aside(input))?;
    let control: Arc<dyn ProgramControl> = Arc::from(control);
    started(Arc::clone(&control));
    let mut symbols = Symbols::new();
    let mut seen = Samples::default();
    let mut block = Block::default();
    // An error ends the samples, not the run.
    while source.next_block(&mut block).unwrap_or(false) {
        let mut events = block.events.iter().peekable();
        for at in 0..=block.len() {
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= at) {
                symbols.observe(block.process, event);
            }
            if let Some(&ip) = block.ip.get(at) {
                *seen.places.entry(symbols.place(block.process, ip)).or_default() += 1;
                seen.threads.sample((block.process, block.thread), STRETCH_SAMPLES);
            }
        }
    }
    Ok((control.wait()?, seen))
}

/// The run where the clock can't be sampled.
fn unsampled_run(command: &[OsString], input: Option<File>) -> Result<ChildEnd, CaptureError> {
    use std::os::unix::process::ExitStatusExt;
    let mut child = prepare_child(command, ChildSetup::Aside(input))?.run()?;
    let status = child.wait().map_err(|source| CaptureError::Io { what: "waiting for the program".into(), source })?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => ChildEnd::Code(code),
        (None, signal) => ChildEnd::Signal(signal.unwrap_or(0)),
    })
}

/// What children that were waited for have used.
struct Usage {
    user_seconds: f64,
    system_seconds: f64,
    minor_faults: u64,
    major_faults: u64,
    switches: u64,
}

impl Usage {
    fn of_children() -> Self {
        // SAFETY: a struct of numbers, for which zeros are valid; the call writes to it alone.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
            usage
        };
        Self::of(&usage)
    }

    fn of(usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            user_seconds: self.user_seconds - before.user_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            switches: self.switches - before.switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_run_is_timed_and_sampled() {
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(b"7\n").unwrap();
        input.rewind().unwrap();
        let script = "read code; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit $code";
        let run = native_run(&words(&["sh", "-c", script]), Some(input), &mut |_| ()).unwrap();
        assert_eq!(run.end, ChildEnd::Code(7));
        let clock = &run.clock;
        assert_eq!(clock.period_ns, 2_500_000);
        assert!(clock.user_seconds > 0.0 && clock.wall_seconds > 0.0 && clock.minor_faults > 10, "{clock:?}");
        match &run.unsampled {
            None => {
                assert!(clock.samples > 0 && clock.places.iter().any(|at| at.place.file.contains('/')), "{clock:?}");
                assert_eq!(clock.samples, clock.places.iter().map(|at| at.samples).sum::<u64>());
            }
            Some(why) => assert!(clock.samples == 0 && !why.is_empty()),
        }
    }

    /// Four processes at once, on however many CPUs, are told from one after the other. A machine that is held up may
    /// not let the four begin before the first has ended: it is tried again.
    #[test]
    fn who_takes_turns_is_seen() {
        let work = "(i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done)";
        let clock = |script: String| native_run(&words(&["sh", "-c", &script]), None, &mut |_| ()).unwrap();
        let mut seen = Vec::new();
        for _ in 0..6 {
            let at_once = clock(format!("{work} & {work} & {work} & {work} & wait"));
            let in_turn = clock(format!("{work}; {work}; {work}; {work}"));
            assert!(at_once.clock.switches > 3, "{:?}", at_once.clock);
            if at_once.unsampled.is_some() {
                return;
            }
            seen.push([at_once, in_turn].map(|run| run.clock.threads_at_a_time));
            if seen.iter().any(|[together, alone]| together - alone > 0.5) {
                return;
            }
        }
        panic!("four at once, and one: {seen:?}");
    }

    #[test]
    fn what_a_run_used_is_what_was_used_more_after_it() {
        let time = |tv_sec, tv_usec| libc::timeval { tv_sec, tv_usec };
        // SAFETY: a struct of numbers, for which zeros are valid.
        let mut before: libc::rusage = unsafe { std::mem::zeroed() };
        let mut after = before;
        (before.ru_utime, before.ru_stime) = (time(3, 250_000), time(1, 500_000));
        (after.ru_utime, after.ru_stime) = (time(5, 0), time(1, 750_000));
        (before.ru_minflt, before.ru_majflt, before.ru_nvcsw, before.ru_nivcsw) = (100, 7, 20, 30);
        (after.ru_minflt, after.ru_majflt, after.ru_nvcsw, after.ru_nivcsw) = (110, 9, 21, 33);
        let used = Usage::of(&after).since(&Usage::of(&before));
        assert_eq!((used.user_seconds, used.system_seconds), (1.75, 0.25));
        assert_eq!((used.minor_faults, used.major_faults, used.switches), (10, 2, 4));
    }

    #[test]
    fn without_input_it_reads_nothing() {
        let run = native_run(&words(&["sh", "-c", "read line && exit 1; kill -9 $$"]), None, &mut |_| ()).unwrap();
        assert_eq!(run.end, ChildEnd::Signal(9));
        assert!(native_run(&words(&["/nonexistent/program"]), None, &mut |_| ()).is_err());
    }
}
