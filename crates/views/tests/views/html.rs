//! What the page says of the hand-made analyses.

use crate::common;

/// Text of the page without its elements, spaces run together.
pub fn words(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).unwrap();
    let body = document.descendants().find(|node| node.has_tag_name("body")).unwrap();
    let texts: Vec<&str> = body.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
    texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn first_screen_answers_cost_cause_and_cure() {
    let words = words(&common::page_of(&common::exact()));
    for answer in [
        "Translation costs 27.9 % of the modelled cycles: 16.3 G of 58.3 G (at 3,700 MHz: 4.41 s of 15.8 s).",
        "build_table (join.c:88) causes 72.5 % of it.",
        "Huge pages everywhere would save 93.9 % of it.",
        "recorded every access (by valgrind, page-granular (4 KiB))",
        "the preset nearest to the running CPU, Intel Xeon Platinum 8481C",
    ] {
        assert!(words.contains(answer), "{answer:?} is not in {words}");
    }
}

#[test]
fn what_is_near_is_marked_wherever_it_stands() {
    let mut analysis = common::exact();
    assert!(!words(&common::page_of(&analysis)).contains('≈'));
    analysis.remedies[0].approximate = true;
    let words = words(&common::page_of(&analysis));
    assert!(words.contains("Huge pages everywhere would save ≈ 93.9 % of it."));
    assert_eq!(words.matches('≈').count(), 3, "in the verdict, the card and the table; the prediction is no model's");
}

#[test]
fn prediction_and_measurement_stand_beside_each_other() {
    let page = words(&common::page_of(&common::once()));
    assert!(page.contains("Huge pages: can't tell. The program ran under the recorder only (--once)."), "{page}");
    assert!(page.contains("Will huge pages help? Modelled time is not the program's run time."), "{page}");
    let range = "huge pages predicted 1.027 to 1.356 times as fast: saves 413 ms to 4.14 s of the modelled 15.8 s (least: 6 walks";
    assert!(page.contains(range) && page.contains("; --measure runs it with and without them"), "{page}");
    let page = words(&common::page_of(&common::timed(1.172, 10)));
    let range = "huge pages predicted 1.215 times as fast, 1.144 to 1.263: saves 1.41 s to 2.33 s of 11.2 s user";
    assert!(page.contains(range) && !page.contains("--measure"), "{page}");
    assert!(page.contains("huge pages page faults 766,000 small pages → 1,510 huge: saves 333 ms"), "{page}");
    let found =
        "huge pages measured 1.172 times (95 % interval 1.149 – 1.195, significant), 11.2 s → 9.56 s of user time in 10 rounds: \
                 within the predicted range";
    assert!(page.contains(found), "{page}");
}

#[test]
fn tables_are_complete() {
    let analysis = common::exact();
    let words = words(&common::page_of(&analysis));
    let rows = analysis.objects.iter().chain(&analysis.functions).chain(&analysis.regions);
    for name in
        rows.map(|row| &row.name).chain(analysis.remedies.iter().map(|remedy| &remedy.what)).chain(&analysis.notes)
    {
        assert!(words.contains(name), "{name} is missing");
    }
    assert!(words.contains("500 more rows are left out here"), "1500 pages, 1000 shown");
}

#[test]
fn pages_and_threads_are_named() {
    let words = words(&common::page_of(&common::exact()));
    assert!(words.contains(
        "0x7f3101eef000 4K <0.1 % 225 k 8,999 2,999 89,989 anonymous, mapped at build_table (join.c:88) 4711"
    ));
    assert!(words.contains("4712 of process 4711 10.0 %"), "{words}");
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for analysis in [common::exact(), common::sampled(), common::tiny(), common::empty()] {
        let page = common::page_of(&analysis);
        for word in ["http:", "https:", "url(", "@import", "src=", "href="] {
            assert!(!page.contains(word), "{word} in the page");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn an_estimate_says_so_and_counts_nothing() {
    let page = common::page_of(&common::sampled());
    let words = words(&page);
    assert!(words
        .contains("sampled an estimate: 31,402 samples by the clock, one every 500 µs; 91.2 % have a data address"));
    assert!(words.contains("misses per 1,000 by TLB entries (ESTIMATE, LRU)"));
    assert!(words.contains("lookaside analyze --exact hashjoin"));
    for count in ["Translation costs", "L1 misses", "walks left"] {
        assert!(!words.contains(count), "{count:?} in a sampled report");
    }
}

#[test]
fn cut_short_and_killed_are_said() {
    let words = words(&common::page_of(&common::empty()));
    assert!(words.contains("The program was killed by signal 9."));
    assert!(words.contains("Cut short."));
    assert!(words.contains("No access was seen"));
}

#[test]
fn same_analysis_same_page() {
    assert_eq!(common::page_of(&common::exact()), common::page_of(&common::exact()));
}
