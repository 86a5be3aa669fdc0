//! A copy of a process that we may do with as we like: it has no files, can write no memory that it shares, and ends
//! with us.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use libc::{pid_t, user_regs_struct};
use lookaside_host::Process;
use lookaside_trace::{parse_maps, MapSource, Region};

use super::area::{AREA_BYTES, FILE_BYTES, LOG, LOG_BYTES, MIRROR};
use super::injection::Lent;
use super::recorded_calls::RecordedCalls;
use super::tracee::{Stop, Tracee};

const READ: u64 = libc::PROT_READ as u64;
const WRITE: u64 = libc::PROT_WRITE as u64;
const EXECUTE: u64 = libc::PROT_EXEC as u64;

/// A copy of a process, stopped where its original was.
#[derive(Debug)]
pub(super) struct SnapshotProcess {
    pub(super) tracee: Tracee,
    /// What is behind the area in its memory.
    memory: File,
    /// The original's registers.
    pub(super) registers: user_regs_struct,
    /// Address of an instruction that makes a system call.
    pub(super) call: u64,
    /// What its original called after it was made.
    pub(super) calls: RecordedCalls,
    /// Where it may do less than its original.
    restricted: Vec<Range<u64>>,
}

impl SnapshotProcess {
    /// Makes a copy, which has just begun and whose trace is ours, into one that can do no harm. `regions`: the
    /// original's; `base`: where the area goes.
    ///
    /// # Errors
    /// Something can't be done; the copy is gone then.
    pub(super) fn prepare(
        pid: pid_t,
        (registers, call): (user_regs_struct, u64),
        regions: &[CopiedRegion],
        base: u64,
    ) -> io::Result<Self> {
        let tracee = Tracee(pid);
        let made = begin(&tracee).and_then(|()| enclose(&tracee, call, regions, base));
        match made {
            Ok(memory) => {
                let restricted = regions.iter().filter(|region| region.rights_left().is_some());
                let restricted = restricted.map(|region| region.region.start..region.region.end).collect();
                Ok(Self { tracee, memory, registers, call, calls: RecordedCalls::new(), restricted })
            }
            Err(error) => {
                end(&tracee);
                Err(error)
            }
        }
    }

    /// Writes into the area.
    pub(super) fn write(&self, offset: u32, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, u64::from(offset))
    }

    /// Reads from the area.
    pub(super) fn read(&self, offset: u32, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, u64::from(offset))
    }

    /// It may do there what its original may.
    pub(super) fn is_free(&self, range: &Range<u64>) -> bool {
        !self.restricted.iter().any(|its| its.start < range.end && range.start < its.end)
    }

    /// A word of the area.
    pub(super) fn word(&self, offset: u32) -> io::Result<u64> {
        let mut word = [0; 8];
        self.read(offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }
}

impl Drop for SnapshotProcess {
    fn drop(&mut self) {
        end(&self.tracee);
    }
}

/// Waits until it is there; from then on it ends with us.
fn begin(tracee: &Tracee) -> io::Result<()> {
    match tracee.wait(true)? {
        Some(Stop::Ended) | None => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
        Some(_) => {}
    }
    tracee.set_options(libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD)
}

fn end(tracee: &Tracee) {
    // SAFETY: no memory is involved; it is ours until we have taken note of its end.
    unsafe { libc::kill(tracee.0, libc::SIGKILL) };
    tracee.reap();
}

/// Gives it the area, and takes from it what it shares with others.
fn enclose(tracee: &Tracee, call: u64, regions: &[CopiedRegion], base: u64) -> io::Result<File> {
    let lent = Lent::take(tracee, call)?;
    let all = u64::from(AREA_BYTES);
    let fixed = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE) as u64;
    lent.call(libc::SYS_mmap, [base, all, 0, fixed, u64::MAX, 0])?;
    // A name, which has to lie in its memory: the area's first byte, once it can be read.
    lent.call(libc::SYS_mprotect, [base, 4096, READ, 0, 0, 0])?;
    let number = lent.call(libc::SYS_memfd_create, [base, 0, 0, 0, 0, 0])?;
    let memory =
        File::options().read(true).write(true).open(Process::of(tracee.0 as u32).path(&format!("fd/{number}")))?;
    memory.set_len(u64::from(FILE_BYTES))?;
    let shared = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;
    let rights = READ | WRITE | EXECUTE;
    lent.call(libc::SYS_mmap, [base, u64::from(FILE_BYTES), rights, shared, number, 0])?;
    let mirror = [base + u64::from(MIRROR), u64::from(LOG_BYTES), READ | WRITE, shared, number, u64::from(LOG)];
    lent.call(libc::SYS_mmap, mirror)?;
    for region in regions {
        if let Some(rights) = region.rights_left() {
            let Region { start, end, .. } = region.region;
            lent.call(libc::SYS_mprotect, [start, end - start, rights, 0, 0, 0])?;
        }
    }
    lent.call(libc::SYS_close_range, [0, u64::from(u32::MAX), 0, 0, 0, 0])?;
    Ok(memory)
}

/// A region of the original's, which its copy has too.
#[derive(Debug)]
pub(super) struct CopiedRegion {
    pub(super) region: Region,
    /// What is written there is seen by others.
    is_shared: bool,
}

impl CopiedRegion {
    /// Those of a listing, `/proc/PID/maps`.
    pub(super) fn listed(text: &str) -> Vec<Self> {
        let shared = |line: &str| line.split(' ').nth(1).is_some_and(|flags| flags.ends_with('s'));
        let parsed = text.lines().flat_map(|line| parse_maps(line).into_iter().map(move |region| (region, line)));
        parsed.map(|(region, line)| Self { region, is_shared: shared(line) }).collect()
    }

    /// What a copy may do there, if that is less than its original may: nothing with a device, no writing where others
    /// would see it or where code is.
    fn rights_left(&self) -> Option<u64> {
        let rights = u64::from(self.region.prot) & (READ | WRITE | EXECUTE);
        let is_device = matches!(&self.region.source, MapSource::File { path, .. }
            if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && !path.starts_with("/dev/zero"));
        let is_written = rights & WRITE != 0;
        match () {
            () if is_device => Some(0),
            () if is_written && (self.is_shared || rights & EXECUTE != 0) => Some(rights & !WRITE),
            () => None,
        }
    }
}
