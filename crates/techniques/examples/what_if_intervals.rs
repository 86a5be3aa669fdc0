//! How often the intervals of "what would help" hold what the whole run gives, over seeds of where windows lie.
//!
//! `cargo run --release -p lookaside-techniques --example what_if_intervals TRACE [SEEDS] [MACHINE]`

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use lookaside_engine::Setup;
use lookaside_stats::median;
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::{Profile, Remedy, WantedRemedies};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let trace = args.next().ok_or("give a trace, and maybe a number of seeds and a machine")?;
    let seeds: u64 = args.next().map_or(Ok(100), |seeds| seeds.parse())?;
    let base = Setup::new(lookaside_machine::preset(&args.next().unwrap_or("skylake".into()))?);
    let mut source = lookaside_trace::open(&trace)?;
    let mut profile = Profile::record(&mut *source, &base, &mut |_| {})?;
    let mut rows = |wanted: WantedRemedies| -> Result<(Vec<Remedy>, f64), Box<dyn Error>> {
        let begun = Instant::now();
        let rows = profile.remedies(&base, (&Unnamed, wanted), &AtomicBool::new(false), &mut Vec::new())?;
        Ok((rows, begun.elapsed().as_secs_f64()))
    };
    let (whole, seconds) = rows(WantedRemedies { what_if: true, exact: true, seed: 0 })?;
    let mut in_windows = Vec::new();
    let mut seconds_in_windows = 0.0;
    for seed in 1..=seeds {
        let (rows, seconds) = rows(WantedRemedies { what_if: true, exact: false, seed })?;
        in_windows.extend(rows);
        seconds_in_windows += seconds;
    }
    println!("{trace}: {seconds:.1} s over the whole run, {:.1} s in windows", seconds_in_windows / seeds as f64);
    for row in whole {
        let of_row = || in_windows.iter().filter(|other| other.kind == row.kind);
        let intervals = || of_row().filter_map(|other| other.least_saved_share.zip(other.most_saved_share));
        let held = intervals().filter(|(least, most)| (*least..=*most).contains(&row.saved_share)).count();
        let width = middle(intervals().map(|(least, most)| most - least).collect());
        let error = middle(of_row().map(|other| (other.saved_share - row.saved_share).abs()).collect());
        println!(
            "  {}: saves {:.2} %; {held} of {} intervals hold it; {:.2} points wide, {:.2} off (medians)",
            row.what,
            100.0 * row.saved_share,
            intervals().count(),
            100.0 * width,
            100.0 * error,
        );
    }
    Ok(())
}

fn middle(of: Vec<f64>) -> f64 {
    median(of).unwrap_or(f64::NAN)
}
