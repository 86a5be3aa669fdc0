//! From samples to accesses.

use std::collections::HashMap;
use std::rc::Rc;

use lookaside_trace::{Event, Kind};

use super::code::Code64;
use super::memory;
use super::plan::Plan;
use super::record::Sample;
use crate::Symbols;

/// Bytes decoded around an address in code that is in no file.
const AROUND_BYTES: u64 = 256;
/// Code that is in no file may be rewritten; what is known of it is forgotten after this many samples.
const FORGET_AFTER: u32 = 4096;
/// Below and above these no user data lies (57-bit address spaces).
const USER_ADDRESSES: std::ops::Range<u64> = 4096..1 << 56;

/// The access that a sample waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What.
    pub kind: Kind,
    /// Where; 0 = not found.
    pub addr: u64,
    /// Bytes; 0 = not known.
    pub size: u8,
    /// The accessing instruction; the sampled address where that is not known.
    pub ip: u64,
}

/// Remembers what it decoded, so that a sample at a known address costs a few look-ups.
pub struct Resolver {
    symbols: Symbols,
    functions: HashMap<(usize, u64), Rc<Code64>>,
    plans: HashMap<(usize, u64), Option<Rc<Plan>>>,
    /// For code in no file, by process and address.
    other_plans: HashMap<(u32, u64), Option<Rc<Plan>>>,
    other_samples: u32,
}

impl Resolver {
    /// Knows of no process yet.
    pub fn new() -> Self {
        Resolver {
            symbols: Symbols::new(),
            functions: HashMap::new(),
            plans: HashMap::new(),
            other_plans: HashMap::new(),
            other_samples: 0,
        }
    }

    /// Takes note of maps, forks and execs.
    pub fn observe(&mut self, process: u32, event: &Event) {
        self.symbols.observe(process, event);
    }

    /// The access behind a sample.
    pub fn resolve(&mut self, sample: &Sample) -> Access {
        let unknown = Access { kind: Kind::Load, addr: 0, size: 0, ip: sample.ip };
        let Some(registers) = &sample.registers else { return unknown };
        let Some(plan) = self.plan(sample.process, sample.ip) else { return unknown };
        let mut read = |addr, bytes| memory::read_number(sample.process, addr, bytes);
        let address = plan.address.as_ref().and_then(|value| value.evaluate(registers, sample.ip, &mut read));
        let address = address.filter(|addr| USER_ADDRESSES.contains(addr)).filter(|&addr| {
            // Memory was read later than the sample was taken: it must agree with what was loaded.
            let trusted = plan.address.as_ref().is_some_and(|value| !value.needs_memory());
            trusted
                || plan.loaded.is_some_and(|(register, bytes)| {
                    let now = memory::read_number(sample.process, addr, bytes);
                    now == Some(registers.general[usize::from(register & 15)])
                })
        });
        let ip = sample.ip.wrapping_add(plan.ip_offset);
        Access { kind: plan.kind, addr: address.unwrap_or(0), size: plan.size, ip }
    }

    fn plan(&mut self, process: u32, ip: u64) -> Option<Rc<Plan>> {
        let Some((module, offset)) = self.symbols.locate(process, ip) else {
            return self.plan_outside_files(process, ip);
        };
        if let Some(plan) = self.plans.get(&(module, offset)) {
            return plan.clone();
        }
        let plan = self.plan_in_module(module, offset).map(Rc::new);
        self.plans.insert((module, offset), plan.clone());
        plan
    }

    fn plan_in_module(&mut self, module: usize, offset: u64) -> Option<Plan> {
        let (file, debug_root) = self.symbols.module_at(module);
        let Some(bounds) = file.function_bounds(offset, debug_root) else {
            let start = offset.saturating_sub(AROUND_BYTES / 2);
            let bytes = file.read(start..offset + AROUND_BYTES / 2);
            return Plan::new(&Code64::around(&bytes, start, offset)?, offset);
        };
        let start = bounds.start;
        let code = self
            .functions
            .entry((module, start))
            .or_insert_with(|| Rc::new(Code64::function(&file.read(bounds), start)));
        Plan::new(code, offset)
    }

    /// Code that a program made at run time, or that is in a file which could not be mapped to.
    fn plan_outside_files(&mut self, process: u32, ip: u64) -> Option<Rc<Plan>> {
        self.other_samples += 1;
        if self.other_samples >= FORGET_AFTER {
            self.other_samples = 0;
            self.other_plans.clear();
        }
        let new = || {
            let start = ip.saturating_sub(AROUND_BYTES / 2);
            let mut bytes = vec![0; AROUND_BYTES as usize];
            let len = memory::read(process, start, &mut bytes);
            bytes.truncate(len);
            Some(Rc::new(Plan::new(&Code64::around(&bytes, start, ip)?, ip)?))
        };
        self.other_plans.entry((process, ip)).or_insert_with(new).clone()
    }
}
