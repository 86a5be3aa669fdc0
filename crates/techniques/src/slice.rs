//! Parts of blocks.

use std::ops::Range;

use lookaside_trace::Block;

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
}

/// A column may be left out, or end early.
fn column<'a, T>(column: &'a [T], range: &Range<usize>) -> &'a [T] {
    &column[range.start.min(column.len())..range.end.min(column.len())]
}
