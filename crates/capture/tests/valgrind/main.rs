//! Recording real programs under our Valgrind tool.

mod filter;
#[path = "../programs/mod.rs"]
mod programs;
mod users;
mod waits;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use filter::totals;
use lookaside_capture::{CaptureError, ChildEnd, RecorderBackend, Symbols};
use lookaside_trace::{Event, Kind, MapSource};
use programs::{command, compile, compile_cpp, record, request, Recorded};

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
    assert!(recorded.damage[0].reason.contains("ended without a final message"), "{:?}", recorded.damage);
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
    assert_eq!(recording.backend, RecorderBackend::Valgrind);
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
