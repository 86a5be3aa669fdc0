//! Parts of blocks.

use std::ops::Range;

use lookaside_trace::{Block, WindowEvent};

/// Makes `part` the accesses of a range, with the events before and among them, and at the block's end those after. The
/// ranges of a block come in order: events at a range's start are its, those at its end the next one's.
pub(crate) fn cut(block: &Block, range: Range<usize>, part: &mut Block) {
    part.clear();
    (part.process, part.thread) = (block.process, block.thread);
    part.addr.extend_from_slice(&block.addr[range.clone()]);
    part.kind.extend_from_slice(&block.kind[range.clone()]);
    part.size.extend_from_slice(column(&block.size, &range));
    part.ip.extend_from_slice(column(&block.ip, &range));
    part.repeat.extend_from_slice(column(&block.repeat, &range));
    let is_last = range.end == block.len();
    let first = block.events.partition_point(|(at, _)| (*at as usize) < range.start);
    let events = block.events[first..].iter().take_while(|(at, _)| (*at as usize) < range.end || is_last);
    let within = |at: u32| (at as usize - range.start) as u32;
    part.events.extend(events.map(|(at, event)| (within(*at), event.clone())));
    let of_windows = &block.window_events[..];
    let before = |end: usize| of_windows.partition_point(|event| (event.at as usize) < end);
    let end = if is_last { of_windows.len() } else { before(range.end) };
    let moved = of_windows[before(range.start)..end].iter().map(|event| WindowEvent { at: within(event.at), ..*event });
    part.window_events.extend(moved);
}

/// A column may be left out, or end early.
fn column<'a, T>(column: &'a [T], range: &Range<usize>) -> &'a [T] {
    &column[range.start.min(column.len())..range.end.min(column.len())]
}

#[cfg(test)]
mod tests {
    use lookaside_trace::{Event, Kind};

    use super::*;

    fn mark(text: &str) -> Event {
        Event::Marker { text: text.into() }
    }

    fn touched(at: u32) -> WindowEvent {
        WindowEvent::touch(at, 0x1000, Kind::Load)
    }

    #[test]
    fn a_part_has_what_lies_in_its_range() {
        let block = Block {
            process: 3,
            thread: 4,
            addr: vec![10, 11, 12, 13],
            kind: vec![Kind::Load, Kind::Store, Kind::Fetch, Kind::Load],
            size: vec![1, 2, 4, 8],
            // It ends early.
            ip: vec![7, 8],
            repeat: Vec::new(),
            events: vec![(0, mark("a")), (1, mark("b")), (2, mark("c")), (4, mark("d"))],
            window_events: [0, 2, 4].map(touched).to_vec(),
        };
        let mut part = block.clone();
        let mut part_of = |range: Range<usize>| {
            cut(&block, range, &mut part);
            part.clone()
        };
        let whole = part_of(0..4);
        assert_eq!(whole, block);
        let first = Block {
            addr: vec![10, 11],
            kind: vec![Kind::Load, Kind::Store],
            size: vec![1, 2],
            events: vec![(0, mark("a")), (1, mark("b"))],
            window_events: vec![touched(0)],
            ..block.clone()
        };
        assert_eq!(part_of(0..2), first);
        let last = Block {
            addr: vec![12, 13],
            kind: vec![Kind::Fetch, Kind::Load],
            size: vec![4, 8],
            ip: Vec::new(),
            events: vec![(0, mark("c")), (2, mark("d"))],
            window_events: [0, 2].map(touched).to_vec(),
            ..block.clone()
        };
        assert_eq!(part_of(2..4), last);
        let middle = part_of(1..3);
        assert_eq!((middle.ip, middle.events), (vec![8], vec![(0, mark("b")), (1, mark("c"))]));
        assert_eq!(middle.window_events, [touched(1)]);
        assert_eq!(part_of(3..3), Block { process: 3, thread: 4, ..Block::default() });
        // At the block's end are the events behind it, though no access is.
        let end = part_of(4..4);
        assert_eq!((end.events, end.window_events), (vec![(0, mark("d"))], vec![touched(0)]));
    }
}
