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
    /// Puts in place of each trace the distinct data pages of this size that it touches, and its loads and stores; more
    /// accesses that the file gives for the task stand. An access that reaches into a second page counts for each.
    ///
    /// # Errors
    /// A trace cannot be read, is damaged, holds samples, or touches no or too many pages, or fewer than are to be
    /// contiguous.
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
    use lookaside_trace::{Block, Event, Kind, TraceInfo, TraceWriter};

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

    /// A native trace of one block.
    fn native(path: &std::path::Path, sample_period_ns: u64, block: &Block) {
        let info = TraceInfo { sample_period_ns, ..TraceInfo::default() };
        let mut writer = TraceWriter::create(path, &info).expect("a file");
        writer.write(block).expect("written");
        writer.finish().expect("written");
    }

    fn loads(addr: Vec<u64>, size: u8) -> Block {
        let (kind, size) = (vec![Kind::Load; addr.len()], vec![size; addr.len()]);
        Block { addr, kind, size, ..Block::default() }
    }

    #[test]
    fn accesses_that_a_recorder_left_out_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.lkt");
        let left_out = |kind, count| (3, Event::Repeats { addr: 0x1000, kind, count });
        let block = Block {
            repeat: vec![3, 0, 1],
            events: vec![left_out(Kind::Store, 10), left_out(Kind::Fetch, 100)],
            ..loads(vec![0x1000, 0x2000, 0x2ffe], 4)
        };
        native(&path, 0, &block);
        let path = path.to_str().expect("text");
        // 4 + 1 + 10, and 2 in each of two pages.
        let tasks = set(path, "contiguous_pages = 3").with_traces(PageSize::K4).expect("read").tasks;
        assert_eq!((tasks[0].pages, tasks[0].accesses), (Some(3), Some(19)));
    }

    #[test]
    fn a_trace_that_does_not_tell_all_pages_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.lkt");
        let said = |path: &str| {
            let error = set(path, "").with_traces(PageSize::K4).expect_err("refused").to_string();
            error.strip_prefix(&format!("task T: trace {path}: ")).expect(&error).to_string()
        };
        let name = path.to_str().expect("text");
        native(&path, 1, &loads(vec![0x1000], 8));
        assert_eq!(said(name), "holds samples, not every access: record it exactly");
        native(&path, 0, &Block { kind: vec![Kind::Fetch], ..loads(vec![0x1000], 8) });
        assert_eq!(said(name), "has no loads or stores");
        native(&path, 0, &loads((0..100).map(|page| page << 12).collect(), 8));
        let mut bytes = std::fs::read(&path).expect("a file");
        // The last byte of the accesses, before the index.
        let last = bytes.windows(8).rposition(|eight| eight == b"\x89LKT\r\n\x1a\n").expect("an index") - 1;
        bytes[last] ^= 0x10;
        std::fs::write(&path, bytes).expect("written");
        let damage = lookaside_trace::check(name, None).expect("read").remove(0);
        assert_eq!(damage.offset + damage.len, last as u64 + 1);
        assert_eq!(
            said(name),
            format!(
                "bytes {}–{} cannot be read, so its pages are not all known: {}",
                damage.offset,
                last + 1,
                damage.reason
            )
        );
    }

    #[test]
    fn a_heaps_area_of_pages_is_counted_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.lkt");
        // Each reaches from one page into the next.
        native(&path, 0, &loads((0..1 << 19).map(|pair| ((2 * pair + 1) << 12) - 1).collect(), 2));
        let name = path.to_str().expect("text");
        let counted = || set(name, "").with_traces(PageSize::K4).map(|set| set.tasks[0].pages);
        assert_eq!(counted(), Ok(Some(1 << 20)));
        let mut writer = TraceWriter::append(&path).expect("a trace");
        writer.write(&loads(vec![1 << 40], 1)).expect("written");
        writer.finish().expect("written");
        let said = counted().expect_err("one too many").to_string();
        assert!(said.ends_with("touches more than 1048576 pages of 4K: too many to be coloured"), "{said}");
    }
}
