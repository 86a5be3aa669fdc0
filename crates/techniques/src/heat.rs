//! Page heat over time and address, in bounded memory whatever the length of the run.
//!
//! Time and address both start fine and are halved in resolution whenever they outgrow their budget:
//! columns merge in pairs, bands of pages merge in pairs. Counts are never lost.

use std::collections::BTreeMap;

use lookaside_trace::{Block, Event};

use crate::{HeatMap, HeatRow};

/// Columns kept at the most; a finished map has between half of this and all of it.
const MOST_COLUMNS: usize = 96;
/// Bands kept at the most while counting.
const MOST_BANDS: usize = 4096;
/// Rows of a finished map at the most: what a page of the report can show. More than 36 processes may have more rows.
const MOST_ROWS: usize = 72;
/// log2 of the pages in the widest bands, of half of all addresses.
const WIDEST: u32 = 51;

/// Bands found lately, by the low bits of their number: a lookup in the map costs more than the count.
const MEMO: usize = MOST_BANDS;

/// Counts accesses while blocks go by.
pub(crate) struct HeatBuilder {
    /// Place in a column by (process, first page of the band).
    bands: BTreeMap<(u32, u64), u32>,
    /// Accesses by column and, within, by place: those of now lie close together. Places that are missing at a column's
    /// end have none.
    columns: Vec<Vec<u64>>,
    /// (process, place, band number).
    memo: Vec<(u32, u32, u64)>,
    /// log2 of the pages in a band.
    band_shift: u32,
    /// Accesses in a column.
    per_column: u64,
    /// Accesses in the last column.
    in_column: u64,
}

impl Default for HeatBuilder {
    fn default() -> Self {
        Self {
            bands: BTreeMap::new(),
            columns: vec![Vec::new()],
            memo: vec![NOTHING; MEMO],
            band_shift: 0,
            per_column: 4096,
            in_column: 0,
        }
    }
}

/// No band: addresses have at most 64 bits, so no band has this number.
const NOTHING: (u32, u32, u64) = (0, 0, u64::MAX);

impl HeatBuilder {
    /// Counts the accesses of a block; repeats that the recorder left out count where the access is that they repeat.
    pub fn run(&mut self, block: &Block) {
        let mut events = block.events.iter().peekable();
        let mut at = 0;
        while at < block.len() {
            let band = self.band_of(block.addr[at]);
            let room = self.per_column - self.in_column;
            let (first, mut count) = (at, 0);
            while at < block.len() && count < room && self.band_of(block.addr[at]) == band {
                count += 1 + u64::from(block.repeat.get(at).copied().unwrap_or(0));
                at += 1;
            }
            self.count(block.process, block.addr[first], count);
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= at) {
                self.repeats(block.process, event);
            }
        }
        events.for_each(|(_, event)| self.repeats(block.process, event));
    }

    fn repeats(&mut self, process: u32, event: &Event) {
        if let Event::Repeats { addr, count: count @ 1.., .. } = *event {
            self.count(process, addr, count);
        }
    }

    /// The map, its bands merged until they fit a picture, rows named by `name(process, start)`.
    pub fn finish(mut self, mut name: impl FnMut(u32, u64) -> String) -> HeatMap {
        while self.bands.len() > MOST_ROWS && self.band_shift < WIDEST {
            self.widen();
        }
        let columns = &self.columns[..self.columns.len() - usize::from(self.in_column == 0)];
        let rows = self
            .bands
            .iter()
            .map(|(&(process, page), &place)| {
                let at = |column: &Vec<u64>| column.get(place as usize).copied().unwrap_or(0);
                let accesses = columns.iter().map(at).collect();
                let start = page << PAGE_SHIFT;
                let end = start.saturating_add(1 << (self.band_shift + PAGE_SHIFT));
                HeatRow { process, start, end, name: name(process, start), accesses }
            })
            .collect();
        HeatMap { accesses_per_column: self.per_column, rows }
    }

    fn band_of(&self, addr: u64) -> u64 {
        addr >> (self.band_shift + PAGE_SHIFT)
    }

    /// Counts accesses to a band, in the column of now; time goes on by them.
    fn count(&mut self, process: u32, addr: u64, count: u64) {
        let place = self.place(process, self.band_of(addr)) as usize;
        if let Some(column) = self.columns.last_mut() {
            if column.len() <= place {
                column.resize(place + 1, 0);
            }
            column[place] = column[place].saturating_add(count);
        }
        while self.bands.len() > MOST_BANDS && self.band_shift < WIDEST {
            self.widen();
        }
        self.in_column = self.in_column.saturating_add(count);
        while self.in_column >= self.per_column {
            self.in_column -= self.per_column;
            self.next_column();
        }
    }

    fn place(&mut self, process: u32, band: u64) -> u32 {
        let slot = band as usize % MEMO;
        let memo = self.memo[slot];
        if (memo.0, memo.2) == (process, band) {
            return memo.1;
        }
        let next = self.bands.len() as u32;
        let place = *self.bands.entry((process, band << self.band_shift)).or_insert(next);
        self.memo[slot] = (process, place, band);
        place
    }

    /// Merges neighbouring bands in pairs.
    fn widen(&mut self) {
        self.band_shift += 1;
        self.memo.fill(NOTHING);
        let mut bands = BTreeMap::new();
        let mut moved = vec![0; self.bands.len()];
        for ((process, page), old) in std::mem::take(&mut self.bands) {
            let next = bands.len() as u32;
            moved[old as usize] = *bands.entry((process, page >> self.band_shift << self.band_shift)).or_insert(next);
        }
        for column in &mut self.columns {
            let mut merged = vec![0u64; bands.len()];
            for (&count, &place) in column.iter().zip(&moved) {
                merged[place as usize] = merged[place as usize].saturating_add(count);
            }
            *column = merged;
        }
        self.bands = bands;
    }

    fn next_column(&mut self) {
        if self.columns.len() == MOST_COLUMNS {
            self.columns = self.columns.chunks(2).map(sum).collect();
            self.per_column = self.per_column.saturating_mul(2);
        }
        self.columns.push(Vec::new());
    }
}

/// Columns as one.
fn sum(columns: &[Vec<u64>]) -> Vec<u64> {
    let mut sums = vec![0u64; columns.iter().map(Vec::len).max().unwrap_or(0)];
    for column in columns {
        for (sum, count) in sums.iter_mut().zip(column) {
            *sum = sum.saturating_add(*count);
        }
    }
    sums
}

const PAGE_SHIFT: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_trace::Kind;
    use proptest::prelude::*;

    /// Loads of these pages by a process.
    fn loads(process: u32, pages: impl IntoIterator<Item = u64>) -> Block {
        let mut block = Block { process, ..Block::default() };
        pages.into_iter().for_each(|page| block.push(Kind::Load, page << PAGE_SHIFT | 8));
        block
    }

    fn map(blocks: &[Block]) -> HeatMap {
        let mut heat = HeatBuilder::default();
        blocks.iter().for_each(|block| heat.run(block));
        heat.finish(|process, start| format!("{process} {start:#x}"))
    }

    /// The accesses of each row by column.
    fn columns(blocks: &[Block]) -> Vec<Vec<u64>> {
        map(blocks).rows.into_iter().map(|row| row.accesses).collect()
    }

    fn repeats(page: u64, count: u64) -> Event {
        Event::Repeats { addr: page << PAGE_SHIFT, kind: Kind::Load, count }
    }

    #[test]
    fn each_column_has_as_many_accesses_in_the_order_of_time() {
        let same = |page: u64, count: usize| std::iter::repeat_n(page, count);
        let found = map(&[loads(1, same(3, 1000)), loads(1, same(3, 5000)), loads(1, same(4, 1000))]);
        let row = |page: u64, accesses: &[u64]| {
            let (start, name) = (page << 12, format!("1 {:#x}", page << 12));
            HeatRow { process: 1, start, end: start + 4096, name, accesses: accesses.to_vec() }
        };
        let rows = vec![row(3, &[4096, 1904]), row(4, &[0, 1000])];
        assert_eq!(found, HeatMap { accesses_per_column: 4096, rows });
        // A column that is full is the last one where nothing comes after it.
        assert_eq!(columns(&[loads(1, same(3, 4096))]), [[4096]]);
        assert_eq!(columns(&[loads(1, same(3, 4097))]), [[4096, 1]]);
        assert_eq!(columns(&[]), [[0; 0]; 0]);
    }

    #[test]
    fn repeats_count_in_the_column_where_they_are_told_of() {
        let mut block = loads(1, std::iter::repeat_n(3, 9000));
        block.events = vec![(0, repeats(4, 7)), (0, repeats(5, 0)), (9000, repeats(4, 2))];
        assert_eq!(columns(&[block]), [[4096, 4089, 815], [0, 7, 2]]);
        // Two columns' time goes by at once: the accesses after it are in the third.
        let mut block = loads(1, std::iter::repeat_n(3, 10));
        block.push_event(repeats(4, 10_000));
        assert_eq!(columns(&[block, loads(1, [3, 3])]), [[10, 0, 2], [10_000, 0, 0]]);
        // Left-out repeats of an access lie where it does, over the column's end.
        let mut block = loads(1, [3, 3, 4]);
        block.repeat = vec![4000, 4000, 0];
        assert_eq!(columns(&[block]), [[8002, 0], [0, 1]]);
    }

    #[test]
    fn columns_merge_in_pairs_when_they_are_too_many() {
        // Each access is a column's.
        let columns = |count: usize| {
            let mut block = loads(1, vec![3; count]);
            block.repeat = vec![4095; count];
            let map = map(&[block]);
            (map.accesses_per_column, map.rows[0].accesses.clone())
        };
        assert_eq!(columns(MOST_COLUMNS - 1), (4096, vec![4096; MOST_COLUMNS - 1]));
        assert_eq!(columns(MOST_COLUMNS), (8192, vec![8192; MOST_COLUMNS / 2]));
        let mut more = vec![8192; MOST_COLUMNS / 2];
        more.push(4096);
        assert_eq!(columns(MOST_COLUMNS + 1), (8192, more));
    }

    #[test]
    fn bands_widen_when_they_are_more_than_a_picture_shows() {
        let rows = |pages: u64| {
            let rows = map(&[loads(1, 0..pages)]).rows;
            rows.into_iter().map(|row| (row.start, row.end, row.accesses[0])).collect::<Vec<_>>()
        };
        let most = MOST_ROWS as u64;
        assert_eq!(rows(most), (0..most).map(|page| (page << 12, (page + 1) << 12, 1)).collect::<Vec<_>>());
        let mut pairs: Vec<_> = (0..most / 2).map(|pair| (pair << 13, (pair + 1) << 13, 2)).collect();
        pairs.push((most << 12, (most + 2) << 12, 1));
        assert_eq!(rows(most + 1), pairs);
    }

    #[test]
    fn no_more_bands_are_counted_than_there_is_room_for() {
        let mut heat = HeatBuilder::default();
        heat.run(&loads(1, 0..MOST_BANDS as u64));
        assert_eq!((heat.bands.len(), heat.band_shift), (MOST_BANDS, 0));
        heat.run(&loads(1, [MOST_BANDS as u64]));
        assert_eq!((heat.bands.len(), heat.band_shift), (MOST_BANDS / 2 + 1, 1));
    }

    #[test]
    fn processes_have_rows_of_their_own_however_many_they_are() {
        let mut heat = HeatBuilder::default();
        (0..=MOST_BANDS as u32).for_each(|process| heat.run(&loads(process, [u64::from(process)])));
        let rows = heat.finish(|process, _| process.to_string()).rows;
        assert_eq!(rows.len(), MOST_BANDS + 1);
        for (row, process) in rows.iter().zip(0..) {
            assert_eq!((row.process, row.start, row.end), (process, 0, 1 << 63));
            assert_eq!(row.accesses.iter().sum::<u64>(), 1, "{process}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// No access is lost, and each row's sum is the naive count of its range.
        #[test]
        fn keeps_every_access(blocks in prop::collection::vec((0u32..3, prop::collection::vec(0u64..1 << 36, 1..300)), 1..20)) {
            const TIMES: u64 = 150;
            let mut heat = HeatBuilder::default();
            for (process, pages) in blocks.iter().cycle().take(blocks.len() * TIMES as usize) {
                let mut block = Block { process: *process, ..Block::default() };
                pages.iter().for_each(|page| block.push(Kind::Load, page << 12));
                block.repeat = pages.iter().map(|page| (page % 3 * 1000) as u32).collect();
                heat.run(&block);
            }
            let map = heat.finish(|_, _| String::new());
            prop_assert!(map.rows.len() <= MOST_ROWS);
            for row in &map.rows {
                let own = blocks.iter().filter(|(process, _)| *process == row.process).flat_map(|(_, pages)| pages);
                let inside = own.filter(|&page| (row.start..row.end).contains(&(page << 12)));
                let naive: u64 = inside.map(|page| 1 + page % 3 * 1000).sum();
                prop_assert_eq!(row.accesses.iter().sum::<u64>(), naive * TIMES);
                prop_assert!(row.accesses.len() <= MOST_COLUMNS);
            }
            let all: u64 = map.rows.iter().flat_map(|r| &r.accesses).sum();
            let naive: u64 = blocks.iter().flat_map(|(_, pages)| pages).map(|page| 1 + page % 3 * 1000).sum();
            prop_assert_eq!(all, naive * TIMES);
        }
    }
}
