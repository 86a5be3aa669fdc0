//! Where each task's pages lie: in sets of its own, in the sets of another, or where the system's `malloc` puts them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use lookaside_machine::{ColorLevel, Partition, Partitions, Share, BOOKKEEPING};
use lookaside_runtime::color::{HeapOptions, SharedHeap};
use lookaside_stats::SplitMix64;
use lookaside_techniques::color::plan::ColorPlan;
use lookaside_techniques::color::tasks::{Task, TaskSet};
use lookaside_techniques::color::work::PAGE_BYTES;
use lookaside_workloads::Chunks;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::TaskRunError;
use super::program::spread;

/// Where pages lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PagePlacement {
    /// By the plan, one task at a time: the others run as long, and touch no pages. What is missed then, the system and
    /// other users of the core took.
    Alone,
    /// By the plan: isolated, where that can be.
    Planned,
    /// All tasks in the sets of the one with the most pages ("same set" of Panchamukhi 2014, section 6.0.8).
    SameSets,
    /// From the C library, each page a call; a program's data in one.
    Malloc,
}

const PAGE: usize = PAGE_BYTES as usize;

impl PagePlacement {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "by the plan, alone",
            Self::Planned => "by the plan",
            Self::SameSets => "same sets",
            Self::Malloc => "malloc",
        }
    }
}

/// Bytes of the blocks that are asked of the heap: a few lines.
const BLOCK_BYTES: usize = 248;
/// Lines of a page that the tasks' words lie on; those before are for foreign pages, so that these put no word out of a
/// first-level data cache whose ways are of 4 KiB.
const FIRST_LINE: usize = 8;
/// See [`FIRST_LINE`]; the last lines may be beyond a block's end.
const LINES: usize = 52;
const LINE_BYTES: usize = 64;

/// Two words on each page of each task.
pub(super) struct PlacedPages {
    /// In the order of the set. The memory behind is the tasks' alone.
    pub words: Vec<Vec<[*mut u64; 2]>>,
    /// Where the data of each one's program lie, if it runs one: the words are on these pages, one chunk is on each.
    pub data: Vec<Option<Chunks>>,
    /// Keep them.
    _heap: Option<SharedHeap>,
    chunks: MallocChunks,
}

/// From so many free bytes at an arena's end on they go back to the system: the C library's default (mallopt(3),
/// `M_TRIM_THRESHOLD`).
#[cfg(target_env = "gnu")]
const TRIM_THRESHOLD_BYTES: libc::c_int = 128 << 10;

/// What the C library gave, until it is dropped.
#[derive(Default)]
struct MallocChunks(Vec<usize>);

impl MallocChunks {
    /// Frees those without any of these words, and gives the system what it can of their pages: counting walks goes
    /// through all pages that are there, and so brings in entries of its own.
    fn keep(&mut self, words: &[Vec<[*mut u64; 2]>]) {
        let words: BTreeSet<usize> = words.iter().flatten().flatten().map(|word| word.addr()).collect();
        let mut end = usize::MAX;
        self.0.sort_unstable();
        let chunks = self.0.iter().rev().map(|&chunk| chunk..std::mem::replace(&mut end, chunk));
        let (kept, rest): (Vec<_>, Vec<_>) = chunks.partition(|chunk| words.range(chunk.clone()).next().is_some());
        self.0 = kept.into_iter().map(|chunk| chunk.start).collect();
        drop(Self(rest.into_iter().map(|chunk| chunk.start).collect()));
    }
}

impl Drop for MallocChunks {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        // The C library raises this by itself whenever a large block is freed, and then keeps what comes free at an
        // arena's end. SAFETY: of the C library alone, which takes its own default again.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
        };
        // SAFETY: from `malloc`; who has words of these has them beside.
        self.0.iter().for_each(|chunk| unsafe { libc::free(*chunk as *mut libc::c_void) });
        // SAFETY: changes nothing that is allocated.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::malloc_trim(0)
        };
    }
}

/// Places a set's pages, each task's in an order by the seed. With a `pool` a task that has its pages of the C library
/// asks for so many, takes those that come first in that order, and frees the others.
pub(super) fn place(
    placement: PagePlacement,
    set: &TaskSet,
    plan: &ColorPlan,
    level: &ColorLevel,
    pool: Option<u64>,
    seed: u64,
) -> Result<PlacedPages, TaskRunError> {
    let mut placed = match placement {
        PagePlacement::Alone | PagePlacement::Planned => colored(set, &plan.partitions)?,
        PagePlacement::SameSets => colored(set, &same_sets(set, &plan.partitions, level)?)?,
        PagePlacement::Malloc => malloced(set, pool.unwrap_or_default()),
    };
    // Rows of pages would be walked ahead by a prefetcher.
    let mut random = SplitMix64::new(seed);
    for (words, task) in placed.words.iter_mut().zip(&set.tasks) {
        random.shuffle(words);
        words.truncate(task.pages.unwrap_or_default() as usize);
        let Some(name) = &task.program else {
            placed.data.push(None);
            continue;
        };
        let data = spread(task, name, words.iter().map(|words| page_of(words[0] as usize)).collect())?;
        let on_page = |(i, at): (usize, usize)| [0, 1].map(|kind| line(page_of(at), 2 * i + kind) as *mut u64);
        *words = data.at.iter().map(|at| at.addr().get()).enumerate().map(on_page).collect();
        random.shuffle(words);
        placed.data.push(Some(data));
    }
    placed.chunks.keep(&placed.words);
    Ok(placed)
}

/// The page's first byte.
fn page_of(address: usize) -> usize {
    address / PAGE * PAGE
}

/// Ways of a set that tasks share: one in three stays free for the system, and for what else a set holds.
pub(super) fn shared_ways(level: &ColorLevel) -> u32 {
    (2 * level.ways).div_ceil(3)
}

/// Every task in the same sets of the counted level, the first of those that the plan gives the one with most pages: as
/// few as hold these, and one way in three stays free for what else a set holds. If all tasks' pages would fit there,
/// or the plan gives no task so many: as few as hold them with all ways, the paper's case.
fn same_sets(set: &TaskSet, planned: &Partitions, level: &ColorLevel) -> Result<Partitions, TaskRunError> {
    let most = set.tasks.iter().max_by_key(|task| task.pages);
    let pages = most.and_then(|task| task.pages).unwrap_or_default();
    let all: u64 = set.tasks.iter().filter_map(|task| task.pages).sum();
    let of = most.and_then(|task| planned.partition(&task.name));
    let shares = of.iter().flat_map(|partition| &partition.shares).filter(|share| share.level == level.name);
    let mut sets: Vec<u32> = shares.flat_map(|share| share.sets.iter().copied()).collect();
    let needed = |ways: u32| pages.div_ceil(u64::from(ways.max(1))) as usize;
    let (few, least) = (needed(shared_ways(level)), needed(level.ways));
    let overflow = all > few as u64 * u64::from(level.ways);
    sets.truncate(if overflow && few <= sets.len() { few } else { least });
    if sets.len() < least {
        return Err(TaskRunError(format!("the plan gives no task {least} sets of {}", level.name)));
    }
    let partition = |task: &Task| Partition {
        name: task.name.clone(),
        pages: task.pages,
        contiguous_pages: 1,
        shares: vec![Share { level: level.name.clone(), sets: sets.clone(), ways: Some(level.ways) }],
    };
    let own = planned.partition(BOOKKEEPING).cloned();
    Ok(Partitions { partitions: set.tasks.iter().map(partition).chain(own).collect(), ..planned.clone() })
}

fn colored(set: &TaskSet, partitions: &Partitions) -> Result<PlacedPages, TaskRunError> {
    let heap = SharedHeap::new(&HeapOptions::of(partitions)).map_err(|error| TaskRunError(error.to_string()))?;
    let mut words = Vec::new();
    for (color, task) in (0..).zip(&set.tasks) {
        let pages = task.pages.unwrap_or_default() as usize;
        if task.program.is_some() {
            let whole = whole_pages(&heap, color);
            if whole.len() < pages {
                return Err(too_few(task, whole.len()));
            }
            words.push(whole.into_iter().map(|page| [page as *mut u64; 2]).collect());
            continue;
        }
        // All that it has: which pages a heap begins with is its own affair.
        let mut blocks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        loop {
            let block = heap.malloc(BLOCK_BYTES, color) as usize;
            if block == 0 {
                break;
            }
            blocks.entry(block / PAGE).or_default().push(block);
        }
        if blocks.len() < pages {
            return Err(too_few(task, blocks.len()));
        }
        words.push(
            blocks.iter().take(pages).enumerate().map(|(i, (page, blocks))| self::words(*page, blocks, i)).collect(),
        );
    }
    Ok(PlacedPages { words, data: Vec::new(), _heap: Some(heap), chunks: MallocChunks::default() })
}

fn too_few(task: &Task, has: usize) -> TaskRunError {
    let pages = task.pages.unwrap_or_default();
    TaskRunError(format!("task {}: the heap gives it {has} of its {pages} pages", task.name))
}

/// All pages of a colour: allocations that leave no room for a header, the longest first.
fn whole_pages(heap: &SharedHeap, color: u32) -> Vec<usize> {
    let mut vpns = heap.vpns(color);
    vpns.sort_unstable();
    let longest = vpns.chunk_by(|before, vpn| before + 1 == *vpn).map(<[u64]>::len).max().unwrap_or_default();
    let mut pages = Vec::new();
    for run in (1..=longest).rev() {
        loop {
            let start = heap.aligned(PAGE, run * PAGE, color) as usize;
            if start == 0 {
                break;
            }
            pages.extend((0..run).map(|page| start + page * PAGE));
        }
    }
    pages
}

/// Two words of a task's `i`-th page, within blocks that begin there (ascending): on the lines of its turn, or on the
/// next that a block has.
fn words(page: usize, blocks: &[usize], i: usize) -> [*mut u64; 2] {
    [0, 1].map(|kind| word(page, blocks, 2 * i + kind))
}

fn word(page: usize, blocks: &[usize], turn: usize) -> *mut u64 {
    let line = line(page * PAGE, turn);
    // A block may end on the next page.
    let end = |block: usize| (block + BLOCK_BYTES).min((page + 1) * PAGE) - size_of::<u64>();
    let found = blocks.iter().find(|block| line <= end(**block)).or(blocks.last());
    found.map_or(line, |block| line.clamp(*block, end(*block))) as *mut u64
}

/// From the C library; each task's by a thread of its own, all at once, so that each has an arena. A task asks for so
/// many at least.
fn malloced(set: &TaskSet, least: u64) -> PlacedPages {
    let together = Barrier::new(set.tasks.len());
    let pages = |of_program: bool, pages: u64| -> Vec<(usize, [usize; 2])> {
        together.wait();
        if of_program {
            // SAFETY: asks for memory.
            let all = unsafe { libc::aligned_alloc(PAGE, pages as usize * PAGE) } as usize;
            let page = |i: usize| (if i == 0 { all } else { 0 }, [all + i * PAGE; 2]);
            let words = (0..pages as usize).filter(|_| all != 0).map(page).collect();
            together.wait();
            return words;
        }
        // SAFETY: asks for memory.
        let chunk = |i: usize| (unsafe { libc::malloc(PAGE) } as usize, i);
        let chunks: Vec<_> = (0..pages as usize).map(chunk).filter(|chunk| chunk.0 != 0).collect();
        // The page that each begins on.
        let at = |(chunk, i): (usize, usize)| {
            let page = chunk / PAGE * PAGE;
            // One that begins at the page's end has room for one line there, or for two words.
            let last = page + PAGE - 2 * size_of::<u64>();
            let word =
                |kind| line(page, 2 * i + kind).clamp(chunk + kind * size_of::<u64>(), last + kind * size_of::<u64>());
            (chunk, [0, 1].map(word))
        };
        let words = chunks.into_iter().map(at).collect();
        together.wait();
        words
    };
    let tasks: Vec<Vec<(usize, [usize; 2])>> = std::thread::scope(|scope| {
        let spawn = |task: &Task| {
            let number = task.pages.unwrap_or_default().max(least);
            let pages = &pages;
            let of_program = task.program.is_some();
            scope.spawn(move || pages(of_program, number))
        };
        let threads: Vec<_> = set.tasks.iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let chunks = MallocChunks(tasks.iter().flatten().map(|(chunk, _)| *chunk).collect());
    let words = tasks.into_iter().map(|task| task.into_iter().map(|(_, words)| words.map(|word| word as *mut u64)));
    PlacedPages { words: words.map(Iterator::collect).collect(), data: Vec::new(), _heap: None, chunks }
}

/// The line of a turn: they differ, so that they meet in few sets of the data cache.
fn line(page: usize, turn: usize) -> usize {
    page + (FIRST_LINE + turn % LINES) * LINE_BYTES
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, PageSize};
    use lookaside_techniques::color::plan::plan;

    use super::*;

    /// A task that runs a program, its data spread over four times as many pages, beside one that loads pages.
    #[test]
    fn a_programs_data_lie_in_pages_of_its_own() {
        let text = "[[task]]\nname = \"T1\"\nperiod = \"2ms\"\nexecution = \"1ms\"\npages = 20\nprogram = \"fir\"\ndata_pages = 5\n\
                    [[task]]\nname = \"T2\"\nperiod = \"4ms\"\nexecution = \"1ms\"\npages = 16\n";
        let set = TaskSet::parse(text, "t").expect("a set");
        let machine = preset("xeon-e5-2650").expect("a preset");
        let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
        let level = machine.color_levels(PageSize::K4).swap_remove(0);
        for (placement, pool) in [
            (PagePlacement::Planned, None),
            (PagePlacement::SameSets, None),
            (PagePlacement::Malloc, None),
            (PagePlacement::Malloc, Some(40)),
        ] {
            let placed = place(placement, &set, &plan, &level, pool, 7).expect("places");
            let data = placed.data[0].as_ref().expect("a program's");
            assert!(placed.data[1].is_none() && placed.words[1].len() == 16);
            // Coefficients take one chunk of their page's four, input and output two pages each.
            assert_eq!((data.bytes, data.at.len(), placed.words[0].len()), (1024, 17, 17));
            let starts: Vec<usize> = data.at.iter().map(|at| at.addr().get()).collect();
            let pages: BTreeSet<usize> = starts.iter().map(|at| at / PAGE).collect();
            assert_eq!(pages, placed.words[0].iter().map(|words| words[0] as usize / PAGE).collect());
            assert!(pages.len() == 17 && starts.is_sorted() && starts.iter().all(|at| at % 1024 == 0));
            assert!((0..4).all(|k| starts.iter().filter(|at| *at % PAGE / 1024 == k).count() >= 4));
            let others: BTreeSet<usize> = placed.words[1].iter().map(|words| words[0] as usize / PAGE).collect();
            assert!(pages.is_disjoint(&others));
            let own = sets(&level, &placed.words[0]);
            match placement {
                PagePlacement::SameSets => assert!(own.len() <= 7, "{own:?}"),
                PagePlacement::Planned => {
                    assert!(own.is_disjoint(&sets(&level, &placed.words[1])) || plan.is_isolated())
                }
                _ => assert!(pages.len() < 40),
            }
        }
    }

    /// Pages, sets and lines of each task's words.
    fn placed(placement: PagePlacement) -> (ColorPlan, ColorLevel, PlacedPages) {
        let machine = preset("xeon-e5-2650").expect("a preset");
        let task = |name: &str, period: u64, pages: u64| {
            format!("[[task]]\nname = \"{name}\"\nperiod = \"{period}ms\"\nexecution = \"1ms\"\npages = {pages}\n")
        };
        let set = TaskSet::parse(&(task("T1", 2, 6) + &task("T2", 16, 8) + &task("T3", 16, 3)), "t").expect("a set");
        let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
        let level = machine.color_levels(PageSize::K4).swap_remove(0);
        let placed = place(placement, &set, &plan, &level, None, 7).expect("places");
        let pages =
            |words: &[[*mut u64; 2]]| words.iter().map(|words| words[0] as usize / PAGE).collect::<BTreeSet<_>>();
        assert_eq!(placed.words.iter().map(|words| pages(words).len()).collect::<Vec<_>>(), [6, 8, 3]);
        let all: BTreeSet<usize> = placed.words.iter().flatten().flatten().map(|word| *word as usize).collect();
        assert_eq!(all.len(), 2 * 17, "words are apart");
        for words in placed.words.iter().flatten() {
            assert_eq!(words[0] as usize / PAGE, words[1] as usize / PAGE);
            assert!(words.iter().all(|word| word.is_aligned()));
        }
        (plan, level, placed)
    }

    fn sets(level: &ColorLevel, words: &[[*mut u64; 2]]) -> BTreeSet<u32> {
        words.iter().map(|words| level.set_of(words[0] as u64 / PAGE_BYTES)).collect()
    }

    #[test]
    fn planned_pages_are_in_the_partitions_sets_on_lines_of_their_own() {
        let (plan, level, placed) = placed(PagePlacement::Planned);
        assert!(plan.is_isolated());
        for (partition, words) in plan.partitions.partitions.iter().zip(&placed.words) {
            let own = partition.shares.iter().filter(|share| share.level == level.name);
            let own: BTreeSet<u32> = own.flat_map(|share| share.sets.iter().copied()).collect();
            assert!(sets(&level, words).is_subset(&own), "{}", partition.name);
            let lines: BTreeSet<usize> =
                words.iter().flatten().map(|word| *word as usize % PAGE / LINE_BYTES).collect();
            assert_eq!(lines.len(), 2 * words.len());
            assert!(lines.first() >= Some(&FIRST_LINE));
        }
    }

    #[test]
    fn same_sets_are_as_few_as_hold_one_tasks_pages_and_leave_a_way_of_them() {
        // Eight pages in three sets of four ways.
        let (_, level, placed) = placed(PagePlacement::SameSets);
        let all: Vec<BTreeSet<u32>> = placed.words.iter().map(|words| sets(&level, words)).collect();
        assert_eq!(all[1].len(), 3);
        assert!(all.iter().all(|sets| sets.is_subset(&all[1])));
        // The paper's case: two tasks of four pages would fit into two such sets. In one they do not.
        let task =
            |name: &str| format!("[[task]]\nname = \"{name}\"\nperiod = \"2ms\"\nexecution = \"1ms\"\npages = 4\n");
        let set = TaskSet::parse(&(task("T1") + &task("T2")), "t").expect("a set");
        let plan = plan(&set, &preset("xeon-e5-2650").expect("a preset"), PageSize::K4).expect("a plan");
        let partitions = same_sets(&set, &plan.partitions, &level).expect("sets");
        assert_eq!(partitions.partition("T1").map(|of| of.shares[0].sets.len()), Some(1));
        assert_eq!(partitions.partition("T1").map(|of| &of.shares), partitions.partition("T2").map(|of| &of.shares));
    }

    #[test]
    fn the_c_library_gives_each_task_pages() {
        placed(PagePlacement::Malloc);
    }

    #[test]
    fn of_a_pool_the_seed_says_which_pages() {
        let set = TaskSet::parse("[[task]]\nname = \"T\"\nperiod = \"2ms\"\nexecution = \"1ms\"\npages = 14\n", "t")
            .expect("a set");
        let machine = preset("xeon-e5-2650").expect("a preset");
        let plan = plan(&set, &machine, PageSize::K4).expect("a plan");
        let level = machine.color_levels(PageSize::K4).swap_remove(0);
        let drawn = |pool, seed| {
            let placed = place(PagePlacement::Malloc, &set, &plan, &level, pool, seed).expect("places");
            let mut pages: Vec<usize> = placed.words[0].iter().map(|words| words[0] as usize / PAGE).collect();
            pages.sort_unstable();
            assert_eq!(pages.len(), 14);
            assert_eq!(placed.chunks.0.len(), 14, "the others are freed");
            pages.iter().map(|page| page - pages[0]).collect::<Vec<_>>()
        };
        drawn(None, 1);
        let some = drawn(Some(32), 1);
        assert!(some.last() > Some(&14), "{some:?}");
        assert_ne!(drawn(Some(32), 2), some);
    }

    /// Of the pages of chunks that are freed, all but those that chunks which stay begin or end in.
    #[test]
    #[cfg(target_env = "gnu")]
    fn pages_that_nobody_drew_are_given_back() {
        // SAFETY: asks for memory.
        let chunks: Vec<usize> = (0..400).map(|_| unsafe { libc::malloc(PAGE) } as usize).collect();
        for chunk in &chunks {
            // SAFETY: of this size, and ours.
            unsafe { std::ptr::write_bytes(*chunk as *mut u8, 1, PAGE) };
        }
        let word = |at: usize| [(chunks[at] + 64) as *mut u64; 2];
        let mut all = MallocChunks(chunks.clone());
        all.keep(&[vec![word(100)], vec![word(300), word(301)]]);
        assert_eq!(all.0.iter().copied().collect::<BTreeSet<_>>(), [100, 300, 301].map(|at| chunks[at]).into());
        let is_there = |page: usize| {
            let mut there = 0;
            // SAFETY: writes one byte; an address without memory is an error.
            let done = unsafe { libc::mincore((page * PAGE) as *mut libc::c_void, PAGE, &mut there) };
            done == 0 && there & 1 == 1
        };
        // Each of them begins on a page of its own: 199 chunks lie between the first two.
        let between = (chunks[101] / PAGE + 1..chunks[299] / PAGE).filter(|page| is_there(*page)).count();
        assert!(between <= 20, "{between} pages of 199 are there");
        assert!([100, 300, 301].iter().all(|at| is_there(chunks[*at] / PAGE)));
    }
}
