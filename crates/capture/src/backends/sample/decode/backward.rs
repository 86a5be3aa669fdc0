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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::sample::perf_record::Registers;

    const RAX: u64 = 0x1000;
    const RCX: u64 = 0x2000;
    const RDX: u64 = 0x3000;
    const RSP: u64 = 0x5000;
    const RSI: u64 = 0x7000;
    const RDI: u64 = 0x8000;
    /// Memory at A holds A + this.
    const MEMORY: u64 = 0x10_0000;
    const NOP: u8 = 0x90;

    /// The address that the last of these instructions accessed, by the registers after it.
    fn told(parts: &[&[u8]]) -> Option<u64> {
        const BASE: u64 = 0x40_1000;
        let bytes = [&parts.concat()[..], &[NOP]].concat();
        let ip = BASE + bytes.len() as u64 - 1;
        let code = DecodedCode::function(&bytes, BASE);
        let end = code.index_of(ip).unwrap();
        let registers = Registers { general: std::array::from_fn(|number| 0x1000 * (number as u64 + 1)) };
        let address = previous_address(&code, end - 1, end, ip)?;
        address.evaluate(&registers, ip, &mut |addr, _| Some(addr + MEMORY))
    }

    #[test]
    fn a_known_change_of_a_register_is_taken_back() {
        // mov rax,[rcx+8] and then, behind the change, mov rax,[rax+16]
        let rcx_before = |change: &[u8]| {
            let address = told(&[&[0x48, 0x8b, 0x41, 0x08], change, &[0x48, 0x8b, 0x40, 0x10]])?;
            Some(address - 8 - MEMORY - 16)
        };
        for (name, change, expected) in [
            ("inc rcx", &[0x48, 0xff, 0xc1][..], Some(RCX - 1)),
            ("dec rcx", &[0x48, 0xff, 0xc9], Some(RCX + 1)),
            ("add rcx,5", &[0x48, 0x83, 0xc1, 5], Some(RCX - 5)),
            ("add rcx,-128", &[0x48, 0x83, 0xc1, 0x80], Some(RCX + 128)),
            ("sub rcx,5", &[0x48, 0x83, 0xe9, 5], Some(RCX + 5)),
            // The high half is lost.
            ("inc ecx", &[0xff, 0xc1], None),
            ("add ecx,5", &[0x83, 0xc1, 5], None),
            ("add rcx,rdx", &[0x48, 0x01, 0xd1], None),
            ("mov ecx,5", &[0xb9, 5, 0, 0, 0], None),
            ("pop rcx", &[0x59], None),
            ("inc rcx; inc rcx", &[0x48, 0xff, 0xc1, 0x48, 0xff, 0xc1], None),
        ] {
            assert_eq!(rcx_before(change), expected, "{name}");
        }
        // mov rax,[rsp+8]; …; mov rax,[rax+16]
        let rsp_before = |change: &[u8]| {
            let address = told(&[&[0x48, 0x8b, 0x44, 0x24, 0x08], change, &[0x48, 0x8b, 0x40, 0x10]])?;
            Some(address - 8 - MEMORY - 16)
        };
        for (name, change, expected) in [
            ("push rbx", &[0x53][..], Some(RSP + 8)),
            ("push bx", &[0x66, 0x53], Some(RSP + 2)),
            ("pop rbx", &[0x5b], Some(RSP - 8)),
            ("sub rsp,24", &[0x48, 0x83, 0xec, 24], Some(RSP + 24)),
            ("pop rsp", &[0x5c], None),
            ("pop [rsp+8]", &[0x8f, 0x44, 0x24, 0x08], None),
        ] {
            assert_eq!(rsp_before(change), expected, "{name}");
        }
    }

    #[test]
    fn a_copy_tells_what_was_overwritten() {
        const LOAD: &[u8] = &[0x48, 0x8b, 0x40, 0x08]; // mov rax,[rax+8]
        for (name, before, expected) in [
            ("mov rdx,rax", &[0x48, 0x89, 0xc2][..], Some(RDX + 8)),
            ("mov rdx,rax; inc rcx", &[0x48, 0x89, 0xc2, 0x48, 0xff, 0xc1], Some(RDX + 8)),
            ("mov rdx,rax; inc rdx", &[0x48, 0x89, 0xc2, 0x48, 0xff, 0xc2], None),
            ("mov edx,eax", &[0x89, 0xc2], None),
            ("mov rdx,rbx", &[0x48, 0x89, 0xda], None),
            ("mov rdx,5", &[0x48, 0xc7, 0xc2, 5, 0, 0, 0], None),
            ("mov rdx,[rax]", &[0x48, 0x8b, 0x10], None),
            ("mov [rdi],rax", &[0x48, 0x89, 0x07], None),
            ("add rdx,rax", &[0x48, 0x01, 0xc2], None),
            // The callee may come back with anything in it.
            ("mov rdx,rax; call", &[0x48, 0x89, 0xc2, 0xe8, 0, 0, 0, 0], None),
            // je to the load, which may then have run without the copy; and je to the copy.
            ("je; mov rdx,rax", &[0x74, 3, 0x48, 0x89, 0xc2], None),
            ("je 0; mov rdx,rax", &[0x74, 0, 0x48, 0x89, 0xc2], Some(RDX + 8)),
        ] {
            assert_eq!(told(&[before, LOAD]), expected, "{name}");
        }
        assert_eq!(told(&[&[0x48, 0x8b, 0x49, 0x08]]), None, "mov rcx,[rcx+8] after nothing");
        assert_eq!(told(&[&[0x48, 0x8b, 0x48, 0x08]]), Some(RAX + 8), "mov rcx,[rax+8]");
    }

    #[test]
    fn a_value_is_recomputed_from_six_instructions_at_most() {
        // lea rax,[rdi+8]; add rax,rsi …; mov rax,[rax+16]
        let after = |adds: usize| {
            let adds = [0x48, 0x01, 0xf0].repeat(adds);
            told(&[&[0x48, 0x8d, 0x47, 0x08], &adds, &[0x48, 0x8b, 0x40, 0x10]])
        };
        assert_eq!(after(0), Some(RDI + 8 + 16));
        assert_eq!(after(5), Some(RDI + 8 + 5 * RSI + 16));
        assert_eq!(after(6), None);
    }
}
