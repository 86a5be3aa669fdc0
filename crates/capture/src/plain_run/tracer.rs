//! The thread that traces a plain run: the kernel takes ptrace requests from one thread only.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread::JoinHandle;

use lookaside_host::Process;
use lookaside_trace::{parse_maps, MapSource, MemoryMap, Region};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use super::guest::QemuGuest;
use super::map_calls;
use super::maps::{Aslr, PlainRunMaps, StopPoint, StoppedProgram};
use super::ptrace::{self, SyscallStop, ThreadChange};
use crate::error::CaptureError;
use crate::recording::ChildEnd;

type AtStop = Box<dyn FnMut(&StoppedProgram<'_>) + Send>;
type TracerThread = JoinHandle<Result<PlainRunMaps, CaptureError>>;
type StartResult = Result<(u32, OwnedFd), CaptureError>;

/// Starts the program on a thread of its own, which traces it: its pid, its pidfd, and the thread. With a guest,
/// `command` is QEMU's.
pub(super) fn start(
    command: Vec<OsString>,
    aslr: Aslr,
    at_stop: AtStop,
    guest: Option<QemuGuest>,
) -> Result<(u32, OwnedFd, TracerThread), CaptureError> {
    let (began, begins) = sync_channel::<StartResult>(1);
    let tracer = std::thread::Builder::new()
        .name("native-run".into())
        .spawn(move || trace(&command, aslr, at_stop, guest, &began))
        .map_err(|source| CaptureError::Io { what: "starting a thread".into(), source })?;
    match begins.recv() {
        Ok(Ok((pid, process))) => Ok((pid, process, tracer)),
        Ok(Err(error)) => Err(error),
        // It says how it began before all else, unless it failed at that.
        Err(_) => Err(failed("the program", io::Error::other("the thread that traces it has ended"))),
    }
}

fn failed(what: &str, source: io::Error) -> CaptureError {
    CaptureError::Io { what: format!("tracing {what}"), source }
}

fn trace(
    command: &[OsString],
    aslr: Aslr,
    at_stop: AtStop,
    guest: Option<QemuGuest>,
    began: &SyncSender<StartResult>,
) -> Result<PlainRunMaps, CaptureError> {
    let mut program = match spawn(command, aslr) {
        Ok(child) => KilledOnDrop { child, ended: false },
        Err(error) => {
            // The error that counts is in the channel.
            let _ = began.send(Err(error));
            return Err(failed("the program", io::Error::other("it did not start")));
        }
    };
    let pid = program.child.id() as i32;
    let hold = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound.into());
    let hold = hold.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from));
    let maps = hold.and_then(|hold| {
        let _ = began.send(Ok((program.child.id(), hold)));
        TracedRun::new(pid, aslr, at_stop, guest).follow()
    });
    program.ended = maps.is_ok();
    maps.map_err(|error| failed(&format!("process {pid}"), error))
}

/// A traced program. Whatever happens to its tracer, neither a stopped program nor a zombie is left behind.
struct KilledOnDrop {
    child: Child,
    /// It has been waited for.
    ended: bool,
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Not waited for, so the pid is its own.
        let _ = self.child.kill();
        // A thread that was stopped on its way out is not woken by that.
        for thread in Process::of(self.child.id()).threads().unwrap_or_default() {
            let _ = ptrace::go_on(thread as i32, 0);
        }
        while let Ok((who, change)) = ptrace::next_change() {
            match change {
                ThreadChange::Stopped(..) => drop(ptrace::go_on(who, 0)),
                ThreadChange::Code(_) | ThreadChange::Killed(_) if who as u32 == self.child.id() => break,
                _ => {}
            }
        }
    }
}

/// The program, stopped at its first instruction.
fn spawn(command: &[OsString], aslr: Aslr) -> Result<Child, CaptureError> {
    let [name, arguments @ ..] = command else {
        return Err(failed("the program", io::Error::other("none was given")));
    };
    let name = name.to_string_lossy();
    let mut program = Command::new(&command[0]);
    program.args(arguments);
    let fixed = aslr == Aslr::Off;
    // SAFETY: between fork and exec only personality and ptrace are called, which are async-signal-safe.
    unsafe {
        program.pre_exec(move || ptrace::trace_me(fixed));
    }
    program.spawn().map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => failed(
            &name,
            io::Error::new(error.kind(), "the system forbids ptrace here (a container: --cap-add SYS_PTRACE)"),
        ),
        _ => failed(&name, error),
    })
}

/// A traced program, as far as it has run.
struct TracedRun {
    pid: i32,
    aslr: Aslr,
    at_stop: AtStop,
    /// The program, if the traced one is QEMU.
    guest: Option<QemuGuest>,
    map: MemoryMap,
    /// Calls that have begun, by thread: number, arguments.
    begun: HashMap<i32, (u64, [u64; 6])>,
    /// The thread that stopped last: its first one may have ended before the others.
    task: i32,
    /// Threads seen so far.
    threads: Vec<i32>,
    /// Where the dynamic linker's file lies; empty if there is none, or it has done its work.
    linker: std::ops::Range<u64>,
    heap_start: u64,
    maps: PlainRunMaps,
}

impl TracedRun {
    fn new(pid: i32, aslr: Aslr, at_stop: AtStop, guest: Option<QemuGuest>) -> TracedRun {
        let (end, emulated) = (ChildEnd::Code(0), guest.is_some());
        let maps = PlainRunMaps { loaded: vec![], exit: vec![], entry_stack: None, emulated, end, notes: vec![] };
        TracedRun {
            pid,
            aslr,
            at_stop,
            guest,
            map: MemoryMap::default(),
            begun: HashMap::new(),
            task: pid,
            threads: vec![pid],
            linker: 0..0,
            heap_start: 0,
            maps,
        }
    }

    fn follow(&mut self) -> io::Result<PlainRunMaps> {
        match ptrace::next_change()? {
            (_, ThreadChange::Stopped(libc::SIGTRAP, _)) => {}
            (_, change) => return Err(io::Error::other(format!("it did not start: {change:?}"))),
        }
        ptrace::set_options(self.pid)?;
        self.begins();
        ptrace::go_on(self.pid, 0)?;
        loop {
            let (thread, change) = ptrace::next_change()?;
            match change {
                ThreadChange::Code(code) if thread == self.pid => self.maps.end = ChildEnd::Code(code),
                ThreadChange::Killed(signal) if thread == self.pid => self.maps.end = ChildEnd::Signal(signal),
                ThreadChange::Code(_) | ThreadChange::Killed(_) => continue,
                ThreadChange::Stopped(signal, event) => {
                    let pass_on = self.stopped(thread, signal, event);
                    ptrace::go_on(thread, pass_on)?;
                    continue;
                }
            }
            if self.maps.exit.is_empty() {
                let killed = "killed before its memory could be looked at";
                self.maps.notes.push(self.guest.as_ref().map_or(killed, QemuGuest::unseen).into());
            }
            return Ok(self.maps.clone());
        }
    }

    /// The signal that the thread is to have.
    fn stopped(&mut self, thread: i32, signal: i32, event: i32) -> i32 {
        self.task = thread;
        let is_new = !self.threads.contains(&thread);
        if is_new {
            self.threads.push(thread);
        }
        match (signal, event) {
            (ptrace::CALL_STOP, _) => self.call(thread),
            (_, libc::PTRACE_EVENT_EXEC) => match &mut self.guest {
                Some(guest) => guest.leave(),
                None => self.begins(),
            },
            (_, libc::PTRACE_EVENT_EXIT) => {
                self.threads.retain(|known| *known != thread);
                self.begun.remove(&thread);
                if thread == self.pid {
                    self.reach(StopPoint::Exit);
                }
            }
            // A new thread's, which is ptrace's own.
            (libc::SIGSTOP, 0) if is_new => {}
            (signal, 0) => return signal,
            _ => {}
        }
        0
    }

    /// A program has just been executed.
    fn begins(&mut self) {
        self.map = MemoryMap::default();
        self.begun.clear();
        if self.aslr == Aslr::Off && !self.is_fixed() {
            let note = "the sandbox refuses personality(ADDR_NO_RANDOMIZE): addresses are other ones in each run";
            self.maps.notes.push(note.into());
        }
        if self.guest.is_some() {
            return;
        }
        self.map.reconcile(self.listing());
        let stat = Process::of(self.task as u32).stat().unwrap_or_default();
        self.maps.entry_stack = Some(stat.stack_start()).filter(|start| *start > 0);
        self.heap_start = stat.heap_start();
        self.linker = self.linker_range();
        if self.linker.is_empty() {
            self.reach(StopPoint::Loaded);
        }
    }

    fn call(&mut self, thread: i32) {
        match ptrace::call(thread) {
            Some(SyscallStop::Begins { number, args, ip }) => {
                if self.guest.as_mut().is_some_and(QemuGuest::appears) {
                    self.reach(StopPoint::Loaded);
                }
                if !self.linker.is_empty() && !self.linker.contains(&ip) {
                    self.linker = 0..0;
                    self.reach(StopPoint::Loaded);
                }
                self.begun.insert(thread, (number, args));
                // Another thread than the first may end the program after that one is gone.
                if number == libc::SYS_exit_group as u64 && !self.threads.contains(&self.pid) {
                    self.reach(StopPoint::Exit);
                }
            }
            Some(SyscallStop::Ends { result: Some(result) }) => {
                if let Some((number, args)) = self.begun.remove(&thread) {
                    let mut event = map_calls::event(self.task, number, &args, result, self.heap_start);
                    if let Some(guest) = &mut self.guest {
                        event = event.and_then(|event| guest.event(event, |addr| self.map.find(addr).is_some()));
                    }
                    if let Some(event) = event {
                        self.map.apply(&event);
                    }
                }
            }
            Some(SyscallStop::Ends { result: None }) => drop(self.begun.remove(&thread)),
            None => {}
        }
    }

    /// Brings the map up to date: the stack grows without a call, and others have been left out.
    fn reach(&mut self, point: StopPoint) {
        let mut listing = self.listing();
        let mut base = 0;
        if let Some(guest) = &self.guest {
            let layout = guest.layout();
            listing = guest.listing(&listing);
            (base, self.maps.entry_stack) = (layout.map_or(0, |at| at.base), layout.map(|at| at.entry_stack));
        }
        if listing.is_empty() {
            return;
        }
        // The process's listing has no name for a guest's heap; nothing of a guest grows without a call.
        if self.guest.is_none() || point == StopPoint::Loaded {
            self.map.reconcile(listing.clone());
        }
        let mut regions = self.map.last_known();
        regions.retain(|region| region.gone || listing.iter().any(|listed| listed.holds(region.start)));
        for region in regions.iter_mut().filter(|region| !region.gone) {
            let listed = listing.iter().find(|listed| listed.holds(region.start));
            region.file = listed.and_then(|listed| listed.file);
        }
        let entry_stack = self.maps.entry_stack;
        (self.at_stop)(&StoppedProgram { point, regions: &regions, entry_stack, process: self.task as u32, base });
        match point {
            StopPoint::Loaded => self.maps.loaded = regions,
            StopPoint::Exit => self.maps.exit = regions,
        }
    }

    /// The kernel's listing, with `.bss` and heap told apart.
    fn listing(&self) -> Vec<Region> {
        let text = Process::of(self.task as u32).maps_text().unwrap_or_default();
        told_apart(parse_maps(&text), self.heap_start)
    }

    /// Whether the kernel does not randomize its addresses; believed where the kernel doesn't say.
    fn is_fixed(&self) -> bool {
        let text = Process::of(self.task as u32).bytes("personality").unwrap_or_default();
        u32::from_str_radix(String::from_utf8_lossy(&text).trim(), 16)
            .map_or(true, |bits| bits & libc::ADDR_NO_RANDOMIZE as u32 != 0)
    }

    /// Where the dynamic linker's file is mapped (`AT_BASE` of the auxiliary vector); empty for a static program.
    fn linker_range(&self) -> std::ops::Range<u64> {
        const AT_BASE: usize = 7;
        let auxv = Process::of(self.task as u32).bytes("auxv").unwrap_or_default();
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
        let (pairs, _) = auxv.as_chunks::<{ 2 * size_of::<usize>() }>();
        let base = pairs.iter().find_map(|pair| {
            let (key, value) = pair.split_at(size_of::<usize>());
            (word(key) == AT_BASE).then(|| word(value) as u64)
        });
        let Some(first) = base.and_then(|base| self.map.find(base)) else { return 0..0 };
        let MapSource::File { path: linker, .. } = &first.source else { return 0..0 };
        let is_linkers = |region: &&Region| matches!(&region.source, MapSource::File { path, .. } if path == linker);
        let end = self.map.regions().filter(is_linkers).map(|region| region.end).max();
        first.start..end.unwrap_or(first.end)
    }
}

/// A listing with nothing below `heap_start` as the heap. Kernels may list `.bss` and heap as one; older ones call
/// `.bss` a heap where that would begin right behind it.
fn told_apart(listing: Vec<Region>, heap_start: u64) -> Vec<Region> {
    let mut parts = Vec::new();
    for region in listing {
        if region.source != MapSource::Heap || heap_start <= region.start {
            parts.push(region);
            continue;
        }
        let bss_end = region.end.min(heap_start);
        parts.push(Region { end: bss_end, source: MapSource::Anonymous, ..region.clone() });
        if bss_end < region.end {
            parts.push(region.tail(bss_end));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_below_its_begin_is_a_heap() {
        use MapSource::{Anonymous, Heap};
        let apart = |source: MapSource, heap_start| -> Vec<(u64, u64, MapSource)> {
            let listing = vec![Region::new(0x1000, 0x2000, 1, Anonymous), Region::new(0x3000, 0x6000, 3, source)];
            let parts = told_apart(listing, heap_start);
            assert_eq!((parts[0].start, parts[0].end, parts[0].prot), (0x1000, 0x2000, 1));
            assert!(parts[1..].iter().all(|part| part.prot == 3));
            parts[1..].iter().map(|part| (part.start, part.end, part.source.clone())).collect()
        };
        // 0: the kernel doesn't say.
        for all_of_it in [0, 0x1800, 0x3000] {
            assert_eq!(apart(Heap, all_of_it), [(0x3000, 0x6000, Heap)]);
        }
        assert_eq!(apart(Heap, 0x3001), [(0x3000, 0x3001, Anonymous), (0x3001, 0x6000, Heap)]);
        assert_eq!(apart(Heap, 0x5000), [(0x3000, 0x5000, Anonymous), (0x5000, 0x6000, Heap)]);
        for none_of_it in [0x6000, 0x7000] {
            assert_eq!(apart(Heap, none_of_it), [(0x3000, 0x6000, Anonymous)]);
        }
        // Where there is none yet.
        assert_eq!(apart(Anonymous, 0x5000), [(0x3000, 0x6000, Anonymous)]);
    }
}
