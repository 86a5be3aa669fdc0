//! The engine: blocks in, outcome out. Here is the path of one access, through the TLB arrays in `levels.rs`; events are in
//! `happen.rs`.

use std::ops::Range;
use std::sync::Arc;

use lookaside_machine::SwitchAction;
use lookaside_trace::{Block, Event, Kind};

use crate::batch::Batch;
use crate::counts::{Counts, SIDE_OF};
use crate::fasthash::FastMap;
use crate::levels::Hit;
use crate::os::to_cycles;
use crate::parts::{Parts, KERNEL_ID};
use crate::places::Places;
use crate::plan::Plan;
use crate::residents::Residents;
use crate::rows::{RowCost, Rows, Thread};
use crate::slots::Slots;
use crate::space::Space;
use crate::streams::Streams;
use crate::tags::MAX_HOLDER;
use crate::trace_hook::{AccessResult, Blind, Shown, Tracer};
use crate::walker::{serve, walk, Tables, WalkFor};
use crate::window::{is_of_windows, Windows};
use crate::{Detail, Setup, SetupError};

pub(crate) use crate::levels::{held_under, physical};

/// A model run under way.
///
/// ```
/// use lookaside_engine::{Engine, Setup};
/// use lookaside_trace::{Block, Event, Kind};
///
/// let mut engine = Engine::new(Setup::new(lookaside_machine::preset("ryzen-5900x")?))?;
/// let mut block = Block { process: 1, thread: 1, ..Block::default() };
/// block.push(Kind::Load, 0x1000);
/// block.push(Kind::Load, 0x1008);
/// engine.run(&block);
/// assert_eq!(engine.outcome().data.cost.walks, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    pub(crate) setup: Setup,
    pub(crate) plan: Arc<Plan>,
    pub(crate) parts: Parts,
    pub(crate) tables: Tables,
    /// By hardware thread.
    pub(crate) streams: Vec<Streams>,
    pub(crate) counts: Counts,
    pub(crate) rows: Rows,
    /// The kernel's space first.
    pub(crate) spaces: Vec<Space>,
    pub(crate) space_of: FastMap<u32, usize>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) places: Places,
    /// Taken out while it is at work.
    pub(crate) batch: Option<Box<Batch>>,
    pub(crate) windows: Windows,
    thread_of: FastMap<(u32, u32), usize>,
    /// Process that each hardware thread ran last.
    last_process: Vec<Option<u32>>,
    /// Which processes each hardware thread has places for, if they are bounded.
    residents: Option<Vec<Residents>>,
    /// Ids in keys: of each space, and the next free one.
    pub(crate) ids: Vec<Option<u64>>,
    pub(crate) free_ids: Vec<u64>,
    pub(crate) next_id: u64,
    pub(crate) max_id: u64,
    /// A page can be hit that was never walked for: marks must be set at each access.
    pub(crate) marks_every_access: bool,
}

/// Accesses after which is looked whether tags run out.
const ACCESSES_A_CHECK: usize = 4096;

/// Index of the kernel's space.
pub(crate) const KERNEL: usize = 0;

/// What stays the same over a run of accesses.
pub(crate) struct Run {
    pub(crate) space: usize,
    pub(crate) process: u32,
    pub(crate) id: u64,
    pub(crate) hw: usize,
    pub(crate) thread: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) slots: Arc<Slots>,
}

/// One access.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) addr: u64,
    pub(crate) kind: usize,
    pub(crate) ip: u64,
    pub(crate) repeat: u64,
}

impl Access {
    /// The access at a position of a block.
    pub(crate) fn of(block: &Block, i: usize) -> Self {
        Self {
            addr: block.addr[i],
            kind: block.kind[i] as usize,
            ip: block.ip.get(i).copied().unwrap_or(0),
            repeat: u64::from(block.repeat.get(i).copied().unwrap_or(0)),
        }
    }
}

impl Engine {
    /// Makes ready to run.
    ///
    /// # Errors
    /// The machine is impossible, or the setup asks for what it does not have.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let plan = Arc::new(Plan::new(&setup)?);
        let max_id = plan.tlbs.iter().map(|tlb| tlb.max_id(&plan)).fold(MAX_HOLDER, u64::min);
        Ok(Self {
            parts: Parts::new(&plan, setup.seed),
            tables: Tables::new(),
            streams: vec![Streams::default(); plan.hw_threads],
            counts: Counts::new(&plan),
            rows: Rows::default(),
            spaces: vec![Space::kernel(&plan)],
            space_of: FastMap::default(),
            threads: Vec::new(),
            places: Places::default(),
            batch: None,
            windows: Windows::default(),
            thread_of: FastMap::default(),
            last_process: vec![None; plan.hw_threads],
            residents: setup.machine.context_switch.address_spaces.map(|n| vec![Residents::new(n); plan.hw_threads]),
            ids: vec![Some(KERNEL_ID)],
            free_ids: Vec::new(),
            next_id: KERNEL_ID + 1,
            max_id,
            marks_every_access: false,
            setup,
            plan,
        })
    }

    /// Runs a block.
    pub fn run(&mut self, block: &Block) {
        self.run_with(block, &mut Blind);
    }

    /// Runs a block and shows what each recorded access did.
    pub fn run_traced(&mut self, block: &Block, see: &mut impl FnMut(AccessResult)) {
        self.run_with(block, &mut Shown::new(see));
    }

    fn run_with<T: Tracer>(&mut self, block: &Block, tracer: &mut T) {
        let space = self.space(block.process);
        let thread = self.thread(block.process, block.thread);
        let len = block.addr.len().min(block.kind.len());
        self.watch_windows(block);
        let mut from = 0;
        let mut events = &block.events[..];
        loop {
            let leaves = events.iter().take_while(|(_, event)| is_of_windows(event)).count();
            let (leaves, others) = events.split_at(leaves);
            let to = others.first().map_or(len, |(position, _)| (*position as usize).clamp(from, len));
            self.accesses(block, from..to, leaves, (space, thread), tracer);
            from = to;
            let Some(((_, event), rest)) = others.split_first() else { break };
            self.happen(event, space, thread);
            events = rest;
        }
    }

    /// Accesses, with the pages that leave a window in between.
    fn accesses<T: Tracer>(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[(u32, Event)],
        (space, thread): (usize, usize),
        tracer: &mut T,
    ) {
        if range.is_empty() && leaves.is_empty() {
            return;
        }
        let run = self.begin(space, thread);
        for start in range.clone().step_by(ACCESSES_A_CHECK) {
            let part = start..range.end.min(start + ACCESSES_A_CHECK);
            let within;
            (within, leaves) = leaves.split_at(leaves.partition_point(|leave| (leave.0 as usize) < part.end));
            self.make_room_for_tags(part.len() + within.len());
            match (T::ENABLED, self.setup.detail) {
                (false, Detail::Totals) => self.accesses_fast::<false>(block, part, within, &run),
                (false, Detail::Rows) => self.accesses_fast::<true>(block, part, within, &run),
                (true, Detail::Totals) => self.accesses_seen::<false, T>(block, part, within, &run, tracer),
                (true, Detail::Rows) => self.accesses_seen::<true, T>(block, part, within, &run, tracer),
            }
        }
        self.make_room_for_tags(leaves.len());
        self.leave_all(leaves, &run);
    }

    fn accesses_seen<const ROWS: bool, T: Tracer>(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[(u32, Event)],
        run: &Run,
        tracer: &mut T,
    ) {
        for i in range {
            let before;
            (before, leaves) = leaves.split_at(leaves.partition_point(|leave| leave.0 as usize <= i));
            self.leave_all(before, run);
            self.access::<ROWS, T>(run, Access::of(block, i), tracer);
            self.enter_window(run, block.addr[i], block.kind[i]);
        }
    }

    /// A run of accesses begins: maybe a context switch.
    fn begin(&mut self, space: usize, thread: usize) -> Run {
        let hw = self.threads[thread].hw;
        let process = self.spaces[space].process;
        let slots = self.parts.slots(&self.plan, hw);
        let last = self.last_process[hw].replace(process);
        if last != Some(process) {
            self.switch(last.is_some(), process, hw, &slots);
        }
        Run { space, process, id: self.id(space), hw, thread, plan: Arc::clone(&self.plan), slots }
    }

    /// What a switch throws out. The first process of a hardware thread only takes a place.
    fn switch(&mut self, from_another: bool, process: u32, hw: usize, slots: &Slots) {
        let (plan, counts) = (&self.plan, &mut self.counts);
        if from_another {
            counts.context_switches += 1;
            let action = self.setup.machine.context_switch.action;
            if action != SwitchAction::Nothing {
                let caches_too = action == SwitchAction::FlushTlbAndCaches;
                self.parts.flush(plan, slots, |id| id != KERNEL_ID, caches_too, &mut counts.invalidated);
            }
        }
        let gone = self.residents.as_mut().and_then(|residents| residents[hw].enter(process));
        if let Some(id) = gone.and_then(|gone| self.ids[*self.space_of.get(&gone)?]) {
            self.parts.flush(plan, slots, |held| held == id, false, &mut counts.invalidated);
        }
    }

    /// One access, by all the rules.
    pub(crate) fn access<const ROWS: bool, T: Tracer>(&mut self, run: &Run, access: Access, tracer: &mut T) {
        let plan = &*run.plan;
        self.spaces[run.space].accesses[access.kind] += 1 + access.repeat;
        self.threads[run.thread].accesses += 1 + access.repeat;
        let global = plan.is_global(access.addr);
        let va = access.addr & plan.address_mask;
        let space = if global { KERNEL } else { run.space };
        let class = self.spaces[space].class_at(va, &self.setup.os.pages, plan.leaf_shift[1]);
        // Without tag `global` a kernel page's entry may serve a user address that was never walked for, where
        // either of them is not canonical.
        self.marks_every_access |= global && va & plan.kernel_bit == 0 && plan.kernel_bit != 0;
        if self.marks_every_access || plan.marks_early || va & plan.kernel_bit != 0 {
            self.spaces[space].pages.touch(va, class);
        }

        let row = if ROWS { self.rows.page(&mut self.spaces, space, va, class, plan.leaf_shift[class]) } else { 0 };

        let side = SIDE_OF[access.kind];
        let route = &plan.routes[access.kind][class];
        let hit = self.look_up(run, access.kind, global, va, class);
        let at = hit.map_or(route.levels.len(), |hit| hit.at);

        let mut cost = RowCost { l1_misses: u64::from(at > 0 || hit.is_none()), ..RowCost::default() };
        let mut units = 0;
        match hit {
            Some(hit) => {
                units = plan.tlbs[hit.array].hit_units;
                cost.hit_units = units;
            }
            None => {
                self.spaces[space].pages.touch(va, class);
                let id = if global { KERNEL_ID } else { run.id };
                let number = self.spaces[space].number;
                let (run_id, hw) = (run.id, run.hw);
                let of = WalkFor { slots: &run.slots, side, space: number, id, run_id, hw, va, class };
                let mut walk = walk(plan, &mut self.parts, &mut self.tables, &mut self.counts, tracer, of);
                self.walk_ahead(run, access.kind, va, &mut walk);
                units += walk.units;
                cost.walks = 1;
                cost.walk_references = walk.references;
                cost.walk_references_memory = walk.references_memory;
                cost.walk_units = walk.units;
            }
        }
        let first_level_filled = self.fill(run, access.kind, global, va, class, at);
        let holder = match hit {
            Some(Hit { at: 0, array, locked }) => Some((array, locked)),
            _ => first_level_filled.map(|array| (array, false)),
        };
        if access.repeat > 0 {
            self.count_repeats(access.kind, class, access.repeat, holder);
        }

        let (mut data_server, mut streamed) = (None, false);
        if plan.has_data_caches {
            let route = &run.slots.data_route[access.kind];
            if !route.is_empty() {
                let physical = physical(plan, &self.spaces[space], va, class);
                let position = serve(&mut self.parts.caches, route, access.kind, physical);
                self.counts.data_served[access.kind][position] += 1;
                data_server = plan.data_route[access.kind].get(position).copied();
                streamed = self.follow(run, access.kind, va, position);
            }
        }

        if cost.l1_misses > 0 {
            self.threads[run.thread].cost.add(&cost);
        }
        if ROWS {
            self.rows.pages[row].accesses += 1 + access.repeat;
            if cost.l1_misses > 0 {
                self.rows.pages[row].cost.add(&cost);
                let ip = if access.kind == Kind::Fetch as usize { access.addr } else { access.ip };
                self.rows.charge_ip(run.process, ip, &cost);
                if !global {
                    self.rows.charge_object(&self.spaces[run.space], va, &cost);
                }
            }
        }
        if T::ENABLED {
            let level = |hit: Hit| (plan.routes[access.kind][class].levels[hit.at].level, hit.array);
            tracer.access(AccessResult {
                hit: hit.map(level),
                locked: hit.is_some_and(|hit| hit.locked),
                references: Vec::new(),
                cycles: to_cycles(units.into()),
                data_server,
                streamed,
            });
        }
    }

    /// Index of a process's space.
    pub(crate) fn space(&mut self, process: u32) -> usize {
        let next = self.spaces.len();
        let index = *self.space_of.entry(process).or_insert(next);
        if index == next {
            self.spaces.push(Space::process(process, &self.plan));
            self.ids.push(None);
        }
        index
    }

    pub(crate) fn thread(&mut self, process: u32, thread: u32) -> usize {
        let next = self.threads.len();
        let index = *self.thread_of.entry((process, thread)).or_insert(next);
        if index == next {
            let hw = next % self.plan.hw_threads;
            self.threads.push(Thread { process, thread, hw, accesses: 0, cost: RowCost::default() });
        }
        index
    }
}
