//! Writes x86-64 code that changes no flag: what is added between a program's instructions.

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// The code cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotEncodable;

/// Code under way, of which `base` is the address of the first byte.
#[derive(Debug)]
pub(super) struct Emitter<'a> {
    pub(super) code: &'a mut Vec<u8>,
    pub(super) base: u64,
}

/// A word of the recorder's own.
fn own(offset: u32) -> MemoryOperand {
    MemoryOperand::new(Register::None, Register::None, 1, i64::from(offset), 8, false, Register::GS)
}

/// A word of the recorder's own, behind `8 × index` bytes.
fn own_at(offset: u32, index: Register) -> MemoryOperand {
    MemoryOperand::new(Register::None, index, 8, i64::from(offset), 8, false, Register::GS)
}

/// Memory at a register and some bytes more.
fn at(base: Register, more: i64) -> MemoryOperand {
    let bytes = if more == 0 { 0 } else { 1 };
    MemoryOperand::new(base, Register::None, 1, more, bytes, false, Register::None)
}

impl Emitter<'_> {
    /// Any instruction, as it is to be executed here.
    pub(super) fn put(&mut self, instruction: &Instruction) -> Result<(), NotEncodable> {
        let mut encoder = Encoder::new(64);
        let ip = self.base + self.code.len() as u64;
        encoder.encode(instruction, ip).map_err(|_| NotEncodable)?;
        self.code.extend(encoder.take_buffer());
        Ok(())
    }

    fn made(&mut self, made: Result<Instruction, iced_x86::IcedError>) -> Result<(), NotEncodable> {
        self.put(&made.map_err(|_| NotEncodable)?)
    }

    /// A register into a word of ours.
    pub(super) fn keep(&mut self, offset: u32, register: Register) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_rm64_r64, own(offset), register))
    }

    /// A word of ours into a register.
    pub(super) fn take(&mut self, register: Register, offset: u32) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_r64_rm64, register, own(offset)))
    }

    /// A word of ours, one of a table, into a register.
    pub(super) fn take_at(&mut self, register: Register, offset: u32, index: Register) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_r64_rm64, register, own_at(offset, index)))
    }

    /// A register into memory at another.
    pub(super) fn store(&mut self, base: Register, more: u32, register: Register) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_rm64_r64, at(base, i64::from(more)), register))
    }

    /// A number, its sign extended, into memory at a register.
    pub(super) fn store_number(&mut self, base: Register, more: u32, number: i32) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_rm64_imm32, at(base, i64::from(more)), number))
    }

    /// Half of a word into memory at a register.
    pub(super) fn store_half(&mut self, base: Register, more: i32, number: u32) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_rm32_imm32, at(base, i64::from(more)), number))
    }

    /// Memory into a register.
    pub(super) fn load(&mut self, register: Register, memory: MemoryOperand) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_r64_rm64, register, memory))
    }

    /// An address into a register.
    pub(super) fn address(&mut self, register: Register, memory: MemoryOperand) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Lea_r64_m, register, memory))
    }

    /// A register and some bytes more into a register.
    pub(super) fn add(&mut self, register: Register, base: Register, more: i32) -> Result<(), NotEncodable> {
        self.address(register, at(base, i64::from(more)))
    }

    /// A number into a register.
    pub(super) fn number(&mut self, register: Register, number: u64) -> Result<(), NotEncodable> {
        self.made(Instruction::with2(Code::Mov_r64_imm64, register, number))
    }

    /// A jump to where a word of ours says.
    pub(super) fn jump_to_kept(&mut self, offset: u32) -> Result<(), NotEncodable> {
        self.made(Instruction::with1(Code::Jmp_rm64, own(offset)))
    }

    /// A jump within the code, or one on a condition (the low four bits of its opcode); gives the place of its distance,
    /// which [`link`] sets.
    pub(super) fn jump(&mut self, condition: Option<u8>) -> u32 {
        match condition {
            None => self.code.push(0xe9),
            Some(condition) => self.code.extend([0x0f, 0x80 | condition]),
        }
        self.code.extend([0; 4]);
        self.code.len() as u32 - 4
    }

    /// A trap; gives its place.
    pub(super) fn trap(&mut self) -> u32 {
        self.code.push(0xcc);
        self.code.len() as u32 - 1
    }
}

/// Makes a jump, whose distance is at `site`, go to `place`.
pub(super) fn link(code: &mut [u8], site: u32, place: u32) {
    let distance = i64::from(place) - i64::from(site) - 4;
    code[site as usize..site as usize + 4].copy_from_slice(&(distance as i32).to_le_bytes());
}
