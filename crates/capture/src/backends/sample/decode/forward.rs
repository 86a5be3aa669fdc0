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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::sample::perf_record::Registers;

    const RAX: u64 = 0x1000;
    const RCX: u64 = 0x2000;
    const RBX: u64 = 0x4000;

    /// The next address of the instruction at offset `load`, of a sample at offset `from`.
    fn told(bytes: &[u8], load: usize, from: usize) -> Option<u64> {
        const BASE: u64 = 0x40_1000;
        let code = DecodedCode::function(bytes, BASE);
        let index = |offset: usize| code.index_of(BASE + offset as u64).unwrap();
        let ip = BASE + from as u64;
        let registers = Registers { general: std::array::from_fn(|number| 0x1000 * (number as u64 + 1)) };
        next_address(&code, index(load), index(from), ip)?.evaluate(&registers, ip, &mut |_, _| None)
    }

    /// The same, of a loop: these parts and a jump back. The load is the second part, the sample before the third.
    fn told_in_loop(parts: &[&[u8]]) -> Option<u64> {
        let mut bytes = parts.concat();
        bytes.extend([0xeb, (bytes.len() as u8 + 2).wrapping_neg()]);
        let load = parts[0].len();
        told(&bytes, load, load + parts[1].len())
    }

    #[test]
    fn the_path_to_the_next_round_is_computed() {
        // mov rax,[rax+8]; add rax,rcx
        assert_eq!(told_in_loop(&[&[], &[0x48, 0x8b, 0x40, 0x08], &[0x48, 0x01, 0xc8]]), Some(RAX + RCX + 8));
        // mov rax,[rax+8]; mov rax,[rbx]: not before that is loaded.
        assert_eq!(told_in_loop(&[&[], &[0x48, 0x8b, 0x40, 0x08], &[0x48, 0x8b, 0x03]]), None);
        // 0: mov rax,[rax]; 3: nop; 4: dec rcx; 7: jne 4; 9: ret: another loop, which never comes back.
        assert_eq!(told(&[0x48, 0x8b, 0x00, 0x90, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3], 0, 3), None);
    }

    #[test]
    fn a_call_keeps_its_callers_registers_and_stack() {
        const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
        // mov rbx,[rbx+8] · mov rax,[rax+8]
        assert_eq!(told_in_loop(&[&[], &[0x48, 0x8b, 0x5b, 0x08], CALL]), Some(RBX + 8));
        assert_eq!(told_in_loop(&[&[], &[0x48, 0x8b, 0x40, 0x08], CALL]), None);
        // mov rax,[rsp+8]; mov rax,[rax]; mov [rsp+8],rax
        let (read, load, write) =
            (&[0x48, 0x8b, 0x44, 0x24, 0x08][..], &[0x48, 0x8b, 0x00][..], &[0x48, 0x89, 0x44, 0x24, 0x08][..]);
        assert_eq!(told_in_loop(&[read, load, write, CALL]), Some(RAX));
        // A push moves the slot up: mov rax,[rsp+16] reads it.
        assert_eq!(told_in_loop(&[&[0x48, 0x8b, 0x44, 0x24, 0x10], load, write, &[0x53]]), Some(RAX));
        assert_eq!(told_in_loop(&[read, load, write, &[0x53]]), None);
    }

    #[test]
    fn a_slot_of_the_frame_holds_what_was_stored_there_last() {
        const READ: &[u8] = &[0x48, 0x8b, 0x45, 0xf8]; // mov rax,[rbp-8]
        for (name, read, store, expected) in [
            ("mov [rbp-8],rax", READ, &[0x48, 0x89, 0x45, 0xf8][..], Some(RAX)),
            ("mov [rbp-8],rcx", READ, &[0x48, 0x89, 0x4d, 0xf8], Some(RCX)),
            ("… and then rcx", READ, &[0x48, 0x89, 0x45, 0xf8, 0x48, 0x89, 0x4d, 0xf8], Some(RCX)),
            ("… and cmp [rbp-8],rcx", READ, &[0x48, 0x89, 0x45, 0xf8, 0x48, 0x39, 0x4d, 0xf8], Some(RAX)),
            ("… and add [rbp-8],rax", READ, &[0x48, 0x89, 0x45, 0xf8, 0x48, 0x01, 0x45, 0xf8], None),
            ("add [rbp-8],rax", READ, &[0x48, 0x01, 0x45, 0xf8], None),
            ("mov [rbp-8],eax", READ, &[0x89, 0x45, 0xf8], None),
            ("mov qword [rbp-8],5", READ, &[0x48, 0xc7, 0x45, 0xf8, 5, 0, 0, 0], None),
            ("mov [rbp-16],rax", READ, &[0x48, 0x89, 0x45, 0xf0], None),
            ("mov eax,[rbp-8]", &[0x8b, 0x45, 0xf8], &[0x48, 0x89, 0x45, 0xf8], None),
            // Other places in memory are not followed: [rbp+rcx*8-8] and [rdi].
            ("an index", &[0x48, 0x8b, 0x44, 0xcd, 0xf8], &[0x48, 0x89, 0x44, 0xcd, 0xf8], None),
            ("a pointer", &[0x48, 0x8b, 0x07], &[0x48, 0x89, 0x07], None),
        ] {
            // mov rax,[rax]
            assert_eq!(told_in_loop(&[read, &[0x48, 0x8b, 0x00], store]), expected, "{name}");
        }
    }
}
