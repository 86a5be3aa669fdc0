//! One hardware counter around one walk.

use std::io;

use lookaside_host::perf::{refusal, PerfCounter, Refusal, DISABLED, EXCLUDE_HV, EXCLUDE_KERNEL};

/// What an event of the calling thread, outside the kernel, counts while `work` is done.
///
/// # Errors
/// Why the system refuses, in words; or the counter does not run all the time, or cannot be read.
pub(crate) fn count_around(kind: u32, code: u64, work: impl FnOnce()) -> Result<u64, String> {
    let flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV;
    let mut counter = PerfCounter::open(kind, code, 0, flags).map_err(|error| refused(&error))?;
    let failed = |error: io::Error| error.to_string();
    counter.enable().map_err(failed)?;
    work();
    counter.disable().map_err(failed)?;
    let count = counter.read().map_err(failed)?;
    if count.running_ns < count.enabled_ns || count.enabled_ns == 0 {
        return Err("others use the counters (perf, an NMI watchdog)".into());
    }
    Ok(count.value)
}

/// Why, in words that say what can be done about it.
fn refused(error: &io::Error) -> String {
    let reason = match refusal(error) {
        Refusal::NoEvent => "no PMU here, or none that has it",
        Refusal::Forbidden => "kernel.perf_event_paranoid (2 or less lets a user in), or a seccomp profile, forbids it",
        Refusal::NoPerfEvents => "this system has no perf_event_open",
        Refusal::Invalid => "the PMU does not know it",
        Refusal::NoThread | Refusal::TooManyFiles | Refusal::Other => return error.to_string(),
    };
    format!("{reason} ({error})")
}

#[cfg(test)]
mod tests {
    use lookaside_host::perf::PERF_TYPE_SOFTWARE;
    use lookaside_host::Mapping;

    use super::*;

    /// The kernel counts page faults without a PMU: the calls and what they give are right.
    #[test]
    fn page_faults_are_counted() {
        const PAGE_FAULTS: u64 = 2; // PERF_COUNT_SW_PAGE_FAULTS
        if let Err(reason) = count_around(PERF_TYPE_SOFTWARE, PAGE_FAULTS, || ()) {
            return eprintln!("LEFT OUT: {reason}");
        }
        let (pages, bytes) = (64u64, 64 << 12);
        let memory = Mapping::new(bytes).expect("memory");
        let _ = memory.advise_huge(false);
        // SAFETY: bytes of the mapping.
        let touch = || (0..bytes).step_by(4096).for_each(|i| unsafe { memory.start().add(i).write(1) });
        let faults = count_around(PERF_TYPE_SOFTWARE, PAGE_FAULTS, touch).expect("a software event always runs");
        assert!((pages..2 * pages).contains(&faults), "{faults} faults of {pages} pages");
    }
}
