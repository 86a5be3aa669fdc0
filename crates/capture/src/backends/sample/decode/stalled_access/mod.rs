//! Which access a sample at an address stalled on.
//!
//! A processor takes an interrupt between two instructions, after the oldest unfinished one has finished. A program
//! that waits for memory is therefore interrupted right **after** the waiting instruction, with that instruction's
//! results in the registers.

use iced_x86::{Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use lookaside_trace::Kind;

use super::backward::previous_address;
use super::code::{calls, number, DecodedCode};
use super::expression::Expression;
use super::forward::next_address;

/// The access that all samples at one address stalled on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalledAccess {
    /// Load or store; a read-modify-write waits for its load.
    pub kind: Kind,
    /// Bytes; 0 = not known.
    pub size: u8,
    /// From the sampled address to the accessing instruction, modulo 2^64.
    pub ip_offset: u64,
    /// Its address, from a sample's registers; `None` = not known.
    pub address: Option<Expression>,
    /// The register that the access loaded and its bytes (8 or 4), where it is intact: the memory at a right address
    /// holds the same.
    pub loaded: Option<(u8, u8)>,
}

impl StalledAccess {
    /// The access of samples at `ip`; `None` where the last instruction accessed no memory or is not known.
    pub fn new(code: &DecodedCode, ip: u64) -> Option<StalledAccess> {
        let index = code.index_of(ip)?;
        let at_ip = code.at(index)?;
        if is_string(at_ip) && (at_ip.has_rep_prefix() || at_ip.has_repne_prefix()) {
            // It is interrupted in its midst, and its registers point to what comes next.
            return string_access(at_ip, ip, 0);
        }
        let last = *code.predecessors(index).first()?;
        let instruction = code.at(last)?;
        if calls(instruction) {
            // The callee's return was the last: it loaded the return address.
            return Some(stack_access(Kind::Load, 8, -8, 0));
        }
        if let Some(compare) = fused_compare(code, last) {
            return explicit_access(code, compare, last + 1, index, ip);
        }
        let ip_offset = instruction.ip().wrapping_sub(ip);
        if has_memory_operand(instruction) {
            return explicit_access(code, last, last + 1, index, ip);
        }
        if is_string(instruction) {
            let size = instruction.memory_size().size() as u64;
            return string_access(instruction, ip, size);
        }
        match instruction.mnemonic() {
            Mnemonic::Push => Some(stack_access(Kind::Store, 8, 0, ip_offset)),
            Mnemonic::Pop => Some(stack_access(Kind::Load, 8, -8, ip_offset)),
            Mnemonic::Leave => Some(stack_access(Kind::Load, 8, -8, ip_offset)),
            _ => None,
        }
    }
}

/// The compare with a memory operand that runs as one with the conditional branch `branch`.
fn fused_compare(code: &DecodedCode, branch: usize) -> Option<usize> {
    if code.at(branch)?.flow_control() != FlowControl::ConditionalBranch || code.is_branch_target(branch) {
        return None;
    }
    let compare = code.falls_from(branch)?;
    let instruction = code.at(compare)?;
    let fuses = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    (fuses && has_memory_operand(instruction)).then_some(compare)
}

/// The instruction `at` has an explicit memory operand, and `end` is one past the last that was executed.
fn explicit_access(code: &DecodedCode, at: usize, end: usize, sampled: usize, ip: u64) -> Option<StalledAccess> {
    let instruction = code.at(at)?;
    let operand = (0..instruction.op_count()).find(|&i| instruction.op_kind(i) == OpKind::Memory)?;
    let access = InstructionInfoFactory::new().info(instruction).op_access(operand);
    let kind = match access {
        OpAccess::None | OpAccess::NoMemAccess => return None,
        OpAccess::Write | OpAccess::CondWrite => Kind::Store,
        _ => Kind::Load,
    };
    let before = previous_address(code, at, end, ip);
    let address = match before {
        // Memory may have changed since: the next address is the surer one.
        None | Some(_) if before.as_ref().is_none_or(Expression::needs_memory) => {
            next_address(code, at, sampled, ip).or(before)
        }
        before => before,
    };
    let loaded = match (instruction.mnemonic(), instruction.op0_kind(), instruction.op0_register()) {
        (Mnemonic::Mov, OpKind::Register, register) => {
            let bytes = register.size() as u8;
            number(register).filter(|_| bytes >= 4).map(|number| (number, bytes))
        }
        _ => None,
    };
    let size = u8::try_from(instruction.memory_size().size()).unwrap_or(0);
    Some(StalledAccess { kind, size, ip_offset: instruction.ip().wrapping_sub(ip), address, loaded })
}

/// `movs`, `lods`, `stos`, `cmps`, `scas`: `done_bytes` beyond the access are their pointers now.
/// The direction flag is taken to be clear, as the calling convention has it.
fn string_access(instruction: &Instruction, ip: u64, done_bytes: u64) -> Option<StalledAccess> {
    let loads = (0..instruction.op_count())
        .any(|i| matches!(instruction.op_kind(i), OpKind::MemorySegRSI | OpKind::MemorySegESI));
    let scans = matches!(instruction.mnemonic(), Mnemonic::Scasb | Mnemonic::Scasw | Mnemonic::Scasd | Mnemonic::Scasq);
    let pointer = number(if loads { Register::RSI } else { Register::RDI })?;
    let size = instruction.memory_size().size();
    Some(StalledAccess {
        kind: if loads || scans { Kind::Load } else { Kind::Store },
        size: u8::try_from(size).unwrap_or(0),
        ip_offset: instruction.ip().wrapping_sub(ip),
        address: Some(offset_from(pointer, (done_bytes as i64).wrapping_neg())),
        loaded: None,
    })
}

fn stack_access(kind: Kind, size: u8, from_rsp: i64, ip_offset: u64) -> StalledAccess {
    const RSP: u8 = 4;
    StalledAccess { kind, size, ip_offset, address: Some(offset_from(RSP, from_rsp)), loaded: None }
}

fn offset_from(register: u8, bytes: i64) -> Expression {
    Expression::Register(register).plus(bytes as u64)
}

fn is_string(instruction: &Instruction) -> bool {
    instruction.code() != Code::INVALID && instruction.is_string_instruction()
}

fn has_memory_operand(instruction: &Instruction) -> bool {
    let has = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    has && !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
}

#[cfg(test)]
mod tests;
