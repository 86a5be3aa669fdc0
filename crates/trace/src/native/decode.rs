//! A chunk's payload to blocks.

use super::column::{Sign, Values};
use super::columns::{mode, Segment, HAS_IP, HAS_REPEAT, HAS_SIZE, TABLE_REPEAT};
use super::events::ChunkEvents;
use super::limits::{BLOCK_ACCESSES, CHUNK_ACCESSES, CHUNK_SEGMENTS};
use super::stream::Unpacker;
use super::table::{EntryTable, Meta, PresentColumns, TableEntry, ENTRIES};
use super::varint::{Bad, Cursor};
use crate::{Block, Event, Kind, WindowEvent};

/// Unpacks a chunk, then hands out its blocks.
pub(crate) struct ChunkDecoder {
    unpacker: Unpacker,
    flags: u8,
    accesses: usize,
    segments: Vec<Segment>,
    events: ChunkEvents,
    mode: u8,
    /// Of addresses, and of values.
    shifts: [u32; 2],
    base: u64,
    table: EntryTable,
    index: Vec<u16>,
    values: Values,
    repeats: Values,
    /// Next segment, and what of it was handed out.
    segment: usize,
    in_segment: usize,
    /// Accesses, values of those and events handed out.
    access: usize,
    value: usize,
    event: usize,
    window_event: usize,
    temp: Vec<u8>,
    numbers: Vec<u64>,
    spread: Vec<u64>,
}

impl ChunkDecoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(ChunkDecoder {
            unpacker: Unpacker::new()?,
            flags: 0,
            accesses: 0,
            segments: Vec::new(),
            events: ChunkEvents::default(),
            mode: mode::BASE,
            shifts: [0; 2],
            base: 0,
            table: EntryTable::new(),
            index: Vec::new(),
            values: Values::new(),
            repeats: Values::new(),
            segment: 0,
            in_segment: 0,
            access: 0,
            value: 0,
            event: 0,
            window_event: 0,
            temp: Vec::new(),
            numbers: Vec::new(),
            spread: Vec::new(),
        })
    }

    /// Takes a payload whose checksum is right. After an error no blocks come.
    pub(crate) fn load(&mut self, payload: &[u8], accesses: u32) -> Result<(), Bad> {
        self.segments.clear();
        self.segment = 0;
        self.in_segment = 0;
        self.access = 0;
        self.value = 0;
        self.event = 0;
        self.window_event = 0;
        let loaded = self.load_columns(payload, accesses as usize);
        if loaded.is_err() {
            self.segments.clear();
        }
        loaded
    }

    fn load_columns(&mut self, payload: &[u8], accesses: usize) -> Result<(), Bad> {
        let c = &mut Cursor::new(payload);
        self.accesses = c.bounded(CHUNK_ACCESSES as u64)?;
        if self.accesses != accesses {
            return Err("a chunk has another number of accesses than its frame says");
        }
        let segments = c.bounded(CHUNK_SEGMENTS as u64)?;
        // Four numbers of at most five bytes.
        self.unpacker.bytes(c, segments * 20, &mut self.temp)?;
        let mut s = Cursor::new(&self.temp);
        let mut sum = 0u64;
        for _ in 0..segments {
            let (process, thread, accesses, events) = (s.u32()?, s.u32()?, s.u32()?, s.u32()?);
            sum += u64::from(accesses);
            self.segments.push(Segment { process, thread, accesses, events });
        }
        if !s.is_empty() || sum != self.accesses as u64 {
            return Err("a chunk's runs do not add up to its accesses");
        }
        self.events.decode(&mut self.unpacker, c, &self.segments)?;
        if self.accesses > 0 {
            self.load_accesses(c)?;
        }
        if !c.is_empty() {
            return Err("a chunk is followed by bytes that belong to no column");
        }
        Ok(())
    }

    fn load_accesses(&mut self, c: &mut Cursor) -> Result<(), Bad> {
        self.flags = c.byte()?;
        self.mode = c.byte()?;
        if self.mode > mode::MOVING_BASE {
            return Err("addresses are written in an unknown way");
        }
        self.shifts = [shift(c)?; 2];
        let has = PresentColumns {
            sizes: self.flags & HAS_SIZE != 0,
            ips: self.flags & HAS_IP != 0,
            firsts: mode::has_firsts(self.mode),
            repeats: self.flags & TABLE_REPEAT != 0,
            moving: mode::has_moving(self.mode),
        };
        let entries = self.table.read(has, self.shifts[0], self.accesses, &mut self.unpacker, c)?;
        self.unpacker.indices(c, self.accesses, entries, &mut self.index)?;
        let mut values = self.accesses;
        if has.moving {
            self.shifts[1] = shift(c)?;
            let moving = self.table.moving();
            values = self.index.iter().map(|&i| usize::from(moving[usize::from(i)])).sum();
        }
        self.base = match self.mode {
            mode::BASE => c.varint()? << self.shifts[0],
            mode::MOVING_BASE => c.varint()?,
            _ => 0,
        };
        let sign = if mode::has_base(self.mode) { Sign::Unsigned } else { Sign::Signed };
        self.unpacker.values(c, values, sign, &mut self.values)?;
        if self.has_repeat_column() {
            self.unpacker.values(c, self.accesses, Sign::Unsigned, &mut self.repeats)?;
        }
        Ok(())
    }

    fn has_repeat_column(&self) -> bool {
        self.flags & (HAS_REPEAT | TABLE_REPEAT) == HAS_REPEAT
    }

    /// All of the chunk was handed out.
    pub(crate) fn is_done(&self) -> bool {
        self.segment == self.segments.len()
    }

    /// The next block, in `block`; `false` at the chunk's end, with old columns in `block`.
    pub(crate) fn next_block(&mut self, block: &mut Block) -> bool {
        block.events.clear();
        block.window_events.clear();
        while let Some(&s) = self.segments.get(self.segment) {
            let left = s.accesses as usize - self.in_segment;
            let n = left.min(BLOCK_ACCESSES);
            let last = n == left;
            let (start, end) = (self.access, self.access + n);
            block.process = s.process;
            block.thread = s.thread;
            self.fill(start, end, block);
            self.fill_events(start, (!last).then_some(end), block);
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

    /// The segment's next events, up to a block's end: one there belongs to the next block, if the segment has one.
    fn fill_events(&mut self, start: usize, end: Option<usize>, block: &mut Block) {
        let [all_end, windows_end] = self.events.ends[self.segment];
        let is_before = |at: u32| end.is_none_or(|end| (at as usize) < end);
        for (at, event) in &mut self.events.all[self.event..all_end] {
            if !is_before(*at) {
                break;
            }
            // Handed out once: what stays behind is never read.
            block.events.push((*at - start as u32, std::mem::replace(event, Event::Counts)));
        }
        self.event += block.events.len();
        let of_windows = &self.events.of_windows[self.window_event..windows_end];
        let of_windows = &of_windows[..of_windows.partition_point(|event| is_before(event.at))];
        let moved = of_windows.iter().map(|event| WindowEvent { at: event.at - start as u32, ..*event });
        block.window_events.extend(moved);
        self.window_event += of_windows.len();
    }

    /// Columns of the accesses `start..end`; ranges come in ascending order.
    fn fill(&mut self, start: usize, end: usize, block: &mut Block) {
        let n = end - start;
        let has = |flag| if self.flags & flag != 0 { n } else { 0 };
        // Not cleared before: what was there need not be zeroed to be overwritten.
        block.addr.resize(n, 0);
        block.kind.resize(n, Kind::Load);
        block.size.resize(has(HAS_SIZE), 0);
        block.ip.resize(has(HAS_IP), 0);
        block.repeat.resize(has(HAS_REPEAT), 0);
        if n == 0 {
            return;
        }
        if mode::has_moving(self.mode) {
            self.spread_values(start, end);
        }
        let (index, entries, shift) = (&self.index[start..end], self.table.entries(), self.shifts[1]);
        match self.mode {
            mode::ENTRY => match self.values.shorts(start, end) {
                Some((low, exceptions)) => {
                    let mut from = 0;
                    for &(at, more) in exceptions {
                        let at = at as usize - start;
                        fill_rows(entries, &index[from..at], &low[from..at], shift, from, block);
                        let last = &mut entries[usize::from(index[at])].last;
                        *last = last.wrapping_add(more << shift);
                        from = at;
                    }
                    fill_rows(entries, &index[from..], &low[from..], shift, from, block);
                }
                None => {
                    self.values.copy(start, end, &mut self.numbers);
                    fill_rows(entries, index, &self.numbers, shift, 0, block);
                }
            },
            mode::MOVING_ENTRY => fill_rows(entries, index, &self.spread, shift, 0, block),
            mode::MOVING_BASE => {
                fill_rows(entries, index, &vec![Stays; n], shift, 0, block);
                let moving = self.table.moving();
                for ((addr, &value), &i) in block.addr.iter_mut().zip(&self.spread).zip(index) {
                    if moving[usize::from(i)] != 0 {
                        *addr = self.base.wrapping_add(value << shift);
                    }
                }
            }
            mode => {
                fill_rows(entries, index, &vec![(); n], shift, 0, block);
                self.values.copy(start, end, &mut block.addr);
                if mode == mode::BASE {
                    block.addr.iter_mut().for_each(|a| *a = (*a << shift).wrapping_add(self.base));
                } else {
                    let mut last = self.base;
                    for a in &mut block.addr {
                        last = last.wrapping_add(a.bytes(shift));
                        *a = last;
                    }
                    self.base = last;
                }
            }
        }
        if self.has_repeat_column() {
            self.repeats.copy(start, end, &mut self.numbers);
            block.repeat.iter_mut().zip(&self.numbers).for_each(|(r, &v)| *r = v as u32);
        }
    }

    /// The values of the accesses `start..end`, with zeros for those that have none.
    fn spread_values(&mut self, start: usize, end: usize) {
        let (index, moving) = (&self.index[start..end], self.table.moving());
        let count: usize = index.iter().map(|&i| usize::from(moving[usize::from(i)])).sum();
        self.values.copy(self.value, self.value + count, &mut self.numbers);
        self.value += count;
        // What stands behind the last is looked at, and not taken.
        self.numbers.push(0);
        let mut next = 0;
        self.spread.clear();
        self.spread.extend(index.iter().map(|&i| {
            let moves = moving[usize::from(i)];
            let value = self.numbers[next] & u64::from(moves).wrapping_neg();
            next += usize::from(moves);
            value
        }));
    }
}

/// A number of low bits.
fn shift(c: &mut Cursor) -> Result<u32, Bad> {
    match c.byte()? {
        shift @ 0..=63 => Ok(u32::from(shift)),
        _ => Err("addresses are shifted too far"),
    }
}

/// How far an access is from the one before, as it is written.
trait Distance: Copy {
    /// Whether it is.
    const KNOWN: bool = true;
    /// In bytes.
    fn bytes(self, shift: u32) -> u64;
}

impl Distance for u64 {
    #[inline]
    fn bytes(self, shift: u32) -> u64 {
        self << shift
    }
}

impl Distance for u16 {
    #[inline]
    fn bytes(self, shift: u32) -> u64 {
        (self as i16 as u64) << shift
    }
}

/// As the one before.
#[derive(Clone, Copy)]
struct Stays;

impl Distance for Stays {
    fn bytes(self, _: u32) -> u64 {
        0
    }
}

/// Addresses come from elsewhere.
impl Distance for () {
    const KNOWN: bool = false;
    fn bytes(self, _: u32) -> u64 {
        0
    }
}

/// Writes the columns of `block` from its access `at` on, as far as it has them.
fn fill_rows<D: Distance>(
    entries: &mut [TableEntry; ENTRIES],
    index: &[u16],
    distances: &[D],
    shift: u32,
    at: usize,
    block: &mut Block,
) {
    let fill = match (block.size.is_empty(), block.ip.is_empty(), block.repeat.is_empty()) {
        (true, true, true) => fill_columns::<D, false, false, false>,
        (true, true, false) => fill_columns::<D, false, false, true>,
        (true, false, true) => fill_columns::<D, false, true, false>,
        (true, false, false) => fill_columns::<D, false, true, true>,
        (false, true, true) => fill_columns::<D, true, false, false>,
        (false, true, false) => fill_columns::<D, true, false, true>,
        (false, false, true) => fill_columns::<D, true, true, false>,
        (false, false, false) => fill_columns::<D, true, true, true>,
    };
    fill(entries, index, distances, shift, at, block);
}

/// All columns in one pass: each access's entry is looked up once.
fn fill_columns<D: Distance, const SIZE: bool, const IP: bool, const REPEAT: bool>(
    entries: &mut [TableEntry; ENTRIES],
    index: &[u16],
    distances: &[D],
    shift: u32,
    at: usize,
    block: &mut Block,
) {
    let n = index.len();
    let distances = &distances[..n];
    let kind = &mut block.kind[at..][..n];
    let addr = &mut block.addr[at..][..if D::KNOWN { n } else { 0 }];
    let size = &mut block.size[if SIZE { at } else { 0 }..][..if SIZE { n } else { 0 }];
    let ip = &mut block.ip[if IP { at } else { 0 }..][..if IP { n } else { 0 }];
    let repeat = &mut block.repeat[if REPEAT { at } else { 0 }..][..if REPEAT { n } else { 0 }];
    // What limits this loop is how many loads and stores a core starts in a cycle; hence one load for three columns,
    // and one store for four accesses.
    let fours = n / 4;
    {
        let (index, distances) = (&index.as_chunks::<4>().0[..fours], &distances.as_chunks::<4>().0[..fours]);
        let kind = &mut kind.as_chunks_mut::<4>().0[..fours];
        let addr = &mut addr.as_chunks_mut::<4>().0[..if D::KNOWN { fours } else { 0 }];
        let size = &mut size.as_chunks_mut::<4>().0[..if SIZE { fours } else { 0 }];
        let ip = &mut ip.as_chunks_mut::<4>().0[..if IP { fours } else { 0 }];
        let repeat = &mut repeat.as_chunks_mut::<4>().0[..if REPEAT { fours } else { 0 }];
        for i in 0..fours {
            let e = index[i].map(usize::from);
            let (kinds, sizes, repeats) = Meta::columns(e.map(|e| entries[e].meta));
            kind[i] = kinds;
            if SIZE {
                size[i] = sizes;
            }
            if REPEAT {
                repeat[i] = repeats;
            }
            if IP {
                ip[i] = e.map(|e| entries[e].ip);
            }
            if D::KNOWN {
                for j in 0..4 {
                    let last = &mut entries[e[j]].last;
                    *last = last.wrapping_add(distances[i][j].bytes(shift));
                    addr[i][j] = *last;
                }
            }
        }
    }
    for i in 4 * fours..n {
        let e = &mut entries[usize::from(index[i])];
        kind[i] = e.meta.kind();
        if SIZE {
            size[i] = e.meta.size();
        }
        if IP {
            ip[i] = e.ip;
        }
        if REPEAT {
            repeat[i] = e.meta.repeat();
        }
        if D::KNOWN {
            e.last = e.last.wrapping_add(distances[i].bytes(shift));
            addr[i] = e.last;
        }
    }
}

#[cfg(test)]
mod tests;
