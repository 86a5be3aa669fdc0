//! Plans as TOML.

use std::sync::atomic::AtomicBool;

use lookaside_techniques::hugepages::plan::HugePlan;
use lookaside_techniques::hugepages::planner::HugePlanner;
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

fn sample() -> HugePlan {
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
        assert!(said.ends_with("or make it again with lookaside plan hugepages"), "{said}");
    }
    let twice = HugePlan { later: vec![first.clone(), first.clone()], ..good.clone() };
    assert!(HugePlan::parse(&twice.to_toml(), "p").expect_err("twice").to_string().contains("later[1].address"));
    let missing = HugePlan::load(std::path::Path::new("/no/such.toml")).expect_err("missing").to_string();
    assert!(missing.starts_with("/no/such.toml: cannot be read"), "{missing}");
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
