//! Other tools' formats: hand-made samples, packed in each way, good and bad.

use std::io::Write;

use crate::common::{self, block, drain, items, Item};
use lookaside_trace::{
    open_reader, write_champsim, write_text, Block, Event, Format, Granularity, Kind, NativeReader, Source, TraceError,
    TraceInfo, TraceWriter,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub type Opened = Box<dyn Source + Send>;

pub fn try_open(bytes: &[u8], format: Option<Format>) -> Result<Opened, TraceError> {
    open_reader(Box::new(std::io::Cursor::new(bytes.to_vec())), format, "sample")
}

pub fn read(bytes: &[u8]) -> (Vec<Item>, Opened) {
    let mut source = try_open(bytes, None).unwrap();
    (items(&drain(&mut *source)), source)
}

pub fn access(process: u32, thread: u32, kind: Kind, addr: u64, size: u8, ip: u64) -> Item {
    Item::Access((process, thread, addr, kind, size, ip, 0))
}

const LACKEY: &str = "==42== Lackey, an example Valgrind tool\n==42== Command: ls -l /\n==42== \n\
I  0401ab70,3\nI  0401ab73,5\n S 1fff000758,8\n L 0401b000,4\n M 1fff000750,300\nI  0401b770,1\n==42== Counted 0 calls\n";

fn lackey_items() -> Vec<Item> {
    use Kind::*;
    [
        (Fetch, 0x0401_ab70, 3, 0x0401_ab70),
        (Fetch, 0x0401_ab73, 5, 0x0401_ab73),
        (Store, 0x1f_ff00_0758, 8, 0x0401_ab73),
        (Load, 0x0401_b000, 4, 0x0401_ab73),
        (Load, 0x1f_ff00_0750, 255, 0x0401_ab73),
        (Store, 0x1f_ff00_0750, 255, 0x0401_ab73),
        (Fetch, 0x0401_b770, 1, 0x0401_b770),
    ]
    .map(|(kind, addr, size, ip)| access(42, 42, kind, addr, size, ip))
    .to_vec()
}

#[test]
fn lackey() {
    let (got, source) = read(LACKEY.as_bytes());
    assert_eq!(got, lackey_items());
    assert_eq!(source.damage(), &[]);
    assert_eq!(source.info().command, ["ls", "-l", "/"]);
    assert!(source.info().has_fetches && source.info().has_ip);
    assert_eq!(source.info().recorder, "lackey-import");
}

#[test]
fn a_bad_line_is_named_and_passed_over() {
    let bad = LACKEY.replace(" L 0401b000,4", " L nonsense,4");
    let (got, source) = read(bad.as_bytes());
    let mut expected = lackey_items();
    expected.remove(3);
    assert_eq!(got, expected);
    let damage = source.damage();
    assert_eq!(damage.len(), 1);
    assert!(damage[0].reason.starts_with("line 7:"), "{damage:?}");
    let at = bad.find(" L nons").unwrap();
    assert_eq!((damage[0].offset, damage[0].len), (at as u64, 14));
}

#[test]
fn text_and_dinero() {
    let (got, source) =
        read(b"# a comment\nR 0x7ffc1000 8\nW 0x5000\nP 3 4\nI 0x401000 4 ip=0x401000 x=7\n2 4096 0x10\n");
    assert_eq!(source.damage(), &[]);
    assert_eq!(
        got,
        [
            access(0, 0, Kind::Load, 0x7ffc_1000, 8, 0),
            access(0, 0, Kind::Store, 0x5000, 0, 0),
            Item::Access((3, 4, 0x40_1000, Kind::Fetch, 4, 0x40_1000, 7)),
            access(3, 4, Kind::Fetch, 4096, 16, 0),
        ]
    );
}

#[test]
fn csv_by_its_column_names() {
    let (got, source) =
        read(b"time;PID;Type;\"Address\";bytes;pc\n1;7;load;0x10;8;0x400\n2;7;store;32;;\n3;8;x;1;1;1\n");
    assert_eq!(got, [access(7, 7, Kind::Load, 16, 8, 0x400), access(7, 7, Kind::Store, 32, 0, 0)]);
    assert_eq!(source.damage().len(), 1);
    assert!(source.damage()[0].reason.contains("line 4: no kind in `x`"), "{:?}", source.damage());
    let (got, _) = read(b"addr,tid\n0x1000,5\n");
    assert_eq!(got, [access(5, 5, Kind::Load, 0x1000, 0, 0)]);
}

#[test]
fn perf_script() {
    let text = b"# captured on: today\n\
  my prog 1 7065/7066 [001] 100.000001000:     1 cpu/mem-loads,ldlat=30/P:     7f00deadbeef |OP LOAD|LVL L1 hit|BLK  N/A 0 401136 main+0x10 (/bin/x)\n\
\n              ls  7070   100.000002:          4 cpu/mem-stores/P:        ffff880012345678           401150 [unknown] ([unknown])\n\
\t          401100 caller+0x5 (/bin/x)\n\
              ls  7070   100.000005:  mem: 10 401160 func (/bin/x)\n";
    let (got, source) = read(text);
    assert_eq!(source.damage(), &[]);
    assert_eq!(
        got,
        [
            access(7065, 7066, Kind::Load, 0x7f00_dead_beef, 0, 0x40_1136),
            access(7070, 7070, Kind::Store, 0xffff_8800_1234_5678, 0, 0x40_1150),
            access(7070, 7070, Kind::Load, 0x10, 0, 0x40_1160),
        ]
    );
    // 4 µs between three samples.
    assert_eq!(source.info().sample_period_ns, 2000);
    let (_, source) = read(b"x 1 1.0: 250000 cpu-clock:u: 10 401160\n");
    assert_eq!(source.info().sample_period_ns, 250_000);
}

/// A ChampSim instruction.
pub fn champsim(ip: u64, loads: &[u64], stores: &[u64]) -> Vec<u8> {
    let mut words = [0u64; 8];
    words[0] = ip;
    words[2..2 + stores.len()].copy_from_slice(stores);
    words[4..4 + loads.len()].copy_from_slice(loads);
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn champsim_sample() -> (Vec<u8>, Vec<Item>) {
    let mut branch = champsim(0x40_0010, &[], &[]);
    branch[8] = 1;
    branch[9] = 1;
    let bytes = [champsim(0x40_0000, &[0x1000, 0x2000], &[0x7ffc_0000_0000]), branch].concat();
    let ip = 0x40_0000;
    let expected = [
        access(0, 0, Kind::Fetch, ip, 0, ip),
        access(0, 0, Kind::Load, 0x1000, 0, ip),
        access(0, 0, Kind::Load, 0x2000, 0, ip),
        access(0, 0, Kind::Store, 0x7ffc_0000_0000, 0, ip),
        access(0, 0, Kind::Fetch, 0x40_0010, 0, 0x40_0010),
    ];
    (bytes, expected.to_vec())
}

#[test]
fn champsim_records() {
    let (mut bytes, expected) = champsim_sample();
    let (got, source) = read(&bytes);
    assert_eq!(got, expected);
    assert_eq!(source.damage(), &[]);
    // A damaged record in the middle, and a cut one at the end.
    bytes.splice(64..64, [9; 64]);
    bytes.extend([0; 10]);
    let mut source = try_open(&bytes, Some(Format::ChampSim)).unwrap();
    assert_eq!(items(&drain(&mut *source)), expected);
    let places: Vec<_> = source.damage().iter().map(|d| (d.offset, d.len)).collect();
    assert_eq!(places, [(64, 64), (192, 10)]);
    // One flag that is none is enough.
    for flags in [[2, 0], [0, 2], [1, 255]] {
        let (mut bytes, expected) = champsim_sample();
        let mut bad = champsim(0x40_0004, &[0x3000], &[]);
        bad[8..10].copy_from_slice(&flags);
        assert!(try_open(&bad, None).is_err(), "{flags:?} is taken for ChampSim's");
        bytes.splice(64..64, bad);
        let mut source = try_open(&bytes, Some(Format::ChampSim)).unwrap();
        assert_eq!(items(&drain(&mut *source)), expected, "{flags:?}");
    }
}

/// A drmemtrace record.
pub fn dr(kind: u16, size: u16, value: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
}

fn drmemtrace_sample() -> (Vec<u8>, Vec<Item>) {
    let lengths = u64::from_le_bytes([3, 2, 0, 0, 0, 0, 0, 0]);
    let bytes = [
        dr(25, 0, 6),
        dr(28, 12, 6),
        dr(22, 0, 71),
        dr(24, 0, 70),
        dr(28, 2, 13_000_000),
        dr(28, 3, 0x1005),
        dr(47, 4, 0x90),
        dr(10, 4, 0x40_0000),
        dr(0, 8, 0x1000),
        dr(1, 512, 0x2000),
        dr(17, 2, lengths),
        dr(2, 8, 0x3000),
        dr(48, 2, 0x40_0010),
        dr(29, 2, 0x40_0012),
        dr(0, 1, 0x3001),
        dr(28, 3, 5),
        dr(28, 3, u64::MAX),
        dr(999, 0, 0),
        dr(23, 0, 71),
        dr(26, 0, 0),
    ]
    .concat();
    let a = |kind, addr, size, ip| access(70, 71, kind, addr, size, ip);
    let expected = vec![
        Item::Event(70, 71, Event::Migrate { cpu: 5 }),
        a(Kind::Fetch, 0x40_0000, 4, 0x40_0000),
        a(Kind::Load, 0x1000, 8, 0x40_0000),
        a(Kind::Store, 0x2000, 255, 0x40_0000),
        a(Kind::Fetch, 0x40_0004, 3, 0x40_0004),
        a(Kind::Fetch, 0x40_0007, 2, 0x40_0007),
        a(Kind::Fetch, 0x40_0010, 2, 0x40_0010),
        a(Kind::Load, 0x3001, 1, 0x40_0012),
        Item::Event(70, 71, Event::ThreadExit { thread: 71 }),
        Item::Event(70, 71, Event::Marker { text: "1 prefetches left out on import".into() }),
    ];
    (bytes, expected)
}

#[test]
fn drmemtrace_records() {
    let (bytes, expected) = drmemtrace_sample();
    let (got, source) = read(&bytes);
    assert_eq!(got, expected);
    let places: Vec<_> = source.damage().iter().map(|d| (d.offset, d.len)).collect();
    assert_eq!(places, [(17 * 12, 12)]);
    let (_, source) = read(&bytes[..bytes.len() - 5]);
    assert_eq!(source.damage().last().map(|d| (d.offset, d.len)), Some((19 * 12, 7)));
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut w = liblzma::write::XzEncoder::new(Vec::new(), 6);
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut w = lz4_flex::frame::FrameEncoder::new(Vec::new());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

/// A zip of several files that together are `bytes`.
fn zipped(bytes: &[u8], files: usize) -> Vec<u8> {
    let mut w = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (i, piece) in bytes.chunks(bytes.len().div_ceil(files)).enumerate() {
        w.start_file(format!("chunk.{i:04}"), zip::write::SimpleFileOptions::default()).unwrap();
        w.write_all(piece).unwrap();
    }
    w.finish().unwrap().into_inner()
}

#[test]
fn every_packing() {
    let samples = [
        (LACKEY.as_bytes().to_vec(), lackey_items()),
        champsim_sample(),
        drmemtrace_sample(),
        (b"R 0x10 1\n".to_vec(), vec![access(0, 0, Kind::Load, 16, 1, 0)]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("packed").display().to_string();
    for (bytes, expected) in samples {
        let packed = [
            gz(&bytes),
            [gz(&bytes[..5]), gz(&bytes[5..])].concat(),
            xz(&bytes),
            zstd::encode_all(&bytes[..], 3).unwrap(),
            lz4(&bytes),
            zipped(&bytes, 3),
            gz(&xz(&bytes)),
        ];
        for packed in packed {
            std::fs::write(&path, &packed).unwrap();
            let mut source = lookaside_trace::open(&path).unwrap();
            assert_eq!(items(&drain(&mut *source)), expected);
        }
        // A zip as a stream, without its directory at the end.
        let stream = read(&zipped(&bytes, 1));
        assert_eq!(stream.0, expected);
    }
}

#[test]
fn a_cut_packing_gives_what_came_before() {
    let mut text = String::new();
    for i in 0..50_000u64 {
        text += &format!("R {:#x} 8\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let (whole, _) = read(text.as_bytes());
    for packed in [gz(text.as_bytes()), xz(text.as_bytes()), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
        let (got, source) = read(&packed[..packed.len() / 2]);
        // The last line may be cut in its address.
        assert!(!got.is_empty() && got[..got.len() - 1] == whole[..got.len() - 1]);
        assert!(got.len() < whole.len());
        let last = source.damage().last().unwrap();
        assert!(last.reason.contains("unpacking stops"), "{last:?}");
    }
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    for (bytes, format, expected) in [
        (&b""[..], None, "is empty"),
        (
            b"hello world\nthis is prose\n",
            None,
            "no known trace format (native, lackey, champsim, drmemtrace, text, csv, perf)",
        ),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", None, "no known trace format"),
        (
            b"hello world\n",
            Some(Format::Lackey),
            "line 1: not a line of Lackey's: `hello world`; expected lines of `valgrind",
        ),
        (b"hello world\n", Some(Format::Text), "line 1: begins with none of R, W, I"),
        (b"a,b\n1,2\n", Some(Format::Csv), "line 1: no column is named addr"),
        (b"hello world\n", Some(Format::Perf), "line 1: no time"),
        (b"hello world\n", Some(Format::Native), "nothing readable"),
        (b"hello world\n", Some(Format::ChampSim), "byte 0: cut off"),
        (b"hello world\n", Some(Format::DrMemTrace), "byte 0: a record of unknown type"),
        (b"==1== Lackey\n==1== \n", None, "no access up to here"),
    ] {
        let error = try_open(bytes, format).map(drop).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    let many = "noise\n".repeat(3000) + LACKEY;
    let error = try_open(many.as_bytes(), Some(Format::Lackey)).map(drop).unwrap_err().to_string();
    assert!(error.contains("line 1: not a line"), "{error}");
    let error = lookaside_trace::open("no/such/file").map(drop).unwrap_err().to_string();
    assert!(error.contains("no/such/file: No such file"), "{error}");
    assert!(lookaside_trace::open("/").map(drop).unwrap_err().to_string().contains("is a directory"));
    assert!("x".parse::<Format>().unwrap_err().contains("lackey"));
    assert_eq!("perf".parse::<Format>(), Ok(Format::Perf));
}

#[test]
fn an_endless_line_takes_no_memory_to_speak_of() {
    // 64 MiB without a line end, packed small.
    let mut bytes = b"R 0x10 8\n".to_vec();
    bytes.resize(64 << 20, b'x');
    bytes.extend_from_slice(b"\nW 0x20 8\n");
    let (got, source) = read(&zstd::encode_all(&bytes[..], 1).unwrap());
    assert_eq!(got.len(), 2);
    assert!(source.damage()[0].reason.contains("line 2: longer than"));
}

#[test]
fn packed_too_often_is_refused() {
    let mut bytes = b"R 0x10 8\n".to_vec();
    for _ in 0..8 {
        bytes = gz(&bytes);
    }
    assert!(try_open(&bytes, None).map(drop).unwrap_err().to_string().contains("times over"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_round_trip(blocks in vec(block(60), 1..6)) {
        let info = TraceInfo { granularity: Granularity::Line, command: vec!["x".into()], ..TraceInfo::default() };
        let mut native = Vec::new();
        let mut w = TraceWriter::new(&mut native, &info).unwrap();
        for b in &blocks {
            w.write(b).unwrap();
        }
        w.finish().unwrap();
        let mut text = Vec::new();
        write_text(&mut NativeReader::new(&native[..], "memory").unwrap(), None, &mut text).unwrap();
        let expected = items(&blocks);
        prop_assume!(!expected.is_empty());
        let mut source = try_open(&text, Some(Format::Text)).unwrap();
        prop_assert_eq!(items(&drain(&mut *source)), expected);
        prop_assert_eq!(source.info(), &info);
        prop_assert_eq!(source.damage(), &[]);
    }

    /// What ChampSim's format can tell comes back: writing it once and once more gives the same bytes.
    #[test]
    fn champsim_round_trip(rows in vec((0u64..4, common::kind(), 1u64..1 << 47), 1..200)) {
        let mut b = Block::default();
        for (ip, kind, addr) in rows {
            b.push(kind, addr);
            b.ip.push(if kind == Kind::Fetch { addr } else { ip * 4 });
        }
        let (accesses, fetches) = (b.len() as u64, b.kind.iter().filter(|&&k| k == Kind::Fetch).count());
        let mut native = Vec::new();
        let mut w = TraceWriter::new(&mut native, &TraceInfo::default()).unwrap();
        w.write(&b).unwrap();
        w.finish().unwrap();
        let mut first = Vec::new();
        let mut source = NativeReader::new(&native[..], "memory").unwrap();
        let losses = write_champsim(&mut source, &mut first).unwrap();
        prop_assert_eq!((losses.accesses, losses.records * 64), (accesses, first.len() as u64));
        let mut source = try_open(&first, Some(Format::ChampSim)).unwrap();
        let back = items(&drain(&mut *source));
        let data = |items: &[Item]| -> Vec<Item> {
            let is_data = |i: &&Item| matches!(i, Item::Access(a) if a.3 != Kind::Fetch);
            items.iter().filter(is_data).cloned().collect()
        };
        prop_assert_eq!(data(&back), data(&items([&b])));
        prop_assert!(back.len() - data(&back).len() >= fetches);
        let mut second = Vec::new();
        write_champsim(&mut *try_open(&first, Some(Format::ChampSim)).unwrap(), &mut second).unwrap();
        prop_assert_eq!(first, second);
    }

    #[test]
    fn any_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), format in 0..Format::ALL.len()) {
        for format in [None, Some(Format::ALL[format])] {
            if let Ok(mut source) = try_open(&bytes, format) {
                drain(&mut *source);
            }
        }
    }
}
