//! What the runs say of the paper's numbers.

use lookaside_harness::{Ours, PaperCurve, RowFinding};

use super::kernels_compared::KernelVariant;
use super::switching_runs::{CreationBenchmark, HotPotato, SwitchingRuns};

/// Pages of *extreme* from which on nothing fits, shared or not.
const TLB_ENTRIES: u32 = 32;
/// What sharing is published to gain at most, percent, and a quarter: "not dramatic" is held against that.
const NOT_DRAMATIC: f64 = 1.25 * 23.0;
/// A curve has risen where it is above its first point by this factor.
const RISEN: f64 = 1.5;

/// All rows'.
pub(super) fn findings(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let mut all = table_1(study);
    all.extend(creation(study));
    all.extend(figure_2(study));
    all.extend(figure_3(study));
    all.extend(figure_4(study));
    all.extend(figure_5(study));
    all.extend(conclusion(study));
    all
}

fn table_1(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let of = |what, system| study.potato.get(&(what, system)).copied().unwrap_or(f64::NAN);
    let mut all = Vec::new();
    for (what, ids) in [
        (HotPotato::Fcntl, ["fcntl-original", "fcntl-fast", "fcntl-ratio"]),
        (HotPotato::Fifo, ["fifo-original", "fifo-fast", "fifo-ratio"]),
        (HotPotato::Pipe, ["pipe-original", "pipe-fast", "pipe-ratio"]),
        (HotPotato::Unix, ["unix-original", "unix-fast", "unix-ratio"]),
        (HotPotato::PipeBandwidth, ["pipe-bandwidth-original", "pipe-bandwidth-fast", "pipe-bandwidth-ratio"]),
        (HotPotato::UnixBandwidth, ["unix-bandwidth-original", "unix-bandwidth-fast", "unix-bandwidth-ratio"]),
    ] {
        let (original, fast) = (of(what, KernelVariant::Original), of(what, KernelVariant::Fast));
        let ratio = if original > fast { original / fast } else { fast / original };
        let note = match what {
            HotPotato::Fcntl => {
                "two switches a round trip, of few lines. The paper's 39 µs (deviation 50) leave 7 µs a switch for a flush that takes 5 by itself: its \
                 locks can hardly have switched that often. Calls alone in 25 µs, and two switches of a pipe's in 6 % of the rounds, would be both values"
            }
            HotPotato::Fifo => "the same path as a pipe's",
            HotPotato::Pipe => "",
            HotPotato::Unix => "taken for two round trips of a pipe: both kernels' values are twice the pipe's",
            HotPotato::PipeBandwidth => "a page at a time; every byte is loaded twice and stored twice",
            HotPotato::UnixBandwidth => "64 KiB at a time; every byte is loaded twice and stored twice, and nothing stays in the cache",
        };
        all.extend([(ids[0], value(original, note)), (ids[1], value(fast, note)), (ids[2], value(ratio, note))]);
    }
    all
}

/// Published µs of the fast kernel: what the processes' creation takes beside what is modelled makes ours the same.
const CREATION_US: [(CreationBenchmark, f64, [&str; 2], &str); 3] = [
    (
        CreationBenchmark::Fork,
        3650.0,
        ["fork-saved", "fork-ratio"],
        "mostly by the flushes of the areas that an exit unmaps one by one",
    ),
    (
        CreationBenchmark::Exec,
        3980.0,
        ["exec-saved", "exec-ratio"],
        "the same at the program's exit; what it replaces is not flushed when it goes",
    ),
    (
        CreationBenchmark::Shell,
        51726.0,
        ["shell-saved", "shell-ratio"],
        "two programs' start and end, a fifteenth of the published time; what a shell does beside is not modelled",
    ),
];

fn creation(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let of = |what, system| study.creation.get(&(what, system)).copied().unwrap_or(0.0);
    let mut all = Vec::new();
    for (what, fast_us, ids, note) in CREATION_US {
        let saved = of(what, KernelVariant::Original) - of(what, KernelVariant::Fast);
        all.push((ids[0], value(saved, note)));
        all.push((ids[1], value(1.0 + saved / fast_us, "on the published time of the fast kernel")));
    }
    all
}

impl SwitchingRuns {
    fn switch(&self, system: KernelVariant, processes: usize, kib: u32) -> Option<f64> {
        self.lat_ctx.get(&(system, processes, kib)).copied()
    }

    /// Numbers of processes of `lat_ctx`, ascending.
    fn processes(&self) -> Vec<usize> {
        self.curve(KernelVariant::Original, 0).into_iter().map(|(processes, _)| processes).collect()
    }

    /// µs by number of processes.
    fn curve(&self, system: KernelVariant, kib: u32) -> Vec<(usize, f64)> {
        let points = self.lat_ctx.iter().filter(|((of, _, with), _)| *of == system && *with == kib);
        points.map(|((_, processes, _), us)| (*processes, *us)).collect()
    }

    /// How many times as long the original takes.
    fn gain(&self, processes: usize, kib: u32) -> f64 {
        let of = |system| self.switch(system, processes, kib).unwrap_or(f64::NAN);
        of(KernelVariant::Original) / of(KernelVariant::Fast)
    }

    /// µs of *extreme* by number of pages.
    fn turns(&self, processes: usize, shared: bool) -> Vec<(u32, f64)> {
        let points = self.extreme.iter().filter(|((of, with, _), _)| *of == processes && *with == shared);
        points.map(|((_, _, pages), us)| (*pages, *us)).collect()
    }

    /// Pages, and how many times as long private ones take.
    fn worth_of_sharing(&self, processes: usize) -> Vec<(u32, f64)> {
        let pairs = self.turns(processes, false).into_iter().zip(self.turns(processes, true));
        pairs.map(|((pages, private), (_, shared))| (pages, private / shared)).collect()
    }
}

fn figure_2(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let processes = study.processes();
    let gains: Vec<(usize, f64)> = processes.iter().map(|n| (*n, study.gain(*n, 0))).collect();
    let gain_at = |n: usize| study.gain(n, 0);
    let reduced = gains.iter().all(|of| of.0 <= 13 || of.1 < gain_at(13));
    let told: Vec<String> = gains
        .iter()
        .filter(|of| [2, 4, 8, 13, 14, 16, 20, 24].contains(&of.0))
        .map(|of| format!("{} {:.1}", of.0, of.1))
        .collect();
    let parts = processes.iter().map(|n| 100.0 / gain_at(*n));
    let most = parts.fold(0.0, f64::max);
    // What is saved at two processes, by size of the array.
    let saved =
        |kib: u32| match (study.switch(KernelVariant::Original, 2, kib), study.switch(KernelVariant::Fast, 2, kib)) {
            (Some(original), Some(fast)) => original - fast,
            _ => f64::NAN,
        };
    let of_none = saved(0);
    let kibs: Vec<u32> =
        study.lat_ctx.keys().filter(|of| of.0 == KernelVariant::Fast && of.1 == 2).map(|of| of.2).collect();
    let all_saved: Vec<String> = kibs.iter().map(|kib| format!("{kib} KiB {:.0}", saved(*kib))).collect();
    let alike = kibs.iter().all(|kib| (saved(*kib) / of_none - 1.0).abs() <= 0.25);
    vec![
        ("switch-two", value(gain_at(2), "")),
        (
            "switch-thirteen",
            value(gain_at(13), "13 processes compete for lines and TLB entries; how many each has is assumed"),
        ),
        (
            "switch-recycling",
            claim(reduced, told.join(", "), "times as fast, by processes; holds where all beyond 13 are below 13's"),
        ),
        ("switch-most", value(most, "the most over all numbers of processes, no memory accessed")),
        (
            "switch-difference",
            claim(
                alike,
                all_saved.join(", "),
                "µs saved a switch at two processes; holds where all are within a quarter of the first",
            ),
        ),
    ]
}

fn figure_3(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let gains: Vec<f64> = study
        .curve(KernelVariant::Sharing, 0)
        .into_iter()
        .filter_map(|(processes, shared)| {
            study.switch(KernelVariant::Fast, processes, 0).map(|fast| 100.0 * (fast / shared - 1.0))
        })
        .collect();
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gains.iter().copied().fold(0.0, f64::max);
    vec![
        (
            "sharing-least",
            value(least, "at 13 processes: the library's region takes the domain that the thirteenth needs, so recycling begins one process sooner"),
        ),
        (
            "sharing-most",
            value(
                most,
                "the library's part of a system call takes two lines of code, and neither its constants nor its data: of TLB entries that could be shared there is one a process, for code",
            ),
        ),
        (
            "sharing-marginal",
            claim(
                least >= -NOT_DRAMATIC && most <= NOT_DRAMATIC,
                format!("{least:.0} to {most:.0} %, where domains alone give up to {:.0} times", study.gain(2, 0)),
                "holds where neither end is beyond the published 23 % and a quarter",
            ),
        ),
    ]
}

fn figure_4(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let rises = |shared| {
        let turns = study.turns(2, shared);
        let first = turns.first().map_or(f64::NAN, |of| of.1);
        turns.iter().find(|of| of.1 >= RISEN * first).map_or(0.0, |of| f64::from(of.0))
    };
    let most = |processes| study.worth_of_sharing(processes).into_iter().map(|of| of.1).fold(0.0, f64::max);
    let beyond = |processes| {
        let from = study.worth_of_sharing(processes).into_iter().filter(|of| of.0 >= TLB_ENTRIES);
        from.map(|of| (of.1 - 1.0).abs()).fold(0.0, f64::max)
    };
    let apart: Vec<String> = [2, 4, 16].iter().map(|n| format!("{n} processes {:.0} %", 100.0 * beyond(*n))).collect();
    let holds = [2, 4, 16].iter().all(|n| beyond(*n) <= 0.1);
    let note = "pages at which two processes take half as long again as for one page";
    vec![
        ("extreme-private", value(rises(false), note)),
        ("extreme-shared", value(rises(true), note)),
        (
            "extreme-equal",
            claim(
                holds,
                apart.join(", "),
                "the most that private and shared differ from 32 pages on; holds up to a tenth",
            ),
        ),
        ("extreme-two", value(most(2), "a switch's own cycles, fitted on a pipe's, decide it")),
        (
            "extreme-sixteen",
            value(
                most(16),
                "16 processes recycle domains, which costs more than the pages do, and the region takes one",
            ),
        ),
        (
            "extreme-less",
            claim(
                most(2) > most(4) && most(4) > most(16),
                format!("{:.1}, {:.1} and {:.1} times", most(2), most(4), most(16)),
                "2, 4 and 16 processes",
            ),
        ),
    ]
}

fn figure_5(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let curve = |system: KernelVariant| -> Vec<(usize, f64)> {
        study.ipc.iter().filter(|(of, _)| of.0 == system).map(|(of, us)| (of.1, *us)).collect()
    };
    let (standard, fast) = (curve(KernelVariant::L4Standard), curve(KernelVariant::L4Fast));
    let mean = standard.iter().map(|of| of.1).sum::<f64>() / standard.len().max(1) as f64;
    let apart = standard.iter().map(|of| (of.1 / mean - 1.0).abs()).fold(0.0, f64::max);
    let least = fast.iter().map(|of| of.1).fold(f64::INFINITY, f64::min);
    let at = |clients: usize| fast.iter().find(|of| of.0 == clients).map_or(f64::NAN, |of| of.1);
    // Rise a client more.
    let rises: Vec<(usize, f64)> = fast
        .windows(2)
        .map(|pair| (pair[1].0, (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0).max(1) as f64))
        .collect();
    let before = rises.iter().filter(|of| of.0 <= 14).map(|of| of.1).fold(0.0, f64::max);
    let knee = rises.iter().find(|of| of.1 > 2.0 * before.max(0.1)).map_or(0.0, |of| of.0 as f64);
    let rise = |among: &dyn Fn(usize) -> bool| {
        let of: Vec<f64> = rises.iter().filter(|of| among(of.0)).map(|of| of.1).collect();
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    let (early, late) = (rise(&|n| (15..=19).contains(&n)), rise(&|n| n > 19));
    let last = fast.last().copied().unwrap_or((0, f64::NAN));
    vec![
        ("ipc-standard", value(mean, "")),
        ("ipc-flat", claim(apart < 0.05, format!("{:.1} % from the mean at most", 100.0 * apart), "holds below 5 %")),
        ("ipc-fast", value(least, "")),
        ("ipc-fourteen", value(at(14), "15 processes compete for lines and TLB entries")),
        ("ipc-knee", value(knee, "the first client more that costs more than twice as much as any before it")),
        ("ipc-slowing", claim(late < early, format!("{early:.2} µs a client up to 19, {late:.2} from there on"), "")),
        (
            "ipc-below",
            claim(
                last.1 < 0.75 * mean,
                format!("{:.0} µs at {} clients, {mean:.0} in the standard kernel", last.1, last.0),
                "holds below three quarters",
            ),
        ),
    ]
}

fn conclusion(study: &SwitchingRuns) -> Vec<(&'static str, RowFinding)> {
    let slower = study.processes().iter().filter(|n| study.gain(**n, 0) < 1.0).count()
        + study
            .potato
            .iter()
            .filter(|((what, system), us)| {
                let original = study.potato.get(&(*what, KernelVariant::Original)).copied().unwrap_or(f64::NAN);
                let bandwidth = matches!(what, HotPotato::PipeBandwidth | HotPotato::UnixBandwidth);
                *system == KernelVariant::Fast && if bandwidth { **us < original } else { **us > original }
            })
            .count()
        + study
            .ipc
            .iter()
            .filter(|((system, clients), us)| {
                *system == KernelVariant::L4Fast
                    && study.ipc.get(&(KernelVariant::L4Standard, *clients)).is_some_and(|standard| *us > standard)
            })
            .count();
    // Where sharing makes it half as fast again at least.
    let gains = study.worth_of_sharing(2);
    let window: Vec<u32> = gains.iter().filter(|of| of.1 >= RISEN).map(|of| of.0).collect();
    let (first, last) = (window.first().copied().unwrap_or(0), window.last().copied().unwrap_or(0));
    let few = gains.iter().filter(|of| of.0 <= 4).map(|of| of.1).fold(0.0, f64::max);
    vec![
        (
            "no-case-worse",
            claim(
                slower == 0,
                format!("{slower} points where the fast kernel is slower"),
                "of lat_ctx without memory, hot_potato and IPC",
            ),
        ),
        (
            "conclusion",
            claim(
                first > 4 && last < TLB_ENTRIES + 4 && few < 1.25,
                format!(
                    "two processes gain half or more with {first} to {last} pages, {:.0} % with up to 4",
                    100.0 * (few - 1.0)
                ),
                "of extreme, which does nothing but switch and read shared pages",
            ),
        ),
    ]
}

/// The paper's figures.
pub(super) fn series(study: &SwitchingRuns) -> Vec<PaperCurve> {
    let curve = |name: String, x: &str, y: &str, points: Vec<(f64, f64)>| PaperCurve {
        name,
        x: x.into(),
        y: y.into(),
        points,
        intervals: Vec::new(),
        labels: Vec::new(),
    };
    let named = |system| match system {
        KernelVariant::Original => "original",
        KernelVariant::Fast => "fast",
        KernelVariant::Sharing => "fast, TLB entries shared",
        KernelVariant::L4Standard => "standard",
        KernelVariant::L4Fast => "fast",
    };
    let mut all = Vec::new();
    for system in [KernelVariant::Original, KernelVariant::Fast, KernelVariant::Sharing] {
        for kib in [0, 4, 8, 16, 32] {
            let points: Vec<_> = study.curve(system, kib).into_iter().map(|(n, us)| (n as f64, us)).collect();
            if !points.is_empty() {
                let figure = if system == KernelVariant::Sharing { 3 } else { 2 };
                all.push(curve(
                    format!("Figure {figure}: {kib} KiB, {}", named(system)),
                    "processes",
                    "µs a switch",
                    points,
                ));
            }
        }
    }
    for processes in [2, 4, 16] {
        for shared in [false, true] {
            let points = study.turns(processes, shared).into_iter().map(|(pages, us)| (f64::from(pages), us)).collect();
            let pages = if shared { "shared" } else { "private" };
            all.push(curve(format!("Figure 4: {processes} processes, {pages}"), "pages", "µs a turn", points));
        }
    }
    for system in [KernelVariant::L4Standard, KernelVariant::L4Fast] {
        let points = study.ipc.iter().filter(|(of, _)| of.0 == system).map(|(of, us)| (of.1 as f64, *us)).collect();
        all.push(curve(format!("Figure 5: L4, {}", named(system)), "clients", "µs a round trip", points));
    }
    all
}

/// To hundredths below 10, to tenths below 100, else whole.
fn value(value: f64, note: impl Into<String>) -> RowFinding {
    let digits = match value.abs() {
        less if less < 10.0 => 100.0,
        less if less < 100.0 => 10.0,
        _ => 1.0,
    };
    // No -0.
    RowFinding { ours: Ours::Value((value * digits).round() / digits + 0.0), note: note.into() }
}

fn claim(holds: bool, found: String, note: impl Into<String>) -> RowFinding {
    RowFinding { ours: Ours::Claim { found, holds }, note: note.into() }
}
