//! Which memory without a file is which in two runs: `.bss` by its file, the rest by size, neighbours and order of
//! making.

use lookaside_trace::{MapSource, Region};

use super::layout::path;
use super::layout::{Area, RegionLayout, Role, Runner};
use super::reason::{grew, Reason};

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Valgrind gives a program at most 8 MiB of brk heap (`VG_(main)`: the data segment's size is the soft limit, within 1
/// to 8 MiB). glibc asks for 132 KiB at a time or more; a heap that ends within two such steps of the cap has met it.
const BRK_CAP_BYTES: u64 = (8 << 20) - 2 * (132 << 10);
/// What glibc's malloc maps at least when brk has failed (`MMAP_AS_MORECORE_SIZE`, malloc.c); then as much as it would
/// have asked brk for, which Valgrind puts right behind.
const MORECORE_BYTES: u64 = 1 << 20;

/// A run of bytes of the profiled run, and where it lies in the native one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatchedSpan {
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) to: u64,
    pub(super) reasons: Vec<Reason>,
}

/// What is mapped later lies lower: the kernel's way, and that of QEMU for a 32-bit program, whose addresses it keeps
/// together (`mmap_find_vma_reserved`, linux-user/mmap.c). Valgrind and QEMU for others go upwards.
fn downwards(layout: &RegionLayout) -> bool {
    let below_4_gib = || layout.areas.last().is_some_and(|area| area.region.end <= 1 << 32);
    match layout.runner {
        Runner::Native => true,
        Runner::Valgrind => false,
        Runner::Qemu => below_4_gib(),
    }
}

/// Areas in the order of their making: as recorded, else by address.
pub(super) fn by_age(layout: &RegionLayout) -> impl Iterator<Item = &Area> {
    let mut areas: Vec<&Area> = layout.areas.iter().collect();
    if areas.iter().all(|area| area.region.made > 0) {
        areas.sort_by_key(|area| area.region.made);
    } else if downwards(layout) {
        areas.reverse();
    }
    areas.into_iter()
}

/// `layout` with `.bss` and heap of a file told apart where they are listed as one, with the size that `other` has for
/// it.
pub(super) fn split_heap(layout: &RegionLayout, other: &RegionLayout) -> RegionLayout {
    let mut split = layout.clone();
    let has_heap = layout.areas.iter().any(|area| area.role == Role::Heap);
    let other_has_heap = other.areas.iter().any(|area| area.role == Role::Heap);
    let bss_of = |wanted: &str| {
        let of_file = |area: &&Area| matches!(&area.role, Role::Bss { path } if path == wanted);
        other.areas.iter().find(of_file).map(|area| area.region.bytes())
    };
    let program = layout.program();
    let found = layout.areas.iter().enumerate().find_map(|(i, area)| {
        let before = i.checked_sub(1).and_then(|i| layout.areas.get(i));
        let file = match &area.role {
            // The kernel calls both the heap.
            Role::Heap => before.filter(|before| {
                before.role == Role::File && before.region.prot & 2 != 0 && before.region.end == area.region.start
            }),
            // An emulator has no name for either.
            Role::Bss { path } if !has_heap && other_has_heap && program == Some(path) => before,
            _ => None,
        };
        let path = path(&file?.region)?;
        bss_of(path).filter(|bytes| *bytes < area.region.bytes()).map(|bytes| (i, bytes, path.to_owned()))
    });
    if let Some((i, bytes, path)) = found {
        let whole = split.areas[i].region.clone();
        let border = whole.start + bytes;
        let heap = Region { source: MapSource::Heap, ..whole.tail(border) };
        let bss = Region { end: border, source: MapSource::Anonymous, ..whole };
        let parts = [Area { region: bss, role: Role::Bss { path } }, Area { region: heap, role: Role::Heap }];
        split.areas.splice(i..=i, parts);
    }
    split
}

/// The partners of all memory without a file, but for heap and stack.
pub(super) fn pair(profiled: &RegionLayout, native: &RegionLayout) -> Vec<MatchedSpan> {
    let mut pairing = Pairing {
        left: by_age(profiled).filter(|area| is_memory(area)).collect(),
        right: by_age(native).filter(|area| is_memory(area)).collect(),
        spans: Vec::new(),
    };
    pairing.bss();
    pairing.equals(
        |area| area.region.gone,
        |count| if count > 1 { Reason::OrderAmongEquals { count } } else { Reason::SizeAlone },
    );
    pairing.neighbours(profiled, native);
    pairing.merged(downwards(native));
    pairing.split(downwards(profiled));
    pairing.arenas(profiled, native);
    pairing.after_brk_cap(profiled, native);
    pairing.spans
}

/// Nobody can use what has no permission: it only tells what its neighbours are.
fn is_memory(area: &Area) -> bool {
    matches!(area.role, Role::Bss { .. } | Role::Anonymous) && area.region.prot != 0
}

struct Pairing<'a> {
    /// Not paired yet, of the profiled run, by age.
    left: Vec<&'a Area>,
    /// Of the native run.
    right: Vec<&'a Area>,
    spans: Vec<MatchedSpan>,
}

impl<'a> Pairing<'a> {
    /// Pairs two areas from their starts.
    fn take(&mut self, from: &'a Area, to: &'a Area, reasons: Vec<Reason>) {
        self.left.retain(|area| !std::ptr::eq(*area, from));
        self.right.retain(|area| !std::ptr::eq(*area, to));
        let bytes = from.region.bytes().min(to.region.bytes());
        self.spans.push(MatchedSpan { from: from.region.start, bytes, to: to.region.start, reasons });
    }

    /// The `.bss` of each file that has one in both runs. A longer one has other memory behind it.
    fn bss(&mut self) {
        let of = |areas: &[&'a Area], wanted: &Area| -> Vec<&'a Area> {
            let rights = |area: &Area| (area.region.prot, area.region.gone);
            let like = |area: &&Area| area.role == wanted.role && rights(area) == rights(wanted);
            areas.iter().copied().filter(like).collect()
        };
        for from in self.left.clone() {
            if !matches!(from.role, Role::Bss { .. }) {
                continue;
            }
            if let ([_], [to]) = (&of(&self.left, from)[..], &of(&self.right, from)[..]) {
                let reasons = std::iter::once(Reason::BssOffset).chain(grew(&from.region, &to.region));
                self.take(from, to, reasons.collect());
            }
        }
    }

    /// Areas of the same size, permission and `class`, where both runs have as many of them.
    fn equals<C: PartialEq>(&mut self, class: impl Fn(&Area) -> C, reason: impl Fn(usize) -> Reason) {
        let like = |a: &Area, b: &Area| {
            a.region.prot == b.region.prot && a.region.bytes() == b.region.bytes() && class(a) == class(b)
        };
        let mut at = 0;
        while let Some(&first) = self.left.get(at) {
            let from: Vec<_> = self.left.iter().copied().filter(|area| like(area, first)).collect();
            let to: Vec<_> = self.right.iter().copied().filter(|area| like(area, first)).collect();
            if from.len() != to.len() {
                at += 1;
                continue;
            }
            for (one, other) in from.iter().zip(&to) {
                self.take(one, other, vec![reason(from.len())]);
            }
        }
    }

    /// What lies at a file or the kernel's own in both runs, of its size the only one that does.
    fn neighbours(&mut self, profiled: &RegionLayout, native: &RegionLayout) {
        for from in self.left.clone() {
            let class = (neighbour(profiled, from, true), neighbour(profiled, from, false));
            if class == (None, None) {
                continue;
            }
            let like = |layout: &RegionLayout, area: &Area| {
                (area.region.prot, area.region.gone) == (from.region.prot, from.region.gone)
                    && area.region.bytes() == from.region.bytes()
                    && (neighbour(layout, area, true), neighbour(layout, area, false)) == class
            };
            let here = self.left.iter().filter(|area| like(profiled, area)).count();
            let there: Vec<_> = self.right.iter().copied().filter(|area| like(native, area)).collect();
            if let (1, [to]) = (here, &there[..]) {
                self.take(from, to, vec![Reason::Neighbours]);
            }
        }
    }

    /// Areas of a native listing that are several of the profiled run's, made one after the other: where only one run
    /// of them has the size.
    fn merged(&mut self, downwards: bool) {
        for to in self.right.clone() {
            // What was seen being made is one.
            if to.region.made > 0 {
                continue;
            }
            let Some(run) = only_run(&self.left, to) else { continue };
            let mut at = to.region.start;
            for from in in_address_order(run, downwards) {
                let (bytes, reasons) = (from.region.bytes(), vec![Reason::Merged]);
                self.spans.push(MatchedSpan { from: from.region.start, bytes, to: at, reasons });
                self.left.retain(|area| !std::ptr::eq(*area, from));
                at += bytes;
            }
            self.right.retain(|area| !std::ptr::eq(*area, to));
        }
    }

    /// As [`Pairing::merged`], with the profiled run's listing.
    fn split(&mut self, downwards: bool) {
        for from in self.left.clone() {
            if from.region.made > 0 {
                continue;
            }
            let Some(run) = only_run(&self.right, from) else { continue };
            let mut at = from.region.start;
            for to in in_address_order(run, downwards) {
                let (bytes, reasons) = (to.region.bytes(), vec![Reason::Merged]);
                self.spans.push(MatchedSpan { from: at, bytes, to: to.region.start, reasons });
                self.right.retain(|area| !std::ptr::eq(*area, to));
                at += bytes;
            }
            self.left.retain(|area| !std::ptr::eq(*area, from));
        }
    }

    /// What grows into room kept behind it, as malloc's arenas do.
    fn arenas(&mut self, profiled: &RegionLayout, native: &RegionLayout) {
        let grows = |layout: &RegionLayout, area: &Area| {
            layout.areas.iter().any(|next| next.region.start == area.region.end && next.region.prot == 0)
        };
        let from: Vec<_> = self.left.iter().copied().filter(|area| grows(profiled, area)).collect();
        let to: Vec<_> = self.right.iter().copied().filter(|area| grows(native, area)).collect();
        if from.len() == to.len() && from.iter().zip(&to).all(|(a, b)| a.region.prot == b.region.prot) {
            let count = from.len();
            for (one, other) in from.into_iter().zip(to) {
                let reasons = [Reason::OrderAmongEquals { count }].into_iter().chain(grew(&one.region, &other.region));
                self.take(one, other, reasons.collect());
            }
        }
    }

    /// What Valgrind's program maps for want of heap lies on the heap in the native run, behind as much of it.
    fn after_brk_cap(&mut self, profiled: &RegionLayout, native: &RegionLayout) {
        let find = |layout: &RegionLayout| {
            layout.areas.iter().find(|area| area.role == Role::Heap).map(|area| area.region.clone())
        };
        let (Some(capped), Some(heap)) = (find(profiled), find(native)) else { return };
        if profiled.runner != Runner::Valgrind || capped.bytes() < BRK_CAP_BYTES || heap.bytes() <= capped.bytes() {
            return;
        }
        let mut at = heap.start + capped.bytes();
        let mut behind = None;
        for from in self.left.clone() {
            let bytes = from.region.bytes().min(heap.end.saturating_sub(at));
            let continues = from.region.bytes() >= MORECORE_BYTES || behind == Some(from.region.start);
            if from.region.prot == heap.prot && continues && bytes > 0 {
                behind = Some(from.region.end);
                let reasons = vec![Reason::HeapAfterBrkCap];
                self.spans.push(MatchedSpan { from: from.region.start, bytes, to: at, reasons });
                self.left.retain(|area| !std::ptr::eq(*area, from));
                at += bytes;
            }
        }
    }
}

/// The file or the kernel's own that touches an area, before or behind it.
fn neighbour<'a>(layout: &'a RegionLayout, area: &Area, before: bool) -> Option<(&'a str, u8)> {
    let touches = |other: &&Area| match before {
        true => other.region.end == area.region.start,
        false => other.region.start == area.region.end,
    };
    let file = layout.areas.iter().find(touches)?;
    path(&file.region).map(|path| (path, file.region.prot))
}

/// Several of `areas`, neighbours in age, that have the size and permission of `whole`; `None` if there are several
/// such runs.
fn only_run<'a>(areas: &[&'a Area], whole: &Area) -> Option<Vec<&'a Area>> {
    let same: Vec<&Area> = areas.iter().copied().filter(|area| area.region.prot == whole.region.prot).collect();
    let mut found = None;
    for first in 0..same.len() {
        let mut bytes = 0;
        // As many as reach the size.
        let count = same[first..].iter().take_while(|area| {
            let reached = bytes >= whole.region.bytes();
            bytes += if reached { 0 } else { area.region.bytes() };
            !reached
        });
        let run = first..first + count.count();
        if bytes == whole.region.bytes() && run.len() > 1 && found.replace(run).is_some() {
            return None;
        }
    }
    found.map(|run| same[run].to_vec())
}

/// A run of areas, by age, as they lie.
fn in_address_order(mut run: Vec<&Area>, downwards: bool) -> Vec<&Area> {
    if downwards {
        run.reverse();
    }
    run
}

#[cfg(test)]
mod tests;
