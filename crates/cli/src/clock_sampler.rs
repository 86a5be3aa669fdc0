//! The clock sampler as the choice of huge pages asks for it: the data addresses of one running process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_capture::{ProgramControl, RecordRequest, RecordTarget, Recording};
use lookaside_runtime::hugepages::AddressSampler;
use lookaside_trace::Block;

/// Samples a second of each thread's CPU time: the most that stays below 2 % (docs/results/sampling.md).
pub const SAMPLE_HZ: u32 = 1000;
/// How soon an end is heeded.
const STEP: Duration = Duration::from_millis(20);

/// Attaches the clock sampler.
pub struct ClockSampler;

impl AddressSampler for ClockSampler {
    fn sample(&self, pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        let request = RecordRequest::sampling(RecordTarget::Pid(pid), SAMPLE_HZ);
        let end = Instant::now() + time;
        let Recording { source, control, .. } = lookaside_capture::start(&request).map_err(|e| e.to_string())?;
        let control: Arc<dyn ProgramControl> = Arc::from(control);
        let reader = std::thread::spawn(move || read(source, pid));
        while Instant::now() < end && !stop() && !reader.is_finished() {
            std::thread::sleep(STEP);
        }
        control.stop();
        reader.join().map_err(|_| "the thread that reads the samples has ended".to_string())?
    }
}

/// Addresses of the samples of one process; those that it starts are seen too, and left out.
fn read(mut source: Box<dyn lookaside_trace::Source + Send>, pid: u32) -> Result<Vec<u64>, String> {
    let (mut addrs, mut block) = (Vec::new(), Block::default());
    while source.next_block(&mut block).map_err(|e| e.to_string())? {
        if block.process == pid {
            addrs.extend_from_slice(&block.addr);
        }
    }
    Ok(addrs)
}
