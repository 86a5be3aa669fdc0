//! PT-Baker's section 4.4.5.1 on the metal: do the hardware threads of a core share TLB entries?

use lookaside_harness::metal::{KnownLevel, MetalFindings, Setting};
use lookaside_probe::effects::{measure_sharing, EntryOwnership, TlbSharing};
use lookaside_probe::{
    try_events, usable_events, ChainBench, CountedMisses, Finding, Halt, OtherCpu, PmuEvent, TlbLevels, EVENTS,
};

/// The paper's row, and the control: a thread on another core.
pub(super) const ROWS: [&str; 2] = ["fig-4.6", "fig-4.6-control"];

/// Both rows, where both levels are known.
pub(super) fn figure_4_6(
    bench: &mut ChainBench<'_>,
    setting: &Setting,
    first: &KnownLevel,
    second: &KnownLevel,
    ran: &mut MetalFindings,
) -> Result<(), Halt> {
    let cpus = bench.cpus();
    let of_core = |sibling| cpus.iter().find(|cpu| cpu.sibling == Some(sibling)).copied();
    let counter = proven(bench, first, second)?;
    let levels = TlbLevels { first: first.geometry.clone(), second: Some(second.geometry.clone()) };
    for (id, cpu) in ROWS.into_iter().zip([of_core(true), of_core(false)]) {
        let Some(cpu) = cpu else {
            ran.nothing(&[id], &nobody(id, setting, &cpus));
            continue;
        };
        let found = measure_sharing(bench, &levels, cpu.number, counter.as_ref())?;
        row(id, cpu, &found, ran);
    }
    Ok(())
}

/// Why a row has no CPU to put the second thread on.
fn nobody(id: &str, setting: &Setting, cpus: &[OtherCpu]) -> String {
    match (&setting.siblings[..], cpus) {
        (_, []) => "this program may run on one CPU only (affinity mask, cpuset)".into(),
        (_, [..]) if cpus.iter().all(|cpu| cpu.sibling.is_none()) => {
            "sysfs does not say which CPUs are hardware threads of one core".into()
        }
        _ if id == ROWS[1] => "no CPU of another core here that this program may run on".into(),
        ([], _) => "no SMT sibling here: the CPU measured is the only hardware thread of its core".into(),
        (siblings, _) => {
            format!("hardware threads {siblings:?} share the core measured, but this program may not run there (affinity mask, cpuset)")
        }
    }
}

/// An event that counts second-level misses here, if there is one.
fn proven(bench: &mut ChainBench<'_>, first: &KnownLevel, second: &KnownLevel) -> Result<Option<PmuEvent>, Halt> {
    let walks: Vec<PmuEvent> = EVENTS.iter().filter(|event| event.counts == CountedMisses::Walks).copied().collect();
    let [first, second] = [first, second].map(|array| Some((&array.geometry, &array.level)));
    let tried = usable_events(try_events(bench, &walks, first, second)?);
    Ok(tried.value().and_then(|proven| proven.first()).map(|counted| counted.event))
}

fn row(id: &'static str, cpu: OtherCpu, found: &Finding<TlbSharing>, ran: &mut MetalFindings) {
    let Some(sharing) = found.value() else {
        let seen = match found {
            Finding::NotDetermined { evidence, .. } | Finding::Confirmed { evidence, .. } => evidence.join("; "),
        };
        ran.nothing(
            &[id],
            &format!("not determined: {}; CPU {}: {seen}", found.reason().unwrap_or_default(), cpu.number),
        );
        return;
    };
    let looks: Vec<String> = sharing.looks.iter().map(|look| look.words()).collect();
    let by = match sharing.counter {
        Some(event) => format!("counted by {event}"),
        None => "told by timing".into(),
    };
    let note = format!("CPU {}; L2 misses {by}, median (range): {}", cpu.number, looks.join("; "));
    let (holds, says) = match (id == ROWS[0], sharing.entries) {
        (true, EntryOwnership::Tagged) => (true, "not shared: the same pages cost as many misses as others"),
        (true, EntryOwnership::Partitioned) => (true, "not shared: each thread has its part, whatever the other does"),
        // What is claimed is that misses rise.
        (true, EntryOwnership::Apart) => (false, "not shared, and misses do not rise: the other thread has no effect"),
        (_, EntryOwnership::Shared) => (false, "shared: the same pages cost no misses, others do"),
        (false, EntryOwnership::Apart) => (true, "no effect: misses are within what they vary by"),
        (false, _) => (false, "the thread takes entries here: is it really on another core?"),
    };
    ran.claim(id, holds, says, note);
}
