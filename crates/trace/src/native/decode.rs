//! A chunk's payload to blocks.

use super::encode::{mode, Segment, HAS_IP, HAS_REPEAT, HAS_SIZE};
use super::events;
use super::stream::{Unpacker, Values};
use super::varint::{unzigzag, Bad, Cursor};
use super::{BLOCK_ACCESSES, CHUNK_ACCESSES, CHUNK_SEGMENTS};
use crate::{Block, Event, Kind};

/// Entries of a table that a 16-bit index can name: tables of this length need no bounds checks.
const TABLE: usize = 1 << 16;

/// What accesses of a site have in common.
#[derive(Clone, Copy)]
struct Site {
    ip: u64,
    /// The address last used, where addresses are written by site.
    last: u64,
    kind: Kind,
    size: u8,
}

/// Unpacks a chunk, then hands out its blocks.
pub(crate) struct ChunkDecoder {
    unpacker: Unpacker,
    flags: u8,
    accesses: usize,
    segments: Vec<Segment>,
    events: Vec<(u32, Event)>,
    site: Vec<u16>,
    sites: Vec<Site>,
    shift: u32,
    mode: u8,
    base: u64,
    page: Vec<u16>,
    /// By page: its address (`PAGE`), or the address last used in it (`PAGE_DELTA`).
    pages: Vec<u64>,
    values: Values,
    repeats: Values,
    /// Next segment, and what of it was handed out.
    segment: usize,
    in_segment: usize,
    /// Accesses and events handed out.
    access: usize,
    event: usize,
    temp: Vec<u8>,
    numbers: Vec<u64>,
}

impl ChunkDecoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(ChunkDecoder {
            unpacker: Unpacker::new()?,
            flags: 0,
            accesses: 0,
            segments: Vec::new(),
            events: Vec::new(),
            site: Vec::new(),
            sites: vec![Site { ip: 0, last: 0, kind: Kind::Load, size: 0 }; TABLE],
            shift: 0,
            mode: mode::BASE,
            base: 0,
            page: Vec::new(),
            pages: vec![0; TABLE],
            values: Values::default(),
            repeats: Values::default(),
            segment: 0,
            in_segment: 0,
            access: 0,
            event: 0,
            temp: Vec::new(),
            numbers: Vec::new(),
        })
    }

    /// Takes a payload whose checksum is right. After an error no blocks come.
    pub(crate) fn load(&mut self, payload: &[u8], accesses: u32) -> Result<(), Bad> {
        self.segments.clear();
        self.segment = 0;
        self.in_segment = 0;
        self.access = 0;
        self.event = 0;
        let loaded = self.load_columns(payload, accesses as usize);
        if loaded.is_err() {
            self.segments.clear();
        }
        loaded
    }

    fn load_columns(&mut self, payload: &[u8], accesses: usize) -> Result<(), Bad> {
        let c = &mut Cursor::new(payload);
        self.flags = c.byte()?;
        self.accesses = c.bounded(CHUNK_ACCESSES as u64)?;
        if self.accesses != accesses {
            return Err("a chunk has another number of accesses than its frame says");
        }
        let segments = c.bounded(CHUNK_SEGMENTS as u64)?;
        // Four numbers of at most five bytes.
        self.unpacker.bytes(c, segments * 20, &mut self.temp)?;
        let mut s = Cursor::new(&self.temp);
        let (mut sum, mut sum_events) = (0u64, 0u64);
        for _ in 0..segments {
            let (process, thread, accesses, events) = (s.u32()?, s.u32()?, s.u32()?, s.u32()?);
            sum += u64::from(accesses);
            sum_events += u64::from(events);
            self.segments.push(Segment { process, thread, accesses, events });
        }
        if !s.is_empty() || sum != self.accesses as u64 {
            return Err("a chunk's runs do not add up to its accesses");
        }
        events::decode(&mut self.unpacker, c, self.accesses, &mut self.events)?;
        if sum_events != self.events.len() as u64 {
            return Err("a chunk's runs do not add up to its events");
        }
        self.check_event_places()?;
        if self.accesses > 0 {
            self.load_sites(c)?;
            self.load_addrs(c)?;
            if self.flags & HAS_REPEAT != 0 {
                self.unpacker.values(c, self.accesses, &mut self.repeats)?;
            }
        }
        if !c.is_empty() {
            return Err("a chunk is followed by bytes that belong to no column");
        }
        Ok(())
    }

    /// Each event lies in its segment.
    fn check_event_places(&self) -> Result<(), Bad> {
        let mut start = 0;
        let mut events = self.events.iter();
        for s in &self.segments {
            let end = start + s.accesses;
            if events.by_ref().take(s.events as usize).any(|(pos, _)| *pos < start || *pos > end) {
                return Err("an event stands outside its run");
            }
            start = end;
        }
        Ok(())
    }

    fn load_sites(&mut self, c: &mut Cursor) -> Result<(), Bad> {
        let sites = c.bounded(self.accesses as u64)?;
        self.unpacker.plane(c, sites, &mut self.temp)?;
        if self.temp.iter().any(|&k| k > Kind::Fetch as u8) {
            return Err("an access of unknown kind");
        }
        for (site, &k) in self.sites.iter_mut().zip(&self.temp) {
            site.kind = match k {
                0 => Kind::Load,
                1 => Kind::Store,
                _ => Kind::Fetch,
            };
        }
        if self.flags & HAS_SIZE != 0 {
            self.unpacker.plane(c, sites, &mut self.temp)?;
            self.sites.iter_mut().zip(&self.temp).for_each(|(site, &size)| site.size = size);
        }
        if self.flags & HAS_IP != 0 {
            sums(&mut self.unpacker, c, sites, 0, &mut self.values, &mut self.numbers)?;
            self.sites.iter_mut().zip(&self.numbers).for_each(|(site, &ip)| site.ip = ip);
        }
        self.unpacker.indices(c, self.accesses, sites, &mut self.site)
    }

    fn load_addrs(&mut self, c: &mut Cursor) -> Result<(), Bad> {
        self.shift = match c.byte()? {
            s @ 0..=63 => u32::from(s),
            _ => return Err("addresses are shifted too far"),
        };
        self.mode = c.byte()?;
        self.base = 0;
        match self.mode {
            mode::BASE => self.base = c.varint()? << self.shift,
            mode::DELTA => {}
            mode::PAGE | mode::PAGE_DELTA => {
                let pages = c.bounded(self.accesses as u64)?;
                sums(&mut self.unpacker, c, pages, 0, &mut self.values, &mut self.numbers)?;
                for (t, &n) in self.pages.iter_mut().zip(&self.numbers) {
                    *t = n << 12;
                }
                self.unpacker.indices(c, self.accesses, pages, &mut self.page)?;
            }
            mode::SITE => {
                let sites = self.site.iter().fold(0, |m, &s| m.max(s)) as usize + 1;
                sums(&mut self.unpacker, c, sites, self.shift, &mut self.values, &mut self.numbers)?;
                self.sites.iter_mut().zip(&self.numbers).for_each(|(site, &first)| site.last = first);
            }
            _ => return Err("addresses are written in an unknown way"),
        }
        self.unpacker.values(c, self.accesses, &mut self.values)
    }

    /// The next block, in `block`; `false` at the chunk's end, with old columns in `block`.
    pub(crate) fn next_block(&mut self, block: &mut Block) -> bool {
        block.events.clear();
        while let Some(&s) = self.segments.get(self.segment) {
            let left = s.accesses as usize - self.in_segment;
            let n = left.min(BLOCK_ACCESSES);
            let last = n == left;
            let (start, end) = (self.access, self.access + n);
            block.process = s.process;
            block.thread = s.thread;
            self.fill(start, end, block);
            // An event at the block's end belongs to the next block, if the segment has one.
            while let Some((pos, event)) = self.events.get(self.event) {
                if self.segments[self.segment].events == 0 || (*pos as usize >= end && !last) {
                    break;
                }
                block.events.push((*pos - start as u32, event.clone()));
                self.segments[self.segment].events -= 1;
                self.event += 1;
            }
            self.access = end;
            self.in_segment += n;
            if last {
                self.segment += 1;
                self.in_segment = 0;
            }
            if !block.is_empty() {
                return true;
            }
        }
        false
    }

    /// Columns of the accesses `start..end`; ranges come in ascending order.
    fn fill(&mut self, start: usize, end: usize, block: &mut Block) {
        let n = end - start;
        let has = |flag| if self.flags & flag != 0 { n } else { 0 };
        // Not cleared before: what was there need not be zeroed to be overwritten.
        block.kind.resize(n, Kind::Load);
        block.size.resize(has(HAS_SIZE), 0);
        block.ip.resize(has(HAS_IP), 0);
        block.repeat.clear();
        if n == 0 {
            return block.addr.clear();
        }
        let index = &self.site[start..end];
        // A 16-bit index into a table of 2^16 entries needs no bounds check.
        let sites: &mut [Site; TABLE] = table_mut(&mut self.sites);
        match (block.size.is_empty(), block.ip.is_empty()) {
            (false, false) => {
                let columns = block.kind.iter_mut().zip(&mut block.size).zip(&mut block.ip);
                for (((kind, size), ip), &s) in columns.zip(index) {
                    let site = &sites[usize::from(s)];
                    (*kind, *size, *ip) = (site.kind, site.size, site.ip);
                }
            }
            _ => {
                let of = |s: &u16| &sites[usize::from(*s)];
                block.kind.iter_mut().zip(index).for_each(|(kind, s)| *kind = of(s).kind);
                block.size.iter_mut().zip(index).for_each(|(size, s)| *size = of(s).size);
                block.ip.iter_mut().zip(index).for_each(|(ip, s)| *ip = of(s).ip);
            }
        }
        if self.flags & HAS_REPEAT != 0 {
            self.repeats.copy(start, end, &mut self.numbers);
            block.repeat.extend(self.numbers.iter().map(|&r| r as u32));
        }
        self.values.copy(start, end, &mut block.addr);
        let shift = self.shift;
        let distance = |v: u64| (unzigzag(v) as u64) << shift;
        let addr = &mut block.addr[..];
        match self.mode {
            mode::BASE => addr.iter_mut().for_each(|a| *a = (*a << shift).wrapping_add(self.base)),
            mode::DELTA => {
                for a in addr {
                    self.base = self.base.wrapping_add(distance(*a));
                    *a = self.base;
                }
            }
            mode::PAGE => {
                let pages: &[u64; TABLE] = table(&self.pages);
                let in_page = shift.min(12);
                for (a, &p) in addr.iter_mut().zip(&self.page[start..end]) {
                    *a = pages[usize::from(p)] | (*a << in_page & 0xfff);
                }
            }
            mode::PAGE_DELTA => {
                let pages: &mut [u64; TABLE] = table_mut(&mut self.pages);
                let in_page = shift.min(12);
                for (a, &p) in addr.iter_mut().zip(&self.page[start..end]) {
                    let last = &mut pages[usize::from(p)];
                    *last = *last & !0xfff | (last.wrapping_add(*a << in_page) & 0xfff);
                    *a = *last;
                }
            }
            _ => {
                for (a, &s) in addr.iter_mut().zip(index) {
                    let last = &mut sites[usize::from(s)].last;
                    *last = last.wrapping_add(distance(*a));
                    *a = *last;
                }
            }
        }
    }
}

/// Reads `n` numbers that are written as distances from one to the next.
fn sums(
    unpacker: &mut Unpacker,
    c: &mut Cursor,
    n: usize,
    shift: u32,
    values: &mut Values,
    out: &mut Vec<u64>,
) -> Result<(), Bad> {
    unpacker.values(c, n, values)?;
    values.copy(0, n, out);
    let mut last = 0u64;
    for v in out {
        last = last.wrapping_add((unzigzag(*v) as u64) << shift);
        *v = last;
    }
    Ok(())
}

fn table<T>(v: &[T]) -> &[T; TABLE] {
    v.try_into().expect("tables are made with 2^16 entries and never resized")
}

fn table_mut<T>(v: &mut [T]) -> &mut [T; TABLE] {
    v.try_into().expect("tables are made with 2^16 entries and never resized")
}
