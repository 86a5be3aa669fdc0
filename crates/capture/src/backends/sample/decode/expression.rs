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

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    const RAX: u64 = 0x8877_6655_f433_2211;
    const RCX: u64 = 0x1234_5678_9abc_dff7;
    const RSP: u64 = 0x7000;
    const LOW: u64 = 0xffff_ffff;
    const IP: u64 = 0x2000;

    /// Registers as they were sampled, and the memory that they point to.
    struct AllKnown;

    impl MachineState for AllKnown {
        fn register(&mut self, number: u8) -> Option<Expression> {
            Some(Expression::Register(number))
        }

        fn memory(&mut self, address: Expression, bytes: u8) -> Option<Expression> {
            Some(Expression::Memory(Box::new(address), bytes))
        }
    }

    struct NothingKnown;

    impl MachineState for NothingKnown {
        fn register(&mut self, _: u8) -> Option<Expression> {
            None
        }

        fn memory(&mut self, _: Expression, _: u8) -> Option<Expression> {
            None
        }
    }

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    fn read(addr: u64, bytes: u8) -> u64 {
        addr.rotate_left(8) ^ u64::from(bytes)
    }

    fn value(of: &Expression) -> Option<u64> {
        let mut registers = Registers::default();
        (registers.general[0], registers.general[1], registers.general[4]) = (RAX, RCX, RSP);
        of.evaluate(&registers, IP, &mut |addr, bytes| Some(read(addr, bytes)))
    }

    fn written(bytes: &[u8], register: u8) -> Option<u64> {
        value(&result(&decoded(bytes), register, IP, &mut AllKnown)?)
    }

    #[test]
    fn each_instruction_writes_what_the_machine_does() {
        let scaled = RCX.wrapping_add(RAX.wrapping_mul(2)).wrapping_sub(8);
        for (name, bytes, expected) in [
            ("mov rax,rcx", &[0x48, 0x89, 0xc8][..], Some(RCX)),
            ("mov eax,ecx", &[0x89, 0xc8], Some(RCX & LOW)),
            ("mov rax,-2", &[0x48, 0xc7, 0xc0, 0xfe, 0xff, 0xff, 0xff], Some(u64::MAX - 1)),
            ("mov eax,-2", &[0xb8, 0xfe, 0xff, 0xff, 0xff], Some(0xffff_fffe)),
            // Eight and sixteen bits keep the rest.
            ("mov ax,cx", &[0x66, 0x89, 0xc8], None),
            ("mov al,cl", &[0x88, 0xc8], None),
            ("movzx eax,cl", &[0x0f, 0xb6, 0xc1], Some(0xf7)),
            ("movzx eax,cx", &[0x0f, 0xb7, 0xc1], Some(0xdff7)),
            ("movzx eax,ah", &[0x0f, 0xb6, 0xc4], None),
            ("movsxd rax,ecx", &[0x48, 0x63, 0xc1], Some(0xffff_ffff_9abc_dff7)),
            ("lea rax,[rcx+rax*2-8]", &[0x48, 0x8d, 0x44, 0x41, 0xf8], Some(scaled)),
            ("lea eax,[rcx]", &[0x8d, 0x01], Some(RCX & LOW)),
            ("lea rax,[rip+0x10]", &[0x48, 0x8d, 0x05, 0x10, 0, 0, 0], Some(0x1017)),
            ("add rax,rcx", &[0x48, 0x01, 0xc8], Some(RAX.wrapping_add(RCX))),
            ("add eax,ecx", &[0x01, 0xc8], Some(RAX.wrapping_add(RCX) & LOW)),
            ("add rax,[rcx]", &[0x48, 0x03, 0x01], Some(RAX.wrapping_add(read(RCX, 8)))),
            ("sub rax,rcx", &[0x48, 0x29, 0xc8], Some(RAX.wrapping_sub(RCX))),
            ("sub rax,rax", &[0x48, 0x29, 0xc0], Some(0)),
            ("and rax,rcx", &[0x48, 0x21, 0xc8], Some(RAX & RCX)),
            ("or rax,rcx", &[0x48, 0x09, 0xc8], Some(RAX | RCX)),
            ("xor rax,rcx", &[0x48, 0x31, 0xc8], Some(RAX ^ RCX)),
            ("xor rax,[rcx]", &[0x48, 0x33, 0x01], Some(RAX ^ read(RCX, 8))),
            ("inc rax", &[0x48, 0xff, 0xc0], Some(RAX + 1)),
            ("dec rax", &[0x48, 0xff, 0xc8], Some(RAX - 1)),
            ("imul rax,rcx", &[0x48, 0x0f, 0xaf, 0xc1], Some(RAX.wrapping_mul(RCX))),
            ("imul rax,rcx,5", &[0x48, 0x6b, 0xc1, 5], Some(RCX.wrapping_mul(5))),
            ("imul rcx", &[0x48, 0xf7, 0xe9], None),
            // The processor takes the low six bits, or five.
            ("shl rax,68", &[0x48, 0xc1, 0xe0, 68], Some(RAX << 4)),
            ("shr rax,68", &[0x48, 0xc1, 0xe8, 68], Some(RAX >> 4)),
            ("sar rax,68", &[0x48, 0xc1, 0xf8, 68], Some(0xf887_7665_5f43_3221)),
            ("shl eax,36", &[0xc1, 0xe0, 36], Some(0x4332_2110)),
            ("shr eax,36", &[0xc1, 0xe8, 36], Some(0x0f43_3221)),
            ("sar eax,36", &[0xc1, 0xf8, 36], Some(0xff43_3221)),
            ("shl rax,cl", &[0x48, 0xd3, 0xe0], None),
            ("cdqe", &[0x48, 0x98], Some(0xffff_ffff_f433_2211)),
            ("xchg rax,rcx", &[0x48, 0x87, 0xc8], None),
            ("mov rax,[rcx+8]", &[0x48, 0x8b, 0x41, 8], Some(read(RCX + 8, 8))),
            ("mov eax,[rcx+8]", &[0x8b, 0x41, 8], Some(read(RCX + 8, 4) & LOW)),
            ("movzx eax,word [rcx+8]", &[0x0f, 0xb7, 0x41, 8], Some(read(RCX + 8, 2) & LOW)),
            ("movzx eax,byte [rcx+8]", &[0x0f, 0xb6, 0x41, 8], Some(read(RCX + 8, 1) & LOW)),
        ] {
            assert_eq!(written(bytes, 0), expected, "{name}");
        }
        // Of other registers: push and pop move the stack pointer, what is only read is not written.
        assert_eq!((written(&[0x51], 4), written(&[0x59], 4)), (Some(RSP - 8), Some(RSP + 8)));
        assert_eq!((written(&[0x59], 1), written(&[0x48, 0x89, 0xc8], 1)), (None, None));
    }

    #[test]
    fn what_does_not_depend_on_its_operands_needs_none() {
        let written = |bytes: &[u8]| result(&decoded(bytes), 0, IP, &mut NothingKnown);
        // xor eax,eax · sub rax,rax · mov eax,7
        for (bytes, expected) in [(&[0x31, 0xc0][..], 0), (&[0x48, 0x29, 0xc0], 0), (&[0xb8, 7, 0, 0, 0], 7)] {
            assert_eq!(written(bytes), Some(Expression::Constant(expected)), "{bytes:x?}");
        }
        // xor rax,rcx · xor rax,[rcx] · and eax,eax
        for bytes in [&[0x48, 0x31, 0xc8][..], &[0x48, 0x33, 0x01], &[0x21, 0xc0]] {
            assert_eq!(written(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn operations_are_modulo_two_to_the_64() {
        for (operation, a, b, expected) in [
            (Operation::Add, u64::MAX, 3, 2),
            (Operation::Multiply, u64::MAX, 3, u64::MAX - 2),
            (Operation::And, 0b1100, 0b1010, 0b1000),
            (Operation::Or, 0b1100, 0b1010, 0b1110),
            (Operation::Xor, 0b1100, 0b1010, 0b0110),
            (Operation::ShiftLeft, 3, 65, 6),
            (Operation::ShiftRight, 6, 65, 3),
            (Operation::ShiftRightSigned, u64::MAX - 7, 65, u64::MAX - 3),
        ] {
            assert_eq!(operation.apply(a, b), expected, "{operation:?}");
        }
    }

    #[test]
    fn equal_sums_look_equal() {
        let register = || Expression::Register(1);
        assert_eq!(register().plus(5).plus(7), register().plus(12));
        assert_eq!(register().plus(5).plus(5u64.wrapping_neg()), register());
        assert_eq!(register().with(Operation::Multiply, Expression::Constant(1)), register());
        let constants = Expression::Constant(6).with(Operation::Multiply, Expression::Constant(7));
        assert_eq!(constants, Expression::Constant(42));
        // The constant stays outside of a sum of two registers.
        let sum = register().with(Operation::Add, Expression::Register(2));
        let (plain, five) = (Box::new(sum.clone()), Box::new(Expression::Constant(5)));
        assert_eq!(sum.plus(5), Expression::Binary(Operation::Add, plain, five));
    }

    #[test]
    fn its_parts_are_counted_and_memory_is_seen_in_each() {
        let register = || Expression::Register(0);
        let memory = || Expression::Memory(Box::new(register()), 8);
        let sum = |a: Expression, b| a.with(Operation::Add, b);
        let signed = |value| Expression::Signed32(Box::new(value));
        for (value, parts, needs_memory) in [
            (register(), 1, false),
            (Expression::IpOffset(3), 1, false),
            (sum(register(), register()), 2, false),
            (sum(sum(register(), register()), sum(register(), register())), 4, false),
            (signed(register()), 2, false),
            (memory(), 2, true),
            (signed(memory()), 3, true),
            (sum(memory(), register()), 3, true),
            (sum(register(), memory()), 3, true),
        ] {
            assert_eq!((value.parts(), value.needs_memory()), (parts, needs_memory), "{value:?}");
            let without_memory = value.evaluate(&Registers::default(), IP, &mut |_, _| None);
            assert_eq!(without_memory.is_none(), needs_memory, "{value:?}");
        }
        assert_eq!(value(&Expression::IpOffset(3)), Some(IP + 3));
    }
}
