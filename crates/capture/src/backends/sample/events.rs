//! The open clock events of a recording and their rings, one for each CPU.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::time::Duration;

use lookaside_host::{CpuTopology, FileProblem, Process};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use super::perf::{self, Begin};
use super::perf_record::{self, PerfRecord};
use super::ring::RingBuffer;

/// The perf events that are open for a recording, with their ring buffers.
pub struct Events {
    /// CPU, its first event (which owns the ring), its ring.
    rings: Vec<(u32, File, RingBuffer)>,
    /// Events that write to another's ring.
    others: Vec<File>,
    /// Which of `rings` and then `others` have not ended.
    alive: Vec<bool>,
}

impl Events {
    /// Opens the event for one process that has a single thread, from its next exec on.
    pub fn on_exec(process: u32, period_ns: u64) -> io::Result<Events> {
        let mut events = Events::none();
        events.add_thread(process, period_ns, Begin::OnExec)?;
        events.opened()
    }

    /// Opens the event for all threads of running processes. Those that have ended are left out, unless all have.
    pub fn attached(processes: &[u32], period_ns: u64) -> io::Result<Events> {
        let mut events = Events::none();
        for &process in processes {
            match events.attach(process, period_ns) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                result => result?,
            }
        }
        events.opened()
    }

    fn attach(&mut self, process: u32, period_ns: u64) -> io::Result<()> {
        let events = self;
        let mut known = HashSet::new();
        loop {
            let mut new: Vec<u32> = threads_of(process)?.into_iter().filter(|thread| !known.contains(thread)).collect();
            if !known.is_empty() && !new.is_empty() {
                // Threads that began meanwhile have the event already if one that we had begun them.
                std::thread::sleep(Duration::from_millis(2));
                events.drain(|_, record| {
                    if let PerfRecord::Fork { thread, .. } = record {
                        known.insert(thread);
                    }
                });
                new.retain(|thread| !known.contains(thread));
            }
            if new.is_empty() {
                return Ok(());
            }
            for thread in new {
                known.insert(thread);
                match events.add_thread(thread, period_ns, Begin::Now) {
                    // It ended before we came to it.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && thread != process => {}
                    result => result?,
                }
            }
        }
    }

    /// Opens the event, off, for these threads and what they start. Those that have ended are left out.
    pub fn switched_off(threads: &[u32], period_ns: u64) -> io::Result<Events> {
        let mut events = Events::none();
        for &thread in threads {
            match events.add_thread(thread, period_ns, Begin::WhenAsked) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                result => result?,
            }
        }
        events.opened()
    }

    /// Turns all of them on or off. One whose thread has ended stays off.
    pub fn switch(&self, on: bool) {
        for event in self.rings.iter().map(|(_, event, _)| event).chain(&self.others) {
            let _ = lookaside_host::perf::switch(event, on);
        }
    }

    /// Hands over all records that have arrived, with their times; not in order.
    pub fn drain(&mut self, mut take: impl FnMut(u64, PerfRecord)) {
        for (_, _, ring) in &mut self.rings {
            ring.drain(|bytes| {
                if let Some((time, record)) = perf_record::parse(bytes) {
                    take(time, record);
                }
            });
        }
    }

    /// Waits until a ring fills, a process ends or `timeout` passes; `false` when all that was watched has ended.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let files = self.rings.iter().map(|(_, event, _)| event).chain(&self.others);
        let watched: Vec<(usize, &File)> = files.enumerate().filter(|(i, _)| self.alive[*i]).collect();
        if watched.is_empty() {
            return false;
        }
        let mut polled: Vec<PollFd<'_>> = watched.iter().map(|(_, event)| PollFd::new(event, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // An interruption by a signal is as good as a timeout.
        let _ = poll(&mut polled, Some(&timeout));
        let ended: Vec<usize> = polled
            .iter()
            .zip(&watched)
            .filter(|(fd, _)| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
            .map(|(_, (index, _))| *index)
            .collect();
        ended.into_iter().for_each(|index| self.alive[index] = false);
        self.alive.contains(&true)
    }

    fn none() -> Events {
        Events { rings: Vec::new(), others: Vec::new(), alive: Vec::new() }
    }

    fn opened(mut self) -> io::Result<Events> {
        if self.rings.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        self.alive = vec![true; self.rings.len() + self.others.len()];
        Ok(self)
    }

    fn add_thread(&mut self, thread: u32, period_ns: u64, begin: Begin) -> io::Result<()> {
        for cpu in online_cpus() {
            let event = match perf::open(thread, cpu, period_ns, RingBuffer::watermark_bytes(), begin) {
                // The CPU went offline.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                event => event?,
            };
            match self.rings.iter().find(|(of, ..)| *of == cpu) {
                Some((_, leader, _)) => {
                    lookaside_host::perf::redirect(&event, leader)?;
                    self.others.push(event);
                }
                None => {
                    let ring = RingBuffer::map(&event)?;
                    self.rings.push((cpu, event, ring));
                }
            }
        }
        Ok(())
    }
}

/// The threads of a process.
pub fn threads_of(process: u32) -> io::Result<Vec<u32>> {
    Process::of(process).threads().map_err(|error| match error.problem {
        _ if error.is_missing() => io::Error::from_raw_os_error(libc::ESRCH),
        FileProblem::Io(error) => error,
        problem => io::Error::other(problem),
    })
}

/// CPUs that are online; where the system does not tell, as many as it says it has.
pub fn online_cpus() -> Vec<u32> {
    let online = CpuTopology::here().online();
    let online = online.unwrap_or_else(|| (0..std::thread::available_parallelism().map_or(1, |n| n.get())).collect());
    online.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

#[cfg(test)]
pub mod tests {
    use rustix::pipe::{pipe_with, PipeFlags};

    use super::super::perf_record::tests::{lost_at, record};
    use super::super::ring::tests::file_with;
    use super::*;

    /// Of nothing that runs any more: these records have arrived, each list in a ring of its own.
    pub fn arrived(rings: &[&[Vec<u8>]]) -> Events {
        let ring = |records: &&[Vec<u8>]| {
            let file = file_with(0, records);
            let ring = RingBuffer::map(&file).unwrap();
            (0, file, ring)
        };
        Events { rings: rings.iter().map(ring).collect(), others: Vec::new(), alive: vec![false; rings.len()] }
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        // Above the largest pid that Linux gives (2^22).
        let error = Events::attached(&[5_000_000], 500_000).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        assert_eq!(threads_of(5_000_000).err().and_then(|error| error.raw_os_error()), Some(libc::ESRCH));
        assert_eq!(Events::none().opened().err().and_then(|error| error.raw_os_error()), Some(libc::ESRCH));
    }

    /// The kernel takes no period as long as this (EINVAL), or no event at all.
    #[test]
    fn an_event_that_is_refused_is_no_process_that_is_not_there() {
        let own = std::process::id();
        for error in [Events::attached(&[own], 1 << 63).err(), Events::on_exec(own, 1 << 63).err()] {
            let error = error.unwrap();
            assert_ne!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
        }
    }

    #[test]
    fn our_threads_and_cpus_are_among_those_found() {
        let threads = threads_of(std::process::id()).unwrap();
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads.contains(&own) && threads.contains(&std::process::id()), "{own}: {threads:?}");
        let online = online_cpus();
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        assert!((0..1024).filter(|&cpu| allowed.is_set(cpu)).all(|cpu| online.contains(&(cpu as u32))), "{online:?}");
    }

    #[test]
    fn records_of_all_rings_are_handed_over_once() {
        let (one, nonsense, two) = (lost_at(5, 1), record(15, 0, &[1], "", Some(6)), lost_at(4, 2));
        let mut events = arrived(&[&[one, nonsense], &[two]]);
        let mut drained = || {
            let mut records = Vec::new();
            events.drain(|time, record| records.push((time, record)));
            records
        };
        assert_eq!(drained(), [(5, PerfRecord::Lost { count: 1 }), (4, PerfRecord::Lost { count: 2 })]);
        assert!(drained().is_empty());
    }

    /// Pipes in place of events: one that nobody writes to any more is at its end, one that nobody reads has an error.
    #[test]
    fn watching_ends_when_all_that_is_watched_has() {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).unwrap();
        assert!(!Events::none().wait(Duration::ZERO));
        let ((read, written), (read_not, to_nobody)) = (pipe(), pipe());
        let mut events = Events { rings: vec![], others: vec![read.into(), to_nobody.into()], alive: vec![true; 2] };
        assert!(events.wait(Duration::ZERO));
        // A process that another test has just forked may have the pipe a moment longer.
        let ends_up = |events: &mut Events, alive: [bool; 2]| {
            (0..500).any(|_| {
                events.wait(Duration::from_millis(10));
                events.alive == alive
            })
        };
        drop(read_not);
        assert!(ends_up(&mut events, [true, false]));
        assert!(events.wait(Duration::ZERO));
        drop(written);
        assert!(ends_up(&mut events, [false, false]));
        assert!(!events.wait(Duration::ZERO));
    }
}
