//! Single shots at the made-up machine.

use std::cell::RefCell;
use std::rc::Rc;

use lookaside_probe::{Act, MetalError, NeighbourWalk, OtherCpu, PairedTicks, Shot, TimedRound};

use super::{Array, Sim};

/// Where a neighbour's pages are.
const NEIGHBOUR: u64 = 1 << 32;

/// What a thread on another CPU does to entries here.
#[allow(dead_code)] // not every test has all of them
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Nothing: it has a TLB of its own.
    Apart,
    /// Its entries compete with ours for room.
    Tagged,
    /// It uses our entries, and we use its.
    Shared,
    /// It has half of the ways as long as it is there.
    Halves,
}

impl Habits {
    /// What a thread that walks so does to entries here.
    pub fn other(&self, walk: &NeighbourWalk) -> Option<Other> {
        self.cpus.iter().find(|(cpu, _)| cpu.number == walk.cpu).map(|(_, other)| *other)
    }

    /// Whether it can do single shots.
    pub fn can_shoot(&self) -> Result<(), MetalError> {
        let refused = || MetalError::Cannot("single shots are not supported here".into());
        self.shots.then_some(()).ok_or_else(refused)
    }

    /// Which page of our TLB stands for the i-th of its walk, if it has any there.
    pub fn other_page(&self, walk: &NeighbourWalk) -> Option<impl Fn(u64) -> u64> {
        let (first, tag) = match (walk.first, self.other(walk)?) {
            (_, Other::Apart | Other::Halves) => return None,
            (Some(first), Other::Shared) => (first, 0),
            // The same set, but no hit of ours.
            (Some(first), Other::Tagged) => (first, NEIGHBOUR),
            (None, _) => (NEIGHBOUR, 0),
        };
        Some(move |i| (first + i) | tag)
    }
}

/// What the made-up machine does at acts that are no loads.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Whether it can do single shots at all.
    pub shots: bool,
    /// Who pretends to be it, and what it says limits it.
    pub emulator: Option<String>,
    /// See `emulator`.
    pub remarks: Vec<String>,
    /// Whether a prefetch instruction walks and fills both levels.
    pub prefetch_fills: bool,
    /// The first-level array that stores have to themselves; `None` = they use the entries that loads use.
    pub stores: Option<Array>,
    /// Pages that the kernel touches in a system call, and in a switch to another process or thread and back.
    pub system_call: Vec<u64>,
    /// See `system_call`.
    pub switch: Vec<u64>,
    /// Whether a switch to another process and back loses all entries.
    pub switch_flushes: bool,
    /// Ticks that a timed load takes longer after a switch, since its data-cache line is gone.
    pub line_loss: f64,
    /// Pages that an interrupt touches, and how many interrupts come a tick.
    pub interrupt: Vec<u64>,
    /// See `interrupt`.
    pub interrupts_per_tick: f64,
    /// Entries of its own that a neighbour on the same core brings into the second level while a chain is walked, in a
    /// thousand steps; in the mean of chains: now none, now twice as many.
    pub taken_a_kilo_step: f64,
    /// Whether walks are counted.
    pub counts_walks: bool,
    /// Other CPUs, and what a thread there does to entries here.
    pub cpus: Vec<(OtherCpu, Other)>,
    /// Page faults of a prefetch of a page that no load has touched.
    pub prefetch_faults: u64,
    /// Ticks of an empty shot.
    pub overhead: f64,
    /// Standard deviation of a shot in ticks, and share of shots that something long falls into.
    pub sigma: f64,
    /// See `sigma`.
    pub outliers: f64,
    /// Addresses that the caller's acts touch: a made-up machine cannot see the real ones.
    pub touched: Rc<RefCell<Vec<u64>>>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            shots: true,
            emulator: None,
            remarks: Vec::new(),
            prefetch_fills: true,
            stores: None,
            taken_a_kilo_step: 0.0,
            counts_walks: false,
            system_call: Vec::new(),
            switch: Vec::new(),
            switch_flushes: false,
            line_loss: 10.0,
            interrupt: Vec::new(),
            interrupts_per_tick: 0.0,
            cpus: Vec::new(),
            prefetch_faults: 0,
            overhead: 60.0,
            // Seen on Zen 4 beside the timer's grain: 2 to 5 ticks, one shot in a thousand interrupted.
            sigma: 4.0,
            outliers: 0.002,
            touched: Rc::default(),
        }
    }
}

/// Shoots so many times.
pub fn shoot(sim: &mut Sim, shot: &Shot<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
    let mut all = Vec::with_capacity(samples);
    for _ in 0..samples {
        let lines_lost = before(sim, shot);
        all.push(time(sim, shot.timed, lines_lost));
    }
    Ok(all)
}

/// The same by windows, with controls.
pub fn windows(sim: &mut Sim, shot: &Shot<'_>, loads: usize, samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
    let mut one = |touched| {
        let lines_lost = before(sim, shot);
        by_windows(sim, shot.timed, loads, touched, lines_lost)
    };
    Ok((0..samples).map(|_| PairedTicks { shot: one(false), control: one(true) }).collect())
}

/// Rounds around the caller's act, with controls.
pub fn rounds(sim: &mut Sim, round: &mut TimedRound<'_>, rounds: usize) -> Result<Vec<PairedTicks>, MetalError> {
    let timed: Vec<u64> = round.timed.iter().map(|at| at >> 12).collect();
    let mut one = |touched| {
        sim.run(round.prime.iter().map(|at| at >> 12));
        (round.act)();
        let acted = sim.habits.touched.take();
        sim.run(acted.into_iter().map(|at| at >> 12));
        by_windows(sim, &timed, 1, touched, false)
    };
    Ok((0..rounds).map(|_| PairedTicks { shot: one(false), control: one(true) }).collect())
}

/// The acts before the timed loads; says whether the data cache lost their lines.
fn before(sim: &mut Sim, shot: &Shot<'_>) -> bool {
    let habits = sim.habits.clone();
    let mut lines_lost = false;
    for act in shot.before {
        match *act {
            Act::Load(pages) | Act::Refill(pages) => {
                sim.beside(pages, 1);
            }
            Act::Store(pages) if habits.stores.is_none() => sim.run(pages.iter().copied()),
            Act::Prefetch(_, pages) if habits.prefetch_fills => {
                sim.faults += habits.prefetch_faults * pages.len() as u64;
                sim.run(pages.iter().copied());
            }
            Act::Store(_) | Act::Prefetch(..) => {}
            Act::SystemCall => sim.run(habits.system_call.iter().copied()),
            Act::SwitchProcess | Act::SwitchThread => {
                if habits.switch_flushes && matches!(act, Act::SwitchProcess) {
                    sim.forget();
                }
                sim.run(habits.switch.iter().copied());
                lines_lost = true;
            }
            Act::Wait(ticks) => {
                let chance = ticks as f64 * habits.interrupts_per_tick;
                let times = chance as usize + usize::from(sim.uniform() < chance.fract());
                for _ in 0..times {
                    sim.run(habits.interrupt.iter().copied());
                }
                // A busy neighbour gets around all its pages meanwhile.
                if let Some(walk) = sim.walk {
                    sim.other(4 * walk.pages as u64);
                }
            }
        }
    }
    lines_lost
}

fn by_windows(sim: &mut Sim, pages: &[u64], loads: usize, touched: bool, lines_lost: bool) -> Vec<f64> {
    let mut ticks = Vec::new();
    for window in pages.chunks(loads) {
        if touched {
            sim.run(window.iter().copied());
        }
        ticks.push(time(sim, window, lines_lost));
    }
    ticks
}

fn time(sim: &mut Sim, pages: &[u64], lines_lost: bool) -> f64 {
    let before = sim.tlbs.misses();
    sim.run(pages.iter().copied());
    let after = sim.tlbs.misses();
    let (sigma, outliers) = (sim.habits.sigma, sim.habits.outliers);
    let mut ticks = sim.habits.overhead
        + pages.len() as f64 * (sim.costs.hit + if lines_lost { sim.habits.line_loss } else { 0.0 })
        + (after.0 - before.0) as f64 * sim.costs.second
        + (after.1 - before.1) as f64 * sim.costs.walk;
    ticks += sigma * ((0..12).map(|_| sim.uniform()).sum::<f64>() - 6.0);
    if sim.uniform() < outliers {
        ticks += 20_000.0 * sim.uniform();
    }
    // The timer's edges fall anywhere in the shot.
    let (grain, phase) = (sim.noise.grain, sim.uniform());
    ((ticks / grain + phase).floor() * grain).max(0.0)
}
