//! A processor in front of the library: a small TLB, and a small virtually indexed, virtually tagged write-back cache,
//! which keep whatever nobody flushes.

use std::collections::HashMap;

use lookaside_fast_address_space_switching::domains::{
    relocate, AddressSpaces, Denied, DomainHardware, WalkedPage, PAGE_SHIFT,
};

/// log2 of a line's words, and of a page's.
const LINE_SHIFT: u32 = 2;
const PAGE_WORDS: u32 = 1024;

/// What a word holds that nobody wrote: of no two words the same.
pub fn initial(frame: u32, word: u32) -> u32 {
    frame * PAGE_WORDS + word
}

#[derive(Clone, Debug)]
struct Line {
    /// Relocated word address, in lines.
    tag: u32,
    /// Where it came from, and goes back to.
    frame: u32,
    first_word: u32,
    words: Vec<u32>,
    dirty: bool,
}

/// How it is built.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    pub tlb_entries: usize,
    pub lines: usize,
    /// A walk is kept in the TLB even if the access then faults.
    pub keeps_faulting: bool,
}

pub struct Processor {
    build: Build,
    tlb: Vec<(u32, WalkedPage)>,
    cache: Vec<Line>,
    memory: HashMap<(u32, u32), u32>,
    dacr: u32,
    slot: u8,
    random: u32,
    pub flushes: u64,
}

impl Processor {
    pub fn new(build: Build) -> Self {
        let (tlb, cache, memory) = (Vec::new(), Vec::new(), HashMap::new());
        Self { build, tlb, cache, memory, dacr: 0, slot: 0, random: 1, flushes: 0 }
    }

    /// The word at a byte address of the running process, or what is put there; with faults as they come.
    pub fn access(&mut self, addr: u32, store: Option<u32>, spaces: &mut AddressSpaces) -> Result<u32, Denied> {
        // Two faults may be needed, for the directory's entry and for a region's domain.
        for _ in 0..3 {
            let at = relocate(addr, self.slot);
            match self.translate(at, store.is_some(), spaces) {
                Some(page) => return Ok(self.data(at, page, store)),
                None => spaces.fault(at, store.is_some(), self)?,
            }
        }
        panic!("{addr:#x}: faults without end");
    }

    fn translate(&mut self, at: u32, store: bool, spaces: &AddressSpaces) -> Option<WalkedPage> {
        let number = at >> PAGE_SHIFT;
        let allowed = |page: &WalkedPage| self.dacr >> (2 * page.domain) & 3 == 1 && (!store || page.writable);
        if let Some((_, page)) = self.tlb.iter().find(|entry| entry.0 == number) {
            return allowed(page).then_some(*page);
        }
        let page = spaces.walk(at)?;
        let allowed = allowed(&page);
        if allowed || self.build.keeps_faulting {
            if self.tlb.len() == self.build.tlb_entries {
                let victim = self.below(self.build.tlb_entries);
                self.tlb.swap_remove(victim);
            }
            self.tlb.push((number, page));
        }
        allowed.then_some(page)
    }

    fn data(&mut self, at: u32, page: WalkedPage, store: Option<u32>) -> u32 {
        let word = at / 4 % PAGE_WORDS;
        if !page.cached {
            if let Some(value) = store {
                self.memory.insert((page.frame, word), value);
            }
            return self.in_memory(page.frame, word);
        }
        let tag = at >> (2 + LINE_SHIFT);
        let line = match self.cache.iter().position(|line| line.tag == tag) {
            Some(line) => line,
            None => self.fill(tag, page.frame, word >> LINE_SHIFT << LINE_SHIFT),
        };
        let line = &mut self.cache[line];
        let held = &mut line.words[(word - line.first_word) as usize];
        if let Some(value) = store {
            *held = value;
            line.dirty = true;
        }
        *held
    }

    fn fill(&mut self, tag: u32, frame: u32, first_word: u32) -> usize {
        if self.cache.len() == self.build.lines {
            let victim = self.below(self.build.lines);
            let line = self.cache.swap_remove(victim);
            self.write_back(&line);
        }
        let words = (first_word..first_word + (1 << LINE_SHIFT)).map(|word| self.in_memory(frame, word)).collect();
        self.cache.push(Line { tag, frame, first_word, words, dirty: false });
        self.cache.len() - 1
    }

    fn write_back(&mut self, line: &Line) {
        if line.dirty {
            for (word, value) in (line.first_word..).zip(&line.words) {
                self.memory.insert((line.frame, word), *value);
            }
        }
    }

    fn in_memory(&self, frame: u32, word: u32) -> u32 {
        self.memory.get(&(frame, word)).copied().unwrap_or(initial(frame, word))
    }

    /// A linear congruential generator (Numerical Recipes): which entry goes.
    fn below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) as usize % bound
    }
}

impl DomainHardware for Processor {
    fn flush_all(&mut self) {
        self.flushes += 1;
        self.tlb.clear();
        for line in std::mem::take(&mut self.cache) {
            self.write_back(&line);
        }
    }

    fn flush_tlbs(&mut self) {
        self.tlb.clear();
    }

    fn flush_range(&mut self, first_page: u32, pages: u32) {
        let range = first_page..first_page + pages;
        self.tlb.retain(|entry| !range.contains(&entry.0));
        for line in std::mem::take(&mut self.cache) {
            if range.contains(&(line.tag >> (PAGE_SHIFT - 2 - LINE_SHIFT))) {
                self.write_back(&line);
            } else {
                self.cache.push(line);
            }
        }
    }

    fn drop_entry(&mut self, addr: u32) {
        self.tlb.retain(|entry| entry.0 != addr >> PAGE_SHIFT);
    }

    fn set_dacr(&mut self, dacr: u32) {
        self.dacr = dacr;
    }

    fn set_pid(&mut self, slot: u8) {
        self.slot = slot;
    }
}
