//! Compartments of this process, by protection keys, as participants: one thread enters them one after the other. A
//! switch is then a leave and an enter, of which the scheduler knows nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lookaside_runtime::domains::{self, Compartment, CompartmentAccess, DomainsError, PAGE_BYTES};
use lookaside_stats::SplitMix64;
use rustix::mm::{madvise, Advice};

use super::error::Early;
use super::memory::fill;
use super::options::SwitchOptions;
use super::plan::{AreaLayout, Benchmark, PageKind};
use super::ring::{chain, lines, own_switches, place_in_area, LapTimes, TurnWork};

/// How often it is looked after whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Why there are none here; `None`: there are.
pub(super) fn refusal() -> Option<String> {
    let tried = domains::create(PAGE_BYTES).and_then(domains::destroy);
    tried.err().map(|error| error.to_string())
}

/// Whose memory a turn reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMemory {
    /// That of lat_ctx, each its own.
    LatCtx,
    /// That of extreme, each its own.
    Own,
    /// That of extreme, the same for all: a compartment's that shares it with those that are entered.
    Common,
}

/// What is measured: so many compartments in turns; one alone is never left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompartmentTurns {
    pub whose: ReadMemory,
    pub participants: usize,
    pub work: TurnWork,
    /// What is measured takes so long, about; what does not count before it, half as long to as long.
    pub window: Duration,
}

/// What came of it, and what happened to keys meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompartmentTimes {
    pub timed: LapTimes,
    pub recycled: u64,
    pub protect_calls: u64,
}

/// A thread that has compartments, waiting.
#[derive(Debug)]
pub(super) struct Compartments {
    turns: Option<Sender<CompartmentTurns>>,
    found: Receiver<Result<CompartmentTimes, String>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Compartments {
    /// All that the options ask for, on this CPU.
    pub(super) fn new(options: &SwitchOptions, cpu: usize, round: u32) -> Result<Self, String> {
        let (turns, asked) = mpsc::channel();
        let (answer, found) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (options, is_over) = (options.clone(), Arc::clone(&stop));
        let serve = move || match CompartmentBench::new(&options, cpu, round) {
            Err(why) => drop(answer.send(Err(why))),
            Ok(rooms) => {
                // Nobody waits for it any more where sending fails.
                for turns in asked {
                    if answer.send(rooms.measure(&turns, &is_over)).is_err() {
                        break;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("lookaside-keys".into()).spawn(serve);
        let thread = thread.map_err(|error| format!("the thread of compartments cannot be started: {error}"))?;
        Ok(Self { turns: Some(turns), found, stop, thread: Some(thread) })
    }

    /// Measures.
    pub(super) fn measure(
        &mut self,
        turns: &CompartmentTurns,
        stop: &dyn Fn() -> bool,
    ) -> Result<CompartmentTimes, Early> {
        let ended = || Early::Failed("the thread of compartments ended by itself".into());
        // Where it has ended, why is among its answers.
        let sent = self.turns.as_ref().is_some_and(|to| to.send(*turns).is_ok());
        loop {
            match self.found.recv_timeout(LOOK) {
                Ok(found) => return found.map_err(Early::Failed),
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                Err(RecvTimeoutError::Timeout) if !sent => return Err(ended()),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(Early::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Compartments {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.turns = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // nothing in it panics
        }
    }
}

/// A compartment, and where what a turn reads begins: its own memory, or another's that it may read.
#[derive(Clone, Copy, Debug)]
struct EnteredCompartment {
    compartment: Compartment,
    start: usize,
}

/// The serving thread's. It is in none between measurements.
struct CompartmentBench {
    lat_ctx: Vec<EnteredCompartment>,
    own: Vec<EnteredCompartment>,
    common: Vec<EnteredCompartment>,
    /// Bytes that each has for lat_ctx.
    area: u64,
    made: Vec<Compartment>,
}

impl CompartmentBench {
    fn new(options: &SwitchOptions, cpu: usize, round: u32) -> Result<Self, String> {
        lookaside_host::bind_to(&[cpu]).map_err(|error| format!("CPU {cpu} cannot be had: {error}"))?;
        let layout = |benchmark| AreaLayout::of(options, benchmark, PageKind::Base);
        let (of_lat_ctx, of_extreme) = (layout(Benchmark::LatCtx), layout(Benchmark::Extreme));
        let mut random = SplitMix64::new(options.seed ^ u64::from(round).rotate_left(32) ^ 0x5eed);
        let area = of_lat_ctx.bytes_each;
        let mut rooms = Self { lat_ctx: Vec::new(), own: Vec::new(), common: Vec::new(), area, made: Vec::new() };
        let counts = &options.page_counts;
        let mut all = || -> Result<(), DomainsError> {
            for _ in 0..of_lat_ctx.areas {
                let room = rooms.room(area, &[], &mut random)?;
                rooms.lat_ctx.push(room);
            }
            for _ in 0..of_extreme.areas {
                let room = rooms.room(of_extreme.bytes_each, counts, &mut random)?;
                rooms.own.push(room);
            }
            let host = rooms.room(of_extreme.bytes_each, counts, &mut random)?;
            for _ in 0..of_extreme.areas {
                let guest = rooms.room(0, &[], &mut random)?.compartment;
                domains::share(host.compartment, guest, CompartmentAccess::Read)?;
                rooms.common.push(EnteredCompartment { compartment: guest, start: host.start });
            }
            Ok(())
        };
        all().map_err(|error| format!("compartments: {error}"))?;
        Ok(rooms)
    }

    /// A compartment of so many bytes, at least a page, in base pages, all of them touched.
    fn room(
        &mut self,
        bytes: u64,
        counts: &[u64],
        random: &mut SplitMix64,
    ) -> Result<EnteredCompartment, DomainsError> {
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).max(PAGE_BYTES);
        let compartment = domains::create(wanted)?;
        self.made.push(compartment);
        let (start, bytes) = domains::memory(compartment)?;
        // SAFETY: the compartment's own mapping. A kernel without huge pages refuses: then there are none.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxNoHugepage) };
        domains::enter(compartment)?;
        fill(bytes as u64, counts, random, &mut |at, word| {
            // SAFETY: within the compartment, which this thread is in.
            unsafe { start.add(at as usize).cast::<u32>().write_volatile(word) };
        });
        domains::leave(compartment)?;
        Ok(EnteredCompartment { compartment, start: start.expose_provenance() })
    }

    /// As the leader of a ring does it: what does not count warms up, and says how long a lap takes.
    fn measure(&self, turns: &CompartmentTurns, stop: &AtomicBool) -> Result<CompartmentTimes, String> {
        let rooms = match turns.whose {
            ReadMemory::LatCtx => &self.lat_ctx,
            ReadMemory::Own => &self.own,
            ReadMemory::Common => &self.common,
        };
        let rooms = rooms.get(..turns.participants).ok_or("fewer compartments than participants")?;
        let laps = |laps| self.laps(rooms, turns.work, laps, stop).map_err(|error| format!("compartments: {error}"));
        let window = turns.window.as_nanos() as u64;
        let mut tried = 1;
        let lap_ns = loop {
            let elapsed = laps(tried)?;
            if elapsed >= window / 4 || tried >= 1 << 40 || stop.load(Ordering::Relaxed) {
                break (elapsed / tried).max(1);
            }
            tried *= 2;
        };
        let wanted = (window / lap_ns).max(1);
        let (before, switches) = (domains::counts(), own_switches());
        let elapsed_ns = laps(wanted)?;
        let (after, [voluntary, involuntary]) = (domains::counts(), own_switches());
        Ok(CompartmentTimes {
            timed: LapTimes {
                laps: wanted,
                elapsed_ns,
                voluntary: voluntary.wrapping_sub(switches[0]),
                involuntary: involuntary.wrapping_sub(switches[1]),
            },
            recycled: after.recycled - before.recycled,
            protect_calls: after.protect_calls - before.protect_calls,
        })
    }

    /// Nanoseconds of so many laps; of fewer where it is to stop: nobody asks for them then.
    fn laps(
        &self,
        rooms: &[EnteredCompartment],
        work: TurnWork,
        laps: u64,
        stop: &AtomicBool,
    ) -> Result<u64, DomainsError> {
        let turn = |me: usize, room: &EnteredCompartment| match work {
            TurnWork::Lines(bytes) => {
                if let Some(at) = place_in_area(me as u64, self.area, bytes) {
                    lines(room.start + at as usize, bytes as usize);
                }
            }
            TurnWork::Chain(pages, column) => chain(room.start, pages, 4 * column as usize),
        };
        let alone = match rooms {
            [room] => Some(room),
            _ => None,
        };
        alone.map(|room| domains::enter(room.compartment)).transpose()?;
        let began = Instant::now();
        for _ in 0..laps {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if let Some(room) = alone {
                turn(0, room);
                continue;
            }
            for (me, room) in rooms.iter().enumerate() {
                domains::enter(room.compartment)?;
                turn(me, room);
                domains::leave(room.compartment)?;
            }
        }
        let elapsed = began.elapsed().as_nanos() as u64;
        alone.map(|room| domains::leave(room.compartment)).transpose()?;
        Ok(elapsed)
    }
}

impl Drop for CompartmentBench {
    fn drop(&mut self) {
        for compartment in self.made.drain(..) {
            // One that this thread could not leave stays, until the process ends.
            let _ = domains::destroy(compartment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SwitchOptions {
        SwitchOptions {
            participants: vec![2, 20],
            children: vec![2, 16],
            page_counts: vec![1, 16],
            kib: vec![0, 8],
            ..SwitchOptions::quick()
        }
    }

    fn cpu() -> usize {
        *lookaside_harness::cpus::allowed().last().expect("a CPU")
    }

    /// The process's keys are for one test at a time: with fewer, two compartments would take them from each other.
    fn all_keys() -> std::sync::MutexGuard<'static, ()> {
        static KEYS: std::sync::Mutex<()> = std::sync::Mutex::new(());
        KEYS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[test]
    fn compartments_take_turns_where_there_are_keys_and_say_why_where_there_are_none() {
        let _keys = all_keys();
        let mut all = Compartments::new(&options(), cpu(), 0).expect("a thread");
        let turns = |whose, participants, work| CompartmentTurns {
            whose,
            participants,
            work,
            window: Duration::from_millis(1),
        };
        if let Some(why) = refusal() {
            let refused = all.measure(&turns(ReadMemory::LatCtx, 2, TurnWork::Lines(0)), &|| false);
            assert!(
                matches!(&refused, Err(Early::Failed(said)) if *said == format!("compartments: {why}")),
                "{refused:?}"
            );
            return;
        }
        for (whose, participants, work) in [
            (ReadMemory::LatCtx, 2, TurnWork::Lines(8 << 10)),
            (ReadMemory::LatCtx, 20, TurnWork::Lines(0)),
            (ReadMemory::LatCtx, 1, TurnWork::Lines(8 << 10)),
            (ReadMemory::Own, 16, TurnWork::Chain(16, 1)),
            (ReadMemory::Common, 16, TurnWork::Chain(16, 1)),
            (ReadMemory::Common, 1, TurnWork::Chain(1, 0)),
        ] {
            let found = all.measure(&turns(whose, participants, work), &|| false).expect("measured");
            assert!(found.timed.laps > 0 && found.timed.elapsed_ns > 0, "{found:?}");
            // A ring of more than 15 takes a key from another again and again; one of two, and one alone, from nobody.
            assert_eq!(found.recycled > 0, participants >= 16, "{participants} {found:?}");
        }
        let too_many = all.measure(&turns(ReadMemory::Own, 17, TurnWork::Chain(1, 0)), &|| false);
        assert!(matches!(too_many, Err(Early::Failed(_))));
    }

    #[test]
    fn a_measurement_is_stopped_in_the_middle() {
        if refusal().is_some() {
            return;
        }
        let _keys = all_keys();
        let mut all = Compartments::new(&options(), cpu(), 0).expect("a thread");
        let hour = Duration::from_secs(3600);
        let turns =
            CompartmentTurns { whose: ReadMemory::LatCtx, participants: 2, work: TurnWork::Lines(0), window: hour };
        assert_eq!(all.measure(&turns, &|| true), Err(Early::Interrupted));
        drop(all);
    }
}
