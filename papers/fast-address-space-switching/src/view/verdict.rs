//! What an address space costs, and what sharing translations could save.

use lookaside_report::num;
use lookaside_stats::{Figure, LEAST_ROUNDS};

use super::words::{interval, ns, pages, rings};
use crate::metal::{Benchmark, Contrast, KeyUse, PageKind, RingPoint, SwitchReport, Who};

/// A sentence each.
pub(super) fn sentences(report: &SwitchReport) -> Vec<String> {
    if report.rounds == 0 {
        return vec!["Verdict: no round is complete: there is nothing to say.".into()];
    }
    if let Some(why) = &report.disturbed {
        return vec![format!("Verdict: can't tell: {why}.")];
    }
    let mut lines: Vec<String> = [
        of_address_spaces(report),
        of_keys(report),
        of_sharing(report, PageKind::Base),
        of_sharing(report, PageKind::Huge),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("Verdict: {first}");
    }
    if (report.rounds as usize) < LEAST_ROUNDS {
        lines.push(format!("Nothing is significant with fewer than {LEAST_ROUNDS} rounds."));
    }
    lines
}

fn of_address_spaces(report: &SwitchReport) -> Option<String> {
    let of_lat_ctx = || report.contrasts.iter().filter(|contrast| contrast.ring.benchmark == Benchmark::LatCtx);
    let plain = of_lat_ctx().min_by_key(|contrast| (contrast.ring.participants, contrast.ring.size))?;
    let switch = |who: Who| report.point(plain, who).map(|point| ns(point.switch_ns.value));
    let over = |contrast: &Contrast| contrast.over_threads_ns.value;
    let least = of_lat_ctx().min_by(|a, b| over(a).total_cmp(&over(b)))?;
    let most = of_lat_ctx().max_by(|a, b| over(a).total_cmp(&over(b)))?;
    let place = |contrast: &Contrast| {
        let ring = contrast.ring;
        format!("{} participants, {} KiB, {} pages", ring.participants, ring.size, pages(ring.pages))
    };
    let (sure, all) = (of_lat_ctx().filter(|contrast| contrast.significant).count(), of_lat_ctx().count());
    Some(format!(
        "a switch of processes takes {} ns, one of threads {} ns ({} participants, {} KiB): the address space costs \
         {} ns (95 % interval {}){}. Over all rings of lat_ctx that is from {} ns ({}) to {} ns ({}), significant in \
         {sure} of {all}.",
        switch(Who::Processes)?,
        switch(Who::Threads)?,
        plain.ring.participants,
        plain.ring.size,
        ns(over(plain)),
        interval(&plain.over_threads_ns),
        if plain.significant { "" } else { ", not significant" },
        ns(over(least)),
        place(least),
        ns(over(most)),
        place(most),
    ))
}

/// The rings of lat_ctx that read least, with the fewest and with the most compartments.
fn of_keys(report: &SwitchReport) -> Option<String> {
    let all: Vec<(&RingPoint, KeyUse)> = report
        .points
        .iter()
        .filter(|point| point.ring.benchmark == Benchmark::LatCtx && point.is_told())
        .filter_map(|point| Some((point, point.keys?)))
        .collect();
    let least = all.iter().map(|(point, _)| point.ring.size).min()?;
    let of_least = || all.iter().filter(|(point, _)| point.ring.size == least);
    let in_words = |(point, keys): &(&RingPoint, KeyUse)| {
        format!(
            "{} ns with {} (95 % interval {}; in 1,000 turns {} keys taken from others, {} calls of pkey_mprotect)",
            ns(point.switch_ns.value),
            point.ring.participants,
            interval(&point.switch_ns),
            num::grouped(keys.recycled_per_kilo_step.round() as u64),
            num::grouped(keys.protect_calls_per_kilo_step.round() as u64)
        )
    };
    let fewest = of_least().min_by_key(|(point, _)| point.ring.participants)?;
    let most = of_least().max_by_key(|(point, _)| point.ring.participants)?;
    let and = if fewest.0.ring == most.0.ring { String::new() } else { format!(", {}", in_words(most)) };
    Some(format!("A switch of compartments by protection keys, {least} KiB each: {}{and}.", in_words(fewest)))
}

fn of_sharing(report: &SwitchReport, kind: PageKind) -> Option<String> {
    let of_kind = report.contrasts.iter().filter(|contrast| contrast.ring.pages == kind);
    let all: Vec<(&Contrast, &Figure)> =
        of_kind.filter_map(|contrast| Some((contrast, contrast.sharing_ns()?))).collect();
    let sure = all.iter().filter(|(contrast, figure)| contrast.of_pages_significant && figure.value > 0.0);
    let count = sure.clone().count();
    let most = sure.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let what = format!("sharing translations of {} pages", pages(kind));
    if all.is_empty() {
        return None;
    }
    Some(match most {
        None => format!("Nothing shows what {what} could save, in {} of extreme.", rings(all.len())),
        Some((contrast, figure)) => format!(
            "At most what {what} could save a switch: {} ns (95 % interval {}) with {} processes of the same {} \
             pages of 4 KiB, the largest of {}; significant in {count}.",
            ns(figure.value),
            interval(figure),
            contrast.ring.participants,
            contrast.ring.size,
            all.len()
        ),
    })
}
