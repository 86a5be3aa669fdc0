//! PT-Baker's TLB microbenchmark (Chatzopoulos 2024, sections 4.4.3 and 4.4.5.1) on this machine.

use lookaside_harness::metal::{too_few, Estimate, KnownLevel, MetalFindings, ProbedLevels, Setting};
use lookaside_harness::PaperCurve;
use lookaside_probe::{ChainBench, Halt};

use super::prefetch::PrefetchTimes;
use super::sharing;
use super::thrash::{curve, few, knee, predicted, sizes, ArrayOrder, ArrayTime};

/// A knee is at a capacity where it is no further off than this part of it.
const AT: u64 = 8;
/// Thrashing is complete beyond a number of pages where it is so by more than this part of it.
const BEYOND: u64 = 16;

/// Rows of Figure 4.2, by its two parts.
const LEFT: [&str; 2] = ["fig-4.2-l1", "fig-4.2-l1-claim"];
/// See [`LEFT`].
const RIGHT: [&str; 5] =
    ["fig-4.2-l2-begin", "fig-4.2-l2-begin-claim", "fig-4.2-l2-full", "fig-4.2-l2-full-claim", "coalescing"];

pub(super) fn run(
    bench: &mut ChainBench<'_>,
    setting: &Setting,
    known: &ProbedLevels,
    progress: &mut dyn FnMut(&str),
    ran: &mut MetalFindings,
) -> Result<(), Halt> {
    ran.assumptions.push(
        "times stand for the paper's counted misses: each load waits for the one before it, so that what a miss costs shows \
         in full; each page is read at another line, so that the first-level data cache is spared"
            .into(),
    );
    progress("Figure 4.2, left");
    match &known.first {
        Ok(first) => left(bench, first, ran)?,
        Err(reason) => ran.nothing(&LEFT, reason),
    }
    progress("Figure 4.3");
    match &known.second {
        Ok(second) => figure_4_3(bench, second, ran)?,
        Err(reason) => ran.nothing(&["fig-4.3"], reason),
    }
    progress("Figure 4.6");
    match (&known.first, &known.second) {
        (Ok(first), Ok(second)) => sharing::figure_4_6(bench, setting, first, second, ran)?,
        (Err(reason), _) | (_, Err(reason)) => ran.nothing(&sharing::ROWS, reason),
    }
    // Last, since it takes the longest: most of all rows are there should the time be up before it ends.
    progress("Figure 4.2, right");
    match &known.second {
        Ok(second) => right(bench, second, ran)?,
        Err(reason) => ran.nothing(&RIGHT, reason),
    }
    Ok(())
}

/// Section 4.4.3.1: an array of twice as many pages as the second level has entries, some of it loaded. The paper loads
/// half of it; here it is fewer, so that those fit by themselves whatever the policy.
fn figure_4_3(bench: &mut ChainBench<'_>, second: &KnownLevel, ran: &mut MetalFindings) -> Result<(), Halt> {
    let entries = second.geometry.entries as usize;
    let (some, all) = (entries * 5 / 8, 2 * entries);
    let needed = PrefetchTimes::accesses(some, all);
    if needed > bench.max_pages() {
        ran.nothing(&["fig-4.3"], &too_few(needed, bench));
        return Ok(());
    }
    let Some(parts) = ran.possible(&["fig-4.3"], PrefetchTimes::measure(bench, some, all))? else { return Ok(()) };
    let cycles = |ticks: &Estimate| format!("{:.1}", ticks.median * bench.cycles_per_tick());
    let hints: Vec<String> =
        parts.prefetched.iter().map(|(hint, ticks)| format!("{} {hint:?}", cycles(ticks))).collect();
    let note = format!(
        "cycles a load of {some} pages: {} alone; {} where as many lines as others are loaded \
         between, out of few pages; {} where {} others are loaded between; prefetched: {}",
        cycles(&parts.alone),
        cycles(&parts.lines),
        cycles(&parts.loaded),
        all - some,
        hints.join(", ")
    );
    // What a miss adds at least: a walk with warm tables, as the probe saw it.
    let miss = second.level.miss_ticks;
    let instructions: Vec<Option<bool>> = parts.prefetched.iter().map(|(_, ticks)| parts.fills(ticks, miss)).collect();
    if parts.fills(&parts.loaded, miss) != Some(true) {
        ran.nothing(&["fig-4.3"], &format!("not even loads of the other pages surely make misses; {note}"));
    } else if instructions.iter().all(|fills| *fills == Some(true)) {
        ran.claim("fig-4.3", true, "yes: loads miss as where the other pages are loaded", note);
    } else if instructions.iter().all(|fills| *fills == Some(false)) {
        ran.claim("fig-4.3", false, "no: loads do not miss more", note);
    } else {
        ran.nothing(&["fig-4.3"], &format!("neither all surely do nor all surely do not; {note}"));
    }
    Ok(())
}

/// Figure 4.2, left: the first level.
fn left(bench: &mut ChainBench<'_>, array: &KnownLevel, ran: &mut MetalFindings) -> Result<(), Halt> {
    let entries = u64::from(array.geometry.entries);
    let measured = curves(bench, "Figure 4.2 left: L1 DTLB", entries, ran);
    let Some(points) = ran.possible(&LEFT, measured)? else { return Ok(()) };
    let Some(knee) = knee(&points, entries) else {
        ran.nothing(&LEFT, &no_rise(entries));
        return Ok(());
    };
    let cycles = |ticks: f64| ticks * bench.cycles_per_tick();
    ran.value(
        "fig-4.2-l1",
        knee.complete as f64,
        format!(
            "{:.1} cycles an access before, {:.1} after (10 and 90 % of the rise: begin and end)",
            cycles(knee.before),
            cycles(knee.after)
        ),
    );
    ran.claim(
        "fig-4.2-l1-claim",
        knee.begins.abs_diff(entries) * AT <= entries,
        format!("set in at {} pages, complete at {}; the level has {}", knee.begins, knee.complete, array.words()),
        "",
    );
    Ok(())
}

/// Figure 4.2, right: the second level.
fn right(bench: &mut ChainBench<'_>, array: &KnownLevel, ran: &mut MetalFindings) -> Result<(), Halt> {
    let entries = u64::from(array.geometry.entries);
    if 2 * entries > bench.max_pages() as u64 {
        ran.nothing(&RIGHT, &too_few(2 * entries as usize, bench));
        return Ok(());
    }
    let measured = curves(bench, "Figure 4.2 right: L2 TLB", entries, ran);
    let Some(points) = ran.possible(&RIGHT, measured)? else { return Ok(()) };
    let Some(knee) = knee(&points, entries) else {
        ran.nothing(&RIGHT, &no_rise(entries));
        return Ok(());
    };
    let cycles = |ticks: f64| ticks * bench.cycles_per_tick();
    let times = format!(
        "{:.1} cycles an access before, {:.1} after (10 and 90 % of the rise: begin and end)",
        cycles(knee.before),
        cycles(knee.after)
    );
    ran.value("fig-4.2-l2-begin", knee.begins as f64, times);
    ran.value("fig-4.2-l2-full", knee.complete as f64, "");
    ran.claim(
        "fig-4.2-l2-begin-claim",
        knee.begins.abs_diff(entries) * AT <= entries,
        format!("begins at {} pages; the level has {}", knee.begins, array.words()),
        "",
    );
    ran.claim(
        "fig-4.2-l2-full-claim",
        knee.complete > entries + entries / BEYOND,
        format!("complete at {} pages, {:.2} times the entries", knee.complete, knee.complete as f64 / entries as f64),
        "",
    );
    let (begins, complete) = predicted(&array.geometry);
    let alone =
        format!("its index alone, with LRU and without coalescing, begins at {begins} and is complete at {complete}");
    let explains = |ours: u64, alone: u64| ours.abs_diff(alone) * BEYOND <= alone;
    if explains(knee.begins, begins) && explains(knee.complete, complete) {
        ran.claim("coalescing", false, alone, "that is what was measured: coalescing is not needed to explain it");
    } else {
        ran.nothing(
            &["coalescing"],
            &format!("{alone}, which is not what was measured; what is the cause, times do not tell"),
        );
    }
    Ok(())
}

/// The probe says that there are so many entries, so this is for want of a quiet machine.
fn no_rise(entries: u64) -> String {
    format!("no rise around {entries} pages that stands out of what the times vary by")
}

/// The curves around a capacity, in both orders; gives the one in random order.
fn curves(
    bench: &mut ChainBench<'_>,
    name: &str,
    entries: u64,
    ran: &mut MetalFindings,
) -> Result<Vec<ArrayTime>, Halt> {
    let random = curve(bench, &sizes(entries), ArrayOrder::Random)?;
    plot(bench, &format!("{name}, random order"), &random, ran);
    let ascending = curve(bench, &few(&sizes(entries)), ArrayOrder::Ascending)?;
    plot(bench, &format!("{name}, in the array's order"), &ascending, ran);
    Ok(random)
}

fn plot(bench: &ChainBench<'_>, name: &str, points: &[ArrayTime], ran: &mut MetalFindings) {
    let cycles = |ticks: f64| ticks * bench.cycles_per_tick();
    ran.series.push(PaperCurve {
        name: name.into(),
        x: "array, pages of 4 KiB".into(),
        y: "core cycles an array access, median".into(),
        points: points.iter().map(|(n, y)| (*n as f64, cycles(y.median))).collect(),
        intervals: points.iter().map(|(_, y)| (cycles(y.low), cycles(y.high))).collect(),
        labels: Vec::new(),
    });
}
