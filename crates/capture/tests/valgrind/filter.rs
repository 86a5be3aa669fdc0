//! What the recorder writes of a program against what it should: counts by Lackey, and a naive filter.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use lookaside_capture::ChildEnd;
use lookaside_trace::{Event, Granularity, Kind};

use crate::programs::{self, command, compile, record, request, Recorded};

/// Loads, stores, fetches by Lackey, which writes a line for each.
fn lackey(program: &std::path::Path) -> [u64; 3] {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let status = Command::new("valgrind")
        .args(["--command-line-only=yes", "--tool=lackey", "--trace-mem=yes"])
        .arg(format!("--log-file={}", log.display()))
        .arg(program)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(log).unwrap();
    let count = |mark: &str| text.lines().filter(|line| line.starts_with(mark)).count() as u64;
    let modifies = count(" M ");
    [count(" L ") + modifies, count(" S ") + modifies, count("I  ")]
}

/// No libc: the same instructions whatever the environment. Loops, string instructions, atomics, vectors, guarded
/// accesses.
const BARE: &str = r#"
static long system_call(long n, long a) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a) : "rcx", "r11", "memory");
    return r;
}
static char bytes[1 << 18];
static double sums[64];
__attribute__((target("avx2"))) static void vectors(void) {
    typedef long long v4 __attribute__((vector_size(32), aligned(1)));
    for (int i = 0; i + 32 < 5000; i += 32) *(v4 *)(bytes + 1 + i) += *(v4 *)(bytes + 9000 + i);
    v4 mask = {-1, 0, -1, 0};
    __asm__ volatile("vpmaskmovq %1, %0, %%ymm1\n vpmaskmovq %%ymm1, %0, %2"
                     : : "x"(mask), "m"(*(v4 *)(bytes + 64)), "m"(*(v4 *)(bytes + 128)) : "xmm1", "memory");
}
void _start(void) {
    unsigned seed = 1;
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < sizeof bytes; i += 8) *(volatile long *)(bytes + i) += i;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245 + 12345;
        __atomic_fetch_add((int *)(bytes + (seed >> 8 & 0x3fff0)), 1, __ATOMIC_SEQ_CST);
        if (seed & 4096) sums[i & 63] += (double)seed;
    }
    char *from = bytes, *to = bytes + 9999;
    long n = 5000;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
    vectors();
    __asm__ volatile("fxsave %0" : "=m"(*(char (*)[512])(bytes + 4096)));
    system_call(231, 0);
}
"#;

pub fn bare() -> (tempfile::TempDir, std::path::PathBuf) {
    compile(BARE, &["-O1", "-static", "-nostdlib", "-fno-stack-protector", "-fcf-protection=none"])
}

/// Sums over the processes of the last totals of each.
pub fn totals(recorded: &Recorded) -> [u64; 4] {
    let mut last = BTreeMap::new();
    for (_, process, event) in &recorded.events {
        if let Event::Totals { loads, stores, fetches, instructions } = event {
            last.insert(*process, [*loads, *stores, *fetches, *instructions]);
        }
    }
    last.values().fold([0; 4], |sums, totals| std::array::from_fn(|i| sums[i] + totals[i]))
}

#[test]
fn counts_agree_with_lackey_to_the_access() {
    let (_folder, program) = bare();
    let expected = lackey(&program);
    assert!(expected.iter().all(|&n| n > 50_000), "{expected:?}");
    for (granularity, classes, apart, unified) in [
        (Granularity::Byte, 0, false, false),
        (Granularity::Page, 0, false, false),
        (Granularity::Page, 4, true, false),
        (Granularity::Line, 2, false, true),
    ] {
        let mut request = request(command(&program, &[]));
        request.granularity = granularity;
        (request.filter_log2_classes, request.filter_stores_apart, request.filter_unified) = (classes, apart, unified);
        let recorded = record(&request);
        assert_eq!(recorded.damage, []);
        assert_eq!(recorded.end, ChildEnd::Code(0));
        let [loads, stores, fetches, instructions] = totals(&recorded);
        assert_eq!([loads, stores, fetches], expected, "{granularity:?}");
        assert_eq!(instructions, fetches);
        assert_eq!(
            recorded.accesses(),
            expected.iter().sum::<u64>(),
            "{granularity:?}: rows and repeats are all there"
        );
        if granularity == Granularity::Byte {
            let count = |kind| recorded.rows.iter().filter(|row| row.kind == kind).count() as u64;
            assert_eq!([Kind::Load, Kind::Store, Kind::Fetch].map(count), expected);
        }
    }
}

#[test]
fn without_fetches_the_instructions_are_still_counted() {
    let (_folder, program) = bare();
    let mut request = request(command(&program, &[]));
    request.fetches = false;
    let recorded = record(&request);
    let expected = lackey(&program);
    assert_eq!(totals(&recorded), [expected[0], expected[1], 0, expected[2]]);
    assert_eq!(recorded.accesses(), expected[0] + expected[1]);
    assert!(recorded.rows.iter().all(|row| row.kind != Kind::Fetch));
}

/// The wire's filter, one access at a time: rows as (kind, address, size, ip, repeats).
pub fn filtered(bytes: &Recorded, line: bool, classes: u32, apart: bool, unified: bool) -> Vec<programs::Row> {
    let unit = if line { 6 } else { 12 };
    let mut slots = BTreeMap::<(u8, u64), (u64, usize)>::new();
    let mut rows = Vec::<programs::Row>::new();
    for row in &bytes.rows {
        let table = match row.kind {
            Kind::Load => 0,
            Kind::Store => u8::from(apart),
            Kind::Fetch => 2,
        };
        let key = (if unified { 0 } else { table }, (row.addr >> 12) % (1 << classes));
        match slots.get(&key) {
            Some(&(page, at)) if page == row.addr >> unit => rows[at].repeat += 1,
            _ => {
                slots.insert(key, (row.addr >> unit, rows.len()));
                let addr = if line { row.addr & !63 } else { row.addr };
                rows.push(programs::Row { addr, ..*row });
            }
        }
    }
    rows
}

#[test]
fn the_inline_filter_is_the_naive_one() {
    let (_folder, program) = bare();
    let mut request = request(command(&program, &[]));
    request.granularity = Granularity::Byte;
    let bytes = record(&request);
    for (line, classes, apart, unified) in [
        (false, 0, false, false),
        (false, 0, false, true),
        (false, 0, true, false),
        (false, 3, true, false),
        (true, 0, false, false),
        (true, 2, false, true),
    ] {
        request.granularity = if line { Granularity::Line } else { Granularity::Page };
        (request.filter_log2_classes, request.filter_stores_apart, request.filter_unified) = (classes, apart, unified);
        let recorded = record(&request);
        let expected = filtered(&bytes, line, classes, apart, unified);
        let what = format!("line {line}, 2^{classes} classes, apart {apart}, unified {unified}");
        assert_eq!(recorded.rows.len(), expected.len(), "{what}");
        for (i, (row, expected)) in recorded.rows.iter().zip(&expected).enumerate() {
            // Repeats that came later than their block are events; the sums below have them.
            assert_eq!(
                (row.kind, row.addr, row.size, row.ip),
                (expected.kind, expected.addr, expected.size, expected.ip),
                "{what}: row {i}"
            );
        }
        let sums = |rows: &[programs::Row], late: &[(u64, u64)]| {
            let mut sums = BTreeMap::<u64, u64>::new();
            rows.iter()
                .map(|row| (row.addr, row.repeat))
                .chain(late.iter().copied())
                .for_each(|(addr, n)| *sums.entry(addr >> 12).or_default() += n);
            sums
        };
        assert_eq!(sums(&recorded.rows, &recorded.late), sums(&expected, &[]), "{what}");
    }
}
