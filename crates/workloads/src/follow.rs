//! A native run that is followed: somebody is told when it first touches a chunk of its arrays, and now and then.

use crate::memory::Observer;
use lookaside_trace::Kind;

/// Elements that are touched from one look to the next.
const LOOK: u32 = 32;

/// Who is told.
pub trait Follower {
    /// The chunk of this number is about to be touched, the first time since the run was to be seen anew.
    fn first_touch(&mut self, chunk: usize) -> Next;

    /// 32 elements were touched since the last look.
    fn look(&mut self) -> Next;
}

/// How a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// As it was.
    On,
    /// As if none of its chunks had been touched.
    Anew,
}

/// What was seen of a workload's chunks so far; made once, so that a run needs no memory of its own.
#[derive(Debug)]
pub struct Touched {
    /// Of each chunk its first byte; null: not touched yet.
    ///
    /// Loads and stores take the address from here. So none can be begun, not even by a processor that guesses that the chunk was touched, before it is known.
    starts: Vec<*mut u8>,
    until_look: u32,
    elements: u64,
}

// SAFETY: addresses of a workload's memory, which are used where the workload is borrowed.
unsafe impl Send for Touched {}

impl Touched {
    /// For a workload of so many chunks ([`crate::Workload::chunks`]), none of them touched.
    pub fn new(chunks: usize) -> Self {
        Self { starts: vec![std::ptr::null_mut(); chunks], until_look: LOOK, elements: 0 }
    }

    /// From now on none is.
    pub fn anew(&mut self) {
        self.starts.fill(std::ptr::null_mut());
    }

    /// Elements touched so far, the same again counted again.
    pub fn elements(&self) -> u64 {
        self.elements + u64::from(LOOK - self.until_look)
    }
}

/// A run, followed.
pub struct Followed<'a> {
    /// What was touched.
    pub touched: &'a mut Touched,
    /// Who is told.
    pub follower: &'a mut dyn Follower,
}

impl Followed<'_> {
    #[cold]
    #[inline(never)]
    fn first(&mut self, number: usize, start: *mut u8) {
        if self.follower.first_touch(number) == Next::Anew {
            self.touched.anew();
        }
        self.touched.starts[number] = start;
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.touched.until_look = LOOK;
        self.touched.elements += u64::from(LOOK);
        if self.follower.look() == Next::Anew {
            self.touched.anew();
        }
    }
}

impl Observer for Followed<'_> {
    #[inline(always)]
    fn access(&mut self, _: Kind, _: u64) {}

    #[inline(always)]
    fn chunk(&mut self, number: usize, start: *mut u8) -> *mut u8 {
        self.touched.until_look -= 1;
        if self.touched.until_look == 0 {
            self.look();
        }
        if self.touched.starts[number].is_null() {
            self.first(number, start);
        }
        self.touched.starts[number]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ptr::NonNull;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::chunked::Chunks;
    use crate::stream::PAGE_BYTES;
    use crate::tasks::{task, task_in, TASKS};
    use crate::workload::{Spec, Workload};

    /// Writes down what it is told; begins anew at each `anew`-th look.
    #[derive(Default)]
    struct Told {
        chunks: Vec<usize>,
        /// Chunks told of since the last new beginning.
        since: BTreeSet<usize>,
        looks: u64,
        anew: u64,
    }

    impl Follower for Told {
        fn first_touch(&mut self, chunk: usize) -> Next {
            assert!(self.since.insert(chunk), "{chunk} is told of twice");
            self.chunks.push(chunk);
            Next::On
        }

        fn look(&mut self) -> Next {
            self.looks += 1;
            if self.anew == 0 || !self.looks.is_multiple_of(self.anew) {
                return Next::On;
            }
            self.since.clear();
            Next::Anew
        }
    }

    /// Pages, and a chunk of so many bytes in each, in an order that is not that of addresses (7 is prime to the numbers here).
    fn scattered(number: usize, bytes: usize) -> (Vec<[u64; 512]>, Chunks) {
        let mut pages = vec![[0u64; 512]; number + 1];
        let first = pages.as_mut_ptr().cast::<u8>();
        let first = first.wrapping_add(first.align_offset(PAGE_BYTES as usize));
        let page =
            |i: usize| first.wrapping_add((i * 7 + 3) % number * PAGE_BYTES as usize + i % (4096 / bytes) * bytes);
        let at = (0..number).map(|i| NonNull::new(page(i)).expect("memory")).collect();
        (pages, Chunks { bytes, at })
    }

    fn follow(task: &mut dyn Workload, anew: u64) -> (Told, u64) {
        let (mut touched, mut told) = (Touched::new(task.chunks()), Told { anew, ..Told::default() });
        while task.follow(&mut Followed { touched: &mut touched, follower: &mut told }) {}
        (told, touched.elements())
    }

    #[test]
    fn results_are_the_same_wherever_the_data_lie_and_whoever_follows() {
        for kind in TASKS {
            for (chunk_bytes, pages) in [(4096, 5), (512, 40), (128, 160)] {
                let spec = Spec { seed: 3, rounds: 2, ..Spec::new(5 * PAGE_BYTES) };
                let mut plain = task(kind.name, &spec).expect("memory");
                assert!(plain.run(&AtomicBool::new(false)));
                // Never begun anew, and often.
                for anew in [0, 100] {
                    let (_pages, chunks) = scattered(pages, chunk_bytes);
                    // SAFETY: lines of pages of ours, which outlive the task; no two of them overlap.
                    let mut placed = unsafe { task_in(kind.name, &spec, chunks) }.expect("memory");
                    assert!(placed.chunks() <= pages && 2 * placed.chunks() > pages, "{}", kind.name);
                    let (told, elements) = follow(&mut *placed, anew);
                    assert_eq!(placed.checksum(), plain.checksum(), "{} in {chunk_bytes}", kind.name);
                    assert_eq!(placed.operations(), plain.operations());
                    assert_eq!(told.looks, elements / u64::from(LOOK));
                    let all: BTreeSet<usize> = told.chunks.iter().copied().collect();
                    assert_eq!(all, (0..placed.chunks()).collect(), "{}", kind.name);
                    assert_eq!(told.chunks.len() > all.len(), anew > 0, "{}", kind.name);
                }
            }
        }
    }

    #[test]
    fn too_few_chunks_or_odd_ones_are_refused() {
        let spec = Spec::new(5 * PAGE_BYTES);
        let (_pages, mut chunks) = scattered(4, 4096);
        let refused = |chunks: &Chunks| {
            // SAFETY: as above.
            unsafe { task_in("statistics", &spec, chunks.clone()) }.is_err()
        };
        assert!(!refused(&chunks));
        chunks.at.pop();
        assert!(refused(&chunks));
        let (_pages, chunks) = scattered(5, 4096);
        assert!(refused(&Chunks { bytes: 8192, ..chunks.clone() }));
        assert!(refused(&Chunks { bytes: 96, ..chunks.clone() }));
        assert!(refused(&Chunks { at: chunks.at.iter().map(|at| at.map_addr(|at| at | 8)).collect(), ..chunks }));
    }
}
