//! ChampSim's binary traces: an instruction in 64 bytes (`input_instr` in its `inc/trace_instruction.h`).

use std::collections::VecDeque;

use super::input::Input;
use super::parser::{ImportedAccess, ImportedColumns, ParsedItem, Parser};
use crate::damage::DamageLog;
use crate::native::u64_at;
use crate::{Kind, TraceError, TraceInfo, BLOCK_ACCESSES};

/// Bytes of an instruction: its address (8), is it a branch (1), was it taken (1), registers written
/// (2) and read (4), addresses written (2 × 8) and read (4 × 8), 0 = none.
pub(crate) const RECORD: usize = 64;
/// Where the written addresses begin.
pub(crate) const STORES_AT: usize = 16;
/// Where the read addresses begin.
pub(crate) const LOADS_AT: usize = 32;

/// Whether the bytes can be the start of such a trace. There is no magic, so: the two flags are flags, no address is in
/// the middle of the 64-bit space where no processor has any, and there is an instruction address.
pub(crate) fn looks_like(head: &[u8]) -> bool {
    let mut records = head.chunks_exact(RECORD).take(256).peekable();
    let canonical = |a: u64| a >> 56 == 0 || a >> 56 == 0xff;
    records.peek().is_some()
        && records.all(|r| {
            let addresses = [0].into_iter().chain((STORES_AT..RECORD).step_by(8));
            let mut addresses = addresses.map(|at| u64_at(r, at));
            r[8] <= 1 && r[9] <= 1 && addresses.clone().any(|a| a != 0) && addresses.all(canonical)
        })
}

/// ChampSim's records. Loads are taken to come before stores; sizes and threads are not recorded.
#[derive(Default)]
pub(crate) struct ChampSim {
    offset: u64,
}

impl Parser for ChampSim {
    fn parse(
        &mut self,
        input: &mut Input,
        items: &mut VecDeque<ParsedItem>,
        damage: &mut DamageLog,
    ) -> Result<bool, TraceError> {
        let enough = items.len() + BLOCK_ACCESSES;
        while items.len() < enough {
            let mut record = [0; RECORD];
            let n = input.read_full(&mut record)?;
            if n < RECORD {
                if n > 0 {
                    damage.push(self.offset, n as u64, "cut off in a record of 64 bytes");
                }
                input.note_fault(self.offset, damage);
                return Ok(false);
            }
            self.offset += RECORD as u64;
            if record[8] > 1 || record[9] > 1 {
                damage.push(
                    self.offset - RECORD as u64,
                    RECORD as u64,
                    "not a record of ChampSim's: a flag is neither 0 nor 1",
                );
                continue;
            }
            let ip = u64_at(&record, 0);
            let mut put = |kind, addr| {
                if addr != 0 {
                    items.push_back(ParsedItem::Access(ImportedAccess { kind, addr, size: 0, ip, repeat: 0 }));
                }
            };
            put(Kind::Fetch, ip);
            (LOADS_AT..RECORD).step_by(8).for_each(|at| put(Kind::Load, u64_at(&record, at)));
            (STORES_AT..LOADS_AT).step_by(8).for_each(|at| put(Kind::Store, u64_at(&record, at)));
        }
        Ok(true)
    }

    fn columns(&self) -> ImportedColumns {
        ImportedColumns { size: false, ip: true, repeat: false }
    }

    fn describe(&self, info: &mut TraceInfo) {
        info.recorder = "champsim-import".into();
    }
}
