//! Raw evidence is enough: who reads the recorded samples finds what the probe found, to the last digit.

use std::collections::VecDeque;
use std::io::{self, Write};

use crate::sim::{Array, Costs, Noise, Other, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    probe, EvidenceRecorder, Metal, MetalError, NeighbourWalk, OtherCpu, PageChain, PairedTicks, ProbeOptions,
    ProbeReport, ProbeStep, Shot,
};
use lookaside_stats::quantile_sample;
use serde_json::Value;

fn sim() -> Sim {
    let array = |sets: u32, ways| Array {
        sets: 1 << sets,
        ways,
        masks: (0..sets).map(|bit| 1 << bit | 1 << (bit + 9)).collect(),
        replacement: Replacement::Lru,
    };
    let costs = Costs { hit: 4.0, second: 6.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.001, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    Sim::new(&[array(4, 4), array(7, 12)], 24, costs, noise, 3)
}

const OPTIONS: ProbeOptions =
    ProbeOptions { only: Some(ProbeStep::L2), quick: true, without: None, seed: 5, time: None };

/// What the probe finds, and the lines that were written.
fn recorded(bounds: (u64, u64)) -> (ProbeReport, Vec<Value>) {
    let mut sim = sim();
    let mut recorder = EvidenceRecorder::bounded(&mut sim, Vec::new(), OPTIONS.seed, bounds);
    let report = probe(&mut recorder, &OPTIONS, &|| None, &mut |_| ());
    let (text, end) = recorder.finish().expect("memory takes it");
    let text = String::from_utf8(text).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = lines.last().expect("an end");
    assert_eq!(last["kind"], "end");
    assert_eq!(last["measurements"], end.measurements);
    (report, lines)
}

fn of_kind<'a>(lines: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["kind"] == kind)
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// A machine that answers with what was recorded, as long as it is asked for what was asked for then.
struct Replay {
    start: Value,
    /// What was asked, and the answers, in order.
    lines: VecDeque<Value>,
    pages: Vec<u64>,
}

impl Replay {
    fn new(lines: &[Value]) -> Self {
        let asked = |line: &&Value| !matches!(line["kind"].as_str(), Some("start" | "note" | "end"));
        Self { start: lines[0].clone(), lines: lines.iter().filter(asked).cloned().collect(), pages: Vec::new() }
    }

    fn size(&self, size: PageSize, what: &str) -> u64 {
        let name = serde_json::to_value(size).expect("a name");
        let sizes = self.start["sizes"].as_array().expect("a list");
        let size = sizes.iter().find(|entry| entry["page_size"] == name).expect("every size is there");
        size[what].as_u64().expect("a number")
    }

    fn next(&mut self, kind: &str) -> Result<Value, MetalError> {
        let line = self.lines.pop_front().expect("no more is asked than was recorded");
        if line["kind"] == "failed" {
            return Err(MetalError::Cannot(line["why"].as_str().expect("why").to_string()));
        }
        assert_eq!(line["kind"], kind);
        Ok(line)
    }

    fn said(&mut self, what: &str) -> Result<Value, MetalError> {
        let line = self.next("said")?;
        assert_eq!(line["what"], what);
        Ok(line["said"].clone())
    }
}

impl Metal for Replay {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.size(size, "page_bits") as u32
    }

    fn max_pages(&self, size: PageSize) -> usize {
        self.size(size, "max_pages") as usize
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let line = self.next("chase")?;
        if let Some(pages) = line["pages"].as_array() {
            self.pages = pages.iter().map(|page| page.as_u64().expect("a page number")).collect();
        }
        assert_eq!(self.pages, chain.pages);
        assert_eq!(line["touch"], serde_json::to_value(chain.touch).expect("a name"));
        assert_eq!(line["count"], chain.pages.len());
        assert_eq!(line["rounds"], rounds);
        let ticks = numbers(&line["ticks_a_round"]);
        assert_eq!(ticks.len(), samples);
        Ok(ticks)
    }

    fn windows(&mut self, shot: &Shot<'_>, loads: usize, samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
        let line = self.next("windows")?;
        assert_eq!(line["before"], serde_json::to_value(shot.before).expect("JSON"));
        assert_eq!(line["timed"], serde_json::to_value(shot.timed).expect("JSON"));
        assert_eq!(line["loads"], loads);
        let pairs = line["ticks"].as_array().expect("a list");
        assert_eq!(pairs.len(), samples);
        let pair = |pair: &Value| PairedTicks { shot: numbers(&pair["shot"]), control: numbers(&pair["control"]) };
        Ok(pairs.iter().map(pair).collect())
    }

    fn page_faults(&mut self) -> Option<u64> {
        self.said("page-faults").expect("it cannot fail").as_u64()
    }

    fn cpus(&mut self) -> Vec<OtherCpu> {
        let said = self.said("cpus").expect("it cannot fail");
        let cpu = |cpu: &Value| OtherCpu {
            number: cpu["number"].as_u64().expect("a number") as usize,
            sibling: cpu["sibling"].as_bool(),
        };
        said.as_array().expect("a list").iter().map(cpu).collect()
    }

    fn neighbour(&mut self, _: Option<NeighbourWalk>) -> Result<(), MetalError> {
        self.said("neighbour").map(drop)
    }

    fn neighbour_loads(&mut self) -> u64 {
        self.said("neighbour-loads").expect("it cannot fail").as_u64().expect("a number")
    }

    fn ticks_per_second(&self) -> Option<f64> {
        self.start["ticks_per_second"].as_f64()
    }

    fn cycles_per_tick(&self) -> f64 {
        self.start["cycles_per_tick"].as_f64().expect("a number")
    }
}

#[test]
fn what_fills_and_empties_the_levels_is_told_by_the_samples_alone() {
    let mut sim = sim();
    let cpu = |number, sibling| OtherCpu { number, sibling };
    sim.habits.cpus = vec![(cpu(3, Some(true)), Other::Apart), (cpu(9, None), Other::Tagged)];
    sim.habits.prefetch_faults = 1;
    let options = ProbeOptions { only: Some(ProbeStep::Effects), ..OPTIONS };
    let mut recorder = EvidenceRecorder::new(&mut sim, Vec::new(), options.seed);
    let report = probe(&mut recorder, &options, &|| None, &mut |_| ());
    let (text, _) = recorder.finish().expect("memory takes it");
    let text = String::from_utf8(text).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // What is asked beside times was asked, and answered: the thread on CPU 9 takes entries.
    for what in ["page-faults", "cpus", "neighbour", "neighbour-loads"] {
        assert!(lines.iter().any(|line| line["what"] == what), "nobody asked for {what}");
    }
    let neighbours = report.effects.as_ref().and_then(|effects| effects.neighbours.as_deref()).expect("there are some");
    let taken: Vec<_> = neighbours.iter().map(|cpu| cpu.takes.value().map(|takes| takes.l1)).collect();
    assert_eq!(taken, [Some(false), Some(true)]);
    let mut replay = Replay::new(&lines);
    let again = probe(&mut replay, &options, &|| None, &mut |_| ());
    assert!(replay.lines.is_empty(), "{} lines were not asked for", replay.lines.len());
    assert_eq!(serde_json::to_value(&again).expect("JSON"), serde_json::to_value(&report).expect("JSON"));
}

#[test]
fn the_samples_alone_lead_to_the_same_findings() {
    let (report, lines) = recorded((u64::MAX, u64::MAX));
    assert!(report.missing().is_empty(), "{:?}", report.missing());
    assert_eq!(of_kind(&lines, "chase").count() as u64, lines.last().expect("an end")["measurements"]);
    let mut replay = Replay::new(&lines);
    let again = probe(&mut replay, &OPTIONS, &|| None, &mut |_| ());
    assert!(replay.lines.is_empty(), "{} measurements were not asked for", replay.lines.len());
    assert_eq!(serde_json::to_value(&again).expect("JSON"), serde_json::to_value(&report).expect("JSON"));

    // A number by hand: what a miss of the first level adds, by the first two powers of two that agree about it.
    let seen = report.levels[0].miss_cycles.value().expect("a level that was found");
    for pass in passes(&lines) {
        let cycles = miss_ticks(&pass) * report.cycles_per_tick;
        assert!(cycles > 0.98 * seen.low && cycles < 1.02 * seen.high, "{cycles} is not in {seen:?}");
    }
}

/// The chases of each pass over the first level: number of pages and ticks of a round, as the probe takes them.
fn passes(lines: &[Value]) -> Vec<Vec<(u64, f64)>> {
    let mut passes: Vec<Vec<(u64, f64)>> = Vec::new();
    for line in lines.iter().take_while(|line| line["text"] != "second level") {
        match line["kind"].as_str() {
            Some("note") if line["text"].as_str().is_some_and(|text| text.starts_with("pass")) => passes.push(vec![]),
            Some("chase") => {
                let Some(pass) = passes.last_mut() else { continue };
                let low = quantile_sample(numbers(&line["ticks_a_round"]), 0.25).expect("samples");
                match (line["pages"].as_str(), pass.last_mut()) {
                    (Some("same"), Some(last)) => last.1 = last.1.min(low),
                    _ => pass.push((line["count"].as_u64().expect("a number"), low)),
                }
            }
            _ => {}
        }
    }
    assert!(passes.len() > 1, "a level is seen twice");
    passes
}

/// Ticks beyond a hit, of the first power of two of pages that takes no longer a page than half of it does.
fn miss_ticks(pass: &[(u64, f64)]) -> f64 {
    let steps: Vec<f64> = pass.iter().map(|&(pages, ticks)| ticks / pages as f64).collect();
    let hit = steps[0];
    let mut beyond = steps[1..].iter().map(|step| step - hit);
    let mut before = beyond.next().expect("two pages");
    for now in beyond {
        if before > 0.4 * hit && now < 1.25 * before {
            return now;
        }
        before = now;
    }
    panic!("no plateau");
}

#[test]
fn what_has_no_room_is_counted() {
    let (_, whole) = recorded((u64::MAX, u64::MAX));
    let bytes: u64 = whole.iter().map(|line| line.to_string().len() as u64).sum();
    let (_, lines) = recorded((bytes / 20, bytes / 10));
    let end = lines.last().expect("an end");
    let count = |key: &str| end[key].as_u64().expect("a number");
    let written = of_kind(&lines, "chase").count() as u64;
    let without = of_kind(&lines, "chase").filter(|chase| chase["pages"] == "left out").count() as u64;
    assert!(written > 0 && without > 0 && count("measurements_left_out") > 0, "{end}");
    assert_eq!(written + count("measurements_left_out"), count("measurements"));
    assert_eq!(without, count("pages_left_out"));
    // Notes have their place even then, and the samples that are there are all there.
    assert_eq!(of_kind(&lines, "note").count(), of_kind(&whole, "note").count());
    for (line, same) in of_kind(&lines, "chase").zip(of_kind(&whole, "chase")) {
        assert_eq!((&line["ticks_a_round"], &line["count"]), (&same["ticks_a_round"], &same["count"]));
    }
}

/// Takes so many bytes.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_spoils_no_finding() {
    let mut sim = sim();
    let mut recorder = EvidenceRecorder::new(&mut sim, Small(10_000), OPTIONS.seed);
    let report = probe(&mut recorder, &OPTIONS, &|| None, &mut |_| ());
    assert!(report.missing().is_empty(), "{:?}", report.missing());
    let error = recorder.finish().err().expect("the disk was full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
