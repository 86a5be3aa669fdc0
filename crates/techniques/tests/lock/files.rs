//! Plans as TOML.

use lookaside_techniques::lock::histogram::LockPage;
use lookaside_techniques::lock::layout::{RegionLayout, Runner};
use lookaside_techniques::lock::maps::ListedMapping;
use lookaside_techniques::lock::plan::NativePage;
use lookaside_techniques::lock::plan::{CurvePoint, LockChoice, LockPlan, Optimum, PageRegion, PlannedPage, Stalls};
use lookaside_techniques::lock::regions::{self, Confidence};
use lookaside_techniques::lock::select::PageSelector;
use lookaside_techniques::lock::stall::{SideStall, StallCycles};
use lookaside_techniques::plan::{Plan as _, ProgramPlan as _};
use lookaside_trace::MapSource;
use proptest::prelude::*;

fn cycles() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -1e15..1e15, (0..1u64 << 50).prop_map(|units| units as f64 / 65536.0)]
}

fn stalls() -> impl Strategy<Value = Stalls> {
    (cycles(), cycles(), cycles(), cycles(), cycles()).prop_map(|(a, b, c, d, worst_cycles)| {
        let side = |micro_cycles, main_cycles| SideStall { micro_cycles, main_cycles };
        Stalls { worst_cycles, mean: StallCycles { data: side(a, b), fetch: side(c, d) } }
    })
}

fn sources() -> impl Strategy<Value = MapSource> {
    prop_oneof![
        Just(MapSource::Anonymous),
        Just(MapSource::Heap),
        Just(MapSource::Stack),
        (".*", 0..1u64 << 40).prop_map(|(path, offset)| MapSource::File { path, offset })
    ]
}

fn pages() -> impl Strategy<Value = PlannedPage> {
    let region = (".*", 0..1u64 << 47, 0..1u64 << 40, 0..8u8, sources()).prop_map(
        |(name, start, offset_bytes, prot, source)| {
            let mapping = ListedMapping { start, end: start + 4096, prot, source, site: 0 };
            PageRegion { name, offset_bytes, mapping }
        },
    );
    let counts = prop::collection::vec(0..1u64 << 60, 4);
    let whose = (any::<u32>(), ".*");
    let sure = prop::sample::select(vec![Confidence::Exact, Confidence::Likely, Confidence::Guess]);
    let rests_on = prop::collection::vec(".*", 0..3);
    let native = (0..1u64 << 52, ".*", 0..1u64 << 40, sure, rests_on).prop_map(
        |(vpn, region, offset_bytes, confidence, rests_on)| NativePage {
            vpn,
            region,
            offset_bytes,
            confidence,
            rests_on,
        },
    );
    let there = (prop::option::of(native), prop::option::of(".*"));
    let whole = (whose, counts, cycles(), prop::option::of(region), there);
    whole.prop_map(|((process, symbol), n, saving_cycles, region, (native, not_native))| PlannedPage {
        process,
        vpn: 0,
        symbol,
        data_accesses: n[0],
        fetch_accesses: n[1],
        data_misses: n[2],
        fetch_misses: n[3],
        saving_cycles,
        not_native,
        region,
        native,
    })
}

fn plans() -> impl Strategy<Value = LockPlan> {
    let chosen = prop::collection::vec((any::<u32>(), 0..1u64 << 52), 0..5);
    let choice = (0..4usize, stalls(), chosen).prop_map(|(i, stalls, pages)| {
        let pages = pages.into_iter().map(|(process, vpn)| LockPage { process, vpn }).collect();
        LockChoice { selector: PageSelector::ALL[i], stalls, pages }
    });
    let point = (any::<u32>(), cycles(), cycles()).prop_map(|(entries, mean_cycles, worst_cycles)| CurvePoint {
        entries,
        mean_cycles,
        worst_cycles,
    });
    let optimum =
        (any::<u32>(), any::<u32>(), cycles(), cycles()).prop_map(|(of_pages, entries, mean_cycles, worst_cycles)| {
            Optimum { of_pages, entries, mean_cycles, worst_cycles }
        });
    let texts = (".*", ".*", prop::collection::vec(".*", 0..3), prop::collection::vec(".*", 0..3));
    let numbers = (0..4usize, 0..1u64 << 60, 0.0..=1.0f64, prop::collection::vec(0..1u64 << 62, 0..9), 0..1u64 << 60);
    let lists = (
        prop::collection::vec(pages(), 0..6),
        prop::collection::vec(choice, 0..5),
        prop::collection::vec(point, 0..8),
        prop::option::of(optimum),
    );
    (texts, numbers, (stalls(), stalls()), lists, 12..31u32).prop_map(
        |((machine, tlb, command, remarks), numbers, (base, locked), (mut pages, choices, curve, optimum), shift)| {
            let (selector, accesses, tried_share, seeds, model_runs) = numbers;
            (0..).zip(&mut pages).for_each(|(i, page)| page.vpn = i * 77);
            LockPlan {
                machine,
                tlb,
                entries: 6,
                page_bytes: 1 << shift,
                selector: PageSelector::ALL[selector],
                command,
                accesses,
                tried_share,
                seeds,
                model_runs,
                remarks,
                base,
                locked,
                optimum,
                pages,
                choices,
                curve,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every page gets an answer, and only one: where it lies, or why that is not known.
    #[test]
    fn pages_are_found_in_a_plain_run_or_it_is_said_why_not(mut plan in plans(), vpns in prop::collection::vec(0x100..0x108u64, 6)) {
        for (page, vpn) in plan.pages.iter_mut().zip(&vpns) {
            (page.process, page.vpn) = (1 + page.process % 2, *vpn);
        }
        plan.page_bytes = 4096;
        // Four pages of a file, two of which are mapped in the plain run too: it has another size, so that nothing is
        // exact.
        let profiled = RegionLayout::from_listing("00100000-00104000 r--p 00000000 fe:00 10 /bin/p", Runner::Valgrind, None);
        let native = RegionLayout::from_listing("555555554000-555555556000 r--p 00000000 fe:00 10 /bin/p", Runner::Native, None);
        plan.find_natively(1, &regions::RegionMatching::new(&profiled, &native));
        for page in &plan.pages {
            let there = page.native.as_ref().map(|native| (native.vpn, native.offset_bytes, native.confidence));
            let why = page.not_native.clone().unwrap_or_default();
            match (page.process, page.vpn - 0x100) {
                (1, at @ 0..=1) => prop_assert_eq!((there, &why[..]), (Some((0x5_5555_5554 + at, at * 4096, Confidence::Likely)), "")),
                (1, 2..=3) => prop_assert!(there.is_none() && why.contains("no partner of p r-- +0x0"), "{}", why),
                (1, _) => prop_assert!(there.is_none() && why.ends_with("not mapped in the profiled run"), "{}", why),
                _ => prop_assert!(there.is_none() && why.starts_with("process 2 was started by the program"), "{}", why),
            }
        }
    }


    #[test]
    fn what_is_written_is_read(plan in plans()) {
        prop_assert_eq!(LockPlan::parse(&plan.to_toml(), "t"), Ok(plan));
    }
}

const PLAN: &str = "machine = \"cortex-a9\"\ntlb = \"main\"\nentries = 1\npage_bytes = 4096\nselector = \"gain\"\n\
    command = [\"x\"]\naccesses = 5\ntried_share = 1.0\nseeds = [1]\nmodel_runs = 2\n\
    base = { worst_cycles = 1.0, mean = { data = { micro_cycles = 0.0, main_cycles = 1.0 }, fetch = { micro_cycles = 0.0, main_cycles = 0.0 } } }\n\
    locked = { worst_cycles = 0.0, mean = { data = { micro_cycles = 0.0, main_cycles = 0.0 }, fetch = { micro_cycles = 0.0, main_cycles = 0.0 } } }\n\
    [[page]]\nprocess = 1\nvpn = 0x10\nsymbol = \"\"\ndata_accesses = 5\nfetch_accesses = 0\ndata_misses = 1\nfetch_misses = 0\nsaving_cycles = 1.0\n";

#[test]
fn errors_name_file_key_and_what_to_do() {
    let plan = LockPlan::parse(PLAN, "p.toml").expect("a plan");
    assert_eq!((plan.pages[0].vpn, plan.pages[0].region.is_none()), (16, true));
    let error = |from: &str, to: &str| {
        assert!(PLAN.contains(from), "{from}");
        let said = LockPlan::parse(&PLAN.replacen(from, to, 1), "p.toml").expect_err("bad").to_string();
        assert!(said.starts_with("p.toml: ") && said.lines().count() == 1, "{said}");
        said
    };
    let has = |said: String, parts: &[&str]| parts.iter().for_each(|part| assert!(said.contains(part), "{said}"));
    let again = "make it again with lookaside lock plan";
    has(error("entries = 1", "entries = "), &["line 3", again]);
    has(error("entries = 1", "entries = -1"), &["entries: ", again]);
    has(error("vpn = 0x10", "vpn = \"16\""), &["page[0].vpn: ", again]);
    has(error("vpn = 0x10\n", ""), &["page[0]", "vpn", again]);
    has(error("\"gain\"", "\"best\""), &["selector: ", "accesses", again]);
    has(error("tlb =", "tbl ="), &["tbl", again]);
    has(error("saving_cycles = 1.0", "saving_cycles = nan"), &["page[0].saving_cycles: nan", again]);
    has(error("worst_cycles = 1.0", "worst_cycles = inf"), &["base.worst_cycles: ", again]);
    has(error("page_bytes = 4096", "page_bytes = 5000"), &["page_bytes: 5000", "no power of two"]);
    has(error("entries = 1", "entries = 0"), &["page: 1 pages for 0 entries", "leave some out"]);
    has(error("vpn = 0x10", "vpn = 0x7fffffffffffffff"), &["page[0].vpn: ", "beyond all addresses"]);
    has(error("vpn = 0x10", "vpn = 0x10000000000000"), &["page[0].vpn: ", "beyond all addresses"]);
    let last = LockPlan::parse(&PLAN.replacen("vpn = 0x10", "vpn = 0xfffffffffffff", 1), "p.toml").expect("a page");
    assert_eq!(last.pages[0].vpn, u64::MAX / 4096);
    let (_, page) = PLAN.split_once("[[page]]").expect("a page");
    let twice = format!("{}[[page]]{page}", PLAN.replace("entries = 1", "entries = 2"));
    let said = LockPlan::parse(&twice, "p.toml").expect_err("twice").to_string();
    assert_eq!(said, "p.toml: page[1].vpn: 0x10 stands twice; leave one out");
    let gone = LockPlan::load("/no/such.toml".as_ref()).expect_err("none").to_string();
    assert!(gone.starts_with("/no/such.toml: cannot be read: "), "{gone}");
}

#[test]
fn a_file_of_a_mib_is_read_and_a_longer_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    let load = |text: &[u8]| {
        std::fs::write(&path, text).expect("a file");
        LockPlan::load(&path).map_err(|error| error.to_string())
    };
    let padded = |bytes| {
        let mut text = PLAN.as_bytes().to_vec();
        text.resize(bytes, b'\n');
        text
    };
    assert_eq!(load(&padded(1 << 20)), Ok(LockPlan::parse(PLAN, "p.toml").expect("a plan")));
    let error = |why| Err(format!("{}: {why}", path.display()));
    assert_eq!(load(&padded((1 << 20) + 1)), error("is longer than 1 MiB, which no lock plan is"));
    assert_eq!(load(b"\xff"), error("is no UTF-8 text"));
}

#[test]
fn a_remark_that_is_added_stays_in_the_plan() {
    let mut plan = LockPlan::parse(PLAN, "p.toml").expect("a plan");
    plan.remarks_mut().push("one".into());
    assert_eq!(plan.remarks, ["one"]);
}
