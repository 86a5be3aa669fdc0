//! Accesses and events to a chunk's payload.

use super::events::{EventEncoder, CLOSE_AT};
use super::stream::Packer;
use super::varint::{put, zigzag};
use super::{CHUNK_ACCESSES, CHUNK_SEGMENTS};
use crate::{Block, Event, Kind};

/// The chunk has sizes.
pub(crate) const HAS_SIZE: u8 = 1;
/// The chunk has instruction addresses.
pub(crate) const HAS_IP: u8 = 2;
/// The chunk has repeats.
pub(crate) const HAS_REPEAT: u8 = 4;

/// Ways to write addresses. Part of the format: never renumber.
pub(crate) mod mode {
    /// Distance from the chunk's lowest address.
    pub(crate) const BASE: u8 = 0;
    /// Distance from the access before.
    pub(crate) const DELTA: u8 = 1;
    /// Number in a table of pages, and the offset in the page.
    pub(crate) const PAGE: u8 = 2;
    /// Number in a table of pages, and the distance from the offset last used in that page.
    pub(crate) const PAGE_DELTA: u8 = 3;
    /// Distance from the access before of the same site.
    pub(crate) const SITE: u8 = 4;
    /// How many there are.
    pub(crate) const COUNT: u8 = 5;
}

/// All ways of writing addresses are tried every so many chunks, and the best kept in between.
const TRY_EVERY: u32 = 8;

/// A run of accesses of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) accesses: u32,
    pub(crate) events: u32,
}

/// Collects a chunk, then packs it.
pub(crate) struct ChunkEncoder {
    packer: Packer,
    segments: Vec<Segment>,
    addr: Vec<u64>,
    kind: Vec<Kind>,
    size: Vec<u8>,
    ip: Vec<u64>,
    repeat: Vec<u32>,
    events: EventEncoder,
    flags: u8,
    // Working memory of `finish`.
    table: Table,
    index: Vec<u16>,
    site: Vec<u16>,
    values: Vec<u64>,
    trial: Vec<u8>,
    best: Vec<u8>,
    chunks: u32,
    mode: u8,
}

impl ChunkEncoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(ChunkEncoder {
            packer: Packer::new()?,
            segments: Vec::new(),
            addr: Vec::new(),
            kind: Vec::new(),
            size: Vec::new(),
            ip: Vec::new(),
            repeat: Vec::new(),
            events: EventEncoder::default(),
            flags: 0,
            table: Table::default(),
            index: Vec::new(),
            site: Vec::new(),
            values: Vec::new(),
            trial: Vec::new(),
            best: Vec::new(),
            chunks: 0,
            mode: mode::BASE,
        })
    }

    /// Accesses collected.
    pub(crate) fn accesses(&self) -> usize {
        self.addr.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// No more accesses or events should go in.
    pub(crate) fn is_full(&self) -> bool {
        self.addr.len() >= CHUNK_ACCESSES || self.segments.len() >= CHUNK_SEGMENTS || self.events.len() >= CLOSE_AT
    }

    /// Makes the block's thread the current one.
    pub(crate) fn enter(&mut self, process: u32, thread: u32) {
        match self.segments.last() {
            Some(s) if (s.process, s.thread) == (process, thread) => {}
            _ => self.segments.push(Segment { process, thread, accesses: 0, events: 0 }),
        }
    }

    /// Appends an event of the current thread.
    pub(crate) fn event(&mut self, event: &Event) {
        self.events.push(self.addr.len() as u32, event);
        if let Some(s) = self.segments.last_mut() {
            s.events += 1;
        }
    }

    /// Appends the accesses `start..end` of `block`, which is of the current thread.
    pub(crate) fn accesses_of(&mut self, block: &Block, start: usize, end: usize) {
        self.addr.extend_from_slice(&block.addr[start..end]);
        self.kind.extend_from_slice(&block.kind[start..end]);
        let n = self.addr.len();
        // A column that is not recorded is all zero.
        if !block.size.is_empty() {
            self.flags |= HAS_SIZE;
            self.size.extend_from_slice(&block.size[start..end]);
        }
        self.size.resize(n, 0);
        if !block.ip.is_empty() {
            self.flags |= HAS_IP;
            self.ip.extend_from_slice(&block.ip[start..end]);
        }
        self.ip.resize(n, 0);
        if !block.repeat.is_empty() {
            self.flags |= HAS_REPEAT;
            self.repeat.extend_from_slice(&block.repeat[start..end]);
        }
        self.repeat.resize(n, 0);
        if let Some(s) = self.segments.last_mut() {
            s.accesses += (end - start) as u32;
        }
    }

    /// Writes the payload to `out` and begins an empty chunk.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        out.push(self.flags);
        put(out, self.addr.len() as u64);
        put(out, self.segments.len() as u64);
        self.trial.clear();
        for s in &self.segments {
            for v in [s.process, s.thread, s.accesses, s.events] {
                put(&mut self.trial, u64::from(v));
            }
        }
        self.packer.bytes(&self.trial, out);
        self.events.finish(&mut self.packer, out);
        if !self.addr.is_empty() {
            self.write_sites(out);
            self.write_addrs(out);
            if self.flags & HAS_REPEAT != 0 {
                self.values.clear();
                self.values.extend(self.repeat.iter().map(|&r| u64::from(r)));
                self.packer.values(&self.values, out);
            }
        }
        self.segments.clear();
        self.addr.clear();
        self.kind.clear();
        self.size.clear();
        self.ip.clear();
        self.repeat.clear();
        self.flags = 0;
        self.chunks = self.chunks.wrapping_add(1);
    }

    /// The table of sites (distinct instruction, kind, size) and each access's number in it.
    fn write_sites(&mut self, out: &mut Vec<u8>) {
        let keys = self.ip.iter().zip(&self.kind).zip(&self.size);
        self.table.number(keys.map(|((&ip, &kind), &size)| (ip, (kind as u16) << 8 | u16::from(size))), &mut self.site);
        let sites = &self.table.keys;
        put(out, sites.len() as u64);
        let kinds: Vec<u8> = sites.iter().map(|k| (k.1 >> 8) as u8).collect();
        self.packer.plane(&kinds, out);
        if self.flags & HAS_SIZE != 0 {
            let sizes: Vec<u8> = sites.iter().map(|k| k.1 as u8).collect();
            self.packer.plane(&sizes, out);
        }
        if self.flags & HAS_IP != 0 {
            deltas(sites.iter().map(|k| k.0), 0, &mut self.values);
            self.packer.values(&self.values, out);
        }
        self.packer.indices(&self.site, out);
    }

    /// The addresses, in the way that takes the fewest bytes.
    fn write_addrs(&mut self, out: &mut Vec<u8>) {
        let all = self.addr.iter().fold(0, |m, &a| m | a);
        let shift = all.trailing_zeros().min(63);
        out.push(shift as u8);
        let modes = if self.chunks % TRY_EVERY == 0 { 0..mode::COUNT } else { self.mode..self.mode + 1 };
        let mut best = std::mem::take(&mut self.best);
        let mut trial = std::mem::take(&mut self.trial);
        best.clear();
        for mode in modes {
            trial.clear();
            self.write_addrs_as(mode, shift, &mut trial);
            if best.is_empty() || trial.len() < best.len() {
                self.mode = mode;
                std::mem::swap(&mut best, &mut trial);
            }
        }
        out.push(self.mode);
        out.extend_from_slice(&best);
        self.best = best;
        self.trial = trial;
    }

    fn write_addrs_as(&mut self, mode: u8, shift: u32, out: &mut Vec<u8>) {
        match mode {
            mode::BASE => {
                let base = self.addr.iter().fold(u64::MAX, |m, &a| m.min(a));
                put(out, base >> shift);
                self.values.clear();
                self.values.extend(self.addr.iter().map(|&a| (a - base) >> shift));
            }
            mode::DELTA => deltas(self.addr.iter().copied(), shift, &mut self.values),
            mode::PAGE | mode::PAGE_DELTA => {
                self.table.number(self.addr.iter().map(|&a| (a >> 12, 0)), &mut self.index);
                put(out, self.table.keys.len() as u64);
                deltas(self.table.keys.iter().map(|k| k.0), 0, &mut self.values);
                self.packer.values(&self.values, out);
                self.packer.indices(&self.index, out);
                let mut last = vec![0u64; if mode == mode::PAGE_DELTA { self.table.keys.len() } else { 0 }];
                self.values.clear();
                self.values.extend(self.addr.iter().zip(&self.index).map(|(&a, &i)| {
                    let offset = a & 0xfff;
                    let before = last.get_mut(usize::from(i)).map_or(0, |l| std::mem::replace(l, offset));
                    (offset.wrapping_sub(before) & 0xfff) >> shift.min(12)
                }));
            }
            _ => {
                // The first address of each site, so that its first distance is zero.
                let sites = self.site.iter().map(|&s| usize::from(s) + 1).max().unwrap_or(0);
                let mut last = vec![None; sites];
                let mut first = vec![0; sites];
                let mut values = std::mem::take(&mut self.values);
                values.clear();
                for (&a, &s) in self.addr.iter().zip(&self.site) {
                    let s = usize::from(s);
                    let before = last[s].replace(a).unwrap_or_else(|| {
                        first[s] = a;
                        a
                    });
                    values.push(zigzag((a.wrapping_sub(before) as i64) >> shift));
                }
                let mut firsts = Vec::new();
                deltas(first.into_iter(), shift, &mut firsts);
                self.packer.values(&firsts, out);
                self.values = values;
            }
        }
        self.packer.values(&self.values, out);
    }
}

/// Zigzag distances from one to the next, the first from zero. All are multiples of `1 << shift`.
fn deltas(of: impl Iterator<Item = u64>, shift: u32, out: &mut Vec<u64>) {
    let mut last = 0u64;
    out.clear();
    out.extend(of.map(|v| zigzag((v.wrapping_sub(std::mem::replace(&mut last, v)) as i64) >> shift)));
}

/// Numbers distinct keys by how often they come: often-used ones get low numbers, so that high
/// bytes are mostly zero; keys of like frequency (same power of two) are in ascending order, so that their
/// distances are small.
#[derive(Default)]
struct Table {
    /// Open addressing, first-come number + 1; 0 = empty.
    slots: Vec<u32>,
    first_come: Vec<((u64, u16), u32)>,
    /// By number.
    keys: Vec<(u64, u16)>,
}

impl Table {
    fn number(&mut self, keys: impl Iterator<Item = (u64, u16)>, out: &mut Vec<u16>) {
        // Twice the number of keys that can come: probes stay short.
        self.slots.clear();
        self.slots.resize(2 * CHUNK_ACCESSES, 0);
        self.first_come.clear();
        out.clear();
        for key in keys {
            // Fibonacci hashing: 2^64 over the golden ratio.
            let hash = (key.0 ^ u64::from(key.1).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut slot = (hash >> 47) as usize;
            let number = loop {
                match self.slots[slot] {
                    0 => {
                        self.first_come.push((key, 0));
                        self.slots[slot] = self.first_come.len() as u32;
                        break self.first_come.len() - 1;
                    }
                    n if self.first_come[n as usize - 1].0 == key => break n as usize - 1,
                    _ => slot = (slot + 1) & (2 * CHUNK_ACCESSES - 1),
                }
            };
            self.first_come[number].1 += 1;
            out.push(number as u16);
        }
        let mut order: Vec<u32> = (0..self.first_come.len() as u32).collect();
        order.sort_unstable_by_key(|&i| {
            let (key, times) = self.first_come[i as usize];
            (times.leading_zeros(), key)
        });
        let mut renumber = vec![0u16; order.len()];
        self.keys.clear();
        for (new, &old) in order.iter().enumerate() {
            renumber[old as usize] = new as u16;
            self.keys.push(self.first_come[old as usize].0);
        }
        for n in out {
            *n = renumber[usize::from(*n)];
        }
    }
}
