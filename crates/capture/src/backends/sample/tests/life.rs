//! How recordings begin and end.

use super::*;

#[test]
fn execs_exits_and_signals_pass_through() {
    if refused_here() {
        return;
    }
    let run = |words: &[&str]| {
        let command = words.iter().map(Into::into).collect();
        read(start(&request(RecordTarget::Command(command), 1000)).unwrap(), Path::new("/nonexistent"), &[])
    };
    assert_eq!(run(&["sh", "-c", "exit 7"]).end, Some(ChildEnd::Code(7)));
    assert_eq!(run(&["sh", "-c", "kill -9 $$"]).end, Some(ChildEnd::Signal(9)));
    let execs = run(&["sh", "-c", "true | /bin/sleep 0; exec /bin/true"]);
    assert_eq!(execs.end, Some(ChildEnd::Code(0)));
    let count = |want: fn(&Event) -> bool| execs.events.iter().filter(|(_, event)| want(event)).count();
    assert!(count(|event| matches!(event, Event::Exec { path } if path.contains("sleep"))) == 1, "{:?}", execs.events);
    assert!(count(|event| matches!(event, Event::Exec { path } if path.contains("true"))) >= 1);
    // Nothing from before the first exec: our own program is nowhere mapped.
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    assert!(!execs.events.iter().any(|(_, event)| format!("{event:?}").contains(&own)));
}

#[test]
fn a_program_without_end_is_stopped() {
    if refused_here() {
        return;
    }
    // The second ignores SIGTERM.
    for (script, signal) in [("exec sleep 1000", 15), ("trap '' TERM; while :; do :; done", 9)] {
        let command = vec!["sh".into(), "-c".into(), format!("exec sh -c \"{script}\"").into()];
        let recording = start(&request(RecordTarget::Command(command), 1000)).unwrap();
        let control = recording.control;
        std::thread::sleep(std::time::Duration::from_millis(300));
        control.stop();
        let mut source = recording.source;
        let mut block = Block::default();
        while source.next_block(&mut block).unwrap() {}
        assert_eq!(control.wait().unwrap(), ChildEnd::Signal(signal), "{script}");
    }
}

#[test]
fn attaches_to_all_threads_and_lets_go() {
    if refused_here() {
        return;
    }
    let main = r#"
static struct node *volatile sink;
static void *forever(void *p) { for (;;) sink = p = chase(p, 1000); return p; }
static void *late(void *p) { usleep(100000); pthread_t t; pthread_create(&t, 0, forever, p); pthread_join(t, 0); return 0; }
int main(int argc, char **argv) {
  out = fopen(argv[1], "w");
  struct node *one = ring("one", 1 << 16), *two = ring("two", 1 << 16);
  pthread_t a, b;
  pthread_create(&a, 0, forever, one);
  fprintf(out, "ready\n");
  fflush(out);
  getchar();
  pthread_create(&b, 0, late, two);
  pthread_join(a, 0);
  return 0;
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), main, &["-O2"]);
    let places = folder.path().join("places");
    let mut child =
        KilledOnDrop(Command::new(program).arg(&places).stdin(std::process::Stdio::piped()).spawn().unwrap());
    let child = &mut child.0;
    while !std::fs::read_to_string(&places).unwrap_or_default().contains("ready") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let recording = start(&request(RecordTarget::Pid(child.id()), 2000)).unwrap();
    assert_eq!(recording.control.pid(), child.id());
    assert!(recording.source.info().command[0].ends_with("program"));
    // Only now the thread that starts the second one.
    drop(child.stdin.take());
    let control: Arc<dyn ProgramControl> = Arc::from(recording.control);
    let stopper = Arc::clone(&control);
    let stop = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        stopper.stop();
    });
    let held = Recording { control: Box::new(SharedControl(control)), ..recording };
    let run = read(held, &places, &["chase", "forever"]);
    stop.join().unwrap();
    assert_eq!(run.end, Some(ChildEnd::Detached));
    let (one, two) = (run.of("one"), run.of("two"));
    assert!(one > 50 && two > 50, "{:?}", run.counts);
    assert!((one + two) as f64 > 0.8 * run.samples as f64, "{:?}", run.counts);
    assert_eq!(run.mapped, run.resolved);
    // No thread is counted twice: 1.5 s of two threads at 2000 Hz on whatever CPUs there were.
    assert!(run.samples <= 2 * 2000 * 2, "{}", run.samples);
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
}

/// A child that does not outlive a test that fails.
struct KilledOnDrop(std::process::Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct SharedControl(Arc<dyn ProgramControl>);

impl ProgramControl for SharedControl {
    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        self.0.wait()
    }
}
