//! What `lookaside trace …` prints, as data.

use crate::common::{drain, items};
use lookaside_trace::{cat, check, convert, open, summary, Format, NativeReader};

const TEXT: &str =
    "P 5 6\nR 0x1000 8 x=3\nW 0x1008 8\nI 0x400000 4\nP 5 7\nR 0x2000\nE {\"repeats\":{\"addr\":8192,\"count\":10}}\n";

#[test]
fn a_summary_counts_recorded_and_left_out_accesses_apart() {
    let dir = tempfile::tempdir().unwrap();
    let [text, native] = ["a.txt", "a.lkt"].map(|n| dir.path().join(n).display().to_string());
    std::fs::write(&text, TEXT).unwrap();
    assert_eq!(convert(&text, None, &native, Format::Native).unwrap().damage, []);
    let s = summary(&native, None).unwrap();
    assert_eq!((s.recorded_accesses, s.recorded_loads, s.recorded_stores, s.recorded_fetches), (4, 2, 1, 1));
    assert_eq!((s.left_out_repeats, s.distinct_pages, s.distinct_pages_exact), (13, 3, true));
    assert_eq!((s.processes, s.threads, s.chunks, s.blocks), (1, 2, 1, 2));
    assert_eq!(s.info.recorder, "text-import");
    assert_eq!(s.events.into_iter().collect::<Vec<_>>(), [("repeats".to_string(), 1)]);
    assert_eq!(s.bytes_per_recorded_access, s.file_bytes as f64 / 4.0);
    assert_eq!(s.bytes_per_access, s.file_bytes as f64 / 17.0);
    assert_eq!(summary(&text, None).unwrap().chunks, 0);
    // Without accesses there are no bytes for each.
    std::fs::write(&text, "E {\"free\":{\"addr\":64}}\n").unwrap();
    let s = summary(&text, Some(Format::Text)).unwrap();
    assert_eq!((s.recorded_accesses, s.blocks), (0, 1));
    assert_eq!((s.bytes_per_recorded_access, s.bytes_per_access), (0.0, 0.0));
}

#[test]
fn a_full_disk_is_named_by_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let [text, full] = ["a.txt", "full"].map(|n| dir.path().join(n).display().to_string());
    std::fs::write(&text, TEXT).unwrap();
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let error = convert(&text, None, &full, Format::Native).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{full}: No space left")), "{error}");
}

#[test]
fn conversions_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let name = |n: &str| dir.path().join(n).display().to_string();
    std::fs::write(name("a.txt"), TEXT).unwrap();
    convert(&name("a.txt"), None, &name("b.lkt"), Format::Native).unwrap();
    convert(&name("b.lkt"), None, &name("c.txt"), Format::Text).unwrap();
    let read = |n: &str| items(&drain(&mut *open(&name(n)).unwrap()));
    assert_eq!(read("c.txt"), read("a.txt"));
    assert_eq!(read("b.lkt"), read("a.txt"));
    assert!(convert(&name("b.lkt"), None, &name("e"), Format::Lackey).is_err());
    let onto_itself = convert(&name("b.lkt"), None, &name("b.lkt"), Format::Native).unwrap_err();
    assert!(onto_itself.to_string().contains("name another file"), "{onto_itself}");
    assert_eq!(read("b.lkt"), read("a.txt"));
}

#[test]
fn champsim_gets_every_access_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let name = |n: &str| dir.path().join(n).display().to_string();
    let champsim = |text: &str| {
        std::fs::write(name("a.txt"), text).unwrap();
        convert(&name("a.txt"), None, &name("d.champsim"), Format::ChampSim)
    };
    let whole = "P 5 6\nR 0x1000 8\nW 0x1008 8\nR 0x0 8\nP 5 7\nR 0x2000\nE {\"marker\":{\"text\":\"here\"}}\n";
    let losses = champsim(whole).unwrap().champsim.unwrap();
    assert_eq!((losses.accesses, losses.events, losses.thread_changes, losses.zero_addresses), (3, 1, 1, 1));
    assert!(!losses.is_none() && champsim("R 0x1000 8\n").unwrap().champsim.unwrap().is_none());
    // A repeat in a column, one in an event, a trace of pages, one of lines, samples.
    let info = |fields: &str| {
        let common = "\"recorder\":\"\",\"command\":[],\"filter_log2_classes\":0,\"filter_stores_apart\":false,\
            \"has_fetches\":false,\"has_ip\":false";
        format!("T {{{fields},{common}}}\nR 0x1000 8\n")
    };
    for text in [
        "R 0x1000 8\nR 0x2000 8 x=1\n".to_string(),
        "R 0x1000 8\nE {\"repeats\":{\"addr\":4096,\"count\":1}}\n".to_string(),
        info("\"granularity\":\"page\",\"sample_period_ns\":0"),
        info("\"granularity\":\"line\",\"sample_period_ns\":0"),
        info("\"granularity\":\"byte\",\"sample_period_ns\":1000"),
    ] {
        let error = champsim(&text).expect_err(&text).to_string();
        assert!(error.starts_with(&name("a.txt")) && error.contains("every access"), "{error}");
        assert!(!std::path::Path::new(&name("d.champsim")).exists(), "{text}");
        champsim("R 0x1000 8\n").unwrap();
        std::fs::remove_file(name("d.champsim")).unwrap();
    }
}

/// A device that is written to is no half-written file.
#[test]
fn a_conversion_that_fails_removes_no_device() {
    let dir = tempfile::tempdir().unwrap();
    let [text, link] = ["a.txt", "link"].map(|n| dir.path().join(n).display().to_string());
    std::fs::write(&text, "R 0x1000 8 x=1\n").unwrap();
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    assert!(convert(&text, None, &link, Format::ChampSim).is_err());
    assert!(std::fs::symlink_metadata(&link).is_ok());
}

#[test]
fn head_stops_after_so_many_accesses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt").display().to_string();
    std::fs::write(&path, TEXT).unwrap();
    let head = |n| {
        let mut out = Vec::new();
        cat(&path, None, n, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(head(Some(2)).ends_with("}\nP 5 6\nR 0x1000 8 x=3\nW 0x1008 8\n"));
    assert!(head(None).ends_with("P 5 7\nR 0x2000\nE {\"repeats\":{\"addr\":8192,\"count\":10}}\n"));
    assert_eq!(head(Some(0)).lines().count(), 1);
}

#[test]
fn check_names_the_damaged_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let [text, native] = ["a.txt", "a.lkt"].map(|n| dir.path().join(n).display().to_string());
    std::fs::write(&text, TEXT).unwrap();
    convert(&text, None, &native, Format::Native).unwrap();
    assert_eq!(check(&native, None).unwrap(), []);
    let mut file = std::fs::read(&native).unwrap();
    let middle = file.windows(8).rposition(|w| w == b"\x89LKT\r\n\x1a\n").unwrap() - 1;
    file[middle] ^= 0x10;
    std::fs::write(&native, &file).unwrap();
    let damage = check(&native, None).unwrap();
    assert_eq!(damage.len(), 1);
    assert!(damage[0].offset < middle as u64 && middle as u64 == damage[0].offset + damage[0].len - 1);
    assert!(damage[0].reason.contains("4 accesses lost"), "{damage:?}");
    assert!(drain(&mut NativeReader::open(&native).unwrap()).is_empty());
}

#[test]
fn more_than_a_million_pages_are_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.lkt").display().to_string();
    let mut w = lookaside_trace::TraceWriter::create(&path, &Default::default()).unwrap();
    let mut block = lookaside_trace::Block::default();
    for page in 0..3_000_000u64 {
        block.push(lookaside_trace::Kind::Load, page << 12);
    }
    w.write(&block).unwrap();
    w.finish().unwrap();
    let s = summary(&path, None).unwrap();
    assert!(!s.distinct_pages_exact);
    assert!(s.distinct_pages.abs_diff(3_000_000) < 30_000, "{}", s.distinct_pages);
}
