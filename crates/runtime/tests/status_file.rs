//! What the baker of a program tells while it runs. A program of its own: others' helpers are not looked at.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lookaside_runtime::bake::freestanding::HELPER;
use lookaside_runtime::bake::{BakedRegion, Baker, HelperState, Settings};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

/// Numbers of the files in a table.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder).expect(folder).flatten().map(|file| file.path()).collect();
    all.sort();
    all
}

/// The helpers' memory files.
fn told() -> Vec<PathBuf> {
    let name = format!("/memfd:{} (deleted)", HELPER.to_str().expect("text"));
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let is_helper = |folder: &PathBuf| {
        std::fs::read(folder.join("comm")).is_ok_and(|comm| comm.strip_suffix(b"\n") == Some(HELPER.to_bytes()))
    };
    let folders = tasks.map(|task| task.path()).filter(is_helper).map(|folder| folder.join("fd"));
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flat_map(|files| files.flatten());
    let is_told = |file: &PathBuf| std::fs::read_link(file).is_ok_and(|to| to.to_str() == Some(name.as_str()));
    files.map(|file| file.path()).filter(is_told).collect()
}

/// Waits for something, a minute at most.
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn it_tells_from_its_start_to_its_stop_and_the_programs_files_stay_as_they_are() {
    let data = vec![1u8; 8 << 20];
    let before = files("/proc/self/fd").len();
    assert!(told().is_empty());
    let settings: Settings = "prefetch:t1,sleep=1ms".parse().expect("settings");
    let baker = Baker::start(&settings, &[BakedRegion::of(&data)]).expect("a baker");
    let file = wait("a memory file", || told().pop());
    assert_eq!(files("/proc/self/fd").len(), before, "the program has no file more");
    let file = std::fs::File::open(file).expect("its own process's");
    let line = || {
        let mut bytes = [0; 2048];
        let length = file.read_at(&mut bytes, 0).expect("a line");
        let line = bytes[..length].split(|&byte| byte == b'\n').next()?;
        serde_json::from_slice::<serde_json::Value>(line).ok()
    };
    let rounds = |line: &serde_json::Value| line["rounds"].as_u64();
    let first = wait("a round", || line().filter(|line| rounds(line) > Some(0)));
    let later = wait("more rounds", || line().filter(|line| rounds(line) > rounds(&first)));
    assert_eq!(
        (&later["pid"], &later["bake"], &later["backend"]),
        (&std::process::id().into(), &"prefetch:t1,sleep=1000000ns".into(), &"prefetch:t1".into())
    );
    assert!(later["state"] == "baking" || later["state"] == "crowded", "{later}");
    assert!(later["small_bytes"].as_u64() >= Some(8 << 20) && later["ranges"] == 1, "{later}");
    assert!(later["touches"].as_u64() >= Some(8 << 20 >> 12 >> 3), "{later}");

    // Without regions it has nothing to do, and says so before it sleeps.
    baker.set_regions(&[]).expect("none");
    wait("that there is nothing to bake", || line().filter(|line| line["state"] == "looking"));
    assert_eq!((baker.state(), baker.status().state.as_str()), (HelperState::Looking, "looking"));
    baker.stop();
    assert!(told().is_empty());
    drop(file);
    assert_eq!(files("/proc/self/fd").len(), before);
    it_bakes_where_no_file_may_be_opened(&data);
}

/// Not a test of its own: the bound is the whole process's.
fn it_bakes_where_no_file_may_be_opened(data: &[u8]) {
    let bound = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..bound }).expect("less is always possible");
    let baker = Baker::start(&"prefetch".parse().expect("settings"), &[BakedRegion::of(data)]);
    let baker = baker.expect("nothing that has to be told");
    let stats = wait("rounds", || Some(baker.stats()).filter(|stats| stats.rounds >= 3));
    setrlimit(Resource::Nofile, bound).expect("as it was");
    assert!(told().is_empty() && stats.failed_calls == 0, "{stats:?}");
}
