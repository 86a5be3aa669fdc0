//! Random blocks and ways to compare them, for all tests of this crate.

use lookaside_trace::{Block, Event, Kind, MapSource, Source, WindowEvent};
use proptest::collection::vec;
use proptest::prelude::*;

/// One access, in full.
pub type Access = (u32, u32, u64, Kind, u8, u64, u32);

/// What a stream says, free of how it is cut into blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Access(Access),
    Event(u32, u32, Event),
    OfWindow(u32, u32, WindowEvent),
}

/// Spreads blocks out. The naive twin of the codec: it only copies.
pub fn items<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Vec<Item> {
    let mut out = Vec::new();
    for b in blocks {
        let mut events = b.events.iter().peekable();
        let mut of_windows = b.window_events.iter().peekable();
        for i in 0..=b.len() {
            while let Some(e) = of_windows.next_if(|e| e.at as usize == i) {
                out.push(Item::OfWindow(b.process, b.thread, WindowEvent { at: 0, ..*e }));
            }
            while let Some((_, e)) = events.next_if(|(pos, _)| *pos as usize == i) {
                out.push(Item::Event(b.process, b.thread, e.clone()));
            }
            if i < b.len() {
                let of = |c: &[u8]| c.get(i).copied().unwrap_or(0);
                out.push(Item::Access((
                    b.process,
                    b.thread,
                    b.addr[i],
                    b.kind[i],
                    of(&b.size),
                    b.ip.get(i).copied().unwrap_or(0),
                    b.repeat.get(i).copied().unwrap_or(0),
                )));
            }
        }
        assert!(events.next().is_none() && of_windows.next().is_none(), "an event outside its block");
    }
    out
}

/// Reads all of a source.
pub fn drain(source: &mut dyn Source) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut block = Block::default();
    while source.next_block(&mut block).expect("readable") {
        assert!(!block.is_empty());
        let n = block.len();
        assert_eq!(block.kind.len(), n);
        for len in [block.size.len(), block.ip.len(), block.repeat.len()] {
            assert!(len == 0 || len == n);
        }
        blocks.push(block.clone());
    }
    assert!(block.is_empty());
    blocks
}

fn addr() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0u64..64).prop_map(|p| 0x7fff_0000_0000 + p * 4096),
        4 => (0u64..4096).prop_map(|o| 0x5555_0000_0000 + o * 8),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

fn text() -> impl Strategy<Value = String> {
    "[a-zä€/ ]{0,12}"
}

pub fn event() -> impl Strategy<Value = Event> {
    let source = prop_oneof![
        Just(MapSource::Anonymous),
        Just(MapSource::Heap),
        Just(MapSource::Stack),
        (text(), any::<u64>()).prop_map(|(path, offset)| MapSource::File { path, offset }),
    ];
    prop_oneof![
        (addr(), any::<u64>(), any::<u8>(), source, any::<u32>())
            .prop_map(|(addr, len, prot, source, site)| Event::Map { addr, len, prot, source, site }),
        (addr(), any::<u64>()).prop_map(|(addr, len)| Event::Unmap { addr, len }),
        (addr(), any::<u64>(), addr(), any::<u64>()).prop_map(|(old_addr, old_len, new_addr, new_len)| Event::Remap {
            old_addr,
            old_len,
            new_addr,
            new_len
        }),
        (addr(), any::<u64>(), any::<u8>()).prop_map(|(addr, len, prot)| Event::Protect { addr, len, prot }),
        (addr(), any::<u64>(), any::<i32>()).prop_map(|(addr, len, advice)| Event::Advise { addr, len, advice }),
        (addr(), addr()).prop_map(|(start, end)| Event::Brk { start, end }),
        any::<u32>().prop_map(|thread| Event::ThreadStart { thread }),
        any::<u32>().prop_map(|thread| Event::ThreadExit { thread }),
        (any::<u32>(), any::<u32>()).prop_map(|(parent, child)| Event::Fork { parent, child }),
        text().prop_map(|path| Event::Exec { path }),
        any::<i32>().prop_map(|code| Event::ProcessExit { code }),
        any::<u32>().prop_map(|cpu| Event::ContextSwitch { cpu }),
        any::<u32>().prop_map(|cpu| Event::Migrate { cpu }),
        text().prop_map(|text| Event::Marker { text }),
        any::<u64>().prop_map(|cpu_ns| Event::Interval { cpu_ns }),
        Just(Event::Counts),
        (any::<u32>(), vec(addr(), 0..16)).prop_map(|(id, frames)| Event::Site { id, frames }),
        (addr(), any::<u64>(), any::<u32>()).prop_map(|(addr, len, site)| Event::Alloc { addr, len, site }),
        addr().prop_map(|addr| Event::Free { addr }),
        (addr(), kind(), any::<u64>()).prop_map(|(addr, kind, count)| Event::Repeats { addr, kind, count }),
        (addr(), any::<u64>(), any::<u64>()).prop_map(|(ip, visits, waits)| Event::Waits { ip, visits, waits }),
        (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>())
            .prop_map(|(loads, stores, fetches, instructions)| Event::Totals { loads, stores, fetches, instructions }),
    ]
}

/// Before any access.
pub fn window_event() -> impl Strategy<Value = WindowEvent> {
    prop_oneof![
        (addr(), kind(), any::<u8>(), any::<u64>())
            .prop_map(|(addr, kind, others, lines)| WindowEvent::leave(0, addr, kind, others, lines)),
        (addr(), kind()).prop_map(|(addr, kind)| WindowEvent::touch(0, addr, kind)),
    ]
}

pub fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Load), Just(Kind::Store), Just(Kind::Fetch)]
}

/// A random block of up to `max` accesses with any of the columns and events anywhere.
pub fn block(max: usize) -> impl Strategy<Value = Block> {
    let rows = vec((addr(), kind(), any::<u8>(), addr(), prop_oneof![9 => 0u32..20, 1 => any::<u32>()]), 0..max);
    let events = vec((any::<proptest::sample::Index>(), event()), 0..8);
    let of_windows = vec((any::<proptest::sample::Index>(), window_event()), 0..8);
    (0u32..3, 0u32..3, rows, (events, of_windows), any::<[bool; 3]>()).prop_map(|(process, thread, rows, told, has)| {
        let (events, of_windows) = told;
        let mut b = Block { process, thread, ..Block::default() };
        for (addr, kind, size, ip, repeat) in rows {
            b.push(kind, addr);
            b.size.extend(has[0].then_some(size));
            b.ip.extend(has[1].then_some(ip));
            b.repeat.extend(has[2].then_some(repeat));
        }
        b.events = events.into_iter().map(|(at, e)| (at.index(b.len() + 1) as u32, e)).collect();
        b.events.sort_by_key(|(pos, _)| *pos);
        // Before its first access nothing is in a window: no event of the block before comes after it where both are read as
        // one.
        let place =
            |(at, e): (proptest::sample::Index, WindowEvent)| WindowEvent { at: 1 + at.index(b.len()) as u32, ..e };
        let of_windows = if b.addr.is_empty() { Vec::new() } else { of_windows };
        b.window_events = of_windows.into_iter().map(place).collect();
        b.window_events.sort_by_key(|e| e.at);
        b
    })
}
