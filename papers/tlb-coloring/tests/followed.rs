//! Programs whose data lie in given chunks: the results are the same, and each chunk is told of.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;

use lookaside_tlb_coloring::programs::{task, task_in, TASKS};
use lookaside_workloads::{Chunks, Followed, Follower, Next, Touched, Workload, WorkloadSpec, LOOK, PAGE_BYTES};

/// Writes down what it is told; begins anew at each `anew`-th look.
#[derive(Default)]
struct TouchLog {
    chunks: Vec<usize>,
    /// Chunks told of since the last new beginning.
    since: BTreeSet<usize>,
    looks: u64,
    anew: u64,
}

impl Follower for TouchLog {
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

/// Pages, and a chunk of so many bytes in each, in an order that is not that of addresses (7 is prime to the numbers
/// here).
fn scattered(number: usize, bytes: usize) -> (Vec<[u64; 512]>, Chunks) {
    let mut pages = vec![[0u64; 512]; number + 1];
    let first = pages.as_mut_ptr().cast::<u8>();
    let first = first.wrapping_add(first.align_offset(PAGE_BYTES as usize));
    let page = |i: usize| first.wrapping_add((i * 7 + 3) % number * PAGE_BYTES as usize + i % (4096 / bytes) * bytes);
    let at = (0..number).map(|i| NonNull::new(page(i)).expect("memory")).collect();
    (pages, Chunks { bytes, at })
}

fn follow(task: &mut dyn Workload, anew: u64) -> (TouchLog, u64) {
    let (mut touched, mut told) = (Touched::new(task.chunks()), TouchLog { anew, ..TouchLog::default() });
    while task.follow(&mut Followed { touched: &mut touched, follower: &mut told }) {}
    (told, touched.elements())
}

#[test]
fn results_are_the_same_wherever_the_data_lie_and_whoever_follows() {
    for kind in TASKS {
        for (chunk_bytes, pages) in [(4096, 5), (512, 40), (128, 160)] {
            let spec = WorkloadSpec { seed: 3, rounds: 2, ..WorkloadSpec::new(5 * PAGE_BYTES) };
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
    let spec = WorkloadSpec::new(5 * PAGE_BYTES);
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
