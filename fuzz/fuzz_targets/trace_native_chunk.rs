//! Any chunk behind right checksums, which `trace_native` does not get past: four bytes of accesses, then a payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookaside_trace::{Block, NativeReader, Source};

/// A frame as in docs/reference/trace-format.md.
fn frame(kind: u8, seq: u32, accesses: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut b = b"\x89LKT\r\n\x1a\n".to_vec();
    b.extend_from_slice(&[kind, 3, 0, 0]);
    b.extend_from_slice(&seq.to_le_bytes());
    b.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    b.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    b.extend_from_slice(&[0; 8]);
    b.extend_from_slice(accesses);
    b.extend_from_slice(&crc32fast::hash(&b).to_le_bytes());
    b.extend_from_slice(payload);
    b
}

fuzz_target!(|bytes: &[u8]| {
    let Some((accesses, payload)) = bytes.split_first_chunk::<4>() else { return };
    let info = br#"{"granularity":"byte","recorder":"","command":[],"filter_log2_classes":0,"filter_stores_apart":false,"has_fetches":false,"has_ip":false,"sample_period_ns":0}"#;
    let mut file = frame(1, 0, &[0; 4], info);
    file.extend(frame(2, 1, accesses, payload));
    let mut source = NativeReader::new(&file[..], "fuzz").expect("the header is right");
    let mut block = Block::default();
    while source.next_block(&mut block).expect("memory can be read") {
        let n = block.len();
        assert!(!block.is_empty() && block.kind.len() == n);
        assert!([block.size.len(), block.ip.len(), block.repeat.len()].iter().all(|&l| l == 0 || l == n));
        assert!(block.events.is_sorted_by_key(|e| e.0) && block.events.iter().all(|e| e.0 as usize <= n));
    }
});
