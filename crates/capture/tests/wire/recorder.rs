//! A recorder by the letter of the wire, one record at a time, a map for a filter; it remembers for each left-out
//! access whose repeat it is.

use lookaside_trace::{Event, Granularity, Kind, WindowEvent};

/// One access, as the program makes it.
#[derive(Clone, Debug)]
pub struct Access {
    pub kind: u8,
    pub addr: u64,
    pub size: u8,
    pub ip: u64,
}

/// What a program does.
#[derive(Clone, Debug)]
pub enum Step {
    Access(Access),
    Marker(String),
    /// Another thread of another process goes on.
    Switch(u32, u32),
    /// The pipe's buffer is written out early.
    Write,
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub granularity: Granularity,
    pub log2_classes: u32,
    /// 0 = none.
    pub window: u32,
    /// Of one class in a window.
    pub class_pages: u32,
    pub stores_apart: bool,
    pub unified: bool,
}

/// The access that stands for its repeats: process, thread, kind, address, size, ip, repeats.
pub type Row = (u32, u32, Kind, u64, u8, u64, u64);

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

/// The recorder.
pub struct Recorder {
    setup: Setup,
    pub out: Vec<u8>,
    records: Vec<u8>,
    slots: std::collections::BTreeMap<(u8, u64), Slot>,
    /// By table, the least recent page first.
    windows: [Vec<Held>; 3],
    rows: Vec<Row>,
    /// Pages that left a window or were touched there, by the number of rows before.
    leaves: Vec<WindowEvent>,
    process: u32,
    thread: u32,
}

impl Recorder {
    pub fn new(setup: Setup) -> Self {
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

    pub fn frame(&mut self, kind: u16, payload: &[u8]) {
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
            self.leaves.push(WindowEvent::touch(self.rows.len() as u32, addr, kind));
            0x40
        } else {
            0
        };
        self.records
            .extend((addr | place | others << 6 | 3 << 48 | (0x80 | touched | table as u64) << 56).to_le_bytes());
        self.records.extend(lines.to_le_bytes());
        self.leaves.push(WindowEvent::leave(self.rows.len() as u32, addr, kind, others as u8, lines));
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
                    self.leaves.push(WindowEvent::touch(self.rows.len() as u32, addr, kind));
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

    pub fn run(self, steps: &[Step]) -> (Vec<u8>, Vec<Row>) {
        let (bytes, rows, _) = self.run_through(steps);
        (bytes, rows)
    }

    pub fn run_through(mut self, steps: &[Step]) -> (Vec<u8>, Vec<Row>, Vec<WindowEvent>) {
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
