//! The counter that batches of touches are timed by.

/// The counter: one that all CPUs share.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The clock in nanoseconds: no counter that a user may read is as fine everywhere.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    super::clock::now_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_on_while_time_does() {
        let first = ticks();
        std::thread::sleep(std::time::Duration::from_millis(1));
        // No counter is slower than a megahertz.
        assert!(ticks() - first >= 1_000, "{first}");
    }
}
