//! Plain text, packed or not, right or wrong: read to the end without a panic or a hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookaside_trace::{open_reader, Block, Format};

fuzz_target!(|bytes: &[u8]| {
    let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let Ok(mut source) = open_reader(input, Some(Format::Text), "fuzz") else { return };
    let mut block = Block::default();
    while let Ok(true) = source.next_block(&mut block) {
        let n = block.len();
        assert!(!block.is_empty() && block.kind.len() == n);
        assert!([block.size.len(), block.ip.len(), block.repeat.len()].iter().all(|&l| l == 0 || l == n));
        assert!(block.events.is_sorted_by_key(|e| e.0) && block.events.iter().all(|e| e.0 as usize <= n));
    }
});
