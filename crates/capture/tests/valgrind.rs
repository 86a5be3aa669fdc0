//! Recording real programs under our Valgrind tool.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use lookaside_capture::{Backend, CaptureError, ChildEnd, Symbols};
use lookaside_trace::{Event, Granularity, Kind, MapSource};
use programs::{command, compile, compile_cpp, record, request, Recorded};

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

/// No libc: the same instructions whatever the environment. Loops, string instructions, atomics, vectors, guarded accesses.
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

fn bare() -> (tempfile::TempDir, std::path::PathBuf) {
    compile(BARE, &["-O1", "-static", "-nostdlib", "-fno-stack-protector", "-fcf-protection=none"])
}

/// Sums over the processes of the last totals of each.
fn totals(recorded: &Recorded) -> [u64; 4] {
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
fn filtered(bytes: &Recorded, line: bool, classes: u32, apart: bool, unified: bool) -> Vec<programs::Row> {
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

/// A page in a window as the naive recorder sees it, and how many of its accesses the recording says were left out.
struct Held {
    page: u64,
    left: u64,
    lines: u64,
    own: u64,
}

/// Goes through the accesses of one table beside a recording with windows: each is recorded where its page is not in the
/// window, each page leaves as the one whose last access lies furthest back, when the window is full or all leave. (The
/// recorder is ahead with the fetches from a page when a data access empties all windows; so a table at a time.) Gives
/// the number of each recorded access, and how often all left.
fn follow_window(
    bytes: &Recorded,
    recorded: &Recorded,
    pages: usize,
    is_of: impl Fn(Kind) -> bool,
) -> (Vec<(usize, usize)>, usize) {
    let mut window: Vec<Held> = Vec::new();
    let mut rows = recorded.rows.iter().enumerate().filter(|(_, row)| is_of(row.kind));
    let leaves = recorded.events.iter().filter_map(|(at, _, event)| match event {
        Event::Leave { addr, kind, others, lines } if is_of(*kind) => Some((*at, *addr, *others, *lines)),
        _ => None,
    });
    let mut leaves = leaves.peekable();
    let (mut numbers, mut emptied) = (Vec::new(), 0);
    let mut leave = |window: &mut Vec<Held>, before: usize| {
        let mut gone = 0;
        while let Some((_, addr, others, lines)) = leaves.next_if(|leave| leave.0 <= before) {
            let held = window.remove(0);
            assert_eq!((held.page << 12, held.left), (addr, 0), "the page used least lately leaves, all counted");
            assert_eq!(held.lines & !held.own, lines, "page {addr:x}");
            assert_eq!(window.len(), usize::from(others));
            gone += 1;
        }
        if gone > 1 || window.len() + gone < pages {
            assert!(gone == 0 || window.is_empty(), "one page leaves a full window, or all leave");
            emptied += usize::from(gone > 0);
        }
    };
    for (number, access) in bytes.rows.iter().enumerate().filter(|(_, access)| is_of(access.kind)) {
        let (page, line) = (access.addr >> 12, 1 << (access.addr >> 6 & 63));
        if let Some(place) = window.iter().position(|held| held.page == page && held.left > 0) {
            let mut held = window.remove(place);
            held.left -= 1;
            held.lines |= line;
            window.push(held);
            continue;
        }
        let (at, row) = rows.next().expect("another record");
        leave(&mut window, at);
        assert!(window.iter().all(|held| held.page != page), "a page in its window is recorded");
        let what = |row: &programs::Row| (row.kind, row.addr, row.size, row.ip);
        assert_eq!(what(row), what(access), "row {at}");
        window.push(Held { page, left: row.repeat, lines: 0, own: line });
        assert!(window.len() <= pages);
        numbers.push((at, number));
    }
    leave(&mut window, usize::MAX);
    assert!(window.is_empty() && rows.next().is_none());
    (numbers, emptied)
}

#[test]
fn windows_leave_out_the_pages_used_last() {
    let (_folder, program) = bare();
    let mut request = request(command(&program, &[]));
    request.granularity = Granularity::Byte;
    let bytes = record(&request);
    request.granularity = Granularity::Page;
    for (pages, apart, unified) in
        [(64, false, false), (4, false, false), (1, false, false), (7, true, false), (5, false, true)]
    {
        (request.filter_window, request.filter_stores_apart, request.filter_unified) = (pages, apart, unified);
        let recorded = record(&request);
        assert_eq!(recorded.damage, []);
        assert_eq!(recorded.late, [], "windows are emptied within their block");
        assert_eq!(totals(&recorded), totals(&bytes));
        let table = |kind| match kind {
            _ if unified => 0,
            Kind::Load => 0,
            Kind::Store => usize::from(apart),
            Kind::Fetch => 2,
        };
        let mut order = Vec::new();
        for of in 0..3 {
            let (numbers, emptied) = follow_window(&bytes, &recorded, pages as usize, |kind| table(kind) == of);
            assert!(emptied > 1 || pages == 1 || numbers.is_empty(), "windows are emptied now and then");
            order.extend(numbers);
        }
        order.sort_unstable();
        assert!(order.windows(2).all(|pair| pair[0].1 < pair[1].1), "in the order of the program");
        if !apart && !unified {
            let direct = filtered(&bytes, false, 0, apart, unified).len();
            assert!(pages == 1 || recorded.rows.len() * 2 < direct, "{} of {direct}", recorded.rows.len());
        }
    }
    request.filter_window = 65;
    assert!(matches!(lookaside_capture::start(&request), Err(CaptureError::Backend { .. })));
}

const WALK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) char *make_table(size_t n) { return malloc(n); }
int main(int argc, char **argv) {
    size_t n = 300000;
    char *table = make_table(n);
    volatile char *bytes = table;
    for (size_t i = 0; i < n; i++) bytes[i] = (char)i;
    char *small = malloc(100);
    table = realloc(table, 2 * n);
    char *mapped = mmap(0, 40960, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 10; i++) ((volatile char *)mapped)[4096 * i] = 1;
    mapped = mremap(mapped, 40960, 81920, MREMAP_MAYMOVE);
    mprotect(mapped, 8192, PROT_READ);
    madvise(mapped + 8192, 8192, MADV_DONTNEED);
    munmap(mapped, 81920);
    void *aligned = 0;
    if (posix_memalign(&aligned, 4096, 100000)) return 1;
    free(aligned);
    aligned = calloc(70000, 2);
    free(aligned);
    free(small);
    free(table);
    printf("%p\n", (void *)table);
    return 7;
}
"#;

#[test]
fn a_walk_touches_each_page_of_its_block_once() {
    let (_folder, program) = compile(WALK, &["-O1", "-g", "-fno-builtin"]);
    let recorded = record(&request(command(&program, &[])));
    assert_eq!(recorded.end, ChildEnd::Code(7));
    assert_eq!(recorded.damage, []);
    let allocs: Vec<(u64, u64, u32)> = recorded
        .events
        .iter()
        .filter_map(|(.., event)| match event {
            Event::Alloc { addr, len, site } => Some((*addr, *len, *site)),
            _ => None,
        })
        .collect();
    let lens: Vec<u64> = allocs.iter().map(|alloc| alloc.1).collect();
    assert_eq!(lens, [300_000, 600_000, 100_000, 140_000]);
    let freed: Vec<u64> = recorded
        .events
        .iter()
        .filter_map(|(.., event)| if let Event::Free { addr } = event { Some(*addr) } else { None })
        .collect();
    assert_eq!(freed, [allocs[0].0, allocs[2].0, allocs[3].0, allocs[1].0]);

    // The walk: an instruction of the program stores to each page of the block, in order, 4095 repeats a full page.
    let (addr, len, site) = allocs[0];
    let walk: Vec<_> = recorded
        .rows
        .iter()
        .filter(|row| row.kind == Kind::Store && row.size == 1 && (addr..addr + len).contains(&row.addr))
        .collect();
    let pages: Vec<u64> = walk.iter().map(|row| row.addr >> 12).collect();
    assert_eq!(pages, (addr >> 12..=(addr + len - 1) >> 12).collect::<Vec<_>>());
    assert_eq!(walk.iter().map(|row| row.repeat + 1).sum::<u64>(), len);
    assert!(walk[1..walk.len() - 1].iter().all(|row| row.repeat == 4095 && row.ip == walk[0].ip));

    // The site's innermost frame lies in the program, in make_table.
    let frames = recorded
        .events
        .iter()
        .find_map(|(.., event)| match event {
            Event::Site { id, frames } if *id == site => Some(frames.clone()),
            _ => None,
        })
        .unwrap();
    let image = recorded.mapping_of(frames[0]);
    assert!(
        matches!(image, Some(MapSource::File { ref path, .. }) if path.ends_with("program")),
        "{frames:x?}: {image:?}"
    );
    assert!(frames.len() >= 2);
}

/// Lengths of large blocks, and the names of the sites that asked for them.
fn sites(recorded: &Recorded) -> Vec<(u64, String)> {
    let mut symbols = Symbols::new();
    let mut frames_of = BTreeMap::new();
    let mut named = vec![];
    for (_, process, event) in &recorded.events {
        symbols.observe(*process, event);
        match event {
            Event::Site { id, frames } => drop(frames_of.insert(*id, frames.clone())),
            Event::Alloc { len, site, .. } => named.push((*len, symbols.name_site(*process, &frames_of[site]))),
            _ => {}
        }
    }
    named
}

const VECTORS: &str = r#"
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
__attribute__((noinline)) std::vector<long> make_table(size_t n) { return std::vector<long>(n); }
__attribute__((noinline)) void grow(std::vector<long> &v, size_t n) { for (size_t i = 0; i < n; i++) v.push_back(i); }
__attribute__((noinline)) char *make_bytes(size_t n) { return new char[n]; }
__attribute__((noinline)) std::unique_ptr<double[]> make_doubles(size_t n) { return std::make_unique<double[]>(n); }
__attribute__((noinline)) void hash(std::unordered_map<int, int> &m) { m.reserve(50000); }
__attribute__((noinline)) std::string text(size_t n) { return std::string(n, 'x'); }
int main() {
    auto table = make_table(10000);
    std::vector<long> list;
    grow(list, 10000);
    char *bytes = make_bytes(70000);
    auto doubles = make_doubles(10001);
    std::unordered_map<int, int> map;
    hash(map);
    auto string = text(70007);
    bytes[0] = table[5] + list[6] + (char)doubles[7] + map.size() + string[8];
    int code = bytes[0] == 0;
    delete[] bytes;
    return code;
}
"#;

#[test]
fn objects_of_cpp_are_named_by_the_programs_own_functions() {
    // A function that ends in a jump to the allocator is not on the stack.
    for flags in [["-O0", "-g"], ["-O2", "-g"], ["-O0", "-g0"]].map(|[o, g]| [o, g, "-fno-optimize-sibling-calls"]) {
        let (_folder, program) = compile_cpp(VECTORS, &flags);
        let recorded = record(&request(command(&program, &[])));
        assert_eq!(recorded.damage, []);
        let named = sites(&recorded);
        let of = |len: u64| named.iter().find(|site| site.0 == len).map(|site| site.1.clone());
        for (len, function, line) in [
            (80_000, "make_table(", 6),
            (131_072, "grow(", 7),
            (70_000, "make_bytes(", 8),
            (80_008, "make_doubles(", 9),
            (70_008, "text", 11),
        ] {
            let name = of(len).unwrap_or_else(|| panic!("{flags:?}: no block of {len} in {named:?}"));
            assert!(name.starts_with(function), "{flags:?}: {name} in place of {function}");
            let place = if flags[1] == "-g" { format!("(program.cc:{line})") } else { "(program+0x".into() };
            assert!(name.contains(&place), "{flags:?}: {name}, not {place}");
        }
        assert!(named.iter().any(|(_, name)| name.starts_with("hash(")), "{flags:?}: {named:?}");
    }
}

#[test]
fn the_memory_map_is_told() {
    let (_folder, program) = compile(WALK, &["-O1", "-fno-builtin"]);
    let recorded = record(&request(command(&program, &[])));
    let events: Vec<&Event> = recorded.events.iter().map(|(.., event)| event).collect();
    assert!(matches!(events[0], Event::Exec { path } if path.ends_with("program")), "{:?}", events[0]);
    let path = |name: &str| {
        events.iter().any(
            |event| matches!(event, Event::Map { source: MapSource::File { path, .. }, .. } if path.ends_with(name)),
        )
    };
    assert!(path("/program") && path("/libc.so.6"));
    assert!(events.iter().any(|event| matches!(event, Event::Map { source: MapSource::Stack, .. })));
    assert!(events.iter().any(|event| matches!(event, Event::Brk { start, end } if end > start)));
    let (addr, site) = events
        .iter()
        .find_map(|event| match event {
            Event::Map { addr, len: 40960, prot: 3, source: MapSource::Anonymous, site } => Some((*addr, *site)),
            _ => None,
        })
        .unwrap();
    assert_ne!(site, 0);
    let new = events
        .iter()
        .find_map(|event| match event {
            Event::Remap { old_addr, old_len: 40960, new_addr, new_len: 81920 } if *old_addr == addr => Some(*new_addr),
            _ => None,
        })
        .unwrap();
    for expected in [
        Event::Protect { addr: new, len: 8192, prot: 1 },
        Event::Advise { addr: new + 8192, len: 8192, advice: 4 },
        Event::Unmap { addr: new, len: 81920 },
    ] {
        assert!(events.contains(&&expected), "{expected:?}");
    }
    // Each data access lies in what was mapped, at some time.
    let outside =
        recorded.rows.iter().filter(|row| row.kind != Kind::Fetch && recorded.mapping_of(row.addr).is_none()).count();
    assert_eq!(outside, 0);
}

#[test]
fn threads_are_told_apart() {
    let source = r#"
#include <pthread.h>
#include <string.h>
static char areas[4][1 << 16] __attribute__((aligned(4096)));
static void *work(void *area) { for (int i = 0; i < 50; i++) memset(area, i, 1 << 16); return 0; }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, areas[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;
    let (_folder, program) = compile(source, &["-O1", "-pthread"]);
    let recorded = record(&request(command(&program, &[])));
    assert_eq!(recorded.damage, []);
    let threads = |pick: fn(&Event) -> Option<u32>| {
        recorded.events.iter().filter_map(|(.., event)| pick(event)).collect::<BTreeSet<_>>()
    };
    let started = threads(|event| if let Event::ThreadStart { thread } = event { Some(*thread) } else { None });
    let ended = threads(|event| if let Event::ThreadExit { thread } = event { Some(*thread) } else { None });
    assert_eq!(started.len(), 5, "four and the first");
    assert_eq!(started, ended);
    assert_eq!(started, recorded.rows.iter().map(|row| row.thread).collect());
    let stacks = recorded
        .events
        .iter()
        .filter(|(.., event)| matches!(event, Event::Map { source: MapSource::Stack, .. }))
        .count();
    assert!(stacks >= 2, "the first thread's and the others'");
    assert_eq!(recorded.accesses(), totals(&recorded)[..3].iter().sum::<u64>());
}

#[test]
fn fork_and_exec_are_followed() {
    let recorded = record(&request(vec!["sh".into(), "-c".into(), "(exit 3); ls / | cat >/dev/null; exit 4".into()]));
    assert_eq!(recorded.end, ChildEnd::Code(4));
    assert_eq!(recorded.damage, []);
    let mut children = BTreeSet::new();
    for (_, process, event) in &recorded.events {
        if let Event::Fork { parent, child } = event {
            assert_eq!(process, child);
            assert_eq!(*parent, recorded.events[0].1);
            children.insert(*child);
        }
    }
    assert_eq!(children.len(), 3);
    let paths: Vec<&str> = recorded
        .events
        .iter()
        .filter_map(|(.., event)| if let Event::Exec { path } = event { Some(&**path) } else { None })
        .collect();
    assert!(
        paths.iter().any(|path| path.ends_with("/ls")) && paths.iter().any(|path| path.ends_with("/cat")),
        "{paths:?}"
    );
    let mut exits: Vec<i32> = recorded
        .events
        .iter()
        .filter_map(|(.., event)| if let Event::ProcessExit { code } = event { Some(*code) } else { None })
        .collect();
    exits.sort_unstable();
    assert_eq!(exits, [0, 0, 3, 4]);
    assert_eq!(totals(&recorded)[..3].iter().sum::<u64>(), recorded.accesses());
}

#[test]
fn common_programs_run_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, (0..3000).map(|i| format!("{}\n", i * 7919 % 3001)).collect::<String>()).unwrap();
    let sorted = folder.path().join("sorted");
    let sort = vec!["sort".into(), "-n".into(), "-o".into(), sorted.clone().into(), text.into()];
    // Where there is one, the program itself: a version manager's `python3` is a script that starts many.
    let python3 = if std::path::Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let python =
        vec![python3.into(), "-c".into(), "import sys; x = [bytes(100000) for i in range(3)]; sys.exit(len(x))".into()];
    for (command, code) in [(sort, 0), (vec!["ls".into(), "/nothing/here".into()], 2), (python, 3)] {
        let what = format!("{command:?}");
        let recorded = record(&request(command));
        assert_eq!(recorded.end, ChildEnd::Code(code), "{what}");
        assert_eq!(recorded.damage, [], "{what}");
        assert_eq!(recorded.accesses(), totals(&recorded)[..3].iter().sum::<u64>(), "{what}");
    }
    let lines: Vec<u32> = std::fs::read_to_string(sorted).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(lines.len() == 3000 && lines.is_sorted());
}

#[test]
fn a_signal_is_passed_on_and_told() {
    let recorded = record(&request(vec!["sh".into(), "-c".into(), "kill -SEGV $$".into()]));
    assert_eq!(recorded.end, ChildEnd::Signal(11));
    assert_eq!(recorded.damage, []);
    let last =
        recorded
            .events
            .iter()
            .rev()
            .find_map(|(.., event)| if let Event::ProcessExit { code } = event { Some(*code) } else { None });
    assert_eq!(last, Some(139));
}

#[test]
fn what_was_recorded_before_a_kill_is_kept() {
    let recorded = record(&request(vec!["sh".into(), "-c".into(), "(kill -KILL $$); exit 0".into()]));
    assert_eq!(recorded.end, ChildEnd::Signal(9));
    assert!(recorded.rows.len() > 1000);
    assert!(recorded.damage[0].reason.contains("ended without a last word"), "{:?}", recorded.damage);
}

#[test]
fn a_program_without_end_can_be_stopped() {
    let source = r#"
#include <signal.h>
#include <unistd.h>
static volatile char page[1 << 20];
int main(void) {
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) signal(SIGHUP, SIG_IGN);
    for (unsigned i = 0;; i += 4096) page[i % sizeof page]++;
}
"#;
    let (_folder, program) = compile(source, &["-O1"]);
    let recorded = programs::record_until(&request(command(&program, &[])), |rows| rows > 100_000);
    assert_eq!(recorded.end, ChildEnd::Signal(9), "it doesn't mind SIGTERM");
    assert!(recorded.rows.len() > 100_000);
    let forked = recorded.events.iter().any(|(.., event)| matches!(event, Event::Fork { .. }));
    assert!(forked, "the child was killed too, else the stream would not have ended");
}

#[test]
fn what_valgrind_cannot_run_is_refused() {
    let refused = |words: Vec<std::ffi::OsString>| match lookaside_capture::start(&request(words)) {
        Err(CaptureError::Program { code, .. }) => code,
        Err(CaptureError::Backend { backend: "valgrind", .. }) => 0,
        other => panic!("{:?}", other.map(|recording| recording.notes)),
    };
    assert_eq!(refused(vec!["no-such-program-anywhere".into()]), 127);
    assert_eq!(refused(vec!["/etc".into()]), 126);
    let (folder, program) = compile("int main(void) { return 0; }", &[]);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    assert_eq!(refused(command(&program, &[])), 0);
    let arm = folder.path().join("arm");
    let mut elf = std::fs::read(&program).unwrap();
    elf[18] = 183; // AArch64
    std::fs::write(&arm, elf).unwrap();
    std::fs::set_permissions(&arm, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(refused(command(&arm, &[])), 0);
}

#[test]
fn the_best_backend_is_picked_and_named() {
    let mut request = request(vec!["true".into()]);
    request.backend = None;
    let recording = lookaside_capture::start(&request).unwrap();
    assert_eq!(recording.backend, Backend::Valgrind);
    assert!(recording.notes[0].contains("by valgrind"), "{:?}", recording.notes);
    programs::drain(recording);
}

#[test]
fn signals_reach_the_program() {
    let script = "trap 'exit 9' USR1; echo ready >\"$0\"; while :; do :; done";
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let recording =
        lookaside_capture::start(&request(vec!["sh".into(), "-c".into(), script.into(), ready.clone().into()]))
            .unwrap();
    let pid = recording.control.pid();
    let sender = std::thread::spawn(move || {
        while std::fs::read(&ready).map_or(true, |text| text.is_empty()) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let status = Command::new("kill").args(["-USR1", &pid.to_string()]).status().unwrap();
        assert!(status.success());
    });
    let recorded = programs::drain(recording);
    sender.join().unwrap();
    assert_eq!(recorded.end, ChildEnd::Code(9));
}

/// Runs the sample program of this crate with an environment of its own.
fn record_with_cache(cache: &std::path::Path) -> std::process::Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "records_true_for_another_test", "--nocapture"])
        .env("XDG_CACHE_HOME", cache)
        .env("LOOKASIDE_TEST_RECORD", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn records_true_for_another_test() {
    if std::env::var_os("LOOKASIDE_TEST_RECORD").is_some() {
        let recorded = record(&request(vec!["true".into()]));
        assert_eq!((recorded.end, recorded.damage), (ChildEnd::Code(0), vec![]));
        println!("recorded true");
    }
}

#[test]
fn the_tool_is_built_once_and_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = |output: std::process::Output| {
        assert!(String::from_utf8_lossy(&output.stdout).contains("recorded true"), "{output:?}");
    };
    // Two at once build the same; one is kept.
    let cache = folder.path().join("cache");
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| record_with_cache(&cache)));
        both.into_iter().for_each(|run| recorded(run.join().unwrap()));
    });
    let built: Vec<_> =
        std::fs::read_dir(cache.join("lookaside/valgrind")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(built.len(), 1, "{built:?}");
    assert!(built[0].to_string_lossy().starts_with("valgrind-"));
    // A cache that can't be written: a file is in its place.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    recorded(record_with_cache(&file));
}
