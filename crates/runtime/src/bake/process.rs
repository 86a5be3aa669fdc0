//! Other processes: which there are, and what of their memory is worth baking.

use lookaside_host::{all_processes, control_group_processes, HostError, Process, Vma};
use serde::{Deserialize, Serialize};

use super::error::BakeError;
use super::region::BakedRegion;

/// A mapping with fewer bytes in small pages is left out: its page-table entries fit in a first-level cache, 8 bytes a
/// page.
const LEAST_BYTES: u64 = 4 << 20;

/// A mapping of a process that is worth baking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BakeableMapping {
    /// Where it lies.
    pub region: BakedRegion,
    /// Bytes of it that have frames by small pages.
    pub small_bytes: u64,
    /// Bytes of it that huge pages map; they need no baking.
    pub huge_bytes: u64,
    /// The file, or what the kernel calls it.
    pub name: String,
}

/// Which program a process runs: another one after its number was given anew, or after an exec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Its name, as `ps` has it.
    pub comm: String,
    started_ticks: u64,
    code_start: u64,
    stack_start: u64,
}

fn refused(pid: u32, error: &HostError) -> BakeError {
    BakeError::Unsupported(match () {
        () if error.is_missing() => format!("process {pid}: there is none"),
        () if error.is_forbidden() => format!("process {pid}: another user's; needs root or CAP_SYS_PTRACE"),
        () => format!("process {pid}: {error}"),
    })
}

impl Identity {
    /// Of the program that the process runs now.
    ///
    /// # Errors
    /// There is no such process (a zombie counts as none).
    pub fn of(pid: u32) -> Result<Self, BakeError> {
        let stat = Process::of(pid).stat().map_err(|e| refused(pid, &e))?;
        if stat.has_ended() {
            return Err(BakeError::Unsupported(format!("process {pid}: it has ended")));
        }
        Ok(Self {
            started_ticks: stat.start_ticks(),
            code_start: stat.code_start(),
            stack_start: stat.stack_start(),
            comm: stat.comm,
        })
    }
}

/// A process's mappings with at least 4 MiB in small pages, by address. Reading them takes the kernel some 10 ms a GiB.
///
/// # Errors
/// No such process, or it may not be looked at.
pub fn mappings(pid: u32) -> Result<Vec<BakeableMapping>, BakeError> {
    let vmas = Process::of(pid).smaps().map_err(|e| refused(pid, &e))?;
    Ok(vmas.iter().filter_map(worth_baking).collect())
}

/// What of an area is worth baking, if it is.
fn worth_baking(vma: &Vma) -> Option<BakeableMapping> {
    let huge_bytes = vma.huge_bytes();
    let small_bytes = vma.resident_bytes.saturating_sub(huge_bytes);
    let is_kernels = matches!(vma.name.as_str(), "[vdso]" | "[vvar]" | "[vsyscall]");
    let is_worth = vma.page_bytes <= super::PAGE_BYTES && !is_kernels && small_bytes >= LEAST_BYTES;
    is_worth.then(|| BakeableMapping {
        region: BakedRegion { start: vma.start, len: vma.end - vma.start },
        small_bytes,
        huge_bytes,
        name: vma.shown_name().into(),
    })
}

/// Processes with this name (`comm`: at most 15 bytes of the program's).
///
/// # Errors
/// The system does not list them.
pub fn named(comm: &str) -> Result<Vec<u32>, BakeError> {
    let all = all_processes().map_err(|e| BakeError::Unsupported(e.to_string()))?;
    let is_named = |pid: u32| Process::of(pid).stat().is_ok_and(|stat| stat.comm == comm);
    Ok(all.into_iter().filter(|&pid| pid != std::process::id() && is_named(pid)).collect())
}

/// A process and all that come from it, the process first. Those that have ended meanwhile may be among them.
pub fn family(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        at += 1;
        family.extend(Process::hold(parent).and_then(|process| process.children()).unwrap_or_default());
    }
    family
}

/// Processes of a control group and those below it.
///
/// # Errors
/// No such group.
pub fn members(group: &std::path::Path) -> Result<Vec<u32>, BakeError> {
    control_group_processes(group)
        .map_err(|e| BakeError::Setting(format!("{e}; name the folder of a control group (below /sys/fs/cgroup)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_mappings_in_small_pages_are_found() {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = 16usize << 20;
        // Between two pages without access: the kernel would join it with another test's mapping beside it.
        // SAFETY: a new mapping wherever the system likes.
        let reserved = unsafe { libc::mmap(std::ptr::null_mut(), bytes + 8192, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(reserved, libc::MAP_FAILED);
        let at = reserved.wrapping_byte_add(4096);
        // SAFETY: within what was just reserved.
        assert_eq!(unsafe { libc::mprotect(at, bytes, access) }, 0);
        // SAFETY: advice about it.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        let ours = |pid| mappings(pid).expect("mappings").into_iter().find(|m| m.region.start == at as u64);
        let pid = std::process::id();
        assert_eq!(ours(pid), None, "nothing of it is resident");
        for page in (0..bytes / 2).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { at.cast::<u8>().add(page).write_volatile(1) };
        }
        let found = ours(pid).expect("a mapping");
        assert_eq!((found.region.len, found.small_bytes, found.huge_bytes), (bytes as u64, bytes as u64 / 2, 0));
        // SAFETY: the mapping above.
        unsafe { libc::munmap(reserved, bytes + 8192) };
    }

    #[test]
    fn what_is_in_small_pages_and_large_enough_is_worth_baking() {
        let of = |vma: Vma| worth_baking(&vma).map(|found| (found.small_bytes, found.huge_bytes, found.name));
        let vma = Vma { start: 1 << 30, end: 2 << 30, page_bytes: 4096, resident_bytes: 4 << 20, ..Vma::default() };
        assert_eq!(of(vma.clone()), Some((4 << 20, 0, "[anonymous]".into())));
        assert_eq!(worth_baking(&vma).map(|found| found.region), Some(BakedRegion { start: 1 << 30, len: 1 << 30 }));
        assert_eq!(of(Vma { resident_bytes: (4 << 20) - 4096, ..vma.clone() }), None);
        let mixed = Vma { resident_bytes: 10 << 20, anonymous_huge_bytes: 2 << 20, ..vma.clone() };
        let shared = Vma { shared_huge_bytes: 4 << 20, name: "/dev/shm/x".into(), ..mixed.clone() };
        assert_eq!(of(mixed), Some((8 << 20, 2 << 20, "[anonymous]".into())));
        assert_eq!(of(shared.clone()), Some((4 << 20, 6 << 20, "/dev/shm/x".into())));
        assert_eq!(of(Vma { shared_huge_bytes: 6 << 20, ..shared }), None, "2 MiB are left");
        assert_eq!(of(Vma { page_bytes: 2 << 20, ..vma.clone() }), None, "reserved huge pages");
        for name in ["[vdso]", "[vvar]", "[vsyscall]"] {
            assert_eq!(of(Vma { name: name.into(), ..vma.clone() }), None);
        }
    }

    #[test]
    fn why_a_process_is_not_looked_at_is_said_in_a_line() {
        let of =
            |errno| refused(7, &HostError::io("/proc/7/smaps", std::io::Error::from_raw_os_error(errno))).to_string();
        assert_eq!([libc::ENOENT, libc::ESRCH].map(of), ["process 7: there is none"; 2]);
        assert_eq!(of(libc::EACCES), "process 7: another user's; needs root or CAP_SYS_PTRACE");
        assert!(of(libc::EIO).starts_with("process 7: /proc/7/smaps: Input/output error"), "{}", of(libc::EIO));
    }

    /// Another one's name is no part of its own, and this process is never among them.
    #[test]
    fn processes_are_found_by_their_name() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let ours = Process::own().stat().expect("its line").comm;
        let its = Process::of(child.id()).stat().expect("it runs").comm;
        assert!(named(&its).expect("processes").contains(&child.id()));
        assert!(!named(&its[1..]).expect("processes").contains(&child.id()));
        assert!(!named(&ours).expect("processes").contains(&std::process::id()));
        child.kill().expect("it runs");
        let zombie = loop {
            match Identity::of(child.id()) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(zombie, format!("process {}: it has ended", child.id()));
        child.wait().expect("it ends");
    }

    #[test]
    fn a_family_has_those_that_were_started() {
        let ours = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let found = family(ours);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(found[0] == ours && found.contains(&child.id()), "{found:?}");
        assert_eq!(family(u32::MAX), [u32::MAX]);
    }

    #[test]
    fn who_is_not_there_is_named() {
        for error in
            [mappings(u32::MAX).map(|_| ()), mappings(4_194_305).map(|_| ()), Identity::of(4_194_305).map(|_| ())]
        {
            assert!(error.expect_err("refused").to_string().starts_with("process "));
        }
        assert!(members(std::path::Path::new("/nonexistent"))
            .expect_err("refused")
            .to_string()
            .contains("control group"));
        assert_eq!(Identity::of(std::process::id()), Identity::of(std::process::id()));
    }
}
