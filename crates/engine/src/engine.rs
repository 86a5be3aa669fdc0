//! The state of a model run: plan, hardware, address spaces, counts. `run_block.rs` puts blocks of a trace through it.

use std::sync::Arc;

use crate::asid::{AsidSlots, SpaceIds};
use crate::batch::Batch;
use crate::chunks::KnownChunks;
use crate::context::AccessContext;
use crate::counts::EngineCounts;
use crate::fasthash::FastMap;
use crate::hardware::Hardware;
use crate::interval_state::IntervalState;
use crate::passed_rows::PassedRows;
use crate::plan::EnginePlan;
use crate::rows::{Attribution, RowCost, ThreadTotals};
use crate::space::AddressSpace;
use crate::streams::Streams;
use crate::table_memo::TableMemo;
use crate::tags::MAX_HOLDER;
use crate::window::RecorderWindows;
use crate::{Setup, SetupError};

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
    pub(crate) plan: Arc<EnginePlan>,
    pub(crate) hardware: Hardware,
    pub(crate) tables: TableMemo,
    /// By hardware thread.
    pub(crate) streams: Vec<Streams>,
    pub(crate) counts: EngineCounts,
    pub(crate) intervals: IntervalState,
    pub(crate) rows: Attribution,
    /// The kernel's space first.
    pub(crate) spaces: Vec<AddressSpace>,
    pub(crate) space_of: FastMap<u32, usize>,
    pub(crate) threads: Vec<ThreadTotals>,
    pub(crate) chunks: KnownChunks,
    /// Taken out while it is at work.
    pub(crate) batch: Option<Box<Batch>>,
    pub(crate) windows: RecorderWindows,
    thread_of: FastMap<(u32, u32), usize>,
    /// Of the block that ran last: process and thread, and their indices.
    last_block: Option<((u32, u32), (usize, usize))>,
    /// By thread: what its last run of accesses had in common.
    pub(crate) contexts: Vec<Option<AccessContext>>,
    /// Process that each hardware thread ran last.
    pub(crate) last_process: Vec<Option<u32>>,
    /// By hardware thread: the processes that may have entries there, if their number is bounded.
    pub(crate) asid_slots: Option<Vec<AsidSlots>>,
    /// Ids of spaces in keys.
    pub(crate) ids: SpaceIds,
    /// A page can be hit that was never walked for: marks must be set at each access.
    pub(crate) marks_every_access: bool,
    /// What the first level had not, where others want to know it.
    pub(crate) passed: Option<PassedRows>,
}

impl Engine {
    /// Makes ready to run.
    ///
    /// # Errors
    /// The machine is impossible, or the setup asks for what it does not have.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let plan = EnginePlan::new(&setup)?;
        Ok(Self::by_plan(setup, plan))
    }

    /// Makes ready to run by a plan for this setup.
    pub(crate) fn by_plan(setup: Setup, plan: EnginePlan) -> Self {
        let plan = Arc::new(plan);
        let max_id = plan.tlbs.iter().map(|tlb| tlb.max_id(&plan)).fold(MAX_HOLDER, u64::min);
        Self {
            hardware: Hardware::new(&plan, setup.seed),
            tables: TableMemo::new(),
            streams: vec![Streams::default(); plan.hw_threads],
            counts: EngineCounts::new(&plan),
            intervals: IntervalState::new(&plan),
            rows: Attribution::default(),
            spaces: vec![AddressSpace::kernel(&plan)],
            space_of: FastMap::default(),
            threads: Vec::new(),
            chunks: KnownChunks::default(),
            batch: None,
            windows: RecorderWindows::default(),
            thread_of: FastMap::default(),
            last_block: None,
            contexts: Vec::new(),
            last_process: vec![None; plan.hw_threads],
            asid_slots: setup.machine.context_switch.address_spaces.map(|n| vec![AsidSlots::new(n); plan.hw_threads]),
            ids: SpaceIds::new(max_id),
            marks_every_access: false,
            passed: None,
            setup,
            plan,
        }
    }

    /// Works by a batch that others use too.
    pub(crate) fn run_by(&mut self, batch: &mut Option<Box<Batch>>, run: impl FnOnce(&mut Self)) {
        self.batch = batch.take();
        run(self);
        *batch = self.batch.take();
    }

    /// Indices of the space and the thread of a block.
    pub(crate) fn space_and_thread(&mut self, process: u32, thread: u32) -> (usize, usize) {
        match self.last_block {
            Some((of, indices)) if of == (process, thread) => indices,
            _ => {
                let indices = (self.space(process), self.thread(process, thread));
                self.last_block = Some(((process, thread), indices));
                indices
            }
        }
    }

    /// Index of a process's space.
    pub(crate) fn space(&mut self, process: u32) -> usize {
        let next = self.spaces.len();
        let index = *self.space_of.entry(process).or_insert(next);
        if index == next {
            self.spaces.push(AddressSpace::process(process, &self.plan));
            self.ids.add_space();
        }
        index
    }

    /// Index of a thread.
    pub(crate) fn thread(&mut self, process: u32, thread: u32) -> usize {
        let next = self.threads.len();
        let index = *self.thread_of.entry((process, thread)).or_insert(next);
        if index == next {
            let hw = next % self.plan.hw_threads;
            self.threads.push(ThreadTotals { process, thread, hw, accesses: 0, cost: RowCost::default() });
            self.contexts.push(None);
        }
        index
    }
}
