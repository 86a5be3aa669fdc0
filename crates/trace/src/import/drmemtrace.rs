//! DynamoRIO's drmemtrace, final traces: records of 12 bytes (type, size, address), numbered in
//! `clients/drcachesim/common/trace_entry.h`.

use std::collections::{HashMap, VecDeque};

use super::input::Input;
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem, Parser};
use crate::damage::DamageLog;
use crate::native::u64_at;
use crate::{Event, Kind, TraceError, TraceInfo, BLOCK_ACCESSES};

/// Bytes of a record.
const RECORD: usize = 12;
/// Highest version that can be; today's are below 10.
const MAX_VERSION: u64 = 64;

// trace_type_t
const READ: u16 = 0;
const WRITE: u16 = 1;
const PREFETCH: u16 = 2;
const PREFETCH_INSTR: u16 = 9;
const INSTR: u16 = 10;
const INSTR_RETURN: u16 = 16;
const INSTR_BUNDLE: u16 = 17;
const DATA_FLUSH_END: u16 = 21;
const THREAD: u16 = 22;
const THREAD_EXIT: u16 = 23;
const PID: u16 = 24;
const HEADER: u16 = 25;
const FOOTER: u16 = 26;
const HARDWARE_PREFETCH: u16 = 27;
const MARKER: u16 = 28;
const INSTR_NO_FETCH: u16 = 29;
const INSTR_MAYBE_FETCH: u16 = 30;
const INSTR_SYSENTER: u16 = 31;
const PREFETCH_READ_L1_NT: u16 = 32;
const PREFETCH_WRITE_L3_NT: u16 = 46;
const ENCODING: u16 = 47;
const INSTR_TAKEN_JUMP: u16 = 48;
const INSTR_UNTAKEN_JUMP: u16 = 49;

/// trace_marker_type_t: the CPU that the thread runs on.
const MARKER_CPU_ID: u16 = 3;
/// Low bits of its value that hold the CPU; the others hold the node.
const CPU_BITS: u64 = 0xfff;

/// Whether the bytes begin with a header record.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    head.len() >= RECORD && head[..4] == [HEADER as u8, 0, 0, 0] && (1..=MAX_VERSION).contains(&u64_at(head, 4))
}

/// drmemtrace's records. Prefetches are left out, and counted in a marker at the end.
#[derive(Default)]
pub(crate) struct DrMemTrace {
    offset: u64,
    process: u32,
    thread: u32,
    cpu: HashMap<u32, u32>,
    /// Address and length of the instruction now, and what it fetches.
    ip: u64,
    length: u64,
    prefetches: u64,
}

impl DrMemTrace {
    fn record(
        &mut self,
        kind: u16,
        size: u16,
        value: u64,
        items: &mut VecDeque<ParsedItem>,
    ) -> Result<(), &'static str> {
        let bytes = size.min(255) as u8;
        let id = || u32::try_from(value).map_err(|_| "a thread or process id of more than 32 bits");
        match kind {
            READ | WRITE => {
                let kind = if kind == READ { Kind::Load } else { Kind::Store };
                items.push_back(ParsedItem::Access(ImportedAccess {
                    kind,
                    addr: value,
                    size: bytes,
                    ip: self.ip,
                    repeat: 0,
                }));
            }
            INSTR..=INSTR_RETURN | INSTR_MAYBE_FETCH | INSTR_SYSENTER | INSTR_TAKEN_JUMP | INSTR_UNTAKEN_JUMP => {
                self.fetch(value, u64::from(size), items);
            }
            INSTR_NO_FETCH => (self.ip, self.length) = (value, u64::from(size)),
            INSTR_BUNDLE => {
                let lengths = value.to_le_bytes();
                for &length in lengths.get(..usize::from(size)).ok_or("more than 8 instructions in a bundle")? {
                    self.fetch(self.ip.wrapping_add(self.length), u64::from(length), items);
                }
            }
            THREAD => {
                self.thread = id()?;
                items.push_back(ParsedItem::Thread(self.process, self.thread));
            }
            PID => {
                self.process = id()?;
                items.push_back(ParsedItem::Thread(self.process, self.thread));
            }
            THREAD_EXIT => items.push_back(ParsedItem::Event(Event::ThreadExit { thread: id()? })),
            MARKER if size == MARKER_CPU_ID && value != u64::MAX => {
                let cpu = (value & CPU_BITS) as u32;
                if self.cpu.insert(self.thread, cpu) != Some(cpu) {
                    items.push_back(ParsedItem::Event(Event::Migrate { cpu }));
                }
            }
            PREFETCH..=PREFETCH_INSTR | HARDWARE_PREFETCH | PREFETCH_READ_L1_NT..=PREFETCH_WRITE_L3_NT => {
                self.prefetches += 1;
            }
            INSTR_BUNDLE..=DATA_FLUSH_END | HEADER | FOOTER | MARKER | ENCODING => {}
            _ => return Err("a record of unknown type"),
        }
        Ok(())
    }

    fn fetch(&mut self, ip: u64, length: u64, items: &mut VecDeque<ParsedItem>) {
        (self.ip, self.length) = (ip, length);
        let size = length.min(255) as u8;
        items.push_back(ParsedItem::Access(ImportedAccess { kind: Kind::Fetch, addr: ip, size, ip, repeat: 0 }));
    }
}

impl Parser for DrMemTrace {
    fn parse(
        &mut self,
        input: &mut Input,
        items: &mut VecDeque<ParsedItem>,
        damage: &mut DamageLog,
    ) -> Result<bool, TraceError> {
        let enough = items.len() + BLOCK_ACCESSES;
        // Records may yield nothing, so they are counted too.
        for _ in 0..BLOCK_ACCESSES {
            if items.len() >= enough {
                break;
            }
            let mut r = [0; RECORD];
            let n = input.read_full(&mut r)?;
            if n < RECORD {
                if n > 0 {
                    damage.push(self.offset, n as u64, "cut off in a record of 12 bytes");
                }
                input.note_fault(self.offset, damage);
                if self.prefetches > 0 {
                    let text = format!("{} prefetches left out on import", std::mem::take(&mut self.prefetches));
                    items.push_back(ParsedItem::Event(Event::Marker { text }));
                }
                return Ok(false);
            }
            let (kind, size) = (u16::from_le_bytes([r[0], r[1]]), u16::from_le_bytes([r[2], r[3]]));
            if let Err(bad) = self.record(kind, size, u64_at(&r, 4), items) {
                damage.push(self.offset, RECORD as u64, bad);
            }
            self.offset += RECORD as u64;
        }
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: true, ip: true, repeat: false }
    }

    fn describe(&self, info: &mut TraceInfo) {
        info.recorder = "drmemtrace-import".into();
    }
}
