//! What a plan does not see, or rests on without its being known.

use lookaside_machine::{ColorLevel, Machine, PageSize, Serves, SwitchAction};

use super::super::bound::Level;
use super::super::noise::set_aside;
use super::super::response::Responses;
use super::super::tasks::TaskSet;

/// What a plan rests on, of what a machine's description says of its TLBs.
const RESTS_ON: [&str; 5] = ["entries", "ways", "index", "replacement", "tags"];

/// Multiple of so many pages at which a heap's area begins at least (`crates/runtime/src/color/reserved_pages.rs`),
/// log2.
const ALIGNED_BITS: u32 = 14;

/// Lines for the reader.
pub(super) fn remarks(
    machine: &Machine,
    page_size: PageSize,
    levels: &[Level],
    set: &TaskSet,
    responses: &Responses,
) -> Vec<String> {
    let mut lines = late(set, responses);
    let names = |which: &mut dyn FnMut(&str) -> bool| {
        let names: Vec<&str> = levels.iter().map(|level| level.name.as_str()).filter(|name| which(name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let found = machine.color_levels(page_size);
    let figures = |name: &str| found.iter().any(|level| level.name == name && set_aside(machine, level).is_some());
    lines.extend(names(&mut |name| !figures(name)).map(|names| {
        format!(
            "{names}: the machine's description says nothing about entries that the system uses; none are set aside"
        )
    }));
    let serves = |name: &str, kind| machine.tlbs.iter().any(|tlb| tlb.name == name && tlb.serves.contains(&kind));
    lines.extend(
        names(&mut |name| serves(name, Serves::Fetch))
            .map(|names| format!("{names}: instruction pages use it too; they are not counted")),
    );
    let of_directories = |name: &str| machine.tlbs.iter().any(|tlb| tlb.name == name && tlb.directory_entries);
    lines.extend(names(&mut |name| of_directories(name)).map(|names| {
        format!(
            "{names}: a walk leaves a page directory's entry there too, one for each 2 MiB, in a set that no plan \
             chooses; the bounds do not count the pages that it puts out"
        )
    }));
    let stores_alone = machine.tlbs.iter().filter(|tlb| {
        tlb.page_sizes.contains(&page_size)
            && tlb.serves.contains(&Serves::Store)
            && !tlb.serves.contains(&Serves::Load)
    });
    lines.extend(stores_alone.map(|tlb| format!("{}: holds stores alone, and is not planned for", tlb.name)));
    lines.extend(names(&mut |name| found.iter().any(|level| level.name == name && reads_far(level))).map(|names| {
        format!(
            "{names}: the index reads more than {ALIGNED_BITS} page-number bits, at a multiple of which a heap's \
             area begins: that it finds all pages there was not checked"
        )
    }));
    if machine.context_switch.action != SwitchAction::Nothing {
        lines.push("a switch of address space empties the TLBs: the tasks must be threads of one process".into());
    }
    let of_a_level = |line: &&String| {
        let mut path = line.split(':').next().unwrap_or_default().split('.');
        let (root, tlb, key) = (path.next(), path.next().unwrap_or_default(), path.next().unwrap_or_default());
        let of_a_level = tlb == "*" || levels.iter().any(|level| level.name == tlb);
        root == Some("tlb") && of_a_level && RESTS_ON.contains(&key)
    };
    let doubts = machine.not_determined.iter().filter(of_a_level);
    lines.extend(doubts.map(|line| format!("not determined: {line}")));
    lines
}

fn reads_far(level: &ColorLevel) -> bool {
    level.index.masks(level.sets).iter().any(|mask| mask >> ALIGNED_BITS != 0)
}

/// Tasks whose deadlines are not shown to be kept.
fn late(set: &TaskSet, responses: &Responses) -> Vec<String> {
    let mut lines = Vec::new();
    for i in set.by_priority() {
        if responses.time(i).is_some() {
            continue;
        }
        let task = &set.tasks[i];
        lines.push(format!(
            "task {}: not schedulable: a job may take longer than its period of {}; where it, or a task below it, \
             shares sets, only accesses bound the misses",
            task.name, task.period
        ));
        // Of those below it the analysis says nothing.
        break;
    }
    lines
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, Disturbance, IndexFn};

    use super::*;

    /// Of three tasks; the first of them, which is the second by priority, takes so long.
    fn said(machine: &Machine, execution: &str) -> Vec<String> {
        let text = format!(
            "[[task]]\nname = \"T1\"\nperiod = \"6ms\"\nexecution = \"{execution}\"\npages = 1\n\
             [[task]]\nname = \"T2\"\nperiod = \"4ms\"\nexecution = \"2ms\"\npages = 1\n\
             [[task]]\nname = \"T3\"\nperiod = \"8ms\"\nexecution = \"0ms\"\npages = 1\n"
        );
        let set = TaskSet::parse(&text, "t").expect("tasks");
        let (levels, _) = super::super::levels(machine, PageSize::K4).expect("levels");
        remarks(machine, PageSize::K4, &levels, &set, &Responses::of(&set))
    }

    #[test]
    fn a_preset_says_what_it_does_not_know() {
        let xeon = preset("xeon-e5-2650").expect("a preset");
        let expected = [
            "l1d-4k, stlb: the machine's description says nothing about entries that the system uses; none are set aside",
            "stlb: instruction pages use it too; they are not counted",
            "a switch of address space empties the TLBs: the tasks must be threads of one process",
        ];
        let lines = said(&xeon, "1ms");
        assert_eq!(lines[..3], expected);
        assert!(lines[3].starts_with("not determined: tlb.*.replacement: ") && lines.len() == 4, "{lines:?}");
    }

    #[test]
    fn each_level_is_named_by_what_it_has() {
        let mut machine = preset("xeon-e5-2650").expect("a preset");
        let mut quiet = Disturbance { tlb: "l1d-4k".into(), ..Disturbance::default() };
        quiet.evictions_per_system_call = vec![0.0; 16];
        machine.disturbances.push(quiet);
        machine.context_switch.action = SwitchAction::Nothing;
        let masks = |bits: u32, far: u32| {
            IndexFn::Masks((0..bits).map(|bit| (1 << bit) | if bit == 0 { 1 << far } else { 0 }).collect())
        };
        for tlb in &mut machine.tlbs {
            match tlb.name.as_str() {
                "l1d-4k" => tlb.index = masks(4, 13),
                "stlb" => (tlb.index, tlb.directory_entries) = (masks(7, 14), true),
                _ => (),
            }
        }
        let tlb = machine.tlbs[0].clone();
        for (name, serves, pages) in [
            ("stores", &[Serves::Store][..], PageSize::K4),
            ("stores-2m", &[Serves::Store], PageSize::M2),
            ("fetches", &[Serves::Fetch], PageSize::K4),
        ] {
            let (name, serves) = (name.to_string(), serves.to_vec());
            machine.tlbs.push(lookaside_machine::Tlb { name, serves, page_sizes: vec![pages], ..tlb.clone() });
        }
        let lines = ["tlb.l1d-4k.entries: a", "tlb.*.index: b", "tlb.l1i-4k.entries: c", "tlb.stlb.hit_cycles: d"];
        machine.not_determined = lines.map(String::from).into();
        machine.not_determined.extend(["cache.*.ways: e", "tlb", "tlb.stlb.ways: f"].map(String::from));
        let expected = [
            "task T1: not schedulable: a job may take longer than its period of 6ms; where it, or a task below it, \
             shares sets, only accesses bound the misses",
            "stlb: the machine's description says nothing about entries that the system uses; none are set aside",
            "stlb: instruction pages use it too; they are not counted",
            "stlb: a walk leaves a page directory's entry there too, one for each 2 MiB, in a set that no plan chooses; \
             the bounds do not count the pages that it puts out",
            "stores: holds stores alone, and is not planned for",
            "stlb: the index reads more than 14 page-number bits, at a multiple of which a heap's area begins: that it \
             finds all pages there was not checked",
            "not determined: tlb.l1d-4k.entries: a",
            "not determined: tlb.*.index: b",
            "not determined: tlb.stlb.ways: f",
        ];
        assert_eq!(said(&machine, "4ms"), expected);
        assert_eq!(said(&machine, "1ms"), expected[1..]);
    }
}
