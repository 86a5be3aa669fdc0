use std::sync::atomic::{AtomicU64, Ordering};

use super::super::memory::Areas;
use super::super::plan::{AreaLayout, PageKind};
use super::super::ring::TurnWork;
use super::*;

fn areas(count: usize) -> Areas {
    let layout = AreaLayout { areas: count, bytes_each: 64 << 10 };
    Areas::new(layout, PageKind::Base, &[1, 16], &mut lookaside_stats::SplitMix64::new(3)).expect("memory")
}

fn job(participants: usize, areas: &Areas, work: TurnWork) -> RingJob {
    let window = Duration::from_millis(2);
    RingJob { participants, work, start: areas.start, stride: areas.stride, area: areas.stride, window }
}

fn last_cpu() -> usize {
    *lookaside_harness::cpus::allowed().last().expect("a CPU")
}

/// A process is there, and no zombie.
fn runs(pid: libc::pid_t) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn the_token_goes_round_in_rings_of_any_size() {
    let areas = areas(5);
    for who in [ParticipantKind::Threads, ParticipantKind::Processes] {
        let mut pool = Participants::new(who, 5, last_cpu()).expect("participants");
        for (participants, work) in [
            (5, TurnWork::Lines(64 << 10)),
            (1, TurnWork::Chain(16, 1)),
            (2, TurnWork::Lines(0)),
            (1, TurnWork::Lines(0)),
            (4, TurnWork::Chain(1, 0)),
        ] {
            let timed = pool.measure(&job(participants, &areas, work), &|| false).expect("measured");
            assert!(timed.laps > 0 && timed.elapsed_ns > 0, "{timed:?}");
            let steps = participants as u64 * (timed.laps + 1);
            // Each hands the CPU to the next; who is alone has nobody to wait for.
            match participants {
                1 => assert!(timed.voluntary <= steps / 2, "{who:?} {timed:?}"),
                _ => assert!(timed.voluntary + timed.involuntary >= steps / 2, "{who:?} {timed:?}"),
            }
        }
    }
}

#[test]
fn participants_end_with_their_pool() {
    let pool = Participants::new(ParticipantKind::Processes, 3, last_cpu()).expect("participants");
    let Members::Processes(pids) = &pool.members else { panic!("processes") };
    let pids = pids.clone();
    assert!(pids.len() == 3 && pids.iter().all(|pid| runs(*pid)));
    drop(pool);
    assert!(!pids.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()));
    let pool = Participants::new(ParticipantKind::Threads, 3, last_cpu()).expect("participants");
    let ring = Arc::downgrade(&pool.ring);
    drop(pool);
    assert!(ring.upgrade().is_none(), "a thread still has the ring");
}

#[test]
fn a_participant_that_is_killed_is_told() {
    let areas = areas(3);
    let mut pool = Participants::new(ParticipantKind::Processes, 3, last_cpu()).expect("participants");
    let Members::Processes(pids) = &pool.members else { panic!("processes") };
    let pid = pids[1];
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let error = pool.measure(&job(3, &areas, TurnWork::Lines(0)), &|| false).expect_err("one is gone");
    assert_eq!(error, Early::Failed("participant 2 of 3: its process ended (signal: 9 (SIGKILL))".into()));
}

#[test]
fn a_measurement_is_stopped_in_the_middle() {
    let areas = areas(2);
    for who in [ParticipantKind::Threads, ParticipantKind::Processes] {
        let mut pool = Participants::new(who, 2, last_cpu()).expect("participants");
        let asked = AtomicU64::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) > 0;
        let hour = RingJob { window: Duration::from_secs(3600), ..job(2, &areas, TurnWork::Lines(0)) };
        assert_eq!(pool.measure(&hour, &stop), Err(Early::Interrupted));
        // And its participants end all the same.
        drop(pool);
    }
}

#[test]
fn a_cpu_that_is_not_there_ends_all_participants() {
    for who in [ParticipantKind::Threads, ParticipantKind::Processes] {
        let mut pool = Participants::new(who, 2, 1 << 20).expect("participants");
        let error = pool.measure(&job(2, &areas(2), TurnWork::Lines(0)), &|| false).expect_err("no CPU");
        assert!(matches!(&error, Early::Failed(why) if why.contains("participant")), "{error:?}");
    }
}
