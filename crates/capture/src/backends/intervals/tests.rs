//! A copy that is followed by translated code does what one does that is stepped, instruction by instruction.

use std::process::{Child, Command};

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Register};
use lookaside_host::Process;
use lookaside_trace::Kind;

use super::block_plan::{BlockPlan, LogReader, LoggedAccess};
use super::follow::{follow, FollowLog, IntervalEnd};
use super::instruction::{flow, is_repeated, is_scattered, kinds, memory, size, Flow};
use super::snapshot_process::{CopiedRegion, SnapshotProcess};
use super::stopped_thread::StoppedThread;
use super::tracee::Stop;
use super::translator::Translator;
use crate::backends::read_memory;

const BASE: u64 = 0x1000_0000_0000;

/// What is logged, as accesses.
#[derive(Default)]
struct Seen {
    plans: Vec<BlockPlan>,
    accesses: Vec<LoggedAccess>,
    reader: LogReader,
    thread_base: u64,
}

impl FollowLog for Seen {
    fn plans(&mut self, plans: Vec<BlockPlan>) {
        self.plans.extend(plans);
    }

    fn words(&mut self, words: Vec<u64>) -> bool {
        self.reader.read(words, self.thread_base);
        while let Some(access) = self.reader.next(&self.plans) {
            self.accesses.push(access);
        }
        true
    }

    fn maps(&mut self) {}

    fn executed(&mut self, _: usize, _: u32) {}
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A copy of a process that runs, and the address of an instruction that makes a system call.
fn copy(pid: u32, before: &mut Option<i32>) -> (SnapshotProcess, StoppedThread) {
    let stopped = loop {
        match StoppedThread::stop(pid as i32, true) {
            Ok(stopped) => break stopped,
            Err(super::stopped_thread::NoCopy::NotNow) => {}
            Err(other) => panic!("{other:?}"),
        }
    };
    let text = Process::of(pid).maps_text().unwrap();
    let regions = CopiedRegion::listed(&text);
    let call = call(pid, &regions);
    let (copy, held, _) = stopped.copy(before, (call, &regions, BASE)).unwrap();
    (copy, held)
}

fn call(pid: u32, regions: &[CopiedRegion]) -> u64 {
    let is_vdso = |source: &lookaside_trace::MapSource| matches!(source, lookaside_trace::MapSource::File { path, .. } if path == "[vdso]");
    let vdso = &regions.iter().find(|its| is_vdso(&its.region.source)).unwrap().region;
    let mut code = vec![0; vdso.bytes() as usize];
    assert_eq!(read_memory(pid, vdso.start, &mut code), code.len());
    vdso.start + code.windows(2).position(|two| two == [0x0f, 0x05]).unwrap() as u64
}

/// The naive twin: one instruction after the other, each by the processor.
fn stepped(process: &SnapshotProcess, most: usize) -> (Vec<LoggedAccess>, usize) {
    let tracee = &process.tracee;
    let mut registers = process.registers;
    registers.orig_rax = u64::MAX;
    tracee.set_registers(&registers).unwrap();
    let mut factory = InstructionInfoFactory::new();
    let (mut accesses, mut instructions) = (Vec::new(), 0);
    while instructions < most {
        let registers = tracee.registers().unwrap();
        let mut code = [0; 15];
        let len = read_memory(tracee.0 as u32, registers.rip, &mut code);
        let instruction = Decoder::with_ip(64, &code[..len], registers.rip, DecoderOptions::NONE).decode();
        let how = flow(&instruction);
        if how == Flow::Refused {
            break;
        }
        instructions += 1;
        let ip = registers.rip;
        accesses.push(LoggedAccess { kind: Kind::Fetch, addr: ip, size: instruction.len() as u8, ip });
        let value = |register: Register| match register {
            Register::FS => registers.fs_base,
            _ if register.is_segment_register() => 0,
            _ => general(&registers, register),
        };
        let used = memory(&mut factory, &instruction);
        let address =
            |memory: &iced_x86::UsedMemory| memory.virtual_address(0, |register, _, _| Some(value(register))).unwrap();
        if is_repeated(&instruction) {
            let starts: Vec<u64> = used.iter().map(address).collect();
            loop {
                step(process);
                if tracee.registers().unwrap().rip != ip {
                    break;
                }
            }
            let times = registers.rcx - tracee.registers().unwrap().rcx;
            // A program begins with the system calls of its loader.
            std::thread::sleep(std::time::Duration::from_millis(100));
            for time in 0..times {
                for (memory, start) in used.iter().zip(&starts) {
                    let bytes = size(memory);
                    let addr = start + time * u64::from(bytes);
                    accesses.push(LoggedAccess { kind: kinds(memory)[0], addr, size: bytes, ip });
                }
            }
            continue;
        }
        for memory in used.iter().filter(|memory| !is_scattered(memory)) {
            for &kind in kinds(memory) {
                accesses.push(LoggedAccess { kind, addr: address(memory), size: size(memory), ip });
            }
        }
        if how == Flow::SystemCall {
            break;
        }
        step(process);
    }
    (accesses, instructions)
}

fn step(process: &SnapshotProcess) {
    process.tracee.step().unwrap();
    assert_eq!(process.tracee.wait(true).unwrap(), Some(Stop::Signal(libc::SIGTRAP)));
}

fn general(registers: &libc::user_regs_struct, register: Register) -> u64 {
    let whole = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RBX => registers.rbx,
        Register::RSP => registers.rsp,
        Register::RBP => registers.rbp,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        _ => panic!("{register:?}"),
    };
    match register.size() {
        8 => whole,
        bytes => whole & ((1 << (8 * bytes)) - 1),
    }
}

/// Follows a program from several places, both ways, from the same place each; why each interval ended.
fn compare(command: &[&str], times: usize, most: usize) -> Vec<IntervalEnd> {
    let child = Command::new(command[0]).args(&command[1..]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let running = Running(child);
    let pid = running.0.id();
    let mut translator = Translator::new(BASE);
    let mut plans = Vec::new();
    let (mut before, mut all, mut ends) = (None, 0, Vec::new());
    for time in 0..times {
        std::thread::sleep(std::time::Duration::from_millis(7 * time as u64));
        let (first, held) = copy(pid, &mut before);
        let mut seen =
            Seen { plans: std::mem::take(&mut plans), thread_base: first.registers.fs_base, ..Seen::default() };
        let (followed, end) = follow(&first, &mut translator, most as u64, &mut seen).unwrap();
        let registers = first.registers;
        drop(first);
        let regions = CopiedRegion::listed(&Process::of(pid).maps_text().unwrap());
        let call = call(pid, &regions);
        let (second, held, _) = held.copy(&mut before, (call, &regions, BASE)).unwrap();
        assert_eq!(second.registers.rip, registers.rip);
        let (accesses, _) = stepped(&second, most);
        drop((second, held));
        plans = seen.plans;
        let same = seen.accesses.iter().zip(&accesses).take_while(|(a, b)| a == b).count();
        let near = |all: &[LoggedAccess]| all[same.saturating_sub(3)..all.len().min(same + 3)].to_vec();
        // Whole blocks are followed, up to the same end: a call, or so many instructions.
        assert!(
            same == seen.accesses.len().min(accesses.len()),
            "{command:?} {end:?}: of {} and {} accesses {same} are the same, then\n{:#x?}\n{:#x?}",
            seen.accesses.len(),
            accesses.len(),
            near(&seen.accesses),
            near(&accesses)
        );
        // The twin makes no system call, not even a harmless one.
        assert!(end != IntervalEnd::Complete || followed as usize >= most, "{followed}");
        ends.push(end);
        all += same;
    }
    assert!(all > times * 10, "{command:?}: {all} accesses");
    ends
}

/// Of a program of instructions that are translated in ways of their own.
#[test]
fn odd_instructions_do_what_they_do_when_stepped() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("odd");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/backends/intervals/odd_code.c");
    let built = Command::new("gcc").args(["-O1", "-w", "-o"]).arg(&program).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("LEFT OUT: gcc is not there: apt-get install gcc libc6-dev");
        return;
    }
    let ends = compare(&[program.to_str().unwrap()], 24, 30_000);
    // A program begins with the system calls of its loader.
    let ends: Vec<_> = ends.into_iter().skip_while(|end| matches!(end, IntervalEnd::SystemCall(_))).collect();
    assert!(ends.iter().all(|end| [IntervalEnd::Complete, IntervalEnd::Instruction].contains(end)), "{ends:?}");
    assert!(ends.iter().filter(|&&end| end == IntervalEnd::Complete).count() >= 12, "{ends:?}");
}

#[test]
fn translated_code_does_what_stepped_code_does() {
    compare(&["sh", "-c", "while :; do :; done"], 8, 20_000);
    compare(&["gzip", "-c", "/dev/zero"], 8, 20_000);
    compare(&["sha256sum", "/dev/zero"], 8, 20_000);
    compare(&["sort", "/dev/zero"], 5, 20_000);
    compare(&["perl", "-e", "while(1){$x{$i++%1000}.=\"a$i\"; $x{$i%7}=''; if($i%3==0){$y=sqrt($i)}}"], 8, 20_000);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    /// Whatever lies where a program jumps to: it is translated in bounds, and what one block logs has its plan.
    #[test]
    fn any_bytes_are_translated_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..400)) {
        let at = 0x40_0000u64;
        let mut read = |addr: u64, into: &mut [u8]| {
            let from = addr.checked_sub(at).and_then(|from| bytes.get(from as usize..)).unwrap_or_default();
            let len = from.len().min(into.len());
            into[..len].copy_from_slice(&from[..len]);
            len
        };
        let mut translator = Translator::new(BASE);
        for start in 0..bytes.len() as u64 {
            let before = translator.code().len();
            let place = translator.translate(at + start, &mut read);
            proptest::prop_assert!(place.is_some_and(|place| (place as usize) < translator.code().len()));
            proptest::prop_assert!(translator.code().len() - before < 1 << 14);
            proptest::prop_assert_eq!(translator.translate(at + start, &mut read), place);
        }
        proptest::prop_assert_eq!(translator.translate(at + 5000, &mut read), None);
        for (number, plan) in translator.take_plans().iter().enumerate() {
            proptest::prop_assert_eq!(translator.size(number as u64), Some((plan.instructions, plan.words)));
            let mut reader = LogReader::default();
            let words = std::iter::once(number as u64).chain((0..plan.words).map(|word| u64::from(word) << 12));
            reader.read(words.collect(), 7);
            let plans = vec![plan.clone(); number + 1];
            let mut accesses = 0;
            while accesses < 10_000 && reader.next(&plans).is_some() {
                accesses += 1;
            }
            proptest::prop_assert_eq!(reader.instructions, u64::from(plan.instructions));
        }
    }
}
