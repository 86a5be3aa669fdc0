//! Windows that take turns, as the program's threads do that share a CPU: after each turn a thread finds less of its
//! table lines in the caches.

use super::pass::{Pass, PassPlace, ReplaySteps};

/// Parts the windows, which these threads made, into groups of at most `on_each`, each of another thread than the
/// others of its group and as near to them as can be; by their numbers.
pub fn groups_in_turns(threads: &[(u32, u32)], on_each: usize) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..threads.len()).collect();
    let mut groups = Vec::new();
    while !left.is_empty() {
        let mut group: Vec<usize> = vec![left.remove(0)];
        while group.len() < on_each {
            let is_other = |&window: &usize| group.iter().all(|&member| threads[member] != threads[window]);
            let Some(next) = left.iter().position(is_other) else { break };
            group.push(left.remove(next));
        }
        groups.push(group);
    }
    groups
}

/// Seconds of CPU of the timed visits of all these windows, as many times as they stand for. Each is visited for
/// `seconds` and a part at least, then the next one goes on.
pub fn time_in_turns(windows: &[&ReplaySteps], seconds: f64, place: PassPlace, pass: Pass) -> f64 {
    let time_part = |window: usize, part: usize| windows[window].time_part(part, place, pass);
    windows.iter().for_each(|window| window.warm(place));
    let parts: Vec<usize> = windows.iter().map(|window| window.parts()).collect();
    let taken = take_turns(&parts, seconds, time_part);
    windows.iter().zip(taken).map(|(window, seconds)| window.weight() * seconds).sum()
}

/// Seconds of all parts of each window, one turn after the other.
fn take_turns(parts: &[usize], seconds: f64, time_part: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let (mut next, mut taken) = (vec![0; parts.len()], vec![0.0; parts.len()]);
    while next.iter().zip(parts).any(|(next, parts)| next < parts) {
        for window in 0..parts.len() {
            let mut turn = 0.0;
            while next[window] < parts[window] {
                turn += time_part(window, next[window]);
                next[window] += 1;
                if turn >= seconds {
                    break;
                }
            }
            taken[window] += turn;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_of_different_threads_are_a_group() {
        let threads = [1, 1, 2, 2, 1, 3, 3, 3].map(|thread| (0, thread));
        let alone: Vec<Vec<usize>> = (0..8).map(|window| vec![window]).collect();
        assert_eq!(groups_in_turns(&threads, 1), alone);
        assert_eq!(groups_in_turns(&threads, 0), alone);
        assert_eq!(groups_in_turns(&threads, 2), [vec![0, 2], vec![1, 3], vec![4, 5], vec![6], vec![7]]);
        assert_eq!(groups_in_turns(&threads, 9), [vec![0, 2, 5], vec![1, 3, 6], vec![4, 7]]);
        // The same number in another process is another thread.
        assert_eq!(groups_in_turns(&[(0, 1), (1, 1)], 2), [[0, 1]]);
        assert!(groups_in_turns(&[], 2).is_empty());
    }

    #[test]
    fn each_goes_on_where_it_was() {
        let made = RefCell::new(Vec::new());
        let time_part = |window, part| {
            made.borrow_mut().push((window, part));
            1.0
        };
        assert_eq!(take_turns(&[3, 0, 5], 1.5, time_part), [3.0, 0.0, 5.0]);
        assert_eq!(made.take(), [(0, 0), (0, 1), (2, 0), (2, 1), (0, 2), (2, 2), (2, 3), (2, 4)]);
        assert_eq!(take_turns(&[2, 1], f64::INFINITY, time_part), [2.0, 1.0]);
        assert_eq!(made.take(), [(0, 0), (0, 1), (1, 0)]);
    }

    proptest! {
        /// Each part of each window comes once, in its order, whatever a turn takes.
        #[test]
        fn all_parts_are_made(
            parts in prop::collection::vec(0usize..20, 0..6),
            seconds in 0.0f64..9.0,
            part in 0.0f64..3.0,
        ) {
            let made = RefCell::new(vec![0; parts.len()]);
            let taken = take_turns(&parts, seconds, |window, number| {
                assert_eq!(std::mem::replace(&mut made.borrow_mut()[window], number + 1), number);
                part
            });
            prop_assert_eq!(&made.take(), &parts);
            for (taken, parts) in taken.iter().zip(parts) {
                prop_assert!((taken - part * parts as f64).abs() < 1e-9);
            }
        }
    }
}
