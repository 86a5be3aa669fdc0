//! The five papers.

use lookaside_harness::metal::MetalExperiments;
use lookaside_harness::Paper;

/// All of them, in the order of the techniques' names.
pub const PAPERS: [Paper; 5] = [
    lookaside_pt_baker::PAPER,
    lookaside_tlb_coloring::PAPER,
    lookaside_fast_address_space_switching::PAPER,
    lookaside_tlb_lockdown::PAPER,
    lookaside_tlb_migration::PAPER,
];

/// The paper of this name; else which there are, on one line.
pub fn find(name: &str) -> Result<&'static Paper, String> {
    PAPERS.iter().find(|paper| paper.name == name).ok_or_else(|| not_available(name, "no paper has this name"))
}

/// A paper's experiments on the metal; else which papers have some, on one line.
pub fn metal(paper: &Paper) -> Result<MetalExperiments, String> {
    paper.metal.ok_or_else(|| {
        let reason = "has no experiments for this machine (--metal), only pt-baker and tlb-coloring have";
        not_available(paper.name, reason)
    })
}

fn not_available(name: &str, reason: &str) -> String {
    let all: Vec<String> = PAPERS.iter().map(|paper| format!("{} (available)", paper.name)).collect();
    format!("{name}: {reason}; the papers are {}", all.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lookaside_harness::{rows, Effort, RowVerdict};

    use super::*;

    #[test]
    fn each_row_has_a_finding_or_an_excuse_and_each_finding_a_row() {
        for paper in &PAPERS {
            let rows = rows(paper.model.values);
            let run = (paper.model.run)(Effort::Quick, &mut |_| {}).unwrap();
            let found: BTreeSet<&str> = run.findings.iter().map(|f| f.0).collect();
            assert_eq!(found.len(), run.findings.len(), "{}: a finding twice", paper.name);
            let wanted: BTreeSet<&str> = rows.iter().filter(|r| !r.is_excused()).map(|r| r.id.as_str()).collect();
            assert_eq!(found, wanted, "{}", paper.name);
        }
    }

    #[test]
    fn every_row_that_does_not_count_or_hold_says_why() {
        for paper in &PAPERS {
            for row in paper.reproduce(Effort::Quick, &mut |_| {}).unwrap().rows {
                assert!(row.verdict == RowVerdict::Holds || !row.note.is_empty(), "{row:?}");
                assert_eq!(row.ours.is_none(), row.verdict == RowVerdict::NotReproduced);
            }
        }
    }

    #[test]
    fn unknown_papers_are_told_which_there_are() {
        let all = "the papers are pt-baker (available), tlb-coloring (available), \
                   fast-address-space-switching (available), tlb-lockdown (available), tlb-migration (available)";
        assert_eq!(find("pt-bakery").unwrap_err(), format!("pt-bakery: no paper has this name; {all}"));
        let lockdown = metal(find("tlb-lockdown").unwrap()).unwrap_err();
        assert!(lockdown.contains("only pt-baker and tlb-coloring") && lockdown.ends_with(all), "{lockdown}");
    }
}
