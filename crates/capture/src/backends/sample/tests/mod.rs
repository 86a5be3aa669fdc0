//! Programs whose distribution of waiting time is known, sampled.

mod life;
mod processes;
mod refusals;
mod shares;
mod source;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_trace::{Block, Event, FilterWindow, Granularity, Kind, MemoryMap, Region};

use super::*;
use crate::recording::{ChildEnd, ProgramControl};
use crate::symbols::Symbols;

/// Common to all programs: arrays whose place they write to the file named by their first argument.
const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static FILE *out;
static uint64_t seed = 1;
static uint64_t next_random(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
static uint64_t *array(const char *name, size_t n) {
  uint64_t *a = mmap(0, n * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t i = 0; i < n; i++) a[i] = next_random();
  fprintf(out, "%s %lx %lx\n", name, (long)a, (long)(a + n));
  fflush(out);
  return a;
}
struct node { struct node *next; uint64_t pad[7]; };
static struct node *ring(const char *name, size_t n) {
  struct node *v = (struct node *)array(name, n * 8);
  uint32_t *order = malloc(n * 4);
  for (size_t i = 0; i < n; i++) order[i] = i;
  for (size_t i = n - 1; i > 0; i--) { size_t j = next_random() % i; uint32_t t = order[i]; order[i] = order[j]; order[j] = t; }
  for (size_t i = 0; i < n; i++) v[order[i]].next = &v[order[(i + 1) % n]];
  free(order);
  return v;
}
__attribute__((noinline)) struct node *chase(struct node *p, long n) { while (n--) p = p->next; return p; }
"#;

/// The samples of one run that lie in the functions named.
#[derive(Default)]
struct SampledRun {
    /// By array (empty = none of them), process and thread.
    counts: HashMap<(String, u32, u32), u64>,
    stores: u64,
    samples: u64,
    resolved: u64,
    /// Resolved, and in a mapping that the events had told before.
    mapped: u64,
    events: Vec<(u32, Event)>,
    end: Option<ChildEnd>,
    text: String,
}

impl SampledRun {
    fn of(&self, array: &str) -> u64 {
        self.counts.iter().filter(|((name, ..), _)| name == array).map(|(_, count)| count).sum()
    }

    fn share(&self, array: &str) -> f64 {
        self.of(array) as f64 / self.samples as f64
    }
}

fn request(target: RecordTarget, sample_hz: u32) -> RecordRequest {
    RecordRequest {
        target,
        backend: Some(RecorderBackend::Sample),
        granularity: Granularity::Byte,
        filter_log2_classes: 0,
        filter_window: FilterWindow::default(),
        filter_stores_apart: false,
        filter_unified: false,
        fetches: false,
        waits: false,
        sample_hz,
        intervals: None,
    }
}

/// Says loudly why a test can't run where the kernel refuses the clock event, and checks the refusal instead.
fn refused_here() -> bool {
    match start(&request(RecordTarget::Command(vec!["true".into()]), 1000)) {
        Ok(recording) => {
            recording.control.wait().unwrap();
            false
        }
        Err(error) => {
            let line = error.to_string();
            assert!(line.starts_with("backend sample: perf_event_open is refused"), "{line}");
            assert!(!line.contains('\n') && line.contains(": "), "{line}");
            eprintln!("SKIPPED, sampling is NOT tested here: {line}");
            true
        }
    }
}

fn compile(folder: &Path, main: &str, flags: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, format!("{PRELUDE}{main}")).unwrap();
    let status = Command::new("gcc").args(flags).args(["-pthread", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(status.success());
    program
}

/// Reads the whole recording; counts samples in `functions` only.
fn read(mut recording: Recording, places: &Path, functions: &[&str]) -> SampledRun {
    let mut run = SampledRun::default();
    let mut symbols = Symbols::new();
    let mut regions: HashMap<u32, MemoryMap> = HashMap::new();
    let mut samples = Vec::new();
    let mut block = Block::default();
    while recording.source.next_block(&mut block).unwrap() {
        assert_eq!((block.addr.len(), block.addr.len()), (block.ip.len(), block.size.len()));
        let mut events = block.events.drain(..).peekable();
        for i in 0..=block.addr.len() {
            while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= i) {
                symbols.observe(block.process, &event);
                follow(&mut regions, block.process, &event);
                run.events.push((block.process, event));
            }
            if i < block.addr.len() {
                let name = symbols.resolve(block.process, block.ip[i]);
                let known = regions.entry(block.process).or_default().find(block.addr[i]).is_some();
                let function = name.inlined_into.or(name.function).unwrap_or_default();
                if functions.contains(&function.as_str()) {
                    samples.push((block.process, block.thread, block.addr[i], block.kind[i], known));
                }
            }
        }
    }
    run.end = Some(recording.control.wait().unwrap());
    run.text = std::fs::read_to_string(places).unwrap_or_default();
    let arrays: Vec<(String, u64, u64)> = run.text.lines().filter_map(parse_place).collect();
    for (process, thread, addr, kind, known) in samples {
        let array = arrays.iter().find(|(_, start, end)| (*start..*end).contains(&addr));
        let array = array.map_or_else(String::new, |(name, ..)| name.clone());
        *run.counts.entry((array, process, thread)).or_default() += 1;
        run.samples += 1;
        run.resolved += u64::from(addr != 0);
        run.mapped += u64::from(addr != 0 && known);
        run.stores += u64::from(kind == Kind::Store);
    }
    run
}

fn parse_place(line: &str) -> Option<(String, u64, u64)> {
    let mut words = line.split(' ');
    let name = words.next()?.to_owned();
    Some((name, u64::from_str_radix(words.next()?, 16).ok()?, u64::from_str_radix(words.next()?, 16).ok()?))
}

fn follow(regions: &mut HashMap<u32, MemoryMap>, process: u32, event: &Event) {
    match event {
        Event::Map { addr, len, prot, source, .. } => {
            let region = Region::new(*addr, addr + len, *prot, source.clone());
            regions.entry(process).or_default().map(region);
        }
        Event::Fork { parent, child } => {
            let copy = regions.get(parent).cloned().unwrap_or_default();
            regions.insert(*child, copy);
        }
        Event::Exec { .. } => regions.entry(process).or_default().clear(),
        _ => {}
    }
}

fn sample(main: &str, flags: &[&str], functions: &[&str]) -> SampledRun {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), main, flags);
    let places = folder.path().join("places");
    let command = vec![program.into(), places.clone().into()];
    let recording = start(&request(RecordTarget::Command(command), 5000)).unwrap();
    assert_eq!(recording.source.info().sample_period_ns, 200_000);
    let run = read(recording, &places, functions);
    assert!(run.samples > 200, "only {} samples", run.samples);
    run
}
