//! Any schedule: every access gives what the naive model says, and what is refused changes nothing.

use lookaside_fast_address_space_switching::domains::*;
use proptest::prelude::*;

use crate::naive::{Naive, NaivePage, NaiveProcess};
use crate::processor::{Build, Processor};

/// Where processes map and look: few places, so that they meet.
#[derive(Clone, Copy, Debug)]
enum Where {
    /// Page below 32 MiB, as programs have them.
    Low(u32),
    /// The same page in the slot of the process numbered so.
    InSlotOf(usize, u32),
    /// Block and page above 2 GiB.
    Shared(u32, u32),
    /// What somebody has mapped: by number over all processes.
    Somebodys(usize),
    /// An address that can be anything.
    Wild(u32),
}

#[derive(Clone, Debug)]
enum Op {
    Create,
    Exit(usize),
    Map { process: usize, at: Option<Where>, pages: u32, writable: bool },
    Unmap { process: usize, at: Where, pages: u32 },
    CreateRegion { block: Option<u32>, pages: u32, writable: bool },
    DestroyRegion(usize),
    Attach { process: usize, region: usize, at: Option<Where> },
    Detach { process: usize, region: usize },
    Switch(usize),
    Access { at: Where, word: u32, store: bool },
    FreeDomain(u8),
    Flush,
}

fn places() -> impl Strategy<Value = Where> {
    prop_oneof![
        3 => (0..4u32).prop_map(Where::Low),
        2 => (0..8usize, 0..4u32).prop_map(|(process, page)| Where::InSlotOf(process, page)),
        3 => (0..4u32, 0..3u32).prop_map(|(block, page)| Where::Shared(block, page)),
        4 => any::<usize>().prop_map(Where::Somebodys),
        1 => prop_oneof![any::<u32>(), Just(0xffff_f000), Just(0xbfff_f000)].prop_map(Where::Wild),
    ]
}

fn some_pages() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 1..4u32, 2 => 250..520u32, 1 => Just(0), 1 => any::<u32>()]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let who = || 0..10usize;
    let op = prop_oneof![
        3 => Just(Op::Create),
        1 => who().prop_map(Op::Exit),
        6 => (who(), proptest::option::of(places()), some_pages(), any::<bool>())
            .prop_map(|(process, at, pages, writable)| Op::Map { process, at, pages, writable }),
        2 => (who(), places(), some_pages()).prop_map(|(process, at, pages)| Op::Unmap { process, at, pages }),
        2 => (proptest::option::of(0..4u32), some_pages(), any::<bool>())
            .prop_map(|(block, pages, writable)| Op::CreateRegion { block, pages, writable }),
        1 => (0..5usize).prop_map(Op::DestroyRegion),
        8 => (who(), 0..5usize, proptest::option::weighted(0.3, places()))
            .prop_map(|(process, region, at)| Op::Attach { process, region, at }),
        2 => (who(), 0..5usize).prop_map(|(process, region)| Op::Detach { process, region }),
        10 => who().prop_map(Op::Switch),
        30 => (places(), 0..4usize, any::<bool>())
            .prop_map(|(at, word, store)| Op::Access { at, word: [0, 1, 4, 1023][word], store }),
        1 => (0..17u8).prop_map(Op::FreeDomain),
        1 => Just(Op::Flush),
    ];
    proptest::collection::vec(op, 1..160)
}

/// A region as the test knows it.
struct Shared {
    id: RegionId,
    home: u32,
    pages: u32,
    frame: u32,
    writable: bool,
    /// Process and address.
    attached: Vec<(usize, u32)>,
    alive: bool,
}

struct World {
    spaces: AddressSpaces,
    processor: Processor,
    naive: Naive,
    /// All that ever were.
    ids: Vec<ProcessId>,
    regions: Vec<Shared>,
    running: Option<usize>,
    /// Frames given back: first, how many, from when on.
    free: Vec<(u32, u32, Option<FlushMark>)>,
    next_frame: u32,
    next_value: u32,
}

impl World {
    fn new(config: Config, build: Build) -> Self {
        Self {
            spaces: AddressSpaces::new(config).unwrap(),
            processor: Processor::new(build),
            naive: Naive { kernel_start: config.kernel_start, ..Naive::default() },
            ids: Vec::new(),
            regions: Vec::new(),
            running: None,
            free: Vec::new(),
            next_frame: 1,
            next_value: 0xf000_0000,
        }
    }

    /// Used ones first, as soon as the library says that they may be.
    fn frames(&mut self, pages: u32) -> u32 {
        let fits = |(_, n, mark): &(u32, u32, Option<FlushMark>)| {
            *n == pages && mark.is_none_or(|mark| self.spaces.is_flushed_since(mark))
        };
        match self.free.iter().rposition(fits) {
            Some(at) => self.free.remove(at).0,
            None => {
                // Wild numbers are refused for their own sake.
                let frame = self.next_frame;
                self.next_frame += pages.min(1024);
                frame
            }
        }
    }

    /// Frames that were not used after all.
    fn unused(&mut self, frame: u32, pages: u32) {
        if (1..=1024).contains(&pages) {
            self.free.push((frame, pages, None));
        }
    }

    fn id(&self, process: usize) -> Option<(usize, ProcessId)> {
        let at = process.checked_rem(self.ids.len())?;
        Some((at, self.ids[at]))
    }

    fn region(&self, region: usize) -> Option<usize> {
        region.checked_rem(self.regions.len())
    }

    fn addr(&self, at: Where) -> u32 {
        let low = |page: u32| 0x8000 + page * PAGE_BYTES;
        match at {
            Where::Low(page) => low(page),
            Where::InSlotOf(process, page) => {
                let slot = self.id(process).map_or(1, |(_, id)| id.slot());
                u32::from(slot) << SLOT_SHIFT | low(page)
            }
            Where::Shared(block, page) => SHARED_START + (block << SECTION_SHIFT) + page * PAGE_BYTES,
            Where::Somebodys(number) => {
                let pages = || self.naive.processes.values().flat_map(|process| process.pages.keys());
                let number = number.checked_rem(pages().count()).unwrap_or(0);
                pages().nth(number).map_or(0, |page| page << PAGE_SHIFT)
            }
            Where::Wild(addr) => addr,
        }
    }

    fn step(&mut self, op: &Op) {
        if matches!(op, Op::Access { .. }) {
            self.apply(op);
            return;
        }
        let before = self.spaces.clone();
        let refused = self.apply(op);
        if let Some(error) = refused {
            assert!(before == self.spaces, "{op:?} was refused ({error}) and changed something");
        }
    }

    /// Does it; the error, if it was refused.
    fn apply(&mut self, op: &Op) -> Option<AddressSpaceError> {
        match op.clone() {
            Op::Create => match self.spaces.create() {
                Ok(id) => {
                    self.naive.create(self.ids.len(), id);
                    self.ids.push(id);
                    None
                }
                Err(error) => Some(error),
            },
            Op::Exit(process) => self.exit(process),
            Op::Map { process, at, pages, writable } => self.map(process, at, pages, writable),
            Op::Unmap { process, at, pages } => self.unmap(process, at, pages),
            Op::CreateRegion { block, pages, writable } => self.create_region(block, pages, writable),
            Op::DestroyRegion(region) => self.destroy_region(region),
            Op::Attach { process, region, at } => self.attach(process, region, at),
            Op::Detach { process, region } => self.detach(process, region),
            Op::Switch(process) => {
                let (process, id) = self.id(process)?;
                let result = self.spaces.switch(id, &mut self.processor);
                assert_eq!(result.is_ok(), self.naive.processes.contains_key(&process));
                if result.is_ok() {
                    self.running = Some(process);
                }
                result.err()
            }
            Op::Access { at, word, store } => {
                let addr = (self.addr(at) & !(PAGE_BYTES - 1)) + word * 4;
                self.next_value += 1;
                let store = store.then_some(self.next_value);
                let ours = self.processor.access(addr, store, &mut self.spaces);
                let naive = self.naive.access(self.running, addr, store);
                assert_eq!(ours, naive, "{op:?} of {:?} at {addr:#x}", self.running);
                None
            }
            Op::FreeDomain(domain) => self.spaces.free_domain(domain, &mut self.processor).err(),
            Op::Flush => {
                self.spaces.flush_now(&mut self.processor);
                None
            }
        }
    }

    fn exit(&mut self, process: usize) -> Option<AddressSpaceError> {
        let (process, id) = self.id(process)?;
        let shares = self.regions.iter().any(|region| region.attached.iter().any(|of| of.0 == process));
        match self.spaces.exit(id, &mut self.processor) {
            Ok(mark) => {
                assert!(!shares);
                let pages = self.naive.processes.remove(&process).expect("it lives").pages;
                self.free.extend(pages.values().map(|page| (page.frame, 1, Some(mark))));
                self.running = self.running.filter(|running| *running != process);
                None
            }
            Err(error) => {
                assert!(shares || !self.naive.processes.contains_key(&process), "{error}");
                Some(error)
            }
        }
    }

    fn map(&mut self, process: usize, at: Option<Where>, pages: u32, writable: bool) -> Option<AddressSpaceError> {
        let (process, id) = self.id(process)?;
        let frame = self.frames(pages);
        let place = at.map_or(MappingAddress::Anywhere, |at| MappingAddress::Fixed(self.addr(at)));
        let result = self.spaces.map(id, place, PageMapping { pages, frame, writable }, &mut self.processor);
        let refused = match place {
            MappingAddress::Fixed(addr) => self.naive.refuses_range(process, addr, pages),
            MappingAddress::Anywhere => None,
        };
        match result {
            Ok(addr) => {
                assert_eq!(refused, None);
                assert!(
                    place == MappingAddress::Fixed(addr) || place == MappingAddress::Anywhere && addr >= SHARED_START
                );
                assert_eq!(self.naive.refuses_range(process, addr, pages), None);
                self.naive.map(process, addr, pages, NaivePage { frame, writable, region: None });
                None
            }
            Err(error) => {
                self.unused(frame, pages);
                let frames = matches!(error, AddressSpaceError::Frames { .. }) && pages > 1 << 19;
                match place {
                    MappingAddress::Fixed(_) => assert!(frames || refused == Some(error), "{error}, not {refused:?}"),
                    MappingAddress::Anywhere => assert!(
                        frames
                            || matches!(
                                error,
                                AddressSpaceError::NoRoom { .. }
                                    | AddressSpaceError::NoProcess
                                    | AddressSpaceError::Empty
                            ),
                        "{error}"
                    ),
                }
                Some(error)
            }
        }
    }

    fn unmap(&mut self, process: usize, at: Where, pages: u32) -> Option<AddressSpaceError> {
        let (process, id) = self.id(process)?;
        let addr = self.addr(at);
        let result = self.spaces.unmap(id, addr, pages, &mut self.processor);
        assert_eq!(result.err(), self.naive.refuses_unmap(process, addr, pages));
        if result.is_ok() {
            let of = self.naive.processes.get_mut(&process).expect("it lives");
            for page in (addr >> PAGE_SHIFT..).take(pages as usize) {
                let page = of.pages.remove(&page).expect("it was mapped");
                self.free.push((page.frame, 1, None));
            }
        }
        result.err()
    }

    fn create_region(&mut self, block: Option<u32>, pages: u32, writable: bool) -> Option<AddressSpaceError> {
        let frame = self.frames(pages);
        let at = block.map(|block| SHARED_START + (block << SECTION_SHIFT));
        match self.spaces.create_region(at, PageMapping { pages, frame, writable }) {
            Ok(id) => {
                // Where it is at home is seen by whoever attaches first; with an address asked for it is that.
                let home = at.unwrap_or(0);
                self.regions.push(Shared { id, home, pages, frame, writable, attached: Vec::new(), alive: true });
                None
            }
            Err(error) => {
                self.unused(frame, pages);
                Some(error)
            }
        }
    }

    fn destroy_region(&mut self, region: usize) -> Option<AddressSpaceError> {
        let number = self.region(region)?;
        let region = &mut self.regions[number];
        match self.spaces.destroy_region(region.id) {
            Ok(mark) => {
                assert!(region.alive && region.attached.is_empty());
                region.alive = false;
                self.free.push((region.frame, region.pages, Some(mark)));
                None
            }
            Err(error) => {
                assert!(!region.alive || !region.attached.is_empty());
                Some(error)
            }
        }
    }

    fn attach(&mut self, process: usize, region: usize, at: Option<Where>) -> Option<AddressSpaceError> {
        let ((process, id), number) = (self.id(process)?, self.region(region)?);
        let at = at.map(|at| self.addr(at));
        let region = &mut self.regions[number];
        match self.spaces.attach(id, region.id, at, &mut self.processor) {
            Ok(addr) => {
                assert!(region.alive && region.attached.iter().all(|of| of.0 != process));
                match at {
                    Some(at) => assert_eq!(addr, at),
                    None if region.home == 0 => region.home = addr,
                    None => assert_eq!(addr, region.home),
                }
                region.attached.push((process, addr));
                let page = NaivePage { frame: region.frame, writable: region.writable, region: Some(number) };
                let pages = region.pages;
                self.naive.map(process, addr, pages, page);
                None
            }
            Err(error) => {
                let attached = region.attached.iter().any(|of| of.0 == process);
                let dead = !region.alive || !self.naive.processes.contains_key(&process);
                let addr = at.unwrap_or(region.home);
                let unknown = at.is_none() && region.home == 0;
                let refused = self.naive.refuses_range(process, addr, region.pages);
                assert!(attached || dead || unknown || refused == Some(error), "{error}, not {refused:?}");
                Some(error)
            }
        }
    }

    fn detach(&mut self, process: usize, region: usize) -> Option<AddressSpaceError> {
        let ((process, id), number) = (self.id(process)?, self.region(region)?);
        let region = &mut self.regions[number];
        let at = region.attached.iter().position(|of| of.0 == process);
        let result = self.spaces.detach(id, region.id, &mut self.processor);
        match (result, at) {
            (Ok(()), Some(at)) => {
                let (_, addr) = region.attached.remove(at);
                let of = self.naive.processes.get_mut(&process).expect("it lives");
                for page in (addr >> PAGE_SHIFT..).take(region.pages as usize) {
                    of.pages.remove(&page);
                }
                None
            }
            (Err(error), None) => Some(error),
            (result, at) => panic!("{result:?}, attached at {at:?}"),
        }
    }

    /// Everybody looks at everything that anybody has, and where the processor has it.
    fn look_around(&mut self) {
        let of = |process: &NaiveProcess| {
            let slot = process.slot;
            process.pages.keys().map(move |page| (*page << PAGE_SHIFT, slot)).collect::<Vec<_>>()
        };
        let all: Vec<(u32, u8)> = self.naive.processes.values().flat_map(of).collect();
        let living: Vec<usize> = self.naive.processes.keys().copied().collect();
        for process in living {
            self.spaces.switch(self.ids[process], &mut self.processor).unwrap();
            for (page, slot) in all.iter().step_by(all.len() / 64 + 1) {
                for start in [*page, relocate(*page, *slot)] {
                    for word in [0, 1, 4, 1023] {
                        let addr = start + word * 4;
                        let ours = self.processor.access(addr, None, &mut self.spaces);
                        assert_eq!(ours, self.naive.access(Some(process), addr, None), "{process} at {addr:#x}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_gives_what_flushing_on_each_switch_gives(
        reserved_domains in prop_oneof![3 => Just(12u8), 1 => 1..12u8],
        blocks in 1..5u32,
        tlb_entries in 1..9usize,
        lines in 1..17usize,
        keeps_faulting in any::<bool>(),
        ops in ops(),
    ) {
        let config = Config { reserved_domains, kernel_start: SHARED_START + (blocks << SECTION_SHIFT) };
        let mut world = World::new(config, Build { tlb_entries, lines, keeps_faulting });
        for op in &ops {
            world.step(op);
        }
        prop_assert_eq!(world.spaces.counts().all_flushes(), world.processor.flushes);
        world.look_around();
    }
}
