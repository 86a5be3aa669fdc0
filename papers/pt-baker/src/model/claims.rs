//! What the runs say of the paper's figures.

use lookaside_harness::{PaperCurve, RowFinding};

use super::baking::{BakingRun, BakingRuns, HelperMethod, Throttle, ThrottledHelper};
use super::findings::{claim, value, Findings, NONE};
use super::programs::{ProgramSystem, PROGRAMS};

/// Programs with a smaller part of walk references from memory have nothing to gain: its fall says nothing.
const LEAST_SHARE: f64 = 1.0;

/// A finding a row.
pub(super) fn findings(study: &BakingRuns) -> Findings {
    [walks(study), native(study), super::under_stress::findings(study), virtualised(study), sensitivity(study)].concat()
}

/// Figures 3.1 and 3.2: where walks find the entries.
fn walks(study: &BakingRuns) -> Findings {
    let shares = |system| PROGRAMS.map(|p| (p.name, study.base(p.name, system).share(2)));
    let mean = |system| {
        let shares = shares(system);
        shares.iter().map(|s| s.1).sum::<f64>() / shares.len() as f64
    };
    let most = |system| shares(system).into_iter().fold(("", 0.0), |most, s| if s.1 > most.1 { s } else { most });
    let all = |system| PROGRAMS.map(|p| format!("{} {:.1}", p.name, study.base(p.name, system).share(2))).join(", ");
    let [native, nested, runs] = [ProgramSystem::Native, ProgramSystem::Nested, ProgramSystem::NestedRuns]
        .map(|system| study.base("liblinear", system));
    let ratios = PROGRAMS.map(|p| {
        let base = study.base(p.name, ProgramSystem::Native);
        (p.name, base.data_memory as f64 / base.walks_by[2].max(1) as f64)
    });
    let least = ratios.iter().fold(("", f64::INFINITY), |least, r| if r.1 < least.1 { *r } else { least });
    let of_liblinear = "another input of the same shape, and a window of it";
    vec![
        (
            "fig-3.1-data",
            claim(
                least.1 >= 2.0,
                format!(
                    "{:.1} times as many data lines from memory as walk references ({}), the least of the six",
                    least.1, least.0
                ),
                "at least twice as many counts as much",
            ),
        ),
        ("fig-3.2-mean", value(mean(ProgramSystem::Native), all(ProgramSystem::Native))),
        (
            "fig-3.2-most",
            value(most(ProgramSystem::Native).1, format!("{}; random frames, LRU", most(ProgramSystem::Native).0)),
        ),
        (
            "fig-3.2-virtual-mean",
            value(
                mean(ProgramSystem::Nested),
                format!("{}; contiguous {:.1}", all(ProgramSystem::Nested), mean(ProgramSystem::NestedRuns)),
            ),
        ),
        (
            "fig-3.2-virtual-most",
            value(
                most(ProgramSystem::Nested).1,
                format!(
                    "{}; contiguous {:.1} ({})",
                    most(ProgramSystem::Nested).0,
                    most(ProgramSystem::NestedRuns).1,
                    most(ProgramSystem::NestedRuns).0
                ),
            ),
        ),
        (
            "liblinear-l2",
            value(
                native.share(0),
                format!("{of_liblinear}; the PDE cache's size is assumed: what it lacks, L2 serves"),
            ),
        ),
        ("liblinear-l3", value(native.share(1), of_liblinear.into())),
        ("liblinear-memory", value(native.share(2), of_liblinear.into())),
        (
            "liblinear-virtual-memory",
            value(nested.share(2), format!("contiguous {:.1}; {of_liblinear}", runs.share(2))),
        ),
        (
            "liblinear-virtual-more",
            value(
                nested.walks_by[2] as f64 / native.walks_by[2].max(1) as f64,
                format!(
                    "contiguous {:.1}; how host and guest place the memory is not published",
                    runs.walks_by[2] as f64 / native.walks_by[2].max(1) as f64
                ),
            ),
        ),
    ]
}

/// Figures 6.1 and 6.2.
fn native(study: &BakingRuns) -> Findings {
    let fall = |by| {
        let falls = study
            .baked(ProgramSystem::Native, by)
            .filter(|(program, ..)| study.base(program, ProgramSystem::Native).share(2) >= LEAST_SHARE);
        let falls =
            falls.map(|(program, how, came)| (study.base(program, ProgramSystem::Native).fall(came), program, how));
        falls.fold(
            (f64::NEG_INFINITY, "", None),
            |best, (fall, program, how)| {
                if fall > best.0 {
                    (fall, program, Some(how))
                } else {
                    best
                }
            },
        )
    };
    let fall_of = |by| {
        let (most, program, how) = fall(by);
        let each = PROGRAMS.map(|p| {
            let base = study.base(p.name, ProgramSystem::Native);
            let falls = study.of(p.name, ProgramSystem::Native, by, false).map(|(_, came)| base.fall(came));
            format!("{} {:.0}", p.name, falls.fold(f64::NEG_INFINITY, f64::max))
        });
        let how = how.map(|how| how.throttle.to_string()).unwrap_or_default();
        value(most, format!("{program}, {how}; the program's own walks only; best of each: {}", each.join(", ")))
    };
    let best = |program, by| {
        let (gain, how) = study.best(program, ProgramSystem::Native, by, false);
        value(gain, format!("{}; time without wrong predictions or prefetchers", how.throttle))
    };
    let gains = PROGRAMS.map(|p| {
        let [user, kernel] =
            [HelperMethod::User, HelperMethod::Kernel].map(|by| study.best(p.name, ProgramSystem::Native, by, false).0);
        (p.name, user, kernel)
    });
    let gainers: Vec<_> = gains.iter().filter(|g| g.1.max(g.2) >= NONE).collect();
    let none = |program, unless: &str| {
        let [user, kernel] =
            [HelperMethod::User, HelperMethod::Kernel].map(|by| study.best(program, ProgramSystem::Native, by, false));
        claim(
            user.0.max(kernel.0) < NONE,
            format!("user {:+.1} % ({}), kernel {:+.1} % ({})", user.0, user.1.throttle, kernel.0, kernel.1.throttle),
            unless,
        )
    };
    let with = |program, by, nops: bool| {
        let of = study.of(program, ProgramSystem::Native, by, false);
        let gains = of
            .filter(|(how, _)| matches!(how.throttle, Throttle::Nops(_)) == nops)
            .map(|(_, came)| study.gain(program, ProgramSystem::Native, came));
        gains.fold(f64::NEG_INFINITY, f64::max)
    };
    let bc = [
        (HelperMethod::User, true),
        (HelperMethod::User, false),
        (HelperMethod::Kernel, true),
        (HelperMethod::Kernel, false),
    ]
    .map(|(by, nops)| with("bc", by, nops));
    let huge = PROGRAMS.map(|p| {
        let base = study.base(p.name, ProgramSystem::Native).per_access();
        (p.name, 100.0 * (base / study.base(p.name, ProgramSystem::Huge).per_access() - 1.0))
    });
    let huge_gains = huge.iter().filter(|(_, gain)| *gain >= 5.0).count();
    let of_gap: Vec<(&str, f64)> = gains.iter().zip(&huge).map(|(g, h)| (g.0, 100.0 * g.1.max(g.2) / h.1)).collect();
    let graph500 = of_gap.iter().find(|(name, _)| *name == "graph500").map_or(0.0, |g| g.1);
    let baked_huge =
        [HelperMethod::User, HelperMethod::Kernel].into_iter().flat_map(|by| study.baked(ProgramSystem::Huge, by));
    let baked_huge = baked_huge.map(|(program, _, came)| study.gain(program, ProgramSystem::Huge, came));
    let most_huge = baked_huge.fold(f64::NEG_INFINITY, f64::max);
    vec![
        ("fig-6.2-user", fall_of(HelperMethod::User)),
        ("fig-6.2-kernel", fall_of(HelperMethod::Kernel)),
        ("fig-6.1-graph500-user", best("graph500", HelperMethod::User)),
        ("fig-6.1-graph500-kernel", best("graph500", HelperMethod::Kernel)),
        ("fig-6.1-liblinear-user", best("liblinear", HelperMethod::User)),
        ("fig-6.1-liblinear-kernel", best("liblinear", HelperMethod::Kernel)),
        ("fig-6.1-hashjoin-kernel", best("hashjoin", HelperMethod::Kernel)),
        (
            "kernel-ahead",
            claim(
                !gainers.is_empty() && gainers.iter().all(|g| g.2 > g.1),
                gainers.iter().map(|g| format!("{} {:+.1} and {:+.1} %", g.0, g.1, g.2)).collect::<Vec<_>>().join(", "),
                "user and kernel, each at its best setting; programs that either improves by 1 %",
            ),
        ),
        ("user-pollutes", pollution(study)),
        ("fig-6.1-canneal", none("canneal", "there huge pages do not help it much either, so that it spends its time elsewhere; in the model all time is memory's")),
        (
            "fig-6.1-gups",
            none("gups", "its tables do exceed the last-level cache, but a part of them is kept there; the helper's reads, and lines written back, take none of the program's bandwidth here"),
        ),
        (
            "fig-6.1-bc",
            claim(
                bc[0].max(bc[2]) >= NONE && bc[1].max(bc[3]) < NONE,
                format!("user {:+.1} % with NOPs, {:+.1} % with sleep; kernel {:+.1} and {:+.1} %", bc[0], bc[1], bc[2], bc[3]),
                "nothing to gain here: few of its walk references go to memory without a helper",
            ),
        ),
        (
            "huge-pages",
            claim(
                huge_gains >= 5,
                huge.map(|(name, gain)| format!("{name} {gain:+.0} %")).join(", "),
                "at least 5 % in five of the six",
            ),
        ),
        (
            "bridges",
            claim(
                of_gap.iter().all(|g| g.1 <= graph500),
                of_gap.iter().map(|(name, part)| format!("{name} {part:.0} %")).collect::<Vec<_>>().join(", "),
                "part of what huge pages give that the better way gives; Graph500's the largest",
            ),
        ),
        (
            "baked-huge",
            claim(most_huge < NONE, format!("at most {most_huge:+.1} %"), "1000 NOPs between touches, either way"),
        ),
    ]
}

/// Data that the program has to fetch again because the helper brought its own, at the same pace.
fn pollution(study: &BakingRuns) -> RowFinding {
    let same = Throttle::Nops(100);
    let more = PROGRAMS.map(|p| {
        let base = study.base(p.name, ProgramSystem::Native);
        let [user, kernel] = [HelperMethod::User, HelperMethod::Kernel].map(|way| {
            let came =
                study.get(p.name, ProgramSystem::Native, ThrottledHelper { way, throttle: same, sibling: false });
            let all = |came: &BakingRun| (came.data_memory + came.walks_by[2]) as f64 / came.accesses as f64;
            1000.0 * (all(came) - all(base))
        });
        (p.name, user, kernel)
    });
    claim(
        more.iter().filter(|m| m.1 > m.2).count() > PROGRAMS.len() / 2,
        more.map(|(name, user, kernel)| format!("{name} {user:+.0} and {kernel:+.0}")).join(", "),
        "the program's lines from memory per kilo access, data and walks, by user and kernel against none, 100 NOPs between touches",
    )
}

/// Figure 6.6.
fn virtualised(study: &BakingRuns) -> Findings {
    let by =
        |program, system| [HelperMethod::User, HelperMethod::Kernel].map(|by| study.best(program, system, by, false).0);
    let best = |program, system| by(program, system).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let gains = PROGRAMS.map(|p| {
        (
            p.name,
            [ProgramSystem::Native, ProgramSystem::Nested, ProgramSystem::NestedRuns]
                .map(|system| best(p.name, system)),
        )
    });
    let [named, others] = [true, false].map(|named| {
        let of = gains.iter().filter(|gain| ["graph500", "liblinear"].contains(&gain.0) == named);
        of.copied().collect::<Vec<_>>()
    });
    let told = |gains: &[(&str, [f64; 3])], at: usize| {
        gains.iter().map(|(name, g)| format!("{name} {:+.1} and {:+.1} %", g[0], g[at])).collect::<Vec<_>>().join(", ")
    };
    let (user, how) = study.best("graph500", ProgramSystem::Nested, HelperMethod::User, false);
    let [[scattered_user, scattered_kernel], [runs_user, runs_kernel]] =
        [ProgramSystem::Nested, ProgramSystem::NestedRuns].map(|system| by("graph500", system));
    vec![
        ("fig-6.6-graph500", value(user, format!("{}; contiguous {runs_user:.1}", how.throttle))),
        (
            "fig-6.6-user",
            claim(
                scattered_user > scattered_kernel,
                format!("user {scattered_user:+.1} %, kernel {scattered_kernel:+.1} %"),
                &format!(
                    "contiguous, user {runs_user:+.1} %, kernel {runs_kernel:+.1} %: the user level brings the host's entries too, and a \
                     line of them is then worth eight pages. The paper puts it down to data"
                ),
            ),
        ),
        (
            "fig-6.6-less",
            claim(
                others.iter().filter(|(_, g)| g[1] < g[0] || g[1] < NONE).count() >= 3,
                told(&others, 1),
                &format!(
                    "native and virtual, the better way at its best; three of the other four. Contiguous: {}",
                    told(&others, 2)
                ),
            ),
        ),
        (
            "fig-6.6-but",
            claim(
                named.iter().all(|(_, g)| g[1] >= g[0]),
                told(&named, 1),
                &format!("native and virtual, the better way at its best. Contiguous: {}", told(&named, 2)),
            ),
        ),
    ]
}

/// Figures 6.8 to 6.11.
fn sensitivity(study: &BakingRuns) -> Findings {
    let best = |program, by, sibling| {
        let of = study.of(program, ProgramSystem::Native, by, sibling);
        let sleeping = of.filter(|(how, _)| matches!(how.throttle, Throttle::Sleep(_)));
        sleeping.map(|(_, came)| study.gain(program, ProgramSystem::Native, came)).fold(f64::NEG_INFINITY, f64::max)
    };
    let placed = |program, by| (program, best(program, by, false), best(program, by, true));
    let pair = |p: &(&str, f64, f64)| format!("{} {:+.1} and {:+.1} %", p.0, p.1, p.2);
    let [kernel, user] = [HelperMethod::Kernel, HelperMethod::User]
        .map(|by| ["graph500", "liblinear"].map(|program| placed(program, by)));
    let bc = [HelperMethod::User, HelperMethod::Kernel].map(|by| placed("bc", by));
    let loads = ["graph500", "liblinear", "bc"].map(|program| {
        (program, best(program, HelperMethod::User, false), best(program, HelperMethod::Prefetch, false))
    });
    let spread = |by, nops: bool| {
        let of = study.of("liblinear", ProgramSystem::Native, by, false);
        let of = of.filter(|(how, _)| matches!(how.throttle, Throttle::Nops(_)) == nops);
        let gains: Vec<f64> = of.map(|(_, came)| study.gain("liblinear", ProgramSystem::Native, came)).collect();
        let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        ((most - least) / most, least, most)
    };
    let sensitive = |nops| {
        let [user, kernel] = [HelperMethod::User, HelperMethod::Kernel].map(|by| spread(by, nops));
        claim(
            user.0 >= 1.5 * kernel.0,
            format!("user {:+.1} to {:+.1} %, kernel {:+.1} to {:+.1} %", user.1, user.2, kernel.1, kernel.2),
            "much more: the spread over the best is half as large again; in the model both ways lose as they slow down, and pollution costs little",
        )
    };
    vec![
        (
            "fig-6.8-kernel",
            claim(
                kernel.iter().all(|p| p.2 <= p.1 && p.2 >= 0.75 * p.1),
                kernel.iter().map(pair).collect::<Vec<_>>().join(", "),
                "on another core and on the sibling, at the best sleep; similar: three quarters. A core's shared pipeline is not modelled",
            ),
        ),
        (
            "fig-6.8-user",
            claim(
                user.iter().all(|p| p.2 < p.1),
                user.iter().map(pair).collect::<Vec<_>>().join(", "),
                "on another core and on the sibling, at the best sleep",
            ),
        ),
        ("fig-6.8-bc", claim(bc.iter().all(|p| p.2 < NONE), format!("user {:+.1} and {:+.1} %, kernel {:+.1} and {:+.1} %", bc[0].1, bc[0].2, bc[1].1, bc[1].2), "on another core and on the sibling, at the best sleep")),
        (
            "fig-6.9-graph500",
            value(loads[0].2, "prefetches wait for their walk only; time without wrong predictions or prefetchers".into()),
        ),
        ("fig-6.9-further", claim(loads[0].2 > loads[0].1 && loads[2].2 > loads[2].1, [pair(&loads[0]), pair(&loads[2])].join(", "), "loads and prefetches, at the best sleep")),
        ("fig-6.9-liblinear", claim(loads[1].2 < loads[1].1, pair(&loads[1]), "loads and prefetches, at the best sleep; in the model a faster helper of LibLinear gains")),
        ("fig-6.10", sensitive(true)),
        ("fig-6.11", sensitive(false)),
    ]
}

/// The curves of Figures 6.10 and 6.11.
pub(super) fn series(study: &BakingRuns) -> Vec<PaperCurve> {
    let curve = |by, nops: bool| {
        let of = study.of("liblinear", ProgramSystem::Native, by, false);
        let points = of.filter_map(|(how, came)| match how.throttle {
            Throttle::Nops(n) if nops => Some((n as f64, study.gain("liblinear", ProgramSystem::Native, came))),
            Throttle::Sleep(n) if !nops => Some((n as f64, study.gain("liblinear", ProgramSystem::Native, came))),
            _ => None,
        });
        let way = if by == HelperMethod::User { "user" } else { "kernel" };
        PaperCurve {
            name: format!("liblinear, {way} level, by {}", if nops { "NOPs" } else { "sleep" }),
            x: if nops {
                "NOPs between touches".into()
            } else {
                "sleep after a round, microseconds on the paper's machine".into()
            },
            y: "improvement, percent of the time without a helper".into(),
            points: points.collect(),
            intervals: Vec::new(),
            labels: Vec::new(),
        }
    };
    [true, false]
        .into_iter()
        .flat_map(|nops| [HelperMethod::User, HelperMethod::Kernel].map(|by| curve(by, nops)))
        .collect()
}
