//! A stream of accesses, written to a trace file.

use std::path::Path;

use lookaside_trace::{Block, Event, TraceError, TraceWriter};

use lookaside_cli::output::{short_count, spinner};

/// Writes all blocks; `false` when the recording broke off (said on standard error). What was
/// recorded is in the file in any case.
pub fn copy(source: &mut dyn lookaside_trace::Source, output: &Path) -> Result<bool, TraceError> {
    let mut writer = TraceWriter::create(output, source.info())?;
    let bar = spinner("recording");
    let mut block = Block::default();
    let (mut accesses, mut recorded) = (0u64, 0u64);
    let mut whole = true;
    loop {
        match source.next_block(&mut block) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                eprintln!("lookaside: the recording broke off: {e}");
                whole = false;
                break;
            }
        }
        accesses += block.accesses() + late_repeats(&block);
        recorded += block.len() as u64;
        writer.write(&block)?;
        bar.set_message(format!("{} accesses", short_count(accesses)));
    }
    for damage in source.damage() {
        match damage.len {
            0 => eprintln!("lookaside: {}", damage.reason),
            len => eprintln!("lookaside: {len} bytes of the stream were left out: {}", damage.reason),
        }
        whole = false;
    }
    let bytes = writer.bytes();
    writer.finish()?;
    bar.finish_and_clear();
    eprintln!(
        "lookaside: {}: {} rows for {} accesses, {} bytes",
        output.display(),
        short_count(recorded),
        short_count(accesses),
        short_count(bytes)
    );
    Ok(whole)
}

/// Accesses left out of pages that earlier blocks recorded.
fn late_repeats(block: &Block) -> u64 {
    let late = block.events.iter().map(|(_, event)| match event {
        Event::Repeats { count, .. } => *count,
        _ => 0,
    });
    late.fold(0, u64::saturating_add)
}
