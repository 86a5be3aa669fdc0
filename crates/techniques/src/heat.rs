//! Page heat over time and address, in bounded memory whatever the length of the run.
//!
//! Time and address both start fine and are halved in resolution whenever they outgrow their budget:
//! columns merge in pairs, bands of pages merge in pairs. Counts are never lost.

use std::collections::BTreeMap;

use lookaside_trace::Block;

use crate::{HeatMap, HeatRow};

/// Columns kept at the most; a finished map has between half of this and all of it.
const MOST_COLUMNS: usize = 96;
/// Bands kept at the most while counting.
const MOST_BANDS: usize = 4096;
/// Rows of a finished map at the most: what a page of the report can show.
const MOST_ROWS: usize = 72;

/// Bands found lately, by the low bits of their number: a lookup in the map costs more than the count.
const MEMO: usize = 256;

/// Counts page visits while blocks go by.
pub struct HeatBuilder {
    /// Place in `visits` by (process, first page of the band).
    bands: BTreeMap<(u32, u64), usize>,
    /// Visits of each band by column.
    visits: Vec<Vec<u64>>,
    /// (process, band number, place).
    memo: Vec<(u32, u64, usize)>,
    /// log2 of the pages in a band.
    band_shift: u32,
    /// Recorded accesses in a column.
    per_column: u64,
    /// Column being filled, and accesses in it.
    column: usize,
    in_column: u64,
}

impl Default for HeatBuilder {
    fn default() -> Self {
        Self {
            bands: BTreeMap::new(),
            visits: Vec::new(),
            memo: vec![NOTHING; MEMO],
            band_shift: 0,
            per_column: 4096,
            column: 0,
            in_column: 0,
        }
    }
}

/// No band: addresses have at most 64 bits, so no band has this number.
const NOTHING: (u32, u64, usize) = (0, u64::MAX, 0);

impl HeatBuilder {
    /// Counts the recorded accesses of a block (left-out repeats are not visits).
    pub fn run(&mut self, block: &Block) {
        let mut at = 0;
        while at < block.len() {
            let room = (self.per_column - self.in_column) as usize;
            let end = block.len().min(at + room);
            self.count(block.process, &block.addr[at..end]);
            self.in_column += (end - at) as u64;
            at = end;
            if self.in_column == self.per_column {
                self.next_column();
            }
        }
    }

    /// The map, its bands merged until they fit a picture, rows named by `name(process, start)`.
    pub fn finish(mut self, mut name: impl FnMut(u32, u64) -> String) -> HeatMap {
        while self.bands.len() > MOST_ROWS && self.band_shift < 52 {
            self.widen();
        }
        let columns = self.column + usize::from(self.in_column > 0);
        let rows = self
            .bands
            .iter()
            .map(|(&(process, page), &place)| {
                let mut visits = self.visits[place].clone();
                visits.resize(columns, 0);
                let start = page << PAGE_SHIFT;
                let end = start.saturating_add(1 << (self.band_shift + PAGE_SHIFT));
                HeatRow { process, start, end, name: name(process, start), visits }
            })
            .collect();
        HeatMap { accesses_per_column: self.per_column, rows }
    }

    fn count(&mut self, process: u32, addresses: &[u64]) {
        let column = self.column;
        let mut rest = addresses;
        while let Some(&first) = rest.first() {
            let shift = self.band_shift + PAGE_SHIFT;
            let band = first >> shift;
            let run = rest.iter().position(|a| a >> shift != band).unwrap_or(rest.len());
            let place = self.place(process, band);
            let counts = &mut self.visits[place];
            if counts.len() <= column {
                counts.resize(column + 1, 0);
            }
            counts[column] += run as u64;
            rest = &rest[run..];
            while self.bands.len() > MOST_BANDS && self.band_shift < 52 {
                self.widen();
            }
        }
    }

    fn place(&mut self, process: u32, band: u64) -> usize {
        let slot = band as usize % MEMO;
        let memo = self.memo[slot];
        if (memo.0, memo.1) == (process, band) {
            return memo.2;
        }
        let next = self.visits.len();
        let place = *self.bands.entry((process, band << self.band_shift)).or_insert(next);
        if place == next {
            self.visits.push(Vec::new());
        }
        self.memo[slot] = (process, band, place);
        place
    }

    /// Merges neighbouring bands in pairs.
    fn widen(&mut self) {
        self.band_shift += 1;
        self.memo.fill(NOTHING);
        let mut visits: Vec<Vec<u64>> = Vec::new();
        let mut bands = BTreeMap::new();
        for ((process, page), old) in std::mem::take(&mut self.bands) {
            let counts = std::mem::take(&mut self.visits[old]);
            let place = *bands.entry((process, page >> self.band_shift << self.band_shift)).or_insert(visits.len());
            if place == visits.len() {
                visits.push(counts);
                continue;
            }
            let into = &mut visits[place];
            into.resize(into.len().max(counts.len()), 0);
            for (sum, n) in into.iter_mut().zip(counts) {
                *sum += n;
            }
        }
        (self.bands, self.visits) = (bands, visits);
    }

    fn next_column(&mut self) {
        self.column += 1;
        self.in_column = 0;
        if self.column == MOST_COLUMNS {
            for counts in &mut self.visits {
                *counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
            self.column /= 2;
            self.per_column *= 2;
        }
    }
}

const PAGE_SHIFT: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_trace::Kind;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// No visit is lost, and each row's sum is the naive count of its range.
        #[test]
        fn keeps_every_visit(blocks in prop::collection::vec((0u32..3, prop::collection::vec(0u64..1 << 36, 1..300)), 1..20)) {
            const TIMES: u64 = 150;
            let mut heat = HeatBuilder::default();
            for (process, pages) in blocks.iter().cycle().take(blocks.len() * TIMES as usize) {
                let mut block = Block { process: *process, ..Block::default() };
                pages.iter().for_each(|page| block.push(Kind::Load, page << 12));
                heat.run(&block);
            }
            let map = heat.finish(|_, _| String::new());
            prop_assert!(map.rows.len() <= MOST_ROWS);
            for row in &map.rows {
                let own = blocks.iter().filter(|(process, _)| *process == row.process).flat_map(|(_, pages)| pages);
                let naive = own.filter(|&page| (row.start..row.end).contains(&(page << 12))).count() as u64;
                prop_assert_eq!(row.visits.iter().sum::<u64>(), naive * TIMES);
                prop_assert!(row.visits.len() <= MOST_COLUMNS);
            }
            let all: u64 = map.rows.iter().flat_map(|r| &r.visits).sum();
            prop_assert_eq!(all, blocks.iter().map(|(_, pages)| pages.len() as u64).sum::<u64>() * TIMES);
        }
    }
}
