//! A chunk's table: what accesses of the chunk have in common, said once. Each access is then a number in the table and
//! what its address adds to that.

use super::columns::ChunkColumns;
use super::stream::{Packer, Unpacker};
use super::varint::{put, unzigzag, zigzag, Bad, Cursor};
use crate::Kind;

/// Entries of a table at most, as a 16-bit number can name them: tables of this length need no bounds checks.
pub(crate) const ENTRIES: usize = 1 << 16;

/// Which columns a table has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PresentColumns {
    pub(crate) sizes: bool,
    pub(crate) ips: bool,
    /// First addresses: where each access is written as its distance from the last of its entry.
    pub(crate) firsts: bool,
    pub(crate) repeats: bool,
    /// Which entries' addresses change: only accesses of these have values.
    pub(crate) moving: bool,
}

/// What parts accesses of one instruction, kind and size into several entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Nothing.
    Site,
    /// The page: distances stay inside it.
    Page,
    /// The address: there are no distances.
    Address,
}

/// An entry. The order is that of the table: neighbours are near each other in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    ip: u64,
    size: u8,
    place: u64,
    repeat: u32,
}

impl Key {
    fn hash(&self) -> u64 {
        let rest = u64::from(self.repeat) << 32 | (self.kind as u64) << 8 | u64::from(self.size);
        // Fibonacci hashing: 2^64 over the golden ratio; the other is the multiplier of SplitMix64.
        let h = (self.ip ^ rest.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (h ^ self.place).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// Makes tables.
#[derive(Default)]
pub(crate) struct TableEncoder {
    /// Open addressing, first-come number + 1; 0 = empty.
    slots: Vec<u32>,
    first_come: Vec<Key>,
    order: Vec<u32>,
    renumber: Vec<u16>,
    entries: Vec<Key>,
    /// By entry: the address of its first access, then of its last.
    pub(crate) last: Vec<u64>,
    /// The entry of each access.
    pub(crate) index: Vec<u16>,
    /// By entry: 1 if its address changes, after [`TableEncoder::find_moving`].
    pub(crate) moving: Vec<u8>,
}

impl TableEncoder {
    /// Finds the entries of `c`; `false` if there are more than `most`.
    pub(crate) fn number(&mut self, c: &ChunkColumns, split: Split, repeats: bool, most: usize) -> bool {
        // Twice the number of keys that can come: probes stay short.
        const SLOTS: usize = 2 * ENTRIES;
        self.slots.clear();
        self.slots.resize(SLOTS, 0);
        self.first_come.clear();
        self.last.clear();
        self.index.clear();
        for i in 0..c.addr.len() {
            let place = match split {
                Split::Site => 0,
                Split::Page => c.addr[i] >> 12,
                Split::Address => c.addr[i],
            };
            let repeat = if repeats { c.repeat[i] } else { 0 };
            let key = Key { kind: c.kind[i], ip: c.ip[i], size: c.size[i], place, repeat };
            let mut slot = (key.hash() >> (64 - SLOTS.trailing_zeros())) as usize;
            let number = loop {
                match self.slots[slot] {
                    0 => {
                        if self.first_come.len() == most {
                            return false;
                        }
                        self.first_come.push(key);
                        self.last.push(c.addr[i]);
                        self.slots[slot] = self.first_come.len() as u32;
                        break self.first_come.len() - 1;
                    }
                    n if self.first_come[n as usize - 1] == key => break n as usize - 1,
                    _ => slot = (slot + 1) & (SLOTS - 1),
                }
            };
            self.index.push(number as u16);
        }
        self.sort();
        true
    }

    /// From first-come order to the table's.
    fn sort(&mut self) {
        self.order.clear();
        self.order.extend(0..self.first_come.len() as u32);
        self.order.sort_unstable_by_key(|&i| self.first_come[i as usize]);
        self.renumber.clear();
        self.renumber.resize(self.order.len(), 0);
        self.entries.clear();
        for (new, &old) in self.order.iter().enumerate() {
            self.renumber[old as usize] = new as u16;
            self.entries.push(self.first_come[old as usize]);
        }
        self.last = self.order.iter().map(|&old| self.last[old as usize]).collect();
        for n in &mut self.index {
            *n = self.renumber[usize::from(*n)];
        }
    }

    /// Finds the entries whose address changes among the accesses that were numbered.
    pub(crate) fn find_moving(&mut self, addr: &[u64]) {
        self.moving.clear();
        self.moving.resize(self.entries.len(), 0);
        for (&addr, &i) in addr.iter().zip(&self.index) {
            self.moving[usize::from(i)] |= u8::from(addr != self.last[usize::from(i)]);
        }
    }

    /// Writes the table.
    pub(crate) fn write(&self, has: PresentColumns, shift: u32, packer: &mut Packer, out: &mut Vec<u8>) {
        let entries = &self.entries;
        for kind in [Kind::Load, Kind::Store, Kind::Fetch] {
            put(out, entries.iter().filter(|e| e.kind == kind).count() as u64);
        }
        if has.sizes {
            let sizes: Vec<u8> = entries.iter().map(|e| e.size).collect();
            packer.plane(&sizes, out);
        }
        if has.ips {
            let mut next = 0u64;
            let distances: Vec<u64> = entries
                .iter()
                .map(|e| zigzag(e.ip.wrapping_sub(std::mem::replace(&mut next, after(e.ip, e.size))) as i64))
                .collect();
            packer.smalls(&distances, out);
        }
        if has.firsts {
            let mut before = 0u64;
            let distances: Vec<u64> = entries
                .iter()
                .zip(&self.last)
                .map(|(e, &first)| {
                    let from = match e.kind {
                        Kind::Fetch => e.ip >> shift << shift,
                        _ => std::mem::replace(&mut before, first),
                    };
                    zigzag(first.wrapping_sub(from) as i64 >> shift)
                })
                .collect();
            packer.smalls(&distances, out);
        }
        if has.repeats {
            let repeats: Vec<u64> = entries.iter().map(|e| u64::from(e.repeat)).collect();
            packer.smalls(&repeats, out);
        }
        if has.moving {
            packer.plane(&self.moving, out);
        }
    }
}

/// Where the instruction after this one stands in straight code.
fn after(ip: u64, size: u8) -> u64 {
    ip.wrapping_add(u64::from(size))
}

/// An entry that was read. Its size is a power of two, so that none lies across two cache lines.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct TableEntry {
    pub(crate) ip: u64,
    /// The address last used.
    pub(crate) last: u64,
    pub(crate) meta: Meta,
}

/// Kind, size and repeats in one word: 8, 8 and 32 bits from 0, 8 and 32 on.
#[derive(Clone, Copy)]
pub(crate) struct Meta(u64);

impl Meta {
    pub(crate) fn new(kind: Kind, size: u8, repeat: u32) -> Self {
        Meta(kind as u64 | u64::from(size) << 8 | u64::from(repeat) << 32)
    }

    pub(crate) fn kind(self) -> Kind {
        match self.0 as u8 {
            0 => Kind::Load,
            1 => Kind::Store,
            _ => Kind::Fetch,
        }
    }

    pub(crate) fn size(self) -> u8 {
        (self.0 >> 8) as u8
    }

    pub(crate) fn repeat(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The kinds, sizes and repeats of four.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn columns(four: [Meta; 4]) -> ([Kind; 4], [u8; 4], [u32; 4]) {
        use std::arch::x86_64::*;
        let [a, b, c, d] = four.map(|m| m.0 as i64);
        // SAFETY: SSE2 is part of x86-64. `Kind` is a `u8` and each byte of `kinds` came from one in `Meta::new`;
        // the other two types take any bits.
        unsafe {
            let (ab, cd) = (_mm_castsi128_ps(_mm_set_epi64x(b, a)), _mm_castsi128_ps(_mm_set_epi64x(d, c)));
            let repeats = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(ab, cd));
            let low = _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(ab, cd));
            let kinds = _mm_and_si128(low, _mm_set1_epi32(0xff));
            let bytes = _mm_packs_epi32(kinds, _mm_srli_epi32::<8>(low));
            let bytes = _mm_cvtsi128_si64(_mm_packus_epi16(bytes, bytes)) as u64;
            let (kinds, sizes) = ((bytes as u32).to_le_bytes(), ((bytes >> 32) as u32).to_le_bytes());
            (std::mem::transmute::<[u8; 4], [Kind; 4]>(kinds), sizes, std::mem::transmute::<__m128i, [u32; 4]>(repeats))
        }
    }

    /// The kinds, sizes and repeats of four.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(crate) fn columns(four: [Meta; 4]) -> ([Kind; 4], [u8; 4], [u32; 4]) {
        (four.map(Meta::kind), four.map(Meta::size), four.map(Meta::repeat))
    }
}

/// A table that was read.
pub(crate) struct EntryTable {
    entries: Box<[TableEntry; ENTRIES]>,
    /// By entry: whether its address changes, where the table says so.
    moving: Vec<u8>,
    temp: Vec<u8>,
    numbers: Vec<u64>,
}

impl EntryTable {
    pub(crate) fn new() -> Self {
        let entry = TableEntry { ip: 0, last: 0, meta: Meta::new(Kind::Load, 0, 0) };
        // Not `Box::new`, which would make it on the stack first.
        let entries = match vec![entry; ENTRIES].into_boxed_slice().try_into() {
            Ok(array) => array,
            Err(_) => unreachable!("it was made with this length"),
        };
        EntryTable { entries, moving: Vec::new(), temp: Vec::new(), numbers: Vec::new() }
    }

    pub(crate) fn entries(&mut self) -> &mut [TableEntry; ENTRIES] {
        &mut self.entries
    }

    /// By entry: 1 if its address changes, else 0; of the table that was read last and says so.
    pub(crate) fn moving(&self) -> &[u8] {
        &self.moving
    }

    /// Reads a table of at most `most` entries, not more than [`ENTRIES`]; returns how many there are.
    pub(crate) fn read(
        &mut self,
        has: PresentColumns,
        shift: u32,
        most: usize,
        unpacker: &mut Unpacker,
        c: &mut Cursor,
    ) -> Result<usize, Bad> {
        let mut n = 0;
        for kind in [Kind::Load, Kind::Store, Kind::Fetch] {
            let of_kind = c.bounded((most.min(ENTRIES) - n) as u64)?;
            self.entries[n..n + of_kind].fill(TableEntry { ip: 0, last: 0, meta: Meta::new(kind, 0, 0) });
            n += of_kind;
        }
        let entries = &mut self.entries[..n];
        if has.sizes {
            unpacker.plane(c, n, &mut self.temp)?;
            entries.iter_mut().zip(&self.temp).for_each(|(e, &size)| e.meta = Meta::new(e.meta.kind(), size, 0));
        }
        let numbers = &mut self.numbers;
        if has.ips {
            unpacker.smalls(c, n, numbers)?;
            let mut next = 0u64;
            for (e, &v) in entries.iter_mut().zip(&*numbers) {
                e.ip = next.wrapping_add(unzigzag(v) as u64);
                next = after(e.ip, e.meta.size());
            }
        }
        if has.firsts {
            unpacker.smalls(c, n, numbers)?;
            let mut before = 0u64;
            for (e, &v) in entries.iter_mut().zip(&*numbers) {
                let distance = (unzigzag(v) as u64) << shift;
                if e.meta.kind() == Kind::Fetch {
                    e.last = (e.ip >> shift << shift).wrapping_add(distance);
                } else {
                    before = before.wrapping_add(distance);
                    e.last = before;
                }
            }
        }
        if has.repeats {
            unpacker.smalls(c, n, numbers)?;
            for (e, &v) in entries.iter_mut().zip(&*numbers) {
                let repeat = u32::try_from(v).map_err(|_| "a number is longer than 32 bits")?;
                e.meta = Meta::new(e.meta.kind(), e.meta.size(), repeat);
            }
        }
        if has.moving {
            unpacker.plane(c, n, &mut self.moving)?;
            if self.moving.iter().any(|&moves| moves > 1) {
                return Err("a table says neither that an entry moves nor that it stays");
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(kind: Kind, ip: u64, size: u8, place: u64, repeat: u32) -> Key {
        Key { kind, ip, size, place, repeat }
    }

    /// Where the encoder looks first.
    fn slot(key: Key) -> u64 {
        key.hash() >> 47
    }

    /// Accesses to one address by the instructions `ips`.
    fn loads(ips: &[u64]) -> ChunkColumns {
        let n = ips.len();
        ChunkColumns {
            addr: vec![64; n],
            kind: vec![Kind::Load; n],
            size: vec![0; n],
            ip: ips.to_vec(),
            repeat: vec![0; n],
        }
    }

    #[test]
    fn keys_that_differ_in_one_field_fall_on_slots_of_their_own() {
        let spread = |key: &dyn Fn(u64) -> Key| (0..256).map(|i| slot(key(i))).collect::<BTreeSet<_>>().len();
        let [zero, ones] = [0, u64::MAX];
        for (what, slots) in [
            ("instructions", spread(&|i| key(Kind::Load, i * 4, 0, zero, 0))),
            ("instructions, the rest all ones", spread(&|i| key(Kind::Load, i * 4, 0xff, ones, u32::MAX))),
            ("sizes", spread(&|i| key(Kind::Load, zero, i as u8, zero, 0))),
            ("sizes, the rest all ones", spread(&|i| key(Kind::Load, ones, i as u8, ones, u32::MAX))),
            ("pages", spread(&|i| key(Kind::Load, 0x40_1000, 8, i, 0))),
            ("addresses", spread(&|i| key(Kind::Load, zero, 8, 0x7fff_0000_0000 + i * 8, 0))),
            ("repeats", spread(&|i| key(Kind::Load, zero, 0, zero, i as u32))),
            ("repeats, the rest all ones", spread(&|i| key(Kind::Load, ones, 0xff, ones, i as u32))),
        ] {
            assert!(slots >= 250, "256 {what} fall on {slots} slots");
        }
        let kinds = [Kind::Load, Kind::Store, Kind::Fetch].map(|kind| slot(key(kind, 0x40_1000, 8, 0, 0)));
        assert!(kinds[0] != kinds[1] && kinds[1] != kinds[2] && kinds[0] != kinds[2]);
    }

    #[test]
    fn keys_of_one_slot_are_told_apart_at_both_ends_of_the_table() {
        let of = |at| (0..1 << 22).filter(move |&ip| slot(key(Kind::Load, ip, 0, 0, 0)) == at).take(3);
        let ips: Vec<u64> = of((1 << 17) - 1).chain(of(0)).collect();
        assert_eq!(ips.len(), 6);
        let twice = loads(&ips.repeat(2));
        let mut table = TableEncoder::default();
        assert!(!table.number(&twice, Split::Site, false, ips.len() - 1));
        assert!(table.number(&twice, Split::Site, false, ips.len()));
        let back: Vec<u64> = table.index.iter().map(|&i| table.entries[usize::from(i)].ip).collect();
        assert_eq!(back, twice.ip);
    }

    #[test]
    fn entries_that_move_are_told_from_those_that_stay() {
        let mut columns = loads(&[1, 2, 3, 1, 2, 3]);
        columns.addr = vec![64, 64, 0, 64, 65, 1 << 63];
        let (mut table, mut out) = (TableEncoder::default(), Vec::new());
        assert!(table.number(&columns, Split::Site, false, 3));
        table.find_moving(&columns.addr);
        assert_eq!(table.moving, [0, 1, 1]);
        let has = PresentColumns { sizes: false, ips: false, firsts: false, repeats: false, moving: true };
        table.write(has, 0, &mut Packer::new().expect("memory for zstd"), &mut out);
        // Three loads; a bit each.
        assert_eq!(out, [3, 0, 0, 3, 0b110]);
        let (mut read, mut unpacker) = (EntryTable::new(), Unpacker::new().expect("memory for zstd"));
        let mut parse = |bytes: &[u8]| read.read(has, 0, 3, &mut unpacker, &mut Cursor::new(bytes));
        assert_eq!(parse(&out), Ok(3));
        assert_eq!(parse(&[3, 0, 0, 4, 0b10_0110]), Err("a table says neither that an entry moves nor that it stays"));
        assert_eq!(parse(&out), Ok(3));
        assert_eq!(read.moving(), [0, 1, 1]);
    }

    #[test]
    fn a_table_is_written_as_the_format_says() {
        // Straight code of 4-byte instructions: two loads, 16 bytes from each other, and a fetch.
        let columns = ChunkColumns {
            addr: vec![0x1008, 0x5000, 0x5010],
            kind: vec![Kind::Fetch, Kind::Load, Kind::Load],
            size: vec![4; 3],
            ip: vec![0x1008, 0x1000, 0x1004],
            repeat: vec![0; 3],
        };
        let (mut table, mut out) = (TableEncoder::default(), Vec::new());
        assert!(table.number(&columns, Split::Site, false, 3));
        assert_eq!(table.index, [2, 0, 1]);
        let has = PresentColumns { sizes: true, ips: true, firsts: true, repeats: false, moving: false };
        table.write(has, 2, &mut Packer::new().expect("memory for zstd"), &mut out);
        // Zigzag of 0x1000 is 255 and 0x1f01 more, that of 0x5000 >> 2 is 255 and 0x2701 more.
        let (counts, sizes) = ([2u8, 0, 1], [1, 4]);
        let (ips, firsts) = ([0, 255, 0, 0, 2, 0, 0x81, 0x3e], [0, 255, 8, 0, 2, 0, 0x81, 0x4e]);
        assert_eq!(out, [&counts[..], &sizes, &ips, &firsts].concat());

        let (mut read, mut unpacker) = (EntryTable::new(), Unpacker::new().expect("memory for zstd"));
        assert_eq!(read.read(has, 2, 3, &mut unpacker, &mut Cursor::new(&out)), Ok(3));
        let entries = read.entries()[..3].iter().map(|e| (e.ip, e.last, e.meta.kind(), e.meta.size()));
        // The fetch came first and stands last.
        assert!(entries.eq([1, 2, 0].map(|i| (columns.ip[i], columns.addr[i], columns.kind[i], 4))));
        let more = read.read(has, 2, 2, &mut unpacker, &mut Cursor::new(&out));
        assert_eq!(more, Err("a count is larger than the chunk allows"));
    }
}
