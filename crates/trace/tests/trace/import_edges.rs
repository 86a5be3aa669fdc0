//! What importers make of lengths, numbers and lines at the edge of what they take.

use crate::common::{drain, items, Item};
use crate::import::{access, champsim, dr, read, try_open};
use lookaside_trace::{Block, Event, Format, Kind, TraceInfo, TraceWriter, BLOCK_ACCESSES};

/// The damages of a text in this format, and how many accesses it has all the same.
fn damages(text: &str, format: Format) -> (Vec<String>, usize) {
    let mut source = try_open(text.as_bytes(), Some(format)).unwrap();
    let accesses = drain(&mut *source).iter().map(Block::len).sum();
    (source.damage().iter().map(|d| d.reason.clone()).collect(), accesses)
}

#[test]
fn a_trace_says_what_it_was_imported_from() {
    for (bytes, recorder) in [
        (b"addr\n0x10\n".to_vec(), "csv-import"),
        (b"R 0x10\n".to_vec(), "text-import"),
        (champsim(0x400, &[], &[]), "champsim-import"),
        ([dr(25, 0, 6), dr(10, 4, 0x400)].concat(), "drmemtrace-import"),
        (b"x 1 1.0: cpu-clock: 10 401160\n".to_vec(), "perf-import"),
    ] {
        assert_eq!(read(&bytes).1.info().recorder, recorder);
    }
}

#[test]
fn blocks_are_full_before_the_next_begins() {
    for n in [BLOCK_ACCESSES, BLOCK_ACCESSES + 1, 2 * BLOCK_ACCESSES + 500] {
        let text: String = (0..n).map(|i| format!("R {i}\n")).collect();
        let blocks = drain(&mut *try_open(text.as_bytes(), None).unwrap());
        let addresses = blocks.iter().flat_map(|b| b.addr.iter().copied());
        assert!(addresses.eq(0..n as u64), "{n}");
        let rest = n % BLOCK_ACCESSES;
        let lengths = std::iter::repeat_n(BLOCK_ACCESSES, n / BLOCK_ACCESSES).chain((rest > 0).then_some(rest));
        assert_eq!(blocks.iter().map(Block::len).collect::<Vec<_>>(), Vec::from_iter(lengths));
    }
}

#[test]
fn the_bytes_tell_a_native_trace_and_its_name_a_damaged_one() {
    let mut file = Vec::new();
    let mut w = TraceWriter::new(&mut file, &TraceInfo::default()).unwrap();
    w.write(&Block { addr: vec![64], kind: vec![Kind::Load], ..Block::default() }).unwrap();
    w.finish().unwrap();
    assert_eq!(read(&file).0, [access(0, 0, Kind::Load, 64, 0, 0)]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.lkt").display().to_string();
    for (bytes, reason) in [(&b"hello"[..], "nothing readable of a lookaside trace"), (b"", "is empty")] {
        std::fs::write(&path, bytes).unwrap();
        let error = lookaside_trace::open(&path).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&path) && error.contains(reason), "{error}");
    }
}

#[test]
fn champsims_records_are_known_by_their_addresses() {
    let kernel = 0xffff_8880_0000_1008;
    let (got, _) = read(&champsim(0x40_0123, &[kernel], &[]));
    let expected =
        [(Kind::Fetch, 0x40_0123), (Kind::Load, kernel)].map(|(kind, a)| access(0, 0, kind, a, 0, 0x40_0123));
    assert_eq!(got, expected);
    // An address that no processor has; none at all.
    for bytes in [champsim(0x40_0123, &[0x1234 << 48], &[]), champsim(1 << 56, &[], &[]), vec![0; 128]] {
        let error = try_open(&bytes, None).map(drop).unwrap_err().to_string();
        assert!(error.contains("of no known trace format"), "{error}");
    }
}

#[test]
fn columns_that_a_table_does_not_name_stay_empty() {
    let columns = |text: &str| {
        let blocks = drain(&mut *try_open(text.as_bytes(), Some(Format::Csv)).unwrap());
        (blocks[0].size.clone(), blocks[0].ip.clone(), blocks[0].repeat.clone())
    };
    assert_eq!(columns("addr\n16\n"), (vec![], vec![], vec![]));
    assert_eq!(columns("addr,size\n16,8\n"), (vec![8], vec![], vec![]));
    assert_eq!(columns("pc,addr\n4,16\n"), (vec![], vec![4], vec![]));
}

#[test]
fn records_across_the_ends_of_reads_are_whole() {
    // 12 bytes each: 64 KiB end inside of one.
    let n = 6000;
    let mut bytes = [dr(25, 0, 6), dr(22, 0, 2), dr(24, 0, 1)].concat();
    (0..n).for_each(|i| bytes.extend(dr(0, 8, 0x0102_0304_0506_0708 * (i % 16))));
    let (got, source) = read(&bytes);
    // Without prefetches nothing is said of them.
    assert_eq!((got.len(), source.damage()), (n as usize, &[][..]));
    let expected = (0..n).map(|i| access(1, 2, Kind::Load, 0x0102_0304_0506_0708 * (i % 16), 8, 0));
    assert!(got.into_iter().eq(expected));
}

#[test]
fn lackeys_own_lines_are_no_accesses() {
    let text = "==12345== Lackey\n==12345== Command: ls -l\nSB 04016b80\n L 10,4\n--12345-- REDIR\n";
    let (got, source) = read(text.as_bytes());
    assert_eq!((got, source.damage()), (vec![access(12345, 12345, Kind::Load, 16, 4, 0)], &[][..]));
    assert_eq!(source.info().command, ["ls", "-l"]);
}

#[test]
fn another_format_is_told_by_a_thousand_bad_lines_that_are_the_most() {
    let (good, bad) = ("R 0x10\n", "noise\n");
    let opened = |first: &str, n: usize, then: &str, m: usize| {
        let text = first.repeat(n) + &then.repeat(m);
        try_open(text.as_bytes(), Some(Format::Text)).map(|source| source.damage().len()).map_err(|e| e.to_string())
    };
    assert_eq!(opened(bad, 1, good, 1), Ok(1));
    assert_eq!(opened(bad, 999, good, 1), Ok(999));
    assert_eq!(opened(good, 1000, bad, 1000), Ok(1000));
    for (first, n, then, m) in [(bad, 1000, good, 2000), (good, 1000, bad, 1001)] {
        let error = opened(first, n, then, m).unwrap_err();
        assert!(error.contains("begins with none of R, W, I: `noise`; expected lines as"), "{error}");
    }
}

#[test]
fn a_line_has_at_most_a_mebibyte() {
    for (len, whole) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let spaces = " ".repeat(len - "R0x20".len());
        let text = format!("R 0x10\nR{spaces}0x20\nR 0x30\n");
        let (got, source) = read(text.as_bytes());
        assert_eq!(got.len(), if whole { 3 } else { 2 });
        let reasons: Vec<_> = source.damage().iter().map(|d| &d.reason[..26]).collect();
        assert_eq!(reasons, if whole { vec![] } else { vec!["line 2: longer than 1 MiB:"] });
    }
}

#[test]
fn numbers_have_64_bits_and_at_least_one_digit() {
    let (got, source) = read(b"R 0xffffffffffffffff\nR 18446744073709551615\nR 0X0a 0x100\n");
    let expected = [(u64::MAX, 0), (u64::MAX, 0), (10, 255)].map(|(a, size)| access(0, 0, Kind::Load, a, size, 0));
    assert_eq!((got, source.damage()), (expected.to_vec(), &[][..]));
    let text = "R 0x10\nR 0x\nR 0x10000000000000000\nR 18446744073709551616\nR 0xg\nR 1a\nR\nR 1 x=4294967296\n";
    let (reasons, accesses) = damages(text, Format::Text);
    assert_eq!(accesses, 1);
    assert!(reasons[..6].iter().all(|r| r.contains("no address as 0x7ffc1000")), "{reasons:?}");
    assert!(reasons[6].contains("a word after the address is neither a size nor"), "{reasons:?}");
    assert_eq!(reasons.len(), 7);
}

#[test]
fn a_text_describes_itself_before_its_first_access() {
    let info = TraceInfo { recorder: "said".into(), ..TraceInfo::default() };
    let said = format!("T {}\n", serde_json::to_string(&info).unwrap());
    let text = format!("{said}R 0x10\n{said}R 0x20\n");
    let (got, source) = read(text.as_bytes());
    assert_eq!((got.len(), source.info()), (2, &info));
    let reasons: Vec<_> = source.damage().iter().map(|d| &d.reason[..]).collect();
    assert!(reasons.len() == 1 && reasons[0].starts_with("line 3: begins with none of R, W, I"), "{reasons:?}");
}

#[test]
fn samples_of_perf_have_a_time_and_an_event() {
    // Periods of a clock are as long on the mean; an instruction need not be told.
    let (got, source) = read(b"x 1 1.0: 250000 cpu-clock: 10\nx 1 1.5: 350000 cpu-clock: 20 401160 f+0x1 (/bin/x)\n");
    assert_eq!(got, [access(1, 1, Kind::Load, 16, 0, 0), access(1, 1, Kind::Load, 32, 0, 0x40_1160)]);
    assert_eq!(source.info().sample_period_ns, 300_000);
    // A call chain is indented and begins with an address.
    let text = "x 1 1.0: 1 mem: 10\n  401100 f (/bin/x)\n  prose\n401100 f\n\
        x 1 1.5: 1 mem: nowhere\nx 1 1.5: mem\nx 1.5: 1 mem: 1\n";
    let (reasons, accesses) = damages(text, Format::Perf);
    assert_eq!(accesses, 1);
    let expected = [
        "line 3: no time as 12345.678901:",
        "line 4: no time as 12345.678901:",
        "line 5: no address after the event",
        "line 6: no event after the time",
        "line 7: no process before the time",
    ];
    assert!(reasons.iter().map(|r| r.split(": `").next().unwrap()).eq(expected), "{reasons:?}");
    // Of lines with a time alone nothing tells that they are perf's.
    let unknown = try_open(b"boot took 12.5: fast\n", None).map(drop).unwrap_err().to_string();
    assert!(unknown.contains("of no known trace format"), "{unknown}");
    let long = b"x 1 1.0123456789: 1 mem: 10\n";
    assert!(try_open(long, Some(Format::Perf)).map(drop).unwrap_err().to_string().contains("no time as"));
}

#[test]
fn events_alone_are_a_trace() {
    let (got, _) = read(b"R 1\nP 3 4\nE {\"free\":{\"addr\":64}}\n");
    assert_eq!(got, [access(0, 0, Kind::Load, 1, 0, 0), Item::Event(3, 4, Event::Free { addr: 64 })]);
    let mut alone = try_open(b"E {\"free\":{\"addr\":64}}\n", Some(Format::Text)).unwrap();
    assert_eq!(items(&drain(&mut *alone)), [Item::Event(0, 0, Event::Free { addr: 64 })]);
}
