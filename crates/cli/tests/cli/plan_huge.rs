//! Plans of huge pages: of a trace and of programs, what is written, what is refused.

use lookaside_techniques::hugepages::apply::{aligned_windows, planned_range};
use lookaside_techniques::hugepages::plan::HugePlan;
use lookaside_techniques::hugepages::select::WindowSelector;
use lookaside_techniques::lock::regions::Confidence;

use crate::common::{assert_bad_input, compile, have_valgrind, plan, run, stderr, stdout};

const WINDOW: u64 = 2 << 20;

/// 40 windows; three of four accesses go to 3, 11 and 20, over all their pages.
fn trace(folder: &std::path::Path) -> String {
    let path = folder.join("t.txt");
    let window = |i: u64| if i.is_multiple_of(4) { i / 4 % 40 } else { [3, 11, 20][i as usize % 3] };
    let text: String =
        (0..40_000u64).map(|i| format!("R {:#x} 4\n", (100 + window(i)) * WINDOW + (i * 211 % 509) * 4096)).collect();
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text path").into()
}

/// Maps 32 windows; nine of ten accesses go to windows 3, 11 and 20 of the aligned ones.
const SKEWED: &str = "
#include <stdint.h>
#include <sys/mman.h>
int main(void) {
    const uint64_t window = 2 << 20;
    char *all = mmap(0, 34 * window + 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *table = (char *)(((uintptr_t)all + window - 1) & ~(window - 1));
    static const unsigned hot[3] = {3, 11, 20};
    uint64_t x = 88172645463325252ull;
    for (long i = 0; i < 100000; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        uint64_t w = (x >> 8) % 10 ? hot[(x >> 16) % 3] : (x >> 24) % 32;
        table[w * window + (x >> 32) % window]++;
    }
    return 0;
}
";

fn addresses(plan: &HugePlan) -> Vec<u64> {
    plan.windows.iter().chain(&plan.later).map(|window| window.address).collect()
}

#[test]
fn the_hot_windows_of_a_trace_are_found() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let file = folder.path().join("plan.toml");
    let place = file.to_str().expect("text path");
    let output = run(&["hugepages", "plan", "--budget", "3", "--machine", "skylake", "-o", place, "--trace", &trace]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made = HugePlan::load(&file).expect("a plan");
    let mut found = addresses(&made);
    found.sort_unstable();
    assert_eq!(found, [103, 111, 120].map(|window| window * WINDOW), "{}", stdout(&output));
    assert_eq!((made.machine.as_str(), made.budget, made.accesses), ("skylake", 3, 40_000));
    // So short a run does not pay for a collapse; what it would take is said.
    assert!(made.windows.is_empty() && made.later.iter().all(|window| window.break_even_runs > 1.0));
    assert!(
        stdout(&output).contains("\nskylake: 0 of at most 3 huge pages pay within the recorded run"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("3 more windows would pay only over several such runs"), "{}", stdout(&output));
    assert!(made.remarks.iter().any(|remark| remark.contains("no memory map")), "{:?}", made.remarks);
    // The curve falls, and everything huge is its end.
    assert_eq!(made.curve.iter().map(|point| point.windows).collect::<Vec<_>>(), [0, 1, 2, 3, 40]);
    assert!(
        made.curve.windows(2).all(|two| two[0].translation_cycles >= two[1].translation_cycles),
        "{:?}",
        made.curve
    );
    let gain = made.choices.iter().find(|choice| choice.selector == WindowSelector::Gain).expect("it is there");
    assert!(made.choices.iter().all(|choice| choice.effect.saved_cycles <= gain.effect.saved_cycles));
    // The same as JSON, and again the same.
    let printed = run(&["hugepages", "plan", "--budget", "3", "--machine", "skylake", "--json", "--trace", &trace]);
    let read: HugePlan = plan(&printed);
    assert_eq!(read, made);
}

#[test]
fn a_programs_hot_windows_are_found_there_and_in_a_plain_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "skewed", SKEWED, &[]) else { return };
    if !have_valgrind() {
        return;
    }
    let program = program.to_str().expect("text path");
    let file = folder.path().join("plan.toml");
    let place = file.to_str().expect("text path");
    let ask = ["hugepages", "plan", "--budget", "3", "--machine", "skylake", "--native", "-o", place, "--", program];
    let output = run(&ask);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("In a plain run, addresses fixed\n"), "{}", stdout(&output));
    let made = HugePlan::load(&file).expect("a plan");
    let mut found = Vec::new();
    for window in made.windows.iter().chain(&made.later) {
        let region = window.region.as_ref().expect("there is a map");
        let first = region.mapping.start.next_multiple_of(WINDOW);
        found.push((window.address - first) / WINDOW);
        assert!(window.touched_bytes + window.bloat_bytes == WINDOW && window.walks > 1000, "{window:?}");
        let native = window.native.as_ref().expect("found");
        assert!(native.confidence < Confidence::Guess, "{native:?}");
        // Wherever the region begins in another run, most of the window's bytes are in the windows made huge there.
        let actual = 0x7000_0012_3000..0x7000_0012_3000 + (region.mapping.end - region.mapping.start);
        let range = planned_range(window, actual.clone()).expect("it lies in it");
        assert_eq!(aligned_windows(&[range], actual).len(), 1);
    }
    found.sort_unstable();
    assert_eq!(found, [3, 11, 20], "{}", stdout(&output));
}

#[test]
fn a_program_that_fails_is_planned_for_and_said() {
    if !have_valgrind() {
        return;
    }
    let output = run(&["hugepages", "plan", "--budget", "1", "--", "/bin/false"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("\n· the program ended with exit code 1"), "{}", stdout(&output));
    // The machine is the one at hand, and said.
    assert!(stderr(&output).contains("lookaside: machine "), "{}", stderr(&output));
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let on = |more: &[&str]| run(&[&["hugepages", "plan", "--budget", "2", "--trace", trace.as_str()], more].concat());
    assert_bad_input(&on(&["--machine", "cortex-a9"]), &["cortex-a9", "no 2M pages", "4K, 64K, 1M, 16M", "skylake"]);
    assert_bad_input(&on(&["--machine", "nothing"]), &["nothing"]);
    assert_bad_input(&on(&["--machine", "skylake", "-o", "/no/folder/x"]), &["/no/folder/x", "choose another place"]);
    let missing = run(&["hugepages", "plan", "--machine", "skylake", "--budget", "1", "--trace", "/no/such.lkt"]);
    assert_bad_input(&missing, &["/no/such.lkt"]);
    for wrong in [&["--budget", "0"][..], &[], &["--budget", "1", "--native"]] {
        assert_eq!(
            run(&[&["hugepages", "plan", "--trace", trace.as_str()], wrong].concat()).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
}
