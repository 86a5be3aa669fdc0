use lookaside_trace::{Block, Kind};

use super::*;
use crate::BASE;

/// What is read decides where the next read goes, and reads go everywhere.
#[test]
fn reads_depend_on_each_other_and_are_spread_evenly() {
    let spec = WorkloadSpec { rounds: 1600, ..WorkloadSpec::new(8000) }; // 1000 words, 100 reads of each
    let run = |change: bool| {
        let mut reads = Reads::new(&spec).expect("memory");
        if change {
            let first = {
                let mut block = Block::default();
                Reads::new(&spec).expect("memory").step(&mut block);
                (block.addr[0] - BASE) / 8
            };
            reads.table.as_mut()[first as usize] ^= 1;
        }
        let mut block = Block::default();
        while reads.step(&mut block) {}
        (reads, block)
    };
    let ((reads, block), (_, changed)) = (run(false), run(true));
    assert_eq!((block.len() as u64, reads.done), (1600 * (1000 / 16), 1600 * (1000 / 16)));
    assert!(block.kind.iter().all(|&kind| kind == Kind::Load));
    assert_eq!(block.addr[0], changed.addr[0]);
    assert_ne!(block.addr[1..20], changed.addr[1..20]);
    let mut counts = [0u32; 1000];
    for addr in block.addr {
        counts[((addr - BASE) / 8) as usize] += 1;
    }
    // 99.2 each on average; 6 standard deviations are 60.
    assert!(counts.iter().all(|&count| count.abs_diff(99) < 60), "{counts:?}");
}
