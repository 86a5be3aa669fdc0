//! Choices for a process that is this one.

use std::sync::Mutex;

use lookaside_host::{Mapping, TransparentHugePages};

use super::super::choose::SampleCounts;
use super::super::collapse::collapse_side;
use super::super::referenced::ReferencedBytes;
use super::super::windows::WINDOW_BYTES;
use super::*;

/// Sees a program where it is told to.
struct Sees(Vec<u64>);

impl AddressSampler for Sees {
    fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        Ok(self.0.clone())
    }
}

#[test]
fn settings_are_read_and_written() {
    let settings: HugePageSettings = "auto:64".parse().expect("settings");
    assert_eq!((settings.budget, settings.to_string().as_str()), (64, "auto:64"));
    for text in ["auto", "auto:", "auto:0", "auto:-1", "64", "auto:1,2", "auto:99999999999999999999999"] {
        let error = text.parse::<HugePageSettings>().expect_err(text).to_string();
        assert!(error.contains(text) && error.contains("auto:K"), "{error}");
    }
}

#[test]
fn old_sights_count_half_and_are_forgotten() {
    let of = |even, odd| WindowWeight { even, odd };
    let mut weights = WindowWeights::from([(0, of(8, 3)), (1, of(1, 1)), (2, of(4, 0))]);
    age_and_add(&mut weights, &WindowWeights::from([(2, of(1, 1)), (3, of(0, 5))]));
    assert_eq!(weights, WindowWeights::from([(0, of(4, 1)), (2, of(3, 1)), (3, of(0, 5))]));
}

#[test]
fn what_is_huge_already_counts_by_how_often_it_was_seen() {
    let window = |start, huge_pages| FitWindow { start, area: 0, small_pages: 1, huge_pages, swapped_pages: 0 };
    let of = |even, odd| WindowWeight { even, odd };
    let huge = [(0, 512), (1, 0), (2, 512), (3, 512)];
    let weights = [(0, of(3, 4)), (WINDOW_BYTES, of(50, 50)), (2 * WINDOW_BYTES, of(10, 0))];
    let mut seen = MemoryObservation {
        memory: ProcessMemory {
            areas: Vec::new(),
            windows: huge.map(|(at, pages)| window(at * WINDOW_BYTES, pages)).to_vec(),
        },
        weights: WindowWeights::from(weights),
        by: ObservedBy::Sample,
        no_samples: None,
        fell: Some(SampleCounts { samples: 120, ..SampleCounts::default() }),
        referenced: None,
    };
    assert_eq!((huge_weight(&seen), seen.weight()), (17, 120));
    seen.fell = None;
    assert_eq!(seen.weight(), 0);
    seen.referenced = Some(ReferencedBytes { bytes: vec![5, 6], ..ReferencedBytes::default() });
    assert_eq!(seen.weight(), 11, "bytes");
}

#[test]
fn a_wait_takes_its_time_unless_it_is_to_stop_and_a_note_is_kept_once() {
    let (look, stopped) = (Sees(Vec::new()), AtomicBool::new(false));
    let mut follow = Follow::new("auto:4".parse().expect("settings"), &look, &stopped);
    let began = Instant::now();
    assert!(follow.wait(3 * STEP) && began.elapsed() >= 3 * STEP && follow.wait(Duration::ZERO));
    ["one", "two", "one"].into_iter().for_each(|note| follow.note(note.into()));
    assert_eq!((follow.done.notes.join(", ").as_str(), follow.done.budget), ("one, two", 4));
    stopped.store(true, Ordering::SeqCst);
    assert!(follow.stop() && !follow.wait(Duration::from_secs(3600)), "an hour is not waited for");
    // Nor is anything looked at.
    follow.all(std::process::id());
    assert_eq!(follow.done.choices, 0);
}

#[test]
fn memory_grows_by_more_than_a_twentieth_or_not() {
    assert_eq!([0, 1].map(|bytes| has_grown(0, bytes)), [false, true], "from nothing");
    assert_eq!([90, 100, 105, 106].map(|bytes| has_grown(100, bytes)), [false, false, false, true]);
    assert_eq!([19, 20].map(|bytes| has_grown(19, bytes)), [false, true]);
}

/// Windows of this process's own memory in small pages, the last one half full.
pub(in crate::hugepages) struct Windows(Mapping, u64);

impl Windows {
    pub(in crate::hugepages) fn new(count: u64) -> Self {
        let windows = Self(Mapping::new(((count + 1) * WINDOW_BYTES) as usize).expect("memory"), count);
        for page in (windows.at(0)..windows.at(count) - WINDOW_BYTES / 2).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { (page as *mut u8).write_volatile(1) };
        }
        windows
    }

    pub(in crate::hugepages) fn at(&self, window: u64) -> u64 {
        assert!(window <= self.1);
        self.0.address().next_multiple_of(WINDOW_BYTES) + window * WINDOW_BYTES
    }

    fn give_back(&self, window: u64) {
        let (start, bytes) = (self.at(window) as *mut libc::c_void, WINDOW_BYTES as usize);
        // SAFETY: within the mapping, in which nothing is kept.
        assert_eq!(unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) }, 0);
    }
}

/// Whether the system makes huge pages only where it is asked to, which is said where not.
pub(in crate::hugepages) fn are_made_where_asked() -> bool {
    if collapse_side() != Ok(CollapseSide::Outside) {
        eprintln!("LEFT OUT: huge pages are not made from outside here");
        return false;
    }
    let at_will = TransparentHugePages::here().chosen("enabled").ok().flatten().is_none_or(|word| word == "always");
    if at_will {
        eprintln!("LEFT OUT: the system makes huge pages of what nobody asked it for");
    }
    !at_will
}

/// What is refused may be tried again; what was not answered may become huge yet, and has its place in the budget.
#[test]
fn what_is_refused_is_counted_by_why() {
    if !are_made_where_asked() {
        return;
    }
    let (windows, ours) = (Windows::new(5), std::process::id());
    let seen = (0..3).flat_map(|window| vec![windows.at(window); 9 - window as usize]).collect();
    let (look, stopped) = (Sees(seen), AtomicBool::new(false));
    let memories = BTreeMap::from([(ours, ProcessMemory::of(ours).expect("its own"))]);
    for (side, words, in_use) in [(CollapseSide::Outside, "os error 9", 0), (CollapseSide::Inside, "did not answer", 2)]
    {
        let mut follow = Follow::new("auto:2".parse().expect("settings"), &look, &stopped);
        let (weights, never) = (WindowWeights::new(), BTreeSet::from([windows.at(1)]));
        let handle = CollapseHandle::refused(side);
        follow.processes.insert(ours, Kept { handle, weights, ours: BTreeSet::new(), never });
        follow.choose(&memories, 2);
        let done = &follow.done;
        let refused: Vec<(&String, &u64)> = done.refused.iter().collect();
        assert!(refused.len() == 1 && refused[0].0.contains(words) && *refused[0].1 == 2, "{done:?}");
        assert_eq!((done.choices, done.collapsed, done.in_use, done.covered), (1, 0, in_use, Some(0.0)));
        let kept: Vec<u64> = follow.processes[&ours].ours.iter().copied().collect();
        let unanswered = [0, 2].map(|window| windows.at(window));
        assert_eq!(kept, &unanswered[..in_use], "all but what the kernel never makes huge");
    }
}

/// Sees this process nowhere, and notes when it was asked.
#[derive(Default)]
struct Notes(Mutex<Vec<Instant>>);

impl AddressSampler for Notes {
    fn sample(&self, pid: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        if pid == std::process::id() {
            self.0.lock().expect("whole").push(Instant::now());
        }
        Ok(Vec::new())
    }
}

/// At the first look, after a tenth of a second, it has grown from nothing; the second comes after two tenths more.
#[test]
fn a_program_is_looked_at_closer_once_it_does_not_grow_and_again_after_a_pause() {
    if !are_made_where_asked() {
        return;
    }
    let (windows, began) = (Windows::new(5), Instant::now());
    let (look, stopped) = (Notes::default(), AtomicBool::new(false));
    let asked = || look.0.lock().expect("whole").clone();
    let (is_asked, done) = std::thread::scope(|scope| {
        let follows = scope.spawn(|| {
            let mut follow = Follow::new("auto:2".parse().expect("settings"), &look, &stopped);
            follow.all(std::process::id());
            follow.done
        });
        // Less than it would be waited for one that grows all the time.
        let end = began + PATIENCE * 2 / 3;
        while asked().is_empty() && Instant::now() < end {
            std::thread::sleep(STEP);
        }
        let is_asked = !asked().is_empty();
        std::thread::sleep(Duration::from_millis(500));
        stopped.store(true, Ordering::SeqCst);
        (is_asked, follows.join().expect("it ends"))
    });
    drop(windows);
    let asked = asked();
    assert!(is_asked && asked[0] - began >= 3 * FIRST_LOOK, "{asked:?} from {began:?} on");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= FIRST_PAUSE), "{asked:?}");
    assert!(done.choices >= 1 && done.collapsed == 0, "{done:?}");
}

#[test]
fn who_has_little_in_small_pages_is_not_looked_at() {
    let (look, stopped) = (Sees(Vec::new()), AtomicBool::new(false));
    let memory = |small_pages| {
        let window = FitWindow { start: 0, area: 0, small_pages, huge_pages: 0, swapped_pages: 0 };
        BTreeMap::from([(std::process::id(), ProcessMemory { areas: Vec::new(), windows: vec![window] })])
    };
    let choices = |small_pages| {
        let mut follow = Follow::new("auto:2".parse().expect("settings"), &look, &stopped);
        let handle = CollapseHandle::refused(CollapseSide::Outside);
        let (weights, ours, never) = (WindowWeights::new(), BTreeSet::new(), BTreeSet::new());
        follow.processes.insert(std::process::id(), Kept { handle, weights, ours, never });
        follow.choose(&memory(small_pages), 2);
        follow.done.choices
    };
    assert_eq!(choices(2047), 0, "less than 8 MiB");
    // A kernel that does not tell its pages leaves it out too.
    assert_eq!(choices(2048), u32::from(ProcessMemory::of(std::process::id()).is_ok()));
}

#[test]
fn a_choice_is_of_the_windows_seen_most_and_what_it_came_to_is_added_up() {
    if !are_made_where_asked() {
        return;
    }
    let (windows, ours) = (Windows::new(6), std::process::id());
    let at = |window: u64, times: usize| vec![windows.at(window) + 4096; times];
    // Two of the 30 samples fell nowhere.
    let look = Sees([at(1, 10), at(5, 8), at(2, 6), at(3, 4), vec![0, 8]].concat());
    let stopped = AtomicBool::new(false);
    let mut follow = Follow::new("auto:3".parse().expect("settings"), &look, &stopped);
    let memories = follow.look_closer(&[(ours, 0)]);
    assert_eq!((memories.len(), follow.done.in_use, follow.done.way), (1, 0, Some(CollapseSide::Outside)));
    let huge = |memories: &BTreeMap<u32, ProcessMemory>| {
        let is_huge = |window: &u64| memories[&ours].window(windows.at(*window)).is_some_and(FitWindow::is_huge);
        (0..6).filter(is_huge).collect::<Vec<u64>>()
    };
    assert_eq!(huge(&memories), [0; 0]);
    follow.choose(&memories, 2);
    let done = &follow.done;
    assert!(done.refused.is_empty(), "{done:?}");
    assert_eq!((done.choices, done.by, done.weight), (1, Some(ObservedBy::Sample), 30));
    assert_eq!((done.collapsed, done.in_use, done.bloat_bytes), (2, 2, WINDOW_BYTES / 2));
    assert_eq!(done.covered, Some(18.0 / 30.0));
    assert!(done.longest_call_nanos > 0 && done.calls_nanos > done.longest_call_nanos, "{done:?}");
    // What was made huge is found, and the next choice is of what is left.
    let memories = follow.look_closer(&[(ours, 0)]);
    assert_eq!((huge(&memories), follow.done.in_use), (vec![1, 5], 2));
    follow.choose(&memories, 1);
    let done = &follow.done;
    assert_eq!((done.choices, done.weight, done.collapsed, done.in_use), (2, 60, 3, 3));
    assert_eq!((done.covered, done.bloat_bytes), (Some(24.0 / 30.0), WINDOW_BYTES / 2), "with what was huge before");
    // What the program gives back is in use no more.
    windows.give_back(1);
    let memories = follow.look_closer(&[(ours, 0), (4_194_305, 0)]);
    assert_eq!((memories.len(), huge(&memories), follow.done.in_use), (1, vec![2, 5], 2));
    assert!(follow.done.notes.is_empty(), "{:?}", follow.done.notes);
    // Once it is to stop nothing is chosen.
    stopped.store(true, Ordering::SeqCst);
    follow.choose(&memories, 1);
    assert_eq!((follow.done.choices, follow.done.collapsed), (2, 3));
}
