//! The reader of the wire against a naive recorder that remembers for each left-out access whose repeat it is.

use lookaside_capture::WireReader;
use lookaside_trace::{Block, Damage, Event, Granularity, Kind, Source, TraceInfo};
use proptest::prelude::*;

/// One access, as the program makes it.
#[derive(Clone, Debug)]
struct Access {
    kind: u8,
    addr: u64,
    size: u8,
    ip: u64,
}

/// What a program does.
#[derive(Clone, Debug)]
enum Step {
    Access(Access),
    Marker(String),
    /// Another thread of another process goes on.
    Switch(u32, u32),
    /// The pipe's buffer is written out early.
    Write,
}

#[derive(Clone, Debug)]
struct Setup {
    granularity: Granularity,
    log2_classes: u32,
    /// 0 = none.
    window: u32,
    /// Of one class in a window.
    class_pages: u32,
    stores_apart: bool,
    unified: bool,
}

/// The access that stands for its repeats: process, thread, kind, address, size, ip, repeats.
type Row = (u32, u32, Kind, u64, u8, u64, u64);

/// A page in a window.
struct Held {
    page: u64,
    place: u64,
    count: u64,
    row: usize,
    lines: u64,
    own: u64,
    /// By left-out accesses, since it was recorded or touched.
    used: bool,
}

#[derive(Clone)]
struct Slot {
    unit: u64,
    addr: u64,
    count: u64,
    row: usize,
}

/// A recorder by the letter of the wire, one record at a time, a map for a filter.
struct Recorder {
    setup: Setup,
    out: Vec<u8>,
    records: Vec<u8>,
    slots: std::collections::BTreeMap<(u8, u64), Slot>,
    /// By table, the least recent page first.
    windows: [Vec<Held>; 3],
    rows: Vec<Row>,
    /// Pages that left a window or were touched there, by the number of rows before.
    leaves: Vec<(usize, Event)>,
    process: u32,
    thread: u32,
}

impl Recorder {
    fn new(setup: Setup) -> Self {
        let (process, thread) = (1, 1);
        Recorder {
            setup,
            out: vec![],
            records: vec![],
            slots: Default::default(),
            windows: Default::default(),
            rows: vec![],
            leaves: vec![],
            process,
            thread,
        }
    }

    fn frame(&mut self, kind: u16, payload: &[u8]) {
        self.out.extend(0x4C41u16.to_le_bytes());
        self.out.extend(kind.to_le_bytes());
        for word in [payload.len() as u32, self.process, self.thread] {
            self.out.extend(word.to_le_bytes());
        }
        self.out.extend(payload);
    }

    fn write(&mut self) {
        for table in 0..3 {
            while !self.windows[table].is_empty() {
                self.leave(table);
            }
        }
        if !self.records.is_empty() {
            let records = std::mem::take(&mut self.records);
            self.frame(1, &records);
        }
    }

    fn record(&mut self, w0: u64, w1: u64) {
        self.records.extend(w0.to_le_bytes());
        self.records.extend(w1.to_le_bytes());
        if self.records.len() == 4080 {
            assert!(self.windows.iter().all(Vec::is_empty), "windows are empty at the end of a frame");
            self.write();
        }
    }

    /// The least recent page of a window leaves.
    fn leave(&mut self, table: usize) {
        let held = self.windows[table].remove(0);
        let (addr, place, others) = (held.page << 12, held.place, self.windows[table].len() as u64);
        let lines = held.lines & !held.own;
        if held.count > 0 {
            self.records.extend((addr | place | 3 << 48 | (table as u64) << 56).to_le_bytes());
            self.records.extend(held.count.to_le_bytes());
        }
        let kind = [Kind::Load, Kind::Store, Kind::Fetch][table];
        let touched = if held.used && self.setup.log2_classes > 0 {
            self.leaves.push((self.rows.len(), Event::Touch { addr, kind }));
            0x40
        } else {
            0
        };
        self.records
            .extend((addr | place | others << 6 | 3 << 48 | (0x80 | touched | table as u64) << 56).to_le_bytes());
        self.records.extend(lines.to_le_bytes());
        self.leaves.push((self.rows.len(), Event::Leave { addr, kind, others: others as u8, lines }));
    }

    fn windowed(&mut self, table: usize, access: &Access, row: Row) {
        let (page, line) = (access.addr >> 12, 1u64 << (access.addr >> 6 & 63));
        if let Some(place) = self.windows[table].iter().position(|held| held.page == page) {
            let mut held = self.windows[table].remove(place);
            held.count += 1;
            held.lines |= line;
            held.used = true;
            self.rows[held.row].6 += 1;
            return self.windows[table].push(held);
        }
        // Room for a count and a leave of each page, and for this access with what goes before it.
        if self.records.len() + 16 * (7 * self.setup.window as usize + 4) > 4080 {
            self.write();
        }
        let log2_classes = self.setup.log2_classes;
        let class_of = move |page: u64| page % (1 << log2_classes);
        let of_class = |window: &[Held]| window.iter().filter(|held| class_of(held.page) == class_of(page)).count();
        while self.windows[table].len() == self.setup.window as usize
            || of_class(&self.windows[table]) == self.setup.class_pages as usize
        {
            self.leave(table);
        }
        if self.setup.log2_classes > 0 {
            let kind = [Kind::Load, Kind::Store, Kind::Fetch][table];
            for held in self.windows[table].iter_mut().filter(|held| class_of(held.page) == class_of(page)) {
                if std::mem::take(&mut held.used) {
                    let addr = held.page << 12;
                    self.records.extend((addr | held.place | 3 << 48 | (0x40 | table as u64) << 56).to_le_bytes());
                    self.records.extend(0u64.to_le_bytes());
                    self.leaves.push((self.rows.len(), Event::Touch { addr, kind }));
                }
            }
        }
        let is_free = |place: &u64| self.windows[table].iter().all(|held| held.place != *place);
        let place = (0..).find(is_free).expect("a window is not full");
        self.windows[table].push(Held {
            page,
            place,
            count: 0,
            row: self.rows.len(),
            lines: 0,
            own: line,
            used: false,
        });
        self.rows.push(row);
        self.record(access.addr | u64::from(access.kind) << 48 | u64::from(access.size) << 56, access.ip | place << 48);
    }

    fn empty_slots(&mut self) {
        for ((table, _), slot) in std::mem::take(&mut self.slots) {
            if slot.count > 0 {
                self.record(slot.addr | 3 << 48 | u64::from(table) << 56, slot.count);
            }
        }
        self.write();
    }

    fn access(&mut self, access: &Access) {
        let kind = [Kind::Load, Kind::Store, Kind::Fetch][usize::from(access.kind)];
        let w0 = access.addr | u64::from(access.kind) << 48 | u64::from(access.size) << 56;
        let line = self.setup.granularity == Granularity::Line;
        let addr = if line { access.addr & !63 } else { access.addr };
        let row = (self.process, self.thread, kind, addr, access.size, access.ip, 0);
        if self.setup.granularity == Granularity::Byte {
            self.rows.push(row);
            return self.record(w0, access.ip);
        }
        let table = match (self.setup.unified, self.setup.stores_apart, access.kind) {
            (true, ..) | (_, _, 0) | (_, false, 1) => 0,
            (_, true, 1) => 1,
            _ => 2,
        };
        if self.setup.window > 0 {
            return self.windowed(usize::from(table), access, row);
        }
        let vpn = access.addr >> 12;
        let unit = if line { access.addr >> 6 } else { vpn };
        let key = (table, vpn % (1 << self.setup.log2_classes));
        if let Some(slot) = self.slots.get_mut(&key).filter(|slot| slot.unit == unit) {
            self.rows[slot.row].6 += 1;
            slot.count += 1;
            if slot.count == 65535 {
                slot.count = 0;
                let addr = slot.addr;
                self.record(addr | 3 << 48 | u64::from(table) << 56, 65535);
            }
            return;
        }
        let slot = Slot { unit, addr: access.addr, count: 0, row: self.rows.len() };
        let old = self.slots.insert(key, slot);
        self.rows.push(row);
        self.record(w0, access.ip | old.map_or(0, |old| old.count) << 48);
    }

    fn run(self, steps: &[Step]) -> (Vec<u8>, Vec<Row>) {
        let (bytes, rows, _) = self.run_through(steps);
        (bytes, rows)
    }

    fn run_through(mut self, steps: &[Step]) -> (Vec<u8>, Vec<Row>, Vec<(usize, Event)>) {
        for step in steps {
            match step {
                Step::Access(access) => self.access(access),
                Step::Marker(text) => {
                    self.write();
                    let event = serde_json::to_vec(&Event::Marker { text: text.clone() }).unwrap();
                    self.frame(2, &event);
                }
                Step::Switch(process, thread) => {
                    self.empty_slots();
                    (self.process, self.thread) = (*process, *thread);
                }
                Step::Write => self.write(),
            }
        }
        self.empty_slots();
        for process in 1..4 {
            self.process = process;
            self.frame(3, &[]);
        }
        (self.out, self.rows, self.leaves)
    }
}

fn info(setup: &Setup) -> TraceInfo {
    TraceInfo {
        granularity: setup.granularity,
        filter_log2_classes: setup.log2_classes,
        filter_window: setup.window,
        filter_class_pages: setup.class_pages,
        filter_stores_apart: setup.stores_apart,
        has_fetches: true,
        has_ip: true,
        ..TraceInfo::default()
    }
}

/// Reads all; events other than `Repeats` by the number of rows before them; repeats by row, those of events credited to
/// the last row of that unit, kind and process.
fn read(bytes: &[u8], setup: &Setup) -> (Vec<Row>, Vec<(usize, Event)>, Vec<Damage>) {
    let mut source = WireReader::new(bytes, info(setup), setup.unified);
    let (mut rows, mut events, mut block) = (Vec::<Row>::new(), vec![], Block::default());
    while source.next_block(&mut block).unwrap() {
        assert!(block.len() <= 1 << 16);
        for column in [block.size.len(), block.ip.len()] {
            assert_eq!(column, block.len());
        }
        let first = rows.len();
        for i in 0..block.len() {
            let repeat = block.repeat.get(i).copied().unwrap_or(0);
            let (kind, addr, size, ip) = (block.kind[i], block.addr[i], block.size[i], block.ip[i]);
            rows.push((block.process, block.thread, kind, addr, size, ip, u64::from(repeat)));
        }
        for (at, event) in &block.events {
            let before = first + *at as usize;
            match event {
                Event::Repeats { addr, kind, count } => {
                    let unit = if setup.granularity == Granularity::Line { 6 } else { 12 };
                    let row = rows[..before]
                        .iter_mut()
                        .rev()
                        .find(|row| row.0 == block.process && row.2 == *kind && row.3 >> unit == addr >> unit)
                        .expect("repeats belong to a row before them");
                    row.6 += count;
                }
                other => events.push((before, other.clone())),
            }
        }
    }
    (rows, events, source.damage().to_vec())
}

/// Repeats of one unit of one process: rows of loads, stores and fetches of it may stand for each other.
fn repeats_by_unit(rows: &[Row], setup: &Setup) -> std::collections::BTreeMap<(u32, u64), u64> {
    let unit = if setup.granularity == Granularity::Line { 6 } else { 12 };
    let mut sums = std::collections::BTreeMap::new();
    for row in rows {
        *sums.entry((row.0, row.3 >> unit)).or_default() += row.6;
    }
    sums
}

fn step() -> impl Strategy<Value = Step> {
    let addr =
        (0u64..6, 0u64..4, 0u64..64).prop_map(|(page, line, byte)| 0x7f00_0000_0000 + page * 4096 + line * 64 + byte);
    let access = (0u8..3, addr, 1u8.., 1u64..1 << 47)
        .prop_map(|(kind, addr, size, ip)| Step::Access(Access { kind, addr, size, ip }));
    prop_oneof![
        200 => access,
        3 => "[ -~äß\"\\\\]{0,12}".prop_map(Step::Marker),
        2 => (1u32..4, 1u32..3).prop_map(|(process, thread)| Step::Switch(process, thread)),
        4 => Just(Step::Write),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let granularity = prop_oneof![Just(Granularity::Byte), Just(Granularity::Line), Just(Granularity::Page)];
    let window = prop_oneof![2 => Just(0u32), 1 => 1u32..6, 1 => Just(32u32)];
    (granularity, 0u32..4, window, 1u32..40, any::<bool>(), any::<bool>()).prop_map(
        |(granularity, classes, window, class_pages, apart, unified)| Setup {
            granularity,
            log2_classes: classes,
            window: if granularity == Granularity::Page { window } else { 0 },
            class_pages: 1 + (class_pages - 1) % window.max(1),
            stores_apart: apart && !unified,
            unified,
        },
    )
}

proptest! {
    #[test]
    fn reads_what_was_recorded(setup in setup(), steps in prop::collection::vec(step(), 0..2000)) {
        let (bytes, expected, left) = Recorder::new(setup.clone()).run_through(&steps);
        let (rows, mut events, damage) = read(&bytes, &setup);
        prop_assert_eq!(&damage, &[]);
        let leaves: Vec<_> = events.extract_if(.., |(_, event)| matches!(event, Event::Leave { .. } | Event::Touch { .. })).collect();
        prop_assert_eq!(leaves, left);
        let plain = |rows: &[Row]| rows.iter().map(|r| (r.0, r.1, r.2, r.3, r.4, r.5)).collect::<Vec<_>>();
        prop_assert_eq!(plain(&rows), plain(&expected));
        prop_assert_eq!(repeats_by_unit(&rows, &setup), repeats_by_unit(&expected, &setup));
        if setup.unified || setup.granularity == Granularity::Byte || setup.window > 0 {
            // One table, or counts that say theirs: no doubt whose repeat it is, unless it came later than the block.
            prop_assert_eq!(rows, expected);
        }
        let markers = steps.iter().filter(|step| matches!(step, Step::Marker(_))).count();
        prop_assert_eq!(events.len(), markers);
    }

    #[test]
    fn survives_a_cut_and_a_flip(
        setup in setup(),
        steps in prop::collection::vec(step(), 0..300),
        cut: prop::sample::Index,
        flip: Option<(prop::sample::Index, u8)>,
    ) {
        let (mut bytes, _) = Recorder::new(setup.clone()).run(&steps);
        bytes.truncate(cut.index(bytes.len()));
        if let (Some((at, bits)), false) = (flip, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        let mut source = WireReader::new(&bytes[..], info(&setup), setup.unified);
        let (mut block, mut rows) = (Block::default(), 0);
        while source.next_block(&mut block).unwrap() {
            rows += block.len();
            prop_assert!(block.events.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            prop_assert!(block.events.iter().all(|event| event.0 as usize <= block.len()));
        }
        prop_assert!(rows <= bytes.len() / 16);
        prop_assert!(!source.next_block(&mut block).unwrap());
    }

    #[test]
    fn survives_noise(setup in setup(), bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        let mut source = WireReader::new(&bytes[..], info(&setup), setup.unified);
        while source.next_block(&mut Block::default()).unwrap() {}
        prop_assert!(bytes.is_empty() || !source.damage().is_empty());
    }
}

fn page_setup() -> Setup {
    Setup {
        granularity: Granularity::Page,
        log2_classes: 0,
        window: 0,
        class_pages: 0,
        stores_apart: false,
        unified: false,
    }
}

fn load(addr: u64) -> Step {
    Step::Access(Access { kind: 0, addr, size: 8, ip: 0x40_1000 })
}

#[test]
fn counts_beyond_sixteen_bits_are_kept() {
    let steps = vec![load(0x5000); 200_001];
    let (bytes, _) = Recorder::new(page_setup()).run(&steps);
    let (rows, _, damage) = read(&bytes, &page_setup());
    assert_eq!(rows, [(1, 1, Kind::Load, 0x5000, 8, 0x40_1000, 200_000)]);
    assert_eq!(damage, []);
}

#[test]
fn repeats_of_an_earlier_block_come_as_an_event() {
    let fetch = |addr| Step::Access(Access { kind: 2, addr, size: 4, ip: addr });
    let mut steps = vec![load(0x5000), fetch(0x7000), load(0x5008), fetch(0x7004), fetch(0x7008)];
    steps.extend([Step::Switch(2, 2), load(0x9000), Step::Switch(1, 1)]);
    steps.splice(2..2, (0..70_000).map(|i| Step::Access(Access { kind: 1, addr: (100 + i) * 4096, size: 1, ip: 1 })));
    let setup = Setup { stores_apart: true, ..page_setup() };
    let (bytes, expected) = Recorder::new(setup.clone()).run(&steps);
    let (rows, ..) = read(&bytes, &setup);
    assert!(rows == expected);
    let mut source = WireReader::new(&bytes[..], info(&setup), false);
    let (mut block, mut late) = (Block::default(), vec![]);
    while source.next_block(&mut block).unwrap() {
        late.extend(block.events.drain(..).map(|(_, event)| event));
    }
    late.sort_by_key(|event| matches!(event, Event::Repeats { kind: Kind::Fetch, .. }));
    let [data, code] = [(0x5000, Kind::Load, 1), (0x7000, Kind::Fetch, 2)].map(|(addr, kind, count)| Event::Repeats {
        addr,
        kind,
        count,
    });
    assert_eq!(late, [data, code]);
}

#[test]
fn totals_go_on_over_an_exec() {
    let totals = |loads, stores, fetches, instructions| Event::Totals { loads, stores, fetches, instructions };
    let mut recorder = Recorder::new(page_setup());
    for event in
        [totals(1, 2, 3, 4), totals(10, 20, 30, 40), Event::Exec { path: "/bin/true".into() }, totals(1, 1, 1, 1)]
    {
        recorder.frame(2, &serde_json::to_vec(&event).unwrap());
    }
    recorder.frame(3, &[]);
    let (_, events, damage) = read(&recorder.out, &page_setup());
    assert_eq!(events.last().unwrap().1, totals(11, 21, 31, 41));
    assert_eq!(damage, []);
}

#[test]
fn says_what_is_damaged_and_where() {
    let (good, _) = Recorder::new(page_setup()).run(&[load(0x5000)]);
    let damage = |bytes: &[u8]| {
        let (rows, _, damage) = read(bytes, &page_setup());
        assert_eq!(rows.len(), 1, "what came before is kept");
        damage
    };
    let first_frame = 32;
    let cut = damage(&good[..first_frame + 7]);
    assert_eq!((cut[0].offset, cut[0].len), (32, 7));
    assert!(cut[0].reason.contains("inside a frame"), "{cut:?}");
    assert!(cut[1].reason.contains("process 1 ended without a last word"), "{cut:?}");
    let mut bad = good.clone();
    bad[first_frame] = 0;
    assert!(damage(&bad)[0].reason.contains("no frame begins here (0x4c00"), "{:?}", damage(&bad));
    let mut bad = good.clone();
    bad[first_frame + 6] = 9;
    assert!(damage(&bad)[0].reason.contains("the most is 4080"), "{:?}", damage(&bad));
    let mut bad = good;
    bad.splice(first_frame..first_frame, *b"\x41\x4c\x02\0\x02\0\0\0\x01\0\0\0\x01\0\0\0{}");
    assert!(damage(&bad)[0].reason.contains("an event that can't be read"), "{:?}", damage(&bad));
}
