//! TLB migration (Landsberg 2018): its benchmarks on presets `cortex-a7` and `gem5-armv7`, and Linux on the latter; and
//! what is beyond them.

mod a7;
mod beyond;
mod claims;
mod gem5;
mod linux;
mod medians;
mod notes;

use std::sync::OnceLock;

use lookaside_harness::{Effort, ModelFindings, ModelResult, Ours, PaperCurve, RowFinding, RunModel};
use lookaside_machine::preset;

use medians::Medians;

/// Published values.
pub(crate) const VALUES: &str = include_str!("../../values/model.toml");

/// How often what is random is repeated.
struct Repetitions {
    /// On the Cortex-A7.
    a7: u64,
    /// Readings of the simulated machine's clock.
    gem5: u64,
    /// Of the processes under Linux.
    linux: u64,
}

/// All of it.
pub(crate) const RUN: RunModel = |effort, progress| {
    let repetitions = match effort {
        // As the paper's.
        Effort::Usual => Repetitions { a7: 2500, gem5: 2500, linux: 1000 },
        Effort::Quick => Repetitions { a7: 25, gem5: 250, linux: 250 },
    };
    progress("Cortex-A7");
    let mut medians = a7::run(&preset("cortex-a7")?, repetitions.a7)?;
    progress("gem5");
    let machine = preset("gem5-armv7")?;
    let curve = gem5::run(&machine, repetitions.gem5, &mut medians)?;
    progress("Linux");
    let told = linux::run(&machine, repetitions.linux, &mut medians)?;
    let mut findings = claims::findings(&medians, &curve, &told);
    let (rows, curves) = beyond::run(&machine, effort, progress)?;
    findings.extend(rows);
    for (id, value) in &medians {
        findings.push((id_of(id)?, RowFinding { ours: Ours::Value(*value), note: notes::of(id).into() }));
    }
    Ok(ModelFindings {
        machine: "cortex-a7, gem5-armv7".into(),
        assumptions: notes::assumptions(),
        findings,
        series: [series(&medians, curve), curves].concat(),
    })
};

/// The row's id as it stands in the file.
fn id_of(id: &str) -> ModelResult<&'static str> {
    static IDS: OnceLock<Vec<String>> = OnceLock::new();
    let ids = IDS.get_or_init(|| lookaside_harness::rows(VALUES).into_iter().map(|row| row.id).collect());
    let found = ids.iter().find(|of| *of == id).ok_or_else(|| format!("no row {id} in tlb-migration.toml"))?;
    Ok(found)
}

/// The paper's figures, from the rows.
fn series(medians: &Medians, speedup: Vec<(f64, f64)>) -> Vec<PaperCurve> {
    let curve = |name: &str, x: &str, y: &str, points: Vec<(f64, f64)>| PaperCurve {
        name: name.into(),
        x: x.into(),
        y: y.into(),
        points,
        intervals: Vec::new(),
        labels: Vec::new(),
    };
    let of = |column: &str| -> Vec<(f64, f64)> {
        let rows = medians.iter().filter_map(|(id, value)| Some((id.strip_prefix(column)?.strip_prefix('-')?, value)));
        rows.filter_map(|(pages, value)| Some((pages.parse().ok()?, *value))).collect()
    };
    let (pages, cycles, ns) = ("pages", "cycles", "ns");
    vec![
        curve("Figure 4.2: pld of consecutive pages", pages, cycles, of("a2-pld")),
        curve("Figure 4.6: saving, 4k", pages, cycles, of("a3-save")),
        curve("Figure 4.6: saving, 68k", pages, cycles, of("a4-save")),
        curve("Figure 4.8: clean access, 4k", pages, cycles, of("a3-clean")),
        curve("Figure 4.8: clean access, 68k", pages, cycles, of("a4-clean")),
        curve("Figure 4.10: restoring, direct", pages, cycles, of("a4-restore")),
        curve("Figure 4.10: restoring, indirect", pages, cycles, of("a6-restore")),
        curve("Figure 6.3: saving, V1", pages, ns, of("a11-save")),
        curve("Figure 6.3: saving, V2", pages, ns, of("a12-save")),
        curve("Figure 6.3: saving, V3", pages, ns, of("a13-save")),
        curve("Figure 6.3: saving, V4", pages, ns, of("a14-save")),
        curve("Figure 6.5: overall speedup, V4", pages, ns, speedup),
        curve("Figure 8.1: access without migration", "run", ns, of("a16-without")),
        curve("Figure 8.1: access with migration", "run", ns, of("a16-with")),
        curve("Figure 8.2: time saved in Linux", pages, ns, of("a17-delta")),
    ]
}
