//! The kernel's readers of page tables that have to be opened first.

use super::error::BakeError;
use super::kernel::Scanner;
use super::module::Module;
use super::region::Target;
use super::settings::BakeBackend;

/// What reads page tables in the kernel, opened by the thread that asks.
#[derive(Debug)]
pub(super) enum KernelTables {
    Scan(Scanner),
    Module(Module),
}

impl KernelTables {
    /// What a backend needs of it.
    pub(super) fn open(backend: BakeBackend, target: Target) -> Result<Option<Self>, BakeError> {
        Ok(match backend {
            BakeBackend::Scan => Some(Self::Scan(Scanner::open(target)?)),
            BakeBackend::Module => Some(Self::Module(Module::open(target)?)),
            _ => None,
        })
    }
}
