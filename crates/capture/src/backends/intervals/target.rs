//! A process of which intervals are recorded.

use std::path::PathBuf;
use std::time::Duration;

use libc::pid_t;
use lookaside_host::Process;
use lookaside_trace::{Event, MapSource, MemoryMap, Region};

use super::area::{AREA_BYTES, PAGE};
use super::follow::{follow, FollowLog, IntervalEnd};
use super::landmark::{BlockTimes, Landmark};
use super::message::IntervalNews;
use super::snapshot_process::{CopiedRegion, SnapshotProcess};
use super::stopped_thread::{NoCopy, StoppedThread};
use super::translator::Translator;
use crate::backends::read_memory;

/// Where the area is looked room for, from here on upwards: far from where programs, libraries, heaps and stacks are.
const ROOM: u64 = 0x1000_0000_0000;
/// User addresses end below.
const ROOM_END: u64 = 0x7000_0000_0000;

/// What an interval came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) instructions: u64,
    pub(super) end: IntervalEnd,
    /// For how long the program's thread stood still.
    pub(super) stood: Duration,
    /// What tells the thread's speed, if that was wanted.
    pub(super) landmark: Option<Landmark>,
}

/// What an interval shall be.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalOrder {
    /// Instructions, at most, and those of them that warm the model up.
    pub(super) instructions: u64,
    pub(super) warm_up: u64,
    /// CPU time of the program when it begins.
    pub(super) cpu_ns: u64,
    /// It shall have a landmark.
    pub(super) wants_landmark: bool,
}

/// A process, and what is known of its code.
#[derive(Debug)]
pub(super) struct TargetProcess {
    pid: u32,
    is_our_child: bool,
    executable: Option<PathBuf>,
    translator: Option<Translator>,
    map: MemoryMap,
    /// A copy that has ended, of which the process has not taken note.
    ended: Option<pid_t>,
    /// The address of an instruction that makes a system call, and of what that is a part.
    call: Option<(u64, Region)>,
}

/// Takes what is told of an interval; `false`: nobody wants more.
pub(super) type Tell<'a> = dyn FnMut(IntervalNews) -> bool + 'a;

impl TargetProcess {
    pub(super) fn new(pid: u32, is_our_child: bool) -> Self {
        Self {
            pid,
            is_our_child,
            executable: None,
            translator: None,
            map: MemoryMap::default(),
            ended: None,
            call: None,
        }
    }

    /// Records an interval of one of its threads.
    ///
    /// # Errors
    /// No copy can be made of it, now or ever.
    pub(super) fn interval(&mut self, thread: u32, order: IntervalOrder, tell: &mut Tell) -> Result<Interval, NoCopy> {
        let process = Process::of(self.pid);
        let status = process.status().map_err(|_| NoCopy::NotNow)?;
        if status.value("Seccomp").is_some_and(|mode| mode != "0") {
            return Err(NoCopy::Never("its system calls are filtered (seccomp): calls of ours could end it".into()));
        }
        // Huge pages that are copied on a write become small ones. To look takes long: the process runs meanwhile.
        let holds = process.smaps_rollup().is_ok_and(|all| all.anonymous_huge_bytes > 0);
        let stopped =
            StoppedThread::stop(thread as pid_t, self.is_our_child && thread == self.pid).map_err(|error| {
                // The kernel refuses a thread that ends, too.
                match process.thread(thread).stat() {
                    Ok(stat) if !stat.has_ended() => error,
                    _ => NoCopy::NotNow,
                }
            })?;
        let text = process.maps_text().map_err(|_| NoCopy::NotNow)?;
        let regions = CopiedRegion::listed(&text);
        let call = self.call(&regions)?;
        let base = self.base(&regions)?;
        let (mut copy, mut stopped, mut stood) = stopped.copy(&mut self.ended, (call, &regions, base))?;
        let begin = std::time::Instant::now();
        let held = match holds {
            true => Some(stopped),
            false => {
                copy.calls = stopped.record_calls(self.pid)?;
                drop(stopped);
                None
            }
        };
        let mut events = self.begin(&process);
        events.extend(self.map.reconcile(regions.into_iter().map(|its| its.region).collect()));
        let thread_base = copy.registers.fs_base;
        let mut translator = self.translator.take().filter(|its| its.base() == base);
        if !translator.as_mut().is_some_and(|its| is_current(its, &copy)) {
            translator = None;
        }
        let is_new = translator.is_none();
        let mut translator = translator.unwrap_or_else(|| Translator::new(base));
        let IntervalOrder { instructions, warm_up, cpu_ns, wants_landmark } = order;
        let mut wanted = tell(IntervalNews::Begin { process: self.pid, thread, thread_base, cpu_ns, warm_up, is_new });
        wanted &= tell(IntervalNews::Events(events));
        let (pid, map) = (copy.tracee.0 as u32, &mut self.map);
        let mut log = TargetLog { pid, map, tell, base, wanted, times: wants_landmark.then(BlockTimes::default) };
        let followed = follow(&copy, &mut translator, instructions, &mut log);
        let landmark = log.times.and_then(|times| times.landmark(&|number| translator.code_range(number)));
        self.translator = Some(translator);
        drop(copy);
        if held.is_some() {
            stood += begin.elapsed();
        }
        let (instructions, end) = followed?;
        Ok(Interval { instructions, end, stood, landmark })
    }

    /// The last copy that was made of it.
    pub(super) fn ended(&self) -> Option<u32> {
        self.ended.map(|copy| copy as u32)
    }

    /// Has a thread of it take note of the end of the last copy, so that no trace of that stays.
    pub(super) fn let_go(&mut self, thread: u32) {
        let (Some(ended), Some((call, _))) = (self.ended, &self.call) else { return };
        if let Ok(stopped) = StoppedThread::stop(thread as pid_t, self.is_our_child && thread == self.pid) {
            let _ = stopped.take_note_of(ended, *call);
            self.ended = None;
        }
    }

    /// What it runs, where that is news.
    fn begin(&mut self, process: &Process) -> Vec<Event> {
        // It may have ended since it was copied: then the copy runs what the last one did.
        let Some(executable) = process.exe().ok().filter(|its| self.executable.as_ref() != Some(its)) else {
            return Vec::new();
        };
        let path = executable.to_string_lossy().into_owned();
        self.executable = Some(executable);
        self.map.clear();
        vec![Event::Exec { path }]
    }

    /// The address of an instruction that makes a system call: the kernel's own page of code for programs has one.
    fn call(&mut self, regions: &[CopiedRegion]) -> Result<u64, NoCopy> {
        let none = || NoCopy::Never("its memory has no [vdso], through which the recorder makes system calls".into());
        let is_vdso = |source: &MapSource| matches!(source, MapSource::File { path, .. } if path == "[vdso]");
        let vdso = regions.iter().map(|its| &its.region).find(|region| is_vdso(&region.source)).ok_or_else(none)?;
        if let Some((call, region)) = &self.call {
            if region == vdso {
                return Ok(*call);
            }
        }
        let mut code = vec![0; vdso.bytes() as usize];
        let len = read_memory(self.pid, vdso.start, &mut code);
        let at = code[..len].windows(2).position(|two| two == [0x0f, 0x05]).ok_or_else(none)?;
        let call = vdso.start + at as u64;
        self.call = Some((call, vdso.clone()));
        Ok(call)
    }

    /// An address at which there is room for the area: where it was before, if there still is.
    fn base(&self, regions: &[CopiedRegion]) -> Result<u64, NoCopy> {
        let is_free = |base: u64| {
            let end = base + u64::from(AREA_BYTES);
            !regions.iter().any(|its| its.region.start < end + PAGE && base < its.region.end + PAGE)
        };
        let last = self.translator.as_ref().map(Translator::base);
        let behind = regions.iter().map(|its| its.region.end.next_multiple_of(1 << 21) + (1 << 21));
        let places = last.into_iter().chain([ROOM]).chain(behind.filter(|place| (ROOM..ROOM_END).contains(place)));
        let mut free = places.filter(|&place| is_free(place));
        free.next().ok_or_else(|| NoCopy::Never("its memory has no room for the recorder's own".into()))
    }
}

/// The code is what it was when it was translated.
fn is_current(translator: &Translator, copy: &SnapshotProcess) -> bool {
    let mut bytes = [0; PAGE as usize];
    translator.pages().all(|(page, sum)| {
        let len = read_memory(copy.tracee.0 as u32, page, &mut bytes);
        crc32fast::hash(&bytes[..len]) == sum
    })
}

/// Tells what a snapshot does.
struct TargetLog<'a, 'b> {
    pid: u32,
    map: &'a mut MemoryMap,
    tell: &'a mut Tell<'b>,
    base: u64,
    wanted: bool,
    /// Where a landmark is wanted.
    times: Option<BlockTimes>,
}

impl FollowLog for TargetLog<'_, '_> {
    fn plans(&mut self, plans: Vec<super::block_plan::BlockPlan>) {
        self.wanted &= (self.tell)(IntervalNews::Plans(plans));
    }

    fn words(&mut self, words: Vec<u64>) -> bool {
        self.wanted = self.wanted && (self.tell)(IntervalNews::Words(words));
        self.wanted
    }

    fn maps(&mut self) {
        let Ok(text) = Process::of(self.pid).maps_text() else { return };
        let ours = self.base..self.base + u64::from(AREA_BYTES);
        let mut regions: Vec<Region> = CopiedRegion::listed(&text).into_iter().map(|its| its.region).collect();
        regions.retain(|region| !ours.contains(&region.start));
        let events = self.map.reconcile(regions);
        if !events.is_empty() {
            self.wanted &= (self.tell)(IntervalNews::Events(events));
        }
    }

    fn executed(&mut self, number: usize, instructions: u32) {
        if let Some(times) = &mut self.times {
            times.executed(number, instructions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_has_executed_no_other_program() {
        let own = Process::own();
        let mut target = TargetProcess::new(std::process::id(), false);
        assert!(matches!(&target.begin(&own)[..], [Event::Exec { path }] if !path.is_empty()));
        assert_eq!(target.begin(&own), []);
        // Above the largest number that Linux gives (2^22).
        assert_eq!(target.begin(&Process::of(5_000_000)), []);
        assert_eq!(target.begin(&own), []);
    }
}
