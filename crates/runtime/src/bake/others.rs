//! Who else wants something: whether the program does anything, and whether other threads want the helper's CPU.

/// How often `auto` looks whether the program does anything.
pub(super) const IDLE_NANOS: u64 = 20_000_000;
/// A program that uses less than this part of one CPU is idle.
const IDLE_PART: u64 = 20;
/// Time of rounds after which `auto` looks whether others want its CPU.
const CROWD_NANOS: u64 = 2_000_000;
/// Shortest and longest rest where they do; the longer, the longer it goes on.
const REST_NANOS: (u64, u64) = (50_000_000, 1_600_000_000);

/// What the program does, by its CPU time.
#[derive(Debug)]
pub(super) struct Program {
    seen_at: u64,
    cpu_nanos: u64,
    is_idle: bool,
}

impl Program {
    pub(super) const fn new(now: u64) -> Self {
        Self { seen_at: now, cpu_nanos: 0, is_idle: false }
    }

    /// Looks again if it is time to; then `cpu_nanos` is asked what the program used since it began, without the helper.
    pub(super) fn is_idle(&mut self, now: u64, cpu_nanos: impl FnOnce() -> u64) -> bool {
        let passed = now.saturating_sub(self.seen_at);
        if passed >= IDLE_NANOS {
            let used = cpu_nanos();
            self.is_idle = used.saturating_sub(self.cpu_nanos) < passed / IDLE_PART;
            (self.seen_at, self.cpu_nanos) = (now, used);
        }
        self.is_idle
    }
}

/// Whether the helper has to wait for its CPU. A lower priority would not do: a thread that never gets a CPU may hold `mmap_lock`.
#[derive(Debug)]
pub(super) struct Crowd {
    wall_nanos: u64,
    cpu_nanos: u64,
    rest_nanos: u64,
}

impl Crowd {
    pub(super) const fn new() -> Self {
        Self { wall_nanos: 0, cpu_nanos: 0, rest_nanos: REST_NANOS.0 }
    }

    /// A round took so long, and so much of a CPU; how long to rest.
    pub(super) fn after_round(&mut self, wall_nanos: u64, cpu_nanos: u64) -> u64 {
        self.wall_nanos = self.wall_nanos.saturating_add(wall_nanos);
        self.cpu_nanos = self.cpu_nanos.saturating_add(cpu_nanos);
        if self.wall_nanos < CROWD_NANOS {
            return 0;
        }
        let waited = self.wall_nanos > self.cpu_nanos.saturating_add(self.cpu_nanos / 2);
        (self.wall_nanos, self.cpu_nanos) = (0, 0);
        let rest = self.rest_nanos;
        if waited {
            self.rest_nanos = rest.saturating_mul(2).min(REST_NANOS.1);
            return rest;
        }
        self.rest_nanos = REST_NANOS.0;
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_less_than_a_twentieth_of_a_cpu_is_idle() {
        let mut program = Program::new(0);
        assert!(!program.is_idle(IDLE_NANOS - 1, || panic!("it is not asked so soon")));
        assert!(!program.is_idle(IDLE_NANOS, || IDLE_NANOS));
        assert!(program.is_idle(2 * IDLE_NANOS, || IDLE_NANOS + IDLE_NANOS / IDLE_PART - 1));
        assert!(program.is_idle(3 * IDLE_NANOS - 1, || panic!("as it was")));
        assert!(!program.is_idle(4 * IDLE_NANOS, || 2 * IDLE_NANOS));
    }

    #[test]
    fn who_waits_for_a_cpu_rests_longer_and_longer() {
        let mut crowd = Crowd::new();
        assert_eq!(crowd.after_round(CROWD_NANOS / 2, 1), 0, "too short to tell");
        assert_eq!(crowd.after_round(CROWD_NANOS, 1), REST_NANOS.0);
        let rests: Vec<u64> = (0..10).map(|_| crowd.after_round(3 * CROWD_NANOS, CROWD_NANOS)).collect();
        assert_eq!((rests[0], rests[9]), (2 * REST_NANOS.0, REST_NANOS.1));
        assert_eq!(crowd.after_round(3 * CROWD_NANOS, 3 * CROWD_NANOS), 0);
        assert_eq!(crowd.after_round(3 * CROWD_NANOS, CROWD_NANOS), REST_NANOS.0);
    }
}
