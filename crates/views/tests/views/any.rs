//! Whatever an analysis holds, the reports keep their form: no panic, no line too long, no NaN, well-formed pages.

use crate::common;
use lookaside_engine::{CacheCounts, Cost, IpRow, PageRow, RegionRow, Side, ThreadRow, TlbCounts};
use lookaside_machine::PageSize;
use lookaside_report::{text, Style};
use lookaside_techniques::huge_gain::{MeasuredGain, TimeRatio};
use lookaside_techniques::*;
use lookaside_trace::{Granularity, MapSource};
use lookaside_views::json;
use proptest::collection::vec;
use proptest::num::f64::{ANY, NEGATIVE, POSITIVE, ZERO};
use proptest::prelude::*;

/// Counts up to what a `u64` can sum twice, small ones and 0 often.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 0..100u64, 0..1u64 << 40, 0..1u64 << 61]
}

/// Names as a hostile program chooses them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("</script><img src=x onerror=alert(1)>]]>&\"'".to_string()),
        Just("\x1b[2J\x1b]0;x\x07\r\n\t\0\u{202e}\u{200b}\u{85}".to_string()),
        "[a-z]{0,300}",
        "(日本|e\u{301}|👩){0,40}",
        Just("memory".to_string()),
    ]
}

fn cost(float: BoxedStrategy<f64>) -> impl Strategy<Value = Cost> {
    (count(), count(), count(), count(), float.clone(), float).prop_map(
        |(l1_misses, walks, walk_references, walk_references_memory, tlb_hit_cycles, walk_cycles)| Cost {
            l1_misses,
            walks,
            walk_references,
            walk_references_memory,
            tlb_hit_cycles,
            walk_cycles,
        },
    )
}

fn side(float: BoxedStrategy<f64>) -> impl Strategy<Value = Side> {
    let named = || vec((name(), count()), 0..4);
    (count(), cost(float.clone()), named(), named(), float).prop_map(
        |(accesses, cost, walk_references_by_server, walk_references_by_table, data_stall_cycles)| Side {
            accesses,
            cost,
            walks_by_page_size: vec![(PageSize::K4, cost.walks)],
            walk_references_by_server,
            walk_references_by_table,
            data_stall_cycles,
        },
    )
}

fn row(float: BoxedStrategy<f64>) -> impl Strategy<Value = NamedCost> {
    let source = prop_oneof![
        Just(None),
        Just(Some(MapSource::Heap)),
        name().prop_map(|path| Some(MapSource::File { path, offset: 1 })),
    ];
    (name(), 0..3u32, any::<u64>(), any::<u64>(), source, count(), cost(float), count()).prop_map(
        |(name, process, bytes, addr, source, accesses, cost, samples)| NamedCost {
            name,
            process,
            bytes,
            addr,
            source,
            accesses,
            cost,
            samples,
        },
    )
}

fn remedy(float: BoxedStrategy<f64>) -> impl Strategy<Value = Remedy> {
    let kind = prop_oneof![Just(RemedyKind::HugeEverywhere), Just(RemedyKind::OneStage)];
    (kind, name(), vec(float, 9), vec(count(), 3), name(), name(), any::<[bool; 2]>()).prop_map(
        |(kind, what, floats, counts, how, caveat, [approximate, has_interval])| Remedy {
            kind,
            what,
            translation_cycles: floats[0],
            base_translation_cycles: floats[1],
            walk_cycles: floats[4],
            base_walk_cycles: floats[5],
            walks: counts[0],
            base_walks: counts[1],
            base_modelled_cycles: floats[2],
            saved_share: floats[6],
            least_saved_share: has_interval.then_some(floats[7]),
            most_saved_share: has_interval.then_some(floats[8]),
            windows: (counts[2] % 20) as u32,
            accesses: counts[2],
            accesses_share: floats[3],
            approximate,
            how,
            caveat,
            bloat_bytes: None,
        },
    )
}

fn time(float: BoxedStrategy<f64>) -> impl Strategy<Value = Option<TimeRatio>> {
    let time = (vec(float, 5), any::<bool>()).prop_map(|(floats, significant)| TimeRatio {
        base_seconds: floats[0],
        huge_seconds: floats[1],
        ratio: floats[2],
        low: floats[3],
        high: floats[4],
        significant,
    });
    prop::option::of(time)
}

fn measured(float: BoxedStrategy<f64>) -> impl Strategy<Value = Option<MeasuredGain>> {
    let share = prop::option::of(float.clone());
    let measured = (0..20u32, time(float.clone()), time(float), share)
        .prop_map(|(rounds, user, wall, huge_share)| MeasuredGain { rounds, cpu: user, user, wall, huge_share });
    prop::option::of(measured)
}

fn curve() -> impl Strategy<Value = MissCurve> {
    let set =
        (any::<u32>(), vec(any::<u64>(), 0..5)).prop_map(|(sets, misses_by_ways)| SetCurve { sets, misses_by_ways });
    (count(), any::<u64>(), vec((any::<u64>(), any::<u64>()), 0..6), vec(set, 0..3), any::<bool>()).prop_map(
        |(accesses, cold_misses, fully_associative, set_associative, estimate)| MissCurve {
            accesses,
            cold_misses,
            fully_associative,
            set_associative,
            estimate,
        },
    )
}

fn heat() -> impl Strategy<Value = HeatMap> {
    let row = (0..2u32, any::<u64>(), any::<u64>(), name(), vec(any::<u64>(), 0..5))
        .prop_map(|(process, start, end, name, accesses)| HeatRow { process, start, end, name, accesses });
    (any::<u64>(), vec(row, 0..4)).prop_map(|(accesses_per_column, rows)| HeatMap { accesses_per_column, rows })
}

fn seeing() -> impl Strategy<Value = Seeing> {
    prop_oneof![
        (name(), prop_oneof![Just(Granularity::Byte), Just(Granularity::Line), Just(Granularity::Page)], 0..33u32)
            .prop_map(|(recorder, granularity, window)| Seeing::Exact { recorder, granularity, window }),
        (count(), count(), count()).prop_map(|(period_ns, samples, resolved)| Seeing::Sampled {
            period_ns,
            samples,
            resolved
        }),
    ]
}

prop_compose! {
    /// Any analysis, with such floating-point numbers.
    fn analysis(float: BoxedStrategy<f64>)(
        command in vec(name(), 0..3),
        seeing in seeing(),
        sides in (side(float.clone()), side(float.clone())),
        texts in vec(name(), 8),
        clock_mhz in float.clone(),
        tlb_entries in vec(any::<u32>(), 5),
        counts in vec(count(), 8),
        rows in vec(vec(row(float.clone()), 0..4), 3),
        remedies in vec(remedy(float.clone()), 0..4),
        measured in measured(float.clone()),
        curve in prop::option::of(curve()),
        heat in heat(),
        notes in vec(name(), 0..4),
        exit in prop_oneof![
            Just(None), any::<i32>().prop_map(|n| Some(ChildExit::Code(n))), any::<i32>().prop_map(|n| Some(ChildExit::Signal(n)))
        ],
        complete in any::<bool>(),
        float in float,
    ) -> Analysis {
        let mut a = common::exact();
        (a.command, a.seeing, a.curve, a.heat, a.notes, a.remedies) = (command, seeing, curve, heat, notes, remedies);
        (a.child_exit, a.complete, a.seed) = (exit, complete, counts[0]);
        (a.version, a.machine_reason) = (texts[0].clone(), texts[1].clone());
        (a.machine.name, a.machine.description) = (texts[2].clone(), texts[3].clone());
        (a.machine.sources, a.machine.not_determined) = (vec![texts[4].clone()], vec![texts[5].clone()]);
        a.machine.clock_mhz = clock_mhz;
        for (tlb, entries) in a.machine.tlbs.iter_mut().zip(tlb_entries) {
            tlb.entries = entries;
            tlb.name = texts[6].clone();
        }
        let cost = sides.0.cost;
        (a.outcome.data, a.outcome.fetch) = sides;
        a.outcome.switch_cycles = float;
        (a.outcome.loads, a.outcome.table_bytes, a.outcome.instructions) = (counts[1], counts[2], counts[3]);
        a.outcome.pages_touched = vec![(PageSize::G1, counts[4])];
        a.outcome.machine = texts[7].clone();
        a.outcome.tlbs = vec![TlbCounts { name: texts[6].clone(), lookups: counts[5], hits: counts[6], ..TlbCounts::default() }];
        a.outcome.caches = vec![CacheCounts { name: texts[5].clone(), walk_lookups: counts[6], walk_hits: counts[7], ..CacheCounts::default() }];
        a.outcome.pages = vec![PageRow { process: 1, addr: counts[0], size: PageSize::M2, region: Some(counts[1] as u32 % 3), accesses: counts[2], cost }];
        a.outcome.regions = vec![RegionRow { process: 1, start: 0, end: counts[3], source: MapSource::Stack, site: vec![], pages: 1, accesses: 1, cost }];
        a.outcome.threads = vec![ThreadRow { process: 1, thread: 2, accesses: counts[4], cost }];
        a.outcome.instructions_rows = vec![IpRow { process: 1, ip: counts[5], cost }];
        let mut rows = rows.into_iter();
        (a.objects, a.functions, a.regions) = (rows.next().unwrap(), rows.next().unwrap(), rows.next().unwrap());
        a.huge_gain = common::gain(&a, measured);
        a
    }
}

fn style() -> impl Strategy<Value = Style> {
    (60..=160usize, any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0..5usize))
        .prop_map(|(width, color, unicode, plots, top)| Style { width, color, unicode, plots, top })
}

/// The text without ANSI colours.
fn plain(text: &str) -> String {
    let parts = text.split("\x1b[").enumerate();
    parts.map(|(i, part)| if i == 0 { part } else { part.split_once('m').expect("a colour").1 }).collect()
}

fn is_tidy(text: &str, style: &Style) -> Result<(), TestCaseError> {
    for line in plain(text).lines() {
        prop_assert!(text::width(line) <= style.width, "{} > {}: {line}", text::width(line), style.width);
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        prop_assert!(!line.ends_with(' '), "{line:?}");
        prop_assert!(style.unicode || line.is_ascii(), "{line:?}");
    }
    prop_assert!(style.color || !text.contains('\x1b'));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn terminal_text_is_tidy(analysis in analysis(ANY.boxed()), style in style()) {
        is_tidy(&common::text_of(&analysis, &style), &style)?;
        let outcomes = vec![analysis.outcome.clone(); style.top.unwrap_or(1)];
        is_tidy(&common::simulated(&outcomes, &style), &style)?;
    }

    #[test]
    fn pages_are_well_formed(analysis in analysis(ANY.boxed())) {
        let page = common::page_of(&analysis);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(&page, options);
        prop_assert!(document.is_ok(), "{:?}\n{page}", document.err());
        let document = document.unwrap();
        let named = |tag: &'static str| document.descendants().filter(move |node| node.has_tag_name(tag));
        // What a name smuggles in would be an element, an address or a handler.
        prop_assert_eq!(named("script").count(), 1);
        prop_assert_eq!(named("style").count(), 1);
        prop_assert_eq!(named("img").count() + named("link").count() + named("iframe").count() + named("a").count(), 0);
        for node in document.descendants() {
            for attribute in node.attributes() {
                prop_assert!(!attribute.name().starts_with("on") && attribute.name() != "href" && attribute.name() != "src");
                let drawn = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "d", "viewBox", "data-v"];
                if drawn.contains(&attribute.name()) {
                    let value = attribute.value();
                    prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{}={value}", attribute.name());
                }
            }
        }
        // Every table says what it is, every drawing is either described or hidden from those who listen.
        for table in named("table") {
            prop_assert!(table.children().any(|node| node.has_tag_name("caption")));
        }
        for svg in named("svg").filter(|svg| !svg.ancestors().skip(1).any(|node| node.has_tag_name("svg"))) {
            prop_assert!(svg.attribute("aria-label").is_some() || svg.attribute("aria-hidden") == Some("true"));
        }
        let mut ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), all);
    }

    #[test]
    fn json_round_trips(analysis in analysis((POSITIVE | NEGATIVE | ZERO).boxed())) {
        let text = json::render(&analysis);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&value["schema"], "lookaside-analysis/3");
        prop_assert_eq!(serde_json::from_str::<Analysis>(&text).unwrap(), analysis);
    }
}
