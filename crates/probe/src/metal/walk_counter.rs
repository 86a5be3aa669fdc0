//! Counts page-table walks by the accessed bits of page-table entries ([`ReferencedBits`]).

use lookaside_host::ReferencedBits;

use crate::flush_tlb::flush_tlb;
use crate::metal::clock::WARM_STEPS;
use crate::metal::idle_core::IdleCore;
use crate::metal::page_reservation::PageReservation;
use crate::metal::{clock, MetalError, PageChain};

/// Pages whose walks are known, and times that they are counted.
const KNOWN_PAGES: u64 = 64;
/// See [`KNOWN_PAGES`].
const KNOWN: usize = 4;

/// Counts walks, where the system tells of them.
#[derive(Debug, Default)]
pub(super) enum WalkCounter {
    /// Whether it does is tried when somebody asks.
    #[default]
    Untried,
    Counted(ReferencedBits),
    Uncounted,
}

impl WalkCounter {
    /// Whether this system's bits say what is walked for: of pages whose translations were put out all are.
    pub(super) fn are_counted(&mut self, memory: &mut PageReservation) -> bool {
        if let Self::Untried = self {
            *self = tried(memory).map_or(Self::Uncounted, Self::Counted);
        }
        matches!(self, Self::Counted(_))
    }

    /// Pages walked for in so many steps of a chain, by sample; each taken while the core is quiet, if that is wanted.
    pub(super) fn of(
        &mut self,
        memory: &mut PageReservation,
        mut quiet: Option<&mut IdleCore>,
        chain: &PageChain<'_>,
        steps: usize,
        samples: usize,
    ) -> Result<Vec<f64>, MetalError> {
        let Self::Counted(bits) = self else {
            return Err(MetalError::Cannot("walks are not counted here".into()));
        };
        let round = chain.pages.len() as u64;
        memory.keep_only(chain.pages)?;
        let mut at = memory.link(chain.pages)?;
        // SAFETY: `link` gave a circular chain through mapped memory that nobody unmaps meanwhile.
        let mut walk = |steps: u64| unsafe { clock::walk(&mut at, 1, steps.max(2) - 1) };
        walk(round * WARM_STEPS.div_ceil(round.max(1)));
        let mut sample = || {
            walk(round);
            bits.clear().map_err(|error| MetalError::Cannot(error.to_string()))?;
            walk(steps as u64);
            Ok(memory.referenced(bits)? as f64)
        };
        let mut one = || match &mut quiet {
            Some(quiet) => quiet.sample(&mut sample),
            None => sample(),
        };
        (0..samples).map(|_| one()).collect()
    }
}

fn tried(memory: &mut PageReservation) -> Option<ReferencedBits> {
    let mut bits = ReferencedBits::here().ok()?;
    let pages: Vec<u64> = (0..KNOWN_PAGES).map(|page| 3 * page).collect();
    let mut at = memory.link(&pages).ok()?;
    for _ in 0..KNOWN {
        flush_tlb().ok()?;
        bits.clear().ok()?;
        // SAFETY: `link` gave a circular chain through mapped memory that nobody unmaps meanwhile.
        unsafe { clock::walk(&mut at, 1, KNOWN_PAGES - 1) };
        if memory.referenced(&mut bits).ok()? != KNOWN_PAGES {
            return None;
        }
    }
    Some(bits)
}
