//! From a page of a profiled run to the page of a native run that holds the same object (Song et al. 2022, Section IV
//! and Figure 3): page → region of `/proc/PID/maps` + offset → the same region of the other run.
//!
//! The two runs differ: a profiler's own memory shifts everything, the environment moves the stack, Valgrind's heap
//! ends at 8 MiB. Regions are found again by file, permission and order; each answer says what it rests on.

use lookaside_trace::{MapSource, Region};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::layout::{base_name, path, Area, RegionLayout, Role};
use super::reason::grew;
pub use super::reason::{Confidence, Reason};
use super::region_matching::{self, MatchedSpan};

/// Where the object of a profiled page lies in a native run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedPage {
    /// Address in the native run.
    pub address: u64,
    /// The region that it lies in there.
    pub region: Region,
    /// Bytes from that region's start.
    pub offset: u64,
    /// What the answer rests on, and what speaks against it.
    pub reasons: Vec<Reason>,
}

impl MatchedPage {
    /// How sure it is: as its least sure reason.
    pub fn confidence(&self) -> Confidence {
        self.reasons.iter().map(Reason::confidence).max().unwrap_or(Confidence::Guess)
    }
}

/// Why a page has no partner.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unmapped {
    /// The profiled run has nothing there.
    #[error("{address:#x}: not mapped in the profiled run")]
    NotThere {
        /// As asked.
        address: u64,
    },
    /// It is the profiler's.
    #[error("{address:#x}: the profiler's own memory: {}", name(.region))]
    Profilers {
        /// As asked.
        address: u64,
        /// Where it lies in the profiled run.
        region: Region,
    },
    /// The native run has no such region, or none that can be told.
    #[error("{address:#x}: no partner of {}: {why}", name(.region))]
    NoPartner {
        /// As asked.
        address: u64,
        /// Where it lies in the profiled run.
        region: Region,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// A region in words: `libc.so.6 rw- +0x1000`, `heap rw-`.
pub fn name(region: &Region) -> String {
    let rights = [(1, 'r'), (2, 'w'), (4, 'x')].map(|(bit, c)| if region.prot & bit != 0 { c } else { '-' });
    let rights = String::from_iter(rights);
    match &region.source {
        MapSource::File { path, offset } => format!("{} {rights} +{offset:#x}", base_name(path)),
        MapSource::Heap => format!("heap {rights}"),
        MapSource::Stack => format!("stack {rights}"),
        MapSource::Anonymous => format!("anonymous {rights} of {} KiB at {:#x}", region.bytes() >> 10, region.start),
    }
}

/// The page, or any address, of a profiled run in a native one. For many of them make a [`RegionMatching`].
///
/// ```
/// use lookaside_techniques::lock::layout::{RegionLayout, Runner};
/// use lookaside_techniques::lock::regions::{map_page, Confidence};
///
/// let under_valgrind = "00109000-0010b000 r-xp 00001000 fe:00 10 /bin/p";
/// let alone = "555555555000-555555557000 r-xp 00001000 fe:00 10 /bin/p";
/// let profiled = RegionLayout::from_listing(under_valgrind, Runner::Valgrind, None);
/// let native = RegionLayout::from_listing(alone, Runner::Native, None);
/// let mapped = map_page(&profiled, &native, 0x10_a123).unwrap();
/// assert_eq!((mapped.address, mapped.confidence()), (0x5555_5555_6123, Confidence::Exact));
/// ```
///
/// # Errors
/// See [`Unmapped`].
pub fn map_page(profiled: &RegionLayout, native: &RegionLayout, address: u64) -> Result<MatchedPage, Unmapped> {
    RegionMatching::new(profiled, native).map_page(address)
}

/// Two runs of one program, region by region.
#[derive(Clone, Debug)]
pub struct RegionMatching {
    profiled: RegionLayout,
    native: RegionLayout,
    spans: Vec<MatchedSpan>,
    interpreted: bool,
}

/// Programs that run programs: what these keep on the heap depends on more than the script.
const INTERPRETERS: [&str; 12] =
    ["python", "pypy", "perl", "ruby", "node", "lua", "php", "bash", "dash", "java", "Rscript", "guile"];

impl RegionMatching {
    /// Finds the partners of all regions.
    pub fn new(profiled: &RegionLayout, native: &RegionLayout) -> RegionMatching {
        let (profiled, native) =
            (region_matching::split_heap(profiled, native), region_matching::split_heap(native, profiled));
        let spans = region_matching::pair(&profiled, &native);
        let program = profiled.program().map(base_name).unwrap_or_default();
        let interpreted = INTERPRETERS.iter().any(|known| program.starts_with(known));
        RegionMatching { profiled, native, spans, interpreted }
    }

    /// The page, or any address, of the profiled run in the native one. Addresses keep their distance: where regions
    /// don't begin at the same place in a page (the stack), ask with the address that was accessed, not its page's.
    ///
    /// # Errors
    /// See [`Unmapped`].
    pub fn map_page(&self, address: u64) -> Result<MatchedPage, Unmapped> {
        let area = self.profiled.find(address).ok_or(Unmapped::NotThere { address })?;
        let found = match &area.role {
            Role::Profiler => return Err(Unmapped::Profilers { address, region: area.region.clone() }),
            Role::File | Role::Kernel => self.in_file(area, address),
            Role::Bss { .. } | Role::Anonymous => self.in_memory(address),
            Role::Heap => self.in_heap(area, address),
            Role::Stack => self.in_stack(area, address),
        };
        let refused = |why| Unmapped::NoPartner { address, region: area.region.clone(), why };
        let (at, mut reasons) = found.map_err(refused)?;
        let region = &self.native.find(at).ok_or_else(|| refused("the native run's region ends before it"))?.region;
        if area.region.gone || region.gone {
            reasons.push(Reason::Gone);
        }
        if self.interpreted && matches!(area.role, Role::Heap | Role::Anonymous) {
            reasons.push(Reason::InterpretersHeap);
        }
        Ok(MatchedPage { address: at, offset: at - region.start, region: region.clone(), reasons })
    }

    fn in_file(&self, area: &Area, address: u64) -> Result<(u64, Vec<Reason>), &'static str> {
        let here = area.region.tail(address);
        let there = covering(&self.native, &here);
        let among = covering(&self.profiled, &here);
        let Some(nth) = among.iter().position(|one| one.region.start == area.region.start) else {
            return Err("the region can't be told from itself");
        };
        let partner = match there.get(nth) {
            Some(partner) if there.len() == among.len() => &partner.region,
            Some(_) => return Err("the native run maps that part of the file more or fewer times"),
            None => return Err("the native run does not map that part of the file with these permissions"),
        };
        let mut reasons = vec![match (partner.file, area.region.file) {
            (Some(a), Some(b)) if a != b => Reason::OtherInode,
            _ if path(partner) == path(&area.region) => Reason::SameFile,
            _ => Reason::SameInode,
        }];
        if among.len() > 1 {
            reasons.push(Reason::OrderAmongEquals { count: among.len() });
        }
        if let (Some(from), Some(to)) = (offset(&here), offset(partner)) {
            reasons.extend(grew(&area.region, partner));
            return Ok((partner.start + (from - to), reasons));
        }
        Err("it is no file")
    }

    fn in_memory(&self, address: u64) -> Result<(u64, Vec<Reason>), &'static str> {
        let span = self.spans.iter().find(|span| (span.from..span.from + span.bytes).contains(&address));
        let span = span.ok_or("no region of the native run can be told to be it, by size, neighbours or order")?;
        Ok((span.to + (address - span.from), span.reasons.clone()))
    }

    fn in_heap(&self, area: &Area, address: u64) -> Result<(u64, Vec<Reason>), &'static str> {
        let heap = self.native.areas.iter().find(|area| area.role == Role::Heap).ok_or("the native run has no heap")?;
        let at = heap.region.start + (address - area.region.start);
        if !heap.region.holds(at) {
            return Err("the native run's heap ends before it");
        }
        let mut reasons = vec![Reason::HeapOffset];
        reasons.extend(grew(&area.region, &heap.region));
        if self.profiled.is_static() && self.profiled.has_vdso() != self.native.has_vdso() {
            reasons.push(Reason::HeapWithoutVdso);
        }
        Ok((at, reasons))
    }

    fn in_stack(&self, area: &Area, address: u64) -> Result<(u64, Vec<Reason>), &'static str> {
        let stack =
            self.native.areas.iter().find(|area| area.role == Role::Stack).ok_or("the native run has no stack")?;
        let (from, to, mut reasons) = match (self.profiled.entry_stack, self.native.entry_stack) {
            (Some(from), Some(to)) if address < from => (from, to, vec![Reason::StackDepth]),
            (Some(_), Some(_)) => (area.region.end, stack.region.end, vec![Reason::StackStrings]),
            _ => (area.region.end, stack.region.end, vec![Reason::StackEndOnly]),
        };
        // A frame that the native run's stack has not grown to yet is where it will be: but there is no page now.
        let at = to.checked_sub(from - address).filter(|at| stack.region.holds(*at));
        let at = at.ok_or("the native run's stack does not reach so far")?;
        let bytes = from.abs_diff(to) % region_matching::PAGE_BYTES;
        if bytes > 0 {
            reasons.push(Reason::StackShifted { bytes });
        }
        Ok((at, reasons))
    }
}

/// The areas of a file that hold the byte at the start of `part`, with its permission, in the order of their making.
fn covering<'a>(layout: &'a RegionLayout, part: &Region) -> Vec<&'a Area> {
    let holds = |region: &Region| match (offset(region), offset(part)) {
        (Some(first), Some(wanted)) => (first..first.saturating_add(region.bytes())).contains(&wanted),
        _ => false,
    };
    let candidate = |area: &&Area| {
        let same = (area.region.prot, area.region.gone) == (part.prot, part.gone);
        matches!(area.role, Role::File | Role::Kernel) && same && holds(&area.region)
    };
    let named = |area: &&Area| path(&area.region) == path(part);
    let same = |area: &&Area| area.region.file.is_some() && area.region.file == part.file;
    let by_name: Vec<&Area> = region_matching::by_age(layout).filter(candidate).filter(named).collect();
    match by_name.is_empty() {
        true => region_matching::by_age(layout).filter(candidate).filter(same).collect(),
        false => by_name,
    }
}

fn offset(region: &Region) -> Option<u64> {
    match &region.source {
        MapSource::File { offset, .. } => Some(*offset),
        _ => None,
    }
}
