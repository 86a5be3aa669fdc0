//! Beyond the paper: several address spaces under the modelled Linux, each with tables and an ASID of its own.

use super::gem5::Gem5;
use super::paging::{PageTables, SPACES_MOST};
use super::MigrationModelError;

/// A process: an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SimulatedProcessId(usize);

impl SimulatedProcessId {
    /// The process that there is from the beginning.
    pub const FIRST: Self = Self(0);
}

#[derive(Clone, Debug)]
struct SimulatedProcess {
    asid: u8,
    /// None: the machine has them, for this is the one that it executes.
    tables: Option<PageTables>,
}

/// All processes.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    all: Vec<SimulatedProcess>,
    /// Whose tables the machine has.
    entered: SimulatedProcessId,
}

impl Processes {
    /// The first, whose tables the machine has.
    pub(super) fn new(gem5: &Gem5) -> Self {
        Self { all: vec![SimulatedProcess { asid: gem5.asid(), tables: None }], entered: SimulatedProcessId::FIRST }
    }

    /// Another one.
    ///
    /// # Errors
    /// There is no room for its tables.
    pub(super) fn add(&mut self) -> Result<SimulatedProcessId, MigrationModelError> {
        let number = self.all.len();
        let tables = PageTables::of_space(number as u32).ok_or(MigrationModelError::Processes { most: SPACES_MOST })?;
        let asid = behind(self.all.last().map_or(0, |last| last.asid));
        self.all.push(SimulatedProcess { asid, tables: Some(tables) });
        Ok(SimulatedProcessId(number))
    }

    /// The machine executes this one from now on.
    ///
    /// # Errors
    /// No such process.
    pub(super) fn enter(&mut self, process: SimulatedProcessId, gem5: &mut Gem5) -> Result<(), MigrationModelError> {
        if process == self.entered {
            return Ok(());
        }
        let next = self.all.get_mut(process.0).ok_or(MigrationModelError::Process)?;
        gem5.set_asid(next.asid);
        if let Some(tables) = next.tables.take() {
            let before = std::mem::replace(&mut gem5.tables, tables);
            self.all[self.entered.0].tables = Some(before);
        }
        self.entered = process;
        Ok(())
    }

    /// New ASIDs for all.
    pub(super) fn roll_over(&mut self, first: u8, gem5: &mut Gem5) {
        let mut asid = first.max(1);
        for process in &mut self.all {
            process.asid = asid;
            asid = behind(asid);
        }
        gem5.set_asid(self.all[self.entered.0].asid);
    }
}

/// The next ASID: never 0, which Linux keeps.
fn behind(asid: u8) -> u8 {
    asid.checked_add(1).unwrap_or(1)
}
