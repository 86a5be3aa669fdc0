use proptest::prelude::*;

use super::*;

fn limits() -> Limits {
    Limits {
        cpus: vec![0, 3],
        open_files: 1024,
        tasks: Some((4096, "ulimit -u".into())),
        available_bytes: 16 << 30,
        no_compartments: Some("no keys".into()),
    }
}

fn rings(cases: &[RingCase]) -> impl Iterator<Item = &RingCase> {
    cases.iter().filter(|case| case.ring.participants > 1)
}

#[test]
fn the_usual_sweeps_are_all_rings_of_both_kinds_once() {
    let options = SwitchOptions::default();
    let with = |huge: bool| cases(&options, huge, false);
    // lat_ctx: six rings by five sizes, of which nothing is read in base pages only; extreme: three by ten, own and the
    // same memory.
    assert_eq!(rings(&with(false)).count(), 2 * (6 * 5 + 3 * 10 * 2));
    assert_eq!(rings(&with(true)).count(), 2 * (6 * (5 + 4) + 3 * 10 * 2 * 2));
    assert_eq!(with(true).len() - rings(&with(true)).count(), 2 * (5 + 4 + 10 * 2));
    let mut seen = std::collections::HashSet::new();
    assert!(with(true).into_iter().all(|case| seen.insert(case)));
    // Compartments: the rings in base pages.
    let all = cases(&options, true, true);
    let of_compartments = || all.iter().filter(|case| case.who == Who::Compartments);
    assert_eq!(of_compartments().filter(|case| case.ring.participants > 1).count(), 6 * 5 + 3 * 10 * 2);
    assert_eq!(of_compartments().count(), 6 * 5 + 3 * 10 * 2 + 5 + 10);
    assert!(of_compartments().all(|case| case.ring.pages == PageKind::Base));
    assert_eq!(all.len() - of_compartments().count(), with(true).len());
}

proptest! {
    /// Whatever is asked for: each ring has its work alone, of the same kind, in the same pages.
    #[test]
    fn each_ring_has_its_turn_alone(
        participants in prop::collection::vec(2usize..70, 1..4), kib in prop::collection::vec(0u64..300, 1..4),
        children in prop::collection::vec(2usize..20, 1..4), pages in prop::collection::vec(1u64..2000, 1..5), huge in any::<bool>(),
        compartments in any::<bool>(),
    ) {
        let options = SwitchOptions { participants, kib, children, page_counts: pages, ..SwitchOptions::default() };
        let options = checked(&options, &limits()).expect("they can be");
        let all = cases(&options, huge, compartments);
        for case in rings(&all) {
            let alone: Vec<&RingCase> = all.iter().filter(|other| **other == case.alone()).collect();
            prop_assert_eq!(alone.len(), 1);
            let (ring, one) = (case.ring, alone[0].ring);
            prop_assert_eq!((one.participants, one.size, one.pages, one.benchmark), (1, ring.size, ring.pages, ring.benchmark));
            prop_assert!(huge || ring.pages == PageKind::Base);
            let layout = AreaLayout::of(&options, ring.benchmark, ring.pages);
            let bytes = ring.size * if ring.benchmark == Benchmark::LatCtx { 1024 } else { PAGE };
            prop_assert!(ring.participants <= layout.areas && bytes <= layout.bytes_each);
            prop_assert!(ring.participants <= members(&options));
        }
    }
}

#[test]
fn areas_are_whole_pages_of_their_kind() {
    let options = SwitchOptions { kib: vec![0, 5], page_counts: vec![1, 513], ..SwitchOptions::default() };
    let of = |benchmark, pages| AreaLayout::of(&options, benchmark, pages);
    assert_eq!(of(Benchmark::LatCtx, PageKind::Base), AreaLayout { areas: 64, bytes_each: 8192 });
    assert_eq!(of(Benchmark::LatCtx, PageKind::Huge), AreaLayout { areas: 64, bytes_each: HUGE_PAGE });
    assert_eq!(of(Benchmark::Extreme, PageKind::Base), AreaLayout { areas: 16, bytes_each: 513 * PAGE });
    assert_eq!(of(Benchmark::Extreme, PageKind::Huge), AreaLayout { areas: 16, bytes_each: 2 * HUGE_PAGE });
    let none = SwitchOptions { kib: vec![0], ..options };
    assert_eq!(AreaLayout::of(&none, Benchmark::LatCtx, PageKind::Huge).bytes(), 0);
}

#[test]
fn sizes_are_put_in_order_and_taken_once() {
    let options = SwitchOptions { kib: vec![16, 0, 16], children: vec![4, 2, 4], ..SwitchOptions::default() };
    let found = checked(&options, &limits()).expect("they can be");
    assert_eq!((found.kib, found.children), (vec![0, 16], vec![2, 4]));
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    let usual = SwitchOptions::default;
    for (options, said) in [
        (SwitchOptions { participants: vec![], ..usual() }, "participants: none given"),
        (SwitchOptions { rounds: 0, ..usual() }, "rounds: none given"),
        (SwitchOptions { participants: vec![4, 1], ..usual() }, "participants 1: a ring has at least 2"),
        (SwitchOptions { children: vec![0], ..usual() }, "children 0: a ring has at least 2"),
        (SwitchOptions { page_counts: vec![1, 0], ..usual() }, "pages 0: a participant visits at least 1"),
        (SwitchOptions { page_counts: vec![1 << 21], ..usual() }, "pages 2097152: at most 1048576"),
        (SwitchOptions { page_counts: (1..=17).collect(), ..usual() }, "pages: 17 sizes; at most 16"),
        (SwitchOptions { cpu: Some(1), ..usual() }, "CPU 1: this program may run on 0, 3"),
        (
            SwitchOptions { participants: vec![2048], ..usual() },
            "2048 participants: 2048 processes and as many threads at a time; ulimit -u allows 4096",
        ),
        (SwitchOptions { children: vec![usize::MAX], ..usual() }, "18446744073709551615 participants"),
        (
            SwitchOptions { participants: vec![300], ..usual() },
            "300 participants: their pipes take 1232 open files, of which this program may have 1024",
        ),
        (
            SwitchOptions { kib: vec![1 << 20], ..usual() },
            "the participants and what they read take 139500 MiB, and 16384 MiB are free",
        ),
        (SwitchOptions { kib: vec![u64::MAX], ..usual() }, "the participants and what they read take "),
    ] {
        let error = checked(&options, &limits()).expect_err(said).to_string();
        assert!(error.starts_with(said) && !error.contains('\n'), "{said:?}: {error}");
    }
    // Compartments need base pages of their own.
    let little = |available_bytes, no_compartments: Option<&str>| {
        let limits = Limits { available_bytes, no_compartments: no_compartments.map(Into::into), ..limits() };
        checked(&SwitchOptions { kib: vec![1 << 10], ..usual() }, &limits)
    };
    let enough =
        (64 << 20..2 << 30).step_by(1 << 20).find(|bytes| little(*bytes, Some("no keys")).is_ok()).expect("some");
    assert!(little(enough, None).is_err() && little(enough + (200 << 20), None).is_ok());
    // Nobody limits anything: still no figure goes round.
    let free =
        Limits { open_files: u64::MAX, tasks: None, available_bytes: u64::MAX, no_compartments: None, ..limits() };
    let all =
        SwitchOptions { participants: vec![usize::MAX], children: vec![usize::MAX], kib: vec![u64::MAX], ..usual() };
    assert!(checked(&all, &free).is_err());
    assert!(checked(&usual(), &limits()).is_ok());
}
