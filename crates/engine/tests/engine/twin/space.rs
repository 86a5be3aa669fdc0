//! One address space as the OS model sees it (SEMANTICS.md §2, §10).

use std::collections::BTreeMap;
use std::ops::Range;

use lookaside_engine::{PagePolicy, ProcessRange};
use lookaside_machine::PageSize;
use lookaside_trace::{FrameList, MapSource, SiteId};

/// A part of a mapping.
#[derive(Clone)]
pub struct TwinMapping {
    pub range: Range<u64>,
    pub source: MapSource,
    pub site: FrameList,
    /// Number of its region row.
    pub region: usize,
}

/// What a touched page knows.
#[derive(Clone, Copy)]
pub enum PageMark {
    /// Accessed since; the region of its row.
    Row(Option<usize>),
    /// Copied by a fork, not accessed since.
    Copied,
}

/// A live allocation of at least 64 KiB.
#[derive(Clone)]
pub struct LiveAllocation {
    pub range: Range<u64>,
    pub site: FrameList,
}

#[derive(Clone, Default)]
pub struct TwinSpace {
    /// Disjoint.
    pub mappings: Vec<TwinMapping>,
    /// By first byte and size.
    pub touched: BTreeMap<(u64, PageSize), PageMark>,
    /// Is the huge range that starts here huge?
    pub decisions: BTreeMap<u64, bool>,
    pub heap: Option<Range<u64>>,
    pub sites: BTreeMap<SiteId, FrameList>,
    pub live: Vec<LiveAllocation>,
}

pub fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

fn common_bytes(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

pub fn inside(inner: &Range<u64>, outer: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

pub fn page_range(addr: u64, size: PageSize) -> Range<u64> {
    let start = addr / size.bytes() * size.bytes();
    start..start + size.bytes()
}

impl TwinSpace {
    pub fn mapping_at(&self, va: u64) -> Option<&TwinMapping> {
        self.mappings.iter().find(|m| m.range.contains(&va))
    }

    pub fn live_at(&self, va: u64) -> Option<&LiveAllocation> {
        self.live.iter().find(|live| live.range.contains(&va))
    }

    pub fn maps_any(&self, range: &Range<u64>) -> bool {
        self.mappings.iter().any(|m| overlap(&m.range, range))
    }

    pub fn touches_any(&self, range: &Range<u64>) -> bool {
        self.touched.keys().any(|&(addr, size)| overlap(&page_range(addr, size), range))
    }

    /// The leaf size of an address, without deciding anything.
    pub fn decided_leaf(&self, va: u64, base: PageSize, huge: PageSize) -> PageSize {
        match self.decisions.get(&page_range(va, huge).start) {
            Some(true) => huge,
            _ => base,
        }
    }

    /// The leaf size of an address that is accessed.
    pub fn leaf(
        &mut self,
        process: Option<u32>,
        policy: &PagePolicy,
        va: u64,
        base: PageSize,
        huge: PageSize,
    ) -> PageSize {
        let range = page_range(va, huge);
        let wanted = match policy {
            PagePolicy::Base => return base,
            PagePolicy::Thp => true,
            PagePolicy::Selective(ranges) | PagePolicy::SelectiveFiles(ranges) => {
                ranges.iter().any(|r| selected(r, process, &range, huge))
            }
        };
        if !self.decisions.contains_key(&range.start) {
            let eligible = self.mappings.iter().filter(|m| match &m.source {
                MapSource::Anonymous | MapSource::Heap => true,
                MapSource::File { path, .. } => path.starts_with("[anon:"),
                MapSource::Stack => false,
            });
            let covered: u64 = eligible.map(|m| common_bytes(&m.range, &range)).sum();
            let fits = match policy {
                PagePolicy::SelectiveFiles(_) => self.mappings.iter().any(|m| {
                    matches!(&m.source, MapSource::File { path, .. } if !path.starts_with("[anon:"))
                        && inside(&range, &m.range)
                }),
                _ => covered == huge.bytes() || !self.maps_any(&range),
            };
            let decision = wanted && fits;
            self.decisions.insert(range.start, decision);
        }
        self.decided_leaf(va, base, huge)
    }

    /// The range, and every range decided huge that it overlaps.
    pub fn widened_to_huge(&self, range: &Range<u64>, huge: PageSize) -> Vec<Range<u64>> {
        let pages = self.decisions.iter().filter(|(_, &is_huge)| is_huge).map(|(&start, _)| page_range(start, huge));
        pages.filter(|page| overlap(page, range)).chain([range.clone()]).collect()
    }

    /// Drops touched marks and decisions.
    pub fn forget(&mut self, range: &Range<u64>, huge: PageSize) {
        self.touched.retain(|&(addr, size), _| !overlap(&page_range(addr, size), range));
        self.decisions.retain(|&start, _| !inside(&page_range(start, huge), range));
        for (&start, is_huge) in &mut self.decisions {
            if overlap(&page_range(start, huge), range) {
                *is_huge = false;
            }
        }
    }

    /// Drops the base decisions that a new mapping may change.
    pub fn undecide_base(&mut self, mapped: &Range<u64>, huge: PageSize) {
        self.decisions.retain(|&start, is_huge| *is_huge || !overlap(&page_range(start, huge), mapped));
    }

    /// Cuts a range out of the mappings.
    pub fn cut(&mut self, range: &Range<u64>) {
        let mut parts = Vec::new();
        for m in self.mappings.drain(..) {
            if overlap(&m.range, range) {
                for part in [m.range.start..range.start.max(m.range.start), range.end.min(m.range.end)..m.range.end] {
                    if !part.is_empty() {
                        parts.push(TwinMapping { range: part, ..m.clone() });
                    }
                }
            } else {
                parts.push(m);
            }
        }
        self.mappings = parts;
    }
}

fn selected(range: &ProcessRange, process: Option<u32>, page: &Range<u64>, huge: PageSize) -> bool {
    let bytes = huge.bytes();
    let widened = range.start / bytes * bytes..range.end.div_ceil(bytes).saturating_mul(bytes);
    range.start < range.end && (range.process.is_none() || range.process == process) && inside(page, &widened)
}
