//! The recorder's stream: any bytes, any filter. Blocks must be sound whatever comes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookaside_capture::WireReader;
use lookaside_trace::{Block, Granularity, Source, TraceInfo};

fuzz_target!(|data: &[u8]| {
    let Some((&how, stream)) = data.split_first() else { return };
    let granularity = [Granularity::Byte, Granularity::Line, Granularity::Page][usize::from(how & 3) % 3];
    let info = TraceInfo {
        granularity,
        filter_log2_classes: u32::from(how >> 4),
        filter_window: if how >> 4 > 7 { 32 } else { 0 },
        filter_stores_apart: how & 4 != 0,
        ..TraceInfo::default()
    };
    let mut source = WireReader::new(stream, info, how & 8 != 0);
    let mut block = Block::default();
    let mut rows = 0;
    while source.next_block(&mut block).expect("memory can be read") {
        rows += block.len();
        for len in [block.kind.len(), block.size.len(), block.ip.len()] {
            assert_eq!(len, block.len());
        }
        assert!(block.repeat.is_empty() || block.repeat.len() == block.len());
        assert!(block.events.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert!(block.events.iter().all(|event| event.0 as usize <= block.len()));
    }
    assert!(rows <= stream.len() / 16);
    assert!(!source.next_block(&mut block).expect("memory can be read"));
});
