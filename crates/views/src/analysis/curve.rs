//! Misses over TLB size, log over log; and the same for each number of sets.

use lookaside_machine::{Machine, Serves};
use lookaside_report::chart::{Axis, Lines, Look, Mark, Point, Scale, Series, Size};
use lookaside_report::{num, Cell, Chart, Column, DocumentBlock, Section, Table};
use lookaside_techniques::{Analysis, MissCurve, Seeing};

/// The curve of a fully associative TLB with this machine's levels, and its numbers.
pub fn section(analysis: &Analysis) -> Section {
    let Some(curve) = &analysis.curve else { return Section::default() };
    let lead = match (curve.estimate, &analysis.seeing) {
        (true, _) => "Estimated from samples, as if each reference were independent of those before \
                      (independent-reference model): a shape, not a count. It ends where less than one sample misses."
            .to_string(),
        (false, seeing) => {
            let window = match seeing {
                Seeing::Exact { window: window @ 1.., .. } => format!(
                    " Of sizes below {window} the recorder left out what they would tell, and of sets: --granularity \
                     line shows them."
                ),
                _ => String::new(),
            };
            format!(
                "Data accesses to 4 KiB pages, LRU, one pass over {} accesses. Where the line falls steeply, a little \
                 more reach helps much. Dashed: this machine's own levels.{window}",
                num::grouped(curve.accesses)
            )
        }
    };
    let numbers = DocumentBlock::Details("The curve in numbers".into(), vec![numbers(curve).into()]);
    let chart = chart(curve, &tlb_levels(&analysis.machine));
    if chart.is_empty() {
        return Section::default();
    }
    Section::unheaded("Misses over TLB size").lead(lead).with(chart).with(numbers)
}

fn chart(curve: &MissCurve, levels: &[(u32, u64)]) -> Chart {
    let title = match curve.estimate {
        true => "misses per 1,000 by TLB entries (ESTIMATE, LRU)",
        false => "misses per 1,000 accesses by TLB entries (LRU)",
    };
    let mut points = points(curve);
    let words = in_words(curve, &points, levels);
    let cold = num::per_kilo(curve.cold_misses as f64, curve.accesses);
    // Where only first touches are left, more entries change nothing.
    let widest = levels.iter().map(|(_, entries)| *entries as f64).fold(0.0, f64::max);
    if let Some(last) = points.last().filter(|last| !curve.estimate && last.1 <= cold && last.0 < widest).copied() {
        points.push((widest, last.1));
    }
    let lines = Lines::new(Axis::new("entries", Scale::Log2), Axis::new("misses per 1,000", Scale::Log10));
    let lines = lines.with(series("", &points, Look::Step));
    let mark =
        |(level, entries): &(u32, u64)| Mark::new(*entries as f64, format!("L{level} {}", num::grouped(*entries)));
    let first_touches = Mark::new(cold, format!("first touches: {}", num::rate(cold)));
    let levels = levels.iter().map(mark).collect();
    let cold = if cold > 0.0 { vec![first_touches] } else { Vec::new() };
    Chart::lines(title, Lines { marks: levels, levels: cold, size: Size::Large, ..lines }).in_words(words)
}

fn series(name: &str, points: &[(f64, f64)], look: Look) -> Series {
    Series::new(name, points.iter().map(|&(x, y)| Point::new(x, y)).collect()).look(look)
}

/// (entries, misses per thousand accesses), only where there is something to place.
fn points(curve: &MissCurve) -> Vec<(f64, f64)> {
    let points = curve.fully_associative.iter().filter(|&&(entries, _)| entries > 0);
    let rate = |&(entries, misses): &(u64, u64)| (entries as f64, num::per_kilo(misses as f64, curve.accesses));
    points.map(rate).filter(|(_, y)| y.is_finite()).collect()
}

/// The machine's own reach: (level, entries) of the arrays that serve loads of base pages, by level.
fn tlb_levels(machine: &Machine) -> Vec<(u32, u64)> {
    let base = machine.page_table.format.page_sizes().first().copied();
    let mut levels: Vec<(u32, u64)> = Vec::new();
    for tlb in &machine.tlbs {
        if !tlb.serves.contains(&Serves::Load) || !base.is_some_and(|size| tlb.page_sizes.contains(&size)) {
            continue;
        }
        match levels.iter_mut().find(|(level, _)| *level == tlb.level) {
            Some((_, entries)) => *entries += u64::from(tlb.entries),
            None => levels.push((tlb.level, u64::from(tlb.entries))),
        }
    }
    levels.sort();
    levels
}

/// The curve in one line: misses per thousand accesses at a few sizes and at the machine's own.
fn in_words(curve: &MissCurve, points: &[(f64, f64)], levels: &[(u32, u64)]) -> String {
    let Some(&(last, _)) = points.last() else { return String::new() };
    let mut sizes: Vec<(u64, String)> = (1..12)
        .map(|i| 4u64 << (2 * i))
        .filter(|&entries| entries as f64 <= last)
        .map(|entries| (entries, num::grouped(entries)))
        .collect();
    for &(level, entries) in levels {
        sizes.retain(|(size, _)| *size != entries);
        sizes.push((entries, format!("{} (L{level})", num::grouped(entries))));
    }
    sizes.sort();
    let at = |entries: u64| points.iter().take_while(|(x, _)| *x <= entries as f64).last();
    let value = |(entries, label): &(u64, String)| {
        // Beyond the end of an estimate less than one sample misses.
        if curve.estimate && *entries as f64 > last {
            return Some(format!("{label}: below {}", num::rate(num::per_kilo(1.0, curve.accesses))));
        }
        Some(format!("{label}: {}", num::rate(at(*entries)?.1)))
    };
    let values: Vec<String> = sizes.iter().filter_map(value).collect();
    if values.is_empty() {
        return String::new();
    }
    let what = if curve.estimate { "Estimated misses per 1,000" } else { "Misses per 1,000 accesses" };
    format!("{what} by TLB entries (LRU, fully associative): {}", values.join(" · "))
}

fn numbers(curve: &MissCurve) -> Table {
    let columns =
        [Column::left("entries"), Column::right("reach"), Column::right("misses"), Column::right("per 1,000")];
    let mut table =
        Table::new(columns).caption("Misses of a fully associative LRU TLB by its entries; reach at 4 KiB pages");
    for &(entries, misses) in &curve.fully_associative {
        table.row([
            Cell::count(entries),
            Cell::bytes(entries.saturating_mul(4096)),
            Cell::count(misses),
            Cell::rate(num::per_kilo(misses as f64, curve.accesses)),
        ]);
    }
    table
}

/// Small charts, one for each number of sets.
pub fn by_sets(analysis: &Analysis) -> Section {
    let Some(curve) = &analysis.curve else { return Section::default() };
    let sets: Vec<(String, Vec<(f64, f64)>)> = curve
        .set_associative
        .iter()
        .map(|set| {
            let points = set.misses_by_ways.iter().zip(1u64..).map(|(&misses, way)| {
                let entries = u64::from(set.sets).saturating_mul(way) as f64;
                (entries, num::per_kilo(misses as f64, curve.accesses))
            });
            let name = format!("{} set{}", num::grouped(set.sets.into()), if set.sets == 1 { "" } else { "s" });
            (name, points.filter(|point| point.0 > 0.0 && point.1.is_finite()).collect())
        })
        .filter(|(_, points): &(_, Vec<_>)| !points.is_empty())
        .collect();
    let all = || sets.iter().flat_map(|(_, points)| points.iter().copied());
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.filter(|value| *value > 0.0).fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (Some(x), Some(y)) = (ends(&mut all().map(|point| point.0)), ends(&mut all().map(|point| point.1))) else {
        return Section::default();
    };
    let inside = |&(entries, rate): &(f64, f64)| (x.0..=x.1).contains(&entries) && (y.0..=y.1).contains(&rate);
    let full: Vec<(f64, f64)> = points(curve).into_iter().filter(inside).collect();
    let chart = |(name, points): &(String, Vec<(f64, f64)>)| {
        let lines = Lines::new(Axis::new("entries", Scale::Log2), Axis::new("misses per 1,000", Scale::Log10));
        let lines = lines.with(series("", &full, Look::Ghost)).with(series("", points, Look::Step));
        Chart::lines(name, Lines { x_range: Some(x), y_range: Some(y), size: Size::Mini, ..lines })
    };
    Section::unheaded("Misses by sets")
        .lead("Misses per 1,000 over entries, each step one way more; dotted: fully associative.")
        .with(sets.iter().map(chart).collect::<Vec<_>>())
}
