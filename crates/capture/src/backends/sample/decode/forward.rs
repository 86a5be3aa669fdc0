//! Forward evaluation: the address that an instruction will access when it runs next.
//!
//! A load that overwrites its own base register (`mov rax,[rax]`, a pointer chase) leaves no trace of its address. In a
//! loop it runs again, and its next address follows from the sampled registers. That address, the next link of the same
//! chain, stands for the one that is lost.

use std::collections::HashSet;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::code::{calls, number, DecodedCode};
use super::expression::{self, Expression, MachineState, MAX_PARTS};

/// Most instructions that are followed on the paths from the sample to the next execution.
const MAX_INSTRUCTIONS: usize = 256;

/// The address of the memory operand of instruction `load` when control next comes to it from
/// `from`, where the sample was taken (`ip`).
pub fn next_address(code: &DecodedCode, load: usize, from: usize, ip: u64) -> Option<Expression> {
    let mut seen = HashSet::new();
    let mut open = vec![(from, PathState::sampled())];
    while let Some((index, mut state)) = open.pop() {
        let instruction = code.at(index)?;
        if index == load {
            if let Some(address) = expression::address(instruction, ip, &mut state) {
                return Some(address);
            }
            continue;
        }
        if seen.len() >= MAX_INSTRUCTIONS || !seen.insert(index) {
            continue;
        }
        state.step(code, index, instruction, ip);
        for next in code.successors(index) {
            open.push((next, state.clone()));
        }
    }
    None
}

/// The machine's state on one path.
#[derive(Clone)]
struct PathState {
    registers: [Option<Expression>; 16],
    /// Eight-byte slots of the stack frame that were written on the path.
    slots: Vec<(Expression, Option<Expression>)>,
}

impl MachineState for PathState {
    fn register(&mut self, register: u8) -> Option<Expression> {
        self.registers[usize::from(register & 15)].clone()
    }

    fn memory(&mut self, address: Expression, bytes: u8) -> Option<Expression> {
        // Memory not written on the path could be read, but only later than the instruction reads it.
        if bytes != 8 {
            return None;
        }
        self.slots.iter().rev().find(|(slot, _)| *slot == address).and_then(|(_, value)| value.clone())
    }
}

impl PathState {
    fn sampled() -> PathState {
        PathState {
            registers: std::array::from_fn(|number| Some(Expression::Register(number as u8))),
            slots: Vec::new(),
        }
    }

    fn step(&mut self, code: &DecodedCode, index: usize, instruction: &Instruction, ip: u64) {
        if let Some((address, value)) = self.stored(instruction, ip) {
            self.slots.push((address, value));
        }
        let before = self.clone();
        for register in (0..16).filter(|&register| code.writes(index, register)) {
            // A call gives back the stack pointer as it was.
            if calls(instruction) && register == 4 {
                continue;
            }
            let value = match calls(instruction) {
                true => None,
                false => expression::result(instruction, register, ip, &mut before.clone()),
            };
            self.registers[usize::from(register)] = value.filter(|value| value.parts() <= MAX_PARTS);
        }
    }

    /// A store to the stack frame. Stores by other pointers are taken not to go there.
    fn stored(&mut self, instruction: &Instruction, ip: u64) -> Option<(Expression, Option<Expression>)> {
        let frame = matches!(instruction.memory_base(), Register::RBP | Register::RSP);
        if !frame || instruction.op0_kind() != OpKind::Memory || instruction.memory_index() != Register::None {
            return None;
        }
        if matches!(
            instruction.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Call | Mnemonic::Jmp | Mnemonic::Push
        ) {
            return None;
        }
        let address = expression::address(instruction, ip, self)?;
        let whole = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register().is_gpr64();
        let value =
            whole.then(|| number(instruction.op1_register())).flatten().and_then(|number| self.register(number));
        Some((address, value))
    }
}
