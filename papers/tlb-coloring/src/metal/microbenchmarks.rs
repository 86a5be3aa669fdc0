//! The coloring paper's microbenchmarks (Panchamukhi 2014, Algorithm 3 and section 6.0.7) on this machine.

use lookaside_harness::metal::{estimate, too_few, KnownLevel, MetalFindings, ProbedLevels, Setting};
use lookaside_probe::{ChainBench, Halt};

use super::conflict;
use super::penalty::{self, mean, scaled, Penalty};

/// Every access of the circle misses where at least this share of what surely misses does.
const EVERY: f64 = 0.9;
/// The second level's miss costs several times the first's from here on.
const SEVERAL: f64 = 3.0;

pub(super) fn run(
    bench: &mut ChainBench<'_>,
    _: &Setting,
    known: &ProbedLevels,
    progress: &mut dyn FnMut(&str),
    ran: &mut MetalFindings,
) -> Result<(), Halt> {
    ran.assumptions.push(
        "loads, each of which waits for the one before it, stand for the paper's stores with fences, and times for its \
         counted misses"
            .into(),
    );
    match &known.first {
        Ok(first) => {
            low_bits(first, known.second.as_ref().ok(), ran);
            progress("Algorithm 3, first level");
            algorithm_3(bench, "alg-3-l1", first, ran)?;
            progress("section 6.0.7, first level");
            let ids = ["l1-penalty", "l1-deviation", "l1-every"];
            let penalty = ran.possible(&ids, penalty::first_level(bench, first))?;
            if let Some(penalty) = &penalty {
                first_penalty(bench, first, penalty, ran);
            }
            if let Ok(second) = &known.second {
                progress("section 6.0.7, second level");
                second_penalty(bench, second, penalty.as_ref(), ran)?;
                progress("Algorithm 3, second level");
                algorithm_3(bench, "alg-3-l2", second, ran)?;
            }
        }
        Err(reason) => ran.nothing(&["l1-penalty", "l1-deviation", "l1-every", "alg-3-l1", "low-bits"], reason),
    }
    if let Err(reason) = &known.second {
        ran.nothing(&["l2-penalty", "l2-deviation", "l2-more", "alg-3-l2"], reason);
    }
    Ok(())
}

/// Figure 3.1: what the paper's allocator takes for granted.
fn low_bits(first: &KnownLevel, second: Option<&KnownLevel>, ran: &mut MetalFindings) {
    let masks = &first.geometry.masks;
    let in_a_row = !masks.is_empty() && masks.iter().enumerate().all(|(bit, mask)| *mask == 1 << bit);
    let found = format!("L1 DTLB: {}", first.index_words());
    let note = second.map(|second| format!("L2 TLB: {}", second.index_words()));
    ran.claim("low-bits", in_a_row, found, note.unwrap_or_default());
}

/// Pages that conflict, and whether the bits they have in common are the set's index as the probe solved it.
fn algorithm_3(
    bench: &mut ChainBench<'_>,
    id: &'static str,
    array: &KnownLevel,
    ran: &mut MetalFindings,
) -> Result<(), Halt> {
    let Some(conflict) = ran.possible(&[id], conflict::find(bench, array))? else { return Ok(()) };
    let conflict = match conflict {
        Ok(conflict) => conflict,
        Err(reason) => {
            ran.nothing(&[id], &reason);
            return Ok(());
        }
    };
    let common = conflict.common_bits();
    let single = array.geometry.masks.iter().all(|mask| mask.count_ones() == 1);
    let index: u64 = array.geometry.masks.iter().fold(0, |all, mask| all | mask);
    let is_index = single && !common.is_empty() && index == common.iter().fold(0, |all, bit| all | 1 << bit);
    let found = match &common[..] {
        [] => format!("{} pages conflict, no page-number bit in common", conflict.pages.len() + 1),
        bits => format!("{} pages conflict, page-number bits {} in common", conflict.pages.len() + 1, list(bits)),
    };
    let note = match array.geometry.sets {
        1 => "; there are no sets to choose among".to_string(),
        _ => format!(", {}", array.index_words()),
    };
    ran.claim(id, is_index, found, format!("the level has {}{note}", array.words()));
    Ok(())
}

fn first_penalty(bench: &ChainBench<'_>, array: &KnownLevel, penalty: &Penalty, ran: &mut MetalFindings) {
    value(bench, ["l1-penalty", "l1-deviation"], &penalty.one_more, ran);
    let [one_more, all] = [&penalty.one_more, &penalty.flooded].map(|ticks| estimate(ticks.clone()));
    let found = format!(
        "{} pages of one set: {:.0} % of the accesses miss",
        array.geometry.ways + 1,
        100.0 * one_more.median / all.median
    );
    let note = format!("{}; all miss with {} times as many pages as ways", array.words(), penalty::FLOOD);
    if one_more.median >= EVERY * all.median {
        ran.claim("l1-every", true, found, note);
    } else if one_more.high < EVERY * all.low {
        ran.claim("l1-every", false, found, note);
    } else {
        ran.nothing(&["l1-every"], &format!("{found}, but not surely fewer than all; {note}"));
    }
}

fn second_penalty(
    bench: &mut ChainBench<'_>,
    array: &KnownLevel,
    first: Option<&Penalty>,
    ran: &mut MetalFindings,
) -> Result<(), Halt> {
    let ids = ["l2-penalty", "l2-deviation", "l2-more"];
    let needed = penalty::others(array) + 2 * penalty::COLD;
    if needed > bench.max_pages() {
        ran.nothing(&ids, &too_few(needed, bench));
        return Ok(());
    }
    let Some(ticks) = ran.possible(&ids, penalty::second_level(bench, array))? else { return Ok(()) };
    value(bench, ["l2-penalty", "l2-deviation"], &ticks, ran);
    let Some(first) = first else {
        ran.nothing(&["l2-more"], "there is no penalty of the first level to compare with");
        return Ok(());
    };
    let [one, two] = [&first.one_more, &ticks].map(|ticks| estimate(ticks.clone()));
    let found = format!("{:.1} times as much", two.median / one.median);
    let note = format!(
        "with tables as cold as {} other pages left them; with warm tables {:.0} cycles. Data caches hold the same in \
         both loops; in the paper's first access all else that is cold may be in the figure",
        penalty::others(array),
        array.level.miss_ticks * bench.cycles_per_tick()
    );
    if two.low > SEVERAL * one.high {
        ran.claim("l2-more", true, found, note);
    } else if two.high < SEVERAL * one.low {
        ran.claim("l2-more", false, found, note);
    } else {
        ran.nothing(&["l2-more"], &format!("{found}, but the times vary by too much; {note}"));
    }
    Ok(())
}

/// Mean and deviation of repetitions, as the paper gives them, and the median.
fn value(bench: &ChainBench<'_>, [of_mean, of_deviation]: [&'static str; 2], ticks: &[f64], ran: &mut MetalFindings) {
    let by = bench.cycles_per_tick();
    let cycles = scaled(ticks, by);
    let (mean, deviation) = mean(ticks);
    let median = format!("median {:.2}, 98.8 % interval {:.2} to {:.2}", cycles.median, cycles.low, cycles.high);
    ran.value(of_mean, round(mean * by), median);
    ran.value(of_deviation, round(deviation * by), format!("{} runs", ticks.len()));
}

fn round(cycles: f64) -> f64 {
    (cycles * 100.0).round() / 100.0
}

fn list(bits: &[u32]) -> String {
    bits.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
