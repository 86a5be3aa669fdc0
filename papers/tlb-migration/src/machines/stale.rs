//! Beyond the paper, which leaves it open (section 5.2, chapter 9): saved entries whose pages change while they lie in
//! memory.
//!
//! What the kernel has to drop from TLBs, it also has to drop from saved sets. Else a restored entry says what the
//! tables do not say any more: a frame that is another program's by now, or rights that were taken away.

use super::linux::Linux;
use super::paging::PAGE_SHIFT;
use super::processes::SimulatedProcessId;
use super::saving::Saved;
use super::MigrationModelError;
use crate::interface::layout::{join, split};
use crate::interface::{pack, unpack, Entry, InterfaceError, Version};

impl Saved {
    /// The entries, for an address space whose ASID is this by now.
    ///
    /// # Errors
    /// The words are no entries.
    pub fn entries(&self, version: Version, asid: u8) -> Result<Vec<Entry>, InterfaceError> {
        let words = self.words();
        let pairs = || words.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
        // Versions 1 and 2 carry the ASID of the time when they were saved.
        let now = |entry: Option<Entry>| entry.map(|entry| Entry { asid, ..entry });
        let entries = match version {
            Version::V1 => {
                let decode = |of: &[u32]| Entry::decode_v1(join([of[0], of[1], of[2]])).map(now);
                words.chunks_exact(3).map(decode).collect::<Result<Vec<_>, _>>()?
            }
            Version::V2 => {
                pairs().map(|pair| Entry::decode_v2(join(pair) as u64).map(now)).collect::<Result<Vec<_>, _>>()?
            }
            Version::V3 => {
                pairs().map(|pair| Entry::decode_v3(join(pair) as u64, asid)).collect::<Result<Vec<_>, _>>()?
            }
            Version::V4 => return unpack(&pairs().collect::<Vec<_>>(), asid),
        };
        Ok(entries.into_iter().flatten().collect())
    }

    /// Drops the entry of a page: the set as it would be, had the page not been in the TLB. Whether there was one.
    ///
    /// # Errors
    /// The words are no entries.
    pub fn drop_page(&mut self, version: Version, asid: u8, v_page: u32) -> Result<bool, InterfaceError> {
        let entries = self.entries(version, asid)?;
        let covers = |entry: &Entry| {
            v_page >> (entry.page.shift() - PAGE_SHIFT) == entry.v_page >> (entry.page.shift() - PAGE_SHIFT)
        };
        let kept: Vec<Entry> = entries.iter().filter(|entry| !covers(entry)).copied().collect();
        if kept.len() == entries.len() {
            return Ok(false);
        }
        let mut words = Vec::new();
        match version {
            Version::V1 => {
                for entry in &kept {
                    words.extend(split::<3>(entry.encode_v1()?));
                }
            }
            Version::V2 | Version::V3 => {
                for entry in &kept {
                    let word = if version == Version::V2 { entry.encode_v2()? } else { entry.encode_v3()? };
                    words.extend(split::<2>(word.into()));
                }
            }
            // Without the zeroed pair, which restoring writes itself.
            Version::V4 => words.extend(pack(&kept)?.iter().filter(|pair| **pair != [0, 0]).flatten()),
        }
        self.set_words(words);
        Ok(true)
    }
}

impl Linux {
    /// Maps a page of a process. Entries of what was there are dropped from all TLBs and saved sets.
    ///
    /// # Errors
    /// No such process, the kernel has a section there, or there is no room for the tables.
    pub fn map(
        &mut self,
        process: SimulatedProcessId,
        v_page: u32,
        p_page: u32,
        ap: u8,
    ) -> Result<(), MigrationModelError> {
        self.enter(process)?.tables.map(v_page, p_page, ap)?;
        self.forget(process, v_page)
    }

    /// Unmaps a page of a process, likewise.
    ///
    /// # Errors
    /// No such process, or a saved set cannot be read.
    pub fn unmap(&mut self, process: SimulatedProcessId, v_page: u32) -> Result<(), MigrationModelError> {
        if self.enter(process)?.tables.unmap(v_page) {
            self.forget(process, v_page)?;
        }
        Ok(())
    }

    /// Changes a page's rights, likewise.
    ///
    /// # Errors
    /// No such process, or a saved set cannot be read.
    pub fn protect(&mut self, process: SimulatedProcessId, v_page: u32, ap: u8) -> Result<(), MigrationModelError> {
        if self.enter(process)?.tables.protect(v_page, ap) {
            self.forget(process, v_page)?;
        }
        Ok(())
    }

    /// ASIDs are given out anew: the first process has this one, the others those behind it (never 0, which Linux
    /// keeps), and all TLBs are empty, as Linux has them then. Saved sets stay: each version's entries take the ASID of
    /// the time when they are restored.
    pub fn roll_over(&mut self, first_asid: u8) {
        let (processes, gem5) = self.processes();
        gem5.flush_tlbs();
        processes.roll_over(first_asid, gem5);
    }

    /// The process is entered.
    fn forget(&mut self, process: SimulatedProcessId, v_page: u32) -> Result<(), MigrationModelError> {
        self.gem5().invalidate(v_page);
        let (version, asid) = (self.version(), self.gem5().asid());
        for saved in self.saved_sets(process) {
            saved.drop_page(version, asid, v_page)?;
        }
        Ok(())
    }
}
