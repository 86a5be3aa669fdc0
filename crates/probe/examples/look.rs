//! Prints the TLB geometry of this machine.

use lookaside_machine::PageSize;
use lookaside_probe::{first_level, policy, second_level, Bench, Host};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut host = Host::new(256 << 20)?;
    println!("cpu {} {} ticks/s", host.cpu(), host.ticks_per_second());
    let start = std::time::Instant::now();
    let mut bench = Bench::new(&mut host, PageSize::K4, seed, &|| None);
    println!("cycles a tick {}", bench.cycles_per_tick());
    let first = first_level(&mut bench)?;
    println!("{:?} {} {:?}", first.geometry, first.miss_ticks, start.elapsed());
    if let (Some(geometry), Some(level)) = (first.geometry.value(), &first.level) {
        let (finding, trials) = policy(&mut bench, level, geometry)?;
        println!("{finding:?} {:?}", start.elapsed());
        for t in &trials {
            println!("  {} steps: {:.2} {:.1?}", t.sequence.len(), t.misses, t.predicted);
        }
        let second = second_level(&mut bench, geometry, level)?;
        println!("{:x?} {} {:?}", second.geometry, second.miss_ticks, start.elapsed());
        if let (Some(geometry), Some(level)) = (second.geometry.value(), &second.level) {
            let (finding, trials) = policy(&mut bench, level, geometry)?;
            println!("{finding:?} {:?}", start.elapsed());
            for t in &trials {
                println!("  {} steps: {:.2} {:.1?}", t.sequence.len(), t.misses, t.predicted);
            }
        }
    }
    Ok(())
}
