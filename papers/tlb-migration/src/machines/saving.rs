//! The software's half of the four interfaces: entries saved to memory, and restored from there.

use super::gem5::Gem5;
use super::MigrationModelError;
use crate::interface::{packed_pairs, Register, Version, COMMIT, PACKED_BYTES};

/// References to memory on entering either: code's translation, and lines of stack and variables that nobody used since
/// TLBs and caches were flushed. **Fitted** on Table A.13, 1 page, save.
pub const ENTRY_WALKS: u64 = 4;
/// Bytes of a register in memory.
const WORD_BYTES: u32 = 4;
/// V1 and V2: valid bit and ASID, the low nine bits of Data Register 0.
const VALID_AND_ASID: u32 = 0x1ff;
const VALID: u32 = 0x100;
const ASID: u32 = 0xff;

/// Instructions of the loops, counted in these listings.
///
/// ```text
/// V1, V2: each index        V1, V2: a relevant entry   V3, V4: each pair
///   mcr   operation, index    mrc  r1, Data 1            mrc   r0, Data 0
///   isb                       mrc  r2, Data 2 (V1)       mrc   r1, Data 1
///   mrc   r0, Data 0          stm  buf!, {r0-r2}         orrs  r2, r0, r1
///   ubfx  r3, r0, #0, #9                                 strd  r0, r1, [buf], #8
///   cmp   r3, wanted                                     beq   done
///   bne   next                                           b     loop
///   add   index, #1
///   cmp   index, #64
///   bne   loop
///
/// V1, restoring               V2                         V3, V4
///   ldm   buf!, {r0-r2}       ldrd  r0, r1, [buf], #8    ldrd  r0, r1, [buf], #8
///   bfi   r0, asid, #0, #8    bfi   r0, asid, #0, #8     mcr   Data 0, r0
///   mcr   Data 0, r0          mcr   Data 0, r0           mcr   Data 1, r1
///   mcr   Data 1, r1          mcr   Data 1, r1           subs  left, #1
///   mcr   Data 2, r2          subs  left, #1             bne   loop
///   mcr   operation, r3       bne   loop
///   subs  left, #1
///   bne   loop
/// ```
struct Instructions {
    /// Of an index that is read, or of a pair that is streamed.
    save: u64,
    /// Of a relevant entry, beside.
    relevant: u64,
    restore: u64,
}

fn instructions(version: Version) -> Instructions {
    match version {
        Version::V1 => Instructions { save: 9, relevant: 3, restore: 8 },
        Version::V2 => Instructions { save: 9, relevant: 2, restore: 6 },
        Version::V3 | Version::V4 => Instructions { save: 6, relevant: 0, restore: 5 },
    }
}

/// Entries in memory, as an interface's registers gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    words: Vec<u32>,
    /// Where the words lie.
    buffer: u32,
}

impl Saved {
    /// Register values in memory.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    pub(super) fn set_words(&mut self, words: Vec<u32>) {
        self.words = words;
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.words.len() * WORD_BYTES as usize
    }
}

impl Gem5 {
    /// Reads the relevant entries of a core's TLB into memory: valid, and of the address space that runs. At most `cap`
    /// entries.
    ///
    /// With versions 1 and 2 software reads every index and judges; with 3 and 4 hardware streams what is relevant.
    ///
    /// # Errors
    /// The buffer is not mapped, an entry has no code, or no such core.
    pub fn save(&mut self, version: Version, core: usize, buffer: u32, cap: u32) -> Result<Saved, MigrationModelError> {
        self.lines(ENTRY_WALKS);
        let mut saved = Saved { words: Vec::new(), buffer };
        match version {
            Version::V1 | Version::V2 => self.save_by_index(version, core, cap, &mut saved)?,
            Version::V3 | Version::V4 => self.save_stream(version, core, cap, &mut saved)?,
        }
        Ok(saved)
    }

    fn save_by_index(
        &mut self,
        version: Version,
        core: usize,
        cap: u32,
        saved: &mut Saved,
    ) -> Result<(), MigrationModelError> {
        let (of, wanted) = (instructions(version), VALID | u32::from(self.asid()));
        for index in 0..self.slots() {
            self.instructions(of.save);
            self.write(core, Register::Operation, index)?;
            let first = self.read(core, Register::Data(0))?;
            if first & VALID_AND_ASID != wanted || saved.words.len() >= cap as usize * version.registers() {
                continue;
            }
            self.instructions(of.relevant);
            self.keep(core, saved, first)?;
            for register in 1..version.registers() {
                let word = self.read(core, Register::Data(register))?;
                self.keep(core, saved, word)?;
            }
        }
        Ok(())
    }

    fn save_stream(
        &mut self,
        version: Version,
        core: usize,
        cap: u32,
        saved: &mut Saved,
    ) -> Result<(), MigrationModelError> {
        self.instructions(1);
        self.write(core, Register::Operation, self.asid().into())?;
        // Version 4: the last pair may begin an entry that is beyond the cap.
        let (most, bytes) = match version {
            Version::V4 => (packed_pairs(cap as usize), cap as usize * PACKED_BYTES),
            _ => (cap as usize, usize::MAX),
        };
        for pair in 0..most {
            self.instructions(instructions(version).save);
            let words = [self.read(core, Register::Data(0))?, self.read(core, Register::Data(1))?];
            if words == [0, 0] {
                break;
            }
            for (register, word) in words.into_iter().enumerate() {
                let at = (2 * pair + register) * WORD_BYTES as usize;
                let kept = bytes.saturating_sub(at).min(WORD_BYTES as usize) as u32;
                self.keep(core, saved, (u64::from(word) & ((1 << (8 * kept)) - 1)) as u32)?;
            }
        }
        Ok(())
    }

    /// Stores a word behind the others.
    fn keep(&mut self, core: usize, saved: &mut Saved, word: u32) -> Result<(), MigrationModelError> {
        self.store(core, saved.buffer + saved.words.len() as u32 * WORD_BYTES)?;
        saved.words.push(word);
        Ok(())
    }

    /// Writes saved entries into a core's TLB, for the address space that runs, under the ASID that it has now.
    ///
    /// # Errors
    /// The words are no entries, the buffer is not mapped, or no such core.
    pub fn restore(&mut self, version: Version, core: usize, saved: &Saved) -> Result<(), MigrationModelError> {
        self.lines(ENTRY_WALKS);
        let registers = version.registers();
        if matches!(version, Version::V3 | Version::V4) {
            self.instructions(1);
            self.write(core, Register::Operation, self.asid().into())?;
        }
        for (entry, words) in saved.words.chunks_exact(registers).enumerate() {
            self.instructions(instructions(version).restore);
            for (register, word) in words.iter().enumerate() {
                self.load(core, saved.buffer + (entry * registers + register) as u32 * WORD_BYTES)?;
                let rolled_over = matches!(version, Version::V1 | Version::V2) && register == 0;
                let word = if rolled_over { word & !ASID | u32::from(self.asid()) } else { *word };
                self.write(core, Register::Data(register), word)?;
            }
            if version == Version::V1 {
                self.write(core, Register::Operation, COMMIT)?;
            }
        }
        if version == Version::V4 {
            self.instructions(2);
            self.write(core, Register::Data(0), 0)?;
            self.write(core, Register::Data(1), 0)?;
        }
        Ok(())
    }
}
