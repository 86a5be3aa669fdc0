//! Building an input on all CPUs. What comes out does not depend on how many there are.

use std::sync::Mutex;
use std::thread::{available_parallelism, scope, Builder};

/// Does `work` on each part, on as many threads as this process may use CPUs. No part may need another's result.
pub(crate) fn at_once<P: Send>(parts: impl Iterator<Item = P> + Send, work: impl Fn(P) + Sync) {
    let threads = available_parallelism().map_or(1, usize::from);
    let parts = Mutex::new(parts);
    let next = || parts.lock().ok().and_then(|mut parts| parts.next());
    let work_on = || {
        while let Some(part) = next() {
            work(part);
        }
    };
    scope(|scope| {
        for _ in 1..threads {
            // Where the system has no thread to give, those that there are do all.
            if Builder::new().spawn_scoped(scope, work_on).is_err() {
                break;
            }
        }
        work_on();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_worked_on_once() {
        let mut numbers = vec![0u32; 10_007];
        at_once(numbers.chunks_mut(10).enumerate(), |(number, part)| {
            part.iter_mut().for_each(|n| *n += number as u32);
        });
        assert!(numbers.iter().enumerate().all(|(i, &n)| n as usize == i / 10));
        at_once(std::iter::empty::<()>(), |()| panic!("there is no part"));
    }
}
