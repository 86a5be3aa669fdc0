//! What the runs beside stress-ng's stressors say of the paper's figures.

use lookaside_harness::RowFinding;

use super::baking::{BakingRuns, HelperMethod, Throttle, ThrottledHelper};
use super::findings::{claim, value, Findings, NONE};
use super::programs::{ProgramSystem, PROGRAMS};

const PRESSED: [ProgramSystem; 2] = [ProgramSystem::Cache, ProgramSystem::Streams];

/// Figures 3.3, 6.3, 6.4, 6.5 and 6.7.
pub(super) fn findings(study: &BakingRuns) -> Findings {
    let shares = |system| PROGRAMS.map(|p| study.base(p.name, system).share(2));
    let mean = |system| {
        let all = PROGRAMS.map(|p| format!("{} {:.1}", p.name, study.base(p.name, system).share(2))).join(", ");
        value(shares(system).iter().sum::<f64>() / PROGRAMS.len() as f64, all)
    };
    let most = |system| {
        let most = shares(system).into_iter().fold(0.0, f64::max);
        value(most, "the stressors' pace is assumed: reads in a loop, on cores of the same last-level cache".into())
    };
    let best = |by| {
        let all = PRESSED
            .iter()
            .flat_map(|system| PROGRAMS.map(|p| (study.best(p.name, *system, by, false), p.name, system)));
        let best = all.max_by(|a, b| a.0 .0.total_cmp(&b.0 .0));
        best.map_or((0.0, String::new()), |((gain, how), program, system)| {
            let beside = if *system == ProgramSystem::Cache { "a cache stressor" } else { "two stream stressors" };
            (gain, format!("{program} beside {beside}, {}", how.throttle))
        })
    };
    let [user, kernel] = [HelperMethod::User, HelperMethod::Kernel].map(best);
    let gains: Vec<_> = PRESSED
        .iter()
        .flat_map(|system| {
            PROGRAMS.map(|p| {
                let [user, kernel] =
                    [HelperMethod::User, HelperMethod::Kernel].map(|by| study.best(p.name, *system, by, false).0);
                (p.name, user, kernel)
            })
        })
        .filter(|gain| gain.1.max(gain.2) >= NONE)
        .collect();
    let mut findings = vec![
        ("fig-3.3-cache-mean", mean(ProgramSystem::Cache)),
        ("fig-3.3-cache-most", most(ProgramSystem::Cache)),
        ("fig-3.3-streams-mean", mean(ProgramSystem::Streams)),
        ("fig-3.3-streams-most", most(ProgramSystem::Streams)),
        ("fig-6.3-user", value(user.0, format!("{}; time without wrong predictions or prefetchers", user.1))),
        ("fig-6.4-kernel", value(kernel.0, format!("{}; time without wrong predictions or prefetchers", kernel.1))),
        (
            "fig-6.4-ahead",
            claim(
                !gains.is_empty() && gains.iter().all(|g| g.2 > g.1),
                gains.iter().map(|g| format!("{} {:+.1} and {:+.1} %", g.0, g.1, g.2)).collect::<Vec<_>>().join(", "),
                "user and kernel, at the better of two sleeps; beside a cache stressor, then beside two stream stressors; where either improves by 1 %",
            ),
        ),
        ("fig-6.5", bc(study)),
    ];
    findings.extend(virtualised(study));
    findings
}

/// The better of the sleeps beside stressors, kernel level.
fn sleeping(study: &BakingRuns, program: &'static str, system: ProgramSystem) -> f64 {
    let of = study.of(program, system, HelperMethod::Kernel, false);
    let of = of.filter(|(how, _)| matches!(how.throttle, Throttle::Sleep(_)));
    of.map(|(_, came)| study.gain(program, system, came)).fold(f64::NEG_INFINITY, f64::max)
}

/// Figure 6.7: by the kernel level with sleep, as there. The paper's "native" is taken for that beside the same
/// stressors.
fn virtualised(study: &BakingRuns) -> Findings {
    let systems = [ProgramSystem::Streams, ProgramSystem::NestedStreams, ProgramSystem::NestedRunsStreams];
    let gains = PROGRAMS.map(|p| (p.name, systems.map(|system| sleeping(study, p.name, system))));
    let (named, others): (Vec<_>, Vec<_>) = gains.iter().partition(|gain| ["graph500", "liblinear"].contains(&gain.0));
    let told = |gains: &[(&str, [f64; 3])], at: usize| {
        gains.iter().map(|(name, g)| format!("{name} {:+.1} and {:+.1} %", g[0], g[at])).collect::<Vec<_>>().join(", ")
    };
    let note = "native and virtual, both beside two stream stressors, kernel level, the better of two sleeps";
    vec![
        (
            "fig-6.7-less",
            claim(
                others.iter().filter(|(_, g)| g[1] < g[0] || g[1] < NONE).count() >= 3,
                told(&others, 1),
                &format!("{note}; three of the other four. Contiguous: {}", told(&others, 2)),
            ),
        ),
        (
            "fig-6.7-but",
            claim(
                named.iter().all(|(_, g)| g[1] >= g[0]),
                told(&named, 1),
                &format!("{note}. Contiguous: {}", told(&named, 2)),
            ),
        ),
    ]
}

/// BC by NOPs against BC by sleep, kernel level.
fn bc(study: &BakingRuns) -> RowFinding {
    let gains = PRESSED.map(|system| {
        let how = ThrottledHelper { way: HelperMethod::Kernel, throttle: Throttle::Nops(100), sibling: false };
        let nops = study.gain("bc", system, study.get("bc", system, how));
        (nops, sleeping(study, "bc", system))
    });
    claim(
        gains.iter().all(|(nops, sleeping)| *nops > *sleeping && *nops > 0.0),
        gains.map(|(nops, sleeping)| format!("{nops:+.1} against {sleeping:+.1} %")).join(", "),
        "100 NOPs against the better of two sleeps; beside a cache stressor, beside two stream stressors",
    )
}
