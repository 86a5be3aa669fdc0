//! What an instruction does to memory, and how the next one is found.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};
use lookaside_trace::Kind;

/// How the next instruction is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It is the next one in memory.
    Next,
    Jump(u64),
    /// On a condition: the low four bits of the opcode.
    Branch(u8, u64),
    /// By the count register: `loop` and its kin.
    Loop(u64),
    Call(u64),
    IndirectJump,
    IndirectCall,
    /// So many bytes are taken from the stack, beside the address.
    Return(u16),
    /// A system call.
    SystemCall,
    /// It can't be followed.
    Refused,
}

/// How the instruction after this one is found.
pub(super) fn flow(instruction: &Instruction) -> Flow {
    if instruction.is_invalid() || refused(instruction) {
        return Flow::Refused;
    }
    match (instruction.code(), instruction.flow_control()) {
        (Code::Syscall, _) => Flow::SystemCall,
        (_, FlowControl::Next) => Flow::Next,
        (Code::Jmp_rel8_64 | Code::Jmp_rel32_64, _) => Flow::Jump(instruction.near_branch_target()),
        (Code::Call_rel32_64, _) => Flow::Call(instruction.near_branch_target()),
        (Code::Jmp_rm64, _) => Flow::IndirectJump,
        (Code::Call_rm64, _) => Flow::IndirectCall,
        (Code::Retnq, _) => Flow::Return(0),
        (Code::Retnq_imm16, _) => Flow::Return(instruction.immediate16()),
        (_, FlowControl::ConditionalBranch) if instruction.is_jcc_short_or_near() => {
            Flow::Branch(condition(instruction), instruction.near_branch_target())
        }
        (Code::Jrcxz_rel8_64 | Code::Loop_rel8_64_RCX | Code::Loope_rel8_64_RCX | Code::Loopne_rel8_64_RCX, _) => {
            Flow::Loop(instruction.near_branch_target())
        }
        _ => Flow::Refused,
    }
}

/// The low four bits of its opcode.
fn condition(instruction: &Instruction) -> u8 {
    // ConditionCode counts them from 1 in the opcodes' order.
    (instruction.condition_code() as u8).wrapping_sub(1) & 15
}

fn refused(instruction: &Instruction) -> bool {
    // What turns the direction of string instructions, or says or changes where the thread's memory is.
    let odd = matches!(
        instruction.mnemonic(),
        Mnemonic::Std
            | Mnemonic::Enter
            | Mnemonic::Rdfsbase
            | Mnemonic::Wrfsbase
            | Mnemonic::Rdgsbase
            | Mnemonic::Wrgsbase
            | Mnemonic::Xbegin
            | Mnemonic::Xend
            | Mnemonic::Xabort
    );
    let has_gs = instruction.memory_segment() == Register::GS
        || (0..instruction.op_count()).any(|at| instruction.op_register(at) == Register::GS);
    let short_address = is_repeated(instruction)
        && (0..instruction.op_count()).any(|at| {
            matches!(instruction.op_kind(at), OpKind::MemorySegESI | OpKind::MemoryESEDI | OpKind::MemorySegSI)
        });
    odd || has_gs && instruction.mnemonic() != Mnemonic::Lea || short_address
}

/// A string instruction with a prefix to repeat it.
pub(super) fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// It accesses many addresses at once.
pub(super) fn is_scattered(memory: &UsedMemory) -> bool {
    memory.vsib_size() != 0
}

/// Bytes of an access; 255 = or more, 0 = not known.
pub(super) fn size(memory: &UsedMemory) -> u8 {
    let bytes = match memory.memory_size() {
        MemorySize::Fxsave_512Byte | MemorySize::Fxsave64_512Byte => 512,
        other => other.size(),
    };
    bytes.min(255) as u8
}

/// What it does there: loads come before stores.
pub(super) fn kinds(memory: &UsedMemory) -> &'static [Kind] {
    match memory.access() {
        OpAccess::Read | OpAccess::CondRead => &[Kind::Load],
        OpAccess::Write | OpAccess::CondWrite => &[Kind::Store],
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => &[Kind::Load, Kind::Store],
        _ => &[],
    }
}

/// The memory that it accesses: what it loads before what it only stores.
pub(super) fn memory(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Vec<UsedMemory> {
    let mut all: Vec<UsedMemory> = factory.info(instruction).used_memory().to_vec();
    all.retain(|memory| !kinds(memory).is_empty());
    all.sort_by_key(|memory| kinds(memory) == [Kind::Store]);
    all
}

/// The registers of 64 bits that it reads or writes, wholly or in part, a bit each.
pub(super) fn registers(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> u16 {
    let used = factory.info(instruction);
    let of = |register: Register| match register.is_gpr() {
        true => 1 << register.full_register().number(),
        false => 0,
    };
    let named = used.used_registers().iter().map(|used| of(used.register()));
    let addressed = used.used_memory().iter().map(|memory| of(memory.base()) | of(memory.index()));
    named.chain(addressed).fold(0, |all, bits| all | bits)
}

/// The register of this number.
pub(super) fn register_of(number: u32) -> Register {
    use Register::{R10, R11, R12, R13, R14, R15, R8, R9, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
    [RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15][number as usize & 15]
}
