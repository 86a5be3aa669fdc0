//! Backward evaluation: the address that an instruction accessed, from the registers after it ran.
//!
//! A sample has the registers as they are *after* the load that the program waited for. Where the load overwrote its
//! own base register, the old value often follows from a copy, from the instruction that computed it, or from the
//! memory that it was loaded from.

use iced_x86::{Mnemonic, OpKind, Register};

use super::code::{calls, number, DecodedCode};
use super::expression::{self, is_immediate, Expression, MachineState, MAX_PARTS};

/// Most instructions back that a value is followed.
const MAX_STEPS: usize = 24;
/// Most instructions whose results go into one value.
const MAX_DEPTH: usize = 6;

/// The address of the explicit memory operand of instruction `at` as it was when that was executed,
/// by the registers right before instruction `end` of the same straight run; the sample has `ip` as
/// the next instruction.
pub fn previous_address(code: &DecodedCode, at: usize, end: usize, ip: u64) -> Option<Expression> {
    expression::address(code.at(at)?, ip, &mut StateBefore { code, end, ip, at, depth: MAX_DEPTH })
}

/// The machine's state right before instruction `at`.
struct StateBefore<'a> {
    code: &'a DecodedCode,
    end: usize,
    ip: u64,
    at: usize,
    depth: usize,
}

impl MachineState for StateBefore<'_> {
    fn register(&mut self, register: u8) -> Option<Expression> {
        if self.unchanged_from(self.at, register) {
            return Some(Expression::Register(register));
        }
        self.before_change(register).or_else(|| self.recomputed(register))
    }

    fn memory(&mut self, address: Expression, bytes: u8) -> Option<Expression> {
        Some(Expression::Memory(Box::new(address), bytes))
    }
}

impl StateBefore<'_> {
    fn unchanged_from(&self, from: usize, register: u8) -> bool {
        (from..self.end).all(|index| !self.code.writes(index, register))
    }

    /// The present value with its only change since taken back, where that change is known.
    fn before_change(&self, register: u8) -> Option<Expression> {
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
        Some(Expression::Register(register).plus(change?.wrapping_neg() as u64))
    }

    /// The value from a copy that is still there, or from the operands of the instruction that computed it.
    fn recomputed(&self, register: u8) -> Option<Expression> {
        let depth = self.depth.checked_sub(1)?;
        let mut at = self.at;
        for _ in 0..MAX_STEPS {
            // Control may have come to a branch target from elsewhere.
            if self.code.is_branch_target(at) {
                return None;
            }
            at = self.code.falls_from(at)?;
            let instruction = self.code.at(at)?;
            if calls(instruction) {
                return None;
            }
            if self.code.writes(at, register) {
                let value = expression::result(instruction, register, self.ip, &mut StateBefore { at, depth, ..*self });
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
                    return Some(Expression::Register(copy));
                }
            }
        }
        None
    }
}
