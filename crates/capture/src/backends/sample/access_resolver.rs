//! From samples to the accesses that they stalled on.

use std::collections::HashMap;
use std::rc::Rc;

use lookaside_trace::{Event, Kind};

use super::decode::{DecodedCode, StalledAccess};
use super::memory;
use super::perf_record::ClockSample;
use crate::symbols::Symbols;

/// Bytes decoded around an address in code that is in no file.
const AROUND_BYTES: u64 = 256;
/// Code that is in no file may be rewritten; its accesses are decoded anew after this many samples.
const FORGET_AFTER: u32 = 4096;
/// Below and above these no user data lies (57-bit address spaces).
const USER_ADDRESSES: std::ops::Range<u64> = 4096..1 << 56;

/// The access that a sample stalled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledAccess {
    /// Load or store.
    pub kind: Kind,
    /// Address; 0 = not known.
    pub addr: u64,
    /// Bytes; 0 = not known.
    pub size: u8,
    /// The accessing instruction; the sampled address where that is not known.
    pub ip: u64,
}

/// Finds the access of each sample. It remembers what it decoded, so that a sample at a known address costs a few
/// look-ups.
pub struct AccessResolver {
    symbols: Symbols,
    functions: HashMap<(usize, u64), Rc<DecodedCode>>,
    accesses: HashMap<(usize, u64), Option<Rc<StalledAccess>>>,
    /// For code in no file, by process and address.
    accesses_outside_files: HashMap<(u32, u64), Option<Rc<StalledAccess>>>,
    samples_outside_files: u32,
}

impl AccessResolver {
    /// Knows of no process yet.
    pub fn new() -> Self {
        AccessResolver {
            symbols: Symbols::new(),
            functions: HashMap::new(),
            accesses: HashMap::new(),
            accesses_outside_files: HashMap::new(),
            samples_outside_files: 0,
        }
    }

    /// Takes note of maps, forks and execs.
    pub fn observe(&mut self, process: u32, event: &Event) {
        self.symbols.observe(process, event);
    }

    /// The access behind a sample.
    pub fn resolve(&mut self, sample: &ClockSample) -> SampledAccess {
        let unknown = SampledAccess { kind: Kind::Load, addr: 0, size: 0, ip: sample.ip };
        let Some(registers) = &sample.registers else { return unknown };
        let Some(stalled) = self.stalled_access(sample.process, sample.ip) else { return unknown };
        let mut read = |addr, bytes| memory::read_number(sample.process, addr, bytes);
        let address = stalled.address.as_ref().and_then(|value| value.evaluate(registers, sample.ip, &mut read));
        let address = address.filter(|addr| USER_ADDRESSES.contains(addr)).filter(|&addr| {
            // Memory was read later than the sample was taken: it must agree with what was loaded.
            let trusted = stalled.address.as_ref().is_some_and(|value| !value.needs_memory());
            trusted
                || stalled.loaded.is_some_and(|(register, bytes)| {
                    let now = memory::read_number(sample.process, addr, bytes);
                    now == Some(registers.general[usize::from(register & 15)])
                })
        });
        let ip = sample.ip.wrapping_add(stalled.ip_offset);
        SampledAccess { kind: stalled.kind, addr: address.unwrap_or(0), size: stalled.size, ip }
    }

    fn stalled_access(&mut self, process: u32, ip: u64) -> Option<Rc<StalledAccess>> {
        let Some((module, offset)) = self.symbols.locate(process, ip) else {
            return self.outside_files(process, ip);
        };
        if let Some(access) = self.accesses.get(&(module, offset)) {
            return access.clone();
        }
        let access = self.in_module(module, offset).map(Rc::new);
        self.accesses.insert((module, offset), access.clone());
        access
    }

    fn in_module(&mut self, module: usize, offset: u64) -> Option<StalledAccess> {
        let (file, debug_root) = self.symbols.module_at(module);
        let Some(bounds) = file.function_bounds(offset, debug_root) else {
            let start = offset.saturating_sub(AROUND_BYTES / 2);
            let bytes = file.read(start..offset + AROUND_BYTES / 2);
            return StalledAccess::new(&DecodedCode::around(&bytes, start, offset)?, offset);
        };
        let start = bounds.start;
        let code = self
            .functions
            .entry((module, start))
            .or_insert_with(|| Rc::new(DecodedCode::function(&file.read(bounds), start)));
        StalledAccess::new(code, offset)
    }

    /// The access of a sample in code of no file: the program generated it at run time.
    fn outside_files(&mut self, process: u32, ip: u64) -> Option<Rc<StalledAccess>> {
        self.samples_outside_files += 1;
        if self.samples_outside_files >= FORGET_AFTER {
            self.samples_outside_files = 0;
            self.accesses_outside_files.clear();
        }
        let new = || {
            let start = ip.saturating_sub(AROUND_BYTES / 2);
            let mut bytes = vec![0; AROUND_BYTES as usize];
            let len = memory::read(process, start, &mut bytes);
            bytes.truncate(len);
            Some(Rc::new(StalledAccess::new(&DecodedCode::around(&bytes, start, ip)?, ip)?))
        };
        self.accesses_outside_files.entry((process, ip)).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use lookaside_trace::MapSource;

    use super::super::perf_record::Registers;
    use super::*;

    const RCX: usize = 1;
    const RBX: usize = 3;
    const RDI: usize = 7;
    /// Where the accessing instructions end in the code below.
    const END: usize = 300;

    /// Code that does nothing but these instructions.
    fn code_with(instructions: &[u8]) -> Vec<u8> {
        let mut code = vec![0x90; 600];
        code[END - instructions.len()..END].copy_from_slice(instructions);
        code
    }

    fn address_of(code: &[u8]) -> u64 {
        code.as_ptr() as u64
    }

    /// A sample of our own process.
    fn sample(ip: u64, registers: &[(usize, u64)]) -> ClockSample {
        let mut all = Registers::default();
        registers.iter().for_each(|&(number, value)| all.general[number] = value);
        ClockSample { process: std::process::id(), thread: 1, ip, registers: Some(all) }
    }

    #[test]
    fn an_access_is_found_in_generated_code() {
        let code = code_with(&[0x48, 0x8b, 0x43, 0x08]); // mov rax,[rbx+8]
        let ip = address_of(&code) + END as u64;
        let mut resolver = AccessResolver::new();
        let load = |addr| SampledAccess { kind: Kind::Load, addr, size: 8, ip: ip - 4 };
        for addr in [0x7000_1000, 4096, (1 << 56) - 1] {
            assert_eq!(resolver.resolve(&sample(ip, &[(RBX, addr - 8)])), load(addr));
        }
        // Where no user's data can lie the address is wrong, whyever.
        for addr in [4095, 1 << 56, u64::MAX] {
            assert_eq!(resolver.resolve(&sample(ip, &[(RBX, addr - 8)])), load(0));
        }
        let unknown = |ip| SampledAccess { kind: Kind::Load, addr: 0, size: 0, ip };
        assert_eq!(resolver.resolve(&ClockSample { registers: None, ..sample(ip, &[]) }), unknown(ip));
        assert_eq!(resolver.resolve(&sample(ip - 4, &[])), unknown(ip - 4), "after an instruction of no access");
        assert_eq!(resolver.resolve(&sample(64, &[])), unknown(64), "in no memory");
    }

    #[test]
    fn an_address_from_memory_is_told_only_if_it_holds_what_was_loaded() {
        // mov rcx,[rdi+8]; mov rcx,[rcx+16]
        let code = code_with(&[0x48, 0x8b, 0x4f, 0x08, 0x48, 0x8b, 0x49, 0x10]);
        let ip = address_of(&code) + END as u64;
        let second = [0, 0, 0x1234_5678_9abc];
        let first = [0, &raw const second as u64];
        let mut resolver = AccessResolver::new();
        let mut addr = |loaded| {
            let access = resolver.resolve(&sample(ip, &[(RDI, &raw const first as u64), (RCX, loaded)]));
            assert_eq!((access.kind, access.size, access.ip), (Kind::Load, 8, ip - 4));
            access.addr
        };
        assert_eq!(addr(second[2]), &raw const second[2] as u64);
        assert_eq!((addr(second[2] + 1), addr(0)), (0, 0));
    }

    #[test]
    fn generated_code_is_decoded_anew_after_4096_samples() {
        let mut code = code_with(&[0x48, 0x8b, 0x43, 0x08]);
        let ip = address_of(&code) + END as u64;
        let mut resolver = AccessResolver::new();
        let mut addr = || resolver.resolve(&sample(ip, &[(RBX, 0x10_0000)])).addr;
        assert_eq!(addr(), 0x10_0008);
        code[END - 1] = 0x10;
        for earlier in 2..4096 {
            assert_eq!(addr(), 0x10_0008, "{earlier}");
        }
        assert_eq!(addr(), 0x10_0010);
    }

    #[test]
    fn code_in_a_file_is_read_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("code");
        std::fs::write(&file, code_with(&[0x48, 0x8b, 0x43, 0x08])).unwrap();
        let mut resolver = AccessResolver::new();
        // Where in our own memory there is nothing.
        let addr = 0x10_0000;
        let source = MapSource::File { path: file.to_string_lossy().into_owned(), offset: 0 };
        resolver.observe(std::process::id(), &Event::Map { addr, len: 4096, prot: 5, source, site: 0 });
        let ip = addr + END as u64;
        for data in [0x7000_1000, 0x7000_2000] {
            let access = resolver.resolve(&sample(ip, &[(RBX, data - 8)]));
            assert_eq!(access, SampledAccess { kind: Kind::Load, addr: data, size: 8, ip: ip - 4 });
        }
    }
}
