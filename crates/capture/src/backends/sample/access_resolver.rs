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
