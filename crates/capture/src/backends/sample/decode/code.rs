//! Decoded x86-64 code, and which instructions may run right before and after each of its instructions.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

/// Decoded instructions in order of address. Addresses are those given to the decoder.
pub struct DecodedCode {
    instructions: Vec<Instruction>,
    /// General registers that each instruction writes, one bit each by machine number.
    writes: Vec<u16>,
    /// Direct branches, by target.
    branches_to: HashMap<u64, Vec<usize>>,
}

/// How far before the address decoding starts where a function's start is not known. The x86
/// encoding falls into step within a few instructions, whatever byte one starts at.
const RESYNC_BYTES: usize = 64;

impl DecodedCode {
    /// Decodes a whole function that starts at `start`.
    pub fn function(bytes: &[u8], start: u64) -> DecodedCode {
        let mut code = DecodedCode { instructions: Vec::new(), writes: Vec::new(), branches_to: HashMap::new() };
        let mut info = InstructionInfoFactory::new();
        for instruction in Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).iter() {
            let index = code.instructions.len();
            if let FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch = instruction.flow_control() {
                code.branches_to.entry(instruction.near_branch_target()).or_default().push(index);
            }
            let mut written = 0;
            for used in info.info(&instruction).used_registers() {
                let writes = matches!(
                    used.access(),
                    OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
                );
                if let Some(number) = number(used.register()).filter(|_| writes) {
                    written |= 1 << number;
                }
            }
            if calls(&instruction) {
                written |= CLOBBERED_BY_CALLS;
            }
            code.instructions.push(instruction);
            code.writes.push(written);
        }
        code
    }

    /// Decodes around `ip` where nobody knows the function's start: `bytes` start at `start`.
    /// The instruction boundaries before `ip` are those that most starting points agree on.
    pub fn around(bytes: &[u8], start: u64, ip: u64) -> Option<DecodedCode> {
        let offset = usize::try_from(ip.checked_sub(start)?).ok().filter(|&offset| offset < bytes.len())?;
        let first = offset.saturating_sub(RESYNC_BYTES);
        let mut votes: HashMap<u64, (usize, usize)> = HashMap::new();
        for from in first..offset {
            let mut before = None;
            for instruction in Decoder::with_ip(64, &bytes[from..], start + from as u64, DecoderOptions::NONE).iter() {
                if instruction.ip() >= ip {
                    if let Some(before) = before.filter(|_| instruction.ip() == ip) {
                        let vote = votes.entry(before).or_insert((0, from));
                        vote.0 += 1;
                    }
                    break;
                }
                if instruction.code() == Code::INVALID {
                    break;
                }
                before = Some(instruction.ip());
            }
        }
        // The earliest starting point of the majority.
        let from = votes.iter().max_by_key(|(&before, vote)| (vote.0, before)).map_or(offset, |(_, vote)| vote.1);
        Some(DecodedCode::function(bytes.get(from..)?, start + from as u64))
    }

    /// Addresses of the instructions at which straight runs begin: what branches of this stretch lead to, and what comes
    /// after a branch or a call.
    pub fn leaders(&self) -> Vec<u64> {
        let after = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| self.instructions.get(before));
            before.is_some_and(|before| !matches!(before.flow_control(), FlowControl::Next | FlowControl::Interrupt))
        };
        let leads = |at: &usize| after(*at) || self.is_branch_target(*at);
        let valid = |at: &usize| self.instructions[*at].code() != Code::INVALID;
        (0..self.instructions.len()).filter(leads).filter(valid).map(|at| self.instructions[at].ip()).collect()
    }

    /// The index of the instruction that starts at `ip`.
    pub fn index_of(&self, ip: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&ip, Instruction::ip).ok()
    }

    /// An instruction by its index.
    pub fn at(&self, index: usize) -> Option<&Instruction> {
        self.instructions.get(index)
    }

    /// The instruction may write this general register.
    pub fn writes(&self, index: usize, register: u8) -> bool {
        self.writes[index] & 1 << register != 0
    }

    /// A direct branch of this stretch of code goes to the instruction.
    pub fn is_branch_target(&self, index: usize) -> bool {
        self.branches_to.contains_key(&self.instructions[index].ip())
    }

    /// The instruction that runs before this one if no branch leads here.
    pub fn falls_from(&self, index: usize) -> Option<usize> {
        let before = index.checked_sub(1)?;
        let falls = !matches!(
            self.instructions[before].flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        );
        falls.then_some(before)
    }

    /// What may have run right before the instruction: branches to it, from further down first
    /// (a loop's end runs more often than its entry), then the instruction above it.
    pub fn predecessors(&self, index: usize) -> Vec<usize> {
        let branches = self.branches_to.get(&self.instructions[index].ip());
        let mut before: Vec<usize> = branches.into_iter().flatten().copied().collect();
        before.sort_by_key(|&branch| std::cmp::Reverse(branch));
        let above = self.falls_from(index);
        match before.first() {
            // Branches from above only: straight code is as likely.
            Some(&last) if last < index => before.splice(0..0, above).for_each(drop),
            _ => before.extend(above),
        }
        before.dedup();
        before
    }

    /// Where control can go after the instruction, within this stretch of code.
    pub fn successors(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let instruction = &self.instructions[index];
        let (next, target) = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => (true, false),
            FlowControl::ConditionalBranch => (true, true),
            FlowControl::UnconditionalBranch => (false, true),
            _ => (false, false),
        };
        let next = next.then_some(index + 1).filter(|&next| next < self.instructions.len());
        let target = target.then(|| self.index_of(instruction.near_branch_target())).flatten();
        next.into_iter().chain(target)
    }
}

/// RAX RCX RDX RSI RDI R8 to R11, by the System V convention.
const CLOBBERED_BY_CALLS: u16 = 0b1111_1100_0111;

/// Control leaves the function here and comes back.
pub fn calls(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// The machine's number of a general register of any width.
pub fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| (full as u32 - Register::RAX as u32) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    // 0: mov rax,[rbx]  3: test rax,rax  6: je 0  8: add rcx,8  12: jmp 3  14: ret
    const LOOP: [u8; 15] = [0x48, 0x8b, 0x03, 0x48, 0x85, 0xc0, 0x74, 0xf8, 0x48, 0x83, 0xc1, 0x08, 0xeb, 0xf5, 0xc3];

    #[test]
    fn knows_what_runs_before() {
        let code = DecodedCode::function(&LOOP, 0x1000);
        let at = |offset: u64| code.index_of(0x1000 + offset).unwrap();
        assert_eq!(code.index_of(0x1001), None);
        assert_eq!(code.leaders(), [0x1000, 0x1003, 0x1008, 0x100e]);
        // The loop's end first, then what stands above.
        assert_eq!(code.predecessors(at(3)), [at(12), at(0)]);
        assert_eq!(code.predecessors(at(0)), [at(6)]);
        assert_eq!(code.predecessors(at(8)), [at(6)]);
        assert!(code.predecessors(at(14)).is_empty());
        assert_eq!(code.successors(at(6)).collect::<Vec<_>>(), [at(8), at(0)]);
        assert_eq!(code.successors(at(12)).collect::<Vec<_>>(), [at(3)]);
        assert!(code.writes(at(0), 0) && code.writes(at(8), 1) && !code.writes(at(3), 0));
    }

    #[test]
    fn finds_boundaries_without_a_start() {
        let mut bytes = vec![0x90; 5];
        for _ in 0..4 {
            // mov rax,[rbx+rcx*8+0x12345678]; add rax,rdx
            bytes.extend([0x48, 0x8b, 0x84, 0xcb, 0x78, 0x56, 0x34, 0x12, 0x48, 0x01, 0xd0]);
        }
        let ip = 0x7000 + 5 + 3 * 11 + 8;
        let code = DecodedCode::around(&bytes, 0x7000, ip).unwrap();
        let index = code.index_of(ip).unwrap();
        assert_eq!(code.at(index - 1).map(Instruction::ip), Some(ip - 8));
        assert!(DecodedCode::around(&bytes, 0x7000, 0x6fff).is_none());
        assert!(DecodedCode::around(&bytes, 0x7000, 0x9000).is_none());
        // At the last byte and one past it.
        let end = 0x7000 + bytes.len() as u64;
        assert!(DecodedCode::around(&bytes, 0x7000, end - 1).is_some());
        assert!(DecodedCode::around(&bytes, 0x7000, end).is_none());
    }

    #[test]
    fn boundaries_are_found_from_a_few_bytes_before() {
        // mov rax,[rbx+rcx*8+0x12345678]; add rax,rdx
        let bytes = [0x48, 0x8b, 0x84, 0xcb, 0x78, 0x56, 0x34, 0x12, 0x48, 0x01, 0xd0].repeat(20);
        let ip = 0x7000 + 15 * 11;
        let code = DecodedCode::around(&bytes, 0x7000, ip).unwrap();
        let first = code.at(0).map(Instruction::ip).unwrap();
        assert!((ip - 64..ip - 3).contains(&first), "{first:x}");
        // From a round before on they are all right.
        for offset in [-11i64, -3, 0, 8, 11] {
            assert!(code.index_of(ip.wrapping_add_signed(offset)).is_some(), "{offset}");
        }
        assert_eq!(code.index_of(ip), code.index_of(ip - 3).map(|before| before + 1));
    }

    #[test]
    fn straight_code_comes_before_a_branch_from_above() {
        // 0: je 3  2: nop  3: nop  4: je 4  6: je 8  8: nop
        let code = DecodedCode::function(&[0x74, 0x01, 0x90, 0x90, 0x74, 0xfe, 0x74, 0x00, 0x90], 0x1000);
        assert_eq!(code.predecessors(2), [1, 0]);
        // A branch to itself is a loop; one to the next instruction is one way to it, not two.
        assert_eq!(code.predecessors(3), [3, 2]);
        assert_eq!(code.predecessors(5), [4]);
        let targets: Vec<usize> = (0..6).filter(|&index| code.is_branch_target(index)).collect();
        assert_eq!(targets, [2, 3, 5]);
        let successors = |index| code.successors(index).collect::<Vec<_>>();
        assert_eq!((successors(1), successors(3)), (vec![2], vec![4, 3]));
        assert!(successors(5).is_empty(), "nothing is known beyond the end");
    }

    #[test]
    fn a_call_leaves_the_registers_that_its_callee_has_to_keep() {
        // 0: call +0  5: call rax  7: add r12,1  b: jmp rax  d: nop
        let bytes = [0xe8, 0, 0, 0, 0, 0xff, 0xd0, 0x49, 0x83, 0xc4, 0x01, 0xff, 0xe0, 0x90];
        let code = DecodedCode::function(&bytes, 0x1000);
        let written = |index| (0..16).filter(|&register| code.writes(index, register)).collect::<Vec<u8>>();
        // By the System V convention RBX, RBP and R12 to R15; the stack pointer moves while the callee runs.
        let lost = [0, 1, 2, 4, 6, 7, 8, 9, 10, 11];
        assert_eq!((written(0), written(1), written(2)), (lost.to_vec(), lost.to_vec(), vec![12]));
        let called: Vec<bool> = (0..5).map(|index| calls(code.at(index).unwrap())).collect();
        assert_eq!(called, [true, true, false, false, false]);
        assert_eq!((code.falls_from(0), code.falls_from(1), code.falls_from(4)), (None, Some(0), None));
        assert_eq!(code.successors(0).collect::<Vec<_>>(), [1]);
        assert_eq!(code.successors(3).count(), 0);
    }

    #[test]
    fn a_register_has_one_number_at_any_width() {
        for (registers, expected) in [
            ([Register::RAX, Register::EAX, Register::AX, Register::AL], 0),
            ([Register::RDI, Register::EDI, Register::DI, Register::DIL], 7),
            ([Register::R15, Register::R15D, Register::R15W, Register::R15L], 15),
        ] {
            assert_eq!(registers.map(number), [Some(expected); 4]);
        }
        assert_eq!([Register::RIP, Register::YMM0, Register::FS, Register::None].map(number), [None; 4]);
    }
}
