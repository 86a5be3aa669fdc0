//! Where the helper runs (section 4.4.5): another core under the same last-level cache, or the other hardware thread.

use std::path::{Path, PathBuf};

use rustix::thread::{sched_getaffinity, sched_getcpu, CpuSet};

use super::cpu_demand::CpuCounts;
use super::error::BakeError;
use super::settings::Placement;

/// Where the system describes CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// The CPU that the helper is to stay on; `None` = any. The calling thread is the one whose entries are to be warm.
pub(crate) fn choose(placement: Placement) -> Result<Option<u32>, BakeError> {
    beside(sched_getcpu() as u32, placement)
}

/// The same for the entries of a thread that stays on CPU `here`; of the CPUs that the calling thread may use.
///
/// # Errors
/// There is no such CPU, or the calling thread may not use it.
pub fn beside(here: u32, placement: Placement) -> Result<Option<u32>, BakeError> {
    let refused = |e: rustix::io::Errno| BakeError::Unsupported(format!("the CPUs of this thread are not told: {e}"));
    let allowed = sched_getaffinity(None).map_err(refused)?;
    let may = |cpu: &u32| (*cpu as usize) < CpuSet::MAX_CPU && allowed.is_set(*cpu as usize);
    let siblings = list(&Path::new(CPUS).join(format!("cpu{here}/topology/thread_siblings_list")));
    match placement {
        Placement::Cpu(cpu) if may(&cpu) => Ok(Some(cpu)),
        Placement::Cpu(cpu) => {
            let text = format!("cpu={cpu}: not one that this program may use (see `taskset -p`)");
            Err(BakeError::Setting(text))
        }
        Placement::Sibling => match siblings.iter().find(|&cpu| *cpu != here && may(cpu)) {
            Some(&cpu) => Ok(Some(cpu)),
            None => Err(BakeError::Setting(format!(
                "cpu=sibling: CPU {here} has no other hardware thread here; cpu=auto does"
            ))),
        },
        Placement::Auto => {
            let shared = last_cache(&Path::new(CPUS).join(format!("cpu{here}/cache")));
            Ok(shared.into_iter().find(|cpu| *cpu != here && !siblings.contains(cpu) && may(cpu)))
        }
    }
}

/// CPUs under the same last-level cache as the one that a process last ran on, as far as this program may use them;
/// none where the system does not tell. Two threads that are busy the scheduler itself keeps on different ones, also
/// after the process has moved, which one CPU chosen now would not.
pub(crate) fn near(pid: u32) -> Vec<u32> {
    let stat = i32::try_from(pid).ok().and_then(|pid| procfs::process::Process::new(pid).ok()?.stat().ok());
    let (Some(cpu), Ok(allowed)) = (stat.and_then(|stat| stat.processor), sched_getaffinity(None)) else {
        return Vec::new();
    };
    let mut shared = last_cache(&Path::new(CPUS).join(format!("cpu{cpu}/cache")));
    shared.retain(|&cpu| (cpu as usize) < CpuSet::MAX_CPU && allowed.is_set(cpu as usize));
    shared
}

/// CPUs under the last of these caches.
fn last_cache(caches: &Path) -> Vec<u32> {
    last_index(caches).map(|cache| list(&cache.join("shared_cpu_list"))).unwrap_or_default()
}

/// Bytes of the last-level cache of the CPU that the calling thread runs on; `None` where the system does not say.
pub(super) fn last_cache_bytes() -> Option<u64> {
    let cache = last_index(&Path::new(CPUS).join(format!("cpu{}/cache", sched_getcpu())))?;
    parse_size(std::fs::read_to_string(cache.join("size")).ok()?.trim())
}

/// Where the last of these caches is described.
fn last_index(caches: &Path) -> Option<PathBuf> {
    let levels = (0..8).filter_map(|index| {
        let cache = caches.join(format!("index{index}"));
        let level: u32 = std::fs::read_to_string(cache.join("level")).ok()?.trim().parse().ok()?;
        Some((level, cache))
    });
    levels.max_by_key(|(level, _)| *level).map(|(_, cache)| cache)
}

/// `32768K` in bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('K') {
        Some(digits) => (digits, 10),
        None => text.strip_suffix('M').map_or((text, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How many CPUs the calling thread may use, and the system runs; `u32::MAX` each where it does not say.
pub(super) fn cpus() -> CpuCounts {
    let online = list(&Path::new(CPUS).join("online")).len() as u32;
    CpuCounts {
        allowed: sched_getaffinity(None).map_or(u32::MAX, |allowed| allowed.count()),
        online: if online == 0 { u32::MAX } else { online },
    }
}

/// A list of CPUs as the kernel writes it; none where there is no such file.
fn list(path: &Path) -> Vec<u32> {
    std::fs::read_to_string(path).map(|text| parse_list(&text)).unwrap_or_default()
}

/// `0-3,7` in full.
fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // No machine has more; a longer range is no list of CPUs.
        (last.checked_sub(first)? < 1 << 16).then_some(first..=last)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Binds the calling thread to these CPUs, if there are any; tells which, if it is one. Where the system does not let
/// it, it stays where it is. -1 = none, or several.
pub(crate) fn bind(cpus: &[u32]) -> i32 {
    let mut only = CpuSet::new();
    for &cpu in cpus {
        only.set(cpu as usize);
    }
    match (cpus, cpus.is_empty() || rustix::thread::sched_setaffinity(None, &only).is_err()) {
        (&[cpu], false) => cpu as i32,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,7\n"), [0, 1, 2, 3, 7]);
        assert_eq!(parse_list("5"), [5]);
        assert_eq!(parse_list(""), [0u32; 0]);
        assert_eq!(parse_list("3-1,x,0-4294967295"), [0u32; 0]);
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!((parse_size("32768K"), parse_size("8M"), parse_size("7")), (Some(32 << 20), Some(8 << 20), Some(7)));
        assert_eq!((parse_size(""), parse_size("K"), parse_size("18446744073709551615K")), (None, None, None));
        assert!(last_cache_bytes().is_none_or(|bytes| bytes >= 1 << 15));
    }

    #[test]
    fn a_process_has_its_own_cpu_near_it() {
        let allowed = sched_getaffinity(None).expect("a set");
        assert!(near(std::process::id()).iter().all(|&cpu| allowed.is_set(cpu as usize)));
        assert_eq!(near(u32::MAX), [0u32; 0]);
        let bound = std::thread::spawn(|| {
            let cpu = sched_getcpu() as u32;
            (bind(&[]), bind(&[cpu]) == cpu as i32, sched_getaffinity(None).expect("a set").count())
        });
        assert_eq!(bound.join().expect("ended"), (-1, true, 1));
    }

    #[test]
    fn a_thread_may_use_no_more_cpus_than_there_are() {
        let cpus = cpus();
        assert!(1 <= cpus.allowed && cpus.allowed <= cpus.online, "{cpus:?}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = choose(Placement::Cpu(100_000)).expect_err("no such CPU").to_string();
        assert!(error.contains("cpu=100000"), "{error}");
        // Another one than this, if there is one at all.
        let chosen = choose(Placement::Auto).expect("a choice");
        let allowed = sched_getaffinity(None).expect("a set");
        assert!(chosen.is_none_or(|cpu| allowed.is_set(cpu as usize)));
    }
}
