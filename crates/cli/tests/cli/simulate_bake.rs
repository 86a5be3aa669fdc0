//! `simulate --bake`: the model's helper beside any trace.

use std::path::Path;

use lookaside_engine::Setup;
use lookaside_techniques::bake::{model, BakeResult, BakedProgram, ModelledBaker, ProgramFlow, TouchMethod};
use lookaside_trace::{Block, Event, Kind, MapSource, TraceInfo, TraceWriter};
use lookaside_workloads::{workload, WorkloadSpec, WorkloadStream};
use serde_json::Value;

use crate::common::{assert_bad_input, run, stderr, stdout};

/// The tables of 8 MiB are 16 KiB: they fit in the last-level cache, but do not stay there by themselves, nor in the
/// helper's own caches.
const MACHINE: [&str; 10] = [
    "-m",
    "ryzen-5900x",
    "--set",
    "cache.l3.size=32K",
    "--set",
    "cache.l2.size=8K",
    "--set",
    "cache.l1d-cache.size=4K",
    "--set",
    "tlb.l2d.entries=64",
];

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    crate::common::json(&output)
}

fn simulate(trace: &str, more: &[&str]) -> Value {
    json(&[&["simulate", trace, "--json", "--frames", "random"][..], &MACHINE, more].concat())
}

/// GUPS over 8 MiB.
fn gups(folder: &Path) -> String {
    let path = folder.join("gups.lkt").to_str().expect("text").to_string();
    json(&["lab", "workload", "gups", "--size", "8M", "--record", &path, "--json"]);
    path
}

fn memory(run: &Value) -> u64 {
    let servers = run["walk_references_by_server"].as_array().expect("servers");
    servers.last().and_then(|last| last[1].as_u64()).expect("a count")
}

#[test]
fn the_unbaked_run_is_simulates_own_and_the_helper_helps() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = gups(folder.path());
    let plain = &simulate(&trace, &[])["outcomes"][0];
    for bake in
        ["prefetch,sleep=5us", "load,sleep=5us", "module,sleep=5us", "scan,sleep=5us", "module,sleep=5us,cpu=sibling"]
    {
        let all = simulate(&trace, &["--bake", bake]);
        let one = &all["machines"][0];
        let [base, baked] = [&one["base"], &one["baked"]];
        assert_eq!(base["accesses"], plain["data"]["accesses"]);
        assert_eq!(base["walks"], plain["data"]["cost"]["walks"]);
        assert_eq!(base["walk_references"], plain["data"]["cost"]["walk_references"]);
        assert_eq!(base["walk_references_by_server"], plain["data"]["walk_references_by_server"]);
        assert_eq!(one["regions"][0]["name"], "[anon:table]");
        assert_eq!(
            (one["regions"][0]["start"].as_u64(), one["regions"][0]["bytes"].as_u64()),
            (Some(1 << 36), Some(8 << 20))
        );
        assert!(memory(base) > 10_000 && memory(baked) * 2 < memory(base), "{bake}: {one}");
        assert!(one["helper"]["touches"].as_u64() > Some(1000), "{one}");
        assert_eq!(all, simulate(&trace, &["--bake", bake]), "the same to the bit");
    }
}

/// The papers' way to the same model: the workload's stream, its main array, a helper put together by hand.
#[test]
fn it_is_the_papers_model() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = gups(folder.path());
    let machine = lookaside_machine::preset("ryzen-5900x").expect("a preset");
    let sets = MACHINE.iter().filter(|word| word.contains('=')).map(ToString::to_string).collect::<Vec<_>>();
    let mut setup = Setup::new(machine.with_overrides(&sets).expect("a machine"));
    setup.os.frames = lookaside_engine::FrameLayout::Random;
    let gups = workload("gups", &WorkloadSpec::new(8 << 20)).expect("memory");
    let main = gups.regions().iter().find(|region| region.main).expect("a main array");
    let range = main.stream_start..main.stream_start + main.bytes;
    let sleep_cycles = 5.0 * setup.machine.clock_mhz;
    let baker = ModelledBaker {
        nops: 30,
        sleep_cycles,
        ..ModelledBaker::new(TouchMethod::Load, 1, std::iter::once(range).collect())
    };
    let program = BakedProgram { warm_accesses: 0, flow: ProgramFlow::Chained };
    let expected =
        model(setup, &mut WorkloadStream::new(gups), &program, Some(&baker), &[]).expect("it can be modelled");
    let found = &simulate(&trace, &["--bake", "load,nops=30,sleep=5us"])["machines"][0];
    let BakeResult { program, program_cycles, helper: Some(helper) } = expected else { panic!("a helper") };
    assert_eq!(found["baked"]["modelled_cycles"].as_f64(), Some(program_cycles));
    let servers = serde_json::json!(program.data.walk_references_by_server);
    assert_eq!(found["baked"]["walk_references_by_server"], servers);
    assert_eq!(found["helper"]["touches"].as_u64(), Some(helper.touches));
    assert_eq!(found["helper"]["rounds"].as_u64(), Some(helper.rounds));
    assert!(helper.rounds > 1);
}

#[test]
fn the_text_says_what_was_baked_and_what_changed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = gups(folder.path());
    let output =
        run(&["simulate", &trace, "--bake", "prefetch,stride=16,sleep=100us", "-m", "ryzen-5900x", "-m", "skylake"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output).replace('\u{a0}', " ");
    for part in [
        "Baked by prefetch:t0,stride=16,sleep=100000ns: 8 MiB of process 1.\n",
        "8 MiB  [anon:table]  0x1000000000\n",
        "ryzen-5900x",
        "skylake",
        "served by memory",
        "share from memory",
        "modelled cycles",
        "the helper: ",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

/// Without a memory map, what is touched in one place is baked.
#[test]
fn a_trace_without_a_map_is_baked_where_it_is_touched() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("t.txt");
    let line = |i: u64| format!("R {:#x} 8\n", 0x7000_0000_0000 + ((i * 7919 % 4096) << 12));
    std::fs::write(&text, (0..20_000).map(line).collect::<String>()).expect("written");
    let one = &simulate(text.to_str().expect("text"), &["--bake", "module,sleep=5us"])["machines"][0];
    let regions = serde_json::json!([{"name": "touched", "start": 0x7000_0000_0000_u64, "bytes": 16 << 20}]);
    assert_eq!(one["regions"], regions);
}

/// Of several processes the one with the most is baked; that there are several threads is said.
#[test]
fn one_of_several_processes_is_baked_and_that_is_said() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("two.lkt");
    let mut writer = TraceWriter::create(&path, &TraceInfo::default()).expect("a trace");
    for (process, megabytes) in [(7, 4), (8, 8)] {
        let mut block = Block { process, thread: process, ..Block::default() };
        let (addr, len) = (1 << 32, megabytes << 20);
        block.push_event(Event::Map { addr, len, prot: 3, source: MapSource::Heap, site: 0 });
        (0..10_000).for_each(|i: u64| block.push(Kind::Store, addr + i * 7919 % (len >> 12) * 4096));
        writer.write(&block).expect("written");
    }
    writer.finish().expect("written");
    let path = path.to_str().expect("text");
    let output = run(&["simulate", path, "--bake", "module,sleep=100us", "-m", "skylake"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output).replace('\u{a0}', " ");
    for part in [": 8 MiB of process 8, which has the most of 2 processes.\n", "\n8 MiB  [heap]  0x100000000\n"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    assert!(stderr(&output).contains("2 threads") && stderr(&output).lines().count() == 1, "{}", stderr(&output));
}

#[test]
fn what_cannot_be_is_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("t.txt");
    std::fs::write(&text, "R 0x1000 8\nW 0x2000 8\n").expect("written");
    let text = text.to_str().expect("text");
    let bad = |more: &[&str], parts: &[&str]| assert_bad_input(&run(&[&["simulate", text][..], more].concat()), parts);
    bad(&["--bake", "warm"], &["--bake", "warm", "no such backend"]);
    bad(&["--bake", "auto"], &["--bake", "auto", "name a backend"]);
    bad(&["--bake", "prefetch,stride=0"], &["stride=0"]);
    bad(&["--bake", "prefetch,cpu=3"], &["cpu=3", "sibling"]);
    bad(&["--bake", "prefetch", "--pages", "thp"], &["--pages thp"]);
    bad(&["--bake", "prefetch", "-m", "skylake"], &["t.txt", "less than 4 MiB"]);
    assert_bad_input(&run(&["simulate", "-", "--bake", "prefetch"]), &["standard input"]);
    let trace = gups(folder.path());
    let on = |machine| run(&["simulate", &trace, "--bake", "prefetch,cpu=sibling", "-m", machine]);
    assert_bad_input(&on("cortex-a9"), &["cortex-a9 has one hardware thread a core"]);
    let other = run(&["simulate", &trace, "--bake", "module", "-m", "sa1100"]);
    assert_bad_input(&other, &["sa1100 has one core a socket"]);
    let past = ["-m", "ryzen-5900x", "--set", "walker.first_cache_level=4"];
    assert_bad_input(&run(&[&["simulate", &trace, "--bake", "module"][..], &past].concat()), &["walks read no cache"]);
}
