//! The loop on a made-up machine, whose clock goes on by what the loop does.

use super::super::cpu_demand::CpuCounts;
use super::super::settings::Hint;
use super::*;

/// Nanoseconds of a call of the kernel.
const CALL_NANOS: u64 = 20_000;
const MIB: u64 = 1 << 20;

/// The made-up machine's calls.
#[derive(Debug, Default)]
struct FakeCalls {
    now: u64,
    cpu: u64,
    let_in: u32,
    yielded: u32,
    /// Time that others have the CPU at each of those.
    yield_nanos: u64,
    /// CPU time that each of these takes.
    let_in_nanos: u64,
    /// Ranges that calls were made for.
    called: Vec<AddressRange>,
    errno: Option<i32>,
}

impl FakeCalls {
    fn call(&mut self, range: AddressRange) -> Result<(), i32> {
        self.now += CALL_NANOS;
        self.cpu += CALL_NANOS;
        self.called.push(range);
        self.errno.map_or(Ok(()), Err)
    }
}

impl HelperCalls for FakeCalls {
    fn now_nanos(&self) -> u64 {
        self.now
    }

    fn cpu_nanos(&self) -> u64 {
        self.cpu
    }

    fn scan(&mut self, range: AddressRange) -> Result<(), i32> {
        self.call(range)
    }

    fn mincore(&mut self, range: AddressRange) -> Result<(), i32> {
        self.call(range)
    }

    /// A call that comes as far as 4 MiB, one entry for each stride.
    fn walk(&mut self, range: AddressRange, stride_pages: u32, _nops: u32) -> Result<Walk, i32> {
        self.call(range)?;
        let next = range.end.min(range.start + 4 * MIB);
        let touched = (next - range.start) / PAGE_BYTES / u64::from(stride_pages);
        Ok(Walk { next, touched, ..Walk::default() })
    }

    fn let_others_in(&mut self) {
        self.let_in += 1;
        self.now += self.let_in_nanos;
        self.cpu += self.let_in_nanos;
    }

    fn yield_cpu(&mut self) {
        self.yielded += 1;
        self.now += CALL_NANOS + self.yield_nanos;
        self.cpu += CALL_NANOS;
    }
}

/// A made-up program.
#[derive(Debug)]
struct FakeHost {
    calls: FakeCalls,
    memory: Vec<AddressRange>,
    share: f64,
    slept: Vec<u64>,
    /// Stops when so many sleeps were made.
    sleeps_left: usize,
    failed: Vec<i32>,
    published_at_once: u32,
    changed: bool,
}

impl FakeHost {
    fn new(memory: &[(u64, u64)]) -> Self {
        Self {
            calls: FakeCalls::default(),
            memory: memory.iter().map(|&(start, end)| AddressRange { start, end }).collect(),
            share: 1.0,
            slept: Vec::new(),
            sleeps_left: usize::MAX,
            failed: Vec::new(),
            published_at_once: 0,
            changed: false,
        }
    }
}

// SAFETY: no test has loads.
unsafe impl HelperHost for FakeHost {
    type Calls = FakeCalls;
    type Stop = &'static str;

    fn calls(&mut self) -> &mut FakeCalls {
        &mut self.calls
    }

    fn cpu_demand(&mut self) -> CpuDemand {
        CpuDemand { program_nanos: self.calls.now, runnable: Some(1) }
    }

    fn cpu_share(&self) -> f64 {
        self.share
    }

    fn sleep(&mut self, nanos: u64) -> Result<(), &'static str> {
        self.slept.push(nanos);
        self.calls.now += nanos;
        self.sleeps_left = self.sleeps_left.checked_sub(1).ok_or("stopped")?;
        Ok(())
    }

    fn memory_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn look(&mut self) -> Result<SmallPages, &'static str> {
        let small_bytes = self.memory.iter().map(|range| range.end - range.start).sum();
        Ok(SmallPages { ranges: self.memory.len(), small_bytes, digest: small_bytes })
    }

    fn with_range<T>(
        &mut self,
        from: u64,
        touch: impl FnOnce(&mut FakeCalls, AddressRange) -> T,
    ) -> Result<RoundStep<T>, &'static str> {
        if self.memory.is_empty() {
            return Ok(RoundStep::NoMemory);
        }
        let next = self.memory.iter().find(|range| range.end > from).copied();
        Ok(match next {
            Some(AddressRange { start, end }) => {
                RoundStep::Touched(touch(&mut self.calls, AddressRange { start: start.max(from), end }))
            }
            None => RoundStep::Complete,
        })
    }

    fn call_failed(&mut self, errno: i32) {
        self.failed.push(errno);
    }

    fn publish(&mut self, _now_nanos: u64, at_once: bool) {
        self.published_at_once += u32::from(at_once);
    }
}

fn settings(text: &str) -> Settings {
    text.parse().expect("settings")
}

fn read(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[test]
fn a_round_goes_through_all_memory_in_chunks() {
    let (settings, counters) = (settings("scan,sleep=3ms"), HelperCounters::default());
    let host = FakeHost::new(&[(0, 40 * MIB), (64 * MIB, 65 * MIB)]);
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, None);
    helper.turn().expect("a turn");
    let called: Vec<_> = helper.host.calls.called.iter().map(|range| (range.start / MIB, range.end / MIB)).collect();
    assert_eq!(called, [(0, 16), (16, 32), (32, 40), (64, 65)]);
    assert_eq!((read(&counters.rounds), read(&counters.touches)), (1, 41 * MIB / PAGE_BYTES));
    assert_eq!((read(&counters.busy_nanos), read(&counters.cpu_nanos)), (4 * CALL_NANOS, 4 * CALL_NANOS));
    assert_eq!((helper.host.calls.let_in, &helper.host.slept), (4, &vec![3_000_000]));
    assert_eq!(helper.host.calls.yielded, 0, "it slept");
    assert_eq!((counters.state(), read(&counters.pause_nanos)), (HelperState::Baking, 3_000_000));
}

#[test]
fn prefetches_go_by_strides_and_not_beyond_a_range() {
    let backend = BakeBackend::Prefetch(Hint::T0);
    let (settings, counters) = (settings("prefetch,stride=8"), HelperCounters::default());
    // The first range ends within a stride, where the second begins.
    let host = FakeHost::new(&[(0, 8193 * PAGE_BYTES), (8193 * PAGE_BYTES, 8194 * PAGE_BYTES)]);
    let mut helper = HelperLoop::new(host, &settings, &counters, backend, None, None);
    helper.turn().expect("a turn");
    assert_eq!((read(&counters.rounds), read(&counters.touches)), (1, 1025 + 1));
    assert!(helper.host.calls.called.is_empty() && helper.host.slept.is_empty());
    // Three chunks of up to 512 touches in the first range, and the second range.
    assert_eq!((helper.host.calls.yielded, helper.host.calls.let_in), (4, 0));
}

#[test]
fn the_module_says_how_far_it_came() {
    let (settings, counters) = (settings("module,stride=4"), HelperCounters::default());
    let host = FakeHost::new(&[(0, 10 * MIB)]);
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, None);
    helper.turn().expect("a turn");
    assert_eq!(helper.host.calls.called.iter().map(|range| range.start / MIB).collect::<Vec<_>>(), [0, 4, 8]);
    assert_eq!((read(&counters.touches), helper.host.calls.let_in), (10 * MIB / PAGE_BYTES / 4, 0));
    assert_eq!(helper.host.calls.yielded, 0, "the call lets them run by itself");
    assert_eq!(counters.backend(BakeBackend::Scan), BakeBackend::Module);
}

#[test]
fn failed_calls_are_counted_and_end_no_round() {
    for (text, touches) in [("scan", 0), ("module", 0), ("mincore", 5 * MIB / PAGE_BYTES)] {
        let (settings, counters) = (settings(text), HelperCounters::default());
        let mut host = FakeHost::new(&[(0, 4 * MIB), (32 * MIB, 33 * MIB)]);
        host.calls.errno = Some(libc::ENOMEM);
        let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, None);
        helper.turn().expect("a turn");
        assert_eq!((read(&counters.rounds), read(&counters.touches)), (1, touches), "{text}");
        assert_eq!((&helper.host.failed[..], helper.host.calls.let_in), (&[libc::ENOMEM; 2][..], 2), "{text}");
    }
}

/// The calls cost CPU time beside the touches: nine tenths as much, here.
#[test]
fn all_that_the_helper_does_stays_within_its_share_of_a_cpu() {
    let (settings, counters) = (settings("scan"), HelperCounters::default());
    let mut host = FakeHost { share: 0.25, ..FakeHost::new(&[(0, 4096 * MIB)]) };
    host.calls.let_in_nanos = CALL_NANOS * 9 / 10;
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, None);
    helper.turn().expect("a turn");
    let (cpu, slept) = (read(&counters.cpu_nanos), helper.host.slept.iter().sum::<u64>());
    assert_eq!((read(&counters.busy_nanos), cpu), (256 * CALL_NANOS, 256 * CALL_NANOS * 19 / 10));
    assert!(slept > 3 * cpu - SHORTEST_PAUSE_NANOS && slept <= 3 * cpu, "{slept} of {cpu}");
    assert!(helper.host.slept.iter().all(|&nanos| nanos >= SHORTEST_PAUSE_NANOS));
}

#[test]
fn it_rests_while_others_want_its_cpu() {
    let rests = |text: &str, yield_nanos, turns| {
        let (settings, counters) = (settings(text), HelperCounters::default());
        let mut host = FakeHost::new(&[(0, 8 * MIB)]);
        host.calls.yield_nanos = yield_nanos;
        let auto =
            settings.auto.then(|| Auto::new(ClockReading::default(), u64::MAX, CpuCounts { allowed: 2, online: 2 }));
        let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, auto, None);
        (0..turns).for_each(|_| helper.turn().expect("a turn"));
        let slept = helper.host.slept.iter().map(|nanos| (nanos + 500_000) / 1_000_000).filter(|&millis| millis > 2);
        (slept.collect::<Vec<_>>(), helper.host.published_at_once, read(&counters.rounds))
    };
    // Twice as long each time, in sleeps that keep the status file fresh; it says so before and after.
    for text in ["prefetch,stride=1", "auto"] {
        assert_eq!(rests(text, 4_000_000, 9), (vec![50, 100, 200, 200, 200], 8, 4), "{text}");
    }
    // Others have a fifth of its CPU.
    assert_eq!(rests("prefetch,stride=1", CALL_NANOS / 4, 400), (vec![], 1, 400));
}

#[test]
fn it_looks_while_it_rests() {
    let (settings, counters) = (settings("prefetch"), HelperCounters::default());
    let host = FakeHost::new(&[(0, MIB)]);
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, Some(LookSchedule::new(0)));
    helper.small_pages.small_bytes = MIB;
    helper.rest_until = 1_600_000_000;
    while read(&counters.rounds) == 0 {
        helper.turn().expect("a turn");
    }
    assert!(read(&counters.looks) > 2 && helper.host.slept.iter().all(|&nanos| nanos <= STATUS_NANOS));
    assert!(helper.host.slept.iter().sum::<u64>() >= 1_600_000_000);
}

#[test]
fn it_looks_until_there_is_something_and_bakes_what_it_found() {
    let (settings, counters) = (settings("scan"), HelperCounters::default());
    let host = FakeHost::new(&[]);
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, Some(LookSchedule::new(0)));
    helper.turn().expect("a turn");
    assert_eq!((counters.state(), read(&counters.looks), read(&counters.rounds)), (HelperState::Looking, 1, 0));
    // It sleeps no longer than until the status file is due, and a look is not made before its time.
    assert_eq!(helper.host.slept, [STATUS_NANOS]);
    helper.host.memory = vec![AddressRange { start: 0, end: 8 * MIB }];
    helper.host.changed = true;
    helper.turn().expect("a turn");
    assert_eq!((counters.state(), read(&counters.looks), read(&counters.rounds)), (HelperState::Baking, 2, 1));
    assert_eq!((read(&counters.ranges), read(&counters.most_small_bytes)), (1, 8 * MIB));
    assert_eq!(helper.host.published_at_once, 1, "the state changed once, from looking to baking");
    helper.turn().expect("a turn");
    assert_eq!((read(&counters.looks), read(&counters.rounds)), (2, 2));
}

#[test]
fn memory_that_is_gone_makes_no_round() {
    let (settings, counters) = (settings("scan"), HelperCounters::default());
    let mut helper = HelperLoop::new(FakeHost::new(&[]), &settings, &counters, settings.backend, None, None);
    helper.turn().expect("a turn");
    assert_eq!(read(&counters.rounds), 0);
}

#[test]
fn a_stop_ends_it_in_the_midst_of_a_round() {
    let (settings, counters) = (settings("scan"), HelperCounters::default());
    let host = FakeHost { share: 0.01, sleeps_left: 2, ..FakeHost::new(&[(0, 4096 * MIB)]) };
    let mut helper = HelperLoop::new(host, &settings, &counters, settings.backend, None, None);
    assert_eq!(helper.turn(), Err("stopped"));
    assert_eq!((read(&counters.rounds), helper.host.slept.len()), (0, 3));
}

#[test]
fn auto_rests_where_the_tables_do_not_fit() {
    let (settings, counters) = (settings("auto"), HelperCounters::default());
    let host = FakeHost::new(&[(0, 64 * MIB)]);
    let auto = Auto::new(ClockReading::default(), 1 << 10, CpuCounts { allowed: 2, online: 2 });
    let mut helper =
        HelperLoop::new(host, &settings, &counters, settings.backend, Some(auto), Some(LookSchedule::new(0)));
    helper.turn().expect("a turn");
    assert_eq!((counters.state(), read(&counters.rounds)), (HelperState::TooLarge, 0));
    assert_eq!(helper.host.slept, [STATUS_NANOS]);
}
