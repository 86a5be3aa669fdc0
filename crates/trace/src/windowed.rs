//! Leaves repeats of the pages used last out of a stream that has every visit to a page.

use crate::block::WINDOW_PAGES;
use crate::{Block, Damage, Event, FilterWindow, Granularity, Kind, Source, TraceError, TraceInfo};

/// Most pages of a window: places are bits of a word.
const MOST_PAGES: usize = 64;

/// Guesses at a page's place in its window, by the low bits of its number.
const HINTS: usize = 4096;

/// Blocks that pass with every visit from where windows left out less than half: a page that leaves is an event, which
/// costs more than a visit does.
const PLAIN_BLOCKS: u32 = 16;

/// No place.
const NOWHERE: usize = MOST_PAGES;

/// A page-granular stream without the repeats of the pages used last, for recorders that can't leave them out themselves.
///
/// The stream that comes in leaves out direct repeats of a page alone. What goes out is as [`TraceInfo::filter_window`]
/// says, but that of left-out accesses only the line of each visit's first one is known.
///
/// ```
/// use lookaside_trace::{Block, FilterWindow, Granularity, Kind, MemorySource, Source, TraceInfo, WindowedSource};
///
/// let mut visits = Block::default();
/// [0x1000, 0x2000, 0x1040, 0x2000].into_iter().for_each(|addr| visits.push(Kind::Load, addr));
/// let info = TraceInfo { granularity: Granularity::Page, ..TraceInfo::default() };
/// let window = FilterWindow { pages: 2, log2_classes: 0, class_pages: 2 };
/// let mut source = WindowedSource::new(MemorySource::new(info, vec![visits]), window, false);
/// let mut block = Block::default();
/// assert!(source.next_block(&mut block)?);
/// assert_eq!((block.addr, block.repeat), (vec![0x1000, 0x2000], vec![1, 1]));
/// # Ok::<(), lookaside_trace::TraceError>(())
/// ```
pub struct WindowedSource<S> {
    inner: S,
    info: TraceInfo,
    visits: Block,
    windows: PageWindows,
    /// So many blocks more pass as they are.
    plain_blocks: u32,
}

impl<S: Source> WindowedSource<S> {
    /// `inner` has every visit to a page; `unified`: loads, stores and fetches share a window.
    ///
    /// # Panics
    /// The stream is not such a one, or the window has more than 64 pages, none, or none of a class.
    pub fn new(inner: S, window: FilterWindow, unified: bool) -> Self {
        let visits = inner.info();
        assert!(
            visits.granularity == Granularity::Page && visits.filter_window == 0 && visits.filter_log2_classes == 0,
            "a stream of visits to pages"
        );
        let windows = PageWindows::new(window, visits.filter_stores_apart, unified);
        let info = TraceInfo {
            filter_window: window.pages,
            filter_log2_classes: window.log2_classes,
            filter_class_pages: window.class_pages,
            ..visits.clone()
        };
        Self { inner, info, visits: Block::default(), windows, plain_blocks: 0 }
    }
}

impl<S: Source> Source for WindowedSource<S> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        if !self.inner.next_block(&mut self.visits)? {
            return Ok(false);
        }
        let visits = self.visits.len();
        if visits <= WINDOW_PAGES || self.plain_blocks == 0 {
            self.windows.filter(&self.visits, block);
            if visits <= WINDOW_PAGES || 2 * block.len() <= visits {
                return Ok(true);
            }
            self.plain_blocks = PLAIN_BLOCKS;
        }
        self.plain_blocks -= 1;
        std::mem::swap(block, &mut self.visits);
        Ok(true)
    }

    fn damage(&self) -> &[Damage] {
        self.inner.damage()
    }
}

/// The windows of loads, stores and fetches, or of those that have one of their own.
struct PageWindows {
    window: FilterWindow,
    /// Of loads, stores and fetches.
    table: [usize; 3],
    tables: [PageWindow; 3],
    now: u64,
}

impl PageWindows {
    fn new(window: FilterWindow, stores_apart: bool, unified: bool) -> Self {
        assert!((1..=MOST_PAGES).contains(&(window.pages as usize)) && window.class_pages > 0, "windows of pages");
        let table = match (unified, stores_apart) {
            (true, _) => [0, 0, 0],
            (false, true) => [0, 1, 2],
            (false, false) => [0, 0, 2],
        };
        let tables = [Kind::Load, Kind::Store, Kind::Fetch].map(|kind| PageWindow::new(kind, window.log2_classes));
        Self { window, table, tables, now: 0 }
    }

    /// Puts what is recorded of a block into an empty one. The windows are empty before and after.
    fn filter(&mut self, visits: &Block, out: &mut Block) {
        (out.process, out.thread) = (visits.process, visits.thread);
        let mut row = 0;
        for (at, event) in &visits.events {
            self.visits(visits, row..(*at as usize).min(visits.len()), out);
            row = (*at as usize).min(visits.len());
            match *event {
                Event::Repeats { addr, kind, count } if self.repeats(addr, kind, count, out) => {}
                Event::Repeats { .. } => out.push_event(event.clone()),
                _ => {
                    self.empty(out);
                    out.push_event(event.clone());
                }
            }
        }
        self.visits(visits, row..visits.len(), out);
        self.empty(out);
    }

    fn visits(&mut self, visits: &Block, rows: std::ops::Range<usize>, out: &mut Block) {
        for row in rows {
            let (addr, kind) = (visits.addr[row], visits.kind[row]);
            let more = visits.repeat.get(row).copied().unwrap_or(0);
            let (page, line) = (addr >> 12, 1 << (addr >> 6 & 63));
            let window = &mut self.tables[self.table[kind as usize]];
            self.now += 1;
            match window.place_of(page) {
                NOWHERE => {
                    let place = window.enter(page, &self.window, out);
                    window.own[place] = line;
                    window.row[place] = out.len() as u32;
                    window.last[place] = self.now;
                    out.addr.push(addr);
                    out.kind.push(kind);
                    out.repeat.push(more);
                    out.size.extend(visits.size.get(row));
                    out.ip.extend(visits.ip.get(row));
                    window.used |= u64::from(more > 0) << place;
                }
                place => {
                    window.lines[place] |= line;
                    window.last[place] = self.now;
                    window.used |= 1 << place;
                    window.make_newest(place);
                    credit(out, window.row[place], 1 + u64::from(more));
                }
            }
        }
    }

    /// Counts repeats to the access that brought their page in; whether there is one.
    fn repeats(&mut self, addr: u64, kind: Kind, count: u64, out: &mut Block) -> bool {
        let window = &mut self.tables[self.table[kind as usize]];
        let place = window.place_of(addr >> 12);
        if place != NOWHERE {
            credit(out, window.row[place], count);
        }
        place != NOWHERE
    }

    fn empty(&mut self, out: &mut Block) {
        for window in &mut self.tables {
            while window.taken != 0 {
                window.leave(window.oldest, out);
            }
        }
    }
}

/// Counts left-out accesses to a row.
fn credit(out: &mut Block, row: u32, count: u64) {
    let repeat = &mut out.repeat[row as usize];
    match u32::try_from(count).ok().and_then(|count| repeat.checked_add(count)) {
        Some(sum) => *repeat = sum,
        None => {
            let (addr, kind) = (out.addr[row as usize], out.kind[row as usize]);
            out.push_event(Event::Repeats { addr, kind, count });
        }
    }
}

/// One window. Arrays are by place.
struct PageWindow {
    kind: Kind,
    page: [u64; MOST_PAGES],
    /// When it was used last.
    last: [u64; MOST_PAGES],
    /// Lines touched, a bit each, and that of the recorded access.
    lines: [u64; MOST_PAGES],
    own: [u64; MOST_PAGES],
    row: [u32; MOST_PAGES],
    /// The order of use, as a list.
    newer: [usize; MOST_PAGES + 1],
    older: [usize; MOST_PAGES + 1],
    oldest: usize,
    newest: usize,
    /// Places, a bit each: those with a page, and those whose page was used since it was told of.
    taken: u64,
    used: u64,
    /// By class of pages: places of its pages; the place that was told of last.
    of_class: Vec<u64>,
    told: Vec<usize>,
    hint: Vec<u8>,
    /// Pages of the window that a hint is at.
    held: Vec<u8>,
}

impl PageWindow {
    fn new(kind: Kind, log2_classes: u32) -> Self {
        Self {
            kind,
            page: [u64::MAX; MOST_PAGES],
            last: [0; MOST_PAGES],
            lines: [0; MOST_PAGES],
            own: [0; MOST_PAGES],
            row: [0; MOST_PAGES],
            newer: [NOWHERE; MOST_PAGES + 1],
            older: [NOWHERE; MOST_PAGES + 1],
            oldest: NOWHERE,
            newest: NOWHERE,
            taken: 0,
            used: 0,
            of_class: vec![0; 1 << log2_classes],
            told: vec![NOWHERE; 1 << log2_classes],
            hint: vec![0; HINTS],
            held: vec![0; HINTS],
        }
    }

    fn class_of(&self, page: u64) -> usize {
        page as usize & (self.of_class.len() - 1)
    }

    /// The page's place, or [`NOWHERE`].
    #[inline]
    fn place_of(&mut self, page: u64) -> usize {
        let hint = hint_of(page);
        let place = usize::from(self.hint[hint]) % MOST_PAGES;
        if self.page[place] == page {
            return place;
        }
        if self.held[hint] == 0 {
            return NOWHERE;
        }
        let found = self.page.iter().position(|&other| other == page);
        if let Some(place) = found {
            self.hint[hint] = place as u8;
        }
        found.unwrap_or(NOWHERE)
    }

    /// Brings in a page that is not there; its place.
    fn enter(&mut self, page: u64, window: &FilterWindow, out: &mut Block) -> usize {
        let class = self.class_of(page);
        while self.taken.count_ones() >= window.pages || self.of_class[class].count_ones() >= window.class_pages {
            self.leave(self.oldest, out);
        }
        if self.of_class.len() > 1 {
            self.touch_class(class, out);
        }
        let place = self.taken.trailing_ones() as usize;
        self.page[place] = page;
        self.lines[place] = 0;
        self.taken |= 1 << place;
        self.used &= !(1 << place);
        self.of_class[class] |= 1 << place;
        self.told[class] = place;
        self.hint[hint_of(page)] = place as u8;
        self.held[hint_of(page)] += 1;
        self.link(place);
        place
    }

    /// The page of this place leaves.
    fn leave(&mut self, place: usize, out: &mut Block) {
        let page = self.page[place];
        let class = self.class_of(page);
        self.touch(place, class, out);
        self.unlink(place);
        self.taken &= !(1 << place);
        self.of_class[class] &= !(1 << place);
        self.held[hint_of(page)] -= 1;
        self.page[place] = u64::MAX;
        let (others, lines) = (self.taken.count_ones() as u8, self.lines[place] & !self.own[place]);
        out.push_leave(page << 12, self.kind, others, lines);
    }

    /// Tells in which order the pages of a class were used last.
    fn touch_class(&mut self, class: usize, out: &mut Block) {
        loop {
            let mut places = self.used & self.of_class[class];
            let mut oldest = (u64::MAX, NOWHERE);
            while places != 0 {
                let place = places.trailing_zeros() as usize;
                oldest = oldest.min((self.last[place], place));
                places &= places - 1;
            }
            if oldest.1 == NOWHERE {
                return;
            }
            self.touch(oldest.1, class, out);
        }
    }

    /// Tells that the page was used, if that is not known and changes the order of its class.
    fn touch(&mut self, place: usize, class: usize, out: &mut Block) {
        let is_used = self.used >> place & 1 != 0;
        self.used &= !(1 << place);
        if is_used && self.of_class.len() > 1 && self.told[class] != place {
            self.told[class] = place;
            out.push_touch(self.page[place] << 12, self.kind);
        }
    }

    #[inline]
    fn make_newest(&mut self, place: usize) {
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
    }

    fn link(&mut self, place: usize) {
        self.older[place] = self.newest;
        self.newer[place] = NOWHERE;
        match self.newest {
            NOWHERE => self.oldest = place,
            newest => self.newer[newest] = place,
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: usize) {
        let (older, newer) = (self.older[place], self.newer[place]);
        match older {
            NOWHERE => self.oldest = newer,
            older => self.newer[older] = newer,
        }
        match newer {
            NOWHERE => self.newest = older,
            newer => self.older[newer] = older,
        }
    }
}

fn hint_of(page: u64) -> usize {
    (page ^ page >> 12) as usize % HINTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemorySource, NativeReader, TraceWriter};

    fn windowed(blocks: Vec<Block>) -> WindowedSource<MemorySource> {
        let info = TraceInfo { granularity: Granularity::Page, ..TraceInfo::default() };
        WindowedSource::new(
            MemorySource::new(info, blocks),
            FilterWindow { pages: 8, log2_classes: 1, class_pages: 4 },
            false,
        )
    }

    fn block(pages: impl Iterator<Item = u64>) -> Block {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        pages.for_each(|page| block.push(Kind::Load, page << 12));
        block
    }

    fn all(source: &mut dyn Source) -> Vec<Block> {
        let (mut blocks, mut block) = (Vec::new(), Block::default());
        while source.next_block(&mut block).expect("it is there") {
            blocks.push(block.clone());
        }
        blocks
    }

    #[test]
    fn where_windows_save_too_little_a_block_has_every_visit_and_a_file_keeps_it_apart() {
        let repeating = block((0..1000).map(|i| i % 4));
        let scattered = block((0..1000).map(|i| 100 + i));
        let short = block(200..300);
        let input = [vec![repeating.clone(), scattered.clone()], vec![repeating.clone(); 20], vec![short]].concat();
        let mut source = windowed(input);
        let info = source.info().clone();
        let blocks = all(&mut source);
        let is_plain: Vec<bool> = blocks.iter().map(|block| !block.is_windowed()).collect();
        // From the scattered block on, sixteen; a short block never.
        let expected: Vec<bool> = (0..23).map(|i| (1..17).contains(&i)).collect();
        assert_eq!(is_plain, expected);
        assert_eq!((blocks[0].len(), &blocks[1], &blocks[2]), (4, &scattered, &repeating));

        let mut file = Vec::new();
        let mut writer = TraceWriter::new(&mut file, &info).expect("memory");
        blocks.iter().for_each(|block| writer.write(block).expect("memory"));
        writer.finish().expect("memory");
        let read = all(&mut NativeReader::new(&file[..], "memory").expect("a trace"));
        let plain = |blocks: &[Block]| -> usize { blocks.iter().filter(|b| !b.is_windowed()).map(Block::len).sum() };
        assert_eq!((plain(&read), plain(&blocks)), (16_000, 16_000));
    }

    #[test]
    fn counts_beyond_a_rows_come_as_events() {
        let mut visits = block([1, 2].into_iter());
        visits.repeat = vec![u32::MAX, 7];
        visits.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Load, count: 1 << 40 });
        visits.push_event(Event::Repeats { addr: 0x9000, kind: Kind::Store, count: 5 });
        let [block] = &all(&mut windowed(vec![visits]))[..] else { panic!("one block") };
        assert_eq!(block.repeat, [u32::MAX, 7]);
        let counts: Vec<u64> = block
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Repeats { count, .. } => Some(*count),
                _ => None,
            })
            .collect();
        assert_eq!(counts, [1 << 40, 5]);
    }
}
