//! What the medians say of the text's conclusions.

use lookaside_harness::{Ours, RowFinding};

use super::linux::MigrationRuns;
use super::medians::Medians;

/// "Virtually the same": within this part.
const SAME: f64 = 0.1;
/// A run with a walk takes more than one without by this factor.
const WALKED: f64 = 1.4;

pub(super) fn findings(
    medians: &Medians,
    speedup: &[(f64, f64)],
    told: &MigrationRuns,
) -> Vec<(&'static str, RowFinding)> {
    let at = |column: &str, pages: u32| medians.get(&format!("{column}-{pages:03}")).copied().unwrap_or(f64::NAN);
    [cortex_a7(&at, medians), gem5(&at, speedup), linux(&at, told)].concat()
}

fn cortex_a7(at: &dyn Fn(&str, u32) -> f64, medians: &Medians) -> Vec<(&'static str, RowFinding)> {
    let pld = |pages| at("a2-pld", pages);
    let rise = |pages| pld(pages) - pld(pages - 1);
    let rises: Vec<f64> = (4..=12).map(rise).collect();
    // A pattern of two pages: the rises alternate.
    let repeats = rises.windows(3).filter(|of| (of[1] > of[0] && of[1] > of[2]) || (of[1] < of[0] && of[1] < of[2]));
    let repeats = 2 * repeats.count() > rises.len() - 2;
    let [five, six, seven] = [5, 6, 7].map(|pages| at("a3-clean", pages));
    let gain = |pages| at("a3-clean", pages) - at("a3-migrated", pages);
    let slower: Vec<String> = [1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 32, 64]
        .into_iter()
        .filter(|n| gain(*n) < 0.0)
        .map(|n| n.to_string())
        .collect();
    let overall = medians.iter().filter(|(id, _)| id.starts_with("a7-")).map(|of| *of.1);
    let best = overall.fold(f64::NEG_INFINITY, f64::max);
    vec![
        (
            "a2-two-slots",
            claim(
                pld(2) <= (1.0 + SAME) * pld(1) && rise(3) > 2.0 * rise(2),
                format!("{:.0}, {:.0} and {:.0} cycles for one, two and three pages", pld(1), pld(2), pld(3)),
                "holds where two take a tenth more at most, and the third more than twice what the second did",
            ),
        ),
        (
            "a2-consecutive",
            claim(
                repeats,
                format!("from 4 to 12 pages each takes {}", list(&rises)),
                "here the rate at which memory delivers lines decides from the third page on, and that is even. In the paper the pattern is there up to \
                 six pages",
            ),
        ),
        (
            "a3-five-to-seven",
            claim(
                five >= (1.0 - SAME) * seven,
                format!("{five:.0}, {six:.0} and {seven:.0} cycles"),
                "not explained: once prefetching runs, a page takes as long as memory takes for a line. The paper's own second run of it (Table A.5) has \
                 1,000, 959 and 1,079",
            ),
        ),
        (
            "a3-eighteen",
            claim(
                slower == ["18"],
                if slower.is_empty() { "no slowdown".into() } else { format!("a slowdown for {} pages", slower.join(", ")) },
                "not explained: nothing happens at 18 pages in the model. The paper's second run (Table A.5) has no slowdown there either",
            ),
        ),
        (
            "a4-never",
            claim(best < 0.0, format!("{best:.0} cycles at best"), "of all columns of Table A.7"),
        ),
    ]
}

fn gem5(at: &dyn Fn(&str, u32) -> f64, speedup: &[(f64, f64)]) -> Vec<(&'static str, RowFinding)> {
    let few = [1, 2, 3, 4, 5, 6, 7, 8];
    let apart: Vec<f64> = few.iter().map(|pages| at("a14-restore", *pages) - at("a13-restore", *pages)).collect();
    // From here on never a loss again.
    let last_loss = speedup.iter().rev().find(|(_, gain)| *gain <= 0.0).map_or(0.0, |of| of.0);
    vec![
        (
            "a14-few-pages",
            claim(
                apart.iter().all(|ns| *ns > 0.0),
                format!("V4 less V3, 1 to 8 pages: {} ns", list(&apart)),
                "not explained: two more register writes take 7 ns, below a tick of the clock, and fewer words take less. The paper, too, finds its difference too \
                 high for two writes",
            ),
        ),
        (
            "a15-crossover",
            RowFinding {
                ours: Ours::Value(last_loss + 1.0),
                note: "of all numbers of pages to 64, the first from which on no loss is left; the text's 21, held within two pages".into(),
            },
        ),
    ]
}

fn linux(at: &dyn Fn(&str, u32) -> f64, told: &MigrationRuns) -> Vec<(&'static str, RowFinding)> {
    let walked = told.runs.clone().map(|runs| {
        let least = runs.iter().copied().min().unwrap_or(0) as f64;
        runs.iter().map(|cycles| if *cycles as f64 > WALKED * least { 'w' } else { '-' }).collect::<String>()
    });
    let pages = [1, 8, 16, 24, 32, 40, 48, 56, 64];
    let gains: Vec<(u32, f64)> = pages.into_iter().map(|pages| (pages, at("a17-delta", pages))).collect();
    let best = gains.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(f64::NAN, |of| f64::from(of.0));
    let crosses = gains.iter().all(|(pages, gain)| (*gain > 0.0) == (*pages >= 40));
    let told: Vec<String> = gains.iter().map(|(pages, gain)| format!("{pages} {gain:.0}")).collect();
    let of = |pages: u32| at("a17-delta", pages);
    vec![
        (
            "a16-pattern",
            claim(
                walked == ["wwww----".to_string(), "w-------".to_string()],
                format!("without {}, with {}", walked[0], walked[1]),
                "w: a run that walks",
            ),
        ),
        ("a17-crossover", claim(crosses, format!("ns saved, by pages: {}", told.join(", ")), "of the table's sizes")),
        ("a17-best", RowFinding { ours: Ours::Value(best), note: "of the table's sizes".into() }),
        (
            "a17-falls",
            claim(
                of(64) < of(56),
                format!("{:.0} ns at 56 pages, {:.0} at 64", of(56), of(64)),
                "64 pages, the stack's and the kernel's entries do not fit 64 slots: what was put out is not saved",
            ),
        ),
    ]
}

fn list(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.0}")).collect::<Vec<_>>().join(", ")
}

fn claim(holds: bool, found: String, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Claim { found, holds }, note: note.into() }
}
