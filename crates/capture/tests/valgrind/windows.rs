//! The recorder's windows of the pages used last against its own recording of every access.

use std::collections::BTreeMap;

use lookaside_capture::CaptureError;
use lookaside_trace::{Event, FilterWindow, Granularity, Kind, WindowChange};

use crate::filter::{bare, filtered, totals};
use crate::programs::{self, command, compile, record, request, Recorded};

/// A page in a window as the naive recorder sees it, and how many of its accesses the recording says were left out.
struct Held {
    page: u64,
    left: u64,
    lines: u64,
    own: u64,
}

/// Pages of each class, the least recent first.
#[derive(Default)]
struct Order(BTreeMap<u64, Vec<u64>>);

impl Order {
    fn visit(&mut self, class: u64, page: u64) {
        let pages = self.0.entry(class).or_default();
        pages.retain(|&other| other != page);
        pages.push(page);
    }
}

/// What a recording tells of one table's windows, in order.
enum Told {
    Left(u8, u64),
    Touched,
}

/// Goes through the accesses of one table beside a recording with windows: each is recorded where its page is not in
/// the window, each page leaves as the one whose last access lies furthest back, when the window or the class of a page
/// that comes in is full, or all leave. When a page comes into a class, the order in which the pages of the class were
/// used is told. (The recorder is ahead with the fetches from a page when a data access empties all windows; so a table
/// at a time.) Gives the number of each recorded access, and how often all left.
fn follow_window(
    bytes: &Recorded,
    recorded: &Recorded,
    how: FilterWindow,
    is_of: impl Fn(Kind) -> bool,
) -> (Vec<(usize, usize)>, usize) {
    let (pages, class_pages) = (how.pages as usize, how.class_pages as usize);
    let class_of = |page: u64| page % (1 << how.log2_classes);
    let mut window: Vec<Held> = Vec::new();
    let mut rows = recorded.rows.iter().enumerate().filter(|(_, row)| is_of(row.kind));
    let told = recorded.of_windows.iter().map(|(_, event)| event).filter(|event| is_of(event.kind)).map(|event| {
        let what = match event.change {
            WindowChange::Leave { others } => Told::Left(others, event.lines),
            WindowChange::Touch => Told::Touched,
        };
        (event.at as usize, event.addr, what)
    });
    let mut told = told.peekable();
    let (mut numbers, mut emptied) = (Vec::new(), 0);
    // As it is, and as it was told.
    let (mut order, mut known) = (Order::default(), Order::default());
    let mut leave = |window: &mut Vec<Held>, known: &mut Order, before: usize, class: Option<u64>| {
        let of_class = |window: &[Held]| window.iter().filter(|held| Some(class_of(held.page)) == class).count();
        let (mut needed, mut gone) = (true, 0);
        while let Some((_, addr, what)) = told.next_if(|told| told.0 <= before) {
            let Told::Left(others, lines) = what else {
                assert!(how.log2_classes > 0 && window.iter().any(|held| held.page << 12 == addr));
                known.visit(class_of(addr >> 12), addr >> 12);
                continue;
            };
            needed &= window.len() == pages || of_class(window) == class_pages;
            let held = window.remove(0);
            assert_eq!((held.page << 12, held.left), (addr, 0), "the page used least lately leaves, all counted");
            assert_eq!(held.lines & !held.own, lines, "page {addr:x}");
            assert_eq!(window.len(), usize::from(others));
            gone += 1;
        }
        assert!(needed || window.is_empty(), "as few pages leave as must, or all");
        emptied += usize::from(gone > 0 && (!needed || gone > 1 && window.is_empty()));
    };
    for (number, access) in bytes.rows.iter().enumerate().filter(|(_, access)| is_of(access.kind)) {
        let (page, line) = (access.addr >> 12, 1 << (access.addr >> 6 & 63));
        let class = class_of(page);
        let visit = |order: &mut Order| order.visit(class, page);
        if let Some(place) = window.iter().position(|held| held.page == page && held.left > 0) {
            visit(&mut order);
            let mut held = window.remove(place);
            held.left -= 1;
            held.lines |= line;
            window.push(held);
            continue;
        }
        let (at, row) = rows.next().expect("another record");
        leave(&mut window, &mut known, at, Some(class));
        if how.log2_classes > 0 {
            assert_eq!(known.0.get(&class), order.0.get(&class), "before row {at} the order of its class is known");
        }
        visit(&mut order);
        visit(&mut known);
        assert!(window.iter().all(|held| held.page != page), "a page in its window is recorded");
        let what = |row: &programs::Row| (row.kind, row.addr, row.size, row.ip);
        assert_eq!(what(row), what(access), "row {at}");
        window.push(Held { page, left: row.repeat, lines: 0, own: line });
        assert!(window.len() <= pages);
        assert!(window.iter().filter(|held| class_of(held.page) == class).count() <= class_pages);
        numbers.push((at, number));
    }
    leave(&mut window, &mut known, usize::MAX, None);
    assert!(how.log2_classes == 0 || known.0 == order.0, "at the end all is known");
    assert!(window.is_empty() && rows.next().is_none());
    (numbers, emptied)
}

#[test]
fn windows_leave_out_the_pages_used_last() {
    let (_folder, program) = bare();
    let mut request = request(command(&program, &[]));
    request.granularity = Granularity::Byte;
    let bytes = record(&request);
    request.granularity = Granularity::Page;
    let of = |(pages, log2_classes, class_pages)| FilterWindow { pages, log2_classes, class_pages };
    for (window, apart, unified) in [
        ((64, 0, 64), false, false),
        ((4, 0, 4), false, false),
        ((1, 0, 1), false, false),
        ((7, 0, 7), true, false),
        ((5, 0, 5), false, true),
        ((48, 4, 3), false, false),
        ((16, 2, 6), true, false),
        ((5, 1, 3), false, true),
        ((64, 3, 1), false, false),
    ] {
        let (window, pages) = (of(window), window.0);
        (request.filter_window, request.filter_stores_apart, request.filter_unified) = (window, apart, unified);
        let recorded = record(&request);
        assert_eq!(recorded.damage, []);
        assert_eq!(recorded.late, [], "windows are emptied within their block");
        assert_eq!(totals(&recorded), totals(&bytes));
        let table = |kind| match kind {
            _ if unified => 0,
            Kind::Load => 0,
            Kind::Store => usize::from(apart),
            Kind::Fetch => 2,
        };
        let mut order = Vec::new();
        for of in 0..3 {
            let (numbers, emptied) = follow_window(&bytes, &recorded, window, |kind| table(kind) == of);
            assert!(
                emptied > 1 || window.class_pages == 1 || numbers.is_empty(),
                "windows are emptied now and then: {window:?}"
            );
            order.extend(numbers);
        }
        order.sort_unstable();
        assert!(order.windows(2).all(|pair| pair[0].1 < pair[1].1), "in the order of the program");
        if !apart && !unified {
            let direct = filtered(&bytes, false, 0, apart, unified).len();
            assert!(
                pages == 1 || window.class_pages == 1 || recorded.rows.len() * 2 < direct,
                "{} of {direct}",
                recorded.rows.len()
            );
        }
    }
    for window in [(65, 0, 64), (64, 0, 0), (64, 13, 4), (64, 4, 65)] {
        request.filter_window = of(window);
        assert!(matches!(lookaside_capture::start(&request), Err(CaptureError::Backend { .. })), "{window:?}");
    }
}

/// Children that are killed keep what they have of the memory that records come in, until there is none left.
const KILLED: &str = r#"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char pages[100][4096];
static void touch(void) {
    for (int round = 0; round < 50; round++)
        for (int page = 0; page < 100; page++) *(volatile char *)&pages[page][64 * (round % 64)] += 1;
}
int main(void) {
    volatile int *done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    touch();
    for (int i = 0; i < 80; i++) {
        *done = 0;
        pid_t child = fork();
        if (child == 0) {
            touch();
            *done = 1;
            for (;;);
        }
        while (!*done) usleep(1000);
        kill(child, SIGKILL);
        waitpid(child, 0, 0);
    }
    touch();
    return 0;
}
"#;

#[test]
fn windows_without_shared_memory_are_smaller_and_no_less_right() {
    let (_folder, program) = compile(KILLED, &["-O1"]);
    let mut request = request(command(&program, &[]));
    request.filter_window = FilterWindow { pages: 64, log2_classes: 4, class_pages: 8 };
    let recorded = record(&request);
    assert!(recorded.damage.iter().all(|damage| damage.reason.contains("killed?")), "{:?}", recorded.damage);
    let parent = recorded.rows[0].thread;
    let own = |process: &u32| *process == parent;
    // Of the parent nothing is lost.
    let accesses: u64 = recorded.rows.iter().filter(|row| row.thread == parent).map(|row| 1 + row.repeat).sum();
    let all = recorded.events.iter().rev().find_map(|(_, process, event)| match event {
        Event::Totals { loads, stores, fetches, .. } if own(process) => Some(loads + stores + fetches),
        _ => None,
    });
    assert_eq!(Some(accesses), all);
    let others: Vec<u8> = recorded
        .of_windows
        .iter()
        .filter(|(process, event)| own(process) && event.kind != Kind::Fetch)
        .filter_map(|(_, event)| event.others())
        .collect();
    let (first, last) = others.split_at(others.len() / 2);
    assert_eq!(first.iter().max(), Some(&63), "64 pages stay but one");
    assert_eq!(last.iter().rev().take(1000).max(), Some(&31), "32 pages, which a frame of the pipe has room for");
}
