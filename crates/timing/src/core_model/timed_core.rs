//! The core: accesses go in, in program order; cycles come out.

use std::collections::VecDeque;

use super::address_flow::{AddressFlow, REGISTERS};
use super::core_parameters::CoreParameters;
use super::dispatch::Dispatch;
use super::in_flight::InFlight;
use super::memory_channel::{MemoryChannel, MemoryTimes};
use super::slots::CoreSlots;

/// log2 of the bytes of a line, and of a page: what is on its way to the core is told apart by them.
const LINE_SHIFT: u32 = 6;
const PAGE_SHIFT: u32 = 12;

/// An access, with what it waits for by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimedAccess {
    /// A store; else a load, which is waited for.
    pub is_store: bool,
    /// Its virtual address.
    pub address: u64,
    /// Where its address comes from and its value goes.
    pub flow: AddressFlow,
    /// Instructions from the access before to this one, which is the last of them. At least 1; 0 counts as 1.
    pub instructions: u32,
    /// Cycles that it takes where it waits for nothing: a hit in the first TLB level and the first cache.
    pub hit_cycles: f64,
    /// Cycles of its translation beyond, where memory does nothing else.
    pub translation_cycles: f64,
    /// They are those of a page walk, not of a hit in a further TLB level.
    pub walks: bool,
    /// References of the walk that memory serves.
    pub walk_memory_references: u32,
    /// Cycles that it waits for its line beyond a hit in the first cache, where memory does nothing else.
    pub data_cycles: f64,
    /// Memory serves its line.
    pub is_from_memory: bool,
}

/// A core under way.
#[derive(Clone, Debug)]
pub struct TimedCore {
    parameters: CoreParameters,
    dispatch: Dispatch,
    /// Instructions dispatched so far.
    dispatched: u64,
    /// Accesses that may keep later instructions from being dispatched: which instruction each is, counted from 1, and
    /// when it retires.
    window: VecDeque<(u64, f64)>,
    /// When all so far have retired.
    retired: f64,
    /// When the last value came into each.
    registers: [f64; REGISTERS],
    walkers: CoreSlots,
    miss_buffers: CoreSlots,
    walk_reference_cycles: f64,
    memory: MemoryChannel,
    pages: InFlight,
    lines: InFlight,
    /// When each of the last stores leaves the queue.
    stores: VecDeque<f64>,
    /// When all of them have.
    stored: f64,
}

impl TimedCore {
    /// At cycle 0, with nothing under way.
    pub fn new(parameters: CoreParameters, memory: MemoryTimes) -> Self {
        Self {
            parameters,
            dispatch: Dispatch::new(parameters.width),
            dispatched: 0,
            window: VecDeque::new(),
            retired: 0.0,
            registers: [0.0; REGISTERS],
            walkers: CoreSlots::new(parameters.walkers),
            miss_buffers: CoreSlots::new(parameters.miss_buffers),
            walk_reference_cycles: memory.walk_reference_cycles,
            memory: MemoryChannel::new(memory.line_cycles),
            pages: InFlight::default(),
            lines: InFlight::default(),
            stores: VecDeque::new(),
            stored: 0.0,
        }
    }

    /// The next access.
    pub fn access(&mut self, access: &TimedAccess) {
        let now = self.dispatch(access);
        self.walkers.forget_before(now);
        self.miss_buffers.forget_before(now);
        self.memory.forget_before(now);
        let begun = now.max(self.registers[access.flow.from.index()]);
        let translated = self.translate(access, begun, now);
        let done = self.fetch(access, translated, now) + access.hit_cycles;
        if access.is_store {
            // It retires as soon as it can't fault any more; its line may still be on the way.
            self.retired = self.retired.max(translated + access.hit_cycles);
            self.stored = self.stored.max(self.retired).max(done);
            self.stores.push_back(self.stored);
        } else {
            self.retired = self.retired.max(done);
        }
        self.window.push_back((self.dispatched, self.retired));
        let into = access.flow.into.index();
        if into > 0 {
            self.registers[into] = done;
        }
    }

    /// All that is under way ends, and then nothing is done for so many cycles.
    pub fn stall(&mut self, cycles: f64) {
        if cycles > 0.0 {
            self.retired = self.cycles() + cycles;
            self.dispatch.wait_until(self.retired);
        }
    }

    /// Cycles until all accesses so far have retired and all stores have their lines.
    pub fn cycles(&self) -> f64 {
        self.retired.max(self.stored)
    }

    /// Dispatches the instructions up to the access: its own cycle.
    fn dispatch(&mut self, access: &TimedAccess) -> f64 {
        let own = self.dispatched + u64::from(access.instructions.max(1));
        while let Some(&(number, retires)) = self.window.front() {
            // The first one that has no place in the window before it.
            let waits = number + u64::from(self.parameters.window.max(1));
            if waits > own {
                break;
            }
            self.dispatch_to(waits - 1);
            self.dispatch.wait_until(retires);
            self.window.pop_front();
        }
        if access.is_store && self.stores.len() >= self.parameters.store_queue.max(1) as usize {
            self.dispatch_to(own - 1);
            let leaves = self.stores.pop_front();
            self.dispatch.wait_until(leaves.unwrap_or_default());
        }
        self.dispatch_to(own)
    }

    /// Dispatches up to the instruction of this number.
    fn dispatch_to(&mut self, number: u64) -> f64 {
        let instructions = number - self.dispatched;
        self.dispatched = number;
        self.dispatch.advance(instructions)
    }

    /// When an access that begins at a time is translated.
    fn translate(&mut self, access: &TimedAccess, begun: f64, now: f64) -> f64 {
        let page = access.address >> PAGE_SHIFT;
        if !access.walks {
            return self.pages.when_there(page, begun) + access.translation_cycles;
        }
        let walk = PageWalkCycles::of(access, self.walk_reference_cycles);
        let memory = &self.memory;
        let start =
            self.walkers.take(begun, |start| walk.end(start, |asked, latency| memory.would_bring(asked, latency)));
        let translated = walk.end(start, |asked, latency| self.memory.bring(asked, latency));
        self.pages.add(page, translated, now);
        translated
    }

    /// When its line is there.
    fn fetch(&mut self, access: &TimedAccess, translated: f64, now: f64) -> f64 {
        let line = access.address >> LINE_SHIFT;
        let cycles = access.data_cycles;
        let there = if access.is_from_memory {
            let memory = &self.memory;
            let asked = self.miss_buffers.take(translated, |start| memory.would_bring(start, cycles));
            self.memory.bring(asked, cycles)
        } else if cycles > 0.0 {
            self.miss_buffers.take(translated, |start| start + cycles) + cycles
        } else {
            return self.lines.when_there(line, translated);
        };
        self.lines.add(line, there, now);
        there
    }
}

/// What a walk takes, in order.
struct PageWalkCycles {
    /// The walker itself, and the references that caches serve.
    first: f64,
    /// References that memory serves, one after another, and cycles of each.
    references: u32,
    each: f64,
}

impl PageWalkCycles {
    /// `reference`: cycles of a reference that memory serves.
    fn of(access: &TimedAccess, reference: f64) -> Self {
        let (all, references) = (access.translation_cycles, access.walk_memory_references);
        // Of a walk that began before its access, a part is over.
        let each = reference.min(all / f64::from(references.max(1)));
        Self { first: all - each * f64::from(references), references, each }
    }

    /// When it ends. `bring`: when memory's answer is there, asked at a time, if it takes so many cycles by itself.
    fn end(&self, start: f64, mut bring: impl FnMut(f64, f64) -> f64) -> f64 {
        (0..self.references).fold(start + self.first, |asked, _| bring(asked, self.each))
    }
}
