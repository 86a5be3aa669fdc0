//! Ways that are measured within this process, in turns: what is costly to build is built once for all of them.

use lookaside_stats::SplitMix64;

/// Measures every way once a round, in an order drawn anew; `measure` is told the round, from 0, and the way. Gives
/// what each way came to by round, of complete rounds only, and the error that ended it before its end. Their ratios:
/// [`lookaside_stats::ratio`].
pub fn in_turns<T, E>(
    ways: usize,
    rounds: u32,
    seed: u64,
    measure: &mut dyn FnMut(u32, usize) -> Result<T, E>,
) -> (Vec<Vec<T>>, Option<E>) {
    let mut rng = SplitMix64::new(seed);
    let mut taken: Vec<Vec<T>> = (0..ways).map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut came: Vec<Option<T>> = (0..ways).map(|_| None).collect();
        let mut order: Vec<usize> = (0..ways).collect();
        rng.shuffle(&mut order);
        for which in order {
            match measure(round, which) {
                Ok(value) => came[which] = Some(value),
                Err(error) => return (taken, Some(error)),
            }
        }
        for (all, value) in taken.iter_mut().zip(came) {
            all.extend(value);
        }
    }
    (taken, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured_once_a_round_in_its_seeds_order() {
        let run = |seed| {
            let mut asked = Vec::new();
            let (taken, ended) = in_turns(4, 6, seed, &mut |round, which| {
                asked.push(which);
                Ok::<_, ()>((round, which))
            });
            assert_eq!(ended, None);
            for (which, all) in taken.iter().enumerate() {
                assert_eq!(*all, (0..6).map(|round| (round, which)).collect::<Vec<_>>());
            }
            asked
        };
        let once = run(1);
        for round in once.chunks(4) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        assert!(once.chunks(4).any(|round| round != &once[..4]), "one order in all rounds: {once:?}");
        assert_eq!(once, run(1));
        assert_ne!(once, run(2));
    }

    #[test]
    fn a_round_that_is_not_finished_does_not_count() {
        let mut left = 11;
        let (taken, ended) = in_turns(4, 9, 1, &mut |_, which| {
            left -= 1;
            if left < 0 {
                Err("time is up")
            } else {
                Ok(which)
            }
        });
        assert_eq!((taken, ended), (vec![vec![0; 2], vec![1; 2], vec![2; 2], vec![3; 2]], Some("time is up")));
        assert_eq!(in_turns(0, 3, 1, &mut |_, _| Ok::<(), ()>(())), (Vec::new(), None));
    }
}
