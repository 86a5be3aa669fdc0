//! What the recorder leaves out changes no translation: page-granular behind windows as line-granular.

use serde_json::Value;

use crate::common::{assert_bad_input, compile, have_valgrind, run, stderr, valid_json};

/// Reads and writes of more pages than the second level holds, a window's worth beside them, copies by string
/// instructions (long runs on one page of code), code on several pages, and an unmapping.
const SPREAD: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#define FAR (16u << 20)
#define NEAR (96u << 12)
static uint64_t state = 1;
static uint64_t next(void) { state = state * 6364136223846793005u + 1442695040888963407u; return state >> 33; }
static void copy(char *to, const char *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
static int order(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
int main(void)
{
	char *far = mmap(0, FAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *near = mmap(0, NEAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;
	if (far == MAP_FAILED || near == MAP_FAILED)
		return 1;
	for (uint64_t i = 0; i < 40000; i++) {
		far[next() % FAR]++;
		sum += near[next() % NEAR] + far[i * 192 % FAR];
		if (i % 8000 == 0) {
			copy(near, far + next() % (FAR - NEAR), NEAR);
			qsort(near, 500, 1, order);
		}
	}
	munmap(near, NEAR / 2);
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
"#;

#[test]
fn windows_and_lines_give_the_same_translation() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    // Static: the dynamic loader's work depends on the environment.
    let Some(program) = compile(folder.path(), "spread", SPREAD, &["-static"]) else { return };
    let outcome = |granularity: &str| -> Value {
        let json = folder.path().join(granularity);
        let (json, program) = (json.to_str().expect("text path"), program.to_str().expect("text path"));
        let arguments = ["analyze", "--machine", "ryzen-5900x", "--exact", "--once", "--granularity", granularity];
        let output = run(&[&arguments[..], &[&format!("--json={json}"), "--", program]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found = valid_json(&std::fs::read_to_string(json).expect("written"));
        found["outcome"].clone()
    };
    let (windows, lines) = (outcome("page"), outcome("line"));
    assert_eq!(windows["tlbs"], lines["tlbs"]);
    for side in ["data", "fetch"] {
        assert_eq!(windows[side]["accesses"], lines[side]["accesses"], "{side}");
        for count in ["l1_misses", "walks", "walk_references", "tlb_hit_cycles"] {
            assert_eq!(windows[side]["cost"][count], lines[side]["cost"][count], "{side} {count}");
        }
    }
    for count in ["loads", "stores", "instructions", "pages_touched", "table_bytes", "shootdowns"] {
        assert_eq!(windows[count], lines[count], "{count}");
    }
    // Nothing that a comparison of zeros would pass over.
    let cost = &windows["data"]["cost"];
    let count = |name: &str| cost[name].as_u64().expect("count");
    assert!(count("walks") > 4096 && count("l1_misses") > 40_000, "{cost}");
}

/// A trace that was recorded for a machine, or for two, has that machine's counts, and says on others that it is
/// approximate.
#[test]
fn a_recording_for_a_machine_has_its_counts() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "spread", SPREAD, &["-static"]) else { return };
    let record = |name: &str, machines: &[&str]| {
        let trace = folder.path().join(name).to_str().expect("text path").to_owned();
        let words = [&["record", "-o", &trace], machines, &["--", program.to_str().expect("text path")]].concat();
        assert_eq!(run(&words).status.code(), Some(0));
        trace
    };
    let simulated = |trace: &str, machine: &str| {
        let output = run(&["simulate", trace, "--machine", machine, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report = valid_json(&crate::common::stdout(&output));
        // Not the cycles: which lines the data caches see is left to the page's first access.
        let counts = ["data", "fetch"].map(|side| {
            let side = &report["outcomes"][0][side];
            let cost = ["l1_misses", "walks", "walk_references"].map(|count| side["cost"][count].clone());
            (side["accesses"].clone(), cost)
        });
        (counts, stderr(&output).contains("approximate"))
    };
    let all = record("all", &[]);
    let own = record("own", &["-m", "ryzen-5900x"]);
    let both = record("both", &["--machine", "ryzen-5900x", "--machine", "skylake"]);
    let expected = simulated(&all, "ryzen-5900x");
    assert!(!expected.1);
    assert_eq!(simulated(&own, "ryzen-5900x"), expected);
    assert_eq!(simulated(&both, "ryzen-5900x"), expected);
    assert_eq!(simulated(&both, "skylake"), simulated(&all, "skylake"));
    assert!(simulated(&own, "skylake").1, "it says so");
}

#[test]
fn a_machine_needs_a_recording_that_leaves_something_out() {
    for (more, named) in [
        (&["--machine", "sky-lake"][..], "sky-lake"),
        (&["--machine", "skylake", "--granularity", "byte"], "--granularity byte"),
        (&["--machine", "skylake", "--backend", "sample"], "--backend sample"),
    ] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let (trace, mark) = (folder.path().join("t.lkt"), folder.path().join("ran"));
        let paths = [&trace, &mark].map(|path| path.to_str().expect("text path"));
        let output = run(&[&["record", "-o", paths[0]], more, &["--", "touch", paths[1]]].concat());
        assert_bad_input(&output, &[named]);
        assert!(!mark.exists(), "{more:?} ran the program");
    }
}
