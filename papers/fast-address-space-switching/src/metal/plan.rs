//! What is measured: every ring, and every participant alone; and whether all that can be.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::SwitchError;
use super::limits::Limits;
use super::options::SwitchOptions;

/// Bytes of a base page.
pub(super) const PAGE: u64 = 4096;
/// Bytes of a huge page.
pub(super) const HUGE_PAGE: u64 = 2 << 20;
/// Sizes of extreme at most: each has a word of the one line of a page.
pub(super) const MOST_SIZES: usize = 16;
/// Pages of extreme at most: a word holds a distance in bytes.
const MOST_PAGES: u64 = 1 << 20;
/// Files that are open besides the pipes: standard ones, and what the command reads and writes.
const OTHER_FILES: u64 = 32;
/// Kernel memory of a process and a thread of a ring, beside the tables of what it reads: stacks, descriptors, pipes,
/// and the tables of the program; some 200 KiB on Linux 6.18.
const MEMBER_BYTES: u128 = 512 << 10;

/// What the participants are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Threads of one process: one address space.
    Threads,
    /// Processes.
    Processes,
    /// Compartments of one process, by protection keys: a thread enters one after the other.
    Compartments,
}

/// What they do in their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// Each line of so many KiB is read, one after the other.
    LatCtx,
    /// A word of each of so many pages is read, in random order.
    Extreme,
}

/// Whose memory they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frames {
    /// Each its own.
    Private,
    /// All the same: threads have the same translations, processes their own of the same frames.
    Shared,
}

/// What pages it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// 4 KiB.
    Base,
    /// Transparent huge pages of 2 MiB.
    Huge,
}

/// A ring, whoever takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
pub struct Ring {
    /// What a turn is.
    pub benchmark: Benchmark,
    /// Whose memory is read.
    pub frames: Frames,
    /// What pages it lies in.
    pub pages: PageKind,
    /// Participants.
    pub participants: usize,
    /// KiB (lat_ctx) or pages of 4 KiB (extreme) that each reads in its turn.
    pub size: u64,
}

/// A measurement; of one participant: it is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RingCase {
    pub who: Who,
    pub ring: Ring,
}

impl RingCase {
    /// The same work without a switch.
    pub(super) fn alone(self) -> Self {
        Self { ring: Ring { participants: 1, frames: Frames::Private, ..self.ring }, ..self }
    }
}

impl fmt::Display for RingCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.who {
            Who::Threads => "threads",
            Who::Processes => "processes",
            Who::Compartments => "compartments",
        };
        let Ring { benchmark, participants, size, .. } = self.ring;
        match benchmark {
            Benchmark::LatCtx => write!(f, "lat_ctx, {participants} {who}, {size} KiB"),
            Benchmark::Extreme => write!(f, "extreme, {participants} {who}, {size} pages"),
        }
    }
}

/// Every measurement of a round: each ring, then each kind of work alone. Compartments have base pages only.
pub(super) fn cases(options: &SwitchOptions, huge: bool, compartments: bool) -> Vec<RingCase> {
    let of = |huge| if huge { &[PageKind::Base, PageKind::Huge][..] } else { &[PageKind::Base] };
    let mut who = vec![(Who::Threads, of(huge)), (Who::Processes, of(huge))];
    if compartments {
        who.push((Who::Compartments, of(false)));
    }
    let mut cases = Vec::new();
    for (who, kinds) in who {
        for &pages in kinds {
            for &participants in &options.participants {
                // What reads nothing has no pages.
                for &size in options.kib.iter().filter(|size| **size > 0 || pages == PageKind::Base) {
                    let (benchmark, frames) = (Benchmark::LatCtx, Frames::Private);
                    cases.push(RingCase { who, ring: Ring { benchmark, frames, pages, participants, size } });
                }
            }
            for frames in [Frames::Private, Frames::Shared] {
                for &participants in &options.children {
                    for &size in &options.page_counts {
                        let ring = Ring { benchmark: Benchmark::Extreme, frames, pages, participants, size };
                        cases.push(RingCase { who, ring });
                    }
                }
            }
        }
    }
    let mut alone: Vec<RingCase> = Vec::new();
    for case in cases.iter().map(|case| case.alone()) {
        if !alone.contains(&case) {
            alone.push(case);
        }
    }
    cases.extend(alone);
    cases
}

/// Memory of a benchmark's participants: one area each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AreaLayout {
    pub areas: usize,
    pub bytes_each: u64,
}

impl AreaLayout {
    /// Whole pages of this kind, so that no two participants have one in common.
    pub(super) fn of(options: &SwitchOptions, benchmark: Benchmark, pages: PageKind) -> Self {
        let most = |list: &[u64]| list.iter().copied().max().unwrap_or_default();
        let (areas, bytes) = match benchmark {
            Benchmark::LatCtx => (&options.participants, most(&options.kib).saturating_mul(1024)),
            Benchmark::Extreme => (&options.children, most(&options.page_counts).saturating_mul(PAGE)),
        };
        let page = match pages {
            PageKind::Base => PAGE,
            PageKind::Huge => HUGE_PAGE,
        };
        let bytes_each = bytes.checked_next_multiple_of(page).unwrap_or(u64::MAX);
        Self { areas: areas.iter().copied().max().unwrap_or_default(), bytes_each }
    }

    pub(super) fn bytes(self) -> u128 {
        self.areas as u128 * u128::from(self.bytes_each)
    }
}

/// Members of either kind that there are at a time.
pub(super) fn members(options: &SwitchOptions) -> usize {
    options.participants.iter().chain(&options.children).copied().max().unwrap_or_default()
}

/// The options with each size once, in order; if they can be done here.
pub(super) fn checked(options: &SwitchOptions, limits: &Limits) -> Result<SwitchOptions, SwitchError> {
    let mut options = options.clone();
    for list in [&mut options.participants, &mut options.children] {
        list.sort_unstable();
        list.dedup();
    }
    for list in [&mut options.kib, &mut options.page_counts] {
        list.sort_unstable();
        list.dedup();
    }
    match refusal(&options, limits) {
        Some(why) => Err(SwitchError(why)),
        None => Ok(options),
    }
}

/// Why these cannot be.
fn refusal(options: &SwitchOptions, limits: &Limits) -> Option<String> {
    for (name, empty) in [
        ("participants", options.participants.is_empty()),
        ("kib", options.kib.is_empty()),
        ("children", options.children.is_empty()),
        ("pages", options.page_counts.is_empty()),
        ("rounds", options.rounds == 0),
    ] {
        if empty {
            return Some(format!("{name}: none given"));
        }
    }
    for (name, list) in [("participants", &options.participants), ("children", &options.children)] {
        if let Some(few) = list.iter().find(|count| **count < 2) {
            return Some(format!("{name} {few}: a ring has at least 2"));
        }
    }
    if options.page_counts.contains(&0) {
        return Some("pages 0: a participant visits at least 1".into());
    }
    if let Some(many) = options.page_counts.iter().find(|pages| **pages > MOST_PAGES) {
        return Some(format!("pages {many}: at most {MOST_PAGES}"));
    }
    if options.page_counts.len() > MOST_SIZES {
        return Some(format!("pages: {} sizes; at most {MOST_SIZES} at a time", options.page_counts.len()));
    }
    cpu_refusal(options, limits)
        .or_else(|| members_refusal(options, limits))
        .or_else(|| memory_refusal(options, limits))
}

fn cpu_refusal(options: &SwitchOptions, limits: &Limits) -> Option<String> {
    let cpu = options.cpu?;
    let list = || limits.cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    (!limits.cpus.contains(&cpu)).then(|| format!("CPU {cpu}: this program may run on {}", list()))
}

fn members_refusal(options: &SwitchOptions, limits: &Limits) -> Option<String> {
    let members = members(options) as u64;
    // As many threads again, at the same time.
    let wanted = members.saturating_mul(2);
    if let Some((most, whose)) = limits.tasks.as_ref().filter(|(most, _)| wanted >= *most) {
        return Some(format!(
            "{members} participants: {members} processes and as many threads at a time; {whose} allows {most} of both, those that run included; ask for fewer"
        ));
    }
    let files = members.saturating_mul(4).saturating_add(OTHER_FILES);
    (files > limits.open_files).then(|| {
        format!(
            "{members} participants: their pipes take {files} open files, of which this program may have {}; ask for fewer, or raise ulimit -n",
            limits.open_files
        )
    })
}

fn memory_refusal(options: &SwitchOptions, limits: &Limits) -> Option<String> {
    let layouts = [Benchmark::LatCtx, Benchmark::Extreme]
        .map(|benchmark| [PageKind::Base, PageKind::Huge].map(|pages| AreaLayout::of(options, benchmark, pages)));
    let mut memory = layouts.iter().flatten().map(|layout| layout.bytes()).fold(0, u128::saturating_add);
    if limits.no_compartments.is_none() {
        // As much of base pages again, an area that all have in common, and a page of each that has it.
        let [[lat_ctx, _], [extreme, _]] = layouts;
        let common = u128::from(extreme.bytes_each).saturating_add(extreme.areas as u128 * u128::from(PAGE));
        memory = [lat_ctx.bytes(), extreme.bytes(), common].into_iter().fold(memory, u128::saturating_add);
    }
    // Each process has page tables of all base pages.
    let table =
        layouts.iter().map(|[base, _]| base.bytes() / u128::from(PAGE) * 8).fold(MEMBER_BYTES, u128::saturating_add);
    let wanted = memory.saturating_add(table.saturating_mul(members(options) as u128));
    let mib = |bytes: u128| bytes.div_ceil(1 << 20);
    (wanted > u128::from(limits.available_bytes)).then(|| {
        format!(
            "the participants and what they read take {} MiB, and {} MiB are free; ask for fewer, or for less each",
            mib(wanted),
            limits.available_bytes >> 20
        )
    })
}

#[cfg(test)]
mod tests;
