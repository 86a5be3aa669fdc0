//! Where the helper runs (section 4.4.5): another core under the same last-level cache, or the other hardware thread.

use lookaside_host::{allowed_cpus, bind_to, current_cpu, CpuCache, CpuTopology, Process};

use super::cpu_demand::CpuCounts;
use super::error::BakeError;
use super::settings::Placement;

/// The CPU that the helper is to stay on; `None` = any. The calling thread is the one whose entries are to be warm.
pub(crate) fn choose(placement: Placement) -> Result<Option<u32>, BakeError> {
    beside(current_cpu() as u32, placement)
}

/// The same for the entries of a thread that stays on CPU `here`; of the CPUs that the calling thread may use.
///
/// # Errors
/// There is no such CPU, or the calling thread may not use it.
pub fn beside(here: u32, placement: Placement) -> Result<Option<u32>, BakeError> {
    let allowed = allowed_cpus()
        .map_err(|e| BakeError::Unsupported(format!("the system does not say which CPUs this thread may use: {e}")))?;
    let cpu = here as usize;
    let siblings = CpuTopology::here().siblings(cpu).unwrap_or_default();
    match placement {
        Placement::Cpu(cpu) if allowed.contains(&(cpu as usize)) => Ok(Some(cpu)),
        Placement::Cpu(cpu) => {
            let text = format!("cpu={cpu}: this program may not use that CPU (see `taskset -p`)");
            Err(BakeError::Setting(text))
        }
        Placement::Sibling => match siblings.iter().find(|&other| *other != cpu && allowed.contains(other)) {
            Some(&other) => Ok(Some(other as u32)),
            None => {
                Err(BakeError::Setting(format!("cpu=sibling: CPU {here} has no second hardware thread; use cpu=auto")))
            }
        },
        Placement::Auto => {
            let can_be = |other: &usize| *other != cpu && !siblings.contains(other) && allowed.contains(other);
            Ok(last_cache(cpu).into_iter().flat_map(|cache| cache.cpus).find(can_be).map(|other| other as u32))
        }
    }
}

/// CPUs under the same last-level cache as the one that a process last ran on, as far as this program may use them;
/// none where the system does not say. Two threads that are busy the scheduler itself keeps on different ones, also
/// after the process has moved, which one CPU chosen now would not.
pub(crate) fn near(pid: u32) -> Vec<u32> {
    let cpu = Process::of(pid).stat().ok().and_then(|stat| stat.last_cpu());
    let (Some(cache), Ok(allowed)) = (cpu.and_then(last_cache), allowed_cpus()) else { return Vec::new() };
    cache.cpus.into_iter().filter(|cpu| allowed.contains(cpu)).map(|cpu| cpu as u32).collect()
}

/// Bytes of the last-level cache of the CPU that the calling thread runs on; `None` where the system does not say.
pub(super) fn last_cache_bytes() -> Option<u64> {
    last_cache(current_cpu())?.bytes
}

fn last_cache(cpu: usize) -> Option<CpuCache> {
    CpuTopology::here().last_cache(cpu)
}

/// How many CPUs the calling thread may use, and the system runs; `u32::MAX` each where it does not say.
pub(super) fn cpus() -> CpuCounts {
    CpuCounts {
        allowed: allowed_cpus().map_or(u32::MAX, |allowed| allowed.len() as u32),
        online: CpuTopology::here().online().map_or(u32::MAX, |online| online.len() as u32),
    }
}

/// Binds the calling thread to these CPUs, if there are any; tells which, if it is one. Where the system does not let
/// it, it stays where it is. -1 = none, or several.
pub(crate) fn bind(cpus: &[u32]) -> i32 {
    let all: Vec<usize> = cpus.iter().map(|&cpu| cpu as usize).collect();
    match (cpus, cpus.is_empty() || bind_to(&all).is_err()) {
        (&[cpu], false) => cpu as i32,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_a_size_that_can_be() {
        assert!(last_cache_bytes().is_none_or(|bytes| bytes >= 1 << 15));
    }

    #[test]
    fn a_process_has_its_own_cpu_near_it() {
        let allowed = allowed_cpus().expect("CPUs");
        assert!(near(std::process::id()).iter().all(|&cpu| allowed.contains(&(cpu as usize))));
        assert_eq!(near(u32::MAX), [0u32; 0]);
        let bound = std::thread::spawn(|| {
            let cpu = current_cpu() as u32;
            (bind(&[]), bind(&[cpu]) == cpu as i32, allowed_cpus().expect("CPUs").len())
        });
        assert_eq!(bound.join().expect("ended"), (-1, true, 1));
        // A CPU that is not there, and several, are no place of its own.
        let [first, .., last] = [allowed[0], allowed[allowed.len() - 1]].map(|cpu| cpu as u32);
        let not_bound = std::thread::spawn(move || {
            let none = bind(&[100_000]);
            (none, if first == last { -1 } else { bind(&[first, last]) }, allowed_cpus().expect("CPUs").len())
        });
        let several = allowed.len().min(2);
        let (none, both, left) = not_bound.join().expect("ended");
        assert_eq!((none, both), (-1, -1));
        assert!(left == several, "{left} of {allowed:?}");
    }

    #[test]
    fn a_thread_may_use_no_more_cpus_than_there_are() {
        let cpus = cpus();
        assert!(1 <= cpus.allowed && cpus.allowed <= cpus.online, "{cpus:?}");
        assert_eq!(cpus.allowed as usize, allowed_cpus().expect("CPUs").len());
    }

    /// Of each CPU here, by what the system says of it.
    #[test]
    fn the_helper_is_on_another_core_under_the_same_cache_or_on_the_other_thread_of_the_core() {
        let (allowed, topology) = (allowed_cpus().expect("CPUs"), CpuTopology::here());
        for &cpu in &allowed {
            let core = topology.siblings(cpu).unwrap_or_default();
            let mut others = topology.last_cache(cpu).map(|cache| cache.cpus).unwrap_or_default();
            others.retain(|other| allowed.contains(other) && *other != cpu && !core.contains(other));
            let chosen = beside(cpu as u32, Placement::Auto).expect("a choice");
            assert!(
                chosen.map_or(others.is_empty(), |chosen| others.contains(&(chosen as usize))),
                "{cpu}: {chosen:?}"
            );
            let twins: Vec<usize> = core.into_iter().filter(|other| *other != cpu && allowed.contains(other)).collect();
            match beside(cpu as u32, Placement::Sibling) {
                Ok(twin) => assert!(twin.is_some_and(|twin| twins.contains(&(twin as usize))), "{cpu}: {twin:?}"),
                Err(error) => {
                    let why = format!("cpu=sibling: CPU {cpu} has no second hardware thread; use cpu=auto");
                    assert!(twins.is_empty() && error.to_string().contains(&why), "{error}");
                }
            }
            assert_eq!(beside(0, Placement::Cpu(cpu as u32)), Ok(Some(cpu as u32)));
            assert_eq!(choose(Placement::Cpu(cpu as u32)), Ok(Some(cpu as u32)));
        }
    }

    #[test]
    fn a_process_has_all_cpus_of_its_cache_near_it() {
        let (allowed, ours) = (allowed_cpus().expect("CPUs"), std::process::id());
        // It may be moved between two looks.
        let found = (0..100).any(|_| {
            let cpu = Process::of(ours).stat().ok().and_then(|stat| stat.last_cpu());
            let cache = cpu.and_then(last_cache).map(|cache| cache.cpus).unwrap_or_default();
            near(ours).iter().map(|cpu| *cpu as usize).eq(cache.into_iter().filter(|cpu| allowed.contains(cpu)))
        });
        assert!(found, "{:?}", near(ours));
        let bytes = CpuTopology::here().last_cache(current_cpu()).and_then(|cache| cache.bytes);
        assert_eq!(last_cache_bytes().is_some(), bytes.is_some());
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = choose(Placement::Cpu(100_000)).expect_err("no such CPU").to_string();
        assert!(error.contains("cpu=100000"), "{error}");
        // Another one than this, if there is one at all.
        let chosen = choose(Placement::Auto).expect("a choice");
        let allowed = allowed_cpus().expect("CPUs");
        assert!(chosen.is_none_or(|cpu| allowed.contains(&(cpu as usize))));
    }
}
