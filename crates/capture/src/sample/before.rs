//! What a register held before an instruction, told by what the registers hold after it.
//!
//! A sample has the registers as they are *after* the load that the program waited for. Where the
//! load overwrote its own base register, the old value can often be had from a copy, from the
//! instruction that made it, or from the memory that it was loaded from.

use iced_x86::{Mnemonic, OpKind, Register};

use super::code::{calls, number, Code64};
use super::value::{self, is_immediate, Operands, Value, MAX_PARTS};

/// How many instructions back a value is followed.
const MAX_STEPS: usize = 24;
/// How many instructions' results may go into one value.
const MAX_DEPTH: usize = 6;

/// The address of the explicit memory operand of instruction `at` as it was when that was executed,
/// by the registers right before instruction `end` of the same straight run; the sample has `ip` as
/// the next instruction.
pub fn address_before(code: &Code64, at: usize, end: usize, ip: u64) -> Option<Value> {
    value::address(code.at(at)?, ip, &mut At { code, end, ip, at, depth: MAX_DEPTH })
}

/// The state right before instruction `at`.
struct At<'a> {
    code: &'a Code64,
    end: usize,
    ip: u64,
    at: usize,
    depth: usize,
}

impl Operands for At<'_> {
    fn register(&mut self, register: u8) -> Option<Value> {
        if self.unchanged_from(self.at, register) {
            return Some(Value::Register(register));
        }
        self.undone(register).or_else(|| self.remade(register))
    }

    fn memory(&mut self, address: Value, bytes: u8) -> Option<Value> {
        Some(Value::Memory(Box::new(address), bytes))
    }
}

impl At<'_> {
    fn unchanged_from(&self, from: usize, register: u8) -> bool {
        (from..self.end).all(|index| !self.code.writes(index, register))
    }

    /// The value now, with a known change by the only instruction that changed it taken back.
    fn undone(&self, register: u8) -> Option<Value> {
        let mut changed = (self.at..self.end).filter(|&index| self.code.writes(index, register));
        let (only, None) = (changed.next()?, changed.next()) else { return None };
        let instruction = self.code.at(only)?;
        const RSP: u8 = 4;
        let number = || is_immediate(instruction.op_kind(1)).then(|| instruction.immediate(1) as i64);
        let change = match instruction.mnemonic() {
            Mnemonic::Push => Some(i64::from(instruction.stack_pointer_increment())),
            // `pop [rsp]` computes its address after the change, `pop rsp` loses it.
            Mnemonic::Pop if register == RSP => (instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() != Register::RSP)
                .then(|| i64::from(instruction.stack_pointer_increment())),
            _ if instruction.op0_kind() != OpKind::Register || !instruction.op0_register().is_gpr64() => None,
            Mnemonic::Inc => Some(1),
            Mnemonic::Dec => Some(-1),
            Mnemonic::Add => number(),
            Mnemonic::Sub => number().map(i64::wrapping_neg),
            _ => None,
        };
        Some(Value::Register(register).plus(change?.wrapping_neg() as u64))
    }

    /// The value from a copy that is still there, or from what the instruction that made it was given.
    fn remade(&self, register: u8) -> Option<Value> {
        let depth = self.depth.checked_sub(1)?;
        let mut at = self.at;
        for _ in 0..MAX_STEPS {
            // Beyond a place that branches lead to, nobody knows which way we came.
            if self.code.is_branch_target(at) {
                return None;
            }
            at = self.code.falls_from(at)?;
            let instruction = self.code.at(at)?;
            if calls(instruction) {
                return None;
            }
            if self.code.writes(at, register) {
                let value = value::result(instruction, register, self.ip, &mut At { at, depth, ..*self });
                return value.filter(|value| value.parts() <= MAX_PARTS);
            }
            let copies = instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_kind() == OpKind::Register
                && instruction.op1_kind() == OpKind::Register
                && instruction.op1_register().is_gpr64()
                && number(instruction.op1_register()) == Some(register);
            if copies {
                let copy = number(instruction.op0_register())?;
                if self.unchanged_from(at + 1, copy) {
                    return Some(Value::Register(copy));
                }
            }
        }
        None
    }
}
