//! Can these times be?

use crate::violation::{fault, CheckResult};
use crate::{Quartiles, RandomReads, Timing};

/// Figures that can be: positive, in order, and each row once.
pub(crate) fn check_timing(timing: &Timing) -> CheckResult {
    for (i, row) in timing.random_reads.iter().enumerate() {
        let at = format!("timing.random_reads[{i}]");
        let same = |other: &RandomReads| (other.footprint, other.beside_stream) == (row.footprint, row.beside_stream);
        if row.footprint == 0 {
            return fault(format!("{at}.footprint"), "must be more than 0");
        }
        if timing.random_reads[..i].iter().any(same) {
            return fault(format!("{at}.footprint"), "is there twice");
        }
        for (key, costs) in [("small_pages", Some(row.small_pages)), ("huge_pages", row.huge_pages)] {
            let Some(costs) = costs else { continue };
            quartiles(&format!("{at}.{key}.dependent_ns_per_read"), costs.dependent_ns_per_read)?;
            quartiles(&format!("{at}.{key}.independent_ns_per_read"), costs.independent_ns_per_read)?;
        }
        for (key, overlap) in
            [("overlapping_misses", row.overlapping_misses), ("overlapping_walks", row.overlapping_walks)]
        {
            overlap.map_or(Ok(()), |overlap| quartiles(&format!("{at}.{key}"), overlap))?;
        }
    }
    for (i, row) in timing.sequential_reads.iter().enumerate() {
        quartiles(&format!("timing.sequential_reads[{i}].bytes_per_second"), row.bytes_per_second)?;
        if timing.sequential_reads[..i].iter().any(|other| other.beside_stream == row.beside_stream) {
            return fault(format!("timing.sequential_reads[{i}].beside_stream"), "is there twice");
        }
    }
    for (i, row) in timing.page_faults.iter().enumerate() {
        quartiles(&format!("timing.page_faults[{i}].ns_per_fault"), row.ns_per_fault)?;
        if timing.page_faults[..i].iter().any(|other| other.page_size == row.page_size) {
            return fault(format!("timing.page_faults[{i}].page_size"), format!("{} is there twice", row.page_size));
        }
    }
    Ok(())
}

fn quartiles(at: &str, Quartiles { lower, median, upper }: Quartiles) -> CheckResult {
    if 0.0 < lower && lower <= median && median <= upper && upper < f64::INFINITY {
        return Ok(());
    }
    let shown = format!("[{lower}, {median}, {upper}]");
    fault(at, format!("{shown} are no quartiles: three numbers above 0, in ascending order"))
}
