//! A stream of accesses, written to a trace file.

use std::path::Path;

use lookaside_report::num::grouped;
use lookaside_trace::{Block, Event, TraceError, TraceWriter};

use lookaside_cli::output::{short_count, spinner_unless};
use lookaside_cli::say::say;

/// Writes all blocks; `false` when the recording broke off (said on standard error). What was
/// recorded is in the file in any case. Shows no progress where `program_runs` meanwhile.
pub fn copy(source: &mut dyn lookaside_trace::Source, output: &Path, program_runs: bool) -> Result<bool, TraceError> {
    let mut writer = TraceWriter::create(output, source.info())?;
    let bar = spinner_unless("recording", program_runs);
    let mut block = Block::default();
    let (mut accesses, mut recorded) = (0u64, 0u64);
    let mut whole = true;
    loop {
        match source.next_block(&mut block) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                say(format_args!("the recording broke off: {e}"));
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
            // Such as a process that was killed: the recording has what there was.
            0 => say(&damage.reason),
            len => {
                say(format_args!("{len} bytes of the stream were left out: {}", damage.reason));
                whole = false;
            }
        }
    }
    let bytes = writer.finish()?;
    bar.finish_and_clear();
    say(format_args!(
        "{}: {} rows for {} accesses, {} bytes",
        output.display(),
        short_count(recorded),
        short_count(accesses),
        grouped(bytes)
    ));
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
