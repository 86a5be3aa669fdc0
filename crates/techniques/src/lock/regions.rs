//! From a page of a profiled run to the page of a native run that holds the same object (Song et al. 2022, Section IV and
//! Figure 3): page → region of `/proc/PID/maps` + offset → the same region of the other run.
//!
//! The two runs differ: a profiler's own memory shifts everything, the environment moves the stack, Valgrind's heap ends at
//! 8 MiB. Regions are found again by file, permission and order; each answer says what it rests on.

use std::fmt;

use lookaside_trace::{MapSource, Region};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::layout::{Area, Layout, Role};
use super::pairs::{self, Span};

/// Where the object of a profiled page lies in a native run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapped {
    /// Address in the native run.
    pub address: u64,
    /// The region that it lies in there.
    pub region: Region,
    /// Bytes from that region's start.
    pub offset: u64,
    /// What the answer rests on, and what speaks against it.
    pub reasons: Vec<Reason>,
}

impl Mapped {
    /// How sure it is: as its least sure reason.
    pub fn confidence(&self) -> Confidence {
        self.reasons.iter().map(Reason::confidence).max().unwrap_or(Confidence::Guess)
    }
}

/// How sure an answer is; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It can't be another page, if the program is the same.
    Exact,
    /// It is, if both runs did the same.
    Likely,
    /// It may be another page.
    Guess,
}

/// What an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The same file, permission and offset in the file.
    SameFile,
    /// The same file by another name.
    SameInode,
    /// The name is the same; device or inode is not, as on another machine, or after a new build.
    OtherInode,
    /// Offset in the `.bss` of a file.
    BssOffset,
    /// Offset in the heap, which both runs fill in the same order.
    HeapOffset,
    /// Distance from the stack pointer at the program's first instruction.
    StackDepth,
    /// The environment moved the stack by so many bytes within a page: what shared a page can lie on two.
    StackShifted {
        /// Bytes, less than a page.
        bytes: u64,
    },
    /// Distance from the stack's end, as the first stack pointer isn't known in both runs.
    StackEndOnly,
    /// Arguments and environment themselves, which each run has of its own.
    StackStrings,
    /// The only region of its size and permission in both runs.
    SizeAlone,
    /// One of so many regions of its size and permission, in the order of their making.
    OrderAmongEquals {
        /// How many.
        count: usize,
    },
    /// Told from others of its size by what it lies next to.
    Neighbours,
    /// The kernel lists several regions as one; they were told apart by their sizes and order.
    Merged,
    /// The region has another size.
    RegionGrew {
        /// Bytes in the profiled run.
        from_bytes: u64,
        /// Bytes in the native run.
        to_bytes: u64,
    },
    /// A static program's heap begins with a record of the vDSO, which emulators hide: blocks lie about a KiB apart.
    HeapWithoutVdso,
    /// Valgrind's heap ends at 8 MiB: what it mapped instead was taken for the heap's continuation.
    HeapAfterBrkCap,
    /// One of the runs unmapped it before its end.
    Gone,
    /// What an interpreter keeps in memory depends on names, paths and hash seeds: it may lie pages away.
    InterpretersHeap,
}

impl Reason {
    /// How sure an answer is that rests on it.
    pub fn confidence(&self) -> Confidence {
        match self {
            Reason::SameFile | Reason::SameInode | Reason::BssOffset => Confidence::Exact,
            Reason::HeapOffset | Reason::StackDepth | Reason::StackShifted { .. } | Reason::SizeAlone => {
                Confidence::Likely
            }
            Reason::OrderAmongEquals { .. } | Reason::RegionGrew { .. } | Reason::Merged => Confidence::Likely,
            Reason::OtherInode | Reason::StackEndOnly | Reason::StackStrings | Reason::Neighbours => Confidence::Guess,
            Reason::HeapWithoutVdso | Reason::HeapAfterBrkCap | Reason::InterpretersHeap | Reason::Gone => {
                Confidence::Guess
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::SameFile => f.write_str("same file, permission and offset"),
            Reason::SameInode => f.write_str("same file by another name"),
            Reason::OtherInode => f.write_str("same name, but another device or inode"),
            Reason::BssOffset => f.write_str("offset in a file's .bss"),
            Reason::HeapOffset => f.write_str("offset in the heap"),
            Reason::StackDepth => f.write_str("depth below the first stack pointer"),
            Reason::StackShifted { bytes } => write!(f, "stack moved by {bytes} bytes within its page"),
            Reason::StackEndOnly => f.write_str("distance from the stack's end; its first pointer is not known"),
            Reason::StackStrings => f.write_str("arguments and environment, which each run has of its own"),
            Reason::SizeAlone => f.write_str("only region of its size"),
            Reason::OrderAmongEquals { count } => write!(f, "order among {count} regions of its size"),
            Reason::Neighbours => f.write_str("told by its neighbours alone"),
            Reason::Merged => f.write_str("part of a region that the kernel merged"),
            Reason::RegionGrew { from_bytes, to_bytes } => {
                write!(f, "region has {} KiB, {} when profiled", to_bytes >> 10, from_bytes >> 10)
            }
            Reason::HeapWithoutVdso => {
                f.write_str("static program: the vDSO's record, which emulators hide, shifts its heap")
            }
            Reason::HeapAfterBrkCap => f.write_str("past the 8 MiB of Valgrind's heap"),
            Reason::Gone => f.write_str("unmapped before the end of the run"),
            Reason::InterpretersHeap => f.write_str("an interpreter's memory, which may lie pages away"),
        }
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

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The page, or any address, of a profiled run in a native one. For many of them make a [`Mapping`].
///
/// ```
/// use lookaside_techniques::lock::layout::{Layout, Runner};
/// use lookaside_techniques::lock::regions::{map_page, Confidence};
///
/// let under_valgrind = "00109000-0010b000 r-xp 00001000 fe:00 10 /bin/p";
/// let alone = "555555555000-555555557000 r-xp 00001000 fe:00 10 /bin/p";
/// let profiled = Layout::from_listing(under_valgrind, Runner::Valgrind, None);
/// let native = Layout::from_listing(alone, Runner::Native, None);
/// let mapped = map_page(&profiled, &native, 0x10_a123).unwrap();
/// assert_eq!((mapped.address, mapped.confidence()), (0x5555_5555_6123, Confidence::Exact));
/// ```
///
/// # Errors
/// See [`Unmapped`].
pub fn map_page(profiled: &Layout, native: &Layout, address: u64) -> Result<Mapped, Unmapped> {
    Mapping::new(profiled, native).map_page(address)
}

/// Two runs of one program, region by region.
#[derive(Clone, Debug)]
pub struct Mapping {
    profiled: Layout,
    native: Layout,
    spans: Vec<Span>,
    interpreted: bool,
}

/// Programs that run programs: what these keep on the heap depends on more than the script.
const INTERPRETERS: [&str; 12] =
    ["python", "pypy", "perl", "ruby", "node", "lua", "php", "bash", "dash", "java", "Rscript", "guile"];

impl Mapping {
    /// Finds the partners of all regions.
    pub fn new(profiled: &Layout, native: &Layout) -> Mapping {
        let (profiled, native) = (pairs::split_heap(profiled, native), pairs::split_heap(native, profiled));
        let spans = pairs::pair(&profiled, &native);
        let program = profiled.program().map(base_name).unwrap_or_default();
        let interpreted = INTERPRETERS.iter().any(|known| program.starts_with(known));
        Mapping { profiled, native, spans, interpreted }
    }

    /// The page, or any address, of the profiled run in the native one. Addresses keep their distance: where regions don't
    /// begin at the same place in a page (the stack), ask with the address that was accessed, not its page's.
    ///
    /// # Errors
    /// See [`Unmapped`].
    pub fn map_page(&self, address: u64) -> Result<Mapped, Unmapped> {
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
        Ok(Mapped { address: at, offset: at - region.start, region: region.clone(), reasons })
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
        let bytes = from.abs_diff(to) % pairs::PAGE_BYTES;
        if bytes > 0 {
            reasons.push(Reason::StackShifted { bytes });
        }
        Ok((at, reasons))
    }
}

/// The areas of a file that hold the byte at the start of `part`, with its permission, in the order of their making.
fn covering<'a>(layout: &'a Layout, part: &Region) -> Vec<&'a Area> {
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
    let by_name: Vec<&Area> = pairs::by_age(layout).filter(candidate).filter(named).collect();
    match by_name.is_empty() {
        true => pairs::by_age(layout).filter(candidate).filter(same).collect(),
        false => by_name,
    }
}

/// Path of a mapped file; the kernel marks one that has been removed since.
pub(super) fn path(region: &Region) -> Option<&str> {
    match &region.source {
        MapSource::File { path, .. } => Some(path.strip_suffix(" (deleted)").unwrap_or(path)),
        _ => None,
    }
}

fn offset(region: &Region) -> Option<u64> {
    match &region.source {
        MapSource::File { offset, .. } => Some(*offset),
        _ => None,
    }
}

/// What to say of the sizes of two partners.
pub(super) fn grew(from: &Region, to: &Region) -> Option<Reason> {
    let (from_bytes, to_bytes) = (from.bytes(), to.bytes());
    (from_bytes != to_bytes).then_some(Reason::RegionGrew { from_bytes, to_bytes })
}
