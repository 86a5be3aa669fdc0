//! Symbolic values: expressions over the sampled registers and the program's memory, and how instructions compute them.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::code::number;
use crate::backends::sample::perf_record::Registers;

/// Expressions of more parts than this are given up.
pub const MAX_PARTS: usize = 16;

/// A value, computed from the sampled registers and the program's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A general register by its machine number.
    Register(u8),
    /// A number known beforehand.
    Constant(u64),
    /// This many bytes from the sampled instruction.
    IpOffset(u64),
    /// An operation on two values, modulo 2^64.
    Binary(Operation, Box<Expression>, Box<Expression>),
    /// The low 32 bits with their sign.
    Signed32(Box<Expression>),
    /// This many bytes (1, 2, 4 or 8) of the program's memory, with zeros above.
    Memory(Box<Expression>, u8),
}

/// An operation on two 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sum.
    Add,
    /// Product.
    Multiply,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left by the second value's low six bits.
    ShiftLeft,
    /// Shift right, zeros come in.
    ShiftRight,
    /// Shift right, the sign comes in.
    ShiftRightSigned,
}

impl Operation {
    fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Operation::Add => a.wrapping_add(b),
            Operation::Multiply => a.wrapping_mul(b),
            Operation::And => a & b,
            Operation::Or => a | b,
            Operation::Xor => a ^ b,
            Operation::ShiftLeft => a << (b & 63),
            Operation::ShiftRight => a >> (b & 63),
            Operation::ShiftRightSigned => ((a as i64) >> (b & 63)) as u64,
        }
    }
}

impl Expression {
    /// The result of an operation with another value.
    pub fn with(self, operation: Operation, other: Expression) -> Expression {
        match (operation, self, other) {
            (operation, Expression::Constant(a), Expression::Constant(b)) => {
                Expression::Constant(operation.apply(a, b))
            }
            (Operation::Add, value, Expression::Constant(0)) | (Operation::Add, Expression::Constant(0), value) => {
                value
            }
            (Operation::Multiply, value, Expression::Constant(1)) => value,
            // Constants are kept together, so that equal sums look equal.
            (Operation::Add, Expression::Binary(Operation::Add, a, b), Expression::Constant(c))
                if matches!(*b, Expression::Constant(_)) =>
            {
                a.with(Operation::Add, b.with(Operation::Add, Expression::Constant(c)))
            }
            (operation, a, b) => Expression::Binary(operation, Box::new(a), Box::new(b)),
        }
    }

    /// Sum with a number.
    pub fn plus(self, number: u64) -> Expression {
        self.with(Operation::Add, Expression::Constant(number))
    }

    /// The low 32 bits.
    pub fn low32(self) -> Expression {
        self.with(Operation::And, Expression::Constant(0xffff_ffff))
    }

    /// The value, with `read` for memory (address, bytes); `None` where memory can't be read.
    pub fn evaluate(
        &self,
        registers: &Registers,
        ip: u64,
        read: &mut dyn FnMut(u64, u8) -> Option<u64>,
    ) -> Option<u64> {
        Some(match self {
            Expression::Register(number) => registers.general[usize::from(*number & 15)],
            Expression::Constant(value) => *value,
            Expression::IpOffset(bytes) => ip.wrapping_add(*bytes),
            Expression::Binary(operation, a, b) => {
                operation.apply(a.evaluate(registers, ip, read)?, b.evaluate(registers, ip, read)?)
            }
            Expression::Signed32(value) => value.evaluate(registers, ip, read)? as i32 as u64,
            Expression::Memory(address, bytes) => {
                let address = address.evaluate(registers, ip, read)?;
                read(address, *bytes)?
            }
        })
    }

    /// Whether memory has to be read to evaluate it.
    pub fn needs_memory(&self) -> bool {
        match self {
            Expression::Register(_) | Expression::Constant(_) | Expression::IpOffset(_) => false,
            Expression::Binary(_, a, b) => a.needs_memory() || b.needs_memory(),
            Expression::Signed32(value) => value.needs_memory(),
            Expression::Memory(..) => true,
        }
    }

    /// The number of its parts.
    pub fn parts(&self) -> usize {
        match self {
            Expression::Register(_) | Expression::Constant(_) | Expression::IpOffset(_) => 1,
            Expression::Binary(_, a, b) => a.parts() + b.parts(),
            Expression::Signed32(value) | Expression::Memory(value, _) => 1 + value.parts(),
        }
    }
}

/// The registers and memory that an instruction reads, as far as they are known.
pub trait MachineState {
    /// A general register.
    fn register(&mut self, number: u8) -> Option<Expression>;
    /// This many bytes (1, 2, 4 or 8) of memory.
    fn memory(&mut self, address: Expression, bytes: u8) -> Option<Expression>;
}

/// The address of an instruction's explicit memory operand; `ip` is the sampled address.
pub fn address(instruction: &Instruction, ip: u64, operands: &mut dyn MachineState) -> Option<Expression> {
    // The bases of FS and GS are not among the sampled registers.
    if matches!(instruction.memory_segment(), Register::FS | Register::GS) {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        return Some(Expression::IpOffset(instruction.ip_rel_memory_address().wrapping_sub(ip)));
    }
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let mut sum = None;
    for (part, scale) in [(base, 1), (index, instruction.memory_index_scale())] {
        if part == Register::None {
            continue;
        }
        // A vector of indices has no one address: `number` refuses it.
        let scale = Expression::Constant(u64::from(scale));
        let value = operands.register(number(part)?)?.with(Operation::Multiply, scale);
        sum = Some(match sum {
            Some(sum) => value.with(Operation::Add, sum),
            None => value,
        });
    }
    let displacement = instruction.memory_displacement64();
    let sum = sum.map_or(Expression::Constant(displacement), |sum| sum.plus(displacement));
    let narrow = base.is_gpr32() || index.is_gpr32();
    Some(if narrow { sum.low32() } else { sum })
}

/// The value that an instruction writes into a general register; `None` = not known.
pub fn result(instruction: &Instruction, register: u8, ip: u64, operands: &mut dyn MachineState) -> Option<Expression> {
    const RSP: u8 = 4;
    if let (Mnemonic::Push | Mnemonic::Pop, RSP) = (instruction.mnemonic(), register) {
        let change = i64::from(instruction.stack_pointer_increment());
        return Some(operands.register(RSP)?.plus(change as u64));
    }
    if instruction.op0_kind() != OpKind::Register || number(instruction.op0_register()) != Some(register) {
        // `cdqe` names no operands.
        return match (instruction.mnemonic(), register) {
            (Mnemonic::Cdqe, 0) => Some(Expression::Signed32(Box::new(operands.register(0)?))),
            _ => None,
        };
    }
    let wide = match instruction.op0_register() {
        register if register.is_gpr64() => true,
        register if register.is_gpr32() => false,
        // Eight and sixteen bits keep the rest of the register.
        _ => return None,
    };
    let mut source = |operand| source(instruction, operand, ip, operands);
    let narrowed = |value: Expression| if wide { value } else { value.low32() };
    let two = instruction.op_count() == 2;
    let value = match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx => source(1)?,
        Mnemonic::Movsxd => Expression::Signed32(Box::new(source(1)?)),
        Mnemonic::Lea => address(instruction, ip, operands)?,
        // `xor eax,eax` and its like are zero whatever the register was.
        Mnemonic::Xor | Mnemonic::Sub
            if instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register() =>
        {
            Expression::Constant(0)
        }
        Mnemonic::Add => source(0)?.with(Operation::Add, source(1)?),
        Mnemonic::Sub => {
            let minus = source(1)?.with(Operation::Multiply, Expression::Constant(u64::MAX));
            source(0)?.with(Operation::Add, minus)
        }
        Mnemonic::And => source(0)?.with(Operation::And, source(1)?),
        Mnemonic::Or => source(0)?.with(Operation::Or, source(1)?),
        Mnemonic::Xor => source(0)?.with(Operation::Xor, source(1)?),
        Mnemonic::Inc => source(0)?.plus(1),
        Mnemonic::Dec => source(0)?.plus(u64::MAX),
        Mnemonic::Imul if two => source(0)?.with(Operation::Multiply, source(1)?),
        Mnemonic::Imul if instruction.op_count() == 3 => source(1)?.with(Operation::Multiply, source(2)?),
        Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar if two && is_immediate(instruction.op_kind(1)) => {
            let bits = Expression::Constant(instruction.immediate(1) & if wide { 63 } else { 31 });
            match instruction.mnemonic() {
                Mnemonic::Shl => source(0)?.with(Operation::ShiftLeft, bits),
                Mnemonic::Shr => narrowed(source(0)?).with(Operation::ShiftRight, bits),
                _ if wide => source(0)?.with(Operation::ShiftRightSigned, bits),
                _ => Expression::Signed32(Box::new(source(0)?)).with(Operation::ShiftRightSigned, bits),
            }
        }
        _ => return None,
    };
    Some(narrowed(value))
}

/// A source operand, with zeros above its width.
fn source(instruction: &Instruction, operand: u32, ip: u64, operands: &mut dyn MachineState) -> Option<Expression> {
    match instruction.op_kind(operand) {
        OpKind::Register => {
            let register = instruction.op_register(operand);
            let high_byte = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
            let value = operands.register(number(register).filter(|_| !high_byte)?)?;
            Some(match register.size() {
                8 => value,
                bytes => value.with(Operation::And, Expression::Constant((1 << (8 * bytes)) - 1)),
            })
        }
        OpKind::Memory => {
            let bytes = u8::try_from(instruction.memory_size().size()).ok().filter(|b| matches!(b, 1 | 2 | 4 | 8))?;
            let address = address(instruction, ip, operands)?;
            operands.memory(address, bytes)
        }
        kind if is_immediate(kind) => Some(Expression::Constant(instruction.immediate(operand))),
        _ => None,
    }
}

/// The operand is a number in the instruction.
pub fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to64
            | OpKind::Immediate8to32
            | OpKind::Immediate32to64
    )
}
