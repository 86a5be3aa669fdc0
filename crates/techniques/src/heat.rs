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
/// Rows of a finished map at the most: what a page of the report can show.
const MOST_ROWS: usize = 72;

/// Bands found lately, by the low bits of their number: a lookup in the map costs more than the count.
const MEMO: usize = MOST_BANDS;

/// Counts accesses while blocks go by.
pub(crate) struct HeatBuilder {
    /// Place in a column by (process, first page of the band).
    bands: BTreeMap<(u32, u64), u32>,
    /// Accesses by column and, within, by place: those of now lie close together. Places that are missing at a column's end
    /// have none.
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
        while self.bands.len() > MOST_ROWS && self.band_shift < 52 {
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
        while self.bands.len() > MOST_BANDS && self.band_shift < 52 {
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
