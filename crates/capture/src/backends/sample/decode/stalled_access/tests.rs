use proptest::prelude::*;

use super::*;
use crate::backends::sample::perf_record::Registers;

const BASE: u64 = 0x40_1000;
const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RBX: usize = 3;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

fn sampled(bytes: &[u8], offset: usize) -> Option<StalledAccess> {
    StalledAccess::new(&DecodedCode::function(bytes, BASE), BASE + offset as u64)
}

fn registers(values: &[(usize, u64)]) -> Registers {
    // Nothing is right by being zero.
    let mut registers = Registers { general: std::array::from_fn(|i| 0xdead_0000_0000 + i as u64) };
    values.iter().for_each(|&(number, value)| registers.general[number] = value);
    registers
}

/// The address with no memory read.
fn address(bytes: &[u8], offset: usize, values: &[(usize, u64)]) -> Option<u64> {
    let plan = sampled(bytes, offset)?;
    plan.address?.evaluate(&registers(values), BASE + offset as u64, &mut |_, _| None)
}

#[test]
fn a_load_with_its_registers_intact() {
    // mov rax,[rbx+rcx*4+8]; nop
    let code = [0x48, 0x8b, 0x44, 0x8b, 0x08, 0x90];
    assert_eq!(address(&code, 5, &[(RBX, 0x10000), (RCX, 0x20)]), Some(0x10088));
    let plan = sampled(&code, 5).unwrap();
    assert_eq!((plan.kind, plan.size, plan.loaded), (Kind::Load, 8, Some((0, 8))));
    assert_eq!(plan.ip_offset.wrapping_add(BASE + 5), BASE);
    // Not at an instruction's start, beyond the end, at the function's start.
    assert_eq!((sampled(&code, 3), sampled(&code, 6), sampled(&code, 0)), (None, None, None));
}

#[test]
fn an_overwritten_base_by_its_copy_or_its_making() {
    // mov rdx,rax; mov rax,[rax+8]; nop
    let copied = [0x48, 0x89, 0xc2, 0x48, 0x8b, 0x40, 0x08, 0x90];
    assert_eq!(address(&copied, 7, &[(RDX, 0x5000)]), Some(0x5008));
    // lea rax,[rdi+rsi*8]; mov rax,[rax+16]; nop
    let made = [0x48, 0x8d, 0x04, 0xf7, 0x48, 0x8b, 0x40, 0x10, 0x90];
    assert_eq!(address(&made, 8, &[(RDI, 0x8000), (RSI, 2)]), Some(0x8020));
    // mov rdx,rax; mov edx,1; mov rax,[rax]; nop: the copy is gone.
    let gone = [0x48, 0x89, 0xc2, 0xba, 1, 0, 0, 0, 0x48, 0x8b, 0x00, 0x90];
    assert_eq!(address(&gone, 11, &[]), None);
    // mov rax,[rax]; nop without anything: lost.
    assert_eq!(sampled(&[0x48, 0x8b, 0x00, 0x90], 3).unwrap().address, None);
}

#[test]
fn an_overwritten_base_by_memory() {
    // mov rax,[rdi+8]; mov rax,[rax+16]; nop
    let code = [0x48, 0x8b, 0x47, 0x08, 0x48, 0x8b, 0x40, 0x10, 0x90];
    let plan = sampled(&code, 8).unwrap();
    let value = plan.address.unwrap();
    assert!(value.needs_memory());
    let mut memory = |addr, _| (addr == 0x7008).then_some(0x9000);
    assert_eq!(value.evaluate(&registers(&[(RDI, 0x7000)]), BASE + 8, &mut memory), Some(0x9010));
    // To be compared with what was loaded.
    assert_eq!(plan.loaded, Some((0, 8)));
}

#[test]
fn a_pointer_chase_by_its_next_link() {
    // 0: mov rax,[rax+8]; 4: dec rcx; 7: jne 0; 9: ret
    let code = [0x48, 0x8b, 0x40, 0x08, 0x48, 0xff, 0xc9, 0x75, 0xf7, 0xc3];
    assert_eq!(address(&code, 4, &[(RAX, 0x6000)]), Some(0x6008));
    // As an unoptimised program has it, through the stack frame.
    // 0: mov rax,[rbp-8]; 4: mov rax,[rax]; 7: mov [rbp-8],rax; b: jmp 0
    let code = [0x48, 0x8b, 0x45, 0xf8, 0x48, 0x8b, 0x00, 0x48, 0x89, 0x45, 0xf8, 0xeb, 0xf3];
    assert_eq!(address(&code, 7, &[(RAX, 0x6000)]), Some(0x6000));
    // 0: mov rax,[rax]; 3: mov rax,[rbx]; 6: jmp 0: the next address is not known yet.
    let code = [0x48, 0x8b, 0x00, 0x48, 0x8b, 0x03, 0xeb, 0xf8];
    assert_eq!(sampled(&code, 3).unwrap().address, None);
}

#[test]
fn a_loop_end_and_a_fused_compare() {
    // 0: cmp [rdi+rcx*8],rax; 4: jne 0; 6: ret. Seen at the loop's start and at its exit.
    let code = [0x48, 0x39, 0x04, 0xcf, 0x75, 0xfa, 0xc3];
    for offset in [0, 4, 6] {
        assert_eq!(address(&code, offset, &[(RDI, 0x3000), (RCX, 1)]), Some(0x3008), "{offset}");
    }
    // 0: mov rax,[rdi]; 3: add rcx,rax; 6: jne 3: a loop of no memory after a load.
    let code = [0x48, 0x8b, 0x07, 0x48, 0x01, 0xc1, 0x75, 0xfb, 0xc3];
    assert_eq!(sampled(&code, 3), None);
}

#[test]
fn a_branch_that_is_fused_with_no_compare_accesses_nothing() {
    // cmp [rdi],rax; nop; nop
    assert_eq!(sampled(&[0x48, 0x39, 0x07, 0x90, 0x90], 4), None);
    // 0: cmp [rdi],rax; 3: jne 0; 5: jmp 3; 7: ret: the branch may have run without the compare.
    assert_eq!(sampled(&[0x48, 0x39, 0x07, 0x75, 0xfb, 0xeb, 0xfc, 0xc3], 5), None);
    // 0: mov rax,[rdi]; 3: jne 0; 5: ret
    assert_eq!(sampled(&[0x48, 0x8b, 0x07, 0x75, 0xfb, 0xc3], 5), None);
    // 0: cmp rdi,rax; 3: jne 0; 5: ret
    assert_eq!(sampled(&[0x48, 0x39, 0xc7, 0x75, 0xfb, 0xc3], 5), None);
}

#[test]
fn the_access_itself_is_told_where_its_registers_are_known() {
    // 0: mov rax,[rdi]; 3: add rdi,8; 7: jmp 0: this round's, not the next one's.
    assert_eq!(address(&[0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0xeb, 0xf7], 3, &[(RDI, 0x3000)]), Some(0x3000));
}

#[test]
fn what_was_loaded_is_known_of_whole_registers() {
    // mov eax,[rdi] · mov r9,[rdi] · mov ax,[rdi] · add rax,[rdi] · movzx eax,byte [rdi]
    for (code, expected) in [
        (&[0x8b, 0x07, 0x90][..], Some((0, 4))),
        (&[0x4c, 0x8b, 0x0f, 0x90], Some((9, 8))),
        (&[0x66, 0x8b, 0x07, 0x90], None),
        (&[0x48, 0x03, 0x07, 0x90], None),
        (&[0x0f, 0xb6, 0x07, 0x90], None),
    ] {
        assert_eq!(sampled(code, code.len() - 1).unwrap().loaded, expected, "{code:x?}");
    }
}

#[test]
fn addresses_of_other_forms() {
    // mov rax,[rip+0x100]; nop
    assert_eq!(address(&[0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x90], 7, &[]), Some(BASE + 7 + 0x100));
    // mov rax,fs:[0x28]; nop: a load whose base nobody knows.
    let thread_local = sampled(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x90], 9).unwrap();
    assert_eq!((thread_local.kind, thread_local.address), (Kind::Load, None));
    // mov eax,[ecx+4]; nop: 32-bit address.
    assert_eq!(address(&[0x67, 0x8b, 0x41, 0x04, 0x90], 4, &[(RCX, 0x1_ffff_fffe)]), Some(2));
    // mov rax,[0x12345678]; nop
    assert_eq!(address(&[0x48, 0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12, 0x90], 8, &[]), Some(0x1234_5678));
}

#[test]
fn stores_and_read_modify_writes() {
    // mov [rdi],rax; nop
    let store = sampled(&[0x48, 0x89, 0x07, 0x90], 3).unwrap();
    assert_eq!((store.kind, store.size, store.loaded), (Kind::Store, 8, None));
    // lock xadd [rdi],rax; nop
    let both = sampled(&[0xf0, 0x48, 0x0f, 0xc1, 0x07, 0x90], 5).unwrap();
    assert_eq!((both.kind, both.size), (Kind::Load, 8));
    // add dword [rdi],1; nop
    let both = sampled(&[0x83, 0x07, 0x01, 0x90], 3).unwrap();
    assert_eq!((both.kind, both.size), (Kind::Load, 4));
}

#[test]
fn the_stack() {
    // push rbx; nop
    assert_eq!(address(&[0x53, 0x90], 1, &[(RSP, 0x7ff0)]), Some(0x7ff0));
    assert_eq!(sampled(&[0x53, 0x90], 1).unwrap().kind, Kind::Store);
    // pop rbx; nop
    assert_eq!(address(&[0x5b, 0x90], 1, &[(RSP, 0x7ff8)]), Some(0x7ff0));
    // push [rdi+8]; nop: the load is what one waits for.
    assert_eq!(address(&[0xff, 0x77, 0x08, 0x90], 3, &[(RDI, 0x100)]), Some(0x108));
    // push [rsp+8]; nop: by the stack pointer before.
    assert_eq!(address(&[0xff, 0x74, 0x24, 0x08, 0x90], 4, &[(RSP, 0x7ff0)]), Some(0x8000));
    // call +0; nop: the return loaded its address.
    assert_eq!(address(&[0xe8, 0, 0, 0, 0, 0x90], 5, &[(RSP, 0x7ff8)]), Some(0x7ff0));
    // leave; nop
    assert_eq!(address(&[0xc9, 0x90], 1, &[(RSP, 0x7ff8)]), Some(0x7ff0));
}

#[test]
fn string_instructions() {
    let at = [(RSI, 0x1000), (RDI, 0x2000)];
    // rep movsb in its midst
    assert_eq!(address(&[0x90, 0xf3, 0xa4, 0x90], 1, &at), Some(0x1000));
    // movsq; nop: one done.
    assert_eq!(address(&[0x48, 0xa5, 0x90], 2, &at), Some(0xff8));
    // stosq; nop, and rep stosq in its midst
    assert_eq!(address(&[0x48, 0xab, 0x90], 2, &at), Some(0x1ff8));
    let fill = sampled(&[0xf3, 0x48, 0xab, 0x90], 0).unwrap();
    assert_eq!((fill.kind, fill.size), (Kind::Store, 8));
    // repne scasb reads.
    assert_eq!(sampled(&[0xf2, 0xae, 0x90], 0).unwrap().kind, Kind::Load);
}

#[test]
fn vectors() {
    // vmovdqu ymm0,[rsi]; nop
    let load = sampled(&[0xc5, 0xfe, 0x6f, 0x06, 0x90], 4).unwrap();
    assert_eq!(
        (load.kind, load.size, load.address, load.loaded),
        (Kind::Load, 32, Some(Expression::Register(6)), None)
    );
    // vmovups [rdi],zmm0; nop
    let store = sampled(&[0x62, 0xf1, 0x7c, 0x48, 0x11, 0x07, 0x90], 6).unwrap();
    assert_eq!((store.kind, store.size), (Kind::Store, 64));
    // vpgatherdd ymm0,[rax+ymm1*4],ymm2; nop: many addresses.
    let gather = sampled(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x88, 0x90], 6).unwrap();
    assert_eq!((gather.kind, gather.address), (Kind::Load, None));
}

#[test]
fn what_accesses_no_memory() {
    // lea rax,[rdi]; nop · add rax,rbx; nop · nop [rax]; nop · prefetcht0 [rax]; nop · ret; nop
    for code in
        [&[0x48, 0x8d, 0x07, 0x90][..], &[0x48, 0x01, 0xd8, 0x90], &[0x0f, 0x1f, 0x00, 0x90], &[0x0f, 0x18, 0x08, 0x90]]
    {
        assert_eq!(sampled(code, 3), None, "{code:x?}");
    }
    assert_eq!(sampled(&[0xc3, 0x90], 1), None);
}

/// One instruction of the straight-line programs below.
#[derive(Clone, Copy, Debug)]
enum InstructionOp {
    Mov(u8, u8),
    Mov32(u8, u8),
    Movsxd(u8, u8),
    Lea(u8, u8, i8),
    Add(u8, u8),
    Sub(u8, u8),
    AddNumber(u8, i8),
    Inc(u8),
    Dec(u8),
    Shl(u8, u8),
    Load(u8, u8, i8),
    Load32(u8, u8, i8),
    LoadByte(u8, u8, i8),
    LoadSigned(u8, u8, i8),
    Xor(u8, u8),
    And(u8, u8),
    Or(u8, u8),
    And32(u8, u8),
    Imul(u8, u8),
    Shr(u8, u8),
    Sar(u8, u8),
    Shr32(u8, u8),
    Sar32(u8, u8),
    Movzx8(u8, u8),
    Movzx16(u8, u8),
    Swap(u8, u8),
}

fn memory_at(addr: u64, bytes: u8) -> u64 {
    addr.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) >> (64 - 8 * bytes)
}

impl InstructionOp {
    /// Registers RAX RCX RDX RBX RSI RDI: no special encodings.
    fn encode(self, bytes: &mut Vec<u8>) {
        let both = |reg: u8, rm: u8| 0xc0 | reg << 3 | rm;
        match self {
            InstructionOp::Mov(to, from) => bytes.extend([0x48, 0x89, both(from, to)]),
            InstructionOp::Mov32(to, from) => bytes.extend([0x89, both(from, to)]),
            InstructionOp::Movsxd(to, from) => bytes.extend([0x48, 0x63, both(to, from)]),
            InstructionOp::Lea(to, from, by) => bytes.extend([0x48, 0x8d, 0x40 | to << 3 | from, by as u8]),
            InstructionOp::Add(to, from) => bytes.extend([0x48, 0x01, both(from, to)]),
            InstructionOp::Sub(to, from) => bytes.extend([0x48, 0x29, both(from, to)]),
            InstructionOp::AddNumber(to, by) => bytes.extend([0x48, 0x83, both(0, to), by as u8]),
            InstructionOp::Inc(to) => bytes.extend([0x48, 0xff, both(0, to)]),
            InstructionOp::Dec(to) => bytes.extend([0x48, 0xff, both(1, to)]),
            InstructionOp::Shl(to, by) => bytes.extend([0x48, 0xc1, both(4, to), by]),
            InstructionOp::Load(to, base, by) => bytes.extend([0x48, 0x8b, 0x40 | to << 3 | base, by as u8]),
            InstructionOp::Load32(to, base, by) => bytes.extend([0x8b, 0x40 | to << 3 | base, by as u8]),
            InstructionOp::LoadByte(to, base, by) => bytes.extend([0x0f, 0xb6, 0x40 | to << 3 | base, by as u8]),
            InstructionOp::LoadSigned(to, base, by) => bytes.extend([0x48, 0x63, 0x40 | to << 3 | base, by as u8]),
            InstructionOp::Xor(to, from) => bytes.extend([0x48, 0x31, both(from, to)]),
            InstructionOp::And(to, from) => bytes.extend([0x48, 0x21, both(from, to)]),
            InstructionOp::Or(to, from) => bytes.extend([0x48, 0x09, both(from, to)]),
            InstructionOp::And32(to, from) => bytes.extend([0x21, both(from, to)]),
            InstructionOp::Imul(to, from) => bytes.extend([0x48, 0x0f, 0xaf, both(to, from)]),
            InstructionOp::Shr(to, by) => bytes.extend([0x48, 0xc1, both(5, to), by]),
            InstructionOp::Sar(to, by) => bytes.extend([0x48, 0xc1, both(7, to), by]),
            InstructionOp::Shr32(to, by) => bytes.extend([0xc1, both(5, to), by]),
            InstructionOp::Sar32(to, by) => bytes.extend([0xc1, both(7, to), by]),
            // With REX, registers 6 and 7 are SIL and DIL.
            InstructionOp::Movzx8(to, from) => bytes.extend([0x48, 0x0f, 0xb6, both(to, from)]),
            InstructionOp::Movzx16(to, from) => bytes.extend([0x0f, 0xb7, both(to, from)]),
            InstructionOp::Swap(one, other) => bytes.extend([0x48, 0x87, both(one, other)]),
        }
    }

    fn execute(self, r: &mut [u64; 16]) {
        let at = |n: u8| usize::from(n);
        match self {
            InstructionOp::Mov(to, from) => r[at(to)] = r[at(from)],
            InstructionOp::Mov32(to, from) => r[at(to)] = r[at(from)] & 0xffff_ffff,
            InstructionOp::Movsxd(to, from) => r[at(to)] = r[at(from)] as i32 as u64,
            InstructionOp::Lea(to, from, by) => r[at(to)] = r[at(from)].wrapping_add(by as u64),
            InstructionOp::Add(to, from) => r[at(to)] = r[at(to)].wrapping_add(r[at(from)]),
            InstructionOp::Sub(to, from) => r[at(to)] = r[at(to)].wrapping_sub(r[at(from)]),
            InstructionOp::AddNumber(to, by) => r[at(to)] = r[at(to)].wrapping_add(by as u64),
            InstructionOp::Inc(to) => r[at(to)] = r[at(to)].wrapping_add(1),
            InstructionOp::Dec(to) => r[at(to)] = r[at(to)].wrapping_sub(1),
            InstructionOp::Shl(to, by) => r[at(to)] <<= by,
            InstructionOp::Load(to, base, by) => r[at(to)] = memory_at(r[at(base)].wrapping_add(by as u64), 8),
            InstructionOp::Load32(to, base, by) => r[at(to)] = memory_at(r[at(base)].wrapping_add(by as u64), 4),
            InstructionOp::LoadByte(to, base, by) => r[at(to)] = memory_at(r[at(base)].wrapping_add(by as u64), 1),
            InstructionOp::LoadSigned(to, base, by) => {
                r[at(to)] = memory_at(r[at(base)].wrapping_add(by as u64), 4) as i32 as u64;
            }
            InstructionOp::Xor(to, from) => r[at(to)] ^= r[at(from)],
            InstructionOp::And(to, from) => r[at(to)] &= r[at(from)],
            InstructionOp::Or(to, from) => r[at(to)] |= r[at(from)],
            InstructionOp::And32(to, from) => r[at(to)] = r[at(to)] & r[at(from)] & 0xffff_ffff,
            InstructionOp::Imul(to, from) => r[at(to)] = r[at(to)].wrapping_mul(r[at(from)]),
            InstructionOp::Shr(to, by) => r[at(to)] >>= by,
            InstructionOp::Sar(to, by) => r[at(to)] = ((r[at(to)] as i64) >> by) as u64,
            InstructionOp::Shr32(to, by) => r[at(to)] = u64::from(r[at(to)] as u32 >> (by & 31)),
            InstructionOp::Sar32(to, by) => r[at(to)] = u64::from((r[at(to)] as i32 >> (by & 31)) as u32),
            InstructionOp::Movzx8(to, from) => r[at(to)] = r[at(from)] & 0xff,
            InstructionOp::Movzx16(to, from) => r[at(to)] = r[at(from)] & 0xffff,
            InstructionOp::Swap(one, other) => r.swap(at(one), at(other)),
        }
    }
}

fn any_op() -> impl Strategy<Value = InstructionOp> {
    let register = || prop::sample::select(vec![0u8, 1, 2, 3, 6, 7]);
    let two = move || (register(), register());
    prop_oneof![
        two().prop_map(|(a, b)| InstructionOp::Mov(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Mov32(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Movsxd(a, b)),
        (two(), any::<i8>()).prop_map(|((a, b), by)| InstructionOp::Lea(a, b, by)),
        two().prop_map(|(a, b)| InstructionOp::Add(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Sub(a, b)),
        (register(), any::<i8>()).prop_map(|(a, by)| InstructionOp::AddNumber(a, by)),
        register().prop_map(InstructionOp::Inc),
        register().prop_map(InstructionOp::Dec),
        (register(), 0u8..64).prop_map(|(a, by)| InstructionOp::Shl(a, by)),
        (two(), any::<i8>()).prop_map(|((a, b), by)| InstructionOp::Load(a, b, by)),
        (two(), any::<i8>()).prop_map(|((a, b), by)| InstructionOp::Load32(a, b, by)),
        (two(), any::<i8>()).prop_map(|((a, b), by)| InstructionOp::LoadByte(a, b, by)),
        (two(), any::<i8>()).prop_map(|((a, b), by)| InstructionOp::LoadSigned(a, b, by)),
        two().prop_map(|(a, b)| InstructionOp::Xor(a, b)),
        two().prop_map(|(a, b)| InstructionOp::And(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Or(a, b)),
        two().prop_map(|(a, b)| InstructionOp::And32(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Imul(a, b)),
        (register(), 0u8..64).prop_map(|(a, by)| InstructionOp::Shr(a, by)),
        (register(), 0u8..64).prop_map(|(a, by)| InstructionOp::Sar(a, by)),
        (register(), 0u8..64).prop_map(|(a, by)| InstructionOp::Shr32(a, by)),
        (register(), 0u8..64).prop_map(|(a, by)| InstructionOp::Sar32(a, by)),
        two().prop_map(|(a, b)| InstructionOp::Movzx8(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Movzx16(a, b)),
        two().prop_map(|(a, b)| InstructionOp::Swap(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    /// An address that is told for the last load of a straight run is the one that executing the run gives.
    #[test]
    fn told_addresses_are_true(
        ops in prop::collection::vec(any_op(), 0..10),
        to in prop::sample::select(vec![0u8, 1, 2, 3, 6, 7]),
        base in prop::sample::select(vec![0u8, 1, 2, 3, 6, 7]),
        start in prop::array::uniform16(any::<u64>()),
    ) {
        let (mut bytes, mut now) = (Vec::new(), start);
        for op in &ops {
            op.encode(&mut bytes);
            op.execute(&mut now);
        }
        let truth = now[usize::from(base)].wrapping_add(8);
        let load = InstructionOp::Load(to, base, 8);
        load.encode(&mut bytes);
        load.execute(&mut now);
        let offset = bytes.len();
        bytes.push(0x90);
        let plan = sampled(&bytes, offset).unwrap();
        let registers = Registers { general: now };
        match plan.address {
            Some(value) => {
                let told = value.evaluate(&registers, BASE + offset as u64, &mut |addr, bytes| Some(memory_at(addr, bytes)));
                prop_assert_eq!(told, Some(truth));
            }
            None => prop_assert_eq!(to, base, "lost though its base is intact"),
        }
    }

    /// Any bytes, any place: an answer or none, no panic.
    #[test]
    fn any_code_is_survived(bytes in prop::collection::vec(any::<u8>(), 1..120)) {
        let code = DecodedCode::function(&bytes, BASE);
        for offset in 0..bytes.len() as u64 {
            if let Some(plan) = StalledAccess::new(&code, BASE + offset) {
                if let Some(value) = plan.address {
                    value.evaluate(&registers(&[]), BASE, &mut |addr, bytes| Some(memory_at(addr, bytes)));
                }
            }
            if let Some(code) = DecodedCode::around(&bytes, BASE, BASE + offset) {
                StalledAccess::new(&code, BASE + offset);
            }
        }
    }
}
