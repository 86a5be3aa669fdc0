//! Who else wants something: whether the program does anything, and whether other threads want the CPUs.

/// How often `auto` looks whether the program does anything, and whether there is a CPU left.
pub(super) const IDLE_NANOS: u64 = 20_000_000;
/// How long it rests where there is none, before it looks again: looking disturbs nobody.
pub(super) const CROWDED_NANOS: u64 = 50_000_000;
/// A program that uses less than this part of one CPU is idle.
const IDLE_PART: u64 = 20;
/// Time of rounds after which `auto` looks whether others want its CPU.
const CROWD_NANOS: u64 = 2_000_000;
/// Shortest and longest rest where they do; the longer, the longer it goes on.
const REST_NANOS: (u64, u64) = (50_000_000, 1_600_000_000);

/// How many CPUs there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// That the program and its helper may use.
    pub allowed: u32,
    /// That the system runs; `u32::MAX`: it does not say.
    pub online: u32,
}

/// What the system says of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDemand {
    /// CPU time of the program since it began, without the helper, in nanoseconds.
    pub program_nanos: u64,
    /// Threads of all the system that run or wait for a CPU, without the helper, which is the one that asks; `None`: it
    /// does not say.
    pub runnable: Option<u32>,
}

/// Threads that run or wait for a CPU, by the text of `/proc/loadavg` (proc(5): the fourth field, before the slash),
/// without the one that reads it.
pub fn runnable(loadavg: &[u8]) -> Option<u32> {
    let field = loadavg.split(|&byte| byte == b' ').nth(3)?;
    let digits = field.split(|&byte| byte == b'/').next().filter(|digits| !digits.is_empty())?;
    let threads = digits
        .iter()
        .try_fold(0u32, |number, &digit| number.checked_mul(10)?.checked_add((digit as char).to_digit(10)?))?;
    Some(threads.saturating_sub(1))
}

/// What there is beside the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuAvailability {
    /// A CPU for it, and a program that is busy.
    Free,
    /// The program does nothing.
    Idle,
    /// More threads than CPUs, or a program that uses all of its own.
    Crowded,
}

/// Whether there is a CPU for the helper, and anything to help, by looking now and then. What it can't see are the
/// waits that it causes itself: a thread that sleeps often gets its CPU at once, and the scheduler then moves others
/// onto the program's.
#[derive(Debug)]
pub(super) struct CpuWatch {
    cpus: CpuCounts,
    seen_at: u64,
    cpu_nanos: u64,
    /// Runnable threads of late, in sixteenths; `None` before the first look.
    runnable: Option<u32>,
    looked: bool,
    room: CpuAvailability,
}

impl CpuWatch {
    pub(super) const fn new(now: u64, cpus: CpuCounts) -> Self {
        Self { cpus, seen_at: now, cpu_nanos: 0, runnable: None, looked: false, room: CpuAvailability::Free }
    }

    /// Looks again if it is time to: at first, then each [`IDLE_NANOS`]. Only then `busy` is asked.
    pub(super) fn room(&mut self, now: u64, busy: impl FnOnce() -> CpuDemand) -> CpuAvailability {
        let passed = now.saturating_sub(self.seen_at);
        if self.looked && passed < IDLE_NANOS {
            return self.room;
        }
        let CpuDemand { program_nanos, runnable } = busy();
        let used = program_nanos.saturating_sub(self.cpu_nanos);
        self.runnable = runnable.map(|threads| {
            let sixteenths = threads.saturating_mul(16);
            // One look sees a moment: the fourth part of each counts.
            self.runnable.map_or(sixteenths, |of_late| (of_late / 4).saturating_mul(3).saturating_add(sixteenths / 4))
        });
        let crowd = self.cpus.online.saturating_mul(16).saturating_add(8);
        let all_nanos = passed.saturating_mul(u64::from(self.cpus.allowed));
        // At the first look nothing is known of what the program uses.
        self.room = if self.looked && used < passed / IDLE_PART {
            CpuAvailability::Idle
        } else if self.runnable.is_some_and(|threads| threads > crowd)
            || self.looked && used.saturating_add(passed / 2) > all_nanos
        {
            CpuAvailability::Crowded
        } else {
            CpuAvailability::Free
        };
        (self.looked, self.seen_at, self.cpu_nanos) = (true, now, program_nanos);
        self.room
    }
}

/// Whether the helper has to wait for its CPU. A lower priority would not do: a thread that never gets a CPU may hold
/// `mmap_lock`.
#[derive(Debug)]
pub(super) struct CpuWait {
    wall_nanos: u64,
    cpu_nanos: u64,
    rest_nanos: u64,
}

impl CpuWait {
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

    const CPUS: CpuCounts = CpuCounts { allowed: 2, online: 4 };

    /// Looks `IDLE_NANOS` apart, each with what the program used since the one before, in hundredths of a CPU, and the
    /// threads that are runnable.
    fn rooms(looks: &[(u64, Option<u32>)]) -> Vec<CpuAvailability> {
        let mut around = CpuWatch::new(0, CPUS);
        let mut used = 0;
        let room = |(look, &(hundredths, runnable)): (usize, &(u64, Option<u32>))| {
            used += IDLE_NANOS / 100 * hundredths;
            let now = IDLE_NANOS * look as u64;
            let room = around.room(now, || CpuDemand { program_nanos: used, runnable });
            assert_eq!(around.room(now + IDLE_NANOS - 1, || panic!("it is not asked so soon")), room);
            room
        };
        looks.iter().enumerate().map(room).collect()
    }

    #[test]
    fn who_uses_less_than_a_twentieth_of_a_cpu_is_idle() {
        use CpuAvailability::{Free, Idle};
        assert_eq!(rooms(&[(0, None), (5, None), (4, Some(9)), (5, None)]), [Free, Free, Idle, Free]);
    }

    /// However long after its begin that comes: what a program used before may have been used at any time.
    #[test]
    fn the_first_look_says_nothing_of_what_is_used() {
        for used in [0, 2 * IDLE_NANOS] {
            let mut around = CpuWatch::new(0, CPUS);
            let demand = || CpuDemand { program_nanos: used, runnable: Some(1) };
            assert_eq!(around.room(IDLE_NANOS, demand), CpuAvailability::Free, "{used}");
        }
    }

    #[test]
    fn a_program_that_uses_all_of_its_cpus_leaves_none() {
        use CpuAvailability::{Crowded, Free};
        assert_eq!(rooms(&[(0, Some(2)), (150, Some(2)), (151, Some(2)), (200, None)]), [Free, Free, Crowded, Crowded]);
    }

    #[test]
    fn more_threads_than_cpus_leave_none_at_once_and_a_moment_of_them_nothing() {
        use CpuAvailability::{Crowded, Free};
        assert_eq!(rooms(&[(100, Some(5)); 3]), [Crowded; 3]);
        assert_eq!(rooms(&[(100, Some(4)); 3]), [Free; 3]);
        assert_eq!(
            rooms(&[(100, Some(3)), (100, Some(9)), (100, Some(3))]),
            [Free; 3],
            "a quarter of six more is not two"
        );
        let mut looks = vec![(100, Some(6)); 4];
        looks.extend([(100, Some(2)); 8]);
        let rooms = rooms(&looks);
        assert_eq!((rooms[3], rooms[4], rooms[11]), (Crowded, Crowded, Free), "it takes some looks to end: {rooms:?}");
    }

    /// Of four CPUs more than four and a half threads of late: three quarters of what was, a quarter of what is.
    #[test]
    fn threads_of_late_are_more_than_cpus_beyond_a_half() {
        use CpuAvailability::{Crowded, Free};
        assert_eq!(rooms(&[(100, Some(4)), (100, Some(6)), (100, Some(6))]), [Free, Free, Crowded]);
        assert_eq!(rooms(&[(100, Some(4)), (100, Some(7))]), [Free, Crowded]);
        assert_eq!(
            rooms(&[(100, Some(9)), (100, None), (100, Some(4))]),
            [Crowded, Free, Free],
            "nothing is known of late"
        );
    }

    #[test]
    fn who_waits_is_who_takes_more_than_half_as_long_again_as_its_cpu_time() {
        let after = |wall, cpu| CpuWait::new().after_round(wall, cpu);
        assert_eq!([after(3_000_000, 2_000_000), after(3_000_001, 2_000_000)], [0, REST_NANOS.0]);
        assert_eq!([after(1_999_999, 0), after(2_000_000, 0)], [0, REST_NANOS.0], "two milliseconds tell");
        // Rounds add up, and begin anew once they told.
        let mut wait = CpuWait::new();
        let rounds = [(1_000_000, 1_000_000), (1_000_000, 0), (1_000_000, 0), (500_000, 500_000), (500_000, 500_000)];
        let rests: Vec<u64> = rounds.map(|(wall, cpu)| wait.after_round(wall, cpu)).to_vec();
        assert_eq!(rests, [0, REST_NANOS.0, 0, 0, 2 * REST_NANOS.0]);
    }

    #[test]
    fn runnable_threads_are_those_of_the_fourth_field_but_for_the_reader() {
        assert_eq!(runnable(b"0.20 0.18 0.12 3/80 11206\n"), Some(2));
        assert_eq!(runnable(b"0.20 0.18 0.12 0/80 11206\n"), Some(0));
        for bad in [&b""[..], b"1 2 3", b"1 2 3 /4", b"1 2 3 x/4 5", b"1 2 3 99999999999/4 5", b"1 2 3 -1/4"] {
            assert_eq!(runnable(bad), None, "{bad:?}");
        }
        let here = std::fs::read("/proc/loadavg").expect("a file that every Linux has");
        assert!(runnable(&here).is_some());
    }

    #[test]
    fn who_waits_for_a_cpu_rests_longer_and_longer() {
        let mut crowd = CpuWait::new();
        assert_eq!(crowd.after_round(CROWD_NANOS / 2, 1), 0, "too short to tell");
        assert_eq!(crowd.after_round(CROWD_NANOS, 1), REST_NANOS.0);
        let rests: Vec<u64> = (0..10).map(|_| crowd.after_round(3 * CROWD_NANOS, CROWD_NANOS)).collect();
        assert_eq!((rests[0], rests[9]), (2 * REST_NANOS.0, REST_NANOS.1));
        assert_eq!(crowd.after_round(3 * CROWD_NANOS, 3 * CROWD_NANOS), 0);
        assert_eq!(crowd.after_round(3 * CROWD_NANOS, CROWD_NANOS), REST_NANOS.0);
    }
}
