//! The reader of the wire against a naive recorder.

mod by_hand;
mod recorder;

use lookaside_capture::WireReader;
use lookaside_trace::{Block, Damage, Event, Granularity, Kind, Source, TraceInfo, WindowEvent};
use proptest::prelude::*;
use recorder::{Access, Recorder, Row, Setup, Step};

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

/// Rows, events, damage.
type ReadStream = (Vec<Row>, Vec<(usize, Event)>, Vec<Damage>);

/// Reads all; events other than `Repeats` by the number of rows before them; repeats by row, those of events credited
/// to the last row of that unit, kind and process.
fn read(bytes: &[u8], setup: &Setup) -> ReadStream {
    let (read, _) = read_with_windows(bytes, setup);
    read
}

/// As [`read`], and what became of pages in windows.
fn read_with_windows(bytes: &[u8], setup: &Setup) -> (ReadStream, Vec<WindowEvent>) {
    let mut source = WireReader::new(bytes, info(setup), setup.unified);
    let (mut rows, mut events, mut of_windows, mut block) = (Vec::<Row>::new(), vec![], vec![], Block::default());
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
        let at = |event: &WindowEvent| first as u32 + event.at;
        of_windows.extend(block.window_events.iter().map(|event| WindowEvent { at: at(event), ..*event }));
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
    ((rows, events, source.damage().to_vec()), of_windows)
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
        let ((rows, events, damage), leaves) = read_with_windows(&bytes, &setup);
        prop_assert_eq!(&damage, &[]);
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
    assert!(cut[1].reason.contains("process 1 ended without a final message"), "{cut:?}");
    assert_eq!((cut[1].offset, cut[1].len), (39, 0), "behind all that was read");
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
