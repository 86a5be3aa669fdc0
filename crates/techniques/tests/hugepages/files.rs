//! Plans as TOML.

use std::sync::atomic::AtomicBool;

use lookaside_techniques::hugepages::plan::{HugePlan, PlannedWindow, WindowRegion};
use lookaside_techniques::hugepages::planner::HugePlanner;
use lookaside_techniques::hugepages::WINDOW_BYTES;
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::plan::{Plan as _, Planner as _};
use proptest::prelude::*;

use crate::twin;

/// A plan with windows, on a slow clock so that some pay and some do not.
fn made(blocks: &[lookaside_trace::Block]) -> HugePlan {
    let setup = twin::small();
    let profile = twin::profile(&setup, blocks);
    let planner = HugePlanner::new(setup, 6).expect("it has huge pages");
    planner.plan(&profile, vec!["x".into()], &Unnamed, &AtomicBool::new(false)).expect("a plan")
}

/// None of its windows pays, and all are in [`HugePlan::later`].
pub fn sample() -> HugePlan {
    let mut block = lookaside_trace::Block { process: 1, thread: 1, ..Default::default() };
    let source = lookaside_trace::MapSource::Anonymous;
    block.push_event(lookaside_trace::Event::Map { addr: 10 << 21, len: 8 << 21, prot: 3, source, site: 0 });
    for i in 0..400u64 {
        block.push(lookaside_trace::Kind::Load, (10 << 21) + ((i % 5) << 21) + (i * 7 % 23) * 4096);
    }
    made(&[block])
}

#[test]
fn what_cannot_be_is_one_line_with_its_key() {
    let good = sample();
    assert!(good.later.len() >= 2 && good.windows.is_empty(), "{} {}", good.windows.len(), good.later.len());
    let text = good.to_toml();
    assert_eq!(HugePlan::parse(&text, "p.toml").expect("its own"), good);
    let first = &good.later[0];
    let address = format!("address = {}", first.address);
    let second = format!("address = {}", good.later[1].address);
    for (from, to, part) in [
        ("page_bytes = 2097152", "page_bytes = 4096", "page_bytes: 4096"),
        ("budget = 6", "budget = 1", "windows for a budget of 1"),
        ("bytes = 2097152\nsymbol", "bytes = 4096\nsymbol", "later[0].bytes: 4096 is not"),
        (&address, "address = 4096", "later[0].address: 0x1000 is no multiple"),
        (&address, &second, "later[0].region"),
        (&address, "address = 2097152", "later[0].region.mapping: "),
        ("saved_cycles", "saved", "saved"),
        ("nth = 0", "nth = 1", "later[0].region.nth: 1 of 1 regions"),
        ("offset_bytes = ", "offset_bytes = 1", "later[0].region.offset_bytes: "),
        ("budget = 6", "budget = six", "p.toml: line "),
    ] {
        assert!(text.contains(from), "{from:?}");
        let mended = match from {
            // The effects have savings too.
            "saved_cycles" => text.replace(from, to),
            _ => text.replacen(from, to, 1),
        };
        let said = HugePlan::parse(&mended, "p.toml").expect_err(part).to_string();
        assert!(said.contains(part) && said.starts_with("p.toml: ") && said.lines().count() == 1, "{part}: {said}");
        assert!(said.ends_with("or make it again with lookaside hugepages plan"), "{said}");
    }
    let twice = HugePlan { later: vec![first.clone(), first.clone()], ..good.clone() };
    assert!(HugePlan::parse(&twice.to_toml(), "p").expect_err("twice").to_string().contains("later[1].address"));
    let full = HugePlan { budget: good.later.len() as u32, ..good.clone() };
    assert_eq!(HugePlan::parse(&full.to_toml(), "p").expect("as many windows as it may have"), full);
    let missing = HugePlan::load(std::path::Path::new("/no/such.toml")).expect_err("missing").to_string();
    assert!(missing.starts_with("/no/such.toml: cannot be read"), "{missing}");
}

/// What is changed in a window of a plan.
type Change = dyn Fn(&mut PlannedWindow, &mut WindowRegion);

#[test]
fn numbers_of_a_window_may_be_as_large_as_it_is_and_no_larger() {
    let good = sample();
    // The only window of a region that is no larger.
    let with = |change: &Change| {
        let mut window = good.later[1].clone();
        let mut region = window.region.take().expect("there is a map");
        (region.mapping.start, region.mapping.end) = (window.address, window.address + WINDOW_BYTES);
        region.offset_bytes = 0;
        change(&mut window, &mut region);
        window.region = Some(region);
        HugePlan { later: vec![window], ..good.clone() }
    };
    let address = good.later[1].address;
    let fits: [&Change; 4] = [
        &|_, _| (),
        &|window, _| (window.saved_cycles, window.collapse_cycles) = (0.0, 0.0),
        &|window, _| (window.touched_bytes, window.bloat_bytes) = (WINDOW_BYTES, WINDOW_BYTES),
        &|_, region| (region.nth, region.equals) = (1, 2),
    ];
    for change in fits {
        let plan = with(change);
        assert_eq!(HugePlan::parse(&plan.to_toml(), "p").expect("it can be"), plan);
    }
    let around = |start: u64, end: u64| {
        format!("region.mapping: {start:#x} to {end:#x} does not hold the window at {address:#x}")
    };
    let end = address + WINDOW_BYTES;
    let refused: [(&Change, String); 9] = [
        (&|window, _| window.saved_cycles = -1.0, "saved_cycles: -1 is no number of cycles".into()),
        (&|window, _| window.saved_cycles = f64::INFINITY, "saved_cycles: nan and inf are no numbers here".into()),
        (&|window, _| window.collapse_cycles = f64::NAN, "collapse_cycles: nan and inf are no numbers here".into()),
        (
            &|window, _| window.touched_bytes = WINDOW_BYTES + 1,
            "touched_bytes: 2097153 is more than the window has, 2097152".into(),
        ),
        (
            &|window, _| window.bloat_bytes = u64::MAX >> 1,
            "bloat_bytes: 9223372036854775807 is more than the window has, 2097152".into(),
        ),
        (&|window, region| region.mapping.start = window.address + 1, around(address + 1, end)),
        (&|_, region| region.mapping.end -= 1, around(address, end - 1)),
        (&|_, region| region.mapping.start -= 4096, "region.offset_bytes: 0 is not where the window lies, 4096".into()),
        (&|_, region| (region.nth, region.equals) = (2, 2), "region.nth: 2 of 2 regions, counted from 0".into()),
    ];
    for (change, why) in refused {
        let said = HugePlan::parse(&with(change).to_toml(), "p").expect_err(&why).to_string();
        assert!(said.starts_with(&format!("p: later[0].{why}; mend it")), "{why}: {said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_a_plan_or_one_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(said) = HugePlan::parse(&text, "p") {
            prop_assert_eq!(said.to_string().lines().count(), 1);
        }
    }

    /// A plan with a piece cut out, doubled or overwritten.
    #[test]
    fn a_damaged_plan_is_a_plan_or_one_line(at in any::<prop::sample::Index>(), length in 0..40usize, with in "[0-9a-z=\\[\\]\"\\-. \n]{0,12}") {
        let text = TEXT.with(Clone::clone);
        let from = at.index(text.len());
        let (from, to) = (from, (from + length).min(text.len()));
        let damaged = format!("{}{with}{}", &text[..from], &text[to..]);
        match HugePlan::parse(&damaged, "p") {
            Ok(plan) => prop_assert_eq!(HugePlan::parse(&plan.to_toml(), "p").expect("its own"), plan),
            Err(said) => prop_assert_eq!(said.to_string().lines().count(), 1, "{}", said),
        }
    }
}

thread_local! {
    static TEXT: String = sample().to_toml();
}
