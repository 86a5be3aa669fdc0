//! The paper's benchmark on the simulated machine (sections 4.3 and 6.2).

use lookaside_machine::Machine;

use super::gem5::Gem5;
use super::paging::{KERNEL_OFFSET, PAGE_SHIFT};
use super::{MigrationModelError, Steps};
use crate::interface::Version;

/// The kernel's other entries of the address space: stack, per-CPU data, clock, module (section 4.3 says that there are
/// some). **Fitted** on Table A.12, 64 pages, migrated access, where they and the pages do not fit the TLB.
pub const GEM5_OTHERS: u32 = 7;
/// Where the pages are, and their frames.
pub(super) const FIRST_PAGE: u32 = 0x4_0004;
pub(super) const FIRST_FRAME: u32 = 0x1_0000;
/// Pages at most: their frames below 4 GiB with room to spare.
const PAGES_MOST: u32 = 16384;
/// Of the accessed page, behind the line that was accessed first.
const OFFSET: u32 = 128;
/// Instructions of the loop round a load: load, add, add, compare, branch (assumed).
const ACCESS_LOOP: u64 = 5;
/// Where entries are saved: among the kernel's sections.
pub(super) const BUFFER: u32 = KERNEL_OFFSET + 0x0080_0000;

/// The kernel's sections in use.
pub(super) fn others() -> impl Iterator<Item = u32> {
    (0..GEM5_OTHERS).map(|section| KERNEL_OFFSET + ((8 + section) << 20))
}

/// The machine with the benchmark's pages mapped.
#[derive(Clone, Debug)]
pub struct Gem5Benchmark {
    machine: Machine,
    pages: u32,
    stride: u32,
}

impl Gem5Benchmark {
    /// So many pages, each `stride` pages from the one before, on a machine like preset `gem5-armv7`.
    ///
    /// # Errors
    /// Too many or no pages.
    pub fn new(machine: &Machine, pages: u32, stride: u32) -> Result<Self, MigrationModelError> {
        if pages == 0 || pages > PAGES_MOST / stride.max(1) {
            return Err(MigrationModelError::Pages { pages, most: PAGES_MOST / stride.max(1) });
        }
        Ok(Self { machine: machine.clone(), pages, stride })
    }

    /// The six steps through the registers of a version, on one core.
    ///
    /// # Errors
    /// Another kind of machine.
    pub fn six_steps(&self, version: Version) -> Result<Steps, MigrationModelError> {
        let mut gem5 = Gem5::new(&self.machine, version)?;
        let pages: Vec<u32> = (0..self.pages).map(|page| page * self.stride).collect();
        for page in &pages {
            gem5.tables.map(FIRST_PAGE + page, FIRST_FRAME + page, 3)?;
        }
        let access = |gem5: &mut Gem5, offset: u32| {
            timed(gem5, |gem5| {
                pages.iter().try_for_each(|page| {
                    gem5.instructions(ACCESS_LOOP);
                    gem5.load(0, ((FIRST_PAGE + page) << PAGE_SHIFT) + offset)
                })
            })
        };
        // Between the steps clocks are read and results kept, by the kernel's other entries.
        let between = |gem5: &mut Gem5| others().try_for_each(|va| gem5.touch(0, va));
        let flush = |gem5: &mut Gem5| {
            gem5.flush_caches();
            gem5.flush_tlbs();
            between(gem5)
        };
        flush(&mut gem5)?;
        let (clean_cycles, ()) = access(&mut gem5, 0)?;
        between(&mut gem5)?;
        let slots = gem5.slots();
        let saved_entries = gem5.entries(0)?.len() as u32;
        let (save_cycles, saved) = timed(&mut gem5, |gem5| gem5.save(version, 0, BUFFER, slots))?;
        flush(&mut gem5)?;
        let (restore_cycles, ()) = timed(&mut gem5, |gem5| gem5.restore(version, 0, &saved))?;
        between(&mut gem5)?;
        let (migrated_cycles, ()) = access(&mut gem5, OFFSET)?;
        Ok(Steps { clean_cycles, save_cycles, restore_cycles, migrated_cycles, saved_entries })
    }
}

/// Cycles of a step, and what it gave.
fn timed<T>(
    gem5: &mut Gem5,
    step: impl FnOnce(&mut Gem5) -> Result<T, MigrationModelError>,
) -> Result<(u64, T), MigrationModelError> {
    let start = gem5.cycles();
    let result = step(gem5)?;
    Ok((gem5.cycles() - start, result))
}
