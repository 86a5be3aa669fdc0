//! Perf events (perf_event_open(2), `linux/perf_event.h`): opening one, reading a counter, and what a refusal means.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// `struct perf_event_attr`, version 5 (Linux 4.1).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfEventAttr {
    /// `type`: whose event it is, as [`PERF_TYPE_RAW`].
    pub kind: u32,
    size: u32,
    /// The event.
    pub config: u64,
    /// A sample each so many counts.
    pub sample_period: u64,
    /// What a sample has (`PERF_SAMPLE_*`).
    pub sample_type: u64,
    /// What reading a counter gives (`PERF_FORMAT_*`).
    pub read_format: u64,
    /// The bits from `disabled` on, as [`EXCLUDE_KERNEL`].
    pub flags: u64,
    /// Bytes of records after which who waits is woken.
    pub wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    /// Registers in each sample, by the kernel's numbers.
    pub sample_regs_user: u64,
    sample_stack_user: u32,
    /// The clock of samples' times.
    pub clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// `PERF_TYPE_SOFTWARE`: the kernel's own events.
pub const PERF_TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_RAW`: `config` is the event's code as the CPU has it.
pub const PERF_TYPE_RAW: u32 = 4;
/// `PERF_TYPE_BREAKPOINT`: the processor's debug registers.
const PERF_TYPE_BREAKPOINT: u32 = 5;
/// `HW_BREAKPOINT_X` (`linux/hw_breakpoint.h`): an instruction is executed.
const BREAKPOINT_EXECUTED: u32 = 4;

/// Flag: the event waits for [`PerfCounter::enable`] or for exec.
pub const DISABLED: u64 = 1;
/// Flag: threads and processes that it starts are counted too.
pub const INHERIT: u64 = 1 << 1;
/// Flag: what the kernel does is left out.
pub const EXCLUDE_KERNEL: u64 = 1 << 5;
/// Flag: what a hypervisor does is left out.
pub const EXCLUDE_HV: u64 = 1 << 6;
/// Flag (Linux 5.13): of what it starts threads only are counted.
pub const INHERIT_THREAD: u64 = 1 << 35;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`: what a [`PerfCounter`] reads.
pub(crate) const READ_TIMES: u64 = 1 | 2;

/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE`, `_REFRESH`, `_SET_OUTPUT`: `_IO('$', 0)`, `1`, `2` and `5`.
const IOC_ENABLE: u32 = 0x2400;
const IOC_DISABLE: u32 = 0x2401;
const IOC_REFRESH: u32 = 0x2402;
const IOC_SET_OUTPUT: u32 = 0x2405;

impl PerfEventAttr {
    /// An event, and nothing else asked for.
    pub fn new(kind: u32, config: u64) -> Self {
        Self { kind, size: size_of::<Self>() as u32, config, ..Self::default() }
    }

    /// Opens the event on a thread (0 = the calling one), as far as it runs on `cpu`; `None`: on any. It is closed on
    /// exec.
    ///
    /// # Errors
    /// The system's own; [`refusal`] puts them in words.
    pub fn open(&self, thread: u32, cpu: Option<u32>) -> io::Result<File> {
        const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
        const NO_GROUP: libc::c_int = -1;
        let cpu = cpu.map_or(-1, |cpu| cpu as libc::c_int);
        // SAFETY: the attributes are as long as they say and live through the call; nothing else is pointed to.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(self),
                thread as libc::pid_t,
                cpu,
                NO_GROUP,
                FLAG_FD_CLOEXEC,
            )
        };
        match i32::try_from(fd) {
            // SAFETY: a descriptor that the system has just made for us.
            Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// What the system refuses when an event is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no PMU, or none that has the event.
    NoEvent,
    /// `kernel.perf_event_paranoid`, a seccomp profile or a security module forbids it.
    Forbidden,
    /// The kernel or sandbox has no perf events.
    NoPerfEvents,
    /// The PMU does not know the event or its flags.
    Invalid,
    /// There is no such thread.
    NoThread,
    /// The process has too many files open.
    TooManyFiles,
    /// Something else.
    Other,
}

/// What an error of [`PerfEventAttr::open`] means.
pub fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Refusal::NoEvent,
        Some(libc::EACCES | libc::EPERM) => Refusal::Forbidden,
        Some(libc::ENOSYS) => Refusal::NoPerfEvents,
        Some(libc::EINVAL) => Refusal::Invalid,
        Some(libc::ESRCH) => Refusal::NoThread,
        Some(libc::EMFILE) => Refusal::TooManyFiles,
        _ => Refusal::Other,
    }
}

/// A counter of one event.
#[derive(Debug)]
pub struct PerfCounter(File);

/// What a counter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfCount {
    /// Events counted.
    pub value: u64,
    /// Nanoseconds that the counter was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds of these that it counted: fewer where others use the PMU too.
    pub running_ns: u64,
}

impl PerfCounter {
    /// Opens a counter of a thread (0 = the calling one) on any CPU.
    ///
    /// # Errors
    /// The system's own; [`refusal`] puts them in words.
    pub fn open(kind: u32, config: u64, thread: u32, flags: u64) -> io::Result<Self> {
        let attr = PerfEventAttr { read_format: READ_TIMES, flags, ..PerfEventAttr::new(kind, config) };
        attr.open(thread, None).map(Self)
    }

    /// Opens a counter of how often a thread (0 = the calling one) executes the instruction at an address of its own
    /// process, on any CPU. It takes one of the processor's few debug registers (four on x86-64), and each execution
    /// that is counted an exception, of 1 to 10 µs. Where `flags` has [`DISABLED`] but not [`INHERIT`], it waits for
    /// [`Self::count_up_to`].
    ///
    /// # Errors
    /// The system's own; `ENOSPC`: all debug registers are taken.
    pub fn of_instruction(address: u64, thread: u32, flags: u64) -> io::Result<Self> {
        let attr = PerfEventAttr {
            bp_type: BREAKPOINT_EXECUTED,
            config1: address,
            // Of executed instructions, a word's length is wanted (perf_event_open(2), `bp_len`).
            config2: size_of::<libc::c_long>() as u64,
            // Each is a sample, by which the kernel counts up to the last; it does not where threads inherit the event.
            sample_period: u64::from(flags & INHERIT == 0),
            read_format: READ_TIMES,
            flags: flags | EXCLUDE_KERNEL | EXCLUDE_HV,
            ..PerfEventAttr::new(PERF_TYPE_BREAKPOINT, 0)
        };
        attr.open(thread, None).map(Self)
    }

    /// Lets a counter of instructions count, which stops by itself after so many.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_up_to(&self, times: u16) -> io::Result<()> {
        control(&self.0, IOC_REFRESH, i32::from(times))
    }

    /// Lets it count.
    ///
    /// # Errors
    /// The system's own.
    pub fn enable(&self) -> io::Result<()> {
        control(&self.0, IOC_ENABLE, 0)
    }

    /// Stops it.
    ///
    /// # Errors
    /// The system's own.
    pub fn disable(&self) -> io::Result<()> {
        control(&self.0, IOC_DISABLE, 0)
    }

    /// What it stands at.
    ///
    /// # Errors
    /// The system's own.
    pub fn read(&mut self) -> io::Result<PerfCount> {
        let mut bytes = [0; 24];
        self.0.read_exact(&mut bytes)?;
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]));
        Ok(PerfCount { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}

impl PerfCount {
    /// Events, made up for in proportion to the time that it did not count.
    pub fn scaled(&self) -> u64 {
        match self.running_ns {
            0 => 0,
            running if running < self.enabled_ns => {
                (self.value as f64 * (self.enabled_ns as f64 / running as f64)) as u64
            }
            _ => self.value,
        }
    }
}

/// Sends the records of `event` to the ring of `leader`, which must be on the same CPU.
///
/// # Errors
/// The system's own.
pub fn redirect(event: &File, leader: &File) -> io::Result<()> {
    control(event, IOC_SET_OUTPUT, leader.as_raw_fd())
}

/// Lets an event that was opened with [`DISABLED`] count, or stops it, with those that its threads' children inherited.
///
/// # Errors
/// The system's own.
pub fn switch(event: &File, on: bool) -> io::Result<()> {
    control(event, if on { IOC_ENABLE } else { IOC_DISABLE }, 0)
}

fn control(event: &File, request: u32, argument: i32) -> io::Result<()> {
    // The type of requests is the C library's: `unsigned long` in glibc, `int` in musl.
    // SAFETY: an open perf event; the call takes a number or a descriptor and no memory.
    match unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapping;

    #[test]
    fn the_attributes_have_the_documented_size() {
        // PERF_ATTR_SIZE_VER5
        assert_eq!(size_of::<PerfEventAttr>(), 112);
        assert_eq!(std::mem::offset_of!(PerfEventAttr, sample_regs_user), 80);
        assert_eq!(std::mem::offset_of!(PerfEventAttr, clockid), 92);
    }

    #[test]
    fn a_count_is_made_up_for_the_time_that_it_did_not_run() {
        let count = |enabled_ns, running_ns| PerfCount { value: 10, enabled_ns, running_ns }.scaled();
        assert_eq!((count(5, 5), count(10, 5), count(5, 0), count(0, 0)), (10, 20, 0, 0));
    }

    /// The kernel counts page faults without a PMU: the calls and what they give are right.
    #[test]
    fn page_faults_are_counted_while_it_is_enabled() {
        const PAGE_FAULTS: u64 = 2; // PERF_COUNT_SW_PAGE_FAULTS
        let flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV;
        let mut counter = match PerfCounter::open(PERF_TYPE_SOFTWARE, PAGE_FAULTS, 0, flags) {
            Ok(counter) => counter,
            Err(error) => return eprintln!("LEFT OUT: {error}: {:?}", refusal(&error)),
        };
        let memory = Mapping::new(128 << 12).expect("memory");
        let _ = memory.advise_huge(false);
        let touch = |pages: std::ops::Range<usize>| {
            for page in pages {
                // SAFETY: within the mapping.
                unsafe { memory.start().add(page << 12).write_volatile(1) };
            }
        };
        touch(0..64);
        counter.enable().expect("enabled");
        touch(64..128);
        counter.disable().expect("disabled");
        let count = counter.read().expect("a count");
        assert!((64..128).contains(&count.value) && count.enabled_ns == count.running_ns, "{count:?}");
    }

    #[inline(never)]
    fn executed() {
        std::hint::black_box(0);
    }

    #[test]
    fn executions_of_an_instruction_are_counted_up_to_so_many() {
        let address = executed as fn() as usize as u64;
        let mut counter = match PerfCounter::of_instruction(address, 0, DISABLED) {
            Ok(counter) => counter,
            Err(error) => return eprintln!("LEFT OUT: {error}: {:?}", refusal(&error)),
        };
        executed();
        counter.count_up_to(5).expect("counts");
        (0..3).for_each(|_| executed());
        assert_eq!(counter.read().expect("a count").value, 3);
        (0..100).for_each(|_| executed());
        let count = counter.read().expect("a count");
        assert_eq!(count.value, 5);
        let spin = std::time::Instant::now();
        while spin.elapsed() < std::time::Duration::from_millis(2) {}
        assert_eq!(counter.read().expect("a count").running_ns, count.running_ns, "its time ends with the last");
    }

    #[test]
    fn a_refusal_says_why() {
        let no_thread = PerfCounter::open(PERF_TYPE_SOFTWARE, 2, 4_194_305, EXCLUDE_KERNEL).expect_err("no thread");
        assert!(matches!(refusal(&no_thread), Refusal::NoThread | Refusal::Forbidden | Refusal::NoPerfEvents));
        for (code, why) in
            [(libc::EACCES, Refusal::Forbidden), (libc::EINVAL, Refusal::Invalid), (1234, Refusal::Other)]
        {
            assert_eq!(refusal(&io::Error::from_raw_os_error(code)), why);
        }
    }
}
