//! Records of a recorder with windows: it leaves out all repeats of the pages used last.

use lookaside_trace::{Block, Event, Kind};

use super::filter_slot::{BlockUnderConstruction, FilterSlot};
use super::record::{WireRecord, ADDR, PAGE_LOG2, TABLES};

/// In the size field of a record that is no access: a page leaves its window; it was used after all others of its class
/// that are known of. The other bits are the table.
const LEAVES: u64 = 0x80;
const TOUCHED: u64 = 0x40;
/// In such a record, bits of the address, which is a page's: the page's position in the window, and above that how many
/// pages stay.
const POSITION: u64 = (1 << OTHERS_SHIFT) - 1;
const OTHERS_SHIFT: u32 = 6;
const IN_PAGE: u64 = (1 << PAGE_LOG2) - 1;

/// Positions in all windows: six bits in a record, for three tables.
const POSITIONS: usize = 3 << OTHERS_SHIFT;

/// Appends a frame of records, at whose begin and end the windows are empty; says what was wrong with it.
pub(super) fn append(
    payload: &[u8],
    tables: &[usize; TABLES],
    current: BlockUnderConstruction,
    block: &mut Block,
) -> Option<String> {
    let mut fault = None;
    // Of each position: its page's number and row.
    let mut held = [(u64::MAX, 0); POSITIONS];
    let records = payload.len() / 16;
    block.addr.reserve(records);
    for record in payload.chunks_exact(16).map(WireRecord::parse) {
        if !record.is_access() {
            fault = leave(record, &held, current, block).or(fault);
            continue;
        }
        let addr = record.w0 & ADDR;
        let position = tables[record.code()] << OTHERS_SHIFT | (record.w1 >> 48 & POSITION) as usize;
        held[position] = (addr >> PAGE_LOG2, block.addr.len() as u32);
        block.addr.push(addr);
        block.kind.push(record.kind());
        block.size.push((record.w0 >> 56) as u8);
        block.ip.push(record.w1 & ADDR);
        block.repeat.push(0);
    }
    fault
}

/// A record that is no access: a count of what was left out of a page, or that the page was touched or leaves.
#[inline]
fn leave(
    record: WireRecord,
    held: &[(u64, u32); POSITIONS],
    current: BlockUnderConstruction,
    block: &mut Block,
) -> Option<String> {
    if !record.is_canonical() {
        return None;
    }
    let (within, addr) = (record.w0 & IN_PAGE, record.w0 & ADDR & !IN_PAGE);
    let how = record.w0 >> 56;
    let (table, row) = ((how & !(LEAVES | TOUCHED)) as usize, block.addr.len());
    let kind = *[Kind::Load, Kind::Store, Kind::Fetch].get(table)?;
    if how & TOUCHED != 0 {
        block.push_touch(addr, kind);
    }
    if how & LEAVES != 0 {
        let others = (within >> OTHERS_SHIFT) as u8;
        block.push_leave(addr, kind, others, record.w1);
    }
    if how & (LEAVES | TOUCHED) != 0 {
        return None;
    }
    let (page, of) = held[table << OTHERS_SHIFT | (within & POSITION) as usize];
    if page == addr >> PAGE_LOG2 {
        FilterSlot { addr, row: of, kind, block: current.number }.credit(record.w1, row, current, block);
        None
    } else {
        block.events.push((row as u32, Event::Repeats { addr, kind, count: record.w1 }));
        Some("a count of accesses left out on a page that was not recorded".into())
    }
}
