//! What the machine that runs the tests can be asked. No time is asserted: under an emulator it has to end too.

use lookaside_machine::PageSize;
use lookaside_probe::{
    AccessOrder, Act, ChainAccess, HostMachine, LineChain, MemoryArea, Metal, NeighbourWalk, PageChain, Shot,
    WordSequence,
};

/// Everything that a machine can be asked ends and gives as many times as were wanted.
#[test]
fn whatever_can_be_measured_is_measured_to_its_end() {
    let mut host = match HostMachine::new(64 << 20) {
        Ok(host) => host,
        Err(error) => {
            eprintln!("LEFT OUT: {error}");
            return;
        }
    };
    let good = |ticks: &[f64], samples: usize| {
        assert_eq!(ticks.len(), samples);
        assert!(ticks.iter().all(|&ticks| ticks.is_finite() && ticks >= 0.0), "{ticks:?}");
    };
    let size = PageSize::K4;
    let pages: Vec<u64> = (0..100).map(|i| 1000 + i * 7).collect();
    let chain = PageChain { size, touch: ChainAccess::Load, pages: &pages };
    good(&host.chase(&chain, 3, 5).expect("a chain"), 5);
    good(&host.chase(&PageChain { touch: ChainAccess::Update, ..chain }, 3, 5).expect("a chain of stores"), 5);
    let shot = Shot { size, before: &[Act::Load(&pages)], timed: &pages[..10] };
    for pair in host.windows(&shot, 3, 4).expect("windows") {
        good(&pair.shot, 4);
        good(&pair.control, 4);
    }
    let words: Vec<u32> = (0..300).map(|i| i * 520).collect();
    let reads = WordSequence::dependent(size, &words);
    let independent = WordSequence { order: AccessOrder::Independent, before: &words[..7], ..reads };
    for sequence in [reads, WordSequence { update: true, ..reads }, independent] {
        good(&host.replay(&sequence, 2, 3).expect("a sequence"), 3);
    }
    assert!(host.sequence_bytes() > 0);
    for size in host.fault_sizes() {
        let timed = host.time_faults(size, 4 << 20).expect("memory");
        assert!(timed.faults > 0 && timed.ticks >= 0.0, "{size}: {timed:?}");
    }
    for area in [MemoryArea::Own { bytes: 1 << 20, huge: false }, MemoryArea::Shared] {
        let offsets: Vec<u64> = (0..64).map(|i| i * 4160 % (1 << 20) / 64 * 64).collect();
        good(&host.steps(&LineChain { area, offsets: &offsets, warm: 64, timed: 128 }, 3).expect("an area"), 3);
    }
    // Pages of 1 GiB, where the system has one set aside.
    let size_1g = PageSize::G1;
    if let Some(reason) = host.lacks(size_1g) {
        eprintln!("LEFT OUT: {reason}");
        assert_eq!(
            (host.page_bits(size_1g), host.max_pages(size_1g), host.area_bytes(MemoryArea::Gigantic)),
            (0, 0, 0)
        );
    } else {
        good(
            &host.chase(&PageChain { size: size_1g, touch: ChainAccess::Load, pages: &pages }, 3, 5).expect("a chain"),
            5,
        );
        let offsets = [0, (3 << 30) + 64, (1 << 30) + (5 << 21) + 128];
        let steps = LineChain { area: MemoryArea::Gigantic, offsets: &offsets, warm: 3, timed: 9 };
        good(&host.steps(&steps, 3).expect("places in pages"), 3);
    }
    // A thread on another CPU, on pages of its own and on those of the chain, also when these are given back.
    if let Some(cpu) = host.cpus().first() {
        for (pages, first, all_lines) in
            [(1, None, false), (200, None, false), (200, Some(1000), false), (200, None, true)]
        {
            let walk = NeighbourWalk { cpu: cpu.number, pages, first, most_pages: 200, all_lines };
            host.neighbour(Some(walk)).expect("a thread");
            let before = host.neighbour_loads();
            while host.neighbour_loads() == before {
                std::thread::yield_now();
            }
            good(&host.chase(&chain, 3, 2).expect("a chain"), 2);
        }
        host.steps(&LineChain { area: MemoryArea::Shared, offsets: &[0, 4096], warm: 1, timed: 2 }, 1)
            .expect("an area");
        let row = NeighbourWalk { cpu: cpu.number, pages: 200, first: Some(1000), most_pages: 200, all_lines: false };
        let beyond = NeighbourWalk { pages: 2, first: Some((1 << host.page_bits(size)) - 1), most_pages: 2, ..row };
        assert!(host.neighbour(Some(beyond)).is_err());
        host.neighbour(Some(row)).expect("a thread");
    }
    assert!(host.cycles_per_tick() > 0.0 && host.cycles_per_tick_now() > 0.0);
    // Dropped with the thread still there.
}
