//! The ring: a token that goes round through pipes, and what each participant does when it has it. All of this runs in
//! children right after a fork, too: system calls and plain loads, no allocation, no lock.

use std::hint::black_box;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::{retry_on_intr, Errno};
use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use rustix::pipe::{pipe_with, PipeFlags};

/// Bytes of a cache line.
const LINE: usize = 64;

/// What participants hand on. Anything else ends them.
mod token {
    /// To the leader: measure.
    pub(super) const START: u8 = 1;
    /// Work.
    pub(super) const WORK: u8 = 2;
    /// Write down the switches so far.
    pub(super) const FROM: u8 = 3;
    /// Write down the switches since.
    pub(super) const TO: u8 = 4;
    /// From the leader: measured.
    pub(super) const DONE: u8 = 5;
    /// End.
    pub(super) const END: u8 = 0;
}

/// What a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnWork {
    /// So many bytes are read, a word of each line, one line after the other.
    Lines(u64),
    /// So many pages are visited by the chain of a column.
    Chain(u64, u64),
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingJob {
    /// Participants; the first ones of the ring.
    pub participants: usize,
    pub work: TurnWork,
    /// Address of the first's area.
    pub start: usize,
    /// Bytes from one's area to the next's; 0: they have one in common.
    pub stride: u64,
    /// Bytes of an area.
    pub area: u64,
    /// What is measured takes so long, about; what does not count before it, half as long to as long.
    pub window: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LapTimes {
    pub laps: u64,
    pub elapsed_ns: u64,
    /// Switches from participants that waited, over one lap more than are timed.
    pub voluntary: u64,
    /// And from those that did not.
    pub involuntary: u64,
}

/// The part that participants have in common, in memory that children share. The pipes order all accesses.
#[repr(C)]
#[derive(Debug)]
struct RingBoard {
    participants: AtomicU64,
    is_chain: AtomicU64,
    amount: AtomicU64,
    column: AtomicU64,
    start: AtomicU64,
    stride: AtomicU64,
    area: AtomicU64,
    window_ns: AtomicU64,
    laps: AtomicU64,
    elapsed_ns: AtomicU64,
}

/// A participant's switches.
#[repr(C)]
#[derive(Debug)]
struct SwitchSlot {
    voluntary: AtomicU64,
    involuntary: AtomicU64,
}

/// Pipes and board of a ring of so many participants.
#[derive(Debug)]
pub(super) struct PipeRing {
    memory: NonNull<u8>,
    bytes: usize,
    /// To each participant.
    pipes: Vec<(OwnedFd, OwnedFd)>,
    /// From the leader.
    done: (OwnedFd, OwnedFd),
}

// SAFETY: the memory holds atomics only, and stays mapped as long as the ring is there.
unsafe impl Send for PipeRing {}
// SAFETY: as above.
unsafe impl Sync for PipeRing {}

impl PipeRing {
    pub(super) fn new(participants: usize) -> Result<Self, Errno> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let pipes = (0..participants).map(|_| pipe()).collect::<Result<Vec<_>, _>>()?;
        let done = pipe()?;
        let bytes = size_of::<RingBoard>() + participants * size_of::<SwitchSlot>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever the system likes.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::SHARED) }?;
        let memory = NonNull::new(memory.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { memory, bytes, pipes, done })
    }

    /// Participants that there may be.
    pub(super) fn len(&self) -> usize {
        self.pipes.len()
    }

    fn board(&self) -> &RingBoard {
        // SAFETY: the mapping begins with it, aligned to a page; all zeros are numbers.
        unsafe { self.memory.cast::<RingBoard>().as_ref() }
    }

    fn slots(&self) -> &[SwitchSlot] {
        // SAFETY: they follow the board, whose size is a multiple of their alignment, and are as many as there are
        // pipes.
        unsafe {
            let first = self.memory.as_ptr().add(size_of::<RingBoard>()).cast::<SwitchSlot>();
            std::slice::from_raw_parts(first, self.pipes.len())
        }
    }

    /// Has the leader begin; `false` if it can't be told.
    pub(super) fn start(&self, job: &RingJob) -> bool {
        let board = self.board();
        let (is_chain, amount, column) = match job.work {
            TurnWork::Lines(bytes) => (0, bytes, 0),
            TurnWork::Chain(pages, column) => (1, pages, column),
        };
        for (place, value) in [
            (&board.participants, job.participants.clamp(1, self.len()) as u64),
            (&board.is_chain, is_chain),
            (&board.amount, amount),
            (&board.column, column),
            (&board.start, job.start as u64),
            (&board.stride, job.stride),
            (&board.area, job.area),
            (&board.window_ns, job.window.as_nanos() as u64),
        ] {
            place.store(value, Ordering::Release);
        }
        self.send(0, token::START)
    }

    /// Where the leader says that it is done.
    pub(super) fn finished(&self) -> &OwnedFd {
        &self.done.0
    }

    /// What it found, once it has said so.
    pub(super) fn take(&self) -> Option<LapTimes> {
        (receive(&self.done.0) == token::DONE).then_some(())?;
        let board = self.board();
        let members = board.participants.load(Ordering::Acquire) as usize;
        let slots = self.slots().get(..members).unwrap_or_default();
        let sum = |of: fn(&SwitchSlot) -> &AtomicU64| slots.iter().map(|slot| of(slot).load(Ordering::Acquire)).sum();
        Some(LapTimes {
            laps: board.laps.load(Ordering::Acquire),
            elapsed_ns: board.elapsed_ns.load(Ordering::Acquire),
            voluntary: sum(|slot| &slot.voluntary),
            involuntary: sum(|slot| &slot.involuntary),
        })
    }

    /// Ends all participants, whatever they are at.
    pub(super) fn end(&self) {
        for to in 0..self.len() {
            self.send(to, token::END);
        }
    }

    /// A participant's life.
    pub(super) fn serve(&self, me: usize) {
        if me == 0 {
            while self.receive(0) == token::START && self.lead() {}
        } else {
            while self.follow(me) {}
        }
    }

    fn follow(&self, me: usize) -> bool {
        let token = self.receive(me);
        let participants = self.board().participants.load(Ordering::Relaxed) as usize;
        let next = if me + 1 >= participants { 0 } else { me + 1 };
        self.act(me, token) && self.send(next, token)
    }

    /// Measures; `false` where it is ended meanwhile.
    fn lead(&self) -> bool {
        let board = self.board();
        let window = board.window_ns.load(Ordering::Acquire).max(1);
        // What does not count: it warms up, and says how long a lap takes.
        let mut laps = 1;
        let lap_ns = loop {
            let Some(elapsed) = self.laps(token::WORK, laps) else { return false };
            if elapsed >= window / 4 || laps >= 1 << 40 {
                break (elapsed / laps).max(1);
            }
            laps *= 2;
        };
        let laps = (window / lap_ns).max(1);
        if self.laps(token::FROM, 1).is_none() {
            return false;
        }
        let Some(elapsed) = self.laps(token::WORK, laps) else { return false };
        if self.laps(token::TO, 1).is_none() {
            return false;
        }
        board.laps.store(laps, Ordering::Release);
        board.elapsed_ns.store(elapsed, Ordering::Release);
        send(&self.done.1, token::DONE)
    }

    /// Time that the token takes for so many laps.
    fn laps(&self, token: u8, laps: u64) -> Option<u64> {
        let participants = self.board().participants.load(Ordering::Relaxed);
        let next = if participants > 1 { 1 } else { 0 };
        let began = Instant::now();
        for _ in 0..laps {
            let went = self.act(0, token) && self.send(next, token) && self.receive(0) == token;
            went.then_some(())?;
        }
        Some(began.elapsed().as_nanos() as u64)
    }

    /// What a token asks for; `false`: the end.
    fn act(&self, me: usize, token: u8) -> bool {
        match token {
            token::WORK => self.work(me as u64),
            token::FROM | token::TO => self.count(me, token == token::FROM),
            _ => return false,
        }
        true
    }

    fn work(&self, me: u64) {
        let board = self.board();
        let get = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let amount = get(&board.amount);
        let area = get(&board.start) + me * get(&board.stride);
        if get(&board.is_chain) == 1 {
            chain(area as usize, amount, 4 * get(&board.column) as usize);
        } else if let Some(at) = place_in_area(me, get(&board.area), amount) {
            lines((area + at) as usize, amount as usize);
        }
    }

    fn count(&self, me: usize, from: bool) {
        let Some(slot) = self.slots().get(me) else { return };
        for (place, now) in [&slot.voluntary, &slot.involuntary].into_iter().zip(own_switches()) {
            let before = if from { 0 } else { place.load(Ordering::Relaxed) };
            place.store(now.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    fn send(&self, to: usize, token: u8) -> bool {
        self.pipes.get(to).is_some_and(|pipe| send(&pipe.1, token))
    }

    fn receive(&self, me: usize) -> u8 {
        self.pipes.get(me).map_or(token::END, |pipe| receive(&pipe.0))
    }
}

impl Drop for PipeRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; nobody in this process has the ring any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// The calling thread's switches so far: those where it waited, those where it did not.
pub(super) fn own_switches() -> [u64; 2] {
    // SAFETY: all zeros is a `rusage`, which the call fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it is ours to be written.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    [usage.ru_nvcsw as u64, usage.ru_nivcsw as u64]
}

/// Where in its area a participant of lat_ctx reads so many bytes; `None`: it reads nothing. Those of neighbours lie at
/// different places: in huge pages they would else share few sets of the caches.
pub(super) fn place_in_area(me: u64, area: u64, bytes: u64) -> Option<u64> {
    let places = area.checked_div(bytes)?;
    Some(me % places.max(1) * bytes)
}

/// A word of each line, one line after the other. All of them can be read.
pub(super) fn lines(start: usize, bytes: usize) {
    let mut sum = 0u64;
    for at in (start..start + bytes).step_by(LINE) {
        // SAFETY: within the participant's area, which is mapped and only read.
        sum = sum.wrapping_add(unsafe { (at as *const u64).read_volatile() });
    }
    black_box(sum);
}

/// Through so many pages, each word telling where the next is: of a chain that was written there.
pub(super) fn chain(area: usize, pages: u64, word: usize) {
    let mut at = 0u32;
    for _ in 0..pages {
        // SAFETY: a chain of the area leads through words of it only; the area is mapped and only read.
        at = unsafe { ((area + at as usize + word) as *const u32).read_volatile() };
    }
    black_box(at);
}

fn send(to: &OwnedFd, token: u8) -> bool {
    retry_on_intr(|| rustix::io::write(to.as_fd(), &[token])) == Ok(1)
}

/// The end where nothing comes.
fn receive(from: &OwnedFd) -> u8 {
    let mut token = [token::END];
    match retry_on_intr(|| rustix::io::read(from.as_fd(), &mut token)) {
        Ok(1) => token[0],
        _ => token::END,
    }
}
