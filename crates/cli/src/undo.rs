//! `lookaside undo`: what trials kept, or left over, is taken back.

use lookaside_runtime::trial::{undo, Journal, JournalEntry};
use lookaside_views::json;
use lookaside_views::trial::{journal, undone, JournalList, UndoneTrials};

use crate::args::trial::UndoArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::output::style;

/// Takes back, or lists. Exit code 1 where something is left.
pub fn run(args: &UndoArgs) -> Result<u8, Failure> {
    args.output.check()?;
    let kept = Journal::open()?;
    if args.list {
        let list = JournalList { trials: kept.entries()? };
        args.output.write(&journal(&list), &json::render(&list), &style(None))?;
        return Ok(0);
    }
    let numbers = match args.number {
        Some(number) => vec![number],
        None => kept.entries()?.iter().filter(|entry| entry.is_left_over()).map(|entry| entry.number).collect(),
    };
    let done = numbers.into_iter().map(|number| undo(&kept, number)).collect::<Result<Vec<_>, _>>()?;
    let is_clean = done.iter().all(|one| one.refused.is_empty());
    let done = UndoneTrials { undone: done };
    args.output.write(&undone(&done), &json::render(&done), &style(None))?;
    Ok(if is_clean { 0 } else { NOT_CLEAN })
}

/// A line for each trial whose command was killed before it could take back what it did.
pub fn left_over(kept: &Journal) -> Vec<String> {
    let entries = kept.entries().unwrap_or_default();
    let line = |entry: &JournalEntry| format!("trial {} was killed and left huge pages: lookaside undo", entry.number);
    entries.iter().filter(|entry| entry.is_left_over()).map(line).collect()
}
