//! Tasks whose pages a recorded job tells.

use std::collections::HashSet;
use std::path::Path;

use lookaside_machine::PageSize;
use lookaside_trace::{Block, Event, Kind};

use super::tasks::{TaskSet, TasksError};

/// Most distinct pages of a trace that are counted: a heap's area has no more.
const MAX_PAGES: usize = 1 << 20;

/// What a job does, as far as data TLBs see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TracedJob {
    pages: u64,
    accesses: u64,
}

impl TaskSet {
    /// Puts in place of each trace the distinct data pages of this size that it touches, and its loads and stores; more accesses
    /// that the file gives for the task stand. An access that reaches into a second page counts for each.
    ///
    /// # Errors
    /// A trace cannot be read, is damaged, holds samples, or touches no or too many pages, or fewer than are to be contiguous.
    pub fn with_traces(mut self, page_size: PageSize) -> Result<Self, TasksError> {
        for task in &mut self.tasks {
            let Some(path) = task.trace.take() else { continue };
            let bad = |why: String| TasksError(format!("task {}: trace {}: {why}", task.name, path.display()));
            let job = read(&path, page_size).map_err(bad)?;
            if job.pages < task.contiguous_pages {
                return Err(bad(format!(
                    "touches {} pages, fewer than the {} contiguous",
                    job.pages, task.contiguous_pages
                )));
            }
            task.pages = Some(job.pages);
            task.accesses = task.accesses.max(Some(job.accesses));
        }
        Ok(self)
    }
}

fn read(path: &Path, page_size: PageSize) -> Result<TracedJob, String> {
    let mut source = lookaside_trace::open(&path.to_string_lossy()).map_err(|e| e.to_string())?;
    if source.info().sample_period_ns > 0 {
        return Err("holds samples, not every access: record it exactly".into());
    }
    let mut seen = HashSet::new();
    let mut accesses = 0u64;
    let mut block = Block::default();
    while source.next_block(&mut block).map_err(|e| e.to_string())? {
        for (i, (&address, _)) in
            block.addr.iter().zip(&block.kind).enumerate().filter(|(_, (_, kind))| is_data(**kind))
        {
            let last = address.saturating_add(u64::from(block.size.get(i).copied().unwrap_or(0)).saturating_sub(1));
            let pages = address >> page_size.shift()..=last >> page_size.shift();
            let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
            for page in pages {
                seen.insert((block.process, page));
                accesses = accesses.saturating_add(times);
            }
        }
        for (_, event) in &block.events {
            if let Event::Repeats { kind, count, .. } = event {
                accesses = accesses.saturating_add(if is_data(*kind) { *count } else { 0 });
            }
        }
        if seen.len() > MAX_PAGES {
            return Err(format!("touches more than {MAX_PAGES} pages of {page_size}: too many to be coloured"));
        }
    }
    if let Some(damage) = source.damage().first() {
        let (from, to) = (damage.offset, damage.offset + damage.len);
        return Err(format!("bytes {from}–{to} cannot be read, so its pages are not all known: {}", damage.reason));
    }
    if seen.is_empty() {
        return Err("has no loads or stores".into());
    }
    Ok(TracedJob { pages: seen.len() as u64, accesses })
}

fn is_data(kind: Kind) -> bool {
    kind != Kind::Fetch
}

#[cfg(test)]
mod tests {
    use lookaside_machine::PageSize;

    use super::super::tasks::TaskSet;

    fn set(trace: &str, more: &str) -> TaskSet {
        let text = format!("[[task]]\nname = \"T\"\nperiod = \"1ms\"\nexecution = \"1us\"\ntrace = {trace:?}\n{more}");
        TaskSet::parse(&text, "t").expect("a set")
    }

    #[test]
    fn a_trace_tells_pages_and_accesses() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.txt");
        // The third reaches into a second page; the fetch is no data.
        std::fs::write(&path, "R 0x1000 8\nW 0x1008 8\nR 0x2ffc 8\nI 0x9000 4\nW 0x201000 4\n").expect("written");
        let path = path.to_str().expect("text");
        let small = set(path, "accesses = 2").with_traces(PageSize::K4).expect("read");
        assert_eq!((small.tasks[0].pages, small.tasks[0].accesses), (Some(4), Some(5)));
        let huge = set(path, "accesses = 9").with_traces(PageSize::M2).expect("read");
        assert_eq!((huge.tasks[0].pages, huge.tasks[0].accesses), (Some(2), Some(9)));
        let said = set(path, "contiguous_pages = 5").with_traces(PageSize::K4).expect_err("too few").to_string();
        assert_eq!(said, format!("task T: trace {path}: touches 4 pages, fewer than the 5 contiguous"));
        let said = set("/no/such.lkt", "").with_traces(PageSize::K4).expect_err("none").to_string();
        assert!(said.starts_with("task T: trace /no/such.lkt: ") && said.lines().count() == 1, "{said}");
    }
}
