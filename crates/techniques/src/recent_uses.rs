//! Which pages were used last, at any place of a run: what a model of a window that begins there has to hold.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use foldhash::fast::FixedState;
use lookaside_trace::{Block, Kind};

/// Recorded accesses of a stretch: a list begins a stretch before the place at the most.
const STRETCH: usize = 1 << 13;
/// Pages that are kept of a stretch, those used last.
const MOST_PAGES: usize = 1 << 11;
/// Stretches that are looked back at: four million accesses.
const LOOK_BACK: usize = 512;
/// Threads that are told apart: their numbers have so many values.
const MOST_THREADS: usize = 1 << (64 - THREAD_SHIFT);
/// A use is a page's number, the kind above, and the thread's number above that.
const KIND_SHIFT: u32 = 52;
const THREAD_SHIFT: u32 = 54;

/// Collects, as a run passes, which pages each thread used last in each stretch; on disk, of each stretch the most recent
/// first.
pub(crate) struct RecentUses {
    out: BufWriter<File>,
    /// Where each stretch's uses end in the file, as a number of uses.
    ends: Vec<u64>,
    threads: Vec<(u32, u32)>,
    numbers: HashMap<(u32, u32), usize, FixedState>,
    /// Of the present stretch, in order.
    uses: Vec<u64>,
    distinct: DistinctUses,
    /// Why nothing more is written.
    error: Option<String>,
}

impl RecentUses {
    /// Of nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(tempfile::tempfile()?),
            ends: Vec::new(),
            threads: Vec::new(),
            numbers: HashMap::default(),
            uses: Vec::with_capacity(STRETCH),
            distinct: DistinctUses::new(),
            error: None,
        })
    }

    /// The next block.
    pub(crate) fn run(&mut self, block: &Block) {
        let thread = (block.process, block.thread);
        let next = self.threads.len();
        let number = *self.numbers.entry(thread).or_insert(next);
        if number == next {
            self.threads.push(thread);
        }
        // More threads than there are numbers for are not primed.
        let thread = (number.min(MOST_THREADS - 1) as u64) << THREAD_SHIFT;
        let (mut addrs, mut kinds) = (&block.addr[..], &block.kind[..]);
        while !addrs.is_empty() {
            let (now, later) = addrs.split_at(addrs.len().min(STRETCH - self.uses.len()));
            let (kinds_now, kinds_later) = kinds.split_at(now.len());
            let pairs = now.iter().zip(kinds_now);
            self.uses.extend(pairs.map(|(addr, &kind)| addr >> 12 | (kind as u64) << KIND_SHIFT | thread));
            (addrs, kinds) = (later, kinds_later);
            if self.uses.len() == STRETCH {
                self.end_stretch();
            }
        }
    }

    fn end_stretch(&mut self) {
        self.distinct.clear();
        let mut kept = 0;
        for &page in self.uses.iter().rev() {
            if kept < MOST_PAGES && self.error.is_none() && self.distinct.insert(page) {
                kept += 1;
                self.error = self.out.write_all(&page.to_le_bytes()).err().map(|e| e.to_string());
            }
        }
        self.uses.clear();
        self.ends.push(self.ends.last().copied().unwrap_or(0) + kept as u64);
    }

    /// What can be asked of all that passed.
    ///
    /// # Errors
    /// Why it could not be written, each time that it is asked.
    pub(crate) fn finish(&mut self) -> Result<UsesBefore, String> {
        if self.error.is_none() {
            self.error = self.out.flush().err().map(|e| e.to_string());
        }
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let file = self.out.get_ref().try_clone().map_err(|e| e.to_string())?;
        Ok(UsesBefore { file: Arc::new(file), ends: self.ends.clone().into(), threads: self.threads.clone().into() })
    }
}

/// Tells which pages were used before a place of a run.
#[derive(Clone, Debug)]
pub(crate) struct UsesBefore {
    file: Arc<File>,
    ends: Arc<[u64]>,
    threads: Arc<[(u32, u32)]>,
}

/// A page that a thread used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PriorUse {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) addr: u64,
    pub(crate) kind: Kind,
}

impl UsesBefore {
    /// At most so many last uses before the recorded access of a number, or before the stretch that it lies in, the
    /// longest ago first.
    pub(crate) fn of(&self, access: u64, most: usize) -> io::Result<Vec<PriorUse>> {
        let stretches = self.ends.len().min(usize::try_from(access).unwrap_or(usize::MAX) / STRETCH);
        let mut found: Vec<u64> = Vec::new();
        let mut seen: std::collections::HashSet<u64, FixedState> = Default::default();
        let mut bytes = Vec::new();
        for stretch in (stretches.saturating_sub(LOOK_BACK)..stretches).rev() {
            let begin = stretch.checked_sub(1).map_or(0, |before| self.ends[before]);
            bytes.resize(8 * (self.ends[stretch] - begin) as usize, 0);
            self.file.read_exact_at(&mut bytes, 8 * begin)?;
            let uses = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            found.extend(uses.filter(|&page| seen.insert(page)));
            if found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        Ok(found.iter().rev().filter_map(|&page| self.use_of(page)).collect())
    }

    fn use_of(&self, page: u64) -> Option<PriorUse> {
        let number = (page >> THREAD_SHIFT) as usize;
        let &(process, thread) = self.threads.get(number).filter(|_| number < MOST_THREADS - 1)?;
        let kind = [Kind::Load, Kind::Store, Kind::Fetch][(page >> KIND_SHIFT & 3).min(2) as usize];
        Some(PriorUse { process, thread, addr: page << 12, kind })
    }
}

/// The uses of a stretch, each once: open addressing, at most an eighth full.
struct DistinctUses(Vec<u64>);

/// No use: its kind would be 3.
const NONE: u64 = u64::MAX;

impl DistinctUses {
    fn new() -> Self {
        Self(vec![NONE; 8 * MOST_PAGES])
    }

    fn clear(&mut self) {
        self.0.fill(NONE);
    }

    /// Is it new?
    fn insert(&mut self, page: u64) -> bool {
        let last = self.0.len() - 1;
        let mut at = lookaside_stats::finalise(page) as usize & last;
        loop {
            match self.0[at] {
                NONE => {
                    self.0[at] = page;
                    return true;
                }
                other if other == page => return false,
                _ => at = (at + 1) & last,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(thread: u32, uses: &[(u64, Kind)]) -> Block {
        let mut block = Block { process: 1, thread, ..Block::default() };
        uses.iter().for_each(|&(page, kind)| block.push(kind, page << 12 | 64));
        block
    }

    /// What a list kept by hand says.
    fn last_uses(all: &[PriorUse], most: usize) -> Vec<PriorUse> {
        let mut last = Vec::new();
        for page in all.iter().rev() {
            if !last.contains(page) {
                last.push(*page);
            }
        }
        last.truncate(most);
        last.reverse();
        last
    }

    proptest! {
        #[test]
        fn the_last_uses_are_those_of_a_list(
            blocks in prop::collection::vec((0u32..3, prop::collection::vec((0u64..200, 0usize..3), 0..4000)), 1..14),
            most in 1usize..700,
        ) {
            let mut recent = RecentUses::new().expect("a temporary file");
            let mut all = Vec::new();
            for (thread, uses) in &blocks {
                let kinds = [Kind::Load, Kind::Store, Kind::Fetch];
                let uses: Vec<_> = uses.iter().map(|&(page, kind)| (page, kinds[kind])).collect();
                all.extend(uses.iter().map(|&(page, kind)| {
                    PriorUse { process: 1, thread: *thread, addr: page << 12, kind }
                }));
                recent.run(&block(*thread, &uses));
            }
            let before = recent.finish().expect("a temporary file");
            for access in [0, STRETCH - 1, STRETCH, 2 * STRETCH + 5, all.len()] {
                let whole = access.min(all.len()) / STRETCH * STRETCH;
                // Of a stretch 2048 are kept at the most; here are 1800 in all.
                let expected = last_uses(&all[..whole], most);
                prop_assert_eq!(before.of(access as u64, most).expect("a file"), expected);
            }
        }
    }

    #[test]
    fn of_a_stretch_the_pages_used_last_are_kept() {
        let mut recent = RecentUses::new().expect("a temporary file");
        let pages: Vec<_> = (0..2 * STRETCH as u64).map(|page| (page, Kind::Load)).collect();
        recent.run(&block(1, &pages));
        let found = recent.finish().expect("a temporary file").of(u64::MAX, 3000).expect("a temporary file");
        let kept = |stretch: u64, pages: u64| stretch * STRETCH as u64 - pages..stretch * STRETCH as u64;
        let expected: Vec<u64> = kept(1, 3000 - MOST_PAGES as u64).chain(kept(2, MOST_PAGES as u64)).collect();
        assert_eq!(found.iter().map(|page| page.addr >> 12).collect::<Vec<_>>(), expected);
    }

    /// A full disk stays one, however often is asked.
    #[test]
    fn what_could_not_be_written_is_said_each_time() {
        let mut recent = RecentUses::new().expect("a temporary file");
        recent.error = Some("no space left".into());
        recent.run(&block(1, &vec![(7, Kind::Load); STRETCH]));
        for _ in 0..2 {
            assert_eq!(recent.finish().map(|_| ()), Err("no space left".to_string()));
        }
    }
}
