//! Programs that record themselves: what they do is what is recorded.

#[path = "../programs/mod.rs"]
#[allow(dead_code)]
mod programs;

use std::path::{Path, PathBuf};

use lookaside_capture::{choose, recording_compiler, start, ChildEnd, RecordRequest, RecorderBackend};
use lookaside_trace::{Event, FilterWindow, Granularity, Kind, MapSource};
use programs::{command, record, request, Recorded};

/// Compiles a C program so that it records itself.
fn compile(source: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    compile_with(&["gcc", "-O1", "-w"], "program.c", source, flags)
}

fn compile_with(compiler: &[&str], name: &str, source: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join(name), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    let mut words: Vec<std::ffi::OsString> = compiler.iter().map(Into::into).collect();
    words.extend(["-o".into(), program.clone().into(), file.into()]);
    words.extend(flags.iter().map(Into::into));
    let mut compiler = recording_compiler(&words).unwrap();
    assert!(compiler.command.status().unwrap().success());
    (folder, program)
}

fn compiled(program: &Path, arguments: &[&str]) -> RecordRequest {
    RecordRequest { backend: Some(RecorderBackend::Compiled), ..request(command(program, arguments)) }
}

fn of_kind(recorded: &Recorded, kind: Kind) -> u64 {
    recorded.rows.iter().filter(|row| row.kind == kind).map(|row| 1 + row.repeat).sum()
}

fn totals(recorded: &Recorded) -> (u64, u64) {
    let last = recorded.events.iter().rev().find_map(|(.., event)| match event {
        Event::Totals { loads, stores, .. } => Some((*loads, *stores)),
        _ => None,
    });
    last.expect("totals")
}

const KNOWN: &str = "#include <stdlib.h>
static volatile int array[4096];
int main(int argc, char **argv) {
    int rounds = atoi(argv[1]), sum = 0;
    for (int i = 0; i < rounds; i++)
        array[i * 1031 % 4096] = i;
    for (int i = 0; i < 2 * rounds; i++)
        sum += array[i * 7 % 4096];
    return sum & 1;
}";

#[test]
fn each_access_is_recorded_once() {
    let (_folder, program) = compile(KNOWN, &[]);
    for granularity in [Granularity::Byte, Granularity::Line, Granularity::Page] {
        for filter_log2_classes in [0, 4] {
            let recorded =
                record(&RecordRequest { granularity, filter_log2_classes, ..compiled(&program, &["30000"]) });
            // `argv[1]` is read, too.
            assert_eq!(totals(&recorded), (60_001, 30_000), "{granularity:?}");
            assert_eq!(recorded.accesses(), 90_001);
            assert_eq!((recorded.damage.len(), recorded.end), (0, ChildEnd::Code(0)));
            if granularity == Granularity::Byte {
                assert_eq!((of_kind(&recorded, Kind::Load), of_kind(&recorded, Kind::Store)), (60_001, 30_000));
                let stores: Vec<u64> =
                    recorded.rows.iter().filter(|row| row.kind == Kind::Store).map(|row| row.addr).collect();
                let first = stores.iter().min().unwrap();
                let expected = (0..30_000u64).map(|i| first + 4 * (i * 1031 % 4096));
                assert!(stores.iter().copied().eq(expected), "where they were made, in order");
                assert!(recorded.rows.iter().all(|row| row.size == 4 || row.size == 8));
            }
        }
    }
}

#[test]
fn other_compilers_call_out_too() {
    let check = |(_folder, program): (tempfile::TempDir, PathBuf), loads: u64| {
        let recorded = record(&compiled(&program, &["30000"]));
        let (its_loads, its_stores) = totals(&recorded);
        assert_eq!((recorded.end, recorded.damage.len()), (ChildEnd::Code(0), 0));
        // The standard library may be in it.
        assert!((loads..loads + 2000).contains(&its_loads), "{its_loads} loads");
        assert!((30_000..32_000).contains(&its_stores), "{its_stores} stores");
    };
    check(compile_with(&["g++", "-O2", "-w"], "program.cc", KNOWN, &[]), 60_000);
    let rust = "fn main() {
        let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
        let mut array = vec![0u32; 4096];
        for i in 0..rounds {
            unsafe { std::ptr::write_volatile(&mut array[i * 1031 % 4096], i as u32) };
        }
        let sum: u32 = (0..2 * rounds).map(|i| unsafe { std::ptr::read_volatile(&array[i * 7 % 4096]) } & 1).sum();
        std::process::exit((sum == 0) as i32);
    }";
    check(compile_with(&["rustc", "-O"], "program.rs", rust, &[]), 60_000);
    match std::process::Command::new("clang").arg("--version").output() {
        Ok(_) => check(compile_with(&["clang", "-O2", "-w"], "program.c", KNOWN, &[]), 60_000),
        Err(_) => eprintln!("LEFT OUT: clang is not installed: apt-get install clang"),
    }
}

#[test]
fn walks_are_those_of_the_exact_recorder() {
    let source = "#include <stdlib.h>
        int main(void) {
            volatile unsigned char *memory = malloc(64 << 20);
            unsigned long random = 1, sum = 0;
            for (int i = 0; i < 4000000; i++) {
                random = random * 6364136223846793005UL + 1442695040888963407UL;
                sum += memory[(random >> 33) % (64 << 20)]++;
            }
            return sum == 1;
        }";
    let (_folder, itself) = compile(source, &[]);
    let (_other, plain) = programs::compile(source, &["-O1"]);
    let fetches = false;
    let itself = RecordRequest { fetches, ..compiled(&itself, &[]) };
    let plain = RecordRequest { fetches, ..request(command(&plain, &[])) };
    if lookaside_capture::choose(&RecordRequest { backend: None, ..plain.clone() }).unwrap().0
        != RecorderBackend::Valgrind
    {
        return eprintln!("LEFT OUT: valgrind is not installed: apt-get install valgrind gcc libc6-dev");
    }
    // Of each page visited, one after the other: what a TLB of one entry misses; the loader makes some 20,000 of them.
    let [itself, plain] = [itself, plain].map(|request| record(&request).rows.len() as f64);
    assert!((itself / plain - 1.0).abs() < 0.01, "{itself} visits, exactly {plain}");
}

#[test]
fn windows_leave_out_repeats_and_lose_none() {
    let (_folder, program) = compile(KNOWN, &[]);
    let filter_window = FilterWindow { pages: 48, log2_classes: 4, class_pages: 3 };
    let windowed = record(&RecordRequest { filter_window, ..compiled(&program, &["30000"]) });
    let plain = record(&compiled(&program, &["30000"]));
    assert_eq!((windowed.accesses(), totals(&windowed)), (plain.accesses(), totals(&plain)));
    assert!(windowed.rows.len() * 100 < plain.rows.len(), "{} of {}", windowed.rows.len(), plain.rows.len());
}

#[test]
fn a_program_by_itself_runs_as_ever_and_another_is_refused() {
    let (_folder, program) = compile(KNOWN, &[]);
    let status = std::process::Command::new(&program).arg("3").status().unwrap();
    assert_eq!(status.code(), Some(0));
    let chosen = choose(&RecordRequest { backend: None, ..compiled(&program, &["3"]) }).unwrap();
    assert_eq!(chosen.0, RecorderBackend::Compiled);
    let refused = start(&compiled(Path::new("/bin/true"), &[])).err().map(|error| error.to_string());
    let line = "backend compiled: /bin/true was not built to record itself; build it with lookaside cc";
    assert_eq!(refused.as_deref(), Some(line));
}

#[test]
fn memory_is_known_before_it_is_accessed() {
    let (_folder, program) = compile(
        "#include <stdlib.h>
        #include <sys/mman.h>
        #include <unistd.h>
        static volatile int fixed[2000] = {1};
        int main(void) {
            volatile char *mapped = mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            volatile char *heap = sbrk(1 << 20), *block = malloc(300000);
            for (int i = 0; i < 1 << 18; i += 64)
                mapped[i] = heap[i] = block[i] = fixed[i % 2000] = 1;
            free((void *)block);
            return 0;
        }",
        &[],
    );
    let recorded = record(&RecordRequest { granularity: Granularity::Byte, ..compiled(&program, &[]) });
    assert_eq!(recorded.end, ChildEnd::Code(0));
    let mut sources = std::collections::BTreeSet::new();
    for (at, row) in recorded.rows.iter().enumerate() {
        let before: Vec<_> = recorded.events.iter().filter(|event| event.0 <= at).cloned().collect();
        let nothing = (vec![], vec![], vec![], vec![]);
        let (rows, of_windows, late, damage) = nothing;
        let source = Recorded { rows, events: before, of_windows, late, damage, end: recorded.end }
            .mapping_of(row.addr)
            .unwrap_or_else(|| panic!("{:x} lies nowhere", row.addr));
        let source = if source.is_file() { "file" } else { ["other", "heap"][usize::from(source == MapSource::Heap)] };
        sources.insert(source);
    }
    assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["file", "heap", "other"]);
    let alloc = recorded.events.iter().find_map(|(.., event)| match event {
        Event::Alloc { addr, len, site } => Some((*addr, *len, *site)),
        _ => None,
    });
    let (addr, len, site) = alloc.expect("a large block");
    assert_eq!(len, 300_000);
    assert!(recorded.rows.iter().any(|row| row.addr == addr));
    assert!(recorded.events.iter().any(|(.., event)| *event == Event::Free { addr }));
    let frames = recorded.events.iter().find_map(|(.., event)| match event {
        Event::Site { id, frames } if *id == site => Some(frames.clone()),
        _ => None,
    });
    let first = frames.expect("its site")[0];
    assert_eq!(
        recorded.mapping_of(first).and_then(|source| match source {
            MapSource::File { path, .. } => Some(path),
            _ => None,
        }),
        Some(program.canonicalize().unwrap().to_string_lossy().into_owned())
    );
}

#[test]
fn threads_children_and_executed_programs_are_told_apart() {
    let (_folder, program) = compile(
        "#include <pthread.h>
        #include <stdatomic.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile long own[5][4096];
        static _Atomic long made;
        static void *work(void *number) {
            for (int i = 0; i < 20000; i++)
                own[(long)number][i % 4096] = i;
            atomic_fetch_add(&made, 20000);
            return 0;
        }
        int main(int argc, char **argv) {
            pthread_t threads[4];
            if (argc > 1)
                return 0 * (long)work((void *)4);
            for (long i = 0; i < 4; i++)
                pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < 4; i++)
                pthread_join(threads[i], 0);
            int status;
            if (fork() == 0) {
                work((void *)4);
                execl(argv[0], argv[0], \"again\", (char *)0);
            }
            wait(&status);
            return made == 80000 ? 5 : 6;
        }",
        &["-pthread"],
    );
    let recorded = record(&RecordRequest { filter_log2_classes: 2, ..compiled(&program, &[]) });
    assert_eq!((recorded.end, recorded.damage.len()), (ChildEnd::Code(5), 0), "{:?}", recorded.damage);
    let count = |is: fn(&Event) -> bool| recorded.events.iter().filter(|(.., event)| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::ThreadStart { .. })), 4);
    assert_eq!(count(|event| matches!(event, Event::ThreadExit { .. })), 4);
    assert_eq!(count(|event| matches!(event, Event::Fork { .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::Exec { .. })), 1);
    // Of each process the last: the child's two programs together.
    let mut last = std::collections::BTreeMap::new();
    for (_, process, event) in &recorded.events {
        if let Event::Totals { stores, .. } = event {
            last.insert(*process, *stores);
        }
    }
    let mut stores: Vec<u64> = last.into_values().collect();
    stores.sort_unstable();
    // A few more are of `threads`, `status` and the counter.
    let near = |stores: u64, least: u64| (least..least + 20).contains(&stores);
    assert!(stores.len() == 2 && near(stores[0], 40_002) && near(stores[1], 80_004), "{stores:?}");
    assert_eq!(recorded.accesses(), {
        let of_process = |event: &Event| matches!(event, Event::Totals { .. });
        let mut all = std::collections::BTreeMap::new();
        for (_, process, event) in recorded.events.iter().filter(|(.., event)| of_process(event)) {
            if let Event::Totals { loads, stores, .. } = event {
                all.insert(*process, loads + stores);
            }
        }
        all.into_values().sum::<u64>()
    });
}

#[test]
fn a_recorder_writes_into_nothing_but_its_own_pipe() {
    use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
    let (folder, program) = compile(KNOWN, &[]);
    let path = folder.path().join("file");
    let told = |program: &Path, pipe: &std::fs::File, inode: u64| {
        // Standard error is what it may know of.
        let options = format!("{:010},{inode},{:010},0,12,0,0", 2, 0);
        let mut run = std::process::Command::new(program);
        run.arg("30000").env("LOOKASIDE_COMPILED", options).stderr(pipe.try_clone().unwrap());
        assert_eq!(run.status().unwrap().code(), Some(0));
        std::fs::read(&path).unwrap().len()
    };
    let file = std::fs::File::create(&path).unwrap();
    let inode = file.metadata().unwrap().ino();
    assert_eq!(told(&program, &file, inode + 1), 0, "of another file");
    if rustix::process::geteuid().is_root() {
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let other = folder.path().join("other");
        std::fs::copy(&program, &other).unwrap();
        chown(&other, Some(65_534), None).unwrap();
        std::fs::set_permissions(&other, PermissionsExt::from_mode(0o4755)).unwrap();
        assert_eq!(told(&other, &file, inode), 0, "with another's rights");
    }
    assert!(told(&program, &file, inode) > 0, "else it does as it is told");
}

#[test]
fn an_end_by_a_signal_is_told() {
    let (_folder, program) = compile("#include <signal.h>\nint main(void) { raise(SIGKILL); }", &[]);
    let recorded = record(&compiled(&program, &[]));
    assert_eq!(recorded.end, ChildEnd::Signal(9));
    let [damage] = &recorded.damage[..] else { panic!("{:?}", recorded.damage) };
    assert!(damage.reason.contains("ended without a final message"), "{}", damage.reason);
}

#[test]
fn each_way_to_end_says_all() {
    let ways = ["exit(3)", "_exit(3)", "_Exit(3)", "quick_exit(3)", "return 3", "syscall(SYS_exit_group, 3)"];
    for way in ways {
        let source = format!(
            "#define _GNU_SOURCE
            #include <stdlib.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            static volatile int array[100];
            int main(void) {{
                for (int i = 0; i < 100; i++)
                    array[i] = i;
                {way};
            }}"
        );
        let (_folder, program) = compile(&source, &[]);
        let recorded = record(&compiled(&program, &[]));
        assert_eq!(recorded.end, ChildEnd::Code(3), "{way}");
        if way.starts_with("syscall") {
            assert_eq!(recorded.damage.len(), 1, "a bare system call is not seen, and that is said");
        } else {
            assert_eq!((totals(&recorded), recorded.damage.len()), ((0, 100), 0), "{way}");
        }
    }
}

#[test]
fn a_fork_copies_the_memory_map_and_other_threads_are_heard_before_an_exec() {
    let (_folder, program) = compile(
        "#include <pthread.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int array[1 << 16];
        static volatile int ready;
        static void *work(void *none) {
            for (int i = 0; i < 1000; i++)
                array[i] = i;
            ready = 1;
            for (;;)
                pause();
        }
        int main(int argc, char **argv) {
            pthread_t thread;
            if (fork() == 0) {
                array[0] = 1;
                return 0;
            }
            wait(0);
            pthread_create(&thread, 0, work, 0);
            while (!ready)
                usleep(100);
            execl(\"/bin/true\", \"true\", (char *)0);
        }",
        &["-pthread"],
    );
    let recorded = record(&compiled(&program, &[]));
    assert_eq!((recorded.end, recorded.damage.len()), (ChildEnd::Code(0), 0), "{:?}", recorded.damage);
    let fork = recorded.events.iter().find_map(|(_, _, event)| match event {
        Event::Fork { parent, child } => Some((*parent, *child)),
        _ => None,
    });
    let (parent, child) = fork.expect("a child");
    let maps = |of: u32| {
        recorded.events.iter().filter(move |(_, process, event)| {
            *process == of && matches!(event, Event::Map { .. } | Event::Unmap { .. })
        })
    };
    assert!(maps(parent).count() > 10);
    // Its parent's are its own; the batch that it was about to make is no news.
    assert_eq!(maps(child).count(), 0);
    let of_parent = recorded.events.iter().rev().find_map(|(_, process, event)| match event {
        Event::Totals { stores, .. } if *process == parent => Some(*stores),
        _ => None,
    });
    // The other thread's thousand, and its flag.
    assert!(of_parent.is_some_and(|stores| (1001..1010).contains(&stores)), "{of_parent:?}");
}

#[test]
fn what_is_no_compiler_or_links_statically_is_refused() {
    let refused = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(Into::into).collect();
        recording_compiler(&words).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&[]), "backend compiled: no compiler given");
    assert_eq!(
        refused(&["/usr/bin/make", "all"]),
        "backend compiled: /usr/bin/make is no compiler that it knows: gcc, g++, clang, clang++, rustc or cargo"
    );
    for fixed in ["-static", "-static-pie"] {
        assert_eq!(
            refused(&["gcc", "a.c", fixed]),
            format!("backend compiled: {fixed}: a program that records itself is linked dynamically; leave it out")
        );
    }
}
