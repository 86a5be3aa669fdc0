//! The machine that this program runs on.

use lookaside_host::{available_bytes, Pinned};
use lookaside_machine::PageSize;

use crate::metal::area_chains::{circle, HostAreas};
use crate::metal::clock::WARM_STEPS;
use crate::metal::emulator::emulator;
use crate::metal::frame_aliases::{FrameAliases, PAGE_BITS};
use crate::metal::idle_core::IdleCore;
use crate::metal::neighbour::{relation, NeighbourThread};
use crate::metal::page_faults::{self, FaultArea};
use crate::metal::page_reservation::PageReservation;
#[cfg(target_os = "linux")]
use crate::metal::perf::count_around;
use crate::metal::single_shot::runner::ShotRunner;
use crate::metal::single_shot::{PairedTicks, Shot, TimedRound};
#[cfg(target_os = "linux")]
use crate::metal::walk_counter::WalkCounter;
use crate::metal::word_sequence::WordArena;
use crate::metal::{
    clock, hugetlb_pool, idle_core, ChainAccess, LineChain, MemoryArea, Metal, MetalError, NeighbourWalk, OtherCpu,
    PageChain, TimedFaults, WordSequence,
};
#[cfg(target_os = "linux")]
use crate::pmu::events::PmuEvent;
#[cfg(target_os = "linux")]
use lookaside_host::perf::PERF_TYPE_RAW;

/// The machine that this program runs on, the calling thread bound to one CPU while it lives.
#[derive(Debug)]
pub struct HostMachine {
    /// First, and so gone before the memory that it may be reading.
    neighbour: Option<NeighbourThread>,
    small: PageReservation,
    huge: Option<PageReservation>,
    /// Made when a chain wants it: one page of the pool, which goes back with the rest.
    gigantic: Option<FrameAliases>,
    /// Why there is none.
    lacks_gigantic: Option<String>,
    /// Made when a sequence wants it, one for each page size, as many as have room.
    arenas: Vec<WordArena>,
    arena_bytes: u64,
    fault_area: Option<FaultArea>,
    cycles_per_tick: f64,
    ticks_per_second: f64,
    shooter: ShotRunner,
    areas: HostAreas,
    quiet: IdleCore,
    #[cfg(target_os = "linux")]
    walks: WalkCounter,
    pinned: Pinned,
    remarks: Vec<String>,
}

/// At most this part of the memory that is to be had is taken.
const MEMORY_PART: u64 = 3;
/// Sequences may have this part of it: their pages lie side by side, and take a 512th of tables.
const ARENA_PART: (u64, u64) = (3, 4);
/// Bits of a page number that no index known reaches beyond (Skylake's 14 and Zen 4's 10 are the most): fewer are
/// remarked on.
const WANTED_PAGE_BITS: u32 = 19;

/// An area takes at most this part of the memory that may be used: the rest is for lists of steps.
const AREA_PART: u64 = 2;

impl HostMachine {
    /// Takes the CPU that the thread runs on, and address space (not memory) for the pages. `max_bytes` bounds the
    /// memory in use at any time.
    ///
    /// # Errors
    /// No timer that serves, no address space, or no CPU to stay on.
    pub fn new(max_bytes: u64) -> Result<Self, MetalError> {
        Self::on(Pinned::here().map_err(MetalError::affinity)?, max_bytes)
    }

    /// The same on the CPU, of those that the thread may use, that has most of its core to itself: in a virtual machine
    /// the core's other thread may be somebody else's, and takes entries of its TLBs. Takes some tenths of a second.
    ///
    /// # Errors
    /// As for [`HostMachine::new`].
    pub fn on_idlest_cpu(max_bytes: u64) -> Result<Self, MetalError> {
        clock::check()?;
        let mut pinned = Pinned::here().map_err(MetalError::affinity)?;
        idle_core::move_to_idlest(&mut pinned)?;
        Self::on(pinned, max_bytes)
    }

    /// The CPU that [`HostMachine::on_idlest_cpu`] would take now.
    ///
    /// # Errors
    /// There is no timer that serves, or no CPU to stay on.
    pub fn idlest_cpu() -> Result<usize, MetalError> {
        clock::check()?;
        let mut pinned = Pinned::here().map_err(MetalError::affinity)?;
        idle_core::move_to_idlest(&mut pinned)?;
        Ok(pinned.cpu())
    }

    fn on(pinned: Pinned, max_bytes: u64) -> Result<Self, MetalError> {
        let mut remarks: Vec<String> = clock::check()?.into_iter().collect();
        // Pages far apart each want a page of page tables too, and not all that is there is ours.
        let available = available_bytes().unwrap_or(u64::MAX);
        let arena_bytes = max_bytes.min(available / ARENA_PART.1 * ARENA_PART.0);
        let most = available / MEMORY_PART;
        if most < max_bytes {
            let (most, asked) = (most >> 20, max_bytes >> 20);
            remarks.push(format!("only {most} MiB of memory are used, not {asked}: the system has no more to spare"));
        }
        let max_bytes = max_bytes.min(most);
        let small = PageReservation::new(PageSize::K4, max_bytes)?;
        if small.page_bits() < WANTED_PAGE_BITS {
            let bits = small.page_bits();
            remarks.push(format!(
                "address space is limited: only the lowest {bits} bits of page numbers can be tested; index bits \
                 above them are missed"
            ));
        }
        let huge = PageReservation::new(PageSize::M2, max_bytes).ok().filter(PageReservation::has_pages_of_its_size);
        let ticks_per_second = clock::ticks_per_second();
        let (cycles_per_tick, shooter) = (clock::cycles_per_tick(), ShotRunner::default());
        let areas = HostAreas::new(max_bytes / AREA_PART);
        Ok(Self {
            small,
            huge,
            gigantic: None,
            lacks_gigantic: hugetlb_pool::lacks(PageSize::G1),
            arenas: Vec::new(),
            arena_bytes,
            fault_area: None,
            cycles_per_tick,
            ticks_per_second,
            shooter,
            areas,
            quiet: IdleCore::here(),
            #[cfg(target_os = "linux")]
            walks: WalkCounter::default(),
            neighbour: None,
            pinned,
            remarks,
        })
    }

    /// The same with another bound for the memory of sequences ([`Metal::replay`]), which is at most three quarters of
    /// what is to be had.
    #[must_use]
    pub fn with_sequence_bytes(mut self, bytes: u64) -> Self {
        self.arena_bytes = bytes.min(available_bytes().unwrap_or(u64::MAX) / ARENA_PART.1 * ARENA_PART.0);
        self
    }

    /// The CPU measured.
    pub fn cpu(&self) -> usize {
        self.pinned.cpu()
    }

    /// The pages of a size, and who shoots at them.
    fn memory(&mut self, size: PageSize) -> Result<(&mut PageReservation, &mut ShotRunner), MetalError> {
        self.areas.give_back();
        self.arenas.clear();
        Ok((pages(&mut self.small, &mut self.huge, size)?, &mut self.shooter))
    }
}

/// That of the two which has this size.
fn pages<'a>(
    small: &'a mut PageReservation,
    huge: &'a mut Option<PageReservation>,
    size: PageSize,
) -> Result<&'a mut PageReservation, MetalError> {
    let huge = match size {
        PageSize::K4 => return Ok(small),
        PageSize::M2 => huge.as_mut(),
        _ => None,
    };
    huge.ok_or_else(|| MetalError::Unsupported(format!("no pages of {size} can be had")))
}

impl HostMachine {
    /// Memory for sequences of so many bytes at this page size. That of other sizes goes back first where there is no
    /// room for all.
    fn arena(&mut self, size: PageSize, bytes: u64) -> Result<&mut WordArena, MetalError> {
        self.areas.give_back();
        let others = self.arenas.iter().filter(|arena| arena.page_size() != size);
        if bytes + others.map(WordArena::backed_bytes).sum::<u64>() > self.arena_bytes {
            self.arenas.retain(|arena| arena.page_size() == size);
        }
        let at = match self.arenas.iter().position(|arena| arena.page_size() == size) {
            Some(at) => at,
            None => {
                self.arenas.push(WordArena::new(size, self.arena_bytes)?);
                self.arenas.len() - 1
            }
        };
        Ok(&mut self.arenas[at])
    }

    /// Gives the pages of chains back.
    fn give_back_pages(&mut self) -> Result<(), MetalError> {
        self.small.drop_all()?;
        self.huge.as_mut().map_or(Ok(()), PageReservation::drop_all)
    }
}

impl HostMachine {
    /// The times of a chain of updates.
    fn updates(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let mut at = self.memory(chain.size)?.0.link(chain.pages)?;
        let round = chain.pages.len() as u64;
        let mut ticks = Vec::with_capacity(samples);
        for _ in 0..samples {
            // SAFETY: `link` gave a circular chain through our own memory that nobody unmaps meanwhile.
            let spent = unsafe {
                clock::update_run(&mut at, round * WARM_STEPS.div_ceil(round.max(1)));
                let start = clock::fenced_now();
                clock::update_run(&mut at, round * u64::from(rounds));
                clock::fenced_now().saturating_sub(start)
            };
            ticks.push(spent as f64 / f64::from(rounds));
        }
        Ok(ticks)
    }

    fn gigantic(&mut self) -> Result<&mut FrameAliases, MetalError> {
        self.areas.give_back();
        match &mut self.gigantic {
            Some(aliases) => Ok(aliases),
            none => Ok(none.insert(FrameAliases::gigantic()?)),
        }
    }
}

impl Metal for HostMachine {
    fn page_bits(&self, size: PageSize) -> u32 {
        match size {
            PageSize::K4 => self.small.page_bits(),
            PageSize::M2 => self.huge.as_ref().map_or(0, PageReservation::page_bits),
            PageSize::G1 if self.lacks_gigantic.is_none() => PAGE_BITS,
            _ => 0,
        }
    }

    fn lacks(&self, size: PageSize) -> Option<String> {
        match size {
            PageSize::G1 => self.lacks_gigantic.clone(),
            _ if self.page_bits(size) > 0 => None,
            _ => Some(format!("no {size} pages can be had (see /sys/kernel/mm/transparent_hugepage/enabled)")),
        }
    }

    fn max_pages(&self, size: PageSize) -> usize {
        match size {
            PageSize::K4 => self.small.max_pages(),
            PageSize::M2 => self.huge.as_ref().map_or(0, PageReservation::max_pages),
            PageSize::G1 if self.lacks_gigantic.is_none() => 1 << PAGE_BITS,
            _ => 0,
        }
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        if chain.touch == ChainAccess::Update {
            return self.updates(chain, rounds, samples);
        }
        let mut at = match chain.size {
            PageSize::G1 => self.gigantic()?.link(chain.pages)?,
            size => self.memory(size)?.0.link(chain.pages)?,
        };
        let round = chain.pages.len() as u64;
        let warm = round * WARM_STEPS.div_ceil(round.max(1));
        let mut ticks = Vec::with_capacity(samples);
        for _ in 0..samples {
            // SAFETY: `link` gave a circular chain through mapped memory that nobody unmaps meanwhile.
            let mut walk = || unsafe { clock::walk(&mut at, warm, round * u64::from(rounds)) };
            // Beside a thread that was put on another CPU to disturb, quiet is not what is wanted.
            let spent = if self.neighbour.is_some() { walk() } else { self.quiet.sample(walk) };
            ticks.push(spent as f64 / f64::from(rounds));
        }
        Ok(ticks)
    }

    fn shot(&mut self, shot: &Shot<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        let (memory, shooter) = self.memory(shot.size)?;
        shooter.shoot(memory, shot, samples)
    }

    fn windows(&mut self, shot: &Shot<'_>, loads: usize, samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
        let (memory, shooter) = self.memory(shot.size)?;
        shooter.windows(memory, shot, loads, samples)
    }

    fn address(&mut self, size: PageSize, page: u64) -> Result<u64, MetalError> {
        self.memory(size)?.0.present(page)
    }

    unsafe fn rounds(&mut self, round: &mut TimedRound<'_>, rounds: usize) -> Result<Vec<PairedTicks>, MetalError> {
        // SAFETY: the caller's.
        Ok(unsafe { ShotRunner::rounds(round, rounds) })
    }

    #[cfg(target_os = "linux")]
    fn counts_walks(&mut self) -> bool {
        self.walks.are_counted(&mut self.small)
    }

    #[cfg(target_os = "linux")]
    fn walks(&mut self, chain: &PageChain<'_>, steps: usize, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.counts_walks();
        self.areas.give_back();
        let memory = pages(&mut self.small, &mut self.huge, chain.size)?;
        // Beside a thread that was put on another CPU to disturb, quiet is not what is wanted.
        let quiet = self.neighbour.is_none().then_some(&mut self.quiet);
        self.walks.of(memory, quiet, chain, steps, samples)
    }

    #[cfg(target_os = "linux")]
    fn count(&mut self, chain: &PageChain<'_>, rounds: u32, event: &PmuEvent) -> Result<u64, MetalError> {
        let mut at = self.memory(chain.size)?.0.link(chain.pages)?;
        let round = chain.pages.len() as u64;
        let mut walk = |rounds: u64| {
            // SAFETY: `link` gave a circular chain through mapped memory that nobody unmaps meanwhile.
            unsafe { clock::walk(&mut at, 1, round * rounds) };
        };
        walk(WARM_STEPS.div_ceil(round));
        count_around(PERF_TYPE_RAW, event.code, || walk(rounds.into())).map_err(MetalError::Cannot)
    }

    fn cpu(&self) -> Option<usize> {
        Some(self.pinned.cpu())
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn emulator(&self) -> Option<String> {
        emulator()
    }

    fn page_faults(&mut self) -> Option<u64> {
        // SAFETY: a plain structure of numbers, all zero.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is ours.
        let got = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
        (got == 0).then_some((usage.ru_minflt + usage.ru_majflt) as u64)
    }

    fn cpus(&mut self) -> Vec<OtherCpu> {
        let here = self.pinned.cpu();
        self.pinned.others().map(|cpu| relation(cpu, here)).collect()
    }

    fn neighbour(&mut self, walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        let Some(walk) = walk else {
            self.neighbour = None;
            return Ok(());
        };
        if self.neighbour.as_ref().is_none_or(|neighbour| !neighbour.serves(&walk)) {
            self.neighbour = None;
            self.neighbour = Some(NeighbourThread::new(walk.cpu, walk.most_pages, walk.all_lines)?);
        }
        let row = walk.first.map(|first| self.memory(PageSize::K4)?.0.row(first, walk.pages)).transpose()?;
        match (&self.neighbour, row) {
            // SAFETY: `Memory` never unmaps its reservation before it is dropped itself, only maps it anew over itself
            // (and then whoever reads gets zeros); the thread is dropped before that.
            (Some(neighbour), Some(base)) => unsafe { neighbour.walk_at(base, walk.pages) },
            (Some(neighbour), None) => neighbour.walk(walk.pages),
            (None, _) => {}
        }
        Ok(())
    }

    fn neighbour_loads(&mut self) -> u64 {
        self.neighbour.as_ref().map_or(0, NeighbourThread::loads)
    }

    fn cycles_per_tick(&self) -> f64 {
        self.cycles_per_tick
    }

    fn replay(&mut self, sequence: &WordSequence<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.give_back_pages()?;
        self.arena(sequence.size, sequence.reach_bytes())?.replay(sequence, rounds, samples)
    }

    fn sequence_bytes(&self) -> u64 {
        self.arena_bytes
    }

    fn fault_sizes(&self) -> Vec<PageSize> {
        page_faults::offered()
    }

    fn time_faults(&mut self, size: PageSize, bytes: u64) -> Result<TimedFaults, MetalError> {
        if self.fault_area.as_ref().is_none_or(|area| !area.serves(size, bytes)) {
            self.fault_area = None;
            self.fault_area = Some(FaultArea::new(size, bytes)?);
        }
        let counted = |metal: &mut Self| metal.page_faults().unwrap_or_default();
        let before = counted(self);
        let ticks = self.fault_area.as_ref().map_or(0.0, FaultArea::touch);
        let between = counted(self);
        if let Some(area) = &self.fault_area {
            area.touch_elsewhere();
        }
        let after = counted(self);
        Ok(TimedFaults { ticks, faults: between.saturating_sub(before), more_faults: after.saturating_sub(between) })
    }

    fn frame_run_pages(&mut self, size: PageSize) -> Result<u64, MetalError> {
        Ok(if self.arena(size, 0)?.is_split() { PageSize::M2.bytes() / size.bytes() } else { 1 })
    }

    fn cycles_per_tick_now(&mut self) -> f64 {
        clock::cycles_per_tick()
    }

    fn ticks_per_second(&self) -> Option<f64> {
        Some(self.ticks_per_second)
    }

    fn is_guest(&self) -> Option<bool> {
        #[cfg(target_arch = "x86_64")]
        {
            let features = raw_cpuid::CpuId::new().get_feature_info();
            // No processor sets the bit, hypervisors do (AMD64 Architecture Programmer's Manual 3, E.3.2).
            Some(features.is_some_and(|features| features.has_hypervisor()))
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    fn area_bytes(&mut self, area: MemoryArea) -> u64 {
        if area == MemoryArea::Gigantic {
            return (self.max_pages(PageSize::G1) as u64) << PageSize::G1.shift();
        }
        self.areas.bytes(area)
    }

    fn steps(&mut self, steps: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        if steps.area == MemoryArea::Gigantic {
            let at = self.gigantic()?.link_at(steps.offsets)?;
            // SAFETY: `link_at` gave a circular chain through mapped memory that nobody unmaps meanwhile.
            return Ok(unsafe { circle(at, steps, samples) });
        }
        self.arenas.clear();
        self.give_back_pages()?;
        self.areas.walk(steps, samples)
    }
}
