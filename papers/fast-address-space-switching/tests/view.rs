//! What text and page say of hand-made measurements of switches.

#[path = "../../harness/tests/support/drawn.rs"]
mod drawn;

use lookaside_fast_address_space_switching::metal::{
    Benchmark, Contrast, Early, Frames, KeySupport, KeyUse, MachineFacts, PageKind, Ring, RingPoint, Round,
    SwitchReport, Who,
};
use lookaside_fast_address_space_switching::{view, SWITCH_SCHEMA};
use lookaside_report::json;
use lookaside_stats::{Figure, Ratio};
use proptest::prelude::*;

use drawn::{flat, page, text, words};

/// The sentences of the answer.
fn verdict(report: &SwitchReport) -> Vec<String> {
    view(report).answer.iter().map(|sentence| sentence.words()).collect()
}

fn figure(value: f64) -> Figure {
    Figure { value, low: value - 10.0, high: value + 10.0 }
}

fn point(who: Who, ring: Ring, switch_ns: f64) -> RingPoint {
    let round = Round {
        step_ns: switch_ns + 400.0,
        alone_ns: 400.0,
        extra_switches_per_kilo_step: 0.0,
        alone_extra_switches_per_kilo_step: 0.0,
    };
    RingPoint {
        who,
        ring,
        step_ns: figure(switch_ns + 400.0),
        alone_ns: figure(400.0),
        switch_ns: figure(switch_ns),
        extra_switches_per_kilo_step: if ring.participants == 4 { 2.5 } else { 0.0 },
        most_extra_switches_per_kilo_step: 31.0,
        involuntary_per_kilo_step: 480.0,
        keys: (who == Who::Compartments)
            .then_some(KeyUse { recycled_per_kilo_step: 0.0, protect_calls_per_kilo_step: 1071.0 }),
        rounds: vec![round; 6],
    }
}

/// A switch of threads takes 1,000 ns; one of processes 250 more, and as much more as the ring says.
fn report(more: impl Fn(&Ring) -> f64) -> SwitchReport {
    let mut rings = Vec::new();
    for pages in [PageKind::Base, PageKind::Huge] {
        for participants in [2, 4] {
            for size in [0, 16] {
                rings.push(Ring { benchmark: Benchmark::LatCtx, frames: Frames::Private, pages, participants, size });
            }
            for (frames, size) in
                [(Frames::Private, 1), (Frames::Private, 64), (Frames::Shared, 1), (Frames::Shared, 64)]
            {
                rings.push(Ring { benchmark: Benchmark::Extreme, frames, pages, participants, size });
            }
        }
    }
    let over = |ring: &Ring| 250.0 + more(ring);
    let points = rings
        .iter()
        .flat_map(|ring| [point(Who::Threads, *ring, 1000.0), point(Who::Processes, *ring, 1000.0 + over(ring))]);
    let contrast = |ring: &Ring| {
        let grown = (ring.benchmark == Benchmark::Extreme && ring.size > 1).then(|| figure(more(ring)));
        let ratio = 1.0 + over(ring) / 1000.0;
        Contrast {
            ring: *ring,
            over_threads_ns: figure(over(ring)),
            significant: true,
            ratio: Some(Ratio { value: ratio, low: ratio, high: ratio, significant: true }),
            of_pages_significant: grown.is_some_and(|figure| figure.low > 0.0 || figure.high < 0.0),
            of_pages_ns: grown,
        }
    };
    SwitchReport {
        version: "0.1.0".into(),
        facts: MachineFacts {
            processor: "Some <CPU>".into(),
            kernel: "6.18.0".into(),
            is_guest: Some(true),
            pcid: Some(true),
            keys: KeySupport::None,
            isolates_tables: Some(false),
            vulnerabilities: vec![("spectre_v2".into(), "Mitigation: Retpolines & \u{1b}[1mmore".into())],
        },
        cpu: 3,
        rounds_wanted: 6,
        rounds: 6,
        window_ms: 12.0,
        seed: 9,
        huge_share: Some(0.75),
        wall_ms: 90_000.0,
        stolen_ms: Some(120.0),
        points: points.collect(),
        contrasts: rings.iter().map(contrast).collect(),
        disturbed: None,
        no_compartments: Some("no compartments: this processor has no protection keys".into()),
        early: None,
    }
}

/// What sharing could save: 300 ns with the same 64 base pages; own memory's 900 ns are none of it.
fn sharing(ring: &Ring) -> f64 {
    match (ring.frames, ring.pages, ring.size) {
        (Frames::Shared, PageKind::Base, 64) => 75.0 * ring.participants as f64,
        (Frames::Private, _, 64) => 900.0,
        _ => 0.0,
    }
}

#[test]
fn the_verdict_says_what_an_address_space_costs_and_what_sharing_could_save() {
    let said = verdict(&report(sharing));
    assert_eq!(said.len(), 3, "{said:?}");
    for part in [
        "Verdict: a switch of processes takes 1,250 ns, one of threads 1,000 ns (2 participants, 0 KiB): the address \
         space costs 250 ns (95 % interval 240 – 260).",
        "significant in 8 of 8",
    ] {
        assert!(said[0].contains(part), "{part:?} is not in {said:?}");
    }
    assert_eq!(
        said[1],
        "At most what sharing translations of base pages could save a switch: 300 ns (95 % interval 290 – 310) with \
         4 processes of the same 64 pages of 4 KiB, the largest of 2; significant in 2."
    );
    assert_eq!(said[2], "Nothing shows what sharing translations of huge pages could save, in 2 rings of extreme.");
}

#[test]
fn what_was_disturbed_is_refused() {
    let why = "in 9 of 12 rings the 95 % interval of a switch reaches 0 ns";
    let disturbed = SwitchReport { disturbed: Some(why.into()), contrasts: vec![], ..report(sharing) };
    assert_eq!(verdict(&disturbed), [format!("Verdict: can't tell: {why}.")]);
    let shown = text(&view(&disturbed), 100);
    assert!(!shown.contains("1,250") && !shown.contains("over threads"), "{shown}");
    // One ring of many is left out of what is said.
    let mut one = report(sharing);
    one.points[0].switch_ns = Figure { value: 30.0, low: -9_156.0, high: 12_000.0 };
    assert!(!one.points[0].is_told() && one.points[1].is_told());
    assert_eq!(text(&view(&one), 100).matches("can't tell").count(), 1);
}

/// A switch of compartments takes 150 ns for each of them.
fn report_with_keys() -> SwitchReport {
    let mut found = report(sharing);
    let rings: Vec<Ring> = found.contrasts.iter().map(|contrast| contrast.ring).collect();
    let of_base = rings.into_iter().filter(|ring| ring.pages == PageKind::Base);
    found.points.extend(of_base.map(|ring| point(Who::Compartments, ring, 75.0 * ring.participants as f64)));
    SwitchReport { no_compartments: None, ..found }
}

#[test]
fn compartments_stand_beside_processes_where_there_are_keys() {
    let found = report_with_keys();
    let said = verdict(&found);
    assert_eq!(
        said[1],
        "A switch of compartments by protection keys, 0 KiB each: 150 ns with 2 (95 % interval 140 – 160; in 1,000 \
         turns 0 keys taken from others, 1,071 calls of pkey_mprotect), 300 ns with 4 (95 % interval 290 – 310; in \
         1,000 turns 0 keys taken from others, 1,071 calls of pkey_mprotect)."
    );
    let text = text(&view(&found), 180);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        "2 0 base 400 1,000 1,250 250 240 – 260 1.25 150",
        "4 16 huge 400 1,000 1,250 250 240 – 260 1.25 –",
        "4 64 base 1,000 2,150 1,150 1,000 1,550 550 300 290 – 310 300 300",
    ] {
        assert!(rows.contains(&row.split_whitespace().collect()), "{row}\n{text}");
    }
    assert!(
        flat(&text).contains("protection keys compartments of one process take part") && !text.contains("left out"),
        "{text}"
    );
    let page = page(&view(&found));
    // A line more in each chart; none in huge pages, where there are no compartments.
    assert_eq!(page.matches("<circle").count(), 4 * 2 * 2 + 4 * 4 * 2 + 2 * 2 + 2 * 2);
    let page = words(&page);
    assert!(page.contains(&said[1]) && page.contains("compartments, the same memory"), "{page}");
}

#[test]
fn time_that_is_over_is_said() {
    let text = text(&view(&SwitchReport { early: Some(Early::Time(300)), rounds: 4, ..report(sharing) }), 100);
    assert!(flat(&text).contains("4 of 6 rounds") && text.contains("Cut short: 300 s were over"), "{text}");
    assert!(flat(&text).contains("Figures are of the rounds that were complete."), "{text}");
}

#[test]
fn few_rounds_and_none_are_said() {
    let few = SwitchReport { rounds: 3, ..report(sharing) };
    let said = verdict(&few);
    assert_eq!(said.last().map(String::as_str), Some("Nothing is significant with fewer than 5 rounds."));
    let none = SwitchReport { rounds: 0, points: vec![], contrasts: vec![], early: Some(Early::Interrupted), ..few };
    assert_eq!(verdict(&none), ["Verdict: no round is complete: there is nothing to say."]);
    let text = text(&view(&none), 100);
    assert!(
        flat(&text).contains("0 of 6 rounds") && text.contains("Cut short: interrupted.") && !text.contains("lat_ctx:"),
        "{text}"
    );
    assert!(words(&page(&view(&none))).contains("Cut short: interrupted."));
}

#[test]
fn the_table_has_a_row_a_ring_and_what_has_to_be_known_below() {
    let wide = text(&view(&report(sharing)), 160);
    let rows: Vec<Vec<&str>> = wide.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        "2 0 base 400 1,000 1,250 250 240 – 260 1.25",
        "4 16 huge 400 1,000 1,250 250 240 – 260 1.25",
        "2 1 base 1,000 1,250 250 1,000 1,250 250",
        "4 64 base 1,000 2,150 1,150 1,000 1,550 550 300 290 – 310",
        "4 64 huge 1,000 2,150 1,150 1,000 1,250 250 0 -10 – 10",
    ] {
        assert!(rows.contains(&row.split_whitespace().collect()), "{row}\n{wide}");
    }
    let words = flat(&wide);
    for part in [
        "Some <CPU>, Linux 6.18.0, a virtual machine; all participants on CPU 3; 6 rounds",
        "TLB entries name their address space (PCID)",
        "page-table isolation is off",
        "this processor has no protection keys",
        "mitigations spectre_v2: Mitigation: Retpolines & \u{fffd}[1mmore",
        "under 1 in 1,000 turns in 24 of 48 rings, at most 2.50 in 1,000 (4 ",
        "the host gave CPU 3 to others for 120 ms of 90.0 s (steal)",
        "of the memory meant for huge pages 75.0 % lay in them",
    ] {
        assert!(words.contains(part), "{part:?} is not in\n{wide}");
    }
    // At the width of a file no column that matters is left out.
    let narrow = text(&view(&report(sharing)), 100);
    assert!(narrow.contains("290 – 310") && !narrow.contains('…'), "{narrow}");
    let none = SwitchReport { huge_share: None, stolen_ms: None, ..report(sharing) };
    let text = text(&view(&none), 100);
    assert!(text.contains("no huge pages to be had") && !text.contains("steal"), "{text}");
}

#[test]
fn the_page_draws_every_ring_and_says_the_same() {
    let found = report(sharing);
    let page = page(&view(&found));
    // lat_ctx: a chart for each size and kind of pages; extreme: one for each ring.
    assert_eq!(page.matches("<figure>").count(), 4 + 4);
    // Two lines over two rings, and four over two sizes.
    assert_eq!(page.matches("<circle").count(), 4 * 2 * 2 + 4 * 4 * 2);
    let page = words(&page);
    for part in verdict(&found) {
        assert!(page.contains(&part), "{part:?} is not in {page}");
    }
    for part in [
        "16 KiB each, huge pages",
        "4 participants, base pages",
        "Some <CPU>",
        "processes ÷ threads",
        "processes, the same memory",
    ] {
        assert!(page.contains(part), "{part:?} is not in {page}");
    }
    assert!(json::document(SWITCH_SCHEMA, &found).starts_with("{\n  \"schema\": \"lookaside-switch/1\""));
}

proptest! {
    #[test]
    fn any_figures_can_be_shown(values in proptest::collection::vec(any::<f64>(), 24), width in 0usize..200) {
        let mut found = report(|_| 0.0);
        for (point, value) in found.points.iter_mut().zip(&values) {
            point.switch_ns = Figure { value: *value, low: -value, high: value * 2.0 };
            point.extra_switches_per_kilo_step = *value;
        }
        for (contrast, value) in found.contrasts.iter_mut().zip(values.iter().rev()) {
            contrast.over_threads_ns = Figure { value: *value, low: *value, high: f64::NAN };
            contrast.of_pages_ns = contrast.of_pages_ns.map(|_| figure(*value));
        }
        prop_assert!(text(&view(&found), width).contains("Verdict"));
        page(&view(&found));
    }
}
