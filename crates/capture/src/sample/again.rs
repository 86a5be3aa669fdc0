//! Where an instruction goes the next time.
//!
//! A load that overwrites its own base register (`mov rax,[rax]`, a pointer chase) leaves no trace
//! of where it went. But in a loop it comes again, and the registers have, or lead to, its next
//! address: the next link of the same chain, which stands for this one.

use std::collections::HashSet;

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::code::{calls, number, Code64};
use super::value::{self, Operands, Value, MAX_PARTS};

/// How many instructions may lie on the ways to the next time.
const MAX_INSTRUCTIONS: usize = 256;

/// The address of the memory operand of instruction `load` when control next comes to it from
/// `from`, where the sample was taken (`ip`).
pub fn address_again(code: &Code64, load: usize, from: usize, ip: u64) -> Option<Value> {
    let mut seen = HashSet::new();
    let mut open = vec![(from, State::sampled())];
    while let Some((index, mut state)) = open.pop() {
        let instruction = code.at(index)?;
        if index == load {
            if let Some(address) = value::address(instruction, ip, &mut state) {
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

/// What is known on a way.
#[derive(Clone)]
struct State {
    registers: [Option<Value>; 16],
    /// Eight-byte slots of the stack frame that were written on the way.
    slots: Vec<(Value, Option<Value>)>,
}

impl Operands for State {
    fn register(&mut self, register: u8) -> Option<Value> {
        self.registers[usize::from(register & 15)].clone()
    }

    fn memory(&mut self, address: Value, bytes: u8) -> Option<Value> {
        // What was not written on the way could be read, but later than it matters.
        if bytes != 8 {
            return None;
        }
        self.slots.iter().rev().find(|(slot, _)| *slot == address).and_then(|(_, value)| value.clone())
    }
}

impl State {
    fn sampled() -> State {
        State { registers: std::array::from_fn(|number| Some(Value::Register(number as u8))), slots: Vec::new() }
    }

    fn step(&mut self, code: &Code64, index: usize, instruction: &Instruction, ip: u64) {
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
                false => value::result(instruction, register, ip, &mut before.clone()),
            };
            self.registers[usize::from(register)] = value.filter(|value| value.parts() <= MAX_PARTS);
        }
    }

    /// A store to the stack frame. Stores by other pointers are taken not to go there.
    fn stored(&mut self, instruction: &Instruction, ip: u64) -> Option<(Value, Option<Value>)> {
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
        let address = value::address(instruction, ip, self)?;
        let whole = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register().is_gpr64();
        let value =
            whole.then(|| number(instruction.op1_register())).flatten().and_then(|number| self.register(number));
        Some((address, value))
    }
}
