//! Lines that a page brings when it leaves a recorder's window (`SEMANTICS.md` §5): how often the data caches see them,
//! at which address and as which kind, counted by hand.

use lookaside_engine::{CacheCounts, Engine, Outcome, Setup};
use lookaside_machine::{parse, Machine};
use lookaside_trace::{Block, Kind};

/// A first level for data and one for instructions, and caches of one way and 64 lines: line n of any page can lie in
/// line n of the cache only.
fn machine() -> Machine {
    let mut text = "name = \"m\"\nclock_mhz = 1000.0\n[memory]\ncycles = 100.0\n\
                    [page_table]\nformat = \"x86-64-4level\"\n"
        .to_owned();
    for (name, serves) in [("d", "[\"load\", \"store\"]"), ("i", "[\"fetch\"]")] {
        text += &format!(
            "[[tlb]]\nname = \"{name}tlb\"\nlevel = 1\nserves = {serves}\npage_sizes = [\"4K\"]\nentries = 16\n\
             ways = \"full\"\nreplacement = \"lru\"\ntags = [\"asid\"]\nhit_cycles = 0.0\n\
             [[cache]]\nname = \"{name}cache\"\nlevel = 1\nserves = {serves}\nsize = \"4K\"\nways = 1\nhit_cycles = 4.0\n"
        );
    }
    // Beyond the walker's reach, so that the caches hold what was accessed and nothing else.
    text += "[[cache]]\nname = \"l2\"\nlevel = 2\nserves = [\"load\"]\nsize = \"4M\"\nways = 16\nhit_cycles = 10.0\n\
             [walker]\nfirst_cache_level = 2\n";
    parse(&text, "m").expect("a good machine")
}

/// A page comes in by an access to one line, and leaves with the other lines that were touched.
fn visit(block: &mut Block, kind: Kind, page: u64, line: u64, others: &[u64]) {
    block.push(kind, page << 12 | line << 6);
    let lines = others.iter().fold(0, |lines, line| lines | 1 << line);
    block.push_leave(page << 12, kind, 0, lines);
}

fn run(visits: impl Fn(&mut Block)) -> Outcome {
    let mut block = Block { process: 7, thread: 7, ..Block::default() };
    visits(&mut block);
    let mut engine = Engine::new(Setup::new(machine())).expect("a good setup");
    engine.run(&block);
    let outcome = engine.outcome();
    let mut seen = Engine::new(Setup::new(machine())).expect("a good setup");
    seen.run_traced(&block, &mut |_| {});
    assert_eq!(seen.outcome(), outcome, "looked at access by access");
    outcome
}

fn data(cache: &CacheCounts) -> (u64, u64) {
    (cache.data_lookups, cache.data_hits)
}

#[test]
fn lines_of_a_page_reach_the_data_caches_once_each_visit() {
    let outcome = run(|block| {
        // Lines 0, 1, 2 and 63, all new; then 2 and 1, which are there, and 5, which is new.
        visit(block, Kind::Load, 3, 0, &[1, 2, 63]);
        visit(block, Kind::Load, 3, 2, &[1, 5]);
    });
    assert_eq!(data(&outcome.caches[0]), (7, 2));
    // Five lines from memory: 100 cycles in place of a hit's 4.
    assert_eq!(outcome.data.data_stall_cycles, 5.0 * 96.0);
    // The lines are no accesses: two were recorded, one page was walked for.
    assert_eq!((outcome.data.accesses, outcome.data.cost.walks), (2, 1));
    assert_eq!((outcome.tlbs[0].lookups, outcome.tlbs[0].hits), (2, 1));
    assert_eq!(data(&outcome.caches[1]), (0, 0));
}

#[test]
fn a_line_goes_where_its_address_says() {
    let outcome = run(|block| {
        visit(block, Kind::Load, 3, 10, &[20, 30]);
        // Takes the place of line 20 of page 3 in the cache; line 40 has one of its own.
        visit(block, Kind::Load, 8, 20, &[40]);
        // 10 and 30 are still there, 20 has to come again; then 40 of page 8 is there and its 20 is not.
        visit(block, Kind::Load, 3, 30, &[10, 20]);
        visit(block, Kind::Load, 8, 40, &[20]);
    });
    assert_eq!(data(&outcome.caches[0]), (10, 3));
    // Memory gave the five lines, the second level those that came again.
    assert_eq!(data(&outcome.caches[2]), (7, 2));
    assert_eq!(outcome.data.data_stall_cycles, 5.0 * 96.0 + 2.0 * 6.0);
}

#[test]
fn lines_are_of_the_kind_that_the_window_is_of() {
    let outcome = run(|block| {
        visit(block, Kind::Fetch, 3, 0, &[1, 2]);
        visit(block, Kind::Store, 3, 0, &[1]);
        visit(block, Kind::Fetch, 3, 1, &[0]);
    });
    assert_eq!(data(&outcome.caches[0]), (2, 0));
    assert_eq!(data(&outcome.caches[1]), (5, 2));
    assert_eq!((outcome.data.data_stall_cycles, outcome.fetch.data_stall_cycles), (2.0 * 96.0, 3.0 * 96.0));
}
