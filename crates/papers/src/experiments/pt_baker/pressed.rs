//! What the runs beside stress-ng's stressors say of the paper's figures.

use super::baking::{By, How, Study, Throttle};
use super::claims::{claim, value, Findings, NONE};
use super::programs::{System, PROGRAMS};
use crate::Finding;

const PRESSED: [System; 2] = [System::Cache, System::Streams];

/// Figures 3.3, 6.3, 6.4 and 6.5.
pub(super) fn findings(study: &Study) -> Findings {
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
            let beside = if *system == System::Cache { "a cache stressor" } else { "two stream stressors" };
            (gain, format!("{program} beside {beside}, {}", how.throttle))
        })
    };
    let [user, kernel] = [By::User, By::Kernel].map(best);
    let gains: Vec<_> = PRESSED
        .iter()
        .flat_map(|system| {
            PROGRAMS.map(|p| {
                let [user, kernel] = [By::User, By::Kernel].map(|by| study.best(p.name, *system, by, false).0);
                (p.name, user, kernel)
            })
        })
        .filter(|gain| gain.1.max(gain.2) >= NONE)
        .collect();
    vec![
        ("fig-3.3-cache-mean", mean(System::Cache)),
        ("fig-3.3-cache-most", most(System::Cache)),
        ("fig-3.3-streams-mean", mean(System::Streams)),
        ("fig-3.3-streams-most", most(System::Streams)),
        ("fig-6.3-user", value(user.0, format!("{}; time without bandwidth, computation or prefetchers", user.1))),
        ("fig-6.4-kernel", value(kernel.0, format!("{}; time without bandwidth, computation or prefetchers", kernel.1))),
        (
            "fig-6.4-ahead",
            claim(
                !gains.is_empty() && gains.iter().all(|g| g.2 > g.1),
                gains.iter().map(|g| format!("{} {:+.1} and {:+.1} %", g.0, g.1, g.2)).collect::<Vec<_>>().join(", "),
                "user and kernel, at the better of two sleeps; beside a cache stressor, then beside two stream stressors; where either improves by 1 %",
            ),
        ),
        ("fig-6.5", bc(study)),
    ]
}

/// BC by NOPs against BC by sleep, kernel level.
fn bc(study: &Study) -> Finding {
    let gains = PRESSED.map(|system| {
        let how = How { way: By::Kernel, throttle: Throttle::Nops(100), sibling: false };
        let nops = study.gain("bc", system, study.get("bc", system, how));
        let sleeping = study.of("bc", system, By::Kernel, false);
        let sleeping = sleeping.filter(|(how, _)| matches!(how.throttle, Throttle::Sleep(_)));
        let sleeping = sleeping.map(|(_, came)| study.gain("bc", system, came)).fold(f64::NEG_INFINITY, f64::max);
        (nops, sleeping)
    });
    claim(
        gains.iter().all(|(nops, sleeping)| *nops > *sleeping && *nops > 0.0),
        gains.map(|(nops, sleeping)| format!("{nops:+.1} against {sleeping:+.1} %")).join(", "),
        "100 NOPs against the better of two sleeps; beside a cache stressor, beside two stream stressors",
    )
}
