//! Which CPU has most of its core to itself.
//!
//! A core's other hardware thread takes entries of its TLBs and lines of its caches. In a virtual machine it may be somebody else's, and
//! nothing here names it. That it runs shows in how many additions a cycle are left, and not at which clock.

use std::time::{Duration, Instant};

use super::affinity::Pinned;
use super::{clock, MetalError};

/// A look at a CPU, and looks at each, in turns: neighbours come and go in fractions of a second.
const LOOK: Duration = Duration::from_millis(15);
/// See [`LOOK`].
const LOOKS: usize = 8;
/// CPUs that are looked at, that at hand among them.
const MOST: usize = 8;
/// Additions one after the other, and as many abreast as fill a core for about as long: a microsecond.
const ADDS: u64 = 2048;
/// See [`ADDS`]; a multiple of 12.
const ABREAST: u64 = 12288;
/// Another CPU is gone to if it has so many times the additions a cycle.
const WORTH_WHILE: f64 = 1.02;

/// Goes to the CPU with most of its core to itself, of those that the thread may use; stays if they are alike.
pub(crate) fn settle(pinned: &mut Pinned) -> Result<(), MetalError> {
    let here = pinned.cpu();
    let cpus: Vec<usize> = std::iter::once(here).chain(pinned.others()).take(MOST).collect();
    if cpus.len() < 2 {
        return Ok(());
    }
    let mut seen = vec![Vec::new(); cpus.len()];
    for _ in 0..LOOKS {
        for (cpu, seen) in cpus.iter().zip(&mut seen) {
            // One that was taken from us meanwhile is left out.
            if pinned.move_to(*cpu).is_ok() {
                look(seen);
            }
        }
    }
    let means: Vec<(usize, f64)> = cpus.iter().zip(&seen).map(|(cpu, seen)| (*cpu, mean(seen))).collect();
    pinned.move_to(calmest(&means).unwrap_or(here))
}

/// Adds what is seen on the CPU at hand.
fn look(seen: &mut Vec<f64>) {
    let start = Instant::now();
    while start.elapsed() < LOOK {
        seen.push(additions_a_cycle());
    }
}

/// Additions a cycle that this core has left for us now; a look of a microsecond, give or take the timer's grain.
pub(crate) fn additions_a_cycle() -> f64 {
    let (row, abreast) = (clock::adds(ADDS), clock::adds_abreast(ABREAST));
    ABREAST as f64 * row.max(1) as f64 / (ADDS * abreast.max(1)) as f64
}

/// The mean of all but the highest and lowest hundredth, in which something came between.
fn mean(seen: &[f64]) -> f64 {
    let mut seen = seen.to_vec();
    seen.sort_by(f64::total_cmp);
    let cut = seen.len() / 100;
    let middle = &seen[cut..seen.len() - cut];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// The CPU with the highest figure, or the first if it is nearly as high.
fn calmest(figures: &[(usize, f64)]) -> Option<usize> {
    let (first, here) = *figures.first()?;
    let (other, most) = *figures.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(if most > WORTH_WHILE * here { other } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calmest_is_gone_to_and_one_nearly_as_calm_stayed_on() {
        assert_eq!(calmest(&[]), None);
        assert_eq!(calmest(&[(3, 4.0)]), Some(3));
        assert_eq!(calmest(&[(3, 4.0), (1, 4.05), (2, 3.0)]), Some(3));
        assert_eq!(calmest(&[(3, 4.0), (1, 4.2), (2, 4.6)]), Some(2));
    }

    #[test]
    fn what_came_between_does_not_count() {
        let mut seen = vec![4.5; 198];
        seen.extend([0.001, 900.0]);
        assert_eq!(mean(&seen), 4.5);
        assert!(mean(&[]).is_finite());
    }

    #[test]
    fn it_ends_on_a_cpu_of_its_own() {
        let Ok(mut pinned) = Pinned::here().inspect_err(|e| eprintln!("LEFT OUT: {e}")) else { return };
        let mut allowed = pinned.others();
        allowed.push(pinned.cpu());
        settle(&mut pinned).expect("it may use some CPU");
        assert!(allowed.contains(&pinned.cpu()), "{allowed:?}");
    }
}
