//! The same work on several threads at the same time.

use std::sync::mpsc::channel;
use std::thread::{self, Builder};

/// What `work` gives on so many threads that begin together, each with its number; the mean. On fewer where the system
/// has no more, and on this one in any case.
pub fn at_once(threads: usize, work: &(dyn Fn(usize) -> f64 + Sync)) -> f64 {
    if threads <= 1 {
        return work(0);
    }
    thread::scope(|scope| {
        let others = (1..threads).map_while(|number| {
            let (begin, begins) = channel::<()>();
            let beside = Builder::new().name("replay".into()).spawn_scoped(scope, move || {
                // Its end is a beginning too.
                let _ = begins.recv();
                work(number)
            });
            Some((begin, beside.ok()?))
        });
        let others: Vec<_> = others.collect();
        let (begin, others): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        drop(begin);
        let own = work(0);
        let count = others.len() + 1;
        let all = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (own + all.sum::<f64>()) / count as f64
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_thread_has_its_number_and_all_are_averaged() {
        let seen = AtomicU64::new(0);
        let work = |number: usize| {
            seen.fetch_or(1 << number, Ordering::Relaxed);
            number as f64
        };
        assert_eq!((at_once(4, &work), seen.swap(0, Ordering::Relaxed)), (1.5, 0b1111));
        assert_eq!((at_once(1, &work), seen.load(Ordering::Relaxed)), (0.0, 1));
    }
}
