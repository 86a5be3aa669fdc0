//! A machine with virtual caches and untagged TLBs under two kinds of kernel: one that flushes on each switch, and one
//! that has [`AddressSpaces`].
//!
//! Time is what the program says that its instructions take ([`Model::work`]), and what misses and flushes add: a line,
//! a walk, a flush by the machine's description. Hits take no time of their own.
//!
//! Stores that the data cache is not filled by, and dirty lines that others put out, go to a write buffer of eight
//! blocks of up to 16 bytes. The memory takes half a dirty line's time of a flush for each, however full (assumed),
//! while instructions go on; it does one thing at a time, and lines that are fetched come first. Where the buffer is
//! full the processor waits, and flushes wait until it is empty.
//!
//! ```
//! use lookaside_fast_address_space_switching::domains::model::{Model, Switching};
//! use lookaside_fast_address_space_switching::domains::{Config, MappingAddress, PageMapping};
//! use lookaside_trace::Kind;
//!
//! let machine = lookaside_machine::preset("sa1100")?;
//! let mut cycles = Vec::new();
//! for switching in [Switching::Flush, Switching::Domains(Config::LINUX)] {
//!     let mut model = Model::new(&machine, switching)?;
//!     let mut programs = Vec::new();
//!     for frame in [1, 2] {
//!         let program = model.create()?;
//!         model.map(program, MappingAddress::Fixed(0x8000), PageMapping { pages: 1, frame, writable: true })?;
//!         programs.push(program);
//!     }
//!     for n in 0..100 {
//!         model.switch(programs[n % 2])?;
//!         model.access(Kind::Load, 0x8000)?;
//!     }
//!     cycles.push(model.cycles());
//! }
//! assert!(cycles[0] > 100.0 * cycles[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod processor;

use lookaside_machine::Machine;
use lookaside_trace::Kind;

use super::{
    relocate, AddressSpaceError, AddressSpaces, Config, Denied, DomainCounts, DomainHardware, MappingAddress,
    PageMapping, ProcessId, RegionId, WalkedPage, PAGE_BYTES,
};
use processor::{AccessOutcome, StrongArmCore};

pub use error::DomainModelError;
pub use processor::CoreCounts;

/// What the kernel does on a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Caches and TLBs are flushed, as Linux and L4 do without more.
    Flush,
    /// Domains in place of flushes.
    Domains(Config),
}

/// A process, by the order of creation.
pub type ModelProcess = usize;

/// Where mappings go that may go anywhere, in a kernel that flushes: Linux's `TASK_UNMAPPED_BASE`, a third of 3 GiB.
const UNMAPPED_BASE: u32 = 0x4000_0000;
/// The kernel's part, in a kernel that flushes: as [`Config::LINUX`].
const KERNEL_START: u32 = Config::LINUX.kernel_start;
/// Accesses are tried again after a fault: for the entry of the directory, and for a region's domain.
const TRIES: u32 = 4;
/// A page of a process whose kernel flushes: any domain that is granted will do.
const UNTAGGED: WalkedPage = WalkedPage { domain: 0, frame: 0, writable: true, cached: true };

#[derive(Clone, Debug)]
enum ModelKernel {
    Flush {
        running: Option<ModelProcess>,
        /// Where each process's next mapping goes.
        next: Vec<u32>,
    },
    Domains {
        spaces: Box<AddressSpaces>,
        config: Config,
        programs: Vec<ProcessId>,
    },
}

/// Memory that several processes share.
#[derive(Clone, Copy, Debug)]
pub struct ModelRegion {
    mapping: PageMapping,
    id: Option<RegionId>,
}

/// A machine and its kernel.
#[derive(Clone, Debug)]
pub struct Model {
    core: StrongArmCore,
    kernel: ModelKernel,
    /// What the kernel touches on a fault, and how long it works.
    fault: (Vec<(Kind, u32)>, f64),
}

impl Model {
    /// Nothing runs yet.
    ///
    /// # Errors
    /// The machine has not one virtual cache and one TLB a side; the configuration leaves too few domains.
    pub fn new(machine: &Machine, switching: Switching) -> Result<Self, DomainModelError> {
        let mut core = StrongArmCore::new(machine)?;
        let kernel = match switching {
            Switching::Flush => {
                // All pages have domain 0, and that is granted.
                core.set_dacr(1);
                ModelKernel::Flush { running: None, next: Vec::new() }
            }
            Switching::Domains(config) => {
                ModelKernel::Domains { spaces: Box::new(AddressSpaces::new(config)?), config, programs: Vec::new() }
            }
        };
        Ok(Self { core, kernel, fault: (Vec::new(), 0.0) })
    }

    /// What the kernel does when it loads an entry of the caching page directory: its accesses, and the cycles of its
    /// instructions.
    pub fn set_fault_path(&mut self, accesses: Vec<(Kind, u32)>, cycles: f64) {
        self.fault = (accesses, cycles);
    }

    /// A process without mappings.
    ///
    /// # Errors
    /// All PID slots are taken.
    pub fn create(&mut self) -> Result<ModelProcess, DomainModelError> {
        match &mut self.kernel {
            ModelKernel::Flush { next, .. } => {
                next.push(UNMAPPED_BASE);
                Ok(next.len() - 1)
            }
            ModelKernel::Domains { spaces, programs, .. } => {
                programs.push(spaces.create()?);
                Ok(programs.len() - 1)
            }
        }
    }

    /// The process exits: a kernel that flushes does so if it runs, the other leaves that for later.
    ///
    /// # Errors
    /// No such process; it is attached to regions.
    pub fn exit(&mut self, program: ModelProcess) -> Result<(), DomainModelError> {
        match &mut self.kernel {
            ModelKernel::Flush { running, .. } => {
                if *running == Some(program) {
                    *running = None;
                    self.core.flush_all();
                }
            }
            ModelKernel::Domains { spaces, programs, .. } => {
                spaces.exit(id_of(programs, program)?, &mut self.core)?;
            }
        }
        Ok(())
    }

    /// Caches and TLBs are flushed, as either kernel has to on a fork.
    pub fn flush(&mut self) {
        match &mut self.kernel {
            ModelKernel::Flush { .. } => self.core.flush_all(),
            ModelKernel::Domains { spaces, .. } => spaces.flush_now(&mut self.core),
        }
    }

    /// A part of the running process's memory is unmapped. A kernel that flushes drops its lines, and all code (Linux
    /// 2.4.18, `zap_page_range`); the other leaves both for later.
    pub fn unmap(&mut self, addr: u32, pages: u32) {
        if let ModelKernel::Flush { .. } = self.kernel {
            self.core.flush_area(addr, pages, true);
        }
    }

    /// The running process gets another page in the place of one, as on the first write after a fork. Either kernel
    /// drops the old one's lines, and all code if the page may hold some (Linux 2.4.18, `break_cow`).
    pub fn replace_page(&mut self, addr: u32, executable: bool) {
        let addr = relocate(addr, self.core.slot());
        self.core.flush_area(addr, 1, executable);
    }

    /// Maps pages for a process, and says where. A kernel that flushes takes any place.
    ///
    /// # Errors
    /// As [`AddressSpaces::map`].
    pub fn map(
        &mut self,
        program: ModelProcess,
        place: MappingAddress,
        mapping: PageMapping,
    ) -> Result<u32, DomainModelError> {
        match &mut self.kernel {
            ModelKernel::Flush { next, .. } => match place {
                MappingAddress::Fixed(addr) => Ok(addr),
                MappingAddress::Anywhere => {
                    let next = next.get_mut(program).ok_or(AddressSpaceError::NoProcess)?;
                    let addr = *next;
                    *next += mapping.pages * PAGE_BYTES;
                    Ok(addr)
                }
            },
            ModelKernel::Domains { spaces, programs, .. } => {
                Ok(spaces.map(id_of(programs, program)?, place, mapping, &mut self.core)?)
            }
        }
    }

    /// Memory to share.
    ///
    /// # Errors
    /// As [`AddressSpaces::create_region`].
    pub fn create_region(&mut self, mapping: PageMapping) -> Result<ModelRegion, DomainModelError> {
        let id = match &mut self.kernel {
            ModelKernel::Flush { .. } => None,
            ModelKernel::Domains { spaces, .. } => Some(spaces.create_region(None, mapping)?),
        };
        Ok(ModelRegion { mapping, id })
    }

    /// A process gets a region: at its home, so that TLB entries are shared; in a kernel that flushes, as any mapping.
    ///
    /// # Errors
    /// As [`AddressSpaces::attach`].
    pub fn attach(&mut self, program: ModelProcess, region: &ModelRegion) -> Result<u32, DomainModelError> {
        match (&mut self.kernel, region.id) {
            (ModelKernel::Domains { spaces, programs, .. }, Some(id)) => {
                Ok(spaces.attach(id_of(programs, program)?, id, None, &mut self.core)?)
            }
            _ => self.map(program, MappingAddress::Anywhere, region.mapping),
        }
    }

    /// The process runs from now on.
    ///
    /// # Errors
    /// No such process.
    pub fn switch(&mut self, to: ModelProcess) -> Result<(), DomainModelError> {
        match &mut self.kernel {
            ModelKernel::Flush { running, .. } => {
                if running.replace(to) != Some(to) {
                    self.core.flush_all();
                }
            }
            ModelKernel::Domains { spaces, programs, .. } => spaces.switch(id_of(programs, to)?, &mut self.core)?,
        }
        Ok(())
    }

    /// The running process, or the kernel for it, accesses a byte; a store is one of up to 16 bytes of an aligned
    /// block.
    ///
    /// # Errors
    /// It may not.
    #[inline]
    pub fn access(&mut self, kind: Kind, addr: u32) -> Result<(), DomainModelError> {
        let kernel_start = match &self.kernel {
            ModelKernel::Flush { .. } => KERNEL_START,
            ModelKernel::Domains { config, .. } => config.kernel_start,
        };
        if addr >= kernel_start {
            self.core.kernel(kind, addr);
            return Ok(());
        }
        let at = relocate(addr, self.core.slot());
        for _ in 0..TRIES {
            let mut found = self.core.user(kind, at);
            if found == AccessOutcome::Miss {
                let page = match &self.kernel {
                    ModelKernel::Flush { .. } => Some(UNTAGGED),
                    ModelKernel::Domains { spaces, .. } => spaces.walk(at),
                };
                match page {
                    Some(page) => {
                        self.core.fill(kind, at, &page);
                        found = self.core.user(kind, at);
                    }
                    None => self.core.walked_in_vain(),
                }
            }
            if found == AccessOutcome::Done {
                return Ok(());
            }
            self.handle_fault(kind, at).map_err(|denied| DomainModelError::Denied { addr, denied })?;
        }
        Err(DomainModelError::Denied { addr, denied: Denied::Unmapped })
    }

    #[cold]
    fn handle_fault(&mut self, kind: Kind, at: u32) -> Result<(), Denied> {
        let (accesses, cycles) = &self.fault;
        self.core.work(*cycles);
        for (kind, addr) in accesses {
            self.core.kernel(*kind, *addr);
        }
        match &mut self.kernel {
            ModelKernel::Flush { .. } => Err(Denied::Unmapped),
            ModelKernel::Domains { spaces, .. } => spaces.fault(at, kind == Kind::Store, &mut self.core),
        }
    }

    /// Instructions take this long, their fetches and data apart; the memory empties the write buffer meanwhile.
    pub fn work(&mut self, cycles: f64) {
        self.core.work(cycles);
    }

    /// Cycles so far.
    pub fn cycles(&self) -> f64 {
        self.core.cycles
    }

    /// What happened to TLBs and caches so far.
    pub fn core_counts(&self) -> &CoreCounts {
        &self.core.counts
    }

    /// What the library counted; `None` for a kernel that flushes.
    pub fn domain_counts(&self) -> Option<&DomainCounts> {
        match &self.kernel {
            ModelKernel::Flush { .. } => None,
            ModelKernel::Domains { spaces, .. } => Some(spaces.counts()),
        }
    }
}

fn id_of(programs: &[ProcessId], program: ModelProcess) -> Result<ProcessId, AddressSpaceError> {
    programs.get(program).copied().ok_or(AddressSpaceError::NoProcess)
}

#[cfg(test)]
mod tests;
