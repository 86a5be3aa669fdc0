//! A colouring plan for a terminal: the levels, each task's sets and bounds, whether all are isolated, who shares.

use std::collections::HashSet;

use lookaside_machine::{Replacement, Share};
use lookaside_techniques::color::bound::RestsOn;
use lookaside_techniques::color::plan::{LevelPlan, Plan, TaskPlan, Verdict};

use lookaside_report::num;
use lookaside_report::text;
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Paint, Style};

/// Shared sets that are named, each in a line.
const NAMED_SETS: usize = 12;

/// The plan as text.
pub fn render(plan: &Plan, style: &Style) -> String {
    let mut text = format!("{}, pages of {}\n\n", plan.machine, plan.page_size);
    text += &levels(plan).render(style);
    text.push('\n');
    text += &tasks(plan).render(style);
    text.push('\n');
    text += &verdict(plan);
    text += &apart(plan);
    text += &shared(plan);
    for remark in &plan.remarks {
        text += &format!("remark: {}\n", text::clean(remark));
    }
    text
}

/// The word of a machine description.
fn policy(replacement: Replacement) -> &'static str {
    match replacement {
        Replacement::Lru => "LRU",
        Replacement::TreePlru => "tree-PLRU",
        Replacement::Fifo => "FIFO",
        Replacement::Random => "random",
    }
}

fn levels(plan: &Plan) -> Table {
    let mut table = Table::new([
        Column::left("level"),
        Column::right("sets"),
        Column::right("ways"),
        Column::right("entries"),
        Column::right("set aside"),
        Column::right("pages"),
        Column::right("left"),
        Column::left("replacement"),
        Column::left("isolated"),
        Column::right(format!("most misses in {}", plan.span)),
    ]);
    let pages: u64 = plan.tasks.iter().map(|task| task.pages).sum();
    for level in &plan.levels {
        table.row([
            level.name.as_str().into(),
            level.sets.to_string().into(),
            level.ways.to_string().into(),
            num::grouped(u64::from(level.sets) * u64::from(level.ways)).into(),
            num::grouped(level.set_aside).into(),
            num::grouped(pages).into(),
            num::grouped(level.left).into(),
            policy(level.replacement).into(),
            if level.isolated { Cell::painted(Paint::Good, "yes") } else { Cell::painted(Paint::Bad, "no") },
            count(level.later_misses_per_span).into(),
        ]);
    }
    table
}

/// A bound; none is known where there is none.
fn count(most: Option<u64>) -> String {
    most.map_or(num::NONE.into(), num::grouped)
}

fn tasks(plan: &Plan) -> Table {
    let mut table = Table::new([
        Column::left("task"),
        Column::right("priority"),
        Column::right("pages"),
        Column::right("contiguous").optional(2),
        Column::right("interrupted").optional(1),
        Column::left("level"),
        Column::left("sets × pages in each").wrap(),
        Column::right("first job"),
        Column::right("later jobs"),
        Column::left("rests on"),
    ]);
    for task in &plan.tasks {
        let shares = plan.partitions.partition(&task.name).map_or(&[][..], |partition| &partition.shares);
        for (i, (level, bound)) in plan.levels.iter().zip(&task.bounds).enumerate() {
            let [name, rank, pages, contiguous, interrupted] = if i == 0 { of_task(task) } else { Default::default() };
            table.row([
                name,
                rank,
                pages,
                contiguous,
                interrupted,
                level.name.as_str().into(),
                sets(shares.iter().filter(|share| share.level == level.name)).into(),
                count(bound.first_job).into(),
                count(bound.later_jobs).into(),
                rests_on(bound.rests_on),
            ]);
        }
    }
    table
}

fn of_task(task: &TaskPlan) -> [Cell; 5] {
    [
        task.name.as_str().into(),
        task.rank.to_string().into(),
        num::grouped(task.pages).into(),
        num::grouped(task.contiguous_pages).into(),
        task.interruptions.map_or(num::NONE.into(), |times| format!("{}×", num::grouped(times))).into(),
    ]
}

fn rests_on(what: RestsOn) -> Cell {
    match what {
        RestsOn::Room => Cell::painted(Paint::Good, "room for all"),
        RestsOn::Policy(replacement) => policy(replacement).into(),
        RestsOn::Accesses => "accesses".into(),
        RestsOn::UnknownAccesses => Cell::painted(Paint::Bad, "no bound: give accesses"),
        RestsOn::UnknownDeadlines => Cell::painted(Paint::Bad, "no bound: deadlines"),
    }
}

/// `0–3, 8 × 1; 9 × 2`.
fn sets<'a>(shares: impl Iterator<Item = &'a Share>) -> String {
    let of = |share: &Share| {
        let mut sets = share.sets.clone();
        sets.sort_unstable();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for set in sets {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == set => *last = set,
                _ => runs.push((set, set)),
            }
        }
        let run = |&(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}–{last}"),
        };
        let runs: Vec<String> = runs.iter().map(run).collect();
        format!("{} × {}", runs.join(", "), share.ways.map_or("any".into(), |ways| ways.to_string()))
    };
    shares.map(of).collect::<Vec<_>>().join("; ")
}

fn verdict(plan: &Plan) -> String {
    match &plan.verdict {
        Verdict::Isolated => "isolated: no set is asked for more pages than it has room for\n".into(),
        Verdict::Impossible { certificates } => {
            let proofs = certificates.iter().map(|proof| format!("  {}\n", text::clean(&proof.to_string())));
            format!("not isolated, and proved impossible:\n{}", proofs.collect::<String>())
        }
        Verdict::NotFound { tried } => format!(
            "not isolated: no way was found in {} places of runs that were tried; that there is none is not proved\n",
            num::grouped(*tried)
        ),
    }
}

/// Levels of several sets none of which is two tasks', where there are two.
fn apart(plan: &Plan) -> String {
    let is_apart = |level: &&LevelPlan| {
        let of = |task: &TaskPlan| plan.partitions.partition(&task.name).map_or(&[][..], |partition| &partition.shares);
        let shares = plan.tasks.iter().flat_map(of).filter(|share| share.level == level.name);
        let mut seen = HashSet::new();
        level.sets > 1 && shares.flat_map(|share| &share.sets).all(|set| seen.insert(*set))
    };
    let names: Vec<&str> = plan.levels.iter().filter(is_apart).map(|level| level.name.as_str()).collect();
    match names.is_empty() || plan.tasks.len() < 2 {
        true => String::new(),
        false => format!("no set of {} is two tasks'\n", text::clean(&names.join(", "))),
    }
}

/// Who shares.
fn shared(plan: &Plan) -> String {
    let mut text = String::new();
    for set in plan.shared.iter().take(NAMED_SETS) {
        // A share without a number of ways may have all pages of its task.
        let tenants: Vec<String> =
            set.tenants.iter().map(|(task, pages)| format!("{} up to {pages}", text::clean(task))).collect();
        let word = if tenants.len() > 1 { "shared" } else { "outgrown" };
        text += &format!("{word}: {} set {}, room for {}: {}\n", set.level, set.set, set.room, tenants.join(", "));
    }
    if plan.shared.len() > NAMED_SETS {
        text += &format!("shared: {} sets more (--json has all)\n", plan.shared.len() - NAMED_SETS);
    }
    text
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, PageSize};
    use lookaside_techniques::color::plan::plan;
    use lookaside_techniques::color::tasks::TaskSet;

    use super::{render, sets, Style};

    fn rendered(pages: [u64; 2]) -> String {
        let [a, b] = pages;
        let text = format!(
            "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = {a}\n\
             [[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = {b}\ncontiguous_pages = 2\n"
        );
        let set = TaskSet::parse(&text, "t").expect("tasks");
        let machine = preset("xeon-e5-2650").expect("a preset");
        render(&plan(&set, &machine, PageSize::K4).expect("a plan"), &Style { width: 120, ..Style::default() })
    }

    #[test]
    fn a_plan_that_isolates() {
        let text = rendered([4, 4]);
        assert!(text.starts_with("xeon-e5-2650, pages of 4K\n\nlevel "), "{text}");
        assert!(text.contains("isolated: no set is asked for more"), "{text}");
        assert!(text.contains("no set of l1d-4k, stlb is two tasks'\n"), "{text}");
        assert!(text.contains("room for all"), "{text}");
        assert!(!text.contains("shared:"), "{text}");
    }

    #[test]
    fn a_plan_that_cannot() {
        let text = rendered([30, 40]);
        assert!(
            text.contains("proved impossible:\n  l1d-4k: 70 pages are needed, 64 entries are there: 6 short\n"),
            "{text}"
        );
        assert!(text.contains("shared: l1d-4k set ") && text.contains("no set of stlb is two tasks'\n"), "{text}");
    }

    #[test]
    fn sets_are_written_in_runs() {
        let share = |sets: &[u32], ways| lookaside_machine::Share { level: "l".into(), sets: sets.to_vec(), ways };
        assert_eq!(sets([share(&[9, 0, 1, 2], Some(1)), share(&[5], None)].iter()), "0–2, 9 × 1; 5 × any");
    }
}
