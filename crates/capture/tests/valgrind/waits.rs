//! Which visits the tool says wait for each other, in programs of which that is known.

use std::path::Path;

use lookaside_trace::{Event, FilterWindow};

use crate::programs::{command, compile, record, request, Recorded};

/// A ring of nodes in random order, each on a page of its own, and ways to go through them.
const NODES: &str = r#"
#include <stdlib.h>
#include <string.h>
#define NODES 8192
#define STEPS 200000
struct node { struct node *next, *inner; long value; char rest[4096 - 24]; };
static struct node nodes[NODES] __attribute__((aligned(4096)));
static struct node *in_order[NODES];
static long random_of(unsigned long *x) { *x = *x * 6364136223846793005UL + 1442695040888963407UL; return *x >> 40; }
int main(int argc, char **argv) {
    unsigned long x = 1;
    long sum = 0, n = STEPS;
    for (long i = 0; i < NODES; i++) in_order[i] = &nodes[i];
    for (long i = NODES - 1; i > 0; i--) {
        long j = random_of(&x) % (i + 1);
        struct node *kept = in_order[i];
        in_order[i] = in_order[j], in_order[j] = kept;
    }
    for (long i = 0; i < NODES; i++) {
        in_order[i]->next = in_order[(i + 1) % NODES];
        in_order[i]->inner = in_order[i];
    }
    struct node *p = nodes, *q = in_order[0];
    if (!strcmp(argv[1], "chain")) {
        while (n--) p = p->next;
    } else if (!strcmp(argv[1], "inner")) {
        while (n--) { sum += p->value; p = p->inner->next; }
    } else if (!strcmp(argv[1], "two")) {
        while (n--) { p = p->next; q = q->next; }
    } else if (!strcmp(argv[1], "random")) {
        while (n--) sum += nodes[random_of(&x) % NODES].value;
    } else if (!strcmp(argv[1], "array")) {
        while (n--) sum += in_order[n % NODES]->value;
    } else if (!strcmp(argv[1], "index")) {
        while (n--) p = &nodes[(p->next - nodes + 7) % NODES];
    } else if (!strcmp(argv[1], "stores")) {
        while (n--) nodes[random_of(&x) % NODES].value = n;
    } else if (!strcmp(argv[1], "work")) {
        while (n--) {
            p = p->next;
            for (int i = 0; i < 400; i++) __asm__ volatile("" : "+r"(sum));
        }
    } else if (!strcmp(argv[1], "memory")) {
        struct node *volatile at = nodes;
        while (n--) at = at->next;
    }
    __asm__ volatile("" : : "r"(sum), "r"(p), "r"(q));
    return 0;
}
"#;

fn recorded(program: &Path, way: &str, pages: u32) -> Recorded {
    let mut request = request(command(program, &[way]));
    request.filter_window = FilterWindow { pages, log2_classes: 0, class_pages: pages };
    request.waits = true;
    let recorded = record(&request);
    assert_eq!(recorded.damage, []);
    recorded
}

/// Visits that wait, of all that were recorded.
fn waits(program: &Path, way: &str) -> u64 {
    let recorded = recorded(program, way, 64);
    let told = recorded.events.iter().filter_map(|(.., event)| match event {
        Event::Waits { visits, waits, .. } => Some((*visits, *waits)),
        _ => None,
    });
    let told: Vec<(u64, u64)> = told.collect();
    assert!(told.iter().all(|(visits, waits)| *visits > 0 && waits <= visits), "{told:?}");
    told.iter().map(|(_, waits)| waits).sum()
}

#[test]
fn visits_wait_whose_addresses_come_from_visits() {
    let (_folder, program) = compile(NODES, &["-O1", "-fno-builtin"]);
    // Making the nodes and the start of the program: in each of its ways the same.
    let before = waits(&program, "none");
    assert!(before < 5000, "{before}");
    // Of 200,000 steps, nearly each of which brings in a page. The log is emptied every some hundred of them.
    for (way, least, most) in [
        ("chain", 0.95, 1.0),
        ("inner", 0.95, 1.0),
        ("index", 0.95, 1.0),
        // Each second one of 400,000 opens a level.
        ("two", 0.95, 1.01),
        ("random", 0.0, 0.01),
        ("array", 0.0, 0.01),
        ("stores", 0.0, 0.01),
        // The one before is done when the next begins.
        ("work", 0.0, 0.01),
        // Which goes through memory, and is not seen.
        ("memory", 0.0, 0.01),
    ] {
        let share = (waits(&program, way) - before) as f64 / 200_000.0;
        assert!((least..=most).contains(&share), "{way}: {share}");
    }
}

#[test]
fn what_is_recorded_stays_the_same() {
    let (_folder, program) = compile(NODES, &["-O1", "-fno-builtin"]);
    let with = recorded(&program, "inner", 16);
    let mut request = request(command(&program, &["inner"]));
    request.filter_window = FilterWindow { pages: 16, log2_classes: 0, class_pages: 16 };
    let without = record(&request);
    let is_waits = |event: &&(usize, u32, Event)| matches!(event.2, Event::Waits { .. });
    assert!(with.events.iter().any(|event| is_waits(&event)) && !without.events.iter().any(|event| is_waits(&event)));
    let accesses = |of: &Recorded| of.rows.iter().map(|row| (row.kind, row.ip, row.repeat)).collect::<Vec<_>>();
    assert!(accesses(&with) == accesses(&without));
    // Without a window nobody asks what waits.
    request.filter_window = FilterWindow::default();
    request.waits = true;
    assert!(!record(&request).events.iter().any(|event| is_waits(&event)));
}
