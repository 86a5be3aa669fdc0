//! A colouring plan: the levels, each task's sets and bounds, whether all are isolated, who shares.

use std::collections::HashSet;

use lookaside_machine::{Replacement, Share};
use lookaside_report::chart::{BarRow, Bars};
use lookaside_report::{num, Cell, Chart, Column, Document, Medium, Paint, RichText, Section, Table};
use lookaside_techniques::color::bound::RestsOn;
use lookaside_techniques::color::plan::{ColorPlan, LevelPlan, TaskPlan, Verdict};

/// Shared sets that are named, each in a line.
const NAMED_SETS: usize = 12;

/// Whether all tasks are isolated, the levels, the tasks, who shares.
pub fn view(plan: &ColorPlan) -> Document {
    let mut document = Document::new("TLB sets for tasks", format!("{}, pages of {}", plan.machine, plan.page_size));
    answer(plan, &mut document);
    document.section(Section::unheaded("Levels").with(levels(plan)));
    document.section(Section::unheaded("Entries").with(entries(plan)).only(Medium::Page));
    document.section(Section::unheaded("Tasks").with(tasks(plan)));
    document.section(Section::unheaded("Shared sets").with(shared(plan)));
    plan.remarks.iter().for_each(|remark| document.note(remark));
    document
}

/// The word of a machine description.
fn policy(replacement: Replacement) -> &'static str {
    match replacement {
        Replacement::Lru => "LRU",
        Replacement::TreePlru => "tree-PLRU",
        Replacement::Fifo => "FIFO",
        Replacement::Random => "random",
        Replacement::Srrip => "SRRIP",
    }
}

fn levels(plan: &ColorPlan) -> Table {
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
            Cell::count(level.sets.into()),
            Cell::count(level.ways.into()),
            Cell::count(u64::from(level.sets) * u64::from(level.ways)),
            Cell::count(level.set_aside),
            Cell::count(pages),
            Cell::count(level.left),
            policy(level.replacement).into(),
            if level.isolated { Cell::painted(Paint::Good, "yes") } else { Cell::painted(Paint::Bad, "no") },
            count(level.later_misses_per_span),
        ]);
    }
    table
}

/// A bound; none is known where there is none.
/// Whose each level's entries are.
fn entries(plan: &ColorPlan) -> Chart {
    let row = |level: &LevelPlan| {
        let entries = u64::from(level.sets) * u64::from(level.ways);
        let promised = entries.saturating_sub(level.set_aside + level.left);
        let parts = [("tasks", promised), ("set aside for the system", level.set_aside), ("left", level.left)];
        BarRow {
            label: level.name.clone(),
            value: format!("{} entries", num::grouped(entries)),
            parts: parts.map(|(name, count)| (name.into(), count as f64)).into(),
        }
    };
    let rows = plan.levels.iter().map(row).collect();
    Chart::bars("Who gets the entries", Bars { unit: "entries".into(), rows, hot: String::new() })
}

fn count(most: Option<u64>) -> Cell {
    Cell::optional(most, Cell::count)
}

fn tasks(plan: &ColorPlan) -> Table {
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
                count(bound.first_job),
                count(bound.later_jobs),
                rests_on(bound.rests_on),
            ]);
        }
    }
    table
}

fn of_task(task: &TaskPlan) -> [Cell; 5] {
    [
        task.name.as_str().into(),
        Cell::count(task.rank as u64),
        Cell::count(task.pages),
        Cell::count(task.contiguous_pages),
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

fn answer(plan: &ColorPlan, document: &mut Document) {
    match &plan.verdict {
        Verdict::Isolated => {
            let words = "Isolated: no set has to hold more pages than it has room for.";
            document.answer(RichText::painted(Paint::Good, words));
        }
        Verdict::Impossible { certificates } => {
            document.answer(RichText::painted(Paint::Bad, "Not isolated, and proved impossible:"));
            certificates.iter().for_each(|proof| document.answer(proof.to_string()));
        }
        Verdict::NotFound { tried } => {
            let words = format!(
                "Not isolated: none of {} placements tried isolates; that none exists is not proved.",
                num::grouped(*tried)
            );
            document.answer(RichText::painted(Paint::Bad, words));
        }
    }
    let apart = apart(plan);
    if !apart.is_empty() {
        document.answer(format!("No set of {} belongs to two tasks.", apart.join(", ")));
    }
}

/// Levels of several sets none of which is two tasks', where there are two.
fn apart(plan: &ColorPlan) -> Vec<&str> {
    if plan.tasks.len() < 2 {
        return Vec::new();
    }
    let is_apart = |level: &&LevelPlan| {
        let of = |task: &TaskPlan| plan.partitions.partition(&task.name).map_or(&[][..], |partition| &partition.shares);
        let shares = plan.tasks.iter().flat_map(of).filter(|share| share.level == level.name);
        let mut seen = HashSet::new();
        level.sets > 1 && shares.flat_map(|share| &share.sets).all(|set| seen.insert(*set))
    };
    plan.levels.iter().filter(is_apart).map(|level| level.name.as_str()).collect()
}

/// Who shares.
fn shared(plan: &ColorPlan) -> Table {
    let columns = [
        Column::left("shared set"),
        Column::right("room for"),
        Column::left("tasks, pages each at most").wrap(),
        Column::left("it is"),
    ];
    let mut table = Table::new(columns).shown(NAMED_SETS, NAMED_SETS).of("shared set", "shared sets");
    for set in &plan.shared {
        // A share without a number of ways may have all pages of its task.
        let tenants: Vec<String> = set.tenants.iter().map(|(task, pages)| format!("{task} up to {pages}")).collect();
        let word = if tenants.len() > 1 { "shared" } else { "outgrown" };
        table.row([
            format!("{} {}", set.level, set.set).into(),
            Cell::count(set.room.into()),
            tenants.join(", ").into(),
            word.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, PageSize};
    use lookaside_techniques::color::plan::plan;
    use lookaside_techniques::color::tasks::TaskSet;

    use lookaside_report::chart::Plot;
    use lookaside_report::{terminal, Style};

    use super::{entries, sets, view, ColorPlan};

    fn planned(pages: [u64; 2]) -> ColorPlan {
        let [a, b] = pages;
        let text = format!(
            "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = {a}\n\
             [[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = {b}\ncontiguous_pages = 2\n"
        );
        let set = TaskSet::parse(&text, "t").expect("tasks");
        let machine = preset("xeon-e5-2650").expect("a preset");
        plan(&set, &machine, PageSize::K4).expect("a plan")
    }

    fn rendered(pages: [u64; 2]) -> String {
        terminal::render(&view(&planned(pages)), &Style { width: 120, ..Style::default() })
    }

    #[test]
    fn a_level_s_entries_are_the_tasks_the_system_s_and_what_is_left() {
        let plan = planned([4, 4]);
        let Plot::Bars(bars) = entries(&plan).plot else { panic!("bars") };
        for (row, level) in bars.rows.iter().zip(&plan.levels) {
            let all: f64 = row.parts.iter().map(|(_, count)| count).sum();
            assert_eq!(all, f64::from(level.sets * level.ways), "{row:?}");
            assert_eq!(row.parts[0].1, 8.0, "{row:?}");
        }
        assert_eq!(bars.rows.len(), plan.levels.len());
    }

    #[test]
    fn a_plan_that_isolates() {
        let text = rendered([4, 4]);
        assert!(text.starts_with("TLB sets for tasks: xeon-e5-2650, pages of 4K\nIsolated: "), "{text}");
        assert!(text.contains("\n\nlevel ") && text.contains("Isolated: no set has to hold more"), "{text}");
        assert!(text.contains("No set of l1d-4k, stlb belongs to two tasks.\n"), "{text}");
        assert!(text.contains("room for all"), "{text}");
        assert!(!text.contains("shared set"), "{text}");
    }

    #[test]
    fn a_plan_that_cannot() {
        let text = rendered([30, 40]);
        assert!(
            text.contains("proved impossible:\nl1d-4k: 70 pages are needed, 64 entries are there: 6 short\n"),
            "{text}"
        );
        assert!(
            text.contains("\nl1d-4k ")
                && text.contains("shared\n")
                && text.contains("No set of stlb belongs to two tasks.\n"),
            "{text}"
        );
    }

    #[test]
    fn sets_are_written_in_runs() {
        let share = |sets: &[u32], ways| lookaside_machine::Share { level: "l".into(), sets: sets.to_vec(), ways };
        assert_eq!(sets([share(&[9, 0, 1, 2], Some(1)), share(&[5], None)].iter()), "0–2, 9 × 1; 5 × any");
    }
}
