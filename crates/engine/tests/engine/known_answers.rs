//! Answers known by hand or by a closed form.

use lookaside_engine::os::{PhysicalMemory, KERNEL_SPACE};
use lookaside_engine::{AccessResult, Engine, FrameLayout, Outcome, Setup, WalkModel};
use lookaside_machine::{parse, Machine, Stage, TableFormat};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

/// A machine of one fully associative TLB; `rest` goes below.
fn machine(format: &str, entries: u32, rest: &str) -> Machine {
    let text = format!(
        "name = \"m\"\nclock_mhz = 1000.0\n[memory]\ncycles = 100.0\n[page_table]\nformat = \"{format}\"\n\
         [[tlb]]\nname = \"l1\"\nlevel = 1\nserves = [\"load\", \"store\"]\npage_sizes = [\"4K\"]\nentries = {entries}\n\
         ways = \"full\"\nreplacement = \"lru\"\ntags = [\"asid\"]\nhit_cycles = 0.0\n{rest}"
    );
    parse(&text, "m").expect("a good machine")
}

fn block(addresses: impl IntoIterator<Item = u64>) -> Block {
    let mut block = Block { process: 7, thread: 7, ..Block::default() };
    addresses.into_iter().for_each(|addr| block.push(Kind::Load, addr));
    block
}

fn run(machine: Machine, addresses: impl IntoIterator<Item = u64>) -> (Vec<AccessResult>, Outcome) {
    let mut engine = Engine::new(Setup::new(machine)).expect("a good setup");
    let mut results = Vec::new();
    engine.run_traced(&block(addresses), &mut |result| results.push(result));
    (results, engine.outcome())
}

/// Offsets within each table that a cold walk for `addr` reads, root first.
fn offsets(format: &str, addr: u64) -> Vec<u64> {
    let (results, _) = run(machine(format, 4, ""), [addr]);
    let table_bytes = |level: u32| {
        let format: TableFormat = machine(format, 4, "").page_table.format;
        let level = format.levels().iter().find(|l| l.level == level).expect("a level of the format");
        u64::from(level.entry_bytes) << level.index_bits
    };
    results[0].references.iter().map(|r| r.address % table_bytes(r.level)).collect()
}

#[test]
fn walks_refer_to_these_entries() {
    // Indexes 1, 2, 3, 4 of nine bits each; entries of 8 bytes.
    let addr = 1 << 39 | 2 << 30 | 3 << 21 | 4 << 12 | 0x123;
    for format in ["x86-64-4level", "aarch64-4k", "sv48"] {
        assert_eq!(offsets(format, addr), [8, 16, 24, 32], "{format}");
    }
    assert_eq!(offsets("x86-64-5level", 5 << 48 | addr), [40, 8, 16, 24, 32]);
    assert_eq!(offsets("sv39", 2 << 30 | 3 << 21 | 4 << 12), [16, 24, 32]);
    // LPAE: VA[31:30] = 2, VA[29:21] = 3, VA[20:12] = 4.
    assert_eq!(offsets("armv7-lpae", 2 << 30 | 3 << 21 | 4 << 12), [16, 24, 32]);
    // Short descriptors: VA[31:20] = 0x123 and VA[19:12] = 0x45, entries of 4 bytes.
    assert_eq!(offsets("armv7-short", 0x1234_5678), [0x123 * 4, 0x45 * 4]);
}

#[test]
fn walk_addresses_are_those_of_the_os_model() {
    let m = machine("x86-64-4level", 4, "");
    let memory = PhysicalMemory::guest(&m.page_table, FrameLayout::Contiguous, 1);
    let kernel = 0xffff_8000_0000_1000;
    let (results, _) = run(m, [0x5000, kernel]);
    for (result, (space, va)) in results.iter().zip([(7, 0x5000), (KERNEL_SPACE, kernel & 0xffff_ffff_ffff)]) {
        let levels = TableFormat::X86_64L4.levels().iter();
        let want: Vec<u64> = levels.map(|level| memory.entry_address(space, level, va)).collect();
        let got: Vec<u64> = result.references.iter().map(|r| r.address).collect();
        assert_eq!(got, want);
    }
}

const CACHE: &str =
    "[[cache]]\nname = \"c\"\nlevel = 1\nserves = [\"load\"]\nsize = \"64K\"\nways = 8\nhit_cycles = 4.0\n";

#[test]
fn eight_neighbours_share_a_line_of_leaf_entries() {
    // Page 8 k begins a line: its leaf entry comes from memory, those of the seven pages after it from the cache.
    let (results, _) = run(machine("x86-64-4level", 1, CACHE), (64..80).map(|page| page << 12));
    for (i, result) in results.iter().enumerate() {
        let leaf = result.references.last().expect("every access walks");
        assert_eq!(leaf.server, if i % 8 == 0 { None } else { Some(0) }, "page {i}");
        assert_eq!(result.references.len(), 4);
    }
}

#[test]
fn references_a_walk_by_walk_cache() {
    // 64 pages, each in a 2 MiB region of its own, all within one GiB; a TLB of one entry: every access walks.
    let addresses: Vec<u64> = (0..4).flat_map(|_| (0..64u64).map(|i| i << 21)).collect();
    let references = |caches: &[(u32, u32)]| {
        let rest: String = caches
            .iter()
            .map(|(level, entries)| {
                format!(
                    "[[walk_cache]]\nname = \"w{level}\"\ntable_level = {level}\nentries = {entries}\nways = \"full\"\n\
                     replacement = \"lru\"\n"
                )
            })
            .collect();
        let (_, outcome) = run(machine("x86-64-4level", 1, &rest), addresses.iter().copied());
        assert_eq!(outcome.data.cost.walks, 256);
        outcome.data.cost.walk_references
    };
    assert_eq!(references(&[]), 256 * 4);
    // The one root entry, the one of level 3: all but the first walk begin below it.
    assert_eq!(references(&[(4, 1)]), 4 + 255 * 3);
    assert_eq!(references(&[(3, 1)]), 4 + 255 * 2);
    // 64 entries hold all directory entries: 64 cold walks of 4, then the leaf alone. 63 thrash under LRU.
    assert_eq!(references(&[(2, 64)]), 64 * 4 + 192);
    assert_eq!(references(&[(2, 63)]), 256 * 4);
    assert_eq!(references(&[(2, 64), (3, 1)]), 4 + 63 * 2 + 192);
}

#[test]
fn a_cold_nested_walk_makes_24_references() {
    let m = machine("x86-64-4level", 4, "[page_table.host]\nformat = \"x86-64-4level\"\npage_size = \"4K\"\n");
    let (results, outcome) = run(m, [0x1234_5678]);
    let stages: String =
        results[0].references.iter().map(|r| if r.stage == Stage::Guest { 'g' } else { 'h' }).collect();
    assert_eq!(stages, "hhhhghhhhghhhhghhhhghhhh");
    assert_eq!(outcome.data.cost.walk_references, 24);
    assert_eq!(outcome.data.cost.walk_cycles, 2400.0);
}

#[test]
fn uniform_random_pages_hit_entries_over_pages() {
    let (entries, pages, accesses) = (64u32, 512u32, 200_000u32);
    let mut rng = SplitMix64::new(5);
    let setup = Setup { walks: WalkModel::CountOnly, ..Setup::new(machine("x86-64-4level", entries, "")) };
    let mut engine = Engine::new(setup).expect("a good setup");
    engine.run(&block((0..accesses).map(|_| u64::from(rng.below_u32(pages)) << 12)));
    let outcome = engine.outcome();
    let hits = f64::from(accesses) - outcome.data.cost.walks as f64;
    let expected = f64::from(accesses) * f64::from(entries) / f64::from(pages);
    // A binomial's standard deviation is 148 here; warming up loses at most 64 hits.
    assert!((hits - expected).abs() < 5.0 * 148.0 + 64.0, "{hits} hits, {expected} expected");
    assert_eq!(outcome.data.cost.walk_cycles, 0.0);
    assert_eq!(outcome.pages_touched.iter().map(|p| p.1).sum::<u64>(), u64::from(pages));
}

/// Two caches of one set, of two lines and of one, the first for each core; the second is as `filled_by` says. No walks.
/// Which of the two caches, or memory (2), serves the lines that threads ask for, each on a core of its own.
fn served_by(filled_by: &str, asked: &[(u32, u64)]) -> Vec<usize> {
    let cache = |name: &str, level: u32, lines: u32, rest: &str| {
        format!(
            "[[cache]]\nname = \"{name}\"\nlevel = {level}\nserves = [\"load\"]\nsize = {:?}\nways = \"full\"\n\
             hit_cycles = {level}.0\n{rest}\n",
            (64 * lines).to_string()
        )
    };
    let second = cache("second", 2, 1, &format!("shared_by = \"socket\"\nfilled_by = {filled_by:?}"));
    let mut machine = machine("x86-64-4level", 4, &format!("{}{second}", cache("first", 1, 2, "")));
    machine.topology.cores_per_socket = 2;
    let mut setup = Setup::new(machine);
    setup.walks = WalkModel::CountOnly;
    let mut engine = Engine::new(setup).expect("a good setup");
    let mut servers = Vec::new();
    for &(thread, line) in asked {
        let block = Block { thread, ..block([line * 64]) };
        engine.run_traced(&block, &mut |result| servers.push(result.data_server.unwrap_or(2)));
    }
    servers
}

#[test]
fn a_cache_of_victims_holds_what_the_one_before_throws_out_and_no_more() {
    const MEMORY: usize = 2;
    let served_by =
        |filled_by, lines: &[u64]| served_by(filled_by, &lines.iter().map(|&line| (1, line)).collect::<Vec<_>>());
    // 2 throws 0 out, 0 comes back and throws 1 out, 1 throws 2 out: three lines in two caches of two and one line.
    assert_eq!(served_by("victims", &[0, 1, 2, 0, 1, 2, 0]), [MEMORY, MEMORY, MEMORY, 1, 1, 1, 1]);
    // Filled by misses, the second one has the line asked for last, which the first has too.
    assert_eq!(served_by("misses", &[0, 1, 2, 0, 1, 2, 0]), [MEMORY; 7]);
    // A hit takes the line out: 1 is where 0 was, and 0 in the first cache alone until it goes out of that.
    assert_eq!(served_by("victims", &[0, 1, 2, 0, 3, 2, 0, 1]), [MEMORY, MEMORY, MEMORY, 1, MEMORY, 1, 1, MEMORY]);
}

#[test]
fn what_another_core_holds_is_a_hit_of_the_cache_that_they_share() {
    const MEMORY: usize = 2;
    // The second core gets 0 from the first, which keeps it; so each has it, until 2 and 3 throw it out of the first.
    let asked = [(1, 0), (2, 0), (1, 0), (2, 0), (1, 2), (1, 3), (1, 1), (2, 4), (2, 5), (2, 1)];
    assert_eq!(served_by("victims", &asked), [MEMORY, 1, 0, 0, MEMORY, MEMORY, MEMORY, MEMORY, MEMORY, 1]);
    // Filled by misses the shared cache holds the last line of either, and nobody looks into another core's cache.
    assert_eq!(served_by("misses", &asked), [MEMORY, 1, 0, 0, MEMORY, MEMORY, MEMORY, MEMORY, MEMORY, MEMORY]);
}
