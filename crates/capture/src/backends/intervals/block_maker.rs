//! Makes a block of translated code, instruction by instruction.

use iced_x86::{Code, Instruction, InstructionInfoFactory, MemoryOperand, Register, UsedMemory};

use super::area::{CURSOR, SAVED, TARGET, TO_MIRROR};
use super::block_plan::{BlockPlan, Exit, LoggedStep};
use super::emitter::{link, Emitter, NotEncodable};
use super::instruction::{flow, is_repeated, is_scattered, kinds, memory, size, Flow};

/// A block under way.
pub(super) struct BlockMaker<'a> {
    pub(super) emitter: Emitter<'a>,
    pub(super) factory: &'a mut InstructionInfoFactory,
    pub(super) plan: BlockPlan,
    /// Places of traps, and what they are for.
    pub(super) exits: Vec<(u32, Exit)>,
    /// Points into the log.
    pub(super) cursor: Register,
    /// Holds addresses.
    pub(super) scratch: Register,
}

impl BlockMaker<'_> {
    /// The block of this number begins: unless the log is full.
    pub(super) fn begin(&mut self, number: i32) -> Result<(), NotEncodable> {
        self.emitter.keep(SAVED[0], self.cursor)?;
        self.emitter.keep(SAVED[1], self.scratch)?;
        self.emitter.take(self.cursor, CURSOR)?;
        self.emitter.store_number(self.cursor, TO_MIRROR, number)
    }

    /// Gives the borrowed registers back.
    fn give_back(&mut self) -> Result<(), NotEncodable> {
        self.emitter.add(self.cursor, self.cursor, 8 * (1 + self.plan.words as i32))?;
        self.emitter.keep(CURSOR, self.cursor)?;
        self.emitter.take(self.cursor, SAVED[0])?;
        self.emitter.take(self.scratch, SAVED[1])
    }

    /// Logs a register; gives the word's number.
    fn log(&mut self, register: Register) -> Result<u16, NotEncodable> {
        let word = self.plan.words;
        self.plan.words += 1;
        self.emitter.store(self.cursor, 8 * (1 + word), register)?;
        Ok(word as u16)
    }

    /// Logs what an instruction accesses, and executes it unless it decides what comes next.
    pub(super) fn instruction(&mut self, instruction: &Instruction, bytes: &[u8]) -> Result<(), NotEncodable> {
        let ip = instruction.ip();
        let flow = flow(instruction);
        if flow == Flow::Refused {
            return Ok(());
        }
        self.plan.instructions += 1;
        self.plan.steps.push(LoggedStep::Fetch { ip, size: bytes.len() as u8 });
        if is_repeated(instruction) {
            return self.repeated(instruction, bytes);
        }
        for memory in memory(self.factory, instruction) {
            if is_scattered(&memory) {
                self.plan.unseen += 1;
                continue;
            }
            self.address(&memory)?;
            let word = self.log(self.scratch)?;
            let from_thread = memory.segment() == Register::FS;
            for &kind in kinds(&memory) {
                let size = size(&memory);
                self.plan.steps.push(LoggedStep::Access { ip, kind, size, word, from_thread });
            }
        }
        match flow {
            Flow::Next => self.execute(instruction, bytes),
            _ => Ok(()),
        }
    }

    /// The address, without the thread's base.
    fn address(&mut self, memory: &UsedMemory) -> Result<(), NotEncodable> {
        let (base, index) = (memory.base(), memory.index());
        let more = memory.displacement();
        match (base, index) {
            (Register::None | Register::RIP | Register::EIP, Register::None) => self.emitter.number(self.scratch, more),
            _ => {
                let more = more as i64;
                // Addresses of 32 bits wrap.
                let more = if base.size() == 4 || index.size() == 4 { i64::from(more as i32) } else { more };
                i32::try_from(more).map_err(|_| NotEncodable)?;
                let bytes = if more == 0 { 0 } else { 1 };
                let scale = memory.scale();
                let operand = MemoryOperand::new(base, index, scale, more, bytes, false, Register::None);
                self.emitter.address(self.scratch, operand)
            }
        }
    }

    /// The instruction itself.
    fn execute(&mut self, instruction: &Instruction, bytes: &[u8]) -> Result<(), NotEncodable> {
        if !instruction.is_ip_rel_memory_operand() {
            self.emitter.code.extend(bytes);
            return Ok(());
        }
        let target = instruction.ip_rel_memory_address();
        if instruction.mnemonic() == iced_x86::Mnemonic::Lea {
            let register = instruction.op0_register();
            return match register.size() {
                8 => self.emitter.number(register, target),
                4 => self.emitter.number(register.full_register(), target & 0xffff_ffff),
                _ => Err(NotEncodable),
            };
        }
        self.emitter.number(self.scratch, target)?;
        self.emitter.put(&moved(instruction, self.scratch))
    }

    fn repeated(&mut self, instruction: &Instruction, bytes: &[u8]) -> Result<(), NotEncodable> {
        let all = memory(self.factory, instruction);
        let before = self.log(Register::RCX)?;
        let mut accesses = [None; 2];
        let mut unit = 0;
        for (place, memory) in accesses.iter_mut().zip(&all) {
            if memory.segment() == Register::FS {
                return Err(NotEncodable);
            }
            unit = size(memory);
            let word = self.log(memory.base())?;
            *place = kinds(memory).first().map(|&kind| (kind, word));
        }
        self.emitter.code.extend(bytes);
        let after = self.log(Register::RCX)?;
        let ip = instruction.ip();
        self.plan.steps.push(LoggedStep::Repeated { ip, size: unit, counts: [before, after], accesses });
        Ok(())
    }

    /// From the last instruction to the next block.
    pub(super) fn end(
        &mut self,
        flow: Flow,
        last: Option<&(Instruction, Vec<u8>)>,
        next: u64,
    ) -> Result<(), NotEncodable> {
        let Some((last, bytes)) = last else { return Err(NotEncodable) };
        match flow {
            Flow::Next => {
                self.give_back()?;
                self.go_to(next);
            }
            Flow::Jump(target) => {
                self.give_back()?;
                self.go_to(target);
            }
            Flow::Branch(condition, target) => {
                self.give_back()?;
                let taken = self.emitter.jump(Some(condition));
                self.go_to(next);
                self.land(taken, target);
            }
            Flow::Loop(target) => {
                self.give_back()?;
                // The prefix and opcode; then over a jump of five bytes.
                self.emitter.code.extend(&bytes[..bytes.len() - 1]);
                self.emitter.code.push(5);
                let passed = self.emitter.jump(None);
                let taken = self.emitter.jump(None);
                self.land(passed, next);
                self.land(taken, target);
            }
            Flow::Call(target) => {
                self.push_return(next)?;
                self.give_back()?;
                self.go_to(target);
            }
            Flow::IndirectJump => {
                self.keep_target(last)?;
                self.give_back()?;
                self.dispatch();
            }
            Flow::IndirectCall => {
                self.keep_target(last)?;
                self.push_return(next)?;
                self.give_back()?;
                self.dispatch();
            }
            Flow::Return(more) => {
                let stack = MemoryOperand::new(Register::RSP, Register::None, 1, 0, 0, false, Register::None);
                self.emitter.load(self.scratch, stack)?;
                self.emitter.keep(TARGET, self.scratch)?;
                self.emitter.add(Register::RSP, Register::RSP, 8 + i32::from(more))?;
                self.give_back()?;
                self.dispatch();
            }
            Flow::SystemCall => {
                self.give_back()?;
                let trap = self.emitter.trap();
                self.exits.push((trap, Exit::SystemCall { next }));
            }
            Flow::Refused => return Err(NotEncodable),
        }
        Ok(())
    }

    /// Where an indirect jump goes, into [`TARGET`].
    fn keep_target(&mut self, jump: &Instruction) -> Result<(), NotEncodable> {
        let register = jump.op0_register();
        if register != Register::None {
            return self.emitter.keep(TARGET, register);
        }
        let displacement = jump.memory_displacement64();
        let load = Instruction::with2(Code::Mov_r64_rm64, self.scratch, MemoryOperand::with_base(self.scratch));
        let mut load = load.map_err(|_| NotEncodable)?;
        if jump.is_ip_rel_memory_operand() {
            self.emitter.number(self.scratch, jump.ip_rel_memory_address())?;
        } else {
            load.set_memory_base(jump.memory_base());
            load.set_memory_index(jump.memory_index());
            load.set_memory_index_scale(jump.memory_index_scale());
            load.set_memory_displ_size(jump.memory_displ_size());
            load.set_memory_displacement64(displacement);
            load.set_segment_prefix(jump.segment_prefix());
        }
        self.emitter.put(&load)?;
        self.emitter.keep(TARGET, self.scratch)
    }

    /// The return address of a call onto the stack.
    fn push_return(&mut self, next: u64) -> Result<(), NotEncodable> {
        self.emitter.store_half(Register::RSP, -8, next as u32)?;
        self.emitter.store_half(Register::RSP, -4, (next >> 32) as u32)?;
        self.emitter.add(Register::RSP, Register::RSP, -8)
    }

    /// A jump to what is at this address of the program's.
    fn go_to(&mut self, ip: u64) {
        let site = self.emitter.jump(None);
        self.land(site, ip);
    }

    /// The jump whose distance is at `site` is to this address of the program's: to a trap, until that is translated.
    fn land(&mut self, site: u32, ip: u64) {
        let trap = self.emitter.trap();
        link(self.emitter.code, site, trap);
        self.exits.push((trap, Exit::To { ip, site }));
    }

    fn dispatch(&mut self) {
        let site = self.emitter.jump(None);
        link(self.emitter.code, site, 0);
    }
}

/// The instruction with its memory at a register in place of at a distance from itself.
fn moved(instruction: &Instruction, base: Register) -> Instruction {
    let mut moved = *instruction;
    moved.set_memory_base(base);
    moved.set_memory_displacement64(0);
    moved.set_memory_displ_size(0);
    moved
}
