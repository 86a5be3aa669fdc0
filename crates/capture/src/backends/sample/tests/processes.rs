//! Threads and processes are followed and told apart.

use super::*;

#[test]
fn threads_are_told_apart() {
    if refused_here() {
        return;
    }
    let main = r#"
static void *run(void *p) { return chase(p, 2000000); }
int main(int argc, char **argv) {
  out = fopen(argv[1], "w");
  struct node *one = ring("one", 1 << 19), *two = ring("two", 1 << 19);
  pthread_t a, b;
  pthread_create(&a, 0, run, one);
  pthread_create(&b, 0, run, two);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 3;
}
"#;
    let run = sample(main, &["-O2"], &["chase", "run"]);
    assert_eq!(run.end, Some(ChildEnd::Code(3)));
    let threads = |array: &str| -> Vec<u32> {
        let mut of: Vec<_> = run.counts.iter().filter(|((name, ..), _)| name == array).collect();
        of.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        of.into_iter().map(|((.., thread), _)| *thread).collect()
    };
    let (one, two) = (threads("one"), threads("two"));
    assert_eq!((one.len(), two.len()), (1, 1), "{:?}", run.counts);
    assert_ne!(one, two);
    // Both do the same work.
    assert!((run.of("one") as f64 / (run.of("one") + run.of("two")) as f64 - 0.5).abs() < 0.2, "{:?}", run.counts);
    for thread in [one[0], two[0]] {
        let began = |(_, event): &(u32, Event)| *event == Event::ThreadStart { thread };
        assert!(run.events.iter().any(began), "{thread}");
    }
}

#[test]
fn forked_processes_are_followed_and_told_apart() {
    if refused_here() {
        return;
    }
    let main = r#"
int main(int argc, char **argv) {
  out = fopen(argv[1], "w");
  struct node *parents = ring("parents", 1 << 19), *childs = ring("childs", 1 << 19);
  pid_t child = fork();
  if (!child) _exit(chase(childs, 2000000) == 0);
  fprintf(out, "child %d\n", child);
  struct node *p = chase(parents, 2000000);
  int status;
  waitpid(child, &status, 0);
  return p == 0;
}
"#;
    let run = sample(main, &["-O2"], &["chase"]);
    let child: u32 = run.text.lines().find_map(|l| l.strip_prefix("child ")).unwrap().parse().unwrap();
    let processes = |array: &str| -> Vec<bool> {
        run.counts.keys().filter(|(name, ..)| name == array).map(|(_, process, _)| *process == child).collect()
    };
    assert_eq!((processes("childs"), processes("parents")), (vec![true], vec![false]), "{:?}", run.counts);
    assert!(run.events.iter().any(|(_, event)| matches!(event, Event::Fork { child: c, .. } if *c == child)));
    // The child's addresses lie in the map that it took over.
    assert_eq!(run.mapped, run.resolved);
    assert!(matches!(run.events.last(), Some((_, Event::ProcessExit { code: 0 }))), "{:?}", run.events.last());
}
