//! Names of code and of allocation sites, for reports: by symbols and debug information of the mapped files.

use std::cell::RefCell;

use lookaside_capture::Symbols;
use lookaside_techniques::Namer;
use lookaside_timing::CodePlace;
use lookaside_trace::{Block, Event};

/// Names by symbols and debug information of the mapped files.
pub struct SymbolNames(RefCell<Symbols>);

impl SymbolNames {
    /// Knows no mapping yet.
    pub fn new() -> Self {
        Self(RefCell::new(Symbols::new()))
    }

    /// Learns the mappings of a block.
    pub fn observe(&self, block: &Block) {
        for (_, event) in &block.events {
            if matches!(
                event,
                Event::Map { .. } | Event::Unmap { .. } | Event::Remap { .. } | Event::Fork { .. } | Event::Exec { .. }
            ) {
                self.0.borrow_mut().observe(block.process, event);
            }
        }
    }

    /// An instruction as every run of the program names it.
    pub fn place(&self, process: u32, ip: u64) -> CodePlace {
        self.0.borrow().place(process, ip)
    }
}

impl Namer for SymbolNames {
    fn function(&self, process: u32, ip: u64) -> String {
        // The line is left out: all of a function's instructions are one row.
        let code = self.0.borrow_mut().resolve(process, ip);
        match (&code.function, &code.file) {
            (Some(function), Some(file)) => format!("{function} ({})", last_part(file)),
            (Some(function), None) => format!("{function} ({})", last_part(&code.module)),
            (None, _) => code.module_offset(),
        }
    }

    fn site(&self, process: u32, frames: &[u64]) -> String {
        self.0.borrow_mut().name_site(process, frames)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
