//! Records a program and throws the accesses away: `record [--byte|--line|--page] [--classes N] [--data] [--apart]
//! [--unified] [--window N] [--waits] PROGRAM…`. Prints what came and how fast; for measuring recorders.

use std::time::Instant;

use lookaside_capture::{start, ChildEnd, RecordRequest, RecordTarget};
use lookaside_trace::{Block, Event, FilterWindow, Granularity};

fn main() {
    let mut request = RecordRequest {
        target: RecordTarget::Command(vec![]),
        backend: None,
        granularity: Granularity::Page,
        filter_log2_classes: 0,
        filter_window: FilterWindow::default(),
        filter_stores_apart: false,
        filter_unified: false,
        fetches: true,
        waits: false,
        sample_hz: 2000,
        intervals: None,
    };
    let mut words = std::env::args_os().skip(1).peekable();
    while let Some(word) = words.next_if(|word| word.to_string_lossy().starts_with("--")) {
        match &*word.to_string_lossy() {
            "--byte" => request.granularity = Granularity::Byte,
            "--line" => request.granularity = Granularity::Line,
            "--page" => request.granularity = Granularity::Page,
            "--data" => request.fetches = false,
            "--apart" => request.filter_stores_apart = true,
            "--unified" => request.filter_unified = true,
            "--waits" => request.waits = true,
            "--classes" => request.filter_log2_classes = number(words.next()),
            "--window" => {
                let pages = number(words.next());
                request.filter_window = FilterWindow { pages, log2_classes: 0, class_pages: pages };
            }
            other => {
                eprintln!("{other}: unknown option");
                std::process::exit(2);
            }
        }
    }
    request.target = RecordTarget::Command(words.collect());
    let begin = Instant::now();
    let mut recording = start(&request).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    });
    recording.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let (mut block, mut records, mut accesses, mut events, mut blocks) = (Block::default(), 0u64, 0u64, 0u64, 0u64);
    loop {
        match recording.source.next_block(&mut block) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                eprintln!("{error}");
                break;
            }
        }
        blocks += 1;
        records += block.len() as u64;
        accesses += block.accesses();
        events += block.events.len() as u64;
        for (_, event) in &block.events {
            if let Event::Repeats { count, .. } = event {
                accesses += count;
            }
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    recording.source.damage().iter().for_each(|damage| eprintln!("damage: {}", damage.reason));
    eprintln!(
        "{seconds:.2} s, {accesses} accesses ({:.1} M/s), {records} records ({:.1} M/s), {events} events, {blocks} blocks",
        accesses as f64 / seconds / 1e6,
        records as f64 / seconds / 1e6
    );
    let end = recording.control.wait();
    // Wall-clock time says little on a busy machine.
    let [own, program] = cpu_seconds();
    eprintln!("{own:.2} s of CPU for reading, {program:.2} s for the recorded program");
    match end {
        Ok(ChildEnd::Code(code)) => std::process::exit(code),
        Ok(ChildEnd::Signal(signal)) => std::process::exit(128 + signal),
        Ok(ChildEnd::Detached) => {}
        Err(error) => eprintln!("{error}"),
    }
}

/// CPU time, user and system, of this process and of its children that have ended (proc(5): utime, stime, cutime,
/// cstime).
fn cpu_seconds() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> = after_name.split_whitespace().skip(11).take(4).filter_map(|word| word.parse().ok()).collect();
    // USER_HZ is 100 on Linux.
    [0, 2].map(|i| ticks.iter().skip(i).take(2).sum::<f64>() / 100.0)
}

fn number(word: Option<std::ffi::OsString>) -> u32 {
    word.and_then(|word| word.to_str().and_then(|word| word.parse().ok())).unwrap_or(0)
}
