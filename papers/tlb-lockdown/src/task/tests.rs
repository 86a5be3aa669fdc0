//! A task's runs against naive micro TLBs and against whole runs of the engine.

use lookaside_engine::{Engine, LockedPage, Setup};
use lookaside_machine::{preset, Machine};
use lookaside_trace::{Block, Event, Kind, MapSource, MemorySource, TraceInfo};
use proptest::prelude::*;

use super::cores::{BackgroundRound, ProgramBefore, TaskScene, TASK};
use super::*;

fn recorded(machine: &Machine, block: Block) -> TaskRecording {
    let mut source = MemorySource::new(TraceInfo::default(), vec![block]);
    record(&Setup::new(machine.clone()), &mut source).unwrap()
}

/// A block of the task.
fn block(accesses: &[(Kind, u64)]) -> Block {
    let mut block = Block { process: TASK, thread: TASK, ..Block::default() };
    accesses.iter().for_each(|&(kind, addr)| block.push(kind, addr));
    block
}

fn a9() -> Machine {
    preset("cortex-a9").unwrap()
}

/// Without data caches: a walk costs the same wherever its tables lie.
fn without_caches() -> Machine {
    let mut machine = a9();
    machine.caches.clear();
    machine
}

const KERNEL: [(Kind, u64); 4] =
    [(Kind::Fetch, 0xffff_0000), (Kind::Fetch, 0xc010_0040), (Kind::Load, 0xc0f0_0000), (Kind::Store, 0xc0f8_0000)];

/// Obviously a FIFO array: looked through from the first way on.
struct Naive {
    ways: Vec<Option<(bool, u64)>>,
    next: usize,
}

impl Naive {
    fn new(entries: usize) -> Self {
        Self { ways: vec![None; entries], next: 0 }
    }

    /// Whether it missed.
    fn access(&mut self, addr: u64) -> bool {
        let is_section = SECTIONS.contains(&addr);
        let page = Some((is_section, addr >> if is_section { 20 } else { 12 }));
        if self.ways.contains(&page) {
            return false;
        }
        let way = self.ways.iter().position(Option::is_none).unwrap_or_else(|| {
            self.next = (self.next + 1) % self.ways.len();
            (self.next + self.ways.len() - 1) % self.ways.len()
        });
        self.ways[way] = page;
        true
    }
}

fn accesses() -> impl Strategy<Value = Vec<(Kind, u64)>> {
    let kind = prop_oneof![Just(Kind::Load), Just(Kind::Store), Just(Kind::Fetch)];
    // More pages than either micro TLB has entries, and some sets of the main TLB with three of them.
    let page = prop_oneof![0u64..50, 64u64..70, 128u64..134];
    prop::collection::vec((kind, page, 0u64..128).prop_map(|(kind, page, line)| (kind, page << 12 | line << 5)), 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_stream_is_what_naive_micro_tlbs_miss(
        accesses in accesses(),
        breaks in prop::collection::vec((0u32..700, any::<bool>()), 0..12),
        entries in 1usize..40,
    ) {
        let recording = recorded(&a9(), block(&accesses));
        let mut breaks = breaks;
        breaks.sort_unstable();
        let what = |flush| if flush { Interruption::Flush } else { Interruption::Kernel(&KERNEL) };
        let interruptions: Vec<_> = breaks.iter().map(|&(row, flush)| (row, what(flush))).collect();

        let mut naive = [Naive::new(entries), Naive::new(entries)];
        let (mut expected, mut lines) = (Vec::new(), 0);
        let mut left = &breaks[..];
        for row in 0..=accesses.len() {
            while let Some((&(_, flush), rest)) = left.split_first().filter(|((at, _), _)| *at as usize <= row) {
                left = rest;
                if flush {
                    naive.iter_mut().for_each(|side| side.ways.fill(None));
                    continue;
                }
                lines += KERNEL.len();
                for (kind, addr) in KERNEL {
                    if naive[usize::from(kind == Kind::Fetch)].access(addr) {
                        expected.push((kind, addr));
                    }
                }
            }
            if let Some(&(kind, addr)) = accesses.get(row) {
                if naive[usize::from(kind == Kind::Fetch)].access(addr) {
                    expected.push((kind, addr));
                }
            }
        }
        let items = stream(&recording, [entries; 2], &interruptions);
        let missed: Vec<_> = items.iter().filter(|i| i.what == ItemKind::Missed).map(|i| (i.kind, u64::from(i.addr))).collect();
        prop_assert_eq!(missed, expected);
        prop_assert_eq!(items.iter().filter(|i| i.what == ItemKind::Line).count(), lines + recording.missed_lines().count());
        prop_assert!(items.windows(2).all(|pair| pair[0].at_cycles <= pair[1].at_cycles));
    }

    #[test]
    fn a_scene_walks_as_the_whole_engine_does(
        accesses in accesses(),
        locked in prop::collection::vec(0u64..134, 0..4),
        seed in any::<u64>(),
    ) {
        let machine = without_caches();
        let mut task = block(&accesses);
        let items = stream(&recorded(&machine, task.clone()), micro_entries(&machine).unwrap(), &[]);
        let locks: Vec<_> = locked
            .iter()
            .map(|page| LockedPage { tlb: "main".into(), process: Some(TASK), addr: page << 12 })
            .collect();
        let came = TaskScene::new(&machine).run(&items, &locks, seed, &[]).unwrap();

        task.events.insert(0, (0, Event::ContextSwitch { cpu: 3 }));
        let mut engine = Engine::new(Setup { seed, locks, ..Setup::new(machine) }).unwrap();
        engine.run(&task);
        let whole = engine.outcome();
        for (came, whole) in [(came.data, &whole.data.cost), (came.fetch, &whole.fetch.cost)] {
            prop_assert_eq!((came.missed, came.walks, came.walk_cycles), (whole.l1_misses, whole.walks, whole.walk_cycles));
        }
        prop_assert_eq!(came.data.locked + came.fetch.locked, whole.tlbs[2].locked_hits);
    }
}

#[test]
fn what_comes_before_leaves_no_entry_but_the_kernels() {
    let machine = without_caches();
    let accesses: Vec<_> = (0..40).map(|page| (Kind::Load, page << 12)).collect();
    let items = stream(&recorded(&machine, block(&accesses)), micro_entries(&machine).unwrap(), &[]);
    let mut scene = TaskScene::new(&machine);
    let alone = scene.run(&items, &[], 1, &[]).unwrap();
    assert_eq!((alone.data.missed, alone.data.walks), (40, 40));
    // The same pages of processes that have ended.
    scene.before = vec![ProgramBefore { items: items.clone(), cycles: 40.0 }; 2];
    assert_eq!(scene.run(&items, &[], 1, &[]).unwrap(), alone);
    // An entry of the kernel stays.
    let mut kernel = items[..1].to_vec();
    kernel[0].addr = 0xc0f0_0000;
    let mut scene = TaskScene::new(&machine);
    assert_eq!(scene.run(&kernel, &[], 1, &[]).unwrap().data.walks, 1);
    scene.before = vec![ProgramBefore { items: kernel.clone(), cycles: 1.0 }];
    assert_eq!(scene.run(&kernel, &[], 1, &[]).unwrap().data.walks, 0);
}

/// A walk reads two entries; lines of other cores put those out of the shared L2, and of none of the private caches.
#[test]
fn other_cores_make_walks_longer_and_no_more() {
    let mut machine = a9();
    // Walks look in the L2 alone.
    machine.walker.first_cache_level = 2;
    let pages: Vec<_> = (0..300).map(|page| (Kind::Load, (page % 150) << 12)).collect();
    let mut items = stream(&recorded(&machine, block(&pages)), micro_entries(&machine).unwrap(), &[]);
    // Slowly: from the first access to a page to the next the others go through the L2 more than once.
    items.iter_mut().for_each(|item| item.at_cycles *= 1e4);
    // 2 MiB of lines, twice the L2's, in the time of the task.
    let lines: Vec<_> = (0..65_536).map(|line| (Kind::Load, line << 5)).collect();
    let other = recorded(&machine, block(&lines));
    let mut scene = TaskScene::new(&machine);
    let alone = scene.run(&items, &[], 1, &[]).unwrap();
    scene.others = vec![BackgroundRound::new([(&other, 1, 0)]); 3];
    let begins = [-2.0 * other.cycles(), -1.5 * other.cycles(), -other.cycles()];
    let beside = scene.run(&items, &[], 1, &begins).unwrap();
    assert_eq!((beside.data.missed, beside.data.walks), (alone.data.missed, alone.data.walks));
    assert!(beside.data.walk_cycles > alone.data.walk_cycles, "{beside:?} {alone:?}");
    assert_eq!(scene.run(&items, &[], 1, &begins).unwrap(), beside, "the same again");
    // Others that have not begun yet do nothing.
    assert_eq!(scene.run(&items, &[], 1, &[1e9; 3]).unwrap(), alone);
}

#[test]
fn maintenance_is_what_a_kernel_must_do() {
    let map = |addr, len| Event::Map { addr, len, prot: 3, source: MapSource::Anonymous, site: 0 };
    let mut program = block(&[
        (Kind::Load, 0x1000),
        (Kind::Store, 0x1020), // first store to what was read: copy on write
        (Kind::Store, 0x1040),
        (Kind::Store, 0x2000), // first access
        (Kind::Load, 0x2000),
        (Kind::Store, 0x2000),
        (Kind::Load, 0x3000),
    ]);
    program.events = vec![
        (0, map(0x1000, 0x2000)),
        (0, map(0x3000, 0x1000)),
        (6, map(0x2000, 0x1000)), // over what was mapped
        (7, Event::Unmap { addr: 0x1000, len: 0x1000 }),
        (7, Event::ProcessExit { code: 0 }),
    ];
    let recording = recorded(&without_caches(), program);
    assert_eq!(recording.maintenance_cycles().collect::<Vec<_>>(), [1.0, 6.0, 7.0, 7.0]);
    assert_eq!(recording.maintenance(), [1, 6, 7, 7]);
    assert_eq!(recording.first_touches(), [0, 3, 6]);
    assert_eq!(recording.counts.iter().map(|of| of.data_accesses).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(
        (recording.cycles(), recording.row_at(0.0), recording.row_at(2.5), recording.row_at(9.0)),
        (7.0, 0, 3, 7)
    );

    // Twice over, begun by one operation: only what the second time repeats is no maintenance.
    let round = BackgroundRound::new([(&recording, 2, 1)]);
    assert_eq!(round.cycles(), 14.0);
    assert_eq!(round.maintenance(0.0, 14.0), [0.0, 1.0, 6.0, 7.0, 7.0]);
    assert_eq!(round.maintenance(-13.0, 6.0), [1.0, 2.0]);
    assert!(BackgroundRound::default().maintenance(0.0, 100.0).is_empty());
}

#[test]
fn a_fetch_from_the_vectors_is_a_system_call() {
    let program = block(&[
        (Kind::Load, 0x1000),
        (Kind::Fetch, 0xffff_0008),
        (Kind::Load, 0x2000),
        (Kind::Fetch, 0xffff_0fe0), // a helper of the kernel's, which the program runs itself
        (Kind::Fetch, 0xffff_0008),
    ]);
    let recording = recorded(&without_caches(), program);
    assert_eq!(recording.system_calls(), [1, 4]);
    // The vectors are no page of the program's that could be missing.
    assert_eq!(recording.first_touches(), [0, 2, 3]);
}

#[test]
fn data_waits_for_walks_of_fetches_before_it() {
    let machine = without_caches();
    // One cycle an access; a walk takes 10 and twice 100 cycles.
    let task = [(Kind::Fetch, 0x1000), (Kind::Fetch, 0x1000), (Kind::Load, 0x2000), (Kind::Load, 0x3000)];
    let items = stream(&recorded(&machine, block(&task)), micro_entries(&machine).unwrap(), &[]);
    let came = TaskScene::new(&machine).run(&items, &[], 1, &[]).unwrap();
    assert_eq!((came.fetch.walks, came.data.walks, came.waited_cycles), (1, 2, 208.0));
}

#[test]
fn machines_that_hits_change_something_in_are_refused() {
    assert_eq!(micro_entries(&a9()).unwrap(), [32, 32]);
    let error = micro_entries(&preset("skylake").unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with("skylake: the first TLB level is not one fully associative FIFO array a side"),
        "{error}"
    );
    let far = block(&[(Kind::Load, 1 << 32)]);
    let mut source = MemorySource::new(TraceInfo::default(), vec![far]);
    let error = record(&Setup::new(a9()), &mut source).unwrap_err().to_string();
    assert_eq!(error, "address 0x100000000 has more than 32 bits");
}
