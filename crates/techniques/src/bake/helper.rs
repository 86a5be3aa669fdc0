//! The helper under way.

use lookaside_engine::{BackgroundCounts, Engine, ModelClock};
use lookaside_machine::{Machine, Serves, SharedBy, TableFormat};
use lookaside_trace::{Block, Event, Kind};

use super::baker::{at_least, BakeModelError, HelperPlacement, HelperResult, ModelledBaker, TouchMethod};

/// The helper's thread: a number that Linux gives to none (its pids end at 2^22).
const THREAD: u32 = u32::MAX;

pub(crate) struct RunningHelper<'a> {
    baker: &'a ModelledBaker,
    /// Bytes from one touch to the next, and of a base page.
    stride: u64,
    page: u64,
    format: TableFormat,
    /// Where it is: range, and the address that it touches next.
    region: usize,
    next: u64,
    now: f64,
    /// The last table whose leaf entries it read: where it lies in the address space, and its level.
    table: Option<(u64, u32)>,
    /// Its next access, or several.
    block: Block,
    /// Cycles that the touches of the last block took.
    latencies: Vec<f64>,
    warm: BackgroundCounts,
    counted: BackgroundCounts,
    /// By the counts, those of the warm-up second.
    clocks: [ModelClock; 2],
    touches: u64,
    rounds: u64,
}

impl<'a> RunningHelper<'a> {
    /// Puts it on its hardware thread, at time 0.
    pub(crate) fn new(
        baker: &'a ModelledBaker,
        machine: &Machine,
        engine: &mut Engine,
    ) -> Result<Self, BakeModelError> {
        at_least("pace.touch_cycles", baker.pace.touch_cycles, 1.0)?;
        at_least("pace.nop_cycles", baker.pace.nop_cycles, 0.0)?;
        at_least("pace.in_flight", baker.pace.in_flight, 1.0)?;
        at_least("sleep_cycles", baker.sleep_cycles, 0.0)?;
        at_least("stride_pages", baker.stride_pages as f64, 1.0)?;
        let format = machine.page_table.format;
        let page = format.page_sizes().first().map_or(4096, |size| size.bytes());
        if baker.regions.is_empty() || baker.regions.iter().any(|region| region.is_empty()) {
            return Err(BakeModelError::NoPages);
        }
        let mut block = Block { process: baker.process, thread: THREAD, ..Block::default() };
        block.push_event(Event::Migrate { cpu: hardware_thread(machine, baker.placement)? });
        let mut warm = engine.background_counts();
        engine.run_background(&block, &mut warm);
        block.events.clear();
        block.push(Kind::Load, 0);
        Ok(Self {
            baker,
            stride: baker.stride_pages.saturating_mul(page),
            page,
            format,
            region: 0,
            next: first_page(baker, 0, page),
            now: 0.0,
            table: None,
            block,
            latencies: Vec::new(),
            warm,
            counted: engine.background_counts(),
            clocks: Default::default(),
            touches: 0,
            rounds: 0,
        })
    }

    /// When it makes the next touch.
    pub(crate) fn now(&self) -> f64 {
        self.now
    }

    /// It has slept until then.
    pub(crate) fn sleep_until(&mut self, now: f64) {
        self.now = now;
    }

    /// Makes it.
    pub(crate) fn step(&mut self, engine: &mut Engine, is_warm: bool) {
        let latency = self.touch(engine, is_warm);
        self.go_on(latency, is_warm);
        self.advance();
    }

    /// Makes so many touches of a program that is counted, one after the other: the same as so many steps, and faster by
    /// prefetches.
    pub(crate) fn steps(&mut self, engine: &mut Engine, count: usize) {
        if self.baker.way != TouchMethod::Prefetch {
            (0..count).for_each(|_| self.step(engine, false));
            return;
        }
        let begun = (self.region, self.next, self.rounds, self.now);
        self.block.addr.clear();
        self.block.kind.resize(count, Kind::Load);
        for _ in 0..count {
            self.block.addr.push(self.next);
            self.advance();
        }
        let Self { block, counted, latencies, .. } = self;
        latencies.clear();
        engine.run_background_traced(block, counted, &mut |result| latencies.push(result.cycles));
        // The same way again, now that it is known what each touch took.
        (self.region, self.next, self.rounds, self.now) = begun;
        let latencies = std::mem::take(&mut self.latencies);
        for &latency in &latencies {
            self.go_on(latency, false);
            self.advance();
        }
        self.latencies = latencies;
        self.block.addr.truncate(1);
        self.block.kind.truncate(1);
    }

    /// A touch was made that took so long.
    fn go_on(&mut self, latency: f64, is_warm: bool) {
        let ModelledBaker { pace, nops, .. } = self.baker;
        self.touches += u64::from(!is_warm);
        // While touches are under way the loop goes on.
        let loop_cycles = pace.touch_cycles + *nops as f64 * pace.nop_cycles;
        self.now += loop_cycles.max(latency / pace.in_flight);
    }

    /// The touch: its latency in cycles.
    fn touch(&mut self, engine: &mut Engine, is_warm: bool) -> f64 {
        let process = self.baker.process;
        if self.baker.way == TouchMethod::Entries {
            let leaf = engine.leaf_level(process, self.next);
            let table = self.table_of(leaf);
            let counts = if is_warm { &mut self.warm } else { &mut self.counted };
            // The entries above are read once a table (section 4.3): of them, the one that points to it can be far.
            let mut cycles = 0.0;
            if self.table.replace((table, leaf)) != Some((table, leaf)) {
                cycles = engine.read_entry((process, THREAD), self.next, leaf + 1, counts);
            }
            return cycles + engine.read_entry((process, THREAD), self.next, leaf, counts);
        }
        let counts = if is_warm { &mut self.warm } else { &mut self.counted };
        self.block.addr[0] = self.next;
        if self.baker.way == TouchMethod::Prefetch {
            // Its line comes by itself.
            let mut translation = 0.0;
            engine.run_background_traced(&self.block, counts, &mut |result| translation = result.cycles);
            return translation;
        }
        engine.run_background(&self.block, counts);
        let after = engine.background_clock(counts);
        let before = std::mem::replace(&mut self.clocks[usize::from(is_warm)], after);
        after.waiting_cycles() - before.waiting_cycles()
    }

    /// Which table of a level translates the next address.
    fn table_of(&self, level: u32) -> u64 {
        let of = self.format.levels().iter().find(|of| of.level == level);
        of.map_or(0, |of| self.next >> (of.index_low_bit + of.index_bits))
    }

    /// On to the next page; after the last, to the next round.
    fn advance(&mut self) {
        let end = self.baker.regions[self.region].end;
        match self.next.checked_add(self.stride).filter(|next| *next < end) {
            Some(next) => self.next = next,
            None => {
                self.region += 1;
                if self.region == self.baker.regions.len() {
                    self.region = 0;
                    self.rounds += 1;
                    self.now += self.baker.sleep_cycles;
                }
                self.next = first_page(self.baker, self.region, self.page);
            }
        }
    }

    pub(super) fn end(mut self, engine: &mut Engine) -> HelperResult {
        HelperResult {
            outcome: engine.background_outcome(&mut self.counted),
            touches: self.touches,
            rounds: self.rounds,
        }
    }
}

fn first_page(baker: &ModelledBaker, region: usize, page: u64) -> u64 {
    baker.regions[region].start & !(page - 1)
}

/// The program is on the first one.
fn hardware_thread(machine: &Machine, placement: HelperPlacement) -> Result<u32, BakeModelError> {
    let topology = machine.topology;
    let name = || machine.name.clone();
    let (number, shared) = match placement {
        HelperPlacement::OtherCore if topology.cores_per_socket < 2 => {
            return Err(BakeModelError::Placement { machine: name(), what: "core a socket" });
        }
        HelperPlacement::OtherCore => (topology.threads_per_core, &[SharedBy::Socket][..]),
        HelperPlacement::SmtSibling if topology.threads_per_core < 2 => {
            return Err(BakeModelError::Placement { machine: name(), what: "hardware thread a core" });
        }
        HelperPlacement::SmtSibling => (1, &[SharedBy::Socket, SharedBy::Core][..]),
    };
    let first = machine.walker.first_cache_level;
    let read_by_walks =
        machine.caches.iter().filter(|cache| cache.level >= first && cache.serves.contains(&Serves::Load));
    if !read_by_walks.map(|cache| cache.shared_by).any(|by| shared.contains(&by)) {
        return Err(BakeModelError::NothingShared { machine: name() });
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use lookaside_engine::Setup;
    use lookaside_machine::preset;

    use super::*;
    use crate::bake::TouchCost;

    #[test]
    fn its_time_is_that_of_its_loop_its_sleep_and_its_hours() {
        const BASE: u64 = 1 << 36;
        let machine = preset("ryzen-5900x").expect("a preset");
        let mut engine = Engine::new(Setup::new(machine.clone())).expect("a setup");
        // Nine pages from the middle of one on, which are two touches; and a byte, which is one.
        let regions = vec![BASE + 100..BASE + 9 * 4096, BASE << 1..(BASE << 1) + 1];
        let baker = ModelledBaker {
            nops: 3,
            sleep_cycles: 1000.0,
            // So many touches are under way that none is waited for.
            pace: TouchCost { touch_cycles: 5.0, nop_cycles: 2.0, in_flight: 1e9 },
            ..ModelledBaker::new(TouchMethod::Entries, 1, regions)
        };
        let mut helper = RunningHelper::new(&baker, &machine, &mut engine).expect("a place");
        let mut times = Vec::new();
        for number in 0..7 {
            if number == 5 {
                helper.sleep_until(5000.0);
            }
            times.push((helper.next - BASE, helper.now()));
            helper.step(&mut engine, number < 2);
        }
        let places = [0, 8 * 4096, BASE];
        let at = |number: usize, now: f64| (places[number % 3], now);
        let expected = [0.0, 11.0, 22.0, 1033.0, 1044.0, 5000.0, 6011.0];
        assert_eq!(times, expected.into_iter().enumerate().map(|(i, now)| at(i, now)).collect::<Vec<_>>());
        let result = helper.end(&mut engine);
        assert_eq!((result.touches, result.rounds), (5, 2));
    }

    #[test]
    fn touches_made_together_are_those_made_one_by_one() {
        const BASE: u64 = 1 << 36;
        let machine = preset("ryzen-5900x").expect("a preset");
        let regions = vec![BASE..BASE + 40 * 4096, BASE << 1..(BASE << 1) + (80 << 20)];
        for way in [TouchMethod::Prefetch, TouchMethod::Load, TouchMethod::Entries] {
            let baker = ModelledBaker { sleep_cycles: 77.0, ..ModelledBaker::new(way, 1, regions.clone()) };
            let run = |counts: &[usize]| {
                let mut engine = Engine::new(Setup::new(machine.clone())).expect("a setup");
                let mut helper = RunningHelper::new(&baker, &machine, &mut engine).expect("a place");
                counts.iter().for_each(|&count| match count {
                    1 => helper.step(&mut engine, false),
                    _ => helper.steps(&mut engine, count),
                });
                let (now, next) = (helper.now(), helper.next);
                (now, next, helper.end(&mut engine), engine.outcome())
            };
            // More than a round: the second time, entries are at hand.
            assert_eq!(run(&[1; 6000]), run(&[16, 256, 3000, 2, 2726]), "{way:?}");
        }
    }
}
