//! Accesses and events to a chunk's payload.

use std::collections::BTreeSet;

use super::column::Sign;
use super::columns::{mode, ChunkColumns, Segment, HAS_IP, HAS_REPEAT, HAS_SIZE, TABLE_REPEAT};
use super::events::{EventEncoder, CLOSE_AT};
use super::limits::{CHUNK_ACCESSES, CHUNK_SEGMENTS};
use super::stream::Packer;
use super::table::{PresentColumns, Split, TableEncoder, ENTRIES};
use super::varint::put;
use crate::{Block, Event, WindowEvent};

/// All ways of writing accesses are tried every so many chunks, and the best kept in between.
const TRY_EVERY: u32 = 16;

/// Entries beyond those of sites alone have to be used so often each.
const MIN_USES: usize = 4;

/// A way of writing accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessEncoding {
    pub(crate) mode: u8,
    pub(crate) split: Split,
    pub(crate) table_repeats: bool,
}

/// Those that are tried, after those of [`Split::Site`] with and without repeats in the table.
const OTHERS: [(u8, Split); 7] = [
    (mode::ENTRY, Split::Page),
    (mode::ENTRY, Split::Address),
    (mode::MOVING_ENTRY, Split::Site),
    (mode::MOVING_ENTRY, Split::Page),
    (mode::MOVING_BASE, Split::Site),
    (mode::BASE, Split::Site),
    (mode::DELTA, Split::Site),
];

/// Collects a chunk, then packs it.
pub(crate) struct ChunkEncoder {
    packer: Packer,
    segments: Vec<Segment>,
    is_windowed: bool,
    /// Threads by process and number, of all chunks.
    threads: BTreeSet<(u32, u32)>,
    /// Some are new in this chunk.
    has_new_thread: bool,
    columns: ChunkColumns,
    sites: SiteBound,
    events: EventEncoder,
    flags: u8,
    // Working memory of `finish`.
    table: TableEncoder,
    values: Vec<u64>,
    trial: Vec<u8>,
    best: Vec<u8>,
    chunks: u32,
    way: AccessEncoding,
}

impl ChunkEncoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(ChunkEncoder {
            packer: Packer::new()?,
            segments: Vec::new(),
            is_windowed: true,
            threads: BTreeSet::new(),
            has_new_thread: false,
            columns: ChunkColumns::default(),
            sites: SiteBound::new(),
            events: EventEncoder::default(),
            flags: 0,
            table: TableEncoder::default(),
            values: Vec::new(),
            trial: Vec::new(),
            best: Vec::new(),
            chunks: 0,
            way: AccessEncoding { mode: mode::ENTRY, split: Split::Site, table_repeats: true },
        })
    }

    /// The way the last chunk was written.
    #[cfg(test)]
    pub(crate) fn way(&self) -> AccessEncoding {
        self.way
    }

    /// Writes the next chunk this way if that can be.
    #[cfg(test)]
    pub(crate) fn stay(&mut self, way: AccessEncoding) {
        self.way = way;
        self.chunks = 1;
    }

    /// Accesses collected.
    pub(crate) fn accesses(&self) -> usize {
        self.columns.addr.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// There are no events but of windows, and no threads but those of chunks before.
    pub(crate) fn is_quiet(&self) -> bool {
        self.events.is_quiet() && !self.has_new_thread
    }

    /// No more accesses or events should go in.
    pub(crate) fn is_full(&self) -> bool {
        self.accesses() >= CHUNK_ACCESSES
            || self.sites.is_full()
            || self.segments.len() >= CHUNK_SEGMENTS
            || self.events.len() >= CLOSE_AT
    }

    /// Makes the block's thread the current one. Accesses that brought pages into windows and those that are every visit
    /// are told apart by lying in different blocks, so they are kept in different runs.
    pub(crate) fn enter(&mut self, process: u32, thread: u32, is_windowed: bool) {
        let is_like_before = std::mem::replace(&mut self.is_windowed, is_windowed) == is_windowed;
        match self.segments.last() {
            Some(s) if (s.process, s.thread) == (process, thread) && is_like_before => {}
            _ => {
                self.has_new_thread |= self.threads.insert((process, thread));
                self.segments.push(Segment { process, thread, accesses: 0, events: 0 });
            }
        }
    }

    /// Appends an event of the current thread.
    pub(crate) fn event(&mut self, event: &Event) {
        self.events.push(self.accesses() as u32, event);
        self.count_event();
    }

    /// Appends what becomes of a page in the current thread's window.
    pub(crate) fn window_event(&mut self, event: &WindowEvent) {
        self.events.push_of_window(self.accesses() as u32, event);
        self.count_event();
    }

    fn count_event(&mut self) {
        if let Some(s) = self.segments.last_mut() {
            s.events += 1;
        }
    }

    /// Appends the accesses `start..end` of `block`, which is of the current thread, or as many of them as there is
    /// room for; returns the end of those. In an empty chunk there is room for one at least.
    pub(crate) fn accesses_of(&mut self, block: &Block, start: usize, end: usize) -> usize {
        let end = self.sites.room(block, start, end.min(start + CHUNK_ACCESSES - self.accesses()));
        let c = &mut self.columns;
        c.addr.extend_from_slice(&block.addr[start..end]);
        c.kind.extend_from_slice(&block.kind[start..end]);
        let n = c.addr.len();
        if !block.size.is_empty() {
            self.flags |= HAS_SIZE;
            c.size.extend_from_slice(&block.size[start..end]);
        }
        c.size.resize(n, 0);
        if !block.ip.is_empty() {
            self.flags |= HAS_IP;
            c.ip.extend_from_slice(&block.ip[start..end]);
        }
        c.ip.resize(n, 0);
        if !block.repeat.is_empty() {
            self.flags |= HAS_REPEAT;
            c.repeat.extend_from_slice(&block.repeat[start..end]);
        }
        c.repeat.resize(n, 0);
        if let Some(s) = self.segments.last_mut() {
            s.accesses += (end - start) as u32;
        }
        end
    }

    /// Writes the payload to `out` and begins an empty chunk.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        put(out, self.accesses() as u64);
        put(out, self.segments.len() as u64);
        self.trial.clear();
        for s in &self.segments {
            for v in [s.process, s.thread, s.accesses, s.events] {
                put(&mut self.trial, u64::from(v));
            }
        }
        self.packer.bytes(&self.trial, out);
        self.events.finish(&mut self.packer, out);
        if self.accesses() > 0 {
            self.write_accesses(out);
        }
        self.segments.clear();
        self.has_new_thread = false;
        self.sites.clear();
        let c = &mut self.columns;
        c.addr.clear();
        c.kind.clear();
        c.size.clear();
        c.ip.clear();
        c.repeat.clear();
        self.flags = 0;
        self.chunks = self.chunks.wrapping_add(1);
    }

    /// The accesses, in the way that takes the fewest bytes.
    fn write_accesses(&mut self, out: &mut Vec<u8>) {
        let mut best = std::mem::take(&mut self.best);
        best.clear();
        if self.chunks.is_multiple_of(TRY_EVERY) || !self.write_as(self.way, &mut best) {
            let site = |table_repeats| AccessEncoding { mode: mode::ENTRY, split: Split::Site, table_repeats };
            self.keep_shorter(site(true), &mut best);
            if self.flags & HAS_REPEAT != 0 {
                self.keep_shorter(site(false), &mut best);
            }
            let table_repeats = self.way.table_repeats;
            for (mode, split) in OTHERS {
                self.keep_shorter(AccessEncoding { mode, split, table_repeats }, &mut best);
            }
        }
        out.extend_from_slice(&best);
        self.best = best;
    }

    /// Tries a way of writing, and takes it up if it is shorter than `best`.
    fn keep_shorter(&mut self, way: AccessEncoding, best: &mut Vec<u8>) {
        let mut trial = std::mem::take(&mut self.trial);
        trial.clear();
        if self.write_as(way, &mut trial) && (best.is_empty() || trial.len() < best.len()) {
            self.way = way;
            std::mem::swap(best, &mut trial);
        }
        self.trial = trial;
    }

    /// `false`, with nothing written: there would be too many entries.
    fn write_as(&mut self, way: AccessEncoding, out: &mut Vec<u8>) -> bool {
        let AccessEncoding { mode, split, table_repeats } = way;
        let table_repeats = table_repeats && self.flags & HAS_REPEAT != 0;
        let c = &self.columns;
        // One by site is always possible; others stop to pay long before this.
        let most = if split == Split::Site && !table_repeats { ENTRIES } else { ENTRIES.min(c.addr.len() / MIN_USES) };
        if !self.table.number(c, split, table_repeats, most) {
            return false;
        }
        let shift = shift_of(c.addr.iter().copied());
        out.push(self.flags | if table_repeats { TABLE_REPEAT } else { 0 });
        out.extend_from_slice(&[mode, shift as u8]);
        let has = PresentColumns {
            sizes: self.flags & HAS_SIZE != 0,
            ips: self.flags & HAS_IP != 0,
            firsts: mode::has_firsts(mode),
            repeats: table_repeats,
            moving: mode::has_moving(mode),
        };
        if has.moving {
            self.table.find_moving(&c.addr);
        }
        self.table.write(has, shift, &mut self.packer, out);
        self.packer.indices(&self.table.index, out);
        let TableEncoder { last, index, moving, .. } = &mut self.table;
        let addresses = c.addr.iter().copied().zip(index.iter().map(|&i| usize::from(i)));
        let values = &mut self.values;
        values.clear();
        // What is not filtered is the faster loop.
        let base = if has.moving {
            let of_moving = addresses.filter(|&(_, entry)| moving[entry] != 0);
            put_distances(mode, of_moving, last, values)
        } else {
            put_distances(mode, addresses, last, values)
        };
        // Of addresses that stay, the low bits say nothing of distances between others.
        let mut value_shift = shift;
        if has.moving {
            value_shift = shift_of(values.iter().copied());
            out.push(value_shift as u8);
        }
        let sign = if mode::has_base(mode) { Sign::Unsigned } else { Sign::Signed };
        match mode {
            mode::BASE => put(out, base >> shift),
            mode::MOVING_BASE => put(out, base),
            _ => {}
        }
        values.iter_mut().for_each(|v| *v = sign.shifted(*v, value_shift));
        self.packer.values(&self.values, sign, out);
        if self.flags & HAS_REPEAT != 0 && !table_repeats {
            self.values.clear();
            self.values.extend(c.repeat.iter().map(|&r| u64::from(r)));
            self.packer.values(&self.values, Sign::Unsigned, out);
        }
        true
    }
}

/// The values of accesses with these addresses and entries, in bytes, and the base that they are told from. `last`: by
/// entry, its first address, then its last.
fn put_distances(
    mode: u8,
    addresses: impl Iterator<Item = (u64, usize)> + Clone,
    last: &mut [u64],
    values: &mut Vec<u64>,
) -> u64 {
    let distance = |a: u64, from: &mut u64| a.wrapping_sub(std::mem::replace(from, a));
    let base = if mode::has_base(mode) { addresses.clone().map(|(a, _)| a).min().unwrap_or(0) } else { 0 };
    match mode {
        mode::BASE | mode::MOVING_BASE => values.extend(addresses.map(|(a, _)| a - base)),
        mode::DELTA => {
            let mut last = 0;
            values.extend(addresses.map(|(a, _)| distance(a, &mut last)));
        }
        _ => values.extend(addresses.map(|(a, entry)| distance(a, &mut last[entry]))),
    }
    base
}

/// Low bits that are zero in all of them.
fn shift_of(numbers: impl Iterator<Item = u64>) -> u32 {
    numbers.fold(0, |all, number| all | number).trailing_zeros().min(63)
}

/// An upper bound of the distinct sites in a chunk, so that a table always has room for them.
struct SiteBound {
    /// What was seen last of those that fall here; each change counts.
    seen: Vec<u64>,
    count: usize,
}

impl SiteBound {
    /// 256 KiB; the sites of a chunk of most programs fit.
    const SLOTS: usize = 1 << 15;
    /// Where no instructions are recorded there is no more than each kind with each size.
    const MOST: usize = ENTRIES - 3 * 256;
    /// No site: its size would be 255 and its kind 3.
    const NONE: u64 = u64::MAX;

    fn new() -> Self {
        SiteBound { seen: vec![Self::NONE; Self::SLOTS], count: 0 }
    }

    fn is_full(&self) -> bool {
        self.count >= Self::MOST
    }

    fn clear(&mut self) {
        self.seen.fill(Self::NONE);
        self.count = 0;
    }

    /// The end of the accesses from `start` on, up to `end`, for whose sites there is room.
    fn room(&mut self, block: &Block, start: usize, end: usize) -> usize {
        if block.ip.is_empty() {
            return end;
        }
        for i in start..end {
            if self.is_full() {
                return i;
            }
            let size = block.size.get(i).copied().unwrap_or(0);
            let site = block.ip[i] | (block.kind[i] as u64) << 62 | u64::from(size) << 54;
            // Fibonacci hashing, as for tables.
            let slot = &mut self.seen
                [(site.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::SLOTS.trailing_zeros())) as usize];
            // Instruction addresses this long don't fit the word: each use counts.
            if *slot != site || block.ip[i] >> 54 != 0 {
                *slot = site;
                self.count += 1;
            }
        }
        end
    }
}
