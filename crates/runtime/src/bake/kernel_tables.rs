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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_opens_its_own_tables_and_most_need_none() {
        let open = |backend: &str| {
            let settings: crate::bake::Settings = backend.parse().expect(backend);
            KernelTables::open(settings.backend, Target::Own)
        };
        for backend in ["load", "prefetch", "mincore"] {
            assert!(matches!(open(backend), Ok(None)), "{backend}");
        }
        match open("scan") {
            Ok(tables) => assert!(matches!(tables, Some(KernelTables::Scan(_))), "{tables:?}"),
            Err(error) => assert!(error.to_string().contains("Linux 6.7"), "{error}"),
        }
        match open("module") {
            Ok(tables) => assert!(matches!(tables, Some(KernelTables::Module(_))), "{tables:?}"),
            Err(error) => assert!(error.to_string().starts_with("module: /dev/lookaside: "), "{error}"),
        }
    }
}
