//! Repeats the search for a TLB level until two passes, some time apart, agree.

use std::time::Duration;

use crate::agreed_range::agreed_range;
use crate::bench::{ChainBench, Halt};
use crate::finding::Finding;
use crate::tlb::geometry::{FoundLevel, Geometry};

/// Pauses between passes over a level: neighbours come and go in fractions of a second.
const PAUSES_MS: [u64; 7] = [20, 50, 100, 200, 500, 1000, 2000];

/// Passes that are made for what a miss costs alone, once two agree on the rest.
const MORE_FOR_THE_COST: usize = 3;

/// Passes agree on what a miss costs within this share and so many cycles: the clock may change between them.
pub(crate) const SAME_MISS: (f64, f64) = (0.15, 1.0);

/// A level that two passes confirm alike, some time apart. A neighbour on the same core may take entries for a while,
/// and then a pass sees, and confirms, fewer than there are; two passes hardly the same number.
///
/// With it, the ticks of a miss in each of the passes that agree; a few passes more where no two of these are alike.
///
/// # Errors
/// It is to end, or the machine refuses.
pub fn until_two_agree(
    bench: &mut ChainBench<'_>,
    find: impl Fn(&mut ChainBench<'_>) -> Result<FoundLevel, Halt>,
) -> Result<(FoundLevel, Vec<f64>), Halt> {
    let mut seen: Vec<FoundLevel> = Vec::new();
    let mut agreed: Option<(FoundLevel, Vec<f64>)> = None;
    let mut more = MORE_FOR_THE_COST;
    for pass in 0..=PAUSES_MS.len() {
        bench.note(&format!("pass {}", pass + 1));
        let next = match pass {
            0 => find(bench),
            _ => bench.pause(Duration::from_millis(PAUSES_MS[pass - 1])).and_then(|()| find(bench)),
        };
        let out_of_time = matches!(next, Err(Halt::ShareUp(_)));
        let mut last = match next {
            // What the passes so far saw is part of the reason.
            Err(halt @ Halt::ShareUp(_)) if pass > 0 => FoundLevel::nothing(halt.to_string()),
            other => other?,
        };
        let like = |found: &&FoundLevel| found.geometry.value() == last.geometry.value();
        let mut ticks: Vec<f64> = seen.iter().filter(like).map(|found| found.miss_ticks).collect();
        let known = last.geometry.value().is_some() && !ticks.is_empty();
        // Another geometry may be seen twice too, while one looks for the cost: what was agreed on first stays.
        let other = agreed.as_ref().is_some_and(|(found, _)| found.geometry.value() != last.geometry.value());
        if known && !other {
            ticks.push(last.miss_ticks);
            if let Finding::Confirmed { evidence, value } = &mut last.geometry {
                let other = seen.iter().filter(|found| found.geometry.value() != Some(value));
                evidence.extend(other.map(|found| format!("rejected pass: {}", said(&found.geometry))));
            }
            let alike = alike_ticks(bench, &ticks);
            agreed = Some((last.clone(), ticks));
            if alike {
                break;
            }
        }
        seen.push(last);
        if out_of_time || agreed.is_some() && more == 0 {
            break;
        }
        more -= usize::from(agreed.is_some());
    }
    if let Some(agreed) = agreed {
        return Ok(agreed);
    }
    let mut passes: Vec<String> = seen.iter().map(|found| said(&found.geometry)).collect();
    passes.dedup();
    let reason = format!("no two passes agree: {}", passes.join("; "));
    Ok((FoundLevel::nothing(reason), Vec::new()))
}

/// Whether two of the passes agree on what a miss takes.
fn alike_ticks(bench: &ChainBench<'_>, ticks: &[f64]) -> bool {
    let cycles: Vec<f64> = ticks.iter().map(|ticks| ticks * bench.cycles_per_tick()).collect();
    agreed_range(&cycles, SAME_MISS).is_some()
}

/// What a pass says.
fn said(geometry: &Finding<Geometry>) -> String {
    match geometry {
        Finding::Confirmed { value, .. } => format!("{} entries in {} sets", value.entries, value.sets),
        Finding::NotDetermined { reason, .. } => reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lookaside_machine::PageSize;

    use super::*;
    use crate::metal::fake::FakeMetal;

    /// What a pass sees: entries and ticks of a miss; `None`: its share of the time is used up.
    type PassResult = Option<(u32, f64)>;

    /// Entries, and ticks of the passes that agree; with the number of passes.
    fn agreed(passes: &[PassResult]) -> (Option<u32>, Vec<f64>, usize) {
        let mut still = FakeMetal;
        let mut bench = ChainBench::new(&mut still, PageSize::K4, 1, &|| None);
        let made = Cell::new(0);
        let find = |_: &mut ChainBench<'_>| {
            let pass = passes[made.replace(made.get() + 1)];
            let (entries, miss_ticks) = pass.ok_or(Halt::ShareUp(Duration::from_secs(1)))?;
            let geometry = Geometry { entries, ways: entries, sets: 1, masks: Vec::new() };
            Ok(FoundLevel { geometry: Finding::confirmed(geometry, Vec::new()), miss_ticks, level: None })
        };
        let (found, ticks) = until_two_agree(&mut bench, find).expect("not halted");
        (found.geometry.value().map(|geometry| geometry.entries), ticks, made.get())
    }

    #[test]
    fn two_passes_that_agree_are_enough() {
        assert_eq!(agreed(&[Some((64, 20.0)), Some((64, 21.0))]), (Some(64), vec![20.0, 21.0], 2));
        assert_eq!(agreed(&[Some((60, 20.0)), Some((64, 20.0)), Some((64, 21.0))]), (Some(64), vec![20.0, 21.0], 3));
    }

    #[test]
    fn passes_go_on_for_the_cost() {
        let three = [Some((64, 20.0)), Some((64, 30.0)), Some((64, 29.0))];
        assert_eq!(agreed(&three), (Some(64), vec![20.0, 30.0, 29.0], 3));
        // For a while.
        let never = [20.0, 30.0, 40.0, 60.0, 80.0, 100.0].map(|ticks| Some((64, ticks)));
        assert_eq!(agreed(&never), (Some(64), vec![20.0, 30.0, 40.0, 60.0, 80.0], 5));
        // What was agreed on is not lost for lack of time, nor by what is seen later.
        assert_eq!(agreed(&[three[0], three[1], None]), (Some(64), vec![20.0, 30.0], 3));
        let others = [three[0], three[1], Some((60, 20.0)), Some((60, 20.0)), three[2]];
        assert_eq!(agreed(&others), (Some(64), vec![20.0, 30.0, 29.0], 5));
    }

    #[test]
    fn without_two_alike_nothing_is_known() {
        assert_eq!(agreed(&[Some((64, 20.0)), None]), (None, Vec::new(), 2));
    }
}
