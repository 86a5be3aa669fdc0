//! Events as four streams: positions and tags, addresses, other numbers, texts. Like fields stand
//! together, which is what zstd needs.

use super::columns::Segment;
use super::stream::{Packer, Unpacker};
use super::varint::{put, unzigzag, zigzag, Bad, Cursor};
use crate::{Event, Kind, MapSource, WindowChange, WindowEvent};

/// Most bytes of one stream of events in a chunk, unpacked. Also bounds a single event's text.
pub(crate) const MAX_STREAM: usize = 8 << 20;
/// A chunk is closed when its events take more than this.
pub(crate) const CLOSE_AT: usize = 1 << 20;

/// Tags are part of the format: never renumber.
mod tag {
    pub(super) const MAP: u8 = 0;
    pub(super) const UNMAP: u8 = 1;
    pub(super) const REMAP: u8 = 2;
    pub(super) const PROTECT: u8 = 3;
    pub(super) const ADVISE: u8 = 4;
    pub(super) const BRK: u8 = 5;
    pub(super) const THREAD_START: u8 = 6;
    pub(super) const THREAD_EXIT: u8 = 7;
    pub(super) const FORK: u8 = 8;
    pub(super) const EXEC: u8 = 9;
    pub(super) const PROCESS_EXIT: u8 = 10;
    pub(super) const CONTEXT_SWITCH: u8 = 11;
    pub(super) const MIGRATE: u8 = 12;
    pub(super) const MARKER: u8 = 13;
    pub(super) const SITE: u8 = 14;
    pub(super) const ALLOC: u8 = 15;
    pub(super) const FREE: u8 = 16;
    pub(super) const REPEATS: u8 = 17;
    pub(super) const TOTALS: u8 = 18;
    pub(super) const LEAVE: u8 = 19;
    pub(super) const TOUCH: u8 = 20;
    /// Of other accesses than loads.
    pub(super) const REPEATS_OF: u8 = 21;
    pub(super) const WAITS: u8 = 22;
    pub(super) const INTERVAL: u8 = 23;
    pub(super) const COUNTS: u8 = 24;
    pub(super) const COUNT: usize = 25;
}

/// Takes events and packs them.
#[derive(Default)]
pub(crate) struct EventEncoder {
    heads: Vec<u8>,
    addrs: Vec<u8>,
    numbers: Vec<u8>,
    texts: Vec<u8>,
    count: usize,
    /// Of these, the ones that are of windows.
    of_windows: usize,
    last_pos: u32,
    /// Last address of each tag: events of a kind are near each other.
    last_addr: [u64; tag::COUNT],
}

impl EventEncoder {
    /// Bytes so far, before packing.
    pub(crate) fn len(&self) -> usize {
        self.heads.len() + self.addrs.len() + self.numbers.len() + self.texts.len()
    }

    fn head(&mut self, pos: u32, tag: u8) {
        put(&mut self.heads, u64::from(pos - self.last_pos));
        self.heads.push(tag);
        self.last_pos = pos;
        self.count += 1;
    }

    fn addr(&mut self, tag: u8, addr: u64) {
        let last = &mut self.last_addr[tag as usize];
        put(&mut self.addrs, zigzag(addr.wrapping_sub(*last) as i64));
        *last = addr;
    }

    fn number(&mut self, v: u64) {
        put(&mut self.numbers, v);
    }

    fn text(&mut self, s: &str) {
        put(&mut self.texts, s.len() as u64);
        self.texts.extend_from_slice(s.as_bytes());
    }

    /// Appends `event` before the access of number `pos` in the chunk; positions do not descend.
    pub(crate) fn push(&mut self, pos: u32, event: &Event) {
        match event {
            Event::Map { addr, len, prot, source, site } => {
                self.head(pos, tag::MAP);
                self.addr(tag::MAP, *addr);
                self.number(*len);
                self.number(u64::from(*prot));
                self.number(u64::from(*site));
                match source {
                    MapSource::Anonymous => self.number(0),
                    MapSource::File { path, offset } => {
                        self.number(1);
                        self.number(*offset);
                        self.text(path);
                    }
                    MapSource::Heap => self.number(2),
                    MapSource::Stack => self.number(3),
                }
            }
            Event::Unmap { addr, len } => {
                self.head(pos, tag::UNMAP);
                self.addr(tag::UNMAP, *addr);
                self.number(*len);
            }
            Event::Remap { old_addr, old_len, new_addr, new_len } => {
                self.head(pos, tag::REMAP);
                self.addr(tag::REMAP, *old_addr);
                self.number(*old_len);
                self.addr(tag::REMAP, *new_addr);
                self.number(*new_len);
            }
            Event::Protect { addr, len, prot } => {
                self.head(pos, tag::PROTECT);
                self.addr(tag::PROTECT, *addr);
                self.number(*len);
                self.number(u64::from(*prot));
            }
            Event::Advise { addr, len, advice } => {
                self.head(pos, tag::ADVISE);
                self.addr(tag::ADVISE, *addr);
                self.number(*len);
                self.number(zigzag(i64::from(*advice)));
            }
            Event::Brk { start, end } => {
                self.head(pos, tag::BRK);
                self.addr(tag::BRK, *start);
                self.addr(tag::BRK, *end);
            }
            Event::ThreadStart { thread } => {
                self.head(pos, tag::THREAD_START);
                self.number(u64::from(*thread));
            }
            Event::ThreadExit { thread } => {
                self.head(pos, tag::THREAD_EXIT);
                self.number(u64::from(*thread));
            }
            Event::Fork { parent, child } => {
                self.head(pos, tag::FORK);
                self.number(u64::from(*parent));
                self.number(u64::from(*child));
            }
            Event::Exec { path } => {
                self.head(pos, tag::EXEC);
                self.text(path);
            }
            Event::ProcessExit { code } => {
                self.head(pos, tag::PROCESS_EXIT);
                self.number(zigzag(i64::from(*code)));
            }
            Event::ContextSwitch { cpu } => {
                self.head(pos, tag::CONTEXT_SWITCH);
                self.number(u64::from(*cpu));
            }
            Event::Migrate { cpu } => {
                self.head(pos, tag::MIGRATE);
                self.number(u64::from(*cpu));
            }
            Event::Marker { text } => {
                self.head(pos, tag::MARKER);
                self.text(text);
            }
            Event::Interval { cpu_ns } => {
                self.head(pos, tag::INTERVAL);
                self.number(*cpu_ns);
            }
            Event::Counts => self.head(pos, tag::COUNTS),
            Event::Site { id, frames } => {
                self.head(pos, tag::SITE);
                self.number(u64::from(*id));
                self.number(frames.len() as u64);
                for &frame in frames {
                    self.addr(tag::SITE, frame);
                }
            }
            Event::Alloc { addr, len, site } => {
                self.head(pos, tag::ALLOC);
                self.addr(tag::ALLOC, *addr);
                self.number(*len);
                self.number(u64::from(*site));
            }
            Event::Free { addr } => {
                self.head(pos, tag::FREE);
                self.addr(tag::FREE, *addr);
            }
            Event::Repeats { addr, kind: Kind::Load, count } => {
                self.head(pos, tag::REPEATS);
                self.addr(tag::REPEATS, *addr);
                self.number(*count);
            }
            Event::Repeats { addr, kind, count } => {
                self.head(pos, tag::REPEATS_OF);
                self.addr(tag::REPEATS_OF, *addr);
                self.number(*kind as u64);
                self.number(*count);
            }
            Event::Waits { ip, visits, waits } => {
                self.head(pos, tag::WAITS);
                self.addr(tag::WAITS, *ip);
                self.number(*visits);
                self.number(*waits);
            }
            Event::Totals { loads, stores, fetches, instructions } => {
                self.head(pos, tag::TOTALS);
                for v in [loads, stores, fetches, instructions] {
                    self.number(*v);
                }
            }
        }
    }

    /// Appends what becomes of a page in a window, likewise.
    pub(crate) fn push_of_window(&mut self, pos: u32, event: &WindowEvent) {
        self.of_windows += 1;
        let (tag, others) = match event.change {
            WindowChange::Leave { others } => (tag::LEAVE, Some(others)),
            WindowChange::Touch => (tag::TOUCH, None),
        };
        self.head(pos, tag);
        self.addr(tag, event.addr);
        self.number(event.kind as u64);
        if let Some(others) = others {
            self.number(u64::from(others));
            self.number(event.lines);
        }
    }

    /// There are no events but of windows.
    pub(crate) fn is_quiet(&self) -> bool {
        self.count == self.of_windows
    }

    /// Packs all and begins anew.
    pub(crate) fn finish(&mut self, packer: &mut Packer, out: &mut Vec<u8>) {
        put(out, self.count as u64);
        for stream in [&mut self.heads, &mut self.addrs, &mut self.numbers, &mut self.texts] {
            packer.bytes(stream, out);
            stream.clear();
        }
        (self.count, self.of_windows) = (0, 0);
        self.last_pos = 0;
        self.last_addr = [0; tag::COUNT];
    }
}

/// The events of a chunk, with their positions in it.
#[derive(Default)]
pub(crate) struct ChunkEvents {
    pub(crate) all: Vec<(u32, Event)>,
    pub(crate) of_windows: Vec<WindowEvent>,
    /// By segment: where its events end in each of the two.
    pub(crate) ends: Vec<[usize; 2]>,
    streams: [Vec<u8>; 4],
}

impl ChunkEvents {
    /// Unpacks those of a chunk of these segments.
    pub(crate) fn decode(&mut self, unpacker: &mut Unpacker, c: &mut Cursor, segments: &[Segment]) -> Result<(), Bad> {
        self.all.clear();
        self.of_windows.clear();
        self.ends.clear();
        let count = c.bounded(MAX_STREAM as u64)?;
        for stream in &mut self.streams {
            unpacker.bytes(c, MAX_STREAM, stream)?;
        }
        if count as u64 != segments.iter().map(|segment| u64::from(segment.events)).sum::<u64>() {
            return Err("a chunk's runs do not add up to its events");
        }
        let [heads, addrs, numbers, texts] = &self.streams;
        let mut d = EventDecoder {
            addrs: Cursor::new(addrs),
            numbers: Cursor::new(numbers),
            texts: Cursor::new(texts),
            last_addr: [0; tag::COUNT],
        };
        let mut heads = Cursor::new(heads);
        let (mut pos, mut start) = (0, 0);
        for segment in segments {
            let end = start + u64::from(segment.accesses);
            for _ in 0..segment.events {
                pos += heads.varint()?.min(u64::from(u32::MAX));
                if !(start..=end).contains(&pos) {
                    return Err("an event stands outside its run");
                }
                match heads.byte()? {
                    tag @ (tag::LEAVE | tag::TOUCH) => self.of_windows.push(d.of_window(pos as u32, tag)?),
                    tag => self.all.push((pos as u32, d.event(tag)?)),
                }
            }
            self.ends.push([self.all.len(), self.of_windows.len()]);
            start = end;
        }
        if [heads, d.addrs, d.numbers, d.texts].iter().any(|s| !s.is_empty()) {
            return Err("events are followed by bytes that belong to none");
        }
        Ok(())
    }
}

struct EventDecoder<'a> {
    addrs: Cursor<'a>,
    numbers: Cursor<'a>,
    texts: Cursor<'a>,
    last_addr: [u64; tag::COUNT],
}

impl EventDecoder<'_> {
    fn addr(&mut self, tag: u8) -> Result<u64, Bad> {
        let delta = unzigzag(self.addrs.varint()?);
        let last = &mut self.last_addr[tag as usize];
        *last = last.wrapping_add(delta as u64);
        Ok(*last)
    }

    fn u8(&mut self) -> Result<u8, Bad> {
        self.numbers.bounded(0xff).map(|v| v as u8)
    }

    fn kind(&mut self) -> Result<Kind, Bad> {
        match self.numbers.varint()? {
            0 => Ok(Kind::Load),
            1 => Ok(Kind::Store),
            2 => Ok(Kind::Fetch),
            _ => Err("a page in the window of no kind of access"),
        }
    }

    fn i32(&mut self) -> Result<i32, Bad> {
        i32::try_from(unzigzag(self.numbers.varint()?)).map_err(|_| "a number is longer than 32 bits")
    }

    fn text(&mut self) -> Result<String, Bad> {
        let n = self.texts.bounded(MAX_STREAM as u64)?;
        let bytes = self.texts.bytes(n)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "a text is not UTF-8")
    }

    #[inline]
    fn of_window(&mut self, at: u32, tag: u8) -> Result<WindowEvent, Bad> {
        let (addr, kind) = (self.addr(tag)?, self.kind()?);
        Ok(match tag {
            tag::LEAVE => WindowEvent::leave(at, addr, kind, self.u8()?, self.numbers.varint()?),
            _ => WindowEvent::touch(at, addr, kind),
        })
    }

    fn event(&mut self, tag: u8) -> Result<Event, Bad> {
        Ok(match tag {
            tag::MAP => {
                let addr = self.addr(tag)?;
                let len = self.numbers.varint()?;
                let prot = self.u8()?;
                let site = self.numbers.u32()?;
                let source = match self.numbers.varint()? {
                    0 => MapSource::Anonymous,
                    1 => {
                        let offset = self.numbers.varint()?;
                        MapSource::File { path: self.text()?, offset }
                    }
                    2 => MapSource::Heap,
                    3 => MapSource::Stack,
                    _ => return Err("a mapping of unknown source"),
                };
                Event::Map { addr, len, prot, source, site }
            }
            tag::UNMAP => Event::Unmap { addr: self.addr(tag)?, len: self.numbers.varint()? },
            tag::REMAP => Event::Remap {
                old_addr: self.addr(tag)?,
                old_len: self.numbers.varint()?,
                new_addr: self.addr(tag)?,
                new_len: self.numbers.varint()?,
            },
            tag::PROTECT => Event::Protect { addr: self.addr(tag)?, len: self.numbers.varint()?, prot: self.u8()? },
            tag::ADVISE => Event::Advise { addr: self.addr(tag)?, len: self.numbers.varint()?, advice: self.i32()? },
            tag::BRK => Event::Brk { start: self.addr(tag)?, end: self.addr(tag)? },
            tag::THREAD_START => Event::ThreadStart { thread: self.numbers.u32()? },
            tag::THREAD_EXIT => Event::ThreadExit { thread: self.numbers.u32()? },
            tag::FORK => Event::Fork { parent: self.numbers.u32()?, child: self.numbers.u32()? },
            tag::EXEC => Event::Exec { path: self.text()? },
            tag::PROCESS_EXIT => Event::ProcessExit { code: self.i32()? },
            tag::CONTEXT_SWITCH => Event::ContextSwitch { cpu: self.numbers.u32()? },
            tag::MIGRATE => Event::Migrate { cpu: self.numbers.u32()? },
            tag::MARKER => Event::Marker { text: self.text()? },
            tag::INTERVAL => Event::Interval { cpu_ns: self.numbers.varint()? },
            tag::COUNTS => Event::Counts,
            tag::SITE => {
                let id = self.numbers.u32()?;
                let n = self.numbers.bounded(MAX_STREAM as u64)?;
                // Grown as it is read: a false count can't take memory that the stream does not back.
                let mut frames = Vec::new();
                for _ in 0..n {
                    frames.push(self.addr(tag)?);
                }
                Event::Site { id, frames }
            }
            tag::ALLOC => {
                Event::Alloc { addr: self.addr(tag)?, len: self.numbers.varint()?, site: self.numbers.u32()? }
            }
            tag::FREE => Event::Free { addr: self.addr(tag)? },
            tag::REPEATS => Event::Repeats { addr: self.addr(tag)?, kind: Kind::Load, count: self.numbers.varint()? },
            tag::REPEATS_OF => {
                let addr = self.addr(tag)?;
                let kind = match self.numbers.varint()? {
                    1 => Kind::Store,
                    2 => Kind::Fetch,
                    _ => return Err("repeats of no kind of access"),
                };
                Event::Repeats { addr, kind, count: self.numbers.varint()? }
            }
            tag::WAITS => {
                Event::Waits { ip: self.addr(tag)?, visits: self.numbers.varint()?, waits: self.numbers.varint()? }
            }
            tag::TOTALS => Event::Totals {
                loads: self.numbers.varint()?,
                stores: self.numbers.varint()?,
                fetches: self.numbers.varint()?,
                instructions: self.numbers.varint()?,
            },
            _ => return Err("an event of unknown kind"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_streams_count_for_the_length() {
        let mut events = EventEncoder::default();
        let source = MapSource::File { path: "ab".into(), offset: 0 };
        events.push(0, &Event::Map { addr: 0x4000, len: 0x1000, prot: 1, source, site: 0 });
        let lengths = [&events.heads, &events.addrs, &events.numbers, &events.texts].map(Vec::len);
        assert_eq!((lengths, events.len()), ([2, 3, 6, 3], 14));
    }
}
