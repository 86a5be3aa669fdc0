//! A kernel and a processor, as far as keys go: pages with a key each, threads with a register each.

use std::collections::BTreeMap;

use lookaside_runtime::domains::{denied, Keys, NoKeys, PAGE_BYTES};

/// What a fresh thread may: key 0 alone, as Linux has it.
pub const NEW_THREAD: u32 = 0x5555_5554;

#[derive(Debug)]
pub struct Fake {
    /// Keys that can be had, last first.
    free: Vec<u8>,
    had: Vec<u8>,
    /// By page number; `None` = closed.
    pages: BTreeMap<usize, Option<u8>>,
    /// PKRU of each thread.
    pub registers: Vec<u32>,
    /// Who calls.
    pub thread: usize,
    pub protect_calls: u64,
    /// The call of pkey_mprotect from here on that fails, half done; 1 is the next.
    pub fails_in: u32,
    pub unmap_fails: bool,
}

impl Fake {
    /// `free`: keys that others have not taken. What threads may of theirs is not ours to change.
    pub fn new(free: Vec<u8>, threads: usize) -> Self {
        let others = (1..16).filter(|key| !free.contains(key)).map(denied);
        let register = NEW_THREAD & !others.sum::<u32>();
        Self {
            free,
            had: Vec::new(),
            pages: BTreeMap::new(),
            registers: vec![register; threads],
            thread: 0,
            protect_calls: 0,
            fails_in: 0,
            unmap_fails: false,
        }
    }

    /// Whether a thread may read there, and write.
    pub fn may(&self, thread: usize, address: usize) -> (bool, bool) {
        let Some(Some(key)) = self.pages.get(&(address / PAGE_BYTES)) else { return (false, false) };
        let bits = self.registers[thread] >> (2 * key) & 0b11;
        (bits & 0b01 == 0, bits == 0)
    }

    /// Pages of each key.
    pub fn pages_of(&self, key: u8) -> Vec<usize> {
        self.pages.iter().filter(|(_, carries)| **carries == Some(key)).map(|(page, _)| *page).collect()
    }
}

impl Keys for Fake {
    fn alloc(&mut self) -> Result<u8, NoKeys> {
        let key = self.free.pop().ok_or(NoKeys::Taken)?;
        self.had.push(key);
        Ok(key)
    }

    /// The first gap: what was unmapped is soon another's.
    fn map(&mut self, bytes: usize) -> Result<usize, i32> {
        let pages = bytes / PAGE_BYTES;
        if !bytes.is_multiple_of(PAGE_BYTES) || pages > 1 << 20 {
            return Err(libc::ENOMEM);
        }
        let fits = |first: &usize| (*first..first + pages).all(|page| !self.pages.contains_key(&page));
        let first = (100..).find(fits).expect("there is always room");
        self.pages.extend((first..first + pages).map(|page| (page, None)));
        Ok(first * PAGE_BYTES)
    }

    fn unmap(&mut self, start: usize, bytes: usize) -> Result<(), i32> {
        if std::mem::take(&mut self.unmap_fails) {
            return Err(libc::ENOMEM);
        }
        for page in start / PAGE_BYTES..(start + bytes) / PAGE_BYTES {
            assert!(self.pages.remove(&page).is_some(), "page {page} was not mapped");
        }
        Ok(())
    }

    fn protect(&mut self, start: usize, bytes: usize, key: Option<u8>) -> Result<(), i32> {
        assert!(key.is_none_or(|key| self.had.contains(&key)), "{key:?} is not ours");
        self.protect_calls += 1;
        let fails = self.fails_in == 1;
        self.fails_in = self.fails_in.saturating_sub(1);
        let (first, pages) = (start / PAGE_BYTES, bytes / PAGE_BYTES);
        let done = if fails { pages / 2 } else { pages };
        for page in first..first + pages {
            assert!(self.pages.contains_key(&page), "page {page} is not mapped");
        }
        for page in first..first + done {
            self.pages.insert(page, key);
        }
        if fails {
            return Err(libc::ENOMEM);
        }
        Ok(())
    }

    fn set_rights(&mut self, mask: u32, rights: u32) {
        let ours: u32 = self.had.iter().map(|key| denied(*key) * 3).sum();
        assert_eq!(mask, ours, "others' keys are theirs, and key 0 everybody's");
        let register = &mut self.registers[self.thread];
        *register = *register & !mask | rights & mask;
    }
}
