//! Intervals of programs that run, and what these notice of it.
#![cfg(target_arch = "x86_64")]

#[path = "../programs/mod.rs"]
#[allow(dead_code)]
mod programs;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lookaside_capture::{
    start, ChildEnd, IntervalLength, Intervals, RecordRequest, RecordTarget, RecorderBackend, RunMoment,
};
use lookaside_trace::{Event, FilterWindow, Granularity, Kind};
use programs::{command, compile, drain, record, record_until, request, Recorded};

const MILLISECOND: Duration = Duration::from_millis(1);

fn intervals(target: RecordTarget, every: Duration, instructions: u64) -> RecordRequest {
    let length = IntervalLength::Instructions(instructions);
    let start = RunMoment::After(Duration::ZERO);
    let intervals = Intervals { every, budget: None, length, start, stop: None };
    let backend = Some(RecorderBackend::Intervals);
    RecordRequest { target, backend, intervals: Some(intervals), ..request(vec!["true".into()]) }
}

fn of_command(program: &Path, arguments: &[&str], every: Duration, instructions: u64) -> RecordRequest {
    intervals(RecordTarget::Command(command(program, arguments)), every, instructions)
}

/// Loads, stores, fetches and instructions, of all processes.
fn totals(recorded: &Recorded) -> [u64; 4] {
    let told = recorded.events.iter().filter_map(|(.., event)| match event {
        Event::Totals { loads, stores, fetches, instructions } => Some([*loads, *stores, *fetches, *instructions]),
        _ => None,
    });
    told.fold([0; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]))
}

fn count(recorded: &Recorded, is: impl Fn(&Event) -> bool) -> usize {
    recorded.events.iter().filter(|(.., event)| is(event)).count()
}

/// Three loads, two stores and some more instructions a round, until so much CPU time is used.
const ROUNDS: &str = "#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile long array[1 << 16];
int main(int argc, char **argv) {
    long sum = 0, rounds = 0;
    clock_t end = clock() + atoi(argv[1]) * (CLOCKS_PER_SEC / 1000);
    for (; clock() < end; rounds++)
        for (long i = 0; i < 100000; i++) {
            sum += array[i * 4099 & 0xffff] + array[i & 0xff];
            array[i & 0xffff] = array[(i + 7) & 0xffff];
            array[0] = i;
        }
    printf(\"%d\\n\", sum == 1);
    return 7;
}";

#[test]
fn intervals_have_each_access() {
    let (_folder, program) = compile(ROUNDS, &["-O1"]);
    for granularity in [Granularity::Byte, Granularity::Page] {
        let request = RecordRequest { granularity, ..of_command(&program, &["900"], 60 * MILLISECOND, 200_000) };
        let recorded = record(&request);
        assert_eq!((recorded.end, recorded.damage.len()), (ChildEnd::Code(7), 0));
        let begun = count(&recorded, |event| matches!(event, Event::Interval { .. }));
        assert!(begun >= 2, "{begun} intervals");
        // Of the first as many instructions warm up as are wanted in a quarter; it may end at a system call before.
        let counting = count(&recorded, |event| matches!(event, Event::Counts));
        assert!((1..=begun).contains(&counting), "{counting} of {begun}");
        let [loads, stores, fetches, instructions] = totals(&recorded);
        assert!(instructions <= begun as u64 * 200_100 && fetches == instructions, "{instructions}");
        assert_eq!(recorded.accesses(), loads + stores + fetches);
        // Three loads for two stores, but where it looks at the clock, which is a thousandth of its time or less.
        assert!((2 * loads).abs_diff(3 * stores) < loads / 50, "{loads} loads, {stores} stores");
        let array = recorded.rows.iter().filter(|row| row.kind == Kind::Store).max_by_key(|row| row.repeat);
        assert!(array.is_some_and(|row| recorded.mapping_of(row.addr).is_some()));
        let times: Vec<u64> = recorded
            .events
            .iter()
            .filter_map(|(.., event)| match event {
                Event::Interval { cpu_ns } => Some(*cpu_ns),
                _ => None,
            })
            .collect();
        assert!(times.is_sorted() && times.last().is_some_and(|&last| last < 4_000_000_000), "{times:?}");
    }
}

/// Each costs more than the whole program may: after the first, which need not be counted, and one more there is none.
#[test]
fn intervals_keep_within_their_budget() {
    let (_folder, program) = compile(ROUNDS, &["-O1"]);
    let mut request = of_command(&program, &["900"], 40 * MILLISECOND, 50_000);
    let intervals = request.intervals.as_mut().expect("intervals");
    intervals.budget = Some(1e-6);
    let begun = count(&record(&request), |event| matches!(event, Event::Interval { .. }));
    assert!((1..=2).contains(&begun), "{begun}");
}

/// A page that two processes share is split where one of them writes to it.
#[test]
fn huge_pages_stay_huge() {
    let (_folder, program) = compile(
        "#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static long huge(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen(\"/proc/self/smaps_rollup\", \"r\");
    while (fgets(line, sizeof line, file))
        sscanf(line, \"AnonHugePages: %ld\", &kib);
    fclose(file);
    return kib;
}
int main(void) {
    size_t bytes = 32 << 20;
    char *memory = mmap(0, bytes, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 1, bytes);
    long before = huge();
    clock_t end = clock() + CLOCKS_PER_SEC;
    for (long round = 0; clock() < end; round++)
        for (size_t at = 0; at < bytes; at += 512)
            memory[at] += round;
    return before == 0 ? 77 : huge() < before;
}",
        &["-O1"],
    );
    let recorded = record(&of_command(&program, &[], 50 * MILLISECOND, 100_000));
    if recorded.end == ChildEnd::Code(77) {
        eprintln!("LEFT OUT: this system gives no huge pages");
        return;
    }
    assert_eq!(recorded.end, ChildEnd::Code(0));
    assert!(count(&recorded, |event| matches!(event, Event::Interval { .. })) >= 2);
}

#[test]
fn windows_leave_out_repeats() {
    let (_folder, program) = compile(ROUNDS, &["-O1"]);
    let filter_window = FilterWindow { pages: 32, log2_classes: 0, class_pages: 32 };
    let request = RecordRequest { filter_window, ..of_command(&program, &["600"], 60 * MILLISECOND, 200_000) };
    let recorded = record(&request);
    let [loads, stores, fetches, _] = totals(&recorded);
    assert_eq!(recorded.accesses(), loads + stores + fetches);
    assert!(recorded.of_windows.iter().any(|(_, event)| event.others().is_some()));
}

/// Reads 64 bytes at a time from a pipe and sums them up: between two system calls there are a few hundred instructions.
const READS: &str = "#include <unistd.h>
static unsigned char bytes[64];
int main(void) {
    unsigned long sum = 0;
    long n;
    while ((n = read(0, bytes, sizeof bytes)) > 0)
        for (long i = 0; i < n; i++)
            sum = sum * 31 + bytes[i];
    return sum & 1;
}";

/// The copy has no pipe: what the program read is given to it.
#[test]
fn intervals_go_on_over_system_calls() {
    let (_folder, program) = compile(READS, &["-O0"]);
    let mut writer = Command::new("sh");
    writer.args(["-c", "head -c 60000000 /dev/zero | \"$0\""]).arg(&program);
    let writer = Running(writer.spawn().unwrap());
    let pid = child_of(writer.0.id(), "program");
    let request = intervals(RecordTarget::Pid(pid), 40 * MILLISECOND, 300_000);
    let recorded = record(&request);
    let begun = count(&recorded, |event| matches!(event, Event::Interval { .. })) as u64;
    let [.., instructions] = totals(&recorded);
    assert!(begun >= 2 && instructions / begun > 20_000, "{instructions} instructions in {begun} intervals");
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child of a process that has this name.
fn child_of(process: u32, name: &str) -> u32 {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        let children = lookaside_host::Process::of(process).children().unwrap_or_default();
        let named = |&child: &u32| lookaside_host::Process::of(child).comm().is_ok_and(|comm| comm == name);
        if let Some(child) = children.into_iter().find(named) {
            return child;
        }
        std::thread::sleep(MILLISECOND);
    }
    panic!("{name} has not begun");
}

#[test]
fn a_process_that_runs_goes_on_as_if_nothing_had_been() {
    let (_folder, program) = compile(ROUNDS, &["-O1"]);
    let child = Command::new(&program).arg("1500").stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let request = intervals(RecordTarget::Pid(pid), 50 * MILLISECOND, 100_000);
    let seen = record_until(&request, |rows| rows > 1000);
    assert_eq!(seen.end, ChildEnd::Detached);
    assert!(count(&seen, |event| matches!(event, Event::Interval { .. })) > 0);
    let status = lookaside_host::Process::of(pid).status().unwrap();
    assert_eq!(status.value("TracerPid"), Some("0"));
    // Of its copies it has taken note.
    assert_eq!(lookaside_host::Process::of(pid).children().unwrap(), Vec::<u32>::new());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"0\n"[..]));
}

/// Memory that is shared stays as its owner left it, whatever a copy does.
#[test]
fn shared_memory_is_written_by_the_program_alone() {
    let (_folder, program) = compile(
        "#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
int main(void) {
    volatile long *shared = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    clock_t end = clock() + CLOCKS_PER_SEC;
    long own = 0;
    while (clock() < end)
        for (int i = 0; i < 10000; i++) {
            own++;
            (*shared)++;
        }
    printf(\"%d\\n\", own == *shared);
    return own != *shared;
}",
        &["-O0"],
    );
    let recorded = record(&of_command(&program, &[], 20 * MILLISECOND, 1_000_000));
    assert_eq!(recorded.end, ChildEnd::Code(0));
    assert!(count(&recorded, |event| matches!(event, Event::Interval { .. })) >= 2);
}

#[test]
fn threads_are_chosen_by_the_time_they_use() {
    let (_folder, program) = compile(
        "#include <pthread.h>
#include <unistd.h>
static volatile long counts[4][64];
static void *work(void *number) {
    volatile long *count = counts[(long)number];
    while (*count < 150000000)
        ++*count;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 3;
}",
        &["-O0", "-pthread"],
    );
    let recorded = record(&of_command(&program, &[], 40 * MILLISECOND, 50_000));
    assert_eq!(recorded.end, ChildEnd::Code(3));
    let mut threads: Vec<u32> = recorded.rows.iter().map(|row| row.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    // The first thread, which has the process's number, waits all the time.
    let process = recorded.events.first().expect("an interval").1;
    assert!((1..=2).contains(&threads.len()) && !threads.contains(&process), "{threads:?} of {process}");
}

fn refusal(request: &RecordRequest) -> String {
    match start(request) {
        Ok(recording) => panic!("{:?}", drain(recording).end),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let of_pid = |pid| intervals(RecordTarget::Pid(pid), 50 * MILLISECOND, 100_000);
    assert_eq!(refusal(&of_pid(u32::MAX >> 1)), "backend intervals: there is no process 2147483647");
    let kernel = lookaside_host::all_processes()
        .unwrap()
        .into_iter()
        .find(|&pid| pid > 1 && lookaside_host::Process::of(pid).stat().is_ok_and(|stat| stat.parent() == 2));
    if let Some(kernel) = kernel {
        assert!(refusal(&of_pid(kernel)).ends_with("is the kernel's own"));
    }
    let missing = intervals(RecordTarget::Command(vec!["/no/such/program".into()]), 50 * MILLISECOND, 100_000);
    assert!(refusal(&missing).starts_with("/no/such/program: "), "{}", refusal(&missing));
    let none = RecordRequest { intervals: None, ..missing };
    assert_eq!(refusal(&none), "backend intervals: no intervals were asked for");
    // It lets the kernel filter its system calls.
    let (_folder, filtered) = compile(
        "#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    write(1, \"on\\n\", 3);
    for (;;)
        ;
}",
        &[],
    );
    let mut child = Running(Command::new(&filtered).stdout(Stdio::piped()).spawn().unwrap());
    let mut said = [0; 3];
    std::io::Read::read_exact(child.0.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert!(refusal(&of_pid(child.0.id())).contains("filters its system calls (seccomp)"));
}
